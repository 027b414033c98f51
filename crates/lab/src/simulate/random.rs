//! Chance, the same on every machine: the numbers of a seed are fixed for ever.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood, 2014): a counter that is stirred. What is drawn from it is made
//! with integers alone, so no processor and no library of mathematics can change a run.

/// A stream of chance.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another stream, which does not follow this one.
    #[must_use]
    pub fn branch(&mut self) -> Self {
        Self(self.bits())
    }

    /// 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let stirred = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let stirred = (stirred ^ (stirred >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        stirred ^ (stirred >> 31)
    }

    /// A number below `end`; 0 if that is 0. For the ends that are used here all are as likely, within 2^-32.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A span of this mean such as lies between two events that know nothing of each other. Nanoseconds.
    ///
    /// Von Neumann's way (1951), which compares and never takes a logarithm: of uniform numbers u1 > u2 > ... that fall
    /// as long as they do, the run has an odd length with probability e^-u1. Each even run adds a whole mean.
    #[inline]
    pub fn exponential(&mut self, mean_ns: u64) -> u64 {
        /// A run beyond this has a chance of e^-63, and the product below keeps within 128 bits.
        const WHOLE_MAX: u64 = 63;
        let mut whole = 0;
        loop {
            let first = self.bits();
            let (mut last, mut is_odd) = (first, true);
            loop {
                let next = self.bits();
                if next >= last {
                    break;
                }
                (last, is_odd) = (next, !is_odd);
            }
            if is_odd || whole == WHOLE_MAX {
                let part = (u128::from(first) * u128::from(mean_ns)) >> 64;
                return mean_ns.saturating_mul(whole).saturating_add(part as u64);
            }
            whole += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_paper_for_ever() {
        let mut random = Random::new(1_234_567);
        let drawn: Vec<_> = (0..5).map(|_| random.bits()).collect();
        let known = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(drawn, known);
    }

    #[test]
    fn spans_have_their_mean_and_the_tail_of_an_exponential() {
        let (mut random, mean, count) = (Random::new(7), 1_000_000, 200_000);
        let spans: Vec<_> = (0..count).map(|_| random.exponential(mean)).collect();
        let average = spans.iter().sum::<u64>() / count;
        assert!(average.abs_diff(mean) < mean / 100, "{average}");
        // e^-1 and e^-3 of them are longer than one and three means.
        for (means, share) in [(1, 0.367_879), (3, 0.049_787)] {
            let longer = spans.iter().filter(|span| **span > means * mean).count() as f64 / count as f64;
            assert!((longer - share).abs() < 0.005, "{longer} of {means}");
        }
    }

    #[test]
    fn below_stays_below() {
        let mut random = Random::new(3);
        assert!((0..1_000).all(|_| random.below(6) < 6));
        assert_eq!(random.below(0), 0);
    }
}
