//! `tidegate simulate`: what limits would do to traffic of a pattern, on virtual time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};
use tidegate::{Algorithm, Limit};
use tidegate_lab::plot::Plot;
use tidegate_lab::simulate::race::{CALLERS_MAX, Race};
use tidegate_lab::simulate::{
    self, Chosen, Contestant, Keyed, Pattern, PatternError, Report, SimulateError, Simulation, Sweep, SweepError,
};

use crate::call_flags;
use crate::config_file::ConfigFile;
use crate::flags::{self, Wrong};
use crate::picture::{self, IN_TERMINAL, Picture};
use crate::say;

/// Bins of time for the plots.
const BINS: usize = 240;

/// Show what limits would do to traffic, on virtual time: several algorithms side by side.
///
/// Without flags it shows why a fixed window is a trap: 59 requests just before an edge of the clock and 59 just after
/// it, under a limit of 59 a minute.
#[derive(Args)]
#[command(after_long_help = patterns())]
pub(crate) struct Simulate {
    /// The traffic, as NAME or NAME:param=value,... Repeat it to add patterns up, each with clients of its own; --help
    /// lists them. [default: edge-burst]
    #[arg(long = "pattern", value_name = "PATTERN", value_parser = pattern)]
    patterns: Vec<Chosen>,

    /// A limit, such as '60/min burst 10'. Repeat it for several: a request is charged to all of them, or to none.
    /// [default: 59/min]
    #[arg(long = "limit", value_name = "LIMIT", value_parser = flags::limit, allow_hyphen_values = true)]
    limits: Vec<Limit>,

    /// The algorithms that are compared, with commas between them. [default: all that take the limits]
    #[arg(long = "algorithm", value_name = "ALGORITHM", value_delimiter = ',', value_parser = flags::algorithm())]
    algorithms: Vec<Algorithm>,

    /// The policies of a configuration file decide, beside --limit if that is given too. Traffic goes by the first
    /// limit.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Whose requests --limit counts together: those of each client, or all (global).
    #[arg(long, value_name = "WHOSE", default_value = "client", value_parser = keyed())]
    key: Keyed,

    /// How long it lasts, such as 90s or 24h. [default: as long as the pattern, or 5min and two periods of the limit]
    #[arg(long, value_name = "SPAN", value_parser = call_flags::span)]
    duration: Option<Duration>,

    /// How many clients each pattern has. [default: as the pattern likes]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=i64::from(simulate::CLIENTS_MAX)))]
    clients: Option<u32>,

    /// The number that all chance comes from: the same seed gives the same run, on every machine.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Try many bursts or rates of the limit: burst=1..50, rate=10..100:10 (in steps of 10).
    #[arg(long, value_name = "RANGE", value_parser = sweep, conflicts_with_all = ["config", "plot"])]
    sweep: Option<Sweep>,

    /// Show instead how callers that ask at once interleave: a limiter that reads and then writes lets too many pass.
    #[arg(long, conflicts_with_all = ["patterns", "algorithms", "config", "duration", "sweep", "plot"])]
    race: bool,

    /// Draw what happens over time: in the terminal, or into FILE.svg or FILE.png.
    #[arg(long, value_name = "FILE", action = ArgAction::Set, num_args = 0..=1, default_missing_value = IN_TERMINAL)]
    plot: Option<PathBuf>,

    /// Print one JSON object for machines.
    #[arg(long)]
    json: bool,
}

