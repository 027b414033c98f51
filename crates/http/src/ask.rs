//! What decides on a request.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use http::{Extensions, Request};

use crate::once::Marks;
use crate::{Awaited, Denial, Report};

/// Decides whether a request may pass.
///
/// [`ByKey`](crate::ByKey) asks a limiter about a key, [`ByPolicies`](crate::ByPolicies) asks a gate. Clones are cheap,
/// and share what they keep.
pub trait Ask<B>: Clone {
    /// May it pass?
    fn ask(&self, request: &Request<B>) -> Asked;
}

/// A ruling that takes time, such as that of a store on another machine. It borrows nothing, so the request can be
/// dropped while it is on its way.
pub type Later = Pin<Box<dyn Future<Output = Ruled> + Send>>;

/// The ruling, or a future of it.
pub enum Asked {
    /// The store is in this process, or did not have to be asked: it is decided.
    Now(Ruled),
    /// The store was asked.
    Later(Later),
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(ruled) => f.debug_tuple("Now").field(&ruled.ruling).finish(),
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
    /// It passes, and its response says what it is charged.
    Awaited(Box<Awaited>),
    /// It does not.
    Denied(Denial),
}

/// A ruling, and what is to be remembered of it.
#[derive(Debug)]
pub struct Ruled {
    /// What was decided.
    pub ruling: Ruling,
    /// What the layers further in need not charge again.
    charged: Option<Marks>,
}

impl From<Ruling> for Ruled {
    #[inline]
    fn from(ruling: Ruling) -> Self {
        Self { ruling, charged: None }
    }
}

impl Ruled {
    /// The same, after this was charged.
    #[inline]
    pub(crate) fn having_charged(self, charged: Option<Marks>) -> Self {
        Self { charged, ..self }
    }

    /// The same, if it passes and `awaited` is to be told of its response.
    pub(crate) fn awaiting(self, awaited: impl FnOnce(Option<Report>) -> Awaited) -> Self {
        let ruling = match self.ruling {
            Ruling::Allowed(report) => Ruling::Awaited(Box::new(awaited(Some(report)))),
            Ruling::Free | Ruling::Repeated => Ruling::Awaited(Box::new(awaited(None))),
            other @ (Ruling::Awaited(_) | Ruling::Denied(_)) => other,
        };
        Self { ruling, ..self }
    }

    /// The ruling, once the request remembers what was charged.
    #[inline]
    pub(crate) fn remembered_in(self, extensions: &mut Extensions) -> Ruling {
        if let Some(marks) = self.charged {
            marks.leave_in(extensions);
        }
        self.ruling
    }
}
