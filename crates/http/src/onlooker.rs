//! Who looks on while one request is decided.
//!
//! A watch ([`LimitLayer::watch`](crate::LimitLayer::watch)) sees all requests and knows none of them: it counts. An
//! onlooker comes with its request, in the extensions, and sees what was decided on that one, at once or later. So a
//! log that wraps the layer learns what the layer decided, and a request without an onlooker costs one look.

use std::fmt;
use std::sync::Arc;

use http::{Extensions, Request};

use crate::Sight;

/// Sees the decision on one request.
#[derive(Clone)]
pub struct Onlooker(Arc<dyn Onlook>);

/// What an [`Onlooker`] does with what it sees.
pub trait Onlook: Send + Sync {
    /// It was decided. Called once at most, before the request goes on; never if the request is given up before that,
    /// or is denied before anything could be decided.
    fn see(&self, sight: &Sight<'_>);
}

impl Onlooker {
    /// Shows the decision to `onlook`.
    pub fn new(onlook: Arc<dyn Onlook>) -> Self {
        Self(onlook)
    }

    /// Lets it look on while `request` is decided.
    pub fn accompany<B>(self, request: &mut Request<B>) {
        request.extensions_mut().insert(self);
    }

    pub(crate) fn of(extensions: &Extensions) -> Option<Self> {
        extensions.get::<Self>().cloned()
    }

    pub(crate) fn see(&self, sight: &Sight<'_>) {
        self.0.see(sight);
    }
}

impl fmt::Debug for Onlooker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Onlooker")
    }
}
