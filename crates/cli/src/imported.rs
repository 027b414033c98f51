//! Rules that were written for other services, and are served beside Tidegate's own policies.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use clap::Args;
use tidegate::policy::descriptor_rules::{self, DescriptorRules, RuleFile};
use tidegate::redis::RedisStore;
use tidegate::{Algorithm, Handling, Mode, Store};
use tidegate_server::{DecisionServer, Desk, EnvoyHeaders, RateLimitSetup};

use crate::flags::Wrong;
use crate::rule_files::{FoundFiles, RuleFiles, RuleWatch};
use crate::say;
use crate::screen::QUOTAS_MAX;
use crate::watching::{self, Occasion};

/// Rules that are shown; the others are counted.
const RULES_SHOWN_MAX: usize = 20;

/// Files of rules, and how they are enforced.
#[derive(Args)]
pub(crate) struct RuleFlags {
    /// Rules written for the rate limit service that Envoy's project publishes: a file, or a folder of *.yaml. Read anew
    /// when any of it changes.
    #[arg(long, value_name = "PATH")]
    ratelimit_config: Option<PathBuf>,

    /// How those rules, and limits that calls bring, are enforced: fixed-window, as that service counts, lets twice the
    /// number pass around the edge of a window; token-bucket does not.
    #[arg(long, value_name = "ALGORITHM", default_value = "fixed-window", value_parser = algorithm)]
    ratelimit_algorithm: Algorithm,
}

/// Rules of other services, and what is said of them.
#[derive(Args)]
pub(crate) struct ImportFlags {
    #[command(flatten)]
    files: RuleFlags,

    /// What Envoy is asked to add to its answers: retry-after on denials; ratelimit or x-ratelimit for the fields with
    /// limit, remaining and reset on every answer beside it; or off.
    #[arg(long, value_name = "FIELDS", default_value_t = EnvoyHeaders::default())]
    ratelimit_headers: EnvoyHeaders,
}

/// What it takes to read the files.
#[derive(Clone, Copy)]
struct Reading {
    algorithm: Algorithm,
    handling: Handling,
    /// Are buckets counted outside of this process?
    is_shared: bool,
}

/// Files that were read.
pub(crate) struct Imported {
    files: RuleFiles,
    contents: Vec<(String, String)>,
    pub(crate) rules: DescriptorRules,
    warnings: Vec<String>,
    reading: Reading,
}

impl ImportFlags {
    /// How the rate limit service answers.
    pub(crate) fn setup(&self, handling: Handling) -> RateLimitSetup {
        RateLimitSetup { algorithm: self.files.ratelimit_algorithm, handling, headers: self.ratelimit_headers }
    }

    /// Reads the files, if there are any.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read(&self, handling: Handling, is_shared: bool) -> Result<Option<Imported>, Wrong> {
        self.files.read(handling, is_shared)
    }
}

impl RuleFlags {
    /// Reads the files, if there are any.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read(&self, handling: Handling, is_shared: bool) -> Result<Option<Imported>, Wrong> {
        let Some(path) = &self.ratelimit_config else { return Ok(None) };
        let reading = Reading { algorithm: self.ratelimit_algorithm, handling, is_shared };
        let files = RuleFiles::new(path);
        let contents = files.contents()?;
        let (rules, warnings) = reading.read(&contents)?;
        Ok(Some(Imported { files, contents, rules, warnings, reading }))
    }
}

