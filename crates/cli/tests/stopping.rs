//! Being told to stop, while requests are in flight.

mod support;

use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::PATIENCE;
use support::http::{Connection, request};
use support::program::Proxy;
use support::upstream::{Upstream, head};

/// A proxy with one request in flight: the upstream has it, and answers when it is told to.
struct InFlight {
    proxy: Proxy,
    connection: Connection,
    answer: Sender<()>,
}

impl InFlight {
    fn start(flags: &[&str]) -> Self {
        let (came, has_come) = channel();
        let (answer, told) = channel();
        let told = Arc::new(Mutex::new(told));
        let upstream = Upstream::start(move |socket| answer_when_told(socket, &came, &told));
        let url = upstream.url();
        let proxy = Proxy::start(&[&["--limit", "100/s", "--upstream", &url], flags].concat());
        let mut connection = Connection::open(proxy.address);
        connection.send(&request("GET", "/slow", &[])).unwrap();
        has_come.recv_timeout(PATIENCE).unwrap();
        Self { proxy, connection, answer }
    }
}

fn answer_when_told(socket: TcpStream, came: &Sender<()>, told: &Mutex<Receiver<()>>) {
    let mut connection = Connection::over(socket);
    while head(&mut connection).is_some() {
        came.send(()).unwrap();
        if told.lock().unwrap().recv_timeout(PATIENCE).is_err() {
            return;
        }
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").unwrap();
    }
}

#[test]
fn a_request_in_flight_is_finished() {
    for signal in ["TERM", "INT"] {
        let mut stage = InFlight::start(&[]);
        stage.proxy.signal(signal);
        stage.proxy.wait_for("stopping: no new connections");
        assert_eq!(stage.proxy.admin("/readyz").status, 503);
        assert_eq!(stage.proxy.admin("/livez").status, 200);
        stage.answer.send(()).unwrap();
        let reply = stage.connection.reply("GET").unwrap();
        assert_eq!((reply.status, reply.text()), (200, "done"));
        assert_eq!(stage.proxy.ended().code(), Some(0));
        stage.proxy.wait_for("stopped; every request in flight was given its time");
    }
}

#[test]
fn without_requests_it_ends_at_once() {
    let mut proxy = Proxy::start(&["--limit", "3/min"]);
    let mut idle = Connection::open(proxy.address);
    assert_eq!(idle.ask("GET", "/", &[]).status, 200);
    proxy.signal("TERM");
    assert_eq!(proxy.ended().code(), Some(0));
    assert!(TcpStream::connect(proxy.address).is_err(), "nobody listens any more");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut stage = InFlight::start(&[]);
    stage.proxy.signal("TERM");
    stage.proxy.wait_for("stopping: no new connections");
    // One that follows too closely counts as the same, so it is said again until it is heard.
    while stage.proxy.is_running() {
        std::thread::sleep(Duration::from_millis(100));
        stage.proxy.signal("INT");
    }
    assert_eq!(stage.proxy.ended().code(), Some(130));
    stage.proxy.wait_for("stopped at once; requests in flight were cut");
    assert!(stage.connection.reply("GET").is_err());
}

#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    let mut stage = InFlight::start(&[]);
    // As `timeout` and other wrappers send it: to the program, and to its group.
    stage.proxy.signal("TERM");
    stage.proxy.signal("TERM");
    stage.proxy.wait_for("stopping: no new connections");
    stage.answer.send(()).unwrap();
    assert_eq!(stage.connection.reply("GET").unwrap().status, 200);
    assert_eq!(stage.proxy.ended().code(), Some(0));
}

#[test]
fn a_request_that_takes_longer_than_the_grace_is_cut() {
    let mut stage = InFlight::start(&["--grace", "1"]);
    stage.proxy.signal("TERM");
    assert_eq!(stage.proxy.ended().code(), Some(0));
    assert!(stage.connection.reply("GET").is_err());
}
