//! HTTP/2 in bytes: frames as they are written and read, without a library that would refuse to write wrong ones.

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt as _;

use crate::support::Client;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const WITH_PRIORITY: u8 = 0x20;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame as it came.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The error of a reset stream or of a connection that ends.
    pub(crate) fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    /// Is it the head of a response with this status, whose number HPACK has or whose digits are in Huffman's code?
    pub(crate) fn is_status(&self, status: u16) -> bool {
        let field: &[u8] = match status {
            200 => &[0x88],
            400 => &[0x8c],
            431 => &[0x48, 0x83, 0x69, 0x90],
            _ => panic!("write down how {status} is written"),
        };
        self.kind == HEADERS && self.payload.starts_with(field)
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Fields in literals without Huffman's code, none of which enters the table.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    // The highest bit would announce Huffman's code.
    let length = |text: &str| u8::try_from(text.len()).ok().filter(|length| *length < 0x7f).unwrap();
    let text = |text: &str| [&[length(text)], text.as_bytes()].concat();
    fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

pub(crate) fn request(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "test")];
    block(&[&fields, more].concat())
}

/// A whole request without a body.
pub(crate) fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &request("GET", path, &[]))
}

impl Client {
    /// A client that has sent the preface and these settings.
    pub(crate) async fn http2(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut client = Self::to(address).await;
        let settings =
            settings.iter().flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat());
        let settings = frame(SETTINGS, 0, 0, &settings.collect::<Vec<_>>());
        client.send([PREFACE, &settings].concat()).await;
        client
    }

    /// The next frame; nothing once the connection is closed. A PING is answered.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        let head = self.exactly_or_end(9).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes(head[5..9].try_into().unwrap());
        let payload = self.exactly_or_end(length).await?;
        if head[3] == PING && head[4] & ACK == 0 {
            // The server asks whether anybody is there. It may be gone itself by now.
            let _ = self.socket.write_all(&frame(PING, ACK, 0, &payload)).await;
        }
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// The next frame that is wanted; those before it are passed over.
    pub(crate) async fn frame_that(&mut self, what: &str, is_wanted: impl Fn(&Frame) -> bool) -> Frame {
        let mut seen = Vec::new();
        while let Some(frame) = self.frame().await {
            if is_wanted(&frame) {
                return frame;
            }
            seen.push((frame.kind, frame.flags, frame.stream));
        }
        panic!("closed before {what}, after {seen:?}");
    }
}
