//! Access logs: from files in many formats to the requests that they tell of.

mod calendar;

pub use calendar::{Utc, Zone, ZoneError};
