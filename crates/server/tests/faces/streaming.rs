//! Bodies that are larger than any buffer.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Client, Stage, eventually, upstream};

const LENGTH: u64 = 64 * 1024 * 1024;
const PIECE: usize = 64 * 1024;

/// The byte at `at` of the test body.
fn byte(at: u64) -> u8 {
    (at ^ (at >> 8) ^ (at >> 17)) as u8
}

fn piece(at: u64) -> Bytes {
    (at..LENGTH.min(at + PIECE as u64)).map(byte).collect::<Vec<_>>().into()
}

/// A checksum that notices a missing, doubled or moved byte.
fn checksum(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| (sum.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

fn expected() -> u64 {
    (0..LENGTH).step_by(PIECE).fold(0, |sum, at| checksum(sum, &piece(at)))
}

/// A body of [`LENGTH`] bytes, made as it is taken.
struct Long {
    at: u64,
    known: bool,
    made: Arc<AtomicU64>,
}

impl Body for Long {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.at >= LENGTH {
            return Poll::Ready(None);
        }
        let piece = piece(self.at);
        self.at += piece.len() as u64;
        self.made.store(self.at, SeqCst);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        if self.known { SizeHint::with_exact(LENGTH - self.at) } else { SizeHint::default() }
    }
}

#[tokio::test]
async fn a_long_download_arrives_whole_with_and_without_a_length() {
    for known in [true, false] {
        let (upstream, _) =
            upstream(move |_| async move { Response::new(Long { at: 0, known, made: Arc::default() }) }).await;
        let stage = Stage::before(upstream);
        let mut client = Client::to(stage.address).await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let answer = client.answer().await;
        assert_eq!(answer.field("content-length").is_some(), known);
        assert_eq!((answer.body.len() as u64, checksum(0, &answer.body)), (LENGTH, expected()));
    }
}

#[tokio::test]
async fn a_long_upload_arrives_whole_with_and_without_a_length() {
    for known in [true, false] {
        let (upstream, _) = upstream(|request: Request<Incoming>| async move {
            let (mut body, mut sum, mut length) = (request.into_body(), 0, 0);
            while let Some(frame) = body.frame().await {
                let data = frame.unwrap().into_data().unwrap();
                (sum, length) = (checksum(sum, &data), length + data.len());
            }
            Response::new(Full::<Bytes>::from(format!("{length} {sum}")))
        })
        .await;
        let stage = Stage::before(upstream);
        let mut client = Client::to(stage.address).await;
        let framing = if known { format!("content-length: {LENGTH}") } else { "transfer-encoding: chunked".into() };
        client.send(format!("POST / HTTP/1.1\r\nhost: a\r\n{framing}\r\n\r\n")).await;
        for at in (0..LENGTH).step_by(PIECE) {
            if known {
                client.send(piece(at)).await;
            } else {
                client.send(format!("{PIECE:x}\r\n")).await;
                client.send(piece(at)).await;
                client.send("\r\n").await;
            }
        }
        if !known {
            client.send("0\r\n\r\n").await;
        }
        assert_eq!(client.answer().await.text(), format!("{LENGTH} {}", expected()));
    }
}

/// What two sockets' kernel buffers and the proxy's own may hold at the most, of either direction. Without
/// back-pressure all of the body would be on its way.
const ON_THE_WAY_MAX: u64 = LENGTH / 4;

/// Waits until a counter stands still.
async fn standstill(counter: &AtomicU64) -> u64 {
    loop {
        let before = counter.load(SeqCst);
        tokio::time::sleep(Duration::from_millis(100)).await;
        if before > 0 && counter.load(SeqCst) == before {
            return before;
        }
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_stops_the_upstream() {
    let made = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&made);
    let (upstream, _) = upstream(move |_| {
        let made = Arc::clone(&counter);
        async move { Response::new(Long { at: 0, known: true, made }) }
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let made = standstill(&made).await;
    assert!(made < ON_THE_WAY_MAX, "{made} bytes were taken from the upstream");
    // And it goes on where it stopped.
    let answer = client.answer().await;
    assert_eq!(checksum(0, &answer.body), expected());
}

#[tokio::test]
async fn an_upstream_that_reads_nothing_stops_the_client() {
    let upstream = crate::support::raw_upstream(|mut socket| async move {
        crate::support::read_head(&mut socket).await;
        std::future::pending::<()>().await;
    })
    .await;
    let stage = Stage::before(upstream);
    let client = Client::to(stage.address).await;
    let (_read, mut write) = client.socket.into_split();
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    tokio::spawn(async move {
        let head = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {LENGTH}\r\n\r\n");
        write.write_all(head.as_bytes()).await.unwrap();
        for at in (0..LENGTH).step_by(PIECE) {
            write.write_all(&piece(at)).await.unwrap();
            counter.fetch_add(PIECE as u64, SeqCst);
        }
    });
    let sent = standstill(&sent).await;
    assert!(sent < ON_THE_WAY_MAX, "{sent} bytes were taken from the client");
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut_after_its_time() {
    let (upstream, log) =
        upstream(|_| async { Response::new(Long { at: 0, known: true, made: Arc::default() }) }).await;
    let mut scene = crate::support::Scene::default();
    scene.bounds.stall_timeout = Duration::from_millis(100);
    let stage = scene.before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    eventually("the upstream is let go", || log.closed.load(SeqCst) == 1).await;
    eventually("the client is, too", || stage.metric("tidegate_connections") == 0).await;
    let mut got = Vec::new();
    let _ = client.socket.read_to_end(&mut got).await;
    assert!((got.len() as u64) < LENGTH);
}
