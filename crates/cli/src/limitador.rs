//! Limits that were written for limitador, and are served beside Tidegate's own policies.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use clap::Args;
use tidegate::policy::limitador::{Limits, read};
use tidegate::redis::RedisStore;
use tidegate::{Algorithm, Handling, Store};
use tidegate_server::{DecisionServer, Desk};

use crate::config_file::ConfigFile;
use crate::file_watch::{FileWatch, Found};
use crate::flags::Wrong;
use crate::say;
use crate::screen::QUOTAS_MAX;
use crate::watching::{self, Occasion};

/// Limits that are shown; the others are counted.
const LIMITS_SHOWN_MAX: usize = 20;

/// Limits of limitador.
#[derive(Args)]
pub(crate) struct LimitadorFlags {
    /// Limits written for limitador, in YAML, for calls of Envoy's rate limit service, and over HTTP for those that
    /// limitador takes: /check_and_report, /check, /report. Read anew when it changes.
    #[arg(long, value_name = "FILE")]
    limitador_limits: Option<PathBuf>,

    /// How those limits are enforced: fixed-window, as limitador counts, lets twice the number pass around the edge of a
    /// window; token-bucket does not.
    #[arg(long, value_name = "ALGORITHM", default_value = "fixed-window", value_parser = algorithm)]
    limitador_algorithm: Algorithm,
}

/// What it takes to read the file.
#[derive(Clone, Copy)]
struct Reading {
    algorithm: Algorithm,
    handling: Handling,
    /// Are buckets counted outside of this process?
    is_shared: bool,
}

/// A file that was read.
pub(crate) struct LimitadorLimits {
    file: ConfigFile,
    contents: String,
    limits: Limits,
    reading: Reading,
}

impl LimitadorFlags {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(&self, handling: Handling, is_shared: bool) -> Result<Option<LimitadorLimits>, Wrong> {
        let Some(path) = &self.limitador_limits else { return Ok(None) };
        let reading = Reading { algorithm: self.limitador_algorithm, handling, is_shared };
        let file = ConfigFile::new(path);
        let contents = file.contents()?;
        let limits = reading.read(&file, &contents)?;
        Ok(Some(LimitadorLimits { file, contents, limits, reading }))
    }
}

impl Reading {
    fn read(&self, file: &ConfigFile, contents: &str) -> Result<Limits, Wrong> {
        let limits = read(&file.name(), contents, self.algorithm, self.handling).map_err(Wrong::new)?;
        let all = limits.as_slice();
        let inexact = all.iter().filter(|_| self.is_shared).find_map(|limit| {
            let why = RedisStore::takes(&limit.quota).err()?;
            let (label, namespace) = (&limit.label, &limit.namespace);
            Some(format!("limit {label} of namespace {namespace} cannot be kept exactly in a shared store: {why}"))
        });
        if let Some(inexact) = inexact {
            return Err(Wrong::new(inexact));
        }
        let different: BTreeSet<_> = all.iter().map(|limit| limit.quota.to_words()).collect();
        if different.len() > QUOTAS_MAX {
            let count = different.len();
            return Err(Wrong::new(format_args!("there are {count} different limits; the maximum is {QUOTAS_MAX}")));
        }
        Ok(limits)
    }
}

impl LimitadorLimits {
    /// Puts the limits in force, and reads the file anew when it changes from now on, or on a signal.
    ///
    /// # Errors
    /// There is no thread.
    pub(crate) fn put_in_force<S: Store + 'static>(
        self,
        server: &DecisionServer<S>,
        hang_ups: Receiver<()>,
    ) -> anyhow::Result<()> {
        let Self { file, contents, limits, reading } = self;
        server.desk().import_limits(limits);
        let desk = Arc::clone(server.desk());
        let mut watch = FileWatch::new(file.clone(), contents);
        watching::start("tidegate-limits", hang_ups, move |occasion| {
            let found = match occasion {
                Occasion::Told => Some(watch.look().clone()),
                Occasion::Routine => watch.changed().cloned(),
            };
            found.iter().for_each(|found| replace(&file, found, reading, &desk));
        })
    }

    /// The limits, each in a line.
    pub(crate) fn announce(&self, page: &mut say::Page) {
        let limits = self.limits.as_slice();
        let (count, name) = (limits.len(), self.file.name());
        page.entry("limitador", &format_args!("{count} limits from {name}; read anew when it changes, or on SIGHUP"));
        for limit in limits.iter().take(LIMITS_SHOWN_MAX) {
            page.entry(&limit.namespace, &format_args!("{} {} in {} s", limit.label, limit.max_value, limit.seconds));
        }
        if let Some(more @ 1..) = count.checked_sub(LIMITS_SHOWN_MAX) {
            page.entry("", &format_args!("and {more} more"));
        }
    }
}

fn replace<S: Store + 'static>(file: &ConfigFile, found: &Found, reading: Reading, desk: &Desk<S>) {
    let read = found.as_ref().map_err(Clone::clone);
    match read.and_then(|contents| reading.read(file, contents).map_err(|why| why.to_string())) {
        Ok(limits) => {
            let count = limits.as_slice().len();
            desk.import_limits(limits);
            say::line(&format!("{} was read anew; limits in force: {count}", file.name()));
        }
        Err(why) => {
            desk.metrics().config.failed();
            say::error(&format_args!("{why}"));
            say::line("nothing was changed: the limits that were in force go on");
        }
    }
}

/// The algorithms that files of limitador can be read for.
fn algorithm(name: &str) -> Result<Algorithm, &'static str> {
    match name.parse() {
        Ok(algorithm @ (Algorithm::FixedWindow | Algorithm::TokenBucket)) => Ok(algorithm),
        _ => Err("expected fixed-window or token-bucket"),
    }
}
