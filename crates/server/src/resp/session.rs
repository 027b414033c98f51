//! One client's connection: commands are read as they come, decided in their order, and answered in it.
//!
//! While replies wait to be taken nothing more is read, so a client that pipelines and does not read holds up itself
//! and nobody else.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, ready};

use bytes::{Buf as _, BytesMut};
use tidegate_core::Store;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Sleep, sleep, timeout};

use super::Face;
use super::command::{BYTES_MAX, Reader, STRANGER_BYTES_MAX};
use super::work::{Step, Work};
use crate::client::connection::End;
use crate::client::socket::Socket;
use crate::{Bounds, Drain};

/// Bytes of replies that may wait before they are written, and nothing more is decided.
const REPLIES_MAX: usize = 64 * 1024;
/// What is read at once. Bytes.
const PIECE_BYTES: usize = 16 * 1024;
/// What a client that rests keeps of each buffer, so that small commands find it there. Bytes.
const KEPT_BYTES: usize = 512;

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
    socket: Socket,
    reader: Reader,
    input: BytesMut,
    work: Work<S>,
}

impl<S: Store> Session<S> {
    pub(super) fn new(face: Arc<Face<S>>, socket: Socket, id: u64) -> Self {
        Self { socket, reader: Reader::default(), input: BytesMut::new(), work: Work::new(face, id) }
    }

    /// Serves until one of both sides ends it.
    pub(super) async fn serve(mut self, drain: &Drain) -> End {
        let face = Arc::clone(&self.work.face);
        let bounds = &face.setup.bounds;
        let (mut drained, mut timer) = (pin!(drain.started()), pin!(sleep(bounds.idle_timeout)));
        let mut patience = Patience { is_amid: false, has_asked: false };
        loop {
            let (next, commands) = self.decide().await;
            match self.write(bounds).await {
                Ok(true) => {}
                Ok(false) => return End::TooSlow,
                Err(_) => return End::Broken,
            }
            match next {
                Next::Close => return End::Closed,
                Next::Decide => continue,
                Next::Read => {}
            }
            patience.after(commands, self.is_between(), timer.as_mut(), bounds);
            loop {
                tokio::select! {
                    biased;
                    read = self.read() => match read {
                        Ok(true) => break,
                        Ok(false) => return End::Closed,
                        Err(_) => return End::Broken,
                    },
                    () = &mut timer => match patience.ends(timer.as_mut(), bounds) {
                        Some(end) => return end,
                        None => continue,
                    },
                    () = &mut drained => return End::Closed,
                }
            }
        }
    }

    /// Decides on what has come, until it is all or replies are enough; and how many commands that were.
    async fn decide(&mut self) -> (Next, u64) {
        let Self { reader, input, work, .. } = self;
        let (mut next, mut commands, mut taken) = (Next::Decide, 0, 0);
        while next == Next::Decide && work.replies.bytes.len() < REPLIES_MAX {
            let bytes_max = if work.client.is_let_in { BYTES_MAX } else { STRANGER_BYTES_MAX };
            match reader.next(&input[taken..], bytes_max) {
                Ok(Some((words, used))) => {
                    commands += 1;
                    taken += used;
                    loop {
                        match work.command(words) {
                            Step::Settle => work.settle().await,
                            Step::GoOn => break,
                            Step::Close => {
                                next = Next::Close;
                                break;
                            }
                        }
                    }
                }
                Ok(None) => next = Next::Read,
                Err(unreadable) => {
                    work.settle().await;
                    work.replies.error(&format!("ERR {unreadable}"));
                    next = Next::Close;
                }
            }
        }
        work.settle().await;
        input.advance(taken);
        (next, commands)
    }

    /// Is no command under way?
    fn is_between(&self) -> bool {
        self.input.is_empty() && self.reader.is_between()
    }

    /// Writes the replies; false if the client does not take them in time.
    async fn write(&mut self, bounds: &Bounds) -> io::Result<bool> {
        let replies = &mut self.work.replies.bytes;
        if replies.is_empty() {
            return Ok(true);
        }
        // Most replies are taken at once, and cost no timer.
        let socket = &mut self.socket;
        let written = poll_fn(|cx| match Pin::new(&mut *socket).poll_write(cx, replies) {
            Poll::Ready(written) => Poll::Ready(written),
            Poll::Pending => Poll::Ready(Ok(0)),
        });
        let written = written.await?;
        // TLS may keep a part of it.
        if written < replies.len() || socket.is_tls() {
            let rest = async {
                socket.write_all(&replies[written..]).await?;
                socket.flush().await
            };
            match timeout(bounds.stall_timeout, rest).await {
                Ok(written) => written?,
                Err(_) => return Ok(false),
            }
        }
        rest(replies);
        Ok(true)
    }

    /// Waits until more has come; false if that was all.
    async fn read(&mut self) -> io::Result<bool> {
        let (socket, input) = (&mut self.socket, &mut self.input);
        if input.is_empty() {
            rest(input);
        }
        // Read into the stack first, so that nothing is set aside for a client that says nothing.
        poll_fn(|cx| {
            let mut piece = [const { MaybeUninit::uninit() }; PIECE_BYTES];
            let mut buffer = ReadBuf::uninit(&mut piece);
            ready!(Pin::new(&mut *socket).poll_read(cx, &mut buffer))?;
            input.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(!buffer.filled().is_empty()))
        })
        .await
    }
}

/// Empties a buffer, of which little is kept.
fn rest(buffer: &mut BytesMut) {
    buffer.clear();
    if buffer.capacity() > KEPT_BYTES {
        *buffer = BytesMut::new();
    }
}

/// How long a client is waited for, with one timer that most commands do not touch.
///
/// A command that has begun must end in time, however many pieces it comes in. A client that rests is closed between once
/// and twice its time after its last command.
struct Patience {
    /// Has a command begun?
    is_amid: bool,
    /// Has the client asked for something since the timer was set?
    has_asked: bool,
}

impl Patience {
    /// After so many commands, with the beginning of another or not.
    fn after(&mut self, commands: u64, is_between: bool, mut timer: Pin<&mut Sleep>, bounds: &Bounds) {
        let was_amid = std::mem::replace(&mut self.is_amid, !is_between);
        self.has_asked |= commands > 0;
        match (was_amid, self.is_amid) {
            (true, true) if commands == 0 => {}
            (_, true) => timer.set(sleep(bounds.header_timeout)),
            (true, false) => timer.set(sleep(bounds.idle_timeout)),
            (false, false) => {}
        }
    }

    /// What follows when the timer has run out.
    fn ends(&mut self, mut timer: Pin<&mut Sleep>, bounds: &Bounds) -> Option<End> {
        match (self.is_amid, std::mem::take(&mut self.has_asked)) {
            (true, _) => Some(End::TooSlow),
            (false, false) => Some(End::Closed),
            (false, true) => {
                timer.set(sleep(bounds.idle_timeout));
                None
            }
        }
    }
}
