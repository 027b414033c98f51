//! The face that speaks gRPC: Envoy's rate limit service, and beside it health and reflection, so that `grpcurl` and
//! health checks know it.
//!
//! Connections are those of every face (`client`), with their bounds, TLS and drain. The calls of the rate limit service
//! are read and answered here (`unary`), those that stream by tonic's own services.

mod body;
pub(crate) mod status;
pub(crate) mod unary;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tidegate_core::Store;
use tidegate_http::{is_grpc_call, peer_in_extensions};
use tonic_health::server::{HealthReporter, HealthService, health_reporter};
use tonic_health::{ServingStatus, pb::health_server::HealthServer};
use tower_service::Service;

pub use self::body::GrpcBody;
use self::status::{CallError, Code};
use crate::client::serve::serve_all;
use crate::desk::Desk;
use crate::envoy::{RateLimits, files};
use crate::{Bounds, Entrance, Listener, Setup};

const RATE_LIMITS: &str = "envoy.service.ratelimit.v3.RateLimitService";
const HEALTH: &str = "grpc.health.v1.Health";
const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";
const OLDER_REFLECTION: &str = "grpc.reflection.v1alpha.ServerReflection";

/// What the face is set up with.
#[derive(Clone, Debug, Default)]
pub struct GrpcSetup {
    /// How much it takes, and for how long it waits.
    pub bounds: Bounds,
    /// How clients come in.
    pub entrance: Entrance,
}

/// Answers over gRPC by the decisions of a desk. Clones are the same face.
pub(crate) struct Grpc<S>(Arc<Face<S>>);

struct Face<S> {
    setup: GrpcSetup,
    desk: Arc<Desk<S>>,
    limits: Arc<RateLimits<S>>,
    reporter: HealthReporter,
    health: Streaming,
    reflection: Streaming,
    older_reflection: Streaming,
}

type Answer<B> = Pin<Box<dyn Future<Output = Response<B>> + Send>>;

/// A service of tonic's, whatever its type.
type Streaming = Arc<dyn Fn(Request<Incoming>) -> Answer<tonic::body::Body> + Send + Sync>;

impl<S: Store + 'static> Grpc<S> {
    pub(crate) fn new(desk: Arc<Desk<S>>, limits: Arc<RateLimits<S>>, setup: GrpcSetup) -> Self {
        let (reporter, _) = health_reporter();
        set_health(&reporter, ServingStatus::Serving);
        Self(Arc::new(Face {
            setup,
            desk,
            limits,
            health: streaming(HealthServer::new(HealthService::from_health_reporter(reporter.clone()))),
            reporter,
            reflection: reflection(|builder| builder.build_v1().map(streaming)),
            older_reflection: reflection(|builder| builder.build_v1alpha().map(streaming)),
        }))
    }

    /// Serves clients on these listeners until `shutdown` is ready; then calls in flight end.
    pub(crate) async fn serve(&self, listeners: Vec<Listener>, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let face = &*self.0;
        let setup = Setup {
            bounds: face.setup.bounds.clone(),
            entrance: Entrance { trust: face.desk.believed.clone(), ..face.setup.entrance.clone() },
            connections: face.desk.metrics.connections.clone(),
        };
        let shutdown = async {
            shutdown.await;
            // Who watches hears of it before the connection ends.
            set_health(&face.reporter, ServingStatus::NotServing);
        };
        serve_all(listeners, face.desk.recorded(self.clone()), setup, shutdown).await
    }
}

impl<S: Store + 'static> Face<S> {
    async fn answer(&self, request: Request<Incoming>) -> Response<GrpcBody> {
        if request.method() != Method::POST || !is_grpc_call(request.headers()) {
            let mut response = Response::new(GrpcBody::from(body::CallBody::empty()));
            *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return response;
        }
        let path = request.uri().path().strip_prefix('/').and_then(|path| path.split_once('/'));
        let streaming = match path {
            Some((RATE_LIMITS, "ShouldRateLimit")) => return self.should_rate_limit(request).await.map(GrpcBody::from),
            Some((HEALTH, _)) => &self.health,
            Some((REFLECTION, _)) => &self.reflection,
            Some((OLDER_REFLECTION, _)) => &self.older_reflection,
            _ => {
                let message = format!("there is no method {}", request.uri().path());
                return CallError::new(Code::Unimplemented, message).response().map(GrpcBody::from);
            }
        };
        streaming(request).await.map(|body| GrpcBody::Stream { body })
    }

    async fn should_rate_limit(&self, request: Request<Incoming>) -> Response<body::CallBody> {
        let asker = peer_in_extensions(request.extensions());
        let answer = async {
            let asker = asker.ok_or_else(|| CallError::new(Code::Internal, "it is not known who asks"))?;
            self.limits.decide(&unary::message(request).await?, asker).await
        };
        match answer.await {
            Ok(answer) => unary::answered(&answer),
            Err(error) => error.response(),
        }
    }
}

/// Makes the services of one name for whoever calls.
fn streaming<T>(service: T) -> Streaming
where
    T: Service<Request<Incoming>, Response = Response<tonic::body::Body>, Error = Infallible>,
    T: Clone + Send + Sync + 'static,
    T::Future: Send + 'static,
{
    Arc::new(move |request| {
        let answer = service.clone().call(request);
        Box::pin(answer.map(|answer| match answer {
            Ok(response) => response,
            Err(never) => match never {},
        }))
    })
}

/// Whoever asks what there is; nobody is answered if that cannot be put together, which a test rules out.
fn reflection(
    build: impl FnOnce(tonic_reflection::server::Builder<'_>) -> Result<Streaming, tonic_reflection::server::Error>,
) -> Streaming {
    let builder = tonic_reflection::server::Builder::configure()
        .register_file_descriptor_set(files::files())
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
    let unimplemented = |_| -> Answer<tonic::body::Body> {
        Box::pin(async {
            CallError::new(Code::Unimplemented, "there is no reflection").response().map(tonic::body::Body::new)
        })
    };
    build(builder).unwrap_or_else(|_| Arc::new(unimplemented))
}

/// Says how all services are.
fn set_health(reporter: &HealthReporter, status: ServingStatus) {
    for service in ["", RATE_LIMITS] {
        // It waits for nothing but those who read at this moment.
        let _ = reporter.set_service_status(service, status).now_or_never();
    }
}

impl<S: Store + 'static> Service<Request<Incoming>> for Grpc<S> {
    type Response = Response<GrpcBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<GrpcBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let face = Arc::clone(&self.0);
        Box::pin(async move { Ok(face.answer(request).await) })
    }
}

impl<S> Clone for Grpc<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Grpc<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grpc").field("setup", &self.0.setup).finish_non_exhaustive()
    }
}
