//! What is told: counters and the text that a Prometheus server scrapes, the access log, traces.
//!
//! `record` notes what became of one request; `told` hands it to the access log and to the traces, whose threads alone
//! wait; `metrics` puts all counters into one text.

pub(crate) mod access_log;
pub(crate) mod admin_metrics;
pub(crate) mod config_metrics;
pub(crate) mod histogram;
pub(crate) mod limit_metrics;
pub(crate) mod limit_set;
pub(crate) mod log_lines;
pub(crate) mod metrics;
pub(crate) mod outcome_metrics;
pub(crate) mod passed_on;
pub(crate) mod record;
pub(crate) mod request_metrics;
pub(crate) mod spool;
pub(crate) mod statuses;
pub(crate) mod store_level;
pub(crate) mod store_metrics;
pub(crate) mod tls_metrics;
pub(crate) mod told;
pub(crate) mod trace;
