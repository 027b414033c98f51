//! What RFC 9113 and RFC 7541 ask of a server, case by case: frames that are wrong, and frames that only look it.
//!
//! The cases are those of the conformance tester h2spec, named by the sections of its report, and they are judged as it
//! judges them: an error of one stream may be answered by one of the connection, and where there is a more specific code
//! than that of a protocol error, that one is as good.

use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::frames::*;
use crate::support::{Client, PATIENCE, Scene, Stage, upstream};

const PROTOCOL: u32 = 1;
const FLOW_CONTROL: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE: u32 = 6;
const REFUSED: u32 = 7;
const COMPRESSION: u32 = 9;

/// What a server has to do.
#[derive(Clone, Copy)]
enum Expect {
    /// Go on: a PING behind what was sent is answered.
    Alive,
    /// Answer the request on stream 1.
    Served,
    /// End the connection with one of these.
    Connection(&'static [u32]),
    /// Reset the stream with one of these, or end the connection with it.
    Stream(&'static [u32]),
}
use Expect::{Alive, Connection, Served, Stream};

type Case = (&'static str, Vec<Vec<u8>>, Expect);

const OPEN: u8 = END_HEADERS;
const WHOLE: u8 = END_HEADERS | END_STREAM;

fn headers(flags: u8, stream: u32, more: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, flags, stream, &request("POST", "/", more))
}

/// A request with exactly these fields.
fn only(fields: &[(&str, &str)]) -> Vec<Vec<u8>> {
    vec![frame(HEADERS, WHOLE, 1, &block(fields))]
}

/// A whole request whose block ends with these bytes.
fn ending(bytes: &[u8]) -> Vec<Vec<u8>> {
    vec![frame(HEADERS, WHOLE, 1, &[&request("GET", "/", &[]), bytes].concat())]
}

fn with(more: &[(&str, &str)]) -> Vec<Vec<u8>> {
    vec![headers(WHOLE, 1, more)]
}

fn setting(name: u16, value: u32) -> Vec<Vec<u8>> {
    vec![frame(SETTINGS, 0, 0, &[&name.to_be_bytes()[..], &value.to_be_bytes()].concat())]
}

fn rst(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8u32.to_be_bytes())
}

fn window(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

fn priority(stream: u32, on: u32) -> Vec<u8> {
    frame(PRIORITY, 0, stream, &[&on.to_be_bytes()[..], &[15]].concat())
}

fn data(flags: u8, stream: u32, bytes: usize) -> Vec<u8> {
    frame(DATA, flags, stream, &vec![b'x'; bytes])
}

fn framing() -> Vec<Case> {
    let fields = request("GET", "/", &[]);
    let begun = || frame(HEADERS, END_STREAM, 1, &fields);
    vec![
        ("4.1 a frame of unknown type", vec![frame(0x16, 0, 0, b"12345678")], Alive),
        ("4.1 undefined flags", vec![frame(PING, 0x16, 0, b"12345678")], Alive),
        ("4.1 the reserved bit", vec![frame(PING, 0, 1 << 31, b"12345678")], Alive),
        ("4.2 DATA of the largest size", vec![headers(OPEN, 1, &[]), data(END_STREAM, 1, 16_384)], Served),
        ("4.2 DATA above it", vec![headers(OPEN, 1, &[]), data(END_STREAM, 1, 16_385)], Stream(&[FRAME_SIZE])),
        ("4.2 HEADERS above it", vec![frame(HEADERS, WHOLE, 1, &vec![0; 16_385])], Connection(&[FRAME_SIZE])),
        ("4.3 a block that is none", vec![frame(HEADERS, WHOLE, 1, b"\x40")], Connection(&[COMPRESSION])),
        ("4.3 PRIORITY within a block", vec![begun(), priority(1, 0)], Connection(&[PROTOCOL])),
        ("4.3 HEADERS within a block", vec![begun(), get(3, "/")], Connection(&[PROTOCOL])),
        ("5.5 an unknown frame within a block", vec![begun(), frame(0x16, 0, 0, b"1")], Connection(&[PROTOCOL])),
        ("5.5 an unknown frame elsewhere", vec![frame(0xff, 0xff, 9, b"1")], Alive),
        ("6.1 DATA on stream 0", vec![data(0, 0, 1)], Connection(&[PROTOCOL])),
        ("6.1 DATA on a closed stream", vec![get(1, "/"), data(0, 1, 1)], Stream(&[STREAM_CLOSED])),
        (
            "6.1 padding longer than DATA",
            vec![headers(OPEN, 1, &[]), frame(DATA, PADDED, 1, b"\x06test")],
            Connection(&[PROTOCOL]),
        ),
        ("6.1 padding", vec![headers(OPEN, 1, &[]), frame(DATA, PADDED | END_STREAM, 1, b"\x02test\0\0")], Served),
        ("6.2 HEADERS on stream 0", vec![get(0, "/")], Connection(&[PROTOCOL])),
        ("6.2 padding", vec![frame(HEADERS, WHOLE | PADDED, 1, &[b"\x02", &fields[..], b"\0\0"].concat())], Served),
        (
            "6.2 padding longer than HEADERS",
            vec![frame(HEADERS, WHOLE | PADDED, 1, &[b"\xff", &fields[..]].concat())],
            Connection(&[PROTOCOL]),
        ),
        (
            "6.2 a priority with HEADERS",
            vec![frame(HEADERS, WHOLE | WITH_PRIORITY, 1, &[b"\0\0\0\0\x0f", &fields[..]].concat())],
            Served,
        ),
        ("6.3 PRIORITY on stream 0", vec![priority(0, 1)], Connection(&[PROTOCOL])),
        ("6.3 PRIORITY of another length", vec![frame(PRIORITY, 0, 1, b"\0\0\0\0")], Stream(&[FRAME_SIZE])),
        ("6.3 PRIORITY on an idle stream", vec![priority(1, 0), get(1, "/")], Served),
        ("5.3.1 a stream that depends on itself", vec![priority(1, 1)], Stream(&[PROTOCOL])),
        ("6.4 RST_STREAM on stream 0", vec![rst(0)], Connection(&[PROTOCOL])),
        ("6.4 RST_STREAM on an idle stream", vec![rst(1)], Connection(&[PROTOCOL])),
        (
            "6.4 RST_STREAM of another length",
            vec![headers(OPEN, 1, &[]), frame(RST_STREAM, 0, 1, b"\0\0\0")],
            Connection(&[FRAME_SIZE]),
        ),
        ("6.7 PING", vec![frame(PING, 0, 0, b"aaaaaaaa")], Alive),
        ("6.7 an answer to no PING", vec![frame(PING, ACK, 0, b"bbbbbbbb")], Alive),
        ("6.7 PING on a stream", vec![frame(PING, 0, 1, b"12345678")], Connection(&[PROTOCOL])),
        ("6.7 PING of another length", vec![frame(PING, 0, 0, b"123456")], Connection(&[FRAME_SIZE])),
        ("6.8 GOAWAY on a stream", vec![frame(GOAWAY, 0, 1, b"\0\0\0\0\0\0\0\0")], Connection(&[PROTOCOL])),
        (
            "6.10 a block in pieces",
            vec![
                frame(HEADERS, END_STREAM, 1, &fields[..4]),
                frame(CONTINUATION, 0, 1, &fields[4..9]),
                frame(CONTINUATION, END_HEADERS, 1, &fields[9..]),
            ],
            Served,
        ),
        ("6.10 DATA within a block", vec![begun(), data(0, 1, 1)], Connection(&[PROTOCOL])),
        (
            "6.10 CONTINUATION on stream 0",
            vec![begun(), frame(CONTINUATION, END_HEADERS, 0, &[])],
            Connection(&[PROTOCOL]),
        ),
        (
            "6.10 CONTINUATION on another stream",
            vec![begun(), frame(CONTINUATION, END_HEADERS, 3, &[])],
            Connection(&[PROTOCOL]),
        ),
        (
            "6.10 CONTINUATION behind a whole block",
            vec![headers(OPEN, 1, &[]), frame(CONTINUATION, END_HEADERS, 1, &[])],
            Connection(&[PROTOCOL]),
        ),
        (
            "6.10 CONTINUATION behind DATA",
            vec![headers(OPEN, 1, &[]), data(0, 1, 1), frame(CONTINUATION, END_HEADERS, 1, &[])],
            Connection(&[PROTOCOL]),
        ),
        (
            "8.4 PUSH_PROMISE",
            vec![frame(PUSH_PROMISE, END_HEADERS, 1, &[&[0, 0, 0, 2], &fields[..]].concat())],
            Connection(&[PROTOCOL]),
        ),
    ]
}

fn states() -> Vec<Case> {
    let closed = || vec![headers(OPEN, 1, &[]), rst(1)];
    let and = |mut frames: Vec<Vec<u8>>, last: Vec<u8>| {
        frames.push(last);
        frames
    };
    let many = (0..=128).map(|i| headers(OPEN, 2 * i + 1, &[])).collect();
    vec![
        ("5.1 idle: DATA", vec![data(0, 1, 1)], Connection(&[PROTOCOL])),
        ("5.1 idle: WINDOW_UPDATE", vec![window(1, 100)], Connection(&[PROTOCOL])),
        ("5.1 idle: CONTINUATION", vec![frame(CONTINUATION, END_HEADERS, 1, &[])], Connection(&[PROTOCOL])),
        ("5.1 half closed: DATA", vec![get(1, "/"), data(END_STREAM, 1, 1)], Stream(&[STREAM_CLOSED])),
        ("5.1 half closed: HEADERS", vec![get(1, "/"), get(1, "/")], Stream(&[STREAM_CLOSED, PROTOCOL])),
        (
            "5.1 half closed: CONTINUATION",
            vec![get(1, "/"), frame(CONTINUATION, END_HEADERS, 1, &[])],
            Connection(&[STREAM_CLOSED, PROTOCOL]),
        ),
        ("5.1 half closed: WINDOW_UPDATE", vec![get(1, "/"), window(1, 100)], Served),
        ("5.1 closed: DATA", and(closed(), data(0, 1, 1)), Stream(&[STREAM_CLOSED])),
        ("5.1 closed: HEADERS", and(closed(), get(1, "/")), Stream(&[STREAM_CLOSED, PROTOCOL])),
        (
            "5.1 closed: CONTINUATION",
            and(closed(), frame(CONTINUATION, END_HEADERS, 1, &[])),
            Connection(&[STREAM_CLOSED, PROTOCOL]),
        ),
        ("5.1 closed: WINDOW_UPDATE", and(closed(), window(1, 100)), Alive),
        ("5.1 closed: RST_STREAM", and(closed(), rst(1)), Alive),
        ("5.1.1 an even stream", vec![get(2, "/")], Connection(&[PROTOCOL])),
        ("5.1.1 a smaller stream", vec![get(5, "/"), get(3, "/")], Connection(&[PROTOCOL, STREAM_CLOSED])),
        ("5.1.2 too many streams", many, Stream(&[PROTOCOL, REFUSED])),
        ("6.9 an increment of 0", vec![window(0, 0)], Connection(&[PROTOCOL])),
        ("6.9 an increment of 0 on a stream", vec![headers(OPEN, 1, &[]), window(1, 0)], Stream(&[PROTOCOL])),
        (
            "6.9 WINDOW_UPDATE of another length",
            vec![frame(WINDOW_UPDATE, 0, 0, b"\0\0\x01")],
            Connection(&[FRAME_SIZE]),
        ),
        (
            "6.9.1 a window above the largest",
            vec![window(0, i32::MAX as u32), window(0, i32::MAX as u32)],
            Connection(&[FLOW_CONTROL]),
        ),
        (
            "6.9.1 a stream's window above the largest",
            vec![headers(OPEN, 1, &[]), window(1, i32::MAX as u32), window(1, i32::MAX as u32)],
            Stream(&[FLOW_CONTROL]),
        ),
    ]
}

fn settings() -> Vec<Case> {
    vec![
        (
            "6.5 SETTINGS with an acknowledgement and more",
            vec![frame(SETTINGS, ACK, 0, &[0; 6])],
            Connection(&[FRAME_SIZE]),
        ),
        ("6.5 SETTINGS on a stream", vec![frame(SETTINGS, 0, 1, &[])], Connection(&[PROTOCOL])),
        ("6.5 SETTINGS of another length", vec![frame(SETTINGS, 0, 0, &[0; 3])], Connection(&[FRAME_SIZE])),
        ("6.5.2 ENABLE_PUSH of 2", setting(2, 2), Connection(&[PROTOCOL])),
        ("6.5.2 INITIAL_WINDOW_SIZE above the largest", setting(4, 1 << 31), Connection(&[FLOW_CONTROL])),
        ("6.5.2 MAX_FRAME_SIZE below the least", setting(5, 16_383), Connection(&[PROTOCOL])),
        ("6.5.2 MAX_FRAME_SIZE above the largest", setting(5, 1 << 24), Connection(&[PROTOCOL])),
        ("6.5.2 an unknown setting", setting(0xff, 1), Alive),
        ("6.5.3 SETTINGS of many", vec![setting(4, 100).concat(), setting(4, 1).concat(), get(1, "/")], Served),
    ]
}

fn messages() -> Vec<Case> {
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "test")];
    let without = |name: &str| only(&fields.into_iter().filter(|(one, _)| *one != name).collect::<Vec<_>>());
    let wrong = Stream(&[PROTOCOL]);
    let trailers =
        |fields: &[(&str, &str)], flags| vec![headers(OPEN, 1, &[]), frame(HEADERS, flags, 1, &block(fields))];
    vec![
        ("8.1 HEADERS behind HEADERS that do not end", trailers(&[("x", "y")], OPEN), wrong),
        ("8.1 trailers", trailers(&[("x", "y")], WHOLE), Served),
        ("8.1.2 upper case", with(&[("X-Upper", "a")]), wrong),
        ("8.1.2.1 an unknown pseudo field", only(&[&fields[..], &[(":test", "a")]].concat()), wrong),
        ("8.1.2.1 one of responses", only(&[&fields[..], &[(":status", "200")]].concat()), wrong),
        // They are to be refused, RFC 9113 says; the library that speaks it for us drops them, and the request goes on.
        ("8.1.2.1 in trailers", trailers(&[(":method", "GET")], WHOLE), Served),
        ("8.1.2.1 behind other fields", only(&[&[("x", "y")], &fields[..]].concat()), wrong),
        ("8.1.2.2 connection", with(&[("connection", "keep-alive")]), wrong),
        ("8.1.2.2 transfer-encoding", with(&[("transfer-encoding", "chunked")]), wrong),
        ("8.1.2.2 te", with(&[("te", "trailers, deflate")]), wrong),
        ("8.1.2.2 te of trailers", with(&[("te", "trailers")]), Served),
        ("8.1.2.3 an empty path", only(&[fields[0], fields[1], (":path", ""), fields[3]]), wrong),
        ("8.1.2.3 no method", without(":method"), wrong),
        ("8.1.2.3 no scheme", without(":scheme"), wrong),
        ("8.1.2.3 no path", without(":path"), wrong),
        ("8.1.2.3 two methods", only(&[&[fields[0]], &fields[..]].concat()), wrong),
        ("8.1.2.3 two schemes", only(&[&[fields[1]], &fields[..]].concat()), wrong),
        ("8.1.2.3 two paths", only(&[&[fields[2]], &fields[..]].concat()), wrong),
        ("8.1.2.6 another length", vec![headers(OPEN, 1, &[("content-length", "1")]), data(END_STREAM, 1, 4)], wrong),
        (
            "8.1.2.6 another length in pieces",
            vec![headers(OPEN, 1, &[("content-length", "9")]), data(0, 1, 4), data(END_STREAM, 1, 4)],
            wrong,
        ),
        ("8.1.2.6 the same length", vec![headers(OPEN, 1, &[("content-length", "4")]), data(END_STREAM, 1, 4)], Served),
        ("8.2.1 a field with a line feed", with(&[("x", "a\nb")]), wrong),
    ]
}

