//! `tidegate replay`: what a configuration would have done to the requests of a log.

use std::path::{Path, PathBuf};

use clap::{ArgAction, Args};
use tidegate::policy::Policies;
use tidegate::{Handling, Limit};
use tidegate_lab::ConditionError;
use tidegate_lab::replay::{self, FailIf, Report};

use crate::config_file::ConfigFile;
use crate::flags::{Fails, Wrong};
use crate::log_flags::{LogFlags, Meter, whole};
use crate::picture::{self, IN_TERMINAL, Picture};
use crate::policy_flags::{PolicyFlags, something_limited};
use crate::say;

/// See what limits would have done to the requests of an access log.
///
/// The decisions are those of the proxy, on the log's own time. What cannot be read is counted and shown, never dropped.
#[derive(Args)]
#[command(after_long_help = CONDITIONS, group(something_limited()))]
pub(crate) struct Replay {
    #[command(flatten)]
    logs: LogFlags,

    #[command(flatten)]
    policies: PolicyFlags,

    /// Say what changes under another configuration: a file, or a limit in place of those given.
    #[arg(long, value_name = "FILE|LIMIT")]
    compare: Option<String>,

    /// How many clients and paths are named.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    top: usize,

    /// End with exit code 3 if this holds, such as 'denied > 0.1%' or 'unparsed > 0 or denied_clients > 3'.
    #[arg(long, value_name = "CONDITION", value_parser = fail_if)]
    fail_if: Option<FailIf>,

    /// Print one JSON object for machines.
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print the clients as CSV.
    #[arg(long)]
    csv: bool,

    /// Write the report as one page that opens without a network, with plots to look into: FILE.html.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Draw what happens over time: into FILE.svg or FILE.png, or without a FILE in the terminal.
    #[arg(long, value_name = "FILE", action = ArgAction::Set, num_args = 0..=1, default_missing_value = IN_TERMINAL)]
    plot: Option<PathBuf>,
}

const CONDITIONS: &str = "\
Conditions are comparisons, joined by and, or, not and parentheses: name operator value, where an operator is one of
= != < <= > >= ~ !~ and a value is a word, or a text in quotes.

  --where    numbers: status, bytes, duration (seconds); texts, for = != and, as regular expressions, ~ !~:
             method, path, target, query, host, protocol, client, user, agent, referer, forwarded
  --fail-if  figures: lines, requests, clients, admitted, denied, denied_clients, unparsed, late; with % a share:
             of the requests for admitted and denied, of the clients for denied_clients, of the lines for the
             last two

Try it: `tidegate replay access.log --limit '60/min burst 20' --where 'status < 500' --fail-if 'denied > 1%'`";

impl Replay {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.check_files()?;
        let policies = self.policies.config()?.policies;
        let compare = self.compare.as_deref().map(|other| self.other(other)).transpose()?;
        let options = self.logs.options(self.top)?;
        let mut feeds = self.logs.feeds()?;
        let mut meter = Meter::new();
        let report = replay::replay(&mut feeds, policies, compare, &options, &mut |progress| meter.tell(progress));
        meter.done();
        self.show(&report)?;
        if report.requests == 0 {
            say::warning("no requests were replayed");
        }
        whole(&report.broken)?;
        match self.fail_if.filter(|fail_if| fail_if.holds(&report)) {
            Some(fail_if) => Err(Fails::new(format_args!("--fail-if '{}' holds", fail_if.text())).into()),
            None => Ok(()),
        }
    }

    /// Are the files that are to be written named so that no log is written over?
    fn check_files(&self) -> Result<(), Wrong> {
        match &self.plot {
            Some(path) if path != Path::new(IN_TERMINAL) => {
                Picture::named(path)?;
            }
            Some(_) if self.json || self.csv => {
                return Err(Wrong::new("--plot without a file draws in the terminal, where --json and --csv print"));
            }
            _ => {}
        }
        let is_html = |path: &Path| path.extension().is_some_and(|its| its == "html" || its == "htm");
        match self.html.as_ref().filter(|path| !is_html(path)) {
            Some(path) => Err(Wrong::new(format_args!("--html {}: name it FILE.html", path.display()))),
            None => Ok(()),
        }
    }

    fn show(&self, report: &Report) -> anyhow::Result<()> {
        let text = match (self.json, self.csv) {
            (true, _) => format!("{:#}\n", replay::to_json(report)),
            (_, true) => replay::to_csv(report),
            _ => replay::to_text(report),
        };
        say::answer(text.as_bytes())?;
        if let Some(path) = &self.html {
            picture::write(path, replay::to_html(report).as_bytes())?;
        }
        match &self.plot {
            Some(path) if path == Path::new(IN_TERMINAL) => {
                say::styled(&replay::to_plot(report).to_text(picture::columns()))
            }
            Some(path) => Picture::named(path)?.draw(&replay::to_plot(report), path),
            None => Ok(()),
        }
    }

    /// The other configuration.
    fn other(&self, text: &str) -> Result<Policies, Wrong> {
        if Path::new(text).exists() {
            let file = ConfigFile::new(Path::new(text));
            return Ok(file.meaning(&file.contents()?)?.policies);
        }
        let limit: Limit = text.parse().map_err(|error| {
            Wrong::new(format_args!("--compare '{text}' is neither a file nor a limit; as a limit: {error}"))
        })?;
        self.policies.policies_of(&[limit], Handling::default())
    }
}

fn fail_if(text: &str) -> Result<FailIf, ConditionError> {
    text.parse()
}
