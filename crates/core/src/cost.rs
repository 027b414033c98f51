//! What one request takes.

/// The tokens that one request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// A look: reports and changes nothing.
    pub const ZERO: Self = Self(0);
    /// What a request costs unless someone says otherwise.
    pub const ONE: Self = Self(1);

    /// A cost of `tokens` tokens.
    #[must_use]
    pub const fn new(tokens: u64) -> Self {
        Self(tokens)
    }

    /// The cost in tokens.
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.0
    }

    /// Both costs together, at most 2^64 - 1 tokens.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl From<u64> for Cost {
    fn from(tokens: u64) -> Self {
        Self(tokens)
    }
}