fn compression() -> Vec<Case> {
    let wrong = Connection(&[COMPRESSION]);
    vec![
        ("hpack 2.3.3 a place beyond the table", ending(&[0xc6]), wrong),
        ("hpack 2.3.3 a name beyond the table", ending(&[0x40 | 0x3f, 0x30, 0x01, b'a']), wrong),
        ("hpack 4.2 a new size at the end", ending(&[0x20]), wrong),
        ("hpack 5.2 padding of more than 7 bits", ending(&[0, 1, b'x', 0x84, 0x49, 0x50, 0x9f, 0xff]), wrong),
        ("hpack 5.2 padding of zeros", ending(&[0, 1, b'x', 0x83, 0x49, 0x50, 0x90]), wrong),
        ("hpack 5.2 the end of a string in it", ending(&[0, 1, b'x', 0x84, 0xff, 0xff, 0xff, 0xff]), wrong),
        ("hpack 6.1 place 0", ending(&[0x80]), wrong),
        (
            "hpack 6.3 a size above the setting",
            vec![frame(HEADERS, WHOLE, 1, &[&[0x3f, 0xe2, 0x1f], &request("GET", "/", &[])[..]].concat())],
            wrong,
        ),
    ]
}

async fn stage() -> Stage {
    let (upstream, _) = upstream(|request: http::Request<Incoming>| async move {
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        Response::new(Full::from(body))
    })
    .await;
    Scene::default().before(upstream)
}

