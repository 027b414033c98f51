//! The other side: from a request to the answer of an upstream.
//!
//! Read `name` and `upstreams` (which one), `route` (the way to it: `dial` connects, `pool` keeps connections for HTTP/1.1
//! and `trunks` those for HTTP/2), `exchange` (one request on its way), `body` and `upload` (what it carries), `upgrade`
//! and `tunnel` (what leaves HTTP), `failure` (why there is no answer).

pub(crate) mod body;
pub(crate) mod dial;
pub(crate) mod exchange;
pub(crate) mod failure;
pub(crate) mod line;
pub(crate) mod name;
pub(crate) mod patience;
pub(crate) mod pool;
pub(crate) mod route;
pub(crate) mod socket;
pub(crate) mod sweep;
pub(crate) mod tls;
pub(crate) mod translate;
pub(crate) mod trunks;
pub(crate) mod tunnel;
pub(crate) mod upgrade;
pub(crate) mod upload;
pub(crate) mod upstreams;
