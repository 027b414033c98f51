//! A call of one message that is answered by one message: both stand behind a prefix of five bytes, a flag for
//! compression and the length (gRPC over HTTP/2, "Length-Prefixed-Message").
//!
//! Written here since it is short, and since it takes the message from where it was read, without a copy.

use std::future::poll_fn;
use std::pin::pin;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use http_body::Body;
use prost::Message;

use super::body::CallBody;
use super::status::{CallError, Code, GRPC};

/// The largest message of a call, in bytes.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;
const PREFIX_BYTES: usize = 5;

/// Reads a call's message.
pub(super) async fn message<Q, B>(request: Request<B>) -> Result<Q, CallError>
where
    Q: Message + Default,
    B: Body<Data = Bytes>,
{
    let framed = collected(request.into_body()).await?;
    let message = unframed(&framed)?;
    Q::decode(message).map_err(|error| CallError::invalid(format!("this is no message of that kind: {error}")))
}

/// The message behind its prefix.
pub(crate) fn unframed(framed: &[u8]) -> Result<&[u8], CallError> {
    let Some((&[flag, a, b, c, d], message)) = framed.split_first_chunk::<PREFIX_BYTES>() else {
        return Err(CallError::new(Code::Internal, "the call has no message"));
    };
    if flag != 0 {
        return Err(CallError::new(Code::Unimplemented, "messages are taken without compression"));
    }
    if usize::try_from(u32::from_be_bytes([a, b, c, d])) != Ok(message.len()) {
        return Err(CallError::new(Code::Internal, "the call is not one message of the length that it says"));
    }
    Ok(message)
}

/// All of a body, which most often is one frame.
pub(crate) async fn collected<B: Body<Data = Bytes>>(body: B) -> Result<Bytes, CallError> {
    let mut body = pin!(body);
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        // Whoever broke off gets no answer anyway.
        let frame = frame.map_err(|_| CallError::new(Code::Internal, "the call broke off"))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + all.len() + data.len() > PREFIX_BYTES + MESSAGE_BYTES_MAX {
            let message = format!("the message is too large; the maximum is {MESSAGE_BYTES_MAX} bytes");
            return Err(CallError::new(Code::ResourceExhausted, message));
        }
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// The answer with this message.
pub(super) fn answered(message: &impl Message) -> Response<CallBody> {
    let length = message.encoded_len();
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + length);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // There is room for all of it.
    let _ = message.encode(&mut framed);
    let mut response = Response::new(CallBody::message(framed.freeze()));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full, StreamBody};

    use super::super::body::GrpcBody;
    use super::*;

    async fn read(bytes: &[u8]) -> Result<String, CallError> {
        message::<String, _>(Request::new(Full::new(Bytes::copy_from_slice(bytes)))).await
    }

    #[tokio::test]
    async fn a_message_is_read_whole_or_in_pieces() {
        // A message whose field 1 is a text.
        assert_eq!(read(b"\0\0\0\0\x05\x0a\x03abc").await.unwrap(), "abc");
        assert_eq!(read(b"\0\0\0\0\0").await.unwrap(), "");
        let pieces = [&b"\0\0\0"[..], b"\0\x05\x0a\x03a", b"bc"];
        let pieces = pieces.map(|piece| Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from_static(piece))));
        let body = StreamBody::new(futures_util::stream::iter(pieces));
        assert_eq!(message::<String, _>(Request::new(body)).await.unwrap(), "abc");
    }

    #[tokio::test]
    async fn what_is_no_message_is_refused() {
        let code = async |bytes: &[u8]| read(bytes).await.unwrap_err().code;
        assert_eq!(code(b"").await, Code::Internal);
        assert_eq!(code(b"\0\0\0\0\x06\x0a\x03abc").await, Code::Internal);
        assert_eq!(code(b"\0\xff\xff\xff\xff\x0a\x03abc").await, Code::Internal);
        assert_eq!(code(b"\x01\0\0\0\x05\x0a\x03abc").await, Code::Unimplemented);
        assert_eq!(code(b"\0\0\0\0\x05\x0a\x09abc").await, Code::InvalidArgument);
        assert_eq!(code(&vec![0; MESSAGE_BYTES_MAX + 6]).await, Code::ResourceExhausted);
    }

    #[tokio::test]
    async fn an_answer_is_a_message_and_a_status() {
        let body = GrpcBody::Call { body: answered(&"abc".to_owned()).into_body() };
        let collected = body.collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(&collected.to_bytes()[..], b"\0\0\0\0\x05\x0a\x03abc");
    }
}
