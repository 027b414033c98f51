//! The sockets of upstreams, as one type.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

/// A connection to an upstream, in bytes.
pub(crate) enum UpstreamSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Calls the same method of whichever socket it is.
macro_rules! each {
    ($socket:expr, $one:ident => $call:expr) => {
        match $socket {
            UpstreamSocket::Tcp($one) => $call,
            UpstreamSocket::Unix($one) => $call,
            UpstreamSocket::Tls($one) => $call,
        }
    };
}

impl AsyncRead for UpstreamSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), one => Pin::new(one).poll_read(cx, buffer))
    }
}

impl AsyncWrite for UpstreamSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self.get_mut(), one => Pin::new(one).poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), one => Pin::new(one).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), one => Pin::new(one).poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self.get_mut(), one => Pin::new(one).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        each!(self, one => one.is_write_vectored())
    }
}
