//! An axum service that limits each user, by the quota of the user's plan.
//!
//! ```text
//! cargo run -p tidegate-http --features axum --example axum
//! curl -i -H 'authorization: Bearer ann' http://127.0.0.1:3000/
//! ```
//!
//! Ann has the free plan, 3 requests a minute; Bob has paid for 600. Who is not logged in is limited by address.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use tidegate::{Limit, Limiter, Quota, Store};
use tidegate_http::LimitLayer;

/// A user who is logged in.
#[derive(Clone)]
struct User {
    name: &'static str,
    /// What the plan allows; `None` is the free plan.
    quota: Option<Quota>,
}

/// The service: `GET /` greets.
///
/// # Errors
/// The paid plan's limit is not one.
pub(crate) fn app<S: Store + 'static>(limiter: Limiter<S>) -> Result<Router, tidegate::LimitError> {
    let paid = "600/min".parse::<Limit>()?.quota();
    let limit = LimitLayer::new(Arc::new(limiter))
        .key_ref(|request: &Request<Body>| request.extensions().get::<User>().map(|user| user.name))
        .quota(|request| request.extensions().get::<User>()?.quota);
    // What is added last is outermost: a request is logged in first, then limited.
    Ok(Router::new()
        .route("/", get(greet))
        .layer(limit)
        .layer(middleware::from_fn(move |request, next| log_in(paid, request, next))))
}

async fn greet(user: Option<Extension<User>>) -> String {
    format!("Hello, {}!\n", user.map_or("stranger", |Extension(user)| user.name))
}

/// Stands for a real log-in: the token is the name.
async fn log_in(paid: Option<Quota>, mut request: Request, next: Next) -> Response {
    let token = request.headers().get("authorization").and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let user = match token {
        Some(b"ann") => Some(User { name: "Ann", quota: None }),
        Some(b"bob") => Some(User { name: "Bob", quota: paid }),
        _ => None,
    };
    if let Some(user) = user {
        request.extensions_mut().insert(user);
    }
    next.run(request).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 3000)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let app = app(Limiter::new("3/min".parse()?))?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
