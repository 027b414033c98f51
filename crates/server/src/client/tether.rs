//! What ties a socket to the task of its connection, also when HTTP has let go of it.
//!
//! After an upgrade the socket lives on with whoever passes its bytes. The connection's task stays until the socket is
//! gone, so that it counts as open and a stop waits for it; and when the task is ended, the socket is cut.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

/// The task's end.
pub(crate) struct Tether {
    gone: oneshot::Receiver<()>,
    /// Dropped with the task.
    _cut: oneshot::Sender<()>,
}

/// The socket's end.
pub(crate) struct Tethered {
    /// Nothing once it was cut.
    cut: Option<oneshot::Receiver<()>>,
    /// Dropped with the socket.
    _gone: oneshot::Sender<()>,
}

impl Tether {
    /// Both ends of a new one.
    pub(crate) fn new() -> (Self, Tethered) {
        let ((gone, is_gone), (cut, is_cut)) = (oneshot::channel(), oneshot::channel());
        (Self { gone: is_gone, _cut: cut }, Tethered { cut: Some(is_cut), _gone: gone })
    }

    /// Waits until the socket is gone. If it is not waited for, the socket is cut.
    pub(crate) async fn gone(self) {
        // Nothing is ever sent: what is heard is that the other end was dropped.
        let _ = self.gone.await;
    }
}

impl Tethered {
    /// Ready when the socket has to go. The last task that asks is woken.
    pub(crate) fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(cut) = &mut self.cut {
            if Pin::new(cut).poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.cut = None;
        }
        Poll::Ready(())
    }
}
