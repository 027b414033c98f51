//! One client's connection: commands are read as they come, decided in their order, and answered in it.
//!
//! While replies wait to be taken nothing more is read, so a client that pipelines and does not read holds up itself
//! and nobody else. What a store elsewhere is asked for one pipeline is asked together, and shares its calls.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use tidegate_core::{Charge, Decision, Source, Store};
use tokio::io::{AsyncRead, AsyncWriteExt as _, ReadBuf};
use tokio::time::{sleep, timeout};

use super::Face;
use super::command::{BYTES_MAX, Reader, STRANGER_BYTES_MAX};
use super::handshake::{Client, Then};
use super::reply::Replies;
use super::throttle::{Dialect, Throttle};
use crate::Drain;
use crate::client::connection::End;
use crate::client::socket::Socket;

/// Bytes of replies that may wait before they are written, and nothing more is decided.
const REPLIES_MAX: usize = 64 * 1024;
/// What is read at once. Bytes.
const PIECE_BYTES: usize = 16 * 1024;
/// Decisions that a store elsewhere is asked for together.
const TOGETHER_MAX: usize = 64;

/// What a session does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// There may be more that has come already.
    Decide,
    /// More must come first.
    Read,
    /// Nothing more follows.
    Close,
}

/// A client, served.
pub(super) struct Session<S> {
    face: Arc<Face<S>>,
    socket: Socket,
    client: Client,
    reader: Reader,
    input: BytesMut,
    replies: Replies,
    /// Calls that wait for a store elsewhere, in their order.
    waiting: Vec<Throttle>,
}

impl<S: Store> Session<S> {
    pub(super) fn new(face: Arc<Face<S>>, socket: Socket, id: u64) -> Self {
        let client = Client::new(id, face.setup.password.as_ref());
        let (reader, input, replies, waiting) = (Reader::default(), BytesMut::new(), Replies::new(), Vec::new());
        Self { face, socket, client, reader, input, replies, waiting }
    }

    /// Serves until one of both sides ends it.
    pub(super) async fn serve(mut self, drain: &Drain) -> End {
        let face = Arc::clone(&self.face);
        let bounds = &face.setup.bounds;
        // A command that has begun must end in time, however many pieces it comes in.
        let mut deadline = pin!(sleep(bounds.header_timeout));
        loop {
            let (next, commands) = self.decide().await;
            match timeout(bounds.stall_timeout, self.write()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return End::Broken,
                Err(_) => return End::TooSlow,
            }
            match next {
                Next::Close => return End::Closed,
                Next::Decide => continue,
                Next::Read => {}
            }
            let is_between = self.is_between();
            if commands > 0 {
                deadline.set(sleep(bounds.header_timeout));
            }
            tokio::select! {
                read = timeout(bounds.idle_timeout, self.read()) => match read {
                    Ok(Ok(true)) if is_between => deadline.set(sleep(bounds.header_timeout)),
                    Ok(Ok(true)) => {}
                    Ok(Ok(false)) | Err(_) => return End::Closed,
                    Ok(Err(_)) => return End::Broken,
                },
                () = &mut deadline, if !is_between => return End::TooSlow,
                () = drain.started() => return End::Closed,
            }
        }
    }

    /// Decides on what has come, until it is all or replies are enough; and how many commands that were.
    async fn decide(&mut self) -> (Next, u64) {
        let (mut next, mut commands) = (Next::Decide, 0);
        while next == Next::Decide && self.replies.bytes.len() < REPLIES_MAX {
            let bytes_max = if self.client.is_let_in { BYTES_MAX } else { STRANGER_BYTES_MAX };
            match self.reader.next(&mut self.input, bytes_max) {
                Ok(Some(words)) => {
                    commands += 1;
                    let (name, words) = words.split_first().map_or((&[][..], &[][..]), |(name, rest)| (&**name, rest));
                    if self.command(name, words).await == Then::Close {
                        next = Next::Close;
                    }
                }
                Ok(None) => next = Next::Read,
                Err(unreadable) => {
                    self.settle().await;
                    self.replies.error(&format!("ERR {unreadable}"));
                    next = Next::Close;
                }
            }
        }
        self.settle().await;
        (next, commands)
    }