impl Reading {
    fn read(&self, contents: &[(String, String)]) -> Result<(DescriptorRules, Vec<String>), Wrong> {
        let files: Vec<_> = contents.iter().map(|(name, contents)| RuleFile { name, contents }).collect();
        let (rules, warnings) = descriptor_rules::read(&files, self.algorithm, self.handling).map_err(Wrong::new)?;
        let quotas = || rules.rules().iter().filter_map(|rule| Some((rule, rule.limit.quota()?)));
        let inexact = quotas().filter(|_| self.is_shared).find_map(|(rule, quota)| {
            let why = RedisStore::takes(&quota).err()?;
            Some(format!("{} of {}: `{quota}` cannot be kept exactly in a shared store: {why}", rule.path, rule.domain))
        });
        if let Some(inexact) = inexact {
            return Err(Wrong::new(inexact));
        }
        let different: BTreeSet<_> = quotas().map(|(_, quota)| quota.to_words()).collect();
        if different.len() > QUOTAS_MAX {
            let count = different.len();
            return Err(Wrong::new(format_args!("there are {count} different limits; the maximum is {QUOTAS_MAX}")));
        }
        Ok((rules, warnings))
    }
}

impl Imported {
    /// What is understood and not done.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Puts the rules in force, and reads the files anew when they change from now on, or on a signal.
    ///
    /// # Errors
    /// There is no thread.
    pub(crate) fn put_in_force<S: Store + 'static>(
        self,
        server: &DecisionServer<S>,
        hang_ups: Receiver<()>,
    ) -> anyhow::Result<()> {
        let Self { files, contents, rules, warnings, reading } = self;
        server.desk().import_rules(rules);
        warnings.iter().for_each(|warning| say::warning(warning));
        let desk = Arc::clone(server.desk());
        let name = files.name();
        let mut watch = RuleWatch::new(files, contents);
        watching::start("tidegate-rules", hang_ups, move |occasion| {
            let found = match occasion {
                Occasion::Told => Some(watch.look().clone()),
                Occasion::Routine => watch.changed().cloned(),
            };
            found.iter().for_each(|found| replace(&name, found, reading, &desk));
        })
    }

    /// The rules, each in a line.
    pub(crate) fn announce(&self, page: &mut say::Page) {
        let rules = self.rules.rules();
        let (count, domains) = (rules.len(), self.rules.domains());
        let domains = if domains == 1 { "1 domain".to_owned() } else { format!("{domains} domains") };
        let name = self.files.name();
        page.entry(
            "rules",
            &format_args!("{count} in {domains}, from {name}; read anew when it changes, or on SIGHUP"),
        );
        for rule in rules.iter().take(RULES_SHOWN_MAX) {
            let shadow = match rule.mode {
                Mode::Shadow if !rule.is_quota => " in shadow",
                _ => "",
            };
            page.entry(&rule.domain, &format_args!("{} {}{shadow}", rule.path, rule.limit));
        }
        if let Some(more @ 1..) = count.checked_sub(RULES_SHOWN_MAX) {
            page.entry("", &format_args!("and {more} more"));
        }
        page.entry("enforced", &in_words(self.reading.algorithm));
    }
}

fn replace<S: Store + 'static>(name: &str, found: &FoundFiles, reading: Reading, desk: &Desk<S>) {
    let read = found.as_ref().map_err(Clone::clone);
    match read.and_then(|contents| reading.read(contents).map_err(|why| why.to_string())) {
        Ok((rules, warnings)) => {
            let count = rules.rules().len();
            desk.import_rules(rules);
            say::line(&format!("{name} was read anew; rules in force: {count}"));
            warnings.iter().for_each(|warning| say::warning(warning));
        }
        Err(why) => {
            desk.metrics().config.failed();
            say::error(&format_args!("{why}"));
            say::line("nothing was changed: the rules that were in force go on");
        }
    }
}

fn in_words(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::TokenBucket => "as token buckets: the number at once, and refilled steadily",
        _ => {
            "in fixed windows: up to twice the number passes around the edge of one; --ratelimit-algorithm token-bucket does not let it"
        }
    }
}

/// The algorithms that files of that service can be read for.
fn algorithm(name: &str) -> Result<Algorithm, &'static str> {
    match name.parse() {
        Ok(algorithm @ (Algorithm::FixedWindow | Algorithm::TokenBucket)) => Ok(algorithm),
        _ => Err("expected fixed-window or token-bucket"),
    }
}
