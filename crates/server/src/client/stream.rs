//! A client's socket, as hyper reads and writes it.
//!
//! It notes when a request begins, gives up on a client that takes nothing of what is sent to it, and closes in a way
//! that lets the client read the answer to a request whose body was not read: it stops sending, and reads on for a
//! moment, since closing at once would make the kernel discard what is still on its way.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::client::progress::{Phase, Progress};
use crate::client::socket::Socket;
use crate::client::tether::Tethered;

/// The time for which a closing connection reads on.
const LINGER: Duration = Duration::from_secs(1);

/// Bytes that a closing connection reads and throws away.
const LINGER_BYTES_MAX: usize = 256 * 1024;

/// An answer of at most so many bytes is written in one piece: copying it costs less than to tell the kernel of pieces.
const COALESCED_BYTES_MAX: usize = 1024;

/// A client's socket.
pub(crate) struct Stream {
    socket: TokioIo<Socket>,
    /// What was read already, and comes first.
    unread: Bytes,
    tethered: Tethered,
    progress: Arc<Progress>,
    stall_timeout: Duration,
    /// Runs while the client takes nothing.
    stall: Option<Pin<Box<Sleep>>>,
    /// Is there while the connection closes.
    linger: Option<Linger>,
}

struct Linger {
    until: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl Stream {
    pub(crate) fn new(socket: Socket, tethered: Tethered, progress: Arc<Progress>, stall_timeout: Duration) -> Self {
        let (socket, unread) = (TokioIo::new(socket), Bytes::new());
        Self { socket, unread, tethered, progress, stall_timeout, stall: None, linger: None }
    }

    /// Takes back what was read and not used.
    pub(crate) fn unread(&mut self, bytes: Bytes) {
        // Also bytes of which none are left hold the buffer that they were read into.
        self.unread = if bytes.is_empty() { Bytes::new() } else { bytes };
    }

    /// Ready when there is something to read, or an end. Nothing is set aside for it.
    pub(crate) fn poll_comes(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.unread.is_empty() { self.socket.inner().poll_comes(cx) } else { Poll::Ready(()) }
    }

    /// After an upgrade nobody but the tether says that the connection has to end.
    fn unless_cut(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.progress.phase() == Phase::Upgraded && self.tethered.poll_cut(cx).is_ready() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    /// Turns the outcome of a write into an error when nothing could be written for too long.
    fn unless_stalled<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.stall.is_some() {
                self.stall = None;
                self.progress.stalls(false);
            }
            return written;
        }
        self.unless_cut(cx)?;
        if self.stall.is_none() {
            self.progress.stalls(true);
        }
        let timeout = self.stall_timeout;
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(stall.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let start = || Linger { until: Box::pin(sleep(LINGER)), bytes_left: LINGER_BYTES_MAX };
        let linger = self.linger.get_or_insert_with(start);
        let mut waste = [0; 4096];
        while linger.bytes_left > 0 && linger.until.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut waste);
            let read = ready!(Pin::new(self.socket.inner_mut()).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
            linger.bytes_left = linger.bytes_left.saturating_sub(buffer.filled().len());
        }
        Poll::Ready(())
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let mut left = std::mem::take(&mut self.unread);
            let bytes = left.len().min(buffer.remaining());
            buffer.put_slice(&left.split_to(bytes));
            self.unread(left);
            self.progress.bytes_came();
            return Poll::Ready(Ok(()));
        }
        let Poll::Ready(read) = Pin::new(&mut self.socket).poll_read(cx, buffer) else {
            self.unless_cut(cx)?;
            return Poll::Pending;
        };
        self.progress.bytes_came();
        Poll::Ready(read)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.unless_stalled(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        self.unless_stalled(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.progress.is_resting() {
            return Poll::Ready(Ok(()));
        }
        if self.linger.is_none() {
            let shut = ready!(Pin::new(&mut self.socket).poll_shutdown(cx));
            if shut.is_err() || !self.progress.left_something_unread() {
                return Poll::Ready(shut);
            }
        }
        ready!(self.poll_linger(cx));
        Poll::Ready(Ok(()))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut small = [0; COALESCED_BYTES_MAX];
        let socket = Pin::new(&mut self.socket);
        let written = match coalesced(slices, &mut small) {
            Some(bytes) => socket.poll_write(cx, bytes),
            None => socket.poll_write_vectored(cx, slices),
        };
        self.unless_stalled(cx, written)
    }
}

/// What is to be written, in one piece, if it is small.
fn coalesced<'a>(slices: &[io::IoSlice<'_>], small: &'a mut [u8; COALESCED_BYTES_MAX]) -> Option<&'a [u8]> {
    let mut length = 0;
    for slice in slices {
        let end = length + slice.len();
        small.get_mut(length..end)?.copy_from_slice(slice);
        length = end;
    }
    Some(&small[..length])
}
