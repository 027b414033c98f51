//! Answers by their status.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::StatusCode;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::{MetricType, TypedMetric};

/// The codes that there are room for: from 100 on.
const CODES: usize = 500;
const FIRST: u16 = 100;

/// Codes that are shown from the start, so that their first increase is seen as one.
const ALWAYS_SHOWN: [u16; 5] = [200, 429, 502, 503, 504];

/// Counts answers by status, without a lock: there is a counter for each code. A code is shown once it was answered.
#[derive(Clone)]
pub struct Statuses(Arc<[AtomicU64; CODES]>);

impl Default for Statuses {
    fn default() -> Self {
        Self(Arc::new([const { AtomicU64::new(0) }; CODES]))
    }
}

impl Statuses {
    /// Counts an answer. A code above those of HTTP counts as the last one.
    #[inline]
    pub fn count(&self, status: StatusCode) {
        let place = usize::from(status.as_u16() - FIRST).min(CODES - 1);
        self.0[place].fetch_add(1, Relaxed);
    }
}

impl fmt::Debug for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Statuses")
    }
}

impl EncodeMetric for Statuses {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (code, count) in (FIRST..).zip(&*self.0) {
            let count = count.load(Relaxed);
            if count > 0 || ALWAYS_SHOWN.contains(&code) {
                ConstCounter::new(count).encode(encoder.encode_family(&[("code", code)])?)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Statuses {
    const TYPE: MetricType = MetricType::Counter;
}
