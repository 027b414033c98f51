//! What was written for other services, in force beside the policies: the rules of Envoy's reference service, and the
//! limits of limitador. Each is one value with its counters, replaced as a whole when its files change.

pub(crate) mod limits;
pub(crate) mod rules;
