//! The face that speaks the Redis protocol, over a table in this process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Memory, SystemClock, TableOptions};
use tidegate_server::{Bounds, Drain, LimitMetrics, Password, Resp, RespMetrics, RespSetup, resp_bounds};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Nothing that a test waits for takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A face that serves until the test ends.
fn serving(setup: RespSetup) -> (SocketAddr, Drain, RespMetrics) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let store = Arc::new(Memory::new(TableOptions::with_keys(1_000), SystemClock::new()));
    let (metrics, drain) = (RespMetrics::default(), Drain::new());
    let face = Resp::new(store, setup, metrics.clone(), LimitMetrics::default());
    let shutdown = drain.started();
    tokio::spawn(async move { face.serve(vec![listener.into()], shutdown).await.unwrap() });
    (address, drain, metrics)
}

fn setup(header_timeout: Duration) -> RespSetup {
    RespSetup { bounds: Bounds { header_timeout, ..resp_bounds() }, ..RespSetup::default() }
}

async fn said(socket: &mut TcpStream, length: usize) -> String {
    let mut bytes = vec![0; length];
    timeout(PATIENCE, socket.read_exact(&mut bytes)).await.unwrap().unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Is it closed, with nothing more said?
async fn is_closed(socket: &mut TcpStream) -> bool {
    matches!(timeout(PATIENCE, socket.read(&mut [0; 1])).await.unwrap(), Ok(0) | Err(_))
}

#[tokio::test]
async fn a_command_that_drips_is_cut_and_one_who_rests_is_not() {
    let (address, ..) = serving(setup(Duration::from_millis(100)));
    let mut resting = TcpStream::connect(address).await.unwrap();
    resting.write_all(b"PING\r\n").await.unwrap();
    assert_eq!(said(&mut resting, 7).await, "+PONG\r\n");
    let mut dripping = TcpStream::connect(address).await.unwrap();
    let drips = async {
        // A byte each so often that no single wait is long.
        while dripping.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, drips).await.expect("it is cut");
    resting.write_all(b"PING\r\n").await.unwrap();
    assert_eq!(said(&mut resting, 7).await, "+PONG\r\n");
}

#[tokio::test]
async fn a_pipeline_that_goes_on_is_not_cut_though_it_always_ends_within_a_command() {
    let (address, ..) = serving(setup(Duration::from_millis(200)));
    let mut socket = TcpStream::connect(address).await.unwrap();
    // Each piece ends one command and begins the next.
    socket.write_all(b"PI").await.unwrap();
    for _ in 0..50 {
        sleep(Duration::from_millis(10)).await;
        socket.write_all(b"NG\r\nPI").await.unwrap();
        assert_eq!(said(&mut socket, 7).await, "+PONG\r\n");
    }
}

#[tokio::test]
async fn a_stranger_has_little_room_until_the_password_is_said() {
    let password = Password::new("s3cret");
    let (address, ..) = serving(RespSetup { password, ..setup(PATIENCE) });
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"*2\r\n$4\r\nPING\r\n$20000\r\n").await.unwrap();
    assert_eq!(said(&mut socket, 5).await, "-ERR ");
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"AUTH s3cret\r\n*2\r\n$4\r\nECHO\r\n$20000\r\n").await.unwrap();
    socket.write_all(&[b'x'; 20_000]).await.unwrap();
    socket.write_all(b"\r\n").await.unwrap();
    assert_eq!(said(&mut socket, 13).await, "+OK\r\n$20000\r\n");
}

#[tokio::test]
async fn calls_that_make_no_limit_are_counted() {
    let (address, _, metrics) = serving(setup(PATIENCE));
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"CL.THROTTLE k 1 0 60\r\nPING\r\nQUIT\r\n").await.unwrap();
    let mut all = String::new();
    timeout(PATIENCE, socket.read_to_string(&mut all)).await.unwrap().unwrap();
    assert_eq!(all, "-Cell error: Store error: Zero rates are not supported\r\n+PONG\r\n+OK\r\n");
    assert_eq!((metrics.refused.get(), metrics.others.get()), (1, 2));
}

#[tokio::test]
async fn br_038_rates_that_cannot_be_exact_are_refused_with_the_maximum() {
    let (address, ..) = serving(setup(PATIENCE));
    let mut socket = TcpStream::connect(address).await.unwrap();
    for (count, expected) in [("8000", "*5\r\n:0\r\n"), ("1000000000", "*5\r\n:0\r\n"), ("5000000000", "-ERR ")] {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(format!("CL.THROTTLE k{count} 1 {count} 1\r\n").as_bytes()).await.unwrap();
        assert_eq!(said(&mut socket, expected.len()).await, expected, "{count} a second");
    }
    socket.write_all(b"CL.THROTTLE k 1 5000000000 1\r\nQUIT\r\n").await.unwrap();
    let mut all = String::new();
    timeout(PATIENCE, socket.read_to_string(&mut all)).await.unwrap().unwrap();
    assert!(all.contains("1,000,000,000") || all.contains("1000000000"), "{all}");
}

#[tokio::test]
async fn a_drain_closes_who_rests() {
    let (address, drain, _) = serving(setup(PATIENCE));
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"PING\r\n").await.unwrap();
    assert_eq!(said(&mut socket, 7).await, "+PONG\r\n");
    drain.start();
    assert!(is_closed(&mut socket).await);
}
