//! Accepting, and one runtime per worker.
//!
//! A worker is one thread with a runtime of its own: connections, upstream pool and timers stay on it. Only buckets and
//! counters are shared. That beats moving tasks between threads when the work is to pass bytes on.

use std::error::Error;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower_service::Service;

use crate::client::connection::{Accepted, converse};
use crate::client::doors::Doors;
use crate::{Bounds, Connections, Drain, Entrance, Listener};

/// The pause after a failed accept: no file descriptors are left, most likely, and one must be freed first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a face is set up with.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// How much it takes.
    pub bounds: Bounds,
    /// How clients come in.
    pub entrance: Entrance,
    /// Where its connections are counted.
    pub connections: Connections,
}

/// Answers the requests on `listener` with `service`, until `shutdown` is ready.
///
/// Each request carries its [`crate::Peer`] in its extensions, and [`http::uri::Scheme::HTTPS`] if it came over TLS. In
/// the end it stops accepting, closes idle connections, lets requests in flight end within the grace period, and
/// returns. If the returned future is dropped, all connections are cut.
///
/// # Errors
/// The listener is not one that this runtime can wait for.
pub async fn serve<S, B>(
    listener: impl Into<Listener>,
    service: S,
    setup: Setup,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    serve_all(vec![listener.into()], service, setup, shutdown).await
}

/// The same on several listeners, which share the bounds.
///
/// # Errors
/// A listener is not one that this runtime can wait for.
pub async fn serve_all<S, B>(
    listeners: Vec<Listener>,
    service: S,
    setup: Setup,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let bounds = setup.bounds.clone();
    let setup = Arc::new(setup);
    let connection = |accepted, drain: Drain| {
        let (service, setup) = (service.clone(), Arc::clone(&setup));
        async move {
            let open = setup.connections.open();
            let end = converse(accepted, service, &setup, &drain).await;
            open.ended(end);
        }
    };
    serve_each(listeners, &bounds, shutdown, connection).await
}

/// Hands each connection on these listeners to `connection`, until `shutdown` is ready; then the switch that it was given
/// turns, and it has the grace period to end.
///
/// # Errors
/// A listener is not one that this runtime can wait for.
pub(crate) async fn serve_each<F, C>(
    listeners: Vec<Listener>,
    bounds: &Bounds,
    shutdown: impl Future<Output = ()>,
    connection: F,
) -> io::Result<()>
where
    F: Fn(Accepted, Drain) -> C,
    C: Future<Output = ()> + Send + 'static,
{
    let doors = Doors::open(listeners)?;
    let drain = Drain::new();
    let mut tasks = JoinSet::new();
    let room = Arc::new(Semaphore::new(bounds.connections_max.clamp(1, Semaphore::MAX_PERMITS)));
    {
        let accepting = accept(doors, &mut tasks, room, |accepted| connection(accepted, drain.clone()));
        // The listeners are closed when this block ends.
        tokio::select! {
            () = accepting => {}
            () = shutdown => {}
        }
    }
    drain.start();
    let _ = timeout(bounds.grace, async { while tasks.join_next().await.is_some() {} }).await;
    tasks.shutdown().await;
    Ok(())
}

/// Accepts for ever, but only while there is room for one more connection.
async fn accept<F, C>(mut doors: Doors, tasks: &mut JoinSet<()>, room: Arc<Semaphore>, connection: F)
where
    F: Fn(Accepted) -> C,
    C: Future<Output = ()> + Send + 'static,
{
    // The semaphore is never closed.
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        match doors.accept().await {
            Ok(accepted) => {
                let connection = connection(accepted);
                tasks.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
        while tasks.try_join_next().is_some() {}
    }
}

/// Did the connection fail before it was accepted? Then the next one may be fine.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
