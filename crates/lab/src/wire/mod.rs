//! Calls over HTTP/1.1 to a service that is under test: the one part of the lab, with `load` and `audit` which stand on
//! it, that opens sockets.
//!
//! `target` says what is called, and whether it may be; `door` resolves and connects; `line` is one connection;
//! `caller` keeps lines open and times each call on the machine's monotonic clock.

mod caller;
mod door;
mod line;
mod target;

pub use http::header::{HeaderName, HeaderValue};
pub use http::{HeaderMap, Method, StatusCode};

pub use caller::{Caller, Calling, Exchange};
pub use door::{OpenError, Trust};
pub use line::{Answer, CallError};
pub use target::{Target, TargetError};
