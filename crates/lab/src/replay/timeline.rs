//! What happened when, in so many steps of time that they fit a picture.
//!
//! The steps are a second long at first; whenever there are too many, they become longer, and several become one.

/// The most steps.
const STEPS_MAX: usize = 720;
/// How long steps can be, in seconds: each a multiple of the one before.
const WIDTHS_S: [u64; 11] = [1, 5, 15, 60, 300, 900, 3_600, 21_600, 86_400, 604_800, 31_449_600];

/// Counts of requests and denials over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    width: usize,
    /// The number of the first step since 1970.
    first: u64,
    steps: Vec<Step>,
}

/// What happened within one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// All requests.
    pub requests: u64,
    /// Those that were denied.
    pub denied: u64,
    /// Those that were denied under the other configuration.
    pub denied_there: u64,
}

impl Timeline {
    /// How long a step is, in seconds.
    #[must_use]
    pub fn width_s(&self) -> u64 {
        WIDTHS_S[self.width]
    }

    /// The first second of the first step, since 1970.
    #[must_use]
    pub fn start_s(&self) -> u64 {
        self.first * self.width_s()
    }

    /// The steps, one after the other.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Counts a request; times come in order.
    #[inline]
    pub(crate) fn count(&mut self, unix_s: u64, is_denied: bool, is_denied_there: bool) {
        let mut number = unix_s / self.width_s();
        if self.steps.is_empty() {
            self.first = number;
        }
        while number - self.first >= STEPS_MAX as u64 && self.width + 1 < WIDTHS_S.len() {
            self.widen();
            number = unix_s / self.width_s();
        }
        let at = (number.saturating_sub(self.first) as usize).min(STEPS_MAX - 1);
        if at >= self.steps.len() {
            self.steps.resize(at + 1, Step::default());
        }
        self.steps[at].requests += 1;
        self.steps[at].denied += u64::from(is_denied);
        self.steps[at].denied_there += u64::from(is_denied_there);
    }

    fn widen(&mut self) {
        let factor = WIDTHS_S[self.width + 1] / self.width_s();
        let first = self.first / factor;
        let mut wider: Vec<Step> = Vec::new();
        for (number, step) in (self.first..).zip(&self.steps) {
            let at = (number / factor - first) as usize;
            wider.resize(wider.len().max(at + 1), Step::default());
            wider[at].requests += step.requests;
            wider[at].denied += step.denied;
            wider[at].denied_there += step.denied_there;
        }
        *self = Self { width: self.width + 1, first, steps: wider };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_become_longer_and_nothing_is_lost() {
        let mut timeline = Timeline::default();
        for second in (1_000_000_000..1_000_400_000).step_by(7) {
            timeline.count(second, second % 2 == 0, second % 3 == 0);
        }
        assert_eq!(timeline.width_s(), 900);
        assert!(timeline.steps().len() <= STEPS_MAX);
        let sum = |of: fn(&Step) -> u64| timeline.steps().iter().map(of).sum::<u64>();
        let sums = [sum(|step| step.requests), sum(|step| step.denied), sum(|step| step.denied_there)];
        assert_eq!(sums, [57_143, 28_572, 19_047]);
        assert!(timeline.start_s() <= 1_000_000_000 && timeline.start_s() + 900 > 1_000_000_000);
    }
}
