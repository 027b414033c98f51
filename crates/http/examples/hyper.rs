//! A plain hyper service that limits each client by address.
//!
//! ```text
//! cargo run -p tidegate-http --example hyper
//! curl -i http://127.0.0.1:3000/
//! ```

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tidegate::{Limiter, Store};
use tidegate_http::{ClientAddress, LimitLayer, Peer};
use tokio::net::TcpListener;
use tower::{Layer, service_fn};

/// Serves whoever connects to `listener`.
///
/// # Errors
/// The listener failed.
pub(crate) async fn serve<S: Store + 'static>(listener: TcpListener, limiter: Limiter<S>) -> std::io::Result<()> {
    let layer = LimitLayer::by_client(Arc::new(limiter), ClientAddress::default());
    let limited = layer.layer(service_fn(greet));
    loop {
        let (socket, peer) = listener.accept().await?;
        let limited = limited.clone();
        // The layer finds the peer in the extensions of the request.
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer::from(peer));
            tower::ServiceExt::oneshot(limited.clone(), request)
        });
        tokio::spawn(async move {
            let connection =
                http1::Builder::new().serve_connection(TokioIo::new(socket), TowerToHyperService::new(service));
            if let Err(error) = connection.await {
                eprintln!("{peer}: {error}");
            }
        });
    }
}

async fn greet(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("Hello!\n")))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 3000)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    serve(listener, Limiter::new("3/min".parse()?)).await?;
    Ok(())
}
