//! What decides on a request.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use http::Request;

use crate::{Denial, Report};

/// Decides whether a request may pass.
///
/// [`ByKey`](crate::ByKey) asks a limiter about a key, [`ByPolicies`](crate::ByPolicies) asks a gate. Clones are cheap,
/// and share what they keep.
pub trait Ask<B>: Clone {
    /// May it pass? The request is changed at most in its extensions.
    fn ask(&self, request: &mut Request<B>) -> Asked;
}

/// A ruling that takes time, such as that of a store on another machine. It borrows nothing.
pub type Later = Pin<Box<dyn Future<Output = Ruling> + Send>>;

/// The ruling, or a future of it.
pub enum Asked {
    /// The store is in this process: it is decided.
    Now(Ruling),
    /// The store was asked.
    Later(Later),
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(ruling) => f.debug_tuple("Now").field(ruling).finish(),
            Self::Later(_) => f.write_str("Later(..)"),
        }
    }
}

/// What was decided on a request.
#[derive(Debug)]
pub enum Ruling {
    /// No limit applies: it passes, and its answer says nothing of limits.
    Free,
    /// An outer layer has charged it under the same limits: it passes, and that layer's fields tell of them.
    Repeated,
    /// It passes.
    Allowed(Report),
    /// It does not.
    Denied(Denial),
}
