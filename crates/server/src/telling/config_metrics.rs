//! Which configuration is in force, and how it went when it was read anew.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tidegate_core::Time;

use crate::telling::metrics::register;

/// A hash that is shown as a number keeps so many bits: those that a floating-point number holds.
const HASH_BITS: u32 = 48;

/// How reloads went. All processes that read the same file show the same hash.
#[derive(Clone, Debug)]
pub struct ConfigMetrics {
    applied: Counter,
    failed: Counter,
    is_successful: Gauge,
    applied_at_s: Gauge,
    hash: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

impl ConfigMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let reloads = Family::<ResultLabel, Counter>::default();
        registry.register("config_reloads", "Times the configuration was read anew, by result", reloads.clone());
        let result = |result| reloads.get_or_create(&ResultLabel { result }).clone();
        let (applied, failed) = (result("applied"), result("failed"));
        let help = "Is what was read last in force? 0 while the file is wrong and older policies go on";
        let is_successful: Gauge = register(registry, "config_last_reload_successful", help);
        is_successful.set(1);
        let help = "When the policies in force were put there, in seconds since the epoch of Unix";
        let applied_at_s = register(registry, "config_last_reload_success_timestamp_seconds", help);
        let hash =
            register(registry, "config_hash", "A hash of the file whose policies are in force; 0 if there is none");
        Self { applied, failed, is_successful, applied_at_s, hash }
    }

    /// The process started with this file.
    pub fn started(&self, contents: &str, now: Time) {
        self.hash.set(hash(contents));
        self.applied_at_s.set(i64::try_from(now.since(Time::ZERO).as_secs()).unwrap_or(i64::MAX));
        self.is_successful.set(1);
    }

    /// The policies of this file were put in force.
    pub fn applied(&self, contents: &str, now: Time) {
        self.applied.inc();
        self.started(contents, now);
    }

    /// The file could not be read or is wrong, and older policies go on.
    pub fn failed(&self) {
        self.failed.inc();
        self.is_successful.set(0);
    }
}

/// FNV-1a: it tells files apart, and resists nobody.
fn hash(contents: &str) -> i64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = contents.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    // It has 48 bits.
    (hash >> (u64::BITS - HASH_BITS)) as i64
}
