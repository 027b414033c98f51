//! Where buckets are counted: the flags of a store outside of this process, and the store that they describe.

use std::fmt;
use std::num::NonZeroU32;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tidegate::policy::{Policies, Policy};
use tidegate::redis::{RedisOptions, RedisStore, ServerInfo, StoreError};
use tidegate::{FailureMode, FailureModeError, Handling, Limit, Shared, SharedOptions, Sharing, TableOptions};
use tokio::runtime::{self, Handle};

use crate::flags::{self, Wrong};
use crate::say;

/// The environment variable that names the store, so that a password need not stand in the list of processes.
const STORE_VARIABLE: &str = "TIDEGATE_STORE";
/// The longest deadline that makes sense where somebody waits for a request.
const DEADLINE_MAX: Duration = Duration::from_secs(10);

/// Where buckets are counted.
#[derive(Args)]
pub(crate) struct StoreFlags {
    /// A Redis or Valkey server in which all processes that name it count together, such as redis://127.0.0.1:6379.
    /// Without one, each process counts by itself.
    #[arg(long, value_name = "URL", env = STORE_VARIABLE, hide_env_values = true)]
    store: Option<Url>,

    /// What happens while that server does not answer: allow everything, deny everything (503), or go on in each
    /// process alone (local), under a share of the limits if it is told (local:0.25). [default: local]
    #[arg(long, value_name = "MODE", value_parser = failure_mode)]
    on_store_failure: Option<FailureMode>,

    /// The longest that a request waits for that server, such as 10ms. [default: 10ms]
    #[arg(long, value_name = "TIME", value_parser = deadline)]
    store_deadline: Option<Duration>,

    /// Tokens of one key that each process may take ahead, to decide by itself until they are spent. Without it, the
    /// server decides on every request.
    #[arg(long, value_name = "TOKENS", value_parser = flags::tokens)]
    leased: Option<NonZeroU32>,
}

/// The URL of a store. It may hold a password, so what is shown is the rest of it.
#[derive(Clone)]
struct Url(String);

impl From<&str> for Url {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("", &self.0));
        let rest = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        let place = rest.split(['?', '#']).next().unwrap_or_default();
        if scheme.is_empty() { f.write_str(place) } else { write!(f, "{scheme}://{place}") }
    }
}

/// A store outside of this process, as it was found.
pub(crate) struct SharedStore {
    pub(crate) store: Shared,
    url: Url,
    /// Who answered, or why nobody did.
    server: Result<ServerInfo, StoreError>,
    /// What limits do while it is away, if they all do the same.
    on_failure: Option<FailureMode>,
    /// Where its connections run.
    runtime: Handle,
}

impl StoreFlags {
    /// What the limits want of their store, by these flags.
    pub(crate) fn handling(&self) -> Handling {
        let sharing = self.leased.map_or(Sharing::Exact, |most| Sharing::Leased { most });
        Handling::default().with_on_failure(self.on_store_failure.unwrap_or_default()).with_sharing(sharing)
    }

    /// Is there a store outside of this process?
    pub(crate) fn is_given(&self) -> bool {
        self.store.is_some()
    }

    /// The flags that a configuration file says in its own way: whether they are given, and what to write there.
    pub(crate) fn belonging(&self) -> [(&'static str, bool, &'static str); 2] {
        [
            ("--on-store-failure", self.on_store_failure.is_some(), "`on_store_failure` in a policy"),
            ("--leased", self.leased.is_some(), "`sharing = \"leased:TOKENS\"` in a policy"),
        ]
    }

    /// Refuses flags that mean nothing.
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        if self.is_given() { Ok(()) } else { self.check_without_store() }
    }

    fn check_without_store(&self) -> Result<(), Wrong> {
        let given = [
            ("--on-store-failure", self.on_store_failure.is_some()),
            ("--store-deadline", self.store_deadline.is_some()),
            ("--leased", self.leased.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((flag, _)) => Err(Wrong::new(format_args!(
                "{flag} says nothing without --store, since buckets then live in this process; \
                 add one such as --store redis://127.0.0.1:6379"
            ))),
        }
    }

    /// The store, if there is one. Its connections run on a thread of their own; a server that is not there yet may
    /// come later.
    pub(crate) fn open(&self, fallback: TableOptions, policies: &Policies) -> anyhow::Result<Option<SharedStore>> {
        let Some(url) = self.store.clone() else { return Ok(None) };
        let mut options = RedisOptions::default();
        options.deadline = self.store_deadline.unwrap_or(options.deadline);
        let mut shared = SharedOptions::default();
        shared.fallback = fallback;
        let runtime =
            runtime::Builder::new_current_thread().enable_all().build().context("no runtime for the store")?;
        let inside = runtime.enter();
        let redis = RedisStore::new(&url.0, options).map_err(|error| Wrong::new(format_args!("--store: {error}")))?;
        let store = Shared::new(redis.clone(), shared);
        drop(inside);
        let server = runtime.block_on(redis.probe());
        let handle = runtime.handle().clone();
        // It ends with the program.
        let work = move || runtime.block_on(tell_complaints(redis));
        thread::Builder::new().name("store".to_owned()).spawn(work).context("no thread for the store")?;
        let on_failure = common_mode(policies);
        Ok(Some(SharedStore { store, url, server, on_failure, runtime: handle }))
    }
}

