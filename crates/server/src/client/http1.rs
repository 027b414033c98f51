//! HTTP/1.1 towards clients: one request after the other on a connection.
//!
//! hyper speaks it, and for that holds 16 KiB until a connection ends, whether anything goes on or not. So a connection
//! on which nothing has happened for a while is at rest: hyper's part of it ends, the socket stays, and the next byte
//! has hyper begin anew.

use std::error::Error;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1::{Builder, Parts, UpgradeableConnection};
use hyper::service::HttpService;

use crate::Bounds;
use crate::client::connection::Converse;
use crate::client::progress::Progress;
use crate::client::stream::Stream;

/// A connection that speaks HTTP/1.1, or rests.
pub(crate) struct Conversation<'a, S: HttpService<Incoming>> {
    state: State<S>,
    bounds: &'a Bounds,
    progress: Arc<Progress>,
}

enum State<S: HttpService<Incoming>> {
    /// Boxed, so that a connection at rest does not hold the room for it.
    Speaking(Box<UpgradeableConnection<Stream, S>>),
    Resting(Stream, S),
    /// Another protocol goes on over the socket, or nothing.
    Over,
}

/// What is polled in its place stands in a box.
impl<S: HttpService<Incoming>> Unpin for Conversation<'_, S> {}

impl<'a, S> Conversation<'a, S>
where
    S: HttpService<Incoming>,
    S::ResBody: 'static,
    <S::ResBody as Body>::Error: Into<Box<dyn Error + Send + Sync>>,
{
    pub(crate) fn new(bounds: &'a Bounds, stream: Stream, service: S, progress: Arc<Progress>) -> Self {
        Self { state: State::speaking(bounds, stream, service), bounds, progress }
    }

    /// Has hyper begin anew if the connection is at rest.
    fn wake(&mut self) {
        self.state = match mem::replace(&mut self.state, State::Over) {
            State::Resting(stream, service) => State::speaking(self.bounds, stream, service),
            state => state,
        };
    }
}

impl<S> State<S>
where
    S: HttpService<Incoming>,
    S::ResBody: 'static,
    <S::ResBody as Body>::Error: Into<Box<dyn Error + Send + Sync>>,
{
    fn speaking(bounds: &Bounds, stream: Stream, service: S) -> Self {
        let mut http = Builder::new();
        http.max_buf_size(bounds.header_bytes())
            .max_header_size(bounds.header_bytes())
            .max_headers(bounds.header_fields_max)
            .header_read_timeout(None);
        Self::Speaking(Box::new(http.serve_connection(stream, service).with_upgrades()))
    }
}

impl<S> Future for Conversation<'_, S>
where
    S: HttpService<Incoming>,
    S::ResBody: 'static,
    <S::ResBody as Body>::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Output = hyper::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        if let State::Resting(stream, _) = &self.state {
            ready!(stream.poll_comes(cx));
            self.wake();
        }
        match &mut self.state {
            State::Speaking(connection) => Pin::new(&mut **connection).poll(cx),
            State::Resting(..) | State::Over => Poll::Ready(Ok(())),
        }
    }
}