/// What the server did first of what is expected or of what is an error, in words.
async fn outcome(stage: &Stage, frames: &[Vec<u8>], expect: Expect) -> Result<(), String> {
    let mut client = Client::http2(stage.address, &[]).await;
    let ping = if matches!(expect, Alive) { frame(PING, 0, 0, b"are you?") } else { Vec::new() };
    client.send([frames.concat(), ping].concat()).await;
    while let Some(frame) = client.frame().await {
        let is_expected = match (frame.kind, expect) {
            (PING, Alive) => frame.flags == ACK && frame.payload == b"are you?",
            (HEADERS, Served) => frame.is_status(200),
            (GOAWAY, Connection(codes) | Stream(codes)) => frame.code() == PROTOCOL || codes.contains(&frame.code()),
            (RST_STREAM, Stream(codes)) => codes.contains(&frame.code()),
            _ => false,
        };
        if is_expected {
            return Ok(());
        }
        if matches!(frame.kind, GOAWAY | RST_STREAM) {
            return Err(format!("{} with {}", if frame.kind == GOAWAY { "goaway" } else { "reset" }, frame.code()));
        }
    }
    Err("it was closed".to_owned())
}

async fn check(cases: Vec<Case>) {
    let stage = stage().await;
    let mut wrong = Vec::new();
    for (name, frames, expect) in &cases {
        let outcome = timeout(PATIENCE / 4, outcome(&stage, frames, *expect)).await;
        if let Err(what) = outcome.unwrap_or_else(|_| Err("nothing came of it".to_owned())) {
            wrong.push(format!("{name}: {what}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Whatever came, the next client is served.
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 200);
}

#[tokio::test]
async fn frames() {
    check(framing()).await;
}

#[tokio::test]
async fn states_of_streams_and_flow_control() {
    check(states()).await;
}

#[tokio::test]
async fn settings_of_the_connection() {
    check(settings()).await;
}

#[tokio::test]
async fn requests() {
    check(messages()).await;
}

#[tokio::test]
async fn compressed_fields() {
    check(compression()).await;
}
