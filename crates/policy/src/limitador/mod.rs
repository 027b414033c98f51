//! The limits of limitador: which of them a call meets, and whose bucket each charges.
//!
//! A file of limits is a list. Each limit names a namespace, how much may pass within how many seconds, the conditions
//! of CEL under which it applies, and the variables whose values tell its buckets apart:
//!
//! ```
//! use tidegate_core::{Algorithm, Cost};
//! use tidegate_policy::limitador::{Call, read};
//! use tidegate_policy::{Entry, Keys};
//!
//! let file = "
//! - namespace: shop
//!   max_value: 10
//!   seconds: 60
//!   conditions: [\"descriptors[0].method == 'POST'\"]
//!   variables: [\"descriptors[0].user\"]
//! ";
//! let limits = read("limits.yaml", file, Algorithm::FixedWindow, Default::default())?;
//! let entries = [Entry { key: "method", value: "POST" }, Entry { key: "user", value: "ann" }];
//! let call = Call { namespace: "shop", descriptors: &[&entries] };
//! let mut keys = Keys::new();
//! assert_eq!(limits.charging(&call, Cost::ONE, &mut keys).charges.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A limit is the same limit as long as namespace, seconds, conditions and variables are the same, so that another
//! `max_value` keeps what its buckets owe. What differs from limitador is in docs/limitador.md.
//!
//! Read `cel`, `limit`, `read`, `apart`, `charging`.

mod apart;
mod cel;
mod charging;
mod limit;
mod read;
#[cfg(test)]
mod tests;

pub use cel::{CelError, EXPRESSION_BYTES_MAX};
pub use charging::{Call, Charged, Limits};
pub use limit::{Limit, VARIABLES_MAX};
pub use read::{FILE_BYTES_MAX, read};