impl Simulate {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.race {
            return self.show_race();
        }
        match &self.plot {
            Some(path) if path != Path::new(IN_TERMINAL) => drop(Picture::named(path)?),
            Some(_) if self.json => {
                return Err(Wrong::new("--plot beside --json takes a file, such as plot.svg").into());
            }
            _ => {}
        }
        let simulation = Simulation {
            patterns: match self.patterns.is_empty() {
                true => vec![pattern(DEFAULT_PATTERN)?],
                false => self.patterns.clone(),
            },
            clients: self.clients,
            keyed: self.key,
            seed: self.seed,
            length: self.duration,
            bins: self
                .plot
                .as_ref()
                .map(|path| if path == IN_TERMINAL { Plot::bins_for(picture::columns()) } else { BINS }),
            pace: None,
        };
        match &self.sweep {
            Some(sweep) => self.show_sweep(sweep, &simulation),
            None => self.show(&simulation.run(&self.contestants()?).map_err(Wrong::new)?),
        }
    }

    fn show(&self, report: &Report) -> anyhow::Result<()> {
        match (self.json, &self.plot) {
            (true, _) => say::styled(&format!("{:#}\n", report.to_json()))?,
            (false, Some(path)) if path == Path::new(IN_TERMINAL) => {
                say::styled(&format!("{}{}", report.to_text(), report.to_plot().to_text(picture::columns())))?;
            }
            (false, _) => say::styled(&report.to_text())?,
        }
        match &self.plot {
            Some(path) if path != Path::new(IN_TERMINAL) => Picture::named(path)?.draw(&report.to_plot(), path),
            _ => Ok(()),
        }
    }

    fn show_sweep(&self, sweep: &Sweep, simulation: &Simulation) -> anyhow::Result<()> {
        let [limit] = self.limits()[..] else { return Err(Wrong::new("--sweep changes one --limit").into()) };
        let algorithms = match self.algorithms.is_empty() {
            true => vec![Algorithm::TokenBucket],
            false => self.algorithms.clone(),
        };
        let swept = sweep.run(simulation, limit, &algorithms).map_err(Wrong::new)?;
        say::styled(&if self.json { format!("{:#}\n", swept.to_json()) } else { swept.to_text() })
    }

    fn show_race(&self) -> anyhow::Result<()> {
        let [limit] = self.limits()[..] else { return Err(Wrong::new("--race is for one --limit").into()) };
        let quota = match limit {
            Limit::Quota(quota) => quota,
            Limit::Block { .. } | Limit::Unlimited => return Err(Wrong::new("--race needs a limit with a rate").into()),
        };
        let callers = self.clients.unwrap_or(2);
        if !(2..=CALLERS_MAX).contains(&callers) {
            return Err(Wrong::new(format_args!("--race takes from 2 to {CALLERS_MAX} --clients")).into());
        }
        let race = Race::run(quota, callers);
        say::styled(&if self.json { format!("{:#}\n", race.to_json()) } else { race.to_text() })
    }

    fn limits(&self) -> Vec<Limit> {
        if self.limits.is_empty() { vec![limit_by_default()] } else { self.limits.clone() }
    }

    /// Who decides: the limits under each algorithm, and the policies of a file.
    fn contestants(&self) -> Result<Vec<Contestant>, Wrong> {
        let is_by_limits = self.config.is_none() || !self.limits.is_empty() || !self.algorithms.is_empty();
        let mut contestants = match is_by_limits {
            true => self.by_limits()?,
            false => Vec::new(),
        };
        if let Some(path) = &self.config {
            let file = ConfigFile::new(path);
            let config = file.meaning(&file.contents()?)?;
            let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            contestants.push(Contestant::Policies { name, policies: Box::new(config.policies) });
        }
        Ok(contestants)
    }

    fn by_limits(&self) -> Result<Vec<Contestant>, Wrong> {
        let limits = self.limits();
        let contestant = |algorithm: &Algorithm| Contestant::new(*algorithm, &limits);
        if !self.algorithms.is_empty() {
            return self.algorithms.iter().map(contestant).collect::<Result<_, _>>().map_err(Wrong::new);
        }
        // All that take the limits; if none does, the reason of the one that takes most.
        let all = simulate::demonstrated();
        let (taking, refused): (Vec<_>, Vec<_>) = all.iter().map(contestant).partition(Result::is_ok);
        match taking.into_iter().collect::<Result<Vec<_>, SimulateError>>() {
            Ok(taking) if !taking.is_empty() => Ok(taking),
            _ => {
                let last = refused.into_iter().filter_map(Result::err).next_back();
                Err(last.map_or_else(|| Wrong::new("nobody decides"), Wrong::new))
            }
        }
    }
}

const DEFAULT_PATTERN: &str = "edge-burst";

fn limit_by_default() -> Limit {
    // Written here, and read by the same tests as every limit.
    "59/min".parse().unwrap_or(Limit::Unlimited)
}

fn pattern(text: &str) -> Result<Chosen, PatternError> {
    text.parse()
}

fn sweep(text: &str) -> Result<Sweep, SweepError> {
    text.parse()
}

fn keyed() -> impl TypedValueParser<Value = Keyed> {
    PossibleValuesParser::new(["client", "global"]).map(|name| match name.as_str() {
        "global" => Keyed::Global,
        _ => Keyed::Client,
    })
}

/// What patterns there are, for the help.
fn patterns() -> String {
    let mut text = String::from("Patterns, each with its parameters, which all take clients and cost (tokens) too:\n");
    for pattern in Pattern::all() {
        text.push_str(&format!("\n  {}: {}\n", pattern.name, pattern.about));
        for (param, meaning) in pattern.params {
            text.push_str(&format!("    {param:<9} {meaning}\n"));
        }
    }
    text
}
