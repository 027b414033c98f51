//! The kinds of socket that a client can be at the other end of, as one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// What is read at once while it is not known yet what the client speaks, in bytes.
const PIECE_BYTES: usize = 2048;

/// A socket of the kernel.
pub(crate) enum Kernel {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket in clear text, some of whose bytes may have been read to see what they are.
pub(crate) struct Plain {
    kernel: Kernel,
    /// What was read and is still to be taken, from `taken` on.
    early: Vec<u8>,
    taken: usize,
}

/// A socket as HTTP sees it.
pub(crate) enum Socket {
    Plain(Plain),
    Tls(Box<TlsStream<Plain>>),
}

impl Socket {
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Ready when something has come, or the end, or an error, since a read last found nothing.
    pub(crate) fn poll_comes(&self, cx: &mut Context<'_>) -> Poll<()> {
        let plain = match self {
            Self::Plain(plain) => plain,
            // A read finds nothing only when all was taken of what is deciphered already.
            Self::Tls(stream) => stream.get_ref().0,
        };
        let comes = match &plain.kernel {
            Kernel::Tcp(socket) => socket.poll_read_ready(cx),
            Kernel::Unix(socket) => socket.poll_read_ready(cx),
        };
        comes.map(drop)
    }
}

impl Plain {
    pub(crate) fn new(kernel: Kernel) -> Self {
        Self { kernel, early: Vec::new(), taken: 0 }
    }

    /// What has come and was not taken.
    pub(crate) fn early(&self) -> &[u8] {
        &self.early[self.taken..]
    }

    /// Takes away the first bytes of what has come.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.taken = self.early.len().min(self.taken + bytes);
        if self.taken == self.early.len() {
            (self.early, self.taken) = (Vec::new(), 0);
        }
    }

    /// Waits until more has come; false if that was all.
    pub(crate) async fn more(&mut self) -> io::Result<bool> {
        // Nothing is set aside for a client that says nothing.
        std::future::poll_fn(|cx| {
            let mut piece = [0; PIECE_BYTES];
            let mut buffer = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut self.kernel).poll_read(cx, &mut buffer))?;
            self.early.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(!buffer.filled().is_empty()))
        })
        .await
    }
}

impl AsyncRead for Plain {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.kernel).poll_read(cx, buffer);
        }
        let bytes = self.early().len().min(buffer.remaining());
        buffer.put_slice(&self.early()[..bytes]);
        self.take(bytes);
        Poll::Ready(Ok(()))
    }
}

/// Hands on what is asked of a socket to whichever it is.
macro_rules! each {
    ($self:ident, $kind:ident, [$($variant:ident),+], $socket:ident => $call:expr) => {
        match $self.get_mut() {
            $($kind::$variant($socket) => $call,)+
        }
    };
}

impl AsyncRead for Kernel {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, Kernel, [Tcp, Unix], socket => Pin::new(socket).poll_read(cx, buffer))
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, Socket, [Plain, Tls], socket => Pin::new(socket).poll_read(cx, buffer))
    }
}

macro_rules! written_by {
    ($kind:ident, [$($variant:ident),+]) => {
        impl AsyncWrite for $kind {
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
                each!(self, $kind, [$($variant),+], socket => Pin::new(socket).poll_write(cx, bytes))
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                each!(self, $kind, [$($variant),+], socket => Pin::new(socket).poll_flush(cx))
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                each!(self, $kind, [$($variant),+], socket => Pin::new(socket).poll_shutdown(cx))
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                slices: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                each!(self, $kind, [$($variant),+], socket => Pin::new(socket).poll_write_vectored(cx, slices))
            }

            fn is_write_vectored(&self) -> bool {
                match self {
                    $(Self::$variant(socket) => socket.is_write_vectored(),)+
                }
            }
        }
    };
}

written_by!(Kernel, [Tcp, Unix]);
written_by!(Socket, [Plain, Tls]);

impl AsyncWrite for Plain {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.kernel).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.kernel).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.kernel).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.kernel).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.kernel.is_write_vectored()
    }
}
