//! The whole road: a request's attributes, policies, charges, and the table that the proxy keeps its buckets in.
//!
//! A simulated request is a GET of its route. Clients come from addresses of their own, from 198.18.0.0 on, the
//! network that is set aside for such measurements (RFC 2544). No header field is sent.

use std::net::{IpAddr, Ipv4Addr};

use tidegate_core::{CHARGES_MAX, Decision, Time};
use tidegate_memory::{Table, TableOptions};
use tidegate_policy::{Attributes, Charging, Keys, Peer, Policies};

use super::Keeper;
use super::one::denial;
use crate::simulate::{Arrival, Reply};

/// The address of the first client.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([198, 18, 0, 0]);

pub(in crate::simulate) struct ByPolicies<'a> {
    policies: &'a Policies,
    table: Table,
    keys: Keys,
}

impl<'a> ByPolicies<'a> {
    pub(in crate::simulate) fn new(policies: &'a Policies, clients: u32) -> Self {
        /// So many slots for each bucket that there can be that none is ever in another's way.
        const SLACK: usize = 4;
        let limits: usize = policies.as_slice().iter().map(|policy| policy.limits().len()).sum();
        let mut options = TableOptions::with_keys((clients as usize * limits.max(1) * SLACK).max(1_024));
        options.seed = Some(1);
        Self { policies, table: Table::new(options), keys: Keys::new() }
    }
}

impl Keeper for ByPolicies<'_> {
    fn ask(&mut self, key: u32, arrival: &Arrival) -> Reply {
        let address = Ipv4Addr::from(FIRST_ADDRESS.wrapping_add(key));
        let request = Request { peer: Peer::Ip(IpAddr::V4(address)), path: arrival.route.to_string() };
        let charges = match self.policies.charging(&request, &mut self.keys) {
            Charging::Charged(charges) => charges,
            Charging::Free | Charging::Unmatched => return Reply::Passed,
            Charging::Denied { .. } => return Reply::Never,
        };
        let Some(first) = charges.first() else { return Reply::Passed };
        let mut decisions = [Decision::unmade(&first.quota); CHARGES_MAX];
        let decisions = &mut decisions[..charges.len()];
        match self.table.decide_at(&charges, decisions, arrival.at) {
            Ok(verdict) => match verdict.binding {
                Some(i) if !verdict.allowed => denial(&decisions[i]),
                _ => Reply::Passed,
            },
            // More different limits than a table knows, which no file that was read has.
            Err(_) => Reply::Never,
        }
    }

    fn level(&mut self, _key: u32, _now: Time) -> Option<u64> {
        None
    }

    fn bytes_per_key(&self) -> Option<usize> {
        None
    }
}

/// A simulated request, as policies see it.
struct Request {
    peer: Peer,
    path: String,
}

impl Attributes for Request {
    fn peer(&self) -> Peer {
        self.peer
    }

    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn header_lines<'a>(&'a self, _name: &str, _each: &mut dyn FnMut(&'a [u8])) {}
}