    async fn command(&mut self, name: &[u8], words: &[Bytes]) -> Then {
        let dialect = match name {
            name if name.eq_ignore_ascii_case(b"CL.THROTTLE") => Dialect::Cell,
            name if name.eq_ignore_ascii_case(b"THROTTLE") => Dialect::Crab,
            _ => {
                self.settle().await;
                self.face.metrics.others.inc();
                return self.client.answer(name, words, self.face.setup.password.as_ref(), &mut self.replies);
            }
        };
        match Throttle::read(dialect, words) {
            _ if !self.client.is_let_in => {
                self.settle().await;
                self.replies.error("NOAUTH Authentication required.");
            }
            Ok(throttle) => self.throttle(throttle).await,
            Err(refused) => {
                self.settle().await;
                self.face.metrics.refused.inc();
                self.replies.error(&refused.to_string());
            }
        }
        Then::GoOn
    }

    async fn throttle(&mut self, throttle: Throttle) {
        let now = match self.waiting.is_empty() {
            true => self.face.store.decide_one_now(&charge(&self.face, &throttle)),
            // It must not overtake those before it.
            false => None,
        };
        match now {
            Some(decided) => reply(&self.face, &throttle, decided, &mut self.replies),
            None => {
                self.waiting.push(throttle);
                if self.waiting.len() == TOGETHER_MAX {
                    self.settle().await;
                }
            }
        }
    }

    /// Answers the calls that wait.
    async fn settle(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let face = &self.face;
        let decided = join_all(waiting.iter().map(|throttle| async move {
            let charge = [charge(face, throttle)];
            let mut decision = [Decision::unmade(&throttle.quota)];
            let verdict = face.store.decide(&charge, &mut decision).await;
            verdict.map(|verdict| (decision[0], verdict.source))
        }));
        for (throttle, decided) in waiting.iter().zip(decided.await) {
            reply(face, throttle, decided, &mut self.replies);
        }
    }

    /// Is no command under way?
    fn is_between(&self) -> bool {
        self.input.is_empty() && self.reader.is_between()
    }

    async fn write(&mut self) -> io::Result<()> {
        if self.replies.bytes.is_empty() {
            return Ok(());
        }
        self.socket.write_all(&self.replies.bytes).await?;
        // TLS may keep a part of it.
        self.socket.flush().await?;
        // A client that rests keeps no memory.
        self.replies.bytes = BytesMut::new();
        Ok(())
    }

    /// Waits until more has come; false if that was all.
    async fn read(&mut self) -> io::Result<bool> {
        if self.input.is_empty() {
            self.input = BytesMut::new();
        }
        let (socket, input) = (&mut self.socket, &mut self.input);
        // Read into the stack first, so that nothing is set aside for a client that says nothing.
        poll_fn(|cx| {
            let mut piece = [0; PIECE_BYTES];
            let mut buffer = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut *socket).poll_read(cx, &mut buffer))?;
            input.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(!buffer.filled().is_empty()))
        })
        .await
    }
}

fn charge<'a, S>(face: &Face<S>, throttle: &'a Throttle) -> Charge<'a> {
    let charge = Charge::new(super::limit(), throttle.quota, &throttle.key).with_cost(throttle.cost);
    charge.with_handling(face.setup.handling)
}

fn reply<S: Store>(
    face: &Face<S>,
    throttle: &Throttle,
    decided: Result<(Decision, Source), S::Error>,
    to: &mut Replies,
) {
    match decided {
        Ok((decision, source)) => {
            face.decisions.count(&decision, source);
            to.integers(&throttle.reply(&decision));
        }
        Err(error) => {
            face.metrics.refused.inc();
            to.error(&format!("ERR {error}"));
        }
    }
}
