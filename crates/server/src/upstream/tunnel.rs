//! Two connections joined: what comes on one goes out on the other.
//!
//! When one side has ended, the other is told and may still send; when both have, the tunnel is over. It also ends when
//! nothing passes for too long, and with the worker that it runs on.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use prometheus_client::metrics::gauge::Gauge;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};
use tokio::time::timeout;

use crate::upstream::pool::Lease;

/// Both ends of a tunnel that is yet to open.
pub(crate) struct Tunnel {
    pub(crate) client: OnUpgrade,
    pub(crate) upstream: OnUpgrade,
    /// The upstream's connection, which is closed without it.
    pub(crate) lease: Lease,
    /// The time for which nothing may pass.
    pub(crate) idle_timeout: Duration,
    /// Counts the tunnels that are open.
    pub(crate) open: Gauge,
}

impl Tunnel {
    /// Opens the tunnel as soon as both sides have changed their protocol, and waits for its end.
    pub(crate) async fn run(self) {
        let Self { client, upstream, lease, idle_timeout, open } = self;
        let Ok(upstream) = upstream.await else { return };
        let Ok(client) = client.await else { return };
        drop(lease);
        let _open = Open::counted(open);
        let passed = Arc::new(AtomicU64::new(0));
        let mut client = Noted { end: TokioIo::new(client), passed: Arc::clone(&passed) };
        let mut upstream = Noted { end: TokioIo::new(upstream), passed: Arc::clone(&passed) };
        let mut copying = pin!(copy_bidirectional(&mut client, &mut upstream));
        loop {
            let before = passed.load(Relaxed);
            // It ends between once and twice the time after something last passed.
            if timeout(idle_timeout, &mut copying).await.is_ok() || passed.load(Relaxed) == before {
                return;
            }
        }
    }
}

/// A tunnel that is counted as long as it is open.
struct Open(Gauge);

impl Open {
    fn counted(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// One end, and a note of what was read from it or written to it.
struct Noted {
    end: TokioIo<Upgraded>,
    passed: Arc<AtomicU64>,
}

impl Noted {
    fn note<T>(&self, polled: &Poll<T>) {
        if polled.is_ready() {
            self.passed.fetch_add(1, Relaxed);
        }
    }
}

impl AsyncRead for Noted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.end).poll_read(cx, buffer);
        self.note(&read);
        read
    }
}

impl AsyncWrite for Noted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.end).poll_write(cx, bytes);
        self.note(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.end).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.end).poll_shutdown(cx)
    }
}
