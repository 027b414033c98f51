//! Which share of the requests is traced.

use std::fmt;
use std::str::FromStr;

/// A share from 0 to 1; all unless told otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample(f64);

impl Default for Sample {
    fn default() -> Self {
        Self(1.0)
    }
}

impl Sample {
    /// Is one that drew this number taken?
    pub(crate) fn takes(self, drawn: u64) -> bool {
        self.0 >= 1.0 || (drawn as f64) < self.0 * u64::MAX as f64
    }
}

impl FromStr for Sample {
    type Err = SampleError;

    fn from_str(text: &str) -> Result<Self, SampleError> {
        let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
        share.map(Self).ok_or(SampleError)
    }
}

/// The text is no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleError;

impl fmt::Display for SampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a share from 0 to 1, such as 0.01")
    }
}

impl std::error::Error for SampleError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken() {
        let sample = |text: &str| text.parse::<Sample>().unwrap();
        for drawn in [1, u64::MAX / 2, u64::MAX] {
            assert!(sample("1").takes(drawn) && !sample("0").takes(drawn));
        }
        assert!(sample("0.01").takes(u64::MAX / 101) && !sample("0.01").takes(u64::MAX / 99));
        for wrong in ["", "1.1", "-0.1", "nan", "1%"] {
            assert_eq!(wrong.parse::<Sample>(), Err(SampleError), "{wrong}");
        }
    }
}
