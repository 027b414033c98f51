//! Policies of Tidegate: from the attributes of a request to the charges it makes.
//!
//! A [`Policy`] names the parts of a key and the limits that are charged to it. [`Policies`] takes a request, seen
//! through [`Attributes`], finds its client by [`ClientAddress`], builds the keys in [`Keys`], and answers with
//! [`Charging`]: what is to be charged, in the shape that stores take.
//!
//! This crate knows no sockets, no stores, no clocks, and no library of HTTP types.
//!
//! ```
//! use std::net::IpAddr;
//! use tidegate_policy::{Attributes, Charging, ClientAddress, Keys, Peer, Policies, Policy};
//!
//! struct Request;
//!
//! impl Attributes for Request {
//!     fn peer(&self) -> Peer {
//!         Peer::Ip(IpAddr::from([203, 0, 113, 7]))
//!     }
//!     fn method(&self) -> &str {
//!         "GET"
//!     }
//!     fn path(&self) -> &str {
//!         "/"
//!     }
//!     fn host(&self) -> Option<&str> {
//!         None
//!     }
//!     fn header_lines<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a [u8])) {
//!         if name == "x-api-key" {
//!             each(b"k1");
//!         }
//!     }
//! }
//!
//! let policy = Policy::new("default", "header:x-api-key".parse()?).with_limits(["60/min".parse()?], Default::default());
//! let policies = Policies::new(ClientAddress::default(), vec![policy])?;
//!
//! let mut keys = Keys::new();
//! let Charging::Charged(charges) = policies.charging(&Request, &mut keys) else { panic!("one limit applies") };
//! assert_eq!(charges.len(), 1);
//! assert_eq!(charges.place(0).unwrap().limit.name, "limit-1");
//! assert_eq!(tidegate_policy::KeyText(charges[0].key).to_string(), r#""k1""#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Read the modules in this order: `attributes`, `descriptor` (with `descriptor_rules`, what is read of
//! another service's files), `client`, `trust`, `address` (with `forwarded` and `node`, the syntax
//! of the fields) and `last_hop`, `key_parts`, `key`, `caller`; `matching` (with `path`, `path_pattern`, `host_pattern`), `exempt`,
//! `overrides`, `cost_rule`, `outcome`, `policy`; `policies` (with what is prepared at load: `index`, `path_index`,
//! `policy_set`, `exemptions`, `together`), `charges`; `succession`, when others take their place, and `single_key`, for an operator; then what is said to people: `considered`, `explain`, `key_text`,
//! `key_hash`, `printable`,
//! `warnings`, `one_private_peer`.

#![forbid(unsafe_code)]

mod address;
mod attributes;
mod caller;
mod charges;
mod client;
mod considered;
mod cookie;
mod cost_rule;
mod descriptor;
#[cfg(feature = "file")]
pub mod descriptor_rules;
mod exempt;
mod exemptions;
mod explain;
#[cfg(feature = "file")]
pub mod file;
mod forwarded;
mod host_pattern;
mod index;
mod key;
mod key_error;
mod key_hash;
mod key_parts;
mod key_text;
mod last_hop;
#[cfg(feature = "file")]
pub mod limitador;
mod matching;
mod names;
mod node;
mod one_private_peer;
mod outcome;
mod overrides;
mod path;
mod path_index;
mod path_pattern;
mod penalty_buckets;
mod policies;
mod policy;
mod policy_error;
mod policy_set;
mod printable;
mod ranges;
mod single_key;
mod succession;
mod together;
mod trust;
mod trust_error;
mod warnings;

pub use address::{AddressField, ClientAddress, ENTRIES_MAX, LINES_MAX};
pub use attributes::{Attributes, Peer};
pub use charges::{Charges, Place};
pub use client::{Client, Grouping, GroupingError};
pub use considered::{Charged, Considered, Say};
pub use cost_rule::{COST_MAX, CostRule};
pub use descriptor::{Described, Entry};
pub use exempt::{Exempt, Exemption, HEALTH_CHECKS};
pub use explain::{Explanation, Leases, WorstCase};
pub use host_pattern::{HostPattern, HostPatternError};
pub use key::{Keys, VALUE_BYTES_MAX};
pub use key_error::KeyPartsError;
pub use key_hash::{KeyHash, KeySalt, SALT_BYTES_MAX, SaltError};
pub use key_parts::{KeyPart, KeyParts, OnMissing, PARTS_MAX};
pub use key_text::{KeyText, KeyValue};
pub use last_hop::LastHop;
pub use matching::{HeaderMatch, Match, Method, Mismatch};
pub use names::{ClaimName, CookieName, FieldName, NAME_BYTES_MAX, NameError};
pub use one_private_peer::OnePrivatePeer;
pub use outcome::{Counting, HOLD_MAX, NO_RESPONSE, Offence, Penalty, Settling, Statuses, StatusesError};
pub use overrides::{Override, OverrideError};
pub use path::normal_path;
pub use path_pattern::{PATTERN_BYTES_MAX, PathPattern, PathPatternError};
pub use penalty_buckets::{OffenceCharges, PenaltyPart};
pub use policies::{Charging, Policies};
pub use policy::{NamedLimit, Policy};
pub use policy_error::PolicyError;
pub use policy_set::POLICIES_MAX;
pub use printable::Printable;
pub use single_key::{NamedKey, SingleKey, SingleKeyError};
pub use succession::{Fresh, FreshBecause};
pub use trust::{NETWORKS_MAX, Trust};
pub use trust_error::TrustError;
pub use warnings::Warning;
