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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower_service::Service;

use crate::connection::{End, converse};
use crate::{Bounds, Connections, Drain, Peer};

/// The pause after a failed accept: no file descriptors are left, most likely, and one must be freed first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a face is set up with.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// How much it takes.
    pub bounds: Bounds,
    /// Where its connections are counted.
    pub connections: Connections,
}

/// Answers the requests on `listener` with `service`, until `shutdown` is ready.
///
/// Each request carries its [`Peer`] in its extensions. Then it stops accepting, closes idle connections, lets requests
/// in flight end within the grace period, and returns. If the returned future is dropped, all connections are cut.
///
/// # Errors
/// The listener is not one that this runtime can wait for.
pub async fn serve<S, B>(
    listener: std::net::TcpListener,
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
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let grace = setup.bounds.grace;
    let drain = Drain::new();
    let mut tasks = JoinSet::new();
    let room = Arc::new(Semaphore::new(setup.bounds.connections_max.clamp(1, Semaphore::MAX_PERMITS)));
    {
        let shared = Arc::new((setup, drain.clone()));
        let accepting = accept(listener, &mut tasks, room, |socket, peer| {
            let (service, shared) = (service.clone(), Arc::clone(&shared));
            async move {
                let (setup, drain) = &*shared;
                let open = setup.connections.open();
                let end = converse(socket, peer, service, &setup.bounds, drain).await;
                if end == End::TooSlow {
                    open.too_slow();
                }
            }
        });
        // The listener is closed when this block ends.
        tokio::select! {
            () = accepting => {}
            () = shutdown => {}
        }
    }
    drain.start();
    let _ = timeout(grace, async { while tasks.join_next().await.is_some() {} }).await;
    tasks.shutdown().await;
    Ok(())
}

/// Accepts for ever, but only while there is room for one more connection.
async fn accept<F, C>(listener: TcpListener, tasks: &mut JoinSet<()>, room: Arc<Semaphore>, connection: F)
where
    F: Fn(TcpStream, Peer) -> C,
    C: Future<Output = ()> + Send + 'static,
{
    // The semaphore is never closed.
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        match listener.accept().await {
            Ok((socket, address)) => {
                // Without it small answers wait for the client's acknowledgement; a socket that refuses still works.
                let _ = socket.set_nodelay(true);
                let connection = connection(socket, Peer::from(address));
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
