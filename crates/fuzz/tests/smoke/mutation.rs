//! Inputs that are like the seeds, and wrong somewhere.

use tidegate_fuzz::INPUT_BYTES_MAX;

/// An endless source of mutations.
pub(crate) struct Mutation {
    seeds: Vec<Vec<u8>>,
    words: &'static [&'static str],
    /// The state of SplitMix64.
    state: u64,
}

impl Mutation {
    pub(crate) fn new(seeds: Vec<Vec<u8>>, words: &'static [&'static str], state: u64) -> Self {
        Self { seeds, words, state }
    }

    /// A number below `bound`, which is above 0.
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn word(&mut self) -> &'static [u8] {
        self.words[self.below(self.words.len())].as_bytes()
    }

    fn seed(&mut self) -> Vec<u8> {
        match self.below(8) {
            // Words alone, behind a byte that chooses.
            0 => {
                let mut input = vec![self.below(256) as u8];
                for _ in 0..self.below(12) {
                    input.extend_from_slice(self.word());
                }
                input
            }
            _ => {
                let place = self.below(self.seeds.len());
                self.seeds[place].clone()
            }
        }
    }

    /// The next input.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let mut input = self.seed();
        for _ in 0..=self.below(6) {
            self.change(&mut input);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = at + self.below(input.len() - at + 1);
        match self.below(8) {
            0 => input.insert(at, self.below(256) as u8),
            1 => drop(input.drain(at..end)),
            2 => {
                let word = self.word();
                drop(input.splice(at..at, word.iter().copied()));
            }
            3 => {
                let word = self.word();
                drop(input.splice(at..end, word.iter().copied()));
            }
            // A part again, up to eight times.
            4 => {
                let part = input[at..end].repeat(self.below(8) + 1);
                drop(input.splice(at..at, part));
            }
            5 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
            // Digits grow.
            6 => {
                if let Some(digit) = input[at..].iter().position(u8::is_ascii_digit) {
                    let digits = [&b"0"[..], b"9", b"00000000", b"99999999999999999999", b"2147483648", b"-1"];
                    let digits = digits[self.below(digits.len())];
                    drop(input.splice(at + digit..at + digit + 1, digits.iter().copied()));
                }
            }
            _ => {
                let other = self.seed();
                let cut = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[cut..]);
            }
        }
    }
}
