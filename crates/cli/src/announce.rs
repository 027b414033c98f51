//! The first lines of the proxy: what is limited, by what key, where it is counted, and how to try it.

use std::net::SocketAddr;

use tidegate::policy::{Explanation, Policies, Policy};
use tidegate::{Mode, Sharing};
use tidegate_server::{ListenAddress, Upstreams};

use crate::config_file::ConfigFile;
use crate::say::Page;
use crate::settings::ProxyFlags;

/// Policies that are shown; the others are counted.
const POLICIES_SHOWN_MAX: usize = 20;

/// Upstreams that are shown; the others are counted.
const UPSTREAMS_SHOWN_MAX: usize = 20;

/// What there is to be said, beside the policies.
pub(crate) struct Announcement<'a> {
    pub(crate) flags: &'a ProxyFlags,
    /// Where requests go, if not to the built-in API.
    pub(crate) upstreams: Option<&'a Upstreams>,
    /// Where the policies come from, if not from flags.
    pub(crate) file: Option<&'a ConfigFile>,
    /// Where buckets are counted.
    pub(crate) counted: &'a str,
    /// Where clients connect.
    pub(crate) bound: &'a [ListenAddress],
    pub(crate) admin: Option<SocketAddr>,
}

impl Announcement<'_> {
    pub(crate) fn say(&self, policies: &Policies) {
        let urls: Vec<_> = self.bound.iter().map(|address| self.url(address)).collect();
        let mut page = Page::new(format!("tidegate {} on {}", env!("CARGO_PKG_VERSION"), urls.join(" and ")));
        match self.upstreams {
            Some(upstreams) => destinations(&mut page, upstreams),
            None => page.entry("upstream", &"none given, so it serves a joke of the day of its own"),
        }
        match self.file {
            Some(file) => listed(&mut page, policies, file),
            None => policies.as_slice().iter().for_each(|policy| explained(&mut page, policy)),
        }
        page.entry("counted", &self.counted);
        if let Some(most) = most_leased(policies) {
            let what = format_args!("at most {most} tokens of a key are taken ahead, here as in each other process");
            page.entry("leased", &what);
        }
        if let Some(admin) = self.admin {
            page.entry("admin", &format_args!("http://{admin}/metrics, /livez, /readyz"));
        }
        if let Some(place) = self.flags.logs.place() {
            page.entry("access log", &place);
        }
        if let Some(traces) = self.flags.traces.setup() {
            page.entry("traces", &traces.endpoint);
        }
        if let Some(first) = self.bound.first() {
            page.entry("try", &self.trial(first));
        }
        page.say();
    }

    fn url(&self, address: &ListenAddress) -> String {
        match address {
            ListenAddress::Tcp { address, is_clear } => {
                let is_secure = self.flags.entrance.is_secure() && !is_clear;
                format!("{}://{address}", if is_secure { "https" } else { "http" })
            }
            ListenAddress::Unix { .. } => address.to_string(),
        }
    }

    fn trial(&self, address: &ListenAddress) -> String {
        match address {
            ListenAddress::Tcp { .. } => format!("curl -i {}/", self.url(address)),
            ListenAddress::Unix { path, .. } => {
                format!("curl -i --unix-socket {} http://localhost/", path.display())
            }
        }
    }
}

/// Each upstream, the most special first, with what it is for.
fn destinations(page: &mut Page, upstreams: &Upstreams) {
    let all = upstreams.as_slice();
    for (at, destination) in all.iter().take(UPSTREAMS_SHOWN_MAX).enumerate() {
        page.entry(if at == 0 { "upstream" } else { "" }, destination);
    }
    if let Some(more @ 1..) = all.len().checked_sub(UPSTREAMS_SHOWN_MAX) {
        page.entry("", &format_args!("and {more} more"));
    }
}

/// The policy of the flags: its limits are all that there is, so they are explained.
pub(crate) fn explained(page: &mut Page, policy: &Policy) {
    let is_shadow = policy.limits().iter().all(|named| named.mode == Mode::Shadow);
    page.entry(
        "key",
        &format_args!("{}{}", policy.key(), if is_shadow { "; in shadow, so nothing is denied" } else { "" }),
    );
    policy.limits().iter().for_each(|named| page.entry(&named.name, &Explanation::of(named.limit)));
}

/// The policies of a file, each in a line or two.
pub(crate) fn listed(page: &mut Page, policies: &Policies, file: &ConfigFile) {
    let all = policies.as_slice();
    page.entry(
        "policies",
        &format_args!("{}, from {}; read anew when it changes, or on SIGHUP", all.len(), file.name()),
    );
    for policy in all.iter().take(POLICIES_SHOWN_MAX) {
        let ending = if policy.is_final() { "; final" } else { "" };
        let limits = policy.limits().iter().map(|named| {
            let shadow = if named.mode == Mode::Shadow { " in shadow" } else { "" };
            format!("{} {}{shadow}", named.name, named.limit)
        });
        let limits = limits.collect::<Vec<_>>().join(", ");
        page.entry(policy.name(), &format_args!("{}, by {}{ending}\n{limits}", policy.matching(), policy.key()));
    }
    if let Some(more @ 1..) = all.len().checked_sub(POLICIES_SHOWN_MAX) {
        page.entry("", &format_args!("and {more} more"));
    }
    page.entry("explained", &format_args!("by `tidegate check --config {}`", file.name()));
}

/// The names of policies, for a line.
pub(crate) fn names(policies: &Policies) -> String {
    let all = policies.as_slice();
    let mut names: Vec<_> = all.iter().take(POLICIES_SHOWN_MAX).map(|policy| policy.name().to_owned()).collect();
    names.extend(all.len().checked_sub(POLICIES_SHOWN_MAX).filter(|more| *more > 0).map(|more| format!("{more} more")));
    names.join(", ")
}

/// The most tokens of one key that a process takes ahead, if it does.
fn most_leased(policies: &Policies) -> Option<u32> {
    let limits = policies.as_slice().iter().flat_map(Policy::limits);
    let most = limits.filter_map(|named| match named.handling.sharing {
        Sharing::Leased { most } => Some(most.get()),
        Sharing::Exact => None,
    });
    most.max()
}
