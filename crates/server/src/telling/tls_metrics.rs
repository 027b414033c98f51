//! The certificates that clients are shown: when they end, and how it went when they were read anew.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::Tls;
use crate::telling::metrics::register;

/// What is known of certificates.
#[derive(Clone, Debug)]
pub struct TlsMetrics {
    applied: Counter,
    failed: Counter,
    is_successful: Gauge,
    expiries: Family<FileLabel, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FileLabel {
    file: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

impl TlsMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let reloads = Family::<ResultLabel, Counter>::default();
        registry.register("tls_reloads", "Times the certificates were read anew, by result", reloads.clone());
        let result = |result| reloads.get_or_create(&ResultLabel { result }).clone();
        let (applied, failed) = (result("applied"), result("failed"));
        let help = "Are the certificates that were read last in use? 0 while they are wrong and older ones go on";
        let is_successful: Gauge = register(registry, "tls_last_reload_successful", help);
        is_successful.set(1);
        let expiries = Family::<FileLabel, Gauge>::default();
        let help = "When a certificate in use ends, in seconds since the epoch of Unix";
        registry.register("tls_certificate_expiry_timestamp_seconds", help, expiries.clone());
        Self { applied, failed, is_successful, expiries }
    }

    /// The process started with these, each with the name of its file.
    pub fn started<'a>(&self, tls: &Tls, files: impl Iterator<Item = &'a str>) {
        self.is_successful.set(1);
        for (file, expiry) in files.zip(tls.expiries_unix_s()) {
            let label = FileLabel { file: file.to_owned() };
            match expiry {
                Some(unix_s) => _ = self.expiries.get_or_create(&label).set(unix_s),
                None => _ = self.expiries.remove(&label),
            }
        }
    }

    /// They were read anew and are in use.
    pub fn applied<'a>(&self, tls: &Tls, files: impl Iterator<Item = &'a str>) {
        self.applied.inc();
        self.started(tls, files);
    }

    /// They could not be read or cannot be used, and the older ones go on.
    pub fn failed(&self) {
        self.failed.inc();
        self.is_successful.set(0);
    }
}
