//! The threads that serve.

use std::error::Error;
use std::io;
use std::thread;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use tokio::runtime;
use tower_service::Service;

use crate::{Drain, Listener, Setup, serve_all};

/// Serves on all listeners, one thread with a single-threaded runtime for those of each worker, until `drain` starts and
/// all have drained.
///
/// `service` is called once on each of these threads, within its runtime, so that what it makes stays there.
///
/// # Errors
/// A thread or runtime cannot be started, or a listener cannot be waited for. The other workers then drain.
pub fn run<S, B>(
    listeners: Vec<Vec<Listener>>,
    service: impl Fn() -> S + Sync,
    setup: &Setup,
    drain: &Drain,
) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    run_each(listeners, |listeners| serve_all(listeners, service(), setup.clone(), drain.started()), drain)
}

/// The same with whatever `work` makes of the listeners of one worker, within its runtime.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_each<L, W>(listeners: Vec<L>, work: impl Fn(L) -> W + Sync, drain: &Drain) -> io::Result<()>
where
    L: Send,
    W: Future<Output = io::Result<()>>,
{
    let work = |listeners| {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { work(listeners).await })
    };
    thread::scope(|scope| {
        let start = |(i, listeners)| {
            let worker = thread::Builder::new().name(format!("tidegate-{i}"));
            let work = &work;
            worker.spawn_scoped(scope, move || or_drain(work(listeners), drain))
        };
        let workers: Vec<_> = listeners.into_iter().enumerate().map(start).collect();
        let ends = workers.into_iter().map(|worker| match or_drain(worker, drain) {
            Ok(thread) => thread.join().unwrap_or_else(|_| Err(io::Error::other("a worker panicked"))),
            Err(error) => Err(error),
        });
        // All of them are waited for, and the first error is told.
        ends.fold(Ok(()), Result::and)
    })
}

/// One worker that cannot work ends the service of all.
fn or_drain<T>(result: io::Result<T>, drain: &Drain) -> io::Result<T> {
    if result.is_err() {
        drain.start();
    }
    result
}