impl<S> Converse for Conversation<'_, S>
where
    S: HttpService<Incoming>,
    S::ResBody: 'static,
    <S::ResBody as Body>::Error: Into<Box<dyn Error + Send + Sync>>,
{
    fn rest(mut self: Pin<&mut Self>, cx: &mut Context<'_>) {
        let this = &mut *self;
        let State::Speaking(connection) = &mut this.state else { return };
        if !this.progress.begin_rest() {
            return;
        }
        // The client hears nothing of it, since nothing is under way, and the socket is not closed.
        let mut ending = Pin::new(&mut **connection);
        ending.as_mut().graceful_shutdown();
        let is_done = matches!(ending.poll(cx), Poll::Ready(Ok(())));
        this.progress.end_rest();
        // What is not done yet has the rest of a body to await that nobody wants; it closes then.
        if is_done
            && let State::Speaking(connection) = mem::replace(&mut this.state, State::Over)
            && let Some(Parts { io: mut stream, read_buf, service, .. }) = connection.into_parts()
        {
            // The beginning of a request may have come along with the one before.
            stream.unread(read_buf);
            this.state = State::Resting(stream, service);
        }
    }

    fn farewell(mut self: Pin<&mut Self>) {
        // Who rests is woken for it: it is hyper that closes.
        self.wake();
        if let State::Speaking(connection) = &mut self.state {
            Pin::new(&mut **connection).graceful_shutdown();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, poll_fn, ready};

    use bytes::Bytes;
    use http::{Request, Response};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tower_service::Service;

    use super::*;
    use crate::client::observed::{Observed, Said};
    use crate::client::progress::Phase;
    use crate::client::socket::{Kernel, Plain, Socket};
    use crate::client::tether::Tether;
    use crate::{Peer, ProxyBody};

    /// Answers with the path.
    #[derive(Clone)]
    struct Echo;

    impl Service<Request<Incoming>> for Echo {
        type Response = Response<ProxyBody>;
        type Error = Infallible;
        type Future = Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Incoming>) -> Self::Future {
            ready(Ok(Response::new(Bytes::from(request.uri().path().to_owned()).into())))
        }
    }

    type Spoken<'a> = Conversation<'a, Observed<Echo>>;

    /// A conversation over real sockets, and its client.
    async fn begun(bounds: &Bounds) -> (Spoken<'_>, TcpStream, Tether) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (served, from) = listener.accept().await.unwrap();
        let progress = Arc::new(Progress::new());
        let (tether, tethered) = Tether::new();
        let socket = Socket::Plain(Plain::new(Kernel::Tcp(served)));
        let stream = Stream::new(socket, tethered, Arc::clone(&progress), bounds.stall_timeout);
        let said = Said { peer: Peer::Ip(from.ip()), is_secure: false };
        let service = Observed::new(Echo, said, Arc::clone(&progress));
        (Conversation::new(bounds, stream, service, progress), client, tether)
    }

    /// Sends this and reads as many bytes as the answer to it has, while the server goes on.
    async fn ask(spoken: &mut Spoken<'_>, client: &mut TcpStream, bytes: &str) -> String {
        client.write_all(bytes.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"/asked") {
            tokio::select! {
                read = client.read_buf(&mut answer) => assert_ne!(read.unwrap(), 0, "the server closed it"),
                end = &mut *spoken => panic!("it ended: {end:?}"),
            }
        }
        String::from_utf8(answer).unwrap()
    }

    async fn rest(spoken: &mut Spoken<'_>) {
        poll_fn(|cx| {
            Pin::new(&mut *spoken).rest(cx);
            Poll::Ready(())
        })
        .await;
    }

    const ASK: &str = "GET /asked HTTP/1.1\r\nhost: a\r\n\r\n";

    #[tokio::test]
    async fn a_connection_at_rest_holds_its_socket_alone_and_goes_on_where_it_was() {
        let bounds = Bounds::default();
        let (mut spoken, mut client, _tether) = begun(&bounds).await;
        for _ in 0..3 {
            let answer = ask(&mut spoken, &mut client, ASK).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && !answer.contains("close"), "{answer}");
            rest(&mut spoken).await;
            assert!(matches!(spoken.state, State::Resting(..)));
        }
    }

    #[tokio::test]
    async fn the_beginning_of_a_request_is_not_lost() {
        let bounds = Bounds::default();
        let (mut spoken, mut client, _tether) = begun(&bounds).await;
        let (begins, ends) = ASK.split_at(9);
        ask(&mut spoken, &mut client, &format!("{ASK}{begins}")).await;
        rest(&mut spoken).await;
        let answer = ask(&mut spoken, &mut client, ends).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }

    #[tokio::test]
    async fn nothing_rests_while_a_request_comes() {
        let bounds = Bounds::default();
        let (mut spoken, mut client, _tether) = begun(&bounds).await;
        ask(&mut spoken, &mut client, ASK).await;
        let (begins, ends) = ASK.split_at(9);
        client.write_all(begins.as_bytes()).await.unwrap();
        while spoken.progress.phase() != Phase::Head {
            poll_fn(|cx| Poll::Ready(Pin::new(&mut spoken).poll(cx).is_pending())).await;
            tokio::task::yield_now().await;
        }
        rest(&mut spoken).await;
        assert!(matches!(spoken.state, State::Speaking(..)));
        ask(&mut spoken, &mut client, ends).await;
    }

    #[tokio::test]
    async fn a_connection_at_rest_ends_as_any_other() {
        let bounds = Bounds::default();
        // Its client goes away.
        let (mut spoken, mut client, _tether) = begun(&bounds).await;
        ask(&mut spoken, &mut client, ASK).await;
        rest(&mut spoken).await;
        drop(client);
        assert!((&mut spoken).await.is_ok());
        // The server says farewell.
        let (mut spoken, mut client, _tether) = begun(&bounds).await;
        ask(&mut spoken, &mut client, ASK).await;
        rest(&mut spoken).await;
        Pin::new(&mut spoken).farewell();
        assert!((&mut spoken).await.is_ok());
        drop(spoken);
        assert_eq!(client.read(&mut [0; 16]).await.unwrap(), 0);
    }
}