/// Passes on what is wrong with the store's configuration, as it turns out.
async fn tell_complaints(redis: RedisStore) {
    loop {
        say::warning(&redis.complaint().await.to_string());
    }
}

impl SharedStore {
    /// What an operator should know: that the store cannot be reached, or may forget.
    pub(crate) fn warning(&self) -> Option<String> {
        match &self.server {
            Ok(server) => server.warning(),
            Err(why) => {
                let (url, now) = (&self.url, while_away(self.on_failure));
                Some(format!("the store at {url} cannot be used: {why}; until it can, {now}"))
            }
        }
    }

    /// Gives back what was taken ahead, before the program ends.
    pub(crate) fn give_back_leases(&self) {
        self.runtime.block_on(self.store.give_back_leases());
    }
}

impl fmt::Display for SharedStore {
    /// Where buckets are counted, and what happens while they cannot be.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Ok(server) => write!(f, "in {server} at {}, together with every process that uses it", self.url)?,
            Err(_) => write!(f, "in the store at {}, as soon as it can be used", self.url)?,
        }
        write!(f, "\nwhile it does not answer, {}", while_away(self.on_failure))
    }
}

/// What happens while the store does not answer.
fn while_away(mode: Option<FailureMode>) -> String {
    match mode {
        None => "each limit does what its `on_store_failure` says".to_owned(),
        Some(FailureMode::Allow) => "everything passes (allow)".to_owned(),
        Some(FailureMode::Deny) => "everything is denied with 503 (deny)".to_owned(),
        Some(mode @ FailureMode::Local(_)) => format!("each process counts by itself ({mode})"),
    }
}

/// What all limits do while the store is away; `None` if that is not the same for all.
fn common_mode(policies: &Policies) -> Option<FailureMode> {
    let mut modes = policies.as_slice().iter().flat_map(Policy::limits).map(|named| named.handling.on_failure);
    let first = modes.next().unwrap_or_default();
    modes.all(|mode| mode == first).then_some(first)
}

fn failure_mode(text: &str) -> Result<FailureMode, FailureModeError> {
    text.parse()
}

fn deadline(text: &str) -> Result<Duration, &'static str> {
    // The units are those of limits.
    let period = || {
        let limit = format!("1/{text}").parse::<Limit>().ok()?;
        Some(limit.quota()?.rate().period())
    };
    let is_number_first = text.starts_with(|first: char| first.is_ascii_digit());
    let is_period = is_number_first && !text.to_ascii_lowercase().contains("burst");
    let deadline = is_period.then(period).flatten();
    let deadline = deadline.filter(|deadline| (Duration::from_millis(1)..=DEADLINE_MAX).contains(deadline));
    deadline.ok_or("expected a time from 1ms to 10s, such as 10ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_url_holds_no_password() {
        for (url, shown) in [
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("redis://:s3cret@127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
            ("redis://user:p@ss@host:6379", "redis://host:6379"),
            ("redis+unix:///run/redis.sock?user=me&pass=s3cret", "redis+unix:///run/redis.sock"),
            ("user:s3cret@host:6379", "host:6379"),
        ] {
            assert_eq!(Url::from(url).to_string(), shown);
        }
    }

    #[test]
    fn a_deadline_has_a_unit_and_bounds() {
        assert_eq!(deadline("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(deadline("1s"), Ok(Duration::from_secs(1)));
        for wrong in ["", "10", "ms", "0ms", "11s", "1m", "10ms burst 3", "-1s"] {
            assert!(deadline(wrong).is_err(), "{wrong}");
        }
    }
}
