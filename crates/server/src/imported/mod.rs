//! What was written for other services, in force beside the policies: the rules of Envoy's reference service, and the
//! limits of limitador.
//!
//! All of it is one value with its counters, replaced as a whole when a file changes, so that a call sees all of the old
//! or all of the new. Each rule and each limit is an [`ImportedLimit`](limit::ImportedLimit) to whoever counts and
//! operates. Read `imports`, `limit`.

pub(crate) mod imports;
pub(crate) mod limit;
