//! Forward auth: a proxy asks about each request that it has, and acts on the status of the answer.
//!
//! What the proxy says of the request becomes a request like any other (`meant`), and goes through the same layer as in
//! the reverse proxy, around a service that lets everything pass. So limits, fields, problems, shadow, penalties and
//! metrics are those of the proxy. `asked` is how the answer is wanted.

mod asked;
mod escaped;
mod meant;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::{Ready, poll_fn, ready};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use tidegate_core::Store;
use tidegate_http::{Dialects, LimitBody, LimitLayer, LimitService};
use tidegate_policy::Client;
use tower_layer::Layer as _;
use tower_service::Service;

use self::asked::Asked;
use self::meant::Meant;
use crate::ProxyBody;
use crate::operating::in_force::Observed;
use crate::proxy::problem::problem;
use crate::telling::record::Noted;

/// Where proxies ask. What stands behind it is the path of the request that is meant.
const PATH: &str = "/v1/forward-auth";

/// Answers proxies by the policies in force.
pub(crate) struct ForwardAuth<S> {
    limited: LimitService<Pass, Observed<S>>,
    in_force: Observed<S>,
    /// Has an operator been told that somebody asks and does not say for whom?
    is_told_of_asker: AtomicBool,
    /// Has an operator been told that there are no policies?
    is_told_of_nothing: AtomicBool,
}

impl<S: Store + 'static> ForwardAuth<S> {
    pub(crate) fn new(in_force: &Observed<S>, dialects: Dialects) -> Self {
        // Which preflights are counted, the policies say.
        let layer = LimitLayer::asking(in_force.clone()).count_preflights().without_grpc_shape().dialects(dialects);
        let (limited, in_force) = (layer.layer(Pass), in_force.clone());
        Self { limited, in_force, is_told_of_asker: AtomicBool::new(false), is_told_of_nothing: AtomicBool::new(false) }
    }

    /// Is this a path at which proxies ask?
    pub(crate) fn is_at(path: &str) -> bool {
        path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The answer to a proxy.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Response<ProxyBody> {
        let (parts, _) = request.into_parts();
        let asked = Asked::in_query(&parts);
        let (asked, meant) = match asked.and_then(|asked| Ok((asked, Meant::by(parts)?))) {
            Ok(both) => both,
            Err(wrong) => return problem(StatusCode::BAD_REQUEST, &wrong.to_string()),
        };
        self.tell(&meant);
        if let Some(noted) = meant.request.extensions().get::<Noted>() {
            noted.means(&meant.request, self.in_force.client_of(&meant.request));
        }
        let Ok(answer) = self.limited.clone().call(meant.request).await;
        let (head, body) = answer.into_parts();
        asked.shown(Response::from_parts(head, whole(body).await)).map(ProxyBody::from)
    }

    /// Tells an operator what looks like a mistake, once.
    fn tell(&self, meant: &Meant) {
        let is_first = |told: &AtomicBool| !told.load(Ordering::Relaxed) && !told.swap(true, Ordering::Relaxed);
        if let Some(asker) = meant.unsaid_for
            && is_first(&self.is_told_of_asker)
        {
            self.in_force.tell(&format!(
                "{} asks at {PATH} without X-Forwarded-For, so all of its visitors share one bucket where a limit goes \
                 by the client; its configuration has to add the client's address",
                Client::from(asker)
            ));
        }
        if self.in_force.with_policies(|policies| policies.as_slice().is_empty()) && is_first(&self.is_told_of_nothing)
        {
            self.in_force
                .tell(&format!("requests are asked about at {PATH}, and all pass, since there are no policies"));
        }
    }
}

/// The body of an answer that was made here, which is there at once and in one piece.
async fn whole(body: LimitBody<String>) -> Bytes {
    let mut body = pin!(body);
    match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        None => Bytes::new(),
    }
}

/// Lets everything pass.
#[derive(Clone)]
struct Pass;

impl<B> Service<Request<B>> for Pass {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        ready(Ok(Response::new(String::new())))
    }
}
