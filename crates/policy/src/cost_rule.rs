//! What a request costs.

use tidegate_core::Cost;

use crate::matching::Line;
use crate::{Attributes, Client, ClientAddress, FieldName};

/// The most that a field can say a request costs.
pub const COST_MAX: u64 = 1 << 32;

/// What a request costs, and when that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostRule {
    /// Always this much.
    Constant(Cost),
    /// What a field of the request says, which a trusted peer sets.
    Header {
        /// The field.
        name: FieldName,
        /// The cost if the peer is not trusted, or the field is not there or no whole number.
        otherwise: Cost,
    },
    /// What a field of the upstream's response says. Until then an estimate is reserved.
    Response {
        /// The field.
        name: FieldName,
        /// What is reserved at the request, and stays charged if the field is not there or no whole number.
        estimate: Cost,
    },
}

impl Default for CostRule {
    /// One token.
    fn default() -> Self {
        Self::Constant(Cost::ONE)
    }
}

impl From<Cost> for CostRule {
    fn from(cost: Cost) -> Self {
        Self::Constant(cost)
    }
}

impl CostRule {
    /// The cost as far as it is known without the request: the constant, or what is charged if a field says nothing.
    #[must_use]
    pub const fn without_fields(&self) -> Cost {
        match self {
            Self::Constant(cost) | Self::Header { otherwise: cost, .. } | Self::Response { estimate: cost, .. } => {
                *cost
            }
        }
    }

    /// What is charged at the request.
    pub(crate) fn at_request<A: Attributes + ?Sized>(&self, request: &A, address: &ClientAddress) -> Cost {
        let Self::Header { name, .. } = self else { return self.without_fields() };
        if !address.trust.trusts(Client::from(request.peer())) {
            return self.without_fields();
        }
        match Line::of(request, name.as_str()) {
            Line::Only(value) => whole_number(value).unwrap_or(self.without_fields()),
            Line::Missing | Line::Several => self.without_fields(),
        }
    }
}

/// A whole number, at most [`COST_MAX`].
pub(crate) fn whole_number(text: &[u8]) -> Option<Cost> {
    let text = text.trim_ascii();
    let is_number = (1..=20).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|_| is_number)?;
    Some(Cost::new(number.parse().unwrap_or(COST_MAX).min(COST_MAX)))
}
