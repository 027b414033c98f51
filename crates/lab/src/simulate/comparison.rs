//! Several ways to decide on the same traffic, side by side.

use std::fmt;
use std::time::Duration;

use tidegate_core::{Algorithm, CHARGES_MAX, Limit, Quota, QuotaError, Time};
use tidegate_policy::Policies;

use super::engine::Course;
use super::keeper::{ByPolicies, Keeper, Logs, One, Several};
use super::series::{Recorder, Series};
use super::tally::{REMEMBERED_MAX, Tally};
use super::traffic::Merged;
use super::{CLIENTS_MAX, Chosen, Ground, Pace, PatternError, Random, Traffic};
use crate::Most;
use crate::words::{Clock, grouped};

/// The length of a run that nobody has said, unless the limit's period asks for more.
const LENGTH: Duration = Duration::from_secs(5 * 60);
/// The most patterns of a run.
pub const PATTERNS_MAX: usize = 16;
/// So many periods of the limit are seen at least.
const PERIODS: u32 = 2;

/// A run to be made.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The traffic; several patterns at once are added up, each with clients of its own. At least one.
    pub patterns: Vec<Chosen>,
    /// How many clients each pattern has; `None` as the pattern likes.
    pub clients: Option<u32>,
    /// Whose requests are counted together.
    pub keyed: Keyed,
    /// What all chance comes from.
    pub seed: u64,
    /// How long it lasts; `None` as long as the pattern lasts, or at least five minutes and two periods of the limit.
    pub length: Option<Duration>,
    /// In how many bins of time it is written down, if at all.
    pub bins: Option<usize>,
    /// The pace that patterns take for the limit's; `None` for that of the first limit.
    pub pace: Option<Pace>,
}

/// Whose requests are counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keyed {
    /// Those of each client.
    #[default]
    Client,
    /// All.
    Global,
}

/// Who decides.
#[derive(Clone, Debug)]
pub enum Contestant {
    /// Limits, all or none, under one algorithm; at least one.
    Limits {
        /// How they are enforced.
        algorithm: Algorithm,
        /// What they allow.
        quotas: Vec<Quota>,
    },
    /// Policies, as the proxy has them.
    Policies {
        /// What they are called here: the name of a file.
        name: String,
        /// The policies.
        policies: Box<Policies>,
    },
}

/// What came out, for all who decided.
#[derive(Clone, Debug)]
pub struct Report {
    /// The patterns, as they were written.
    pub patterns: Vec<String>,
    /// What comes, in one line, if there is one pattern.
    pub about: Option<&'static str>,
    /// How many clients there were.
    pub clients: u32,
    /// How long the run was.
    pub length: Duration,
    /// What all chance came from.
    pub seed: u64,
    /// One for each who decided.
    pub rows: Vec<Row>,
}

/// What came out for one who decided. The worst windows are those of one key: the one of which most passed.
#[derive(Clone, Debug)]
pub struct Row {
    /// The algorithm, or the name of the policies.
    pub name: String,
    /// The limits, as they are written; none of policies.
    pub limits: Vec<Limit>,
    /// Requests.
    pub arrivals: u64,
    /// Requests that passed.
    pub admitted: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// Requests that were denied and could never pass.
    pub never: u64,
    /// The most that passed in any second.
    pub worst_second: Most,
    /// The most that passed in any minute.
    pub worst_minute: Most,
    /// The most that passed in any period of the first limit; `None` of policies.
    pub worst_period: Option<Most>,
    /// What the first limit promises.
    pub promise: Option<Pace>,
    /// By how much the most in any period was above the promise; of several limits the largest.
    pub overshoot: Option<u64>,
    /// Denials of clients who had kept to their rate.
    pub false_denials: Option<u64>,
    /// When it was stopped, since there were [`ARRIVALS_MAX`] requests.
    pub stopped: Option<Time>,
    /// The longest wait that was told.
    pub longest_wait: Duration,
    /// What is kept for a key, in bytes.
    pub state_bytes: Option<usize>,
    /// How many keys were seen.
    pub keys: usize,
    /// What happened over time, if that was asked for.
    pub series: Option<Series>,
}

impl Row {
    /// Was the most in any period so far above the promise, half of it or more, that it has to be said aloud?
    pub(super) fn is_far_above(&self) -> bool {
        let over = self.overshoot.unwrap_or(0);
        over > 0 && self.promise.is_some_and(|promise| over >= promise.count().div_ceil(2))
    }
}

/// The order in which the algorithms are shown: the trap first.
#[must_use]
pub fn demonstrated() -> Vec<Algorithm> {
    /// The window that forgets, what was made to mend it, and the bucket that needs no window.
    const ORDER: [&str; 4] = ["fixed-window", "sliding-log", "sliding-counter", "token-bucket"];
    let mut all = Algorithm::ALL.to_vec();
    all.sort_by_key(|algorithm| ORDER.iter().position(|name| *name == algorithm.name()));
    all
}

impl Contestant {
    /// These limits under this algorithm.
    ///
    /// # Errors
    /// The algorithm does not take one of the limits, one of them is unlimited, or there are none or too many.
    pub fn new(algorithm: Algorithm, limits: &[Limit]) -> Result<Self, SimulateError> {
        if limits.is_empty() || limits.len() > CHARGES_MAX {
            return Err(SimulateError::LimitCount(limits.len()));
        }
        let quota = |limit: &Limit| {
            let quota = limit.quota().ok_or(SimulateError::Unlimited)?;
            quota.with_algorithm(algorithm).map_err(|error| SimulateError::Quota { limit: *limit, algorithm, error })
        };
        Ok(Self::Limits { algorithm, quotas: limits.iter().map(quota).collect::<Result<_, _>>()? })
    }

    fn name(&self) -> String {
        match self {
            Self::Limits { algorithm, .. } => algorithm.to_string(),
            Self::Policies { name, .. } => name.clone(),
        }
    }

    fn quotas(&self) -> &[Quota] {
        match self {
            Self::Limits { quotas, .. } => quotas,
            Self::Policies { .. } => &[],
        }
    }

    /// The pace of the first limit; `None` of policies.
    #[must_use]
    pub fn pace(&self) -> Option<Pace> {
        self.promises().into_iter().next()
    }

    fn promises(&self) -> Vec<Pace> {
        self.quotas().iter().map(|quota| Pace::new(quota.rate().count(), quota.rate().period())).collect()
    }
}

impl Simulation {
    /// Runs the traffic against each of these.
    ///
    /// # Errors
    /// A pattern cannot be built, or has too many clients.
    pub fn run(&self, contestants: &[Contestant]) -> Result<Report, SimulateError> {
        let limit = self.pace.or_else(|| contestants.iter().find_map(Contestant::pace));
        let limit = limit.unwrap_or_else(|| Pace::new(60, Duration::from_secs(60)));
        // Traffic for a limit that blocks goes by one in its period.
        let limit = Pace::new(limit.count().max(1), limit.period());
        let least = LENGTH.max(Duration::from_nanos(limit.period_ns()).saturating_mul(PERIODS));
        let length = nanos(self.length.unwrap_or(least));
        let ground = Ground { limit, length_ns: length, clients: self.clients };
        let traffic = self.traffic(&ground)?;
        let end = match (self.length, traffic.ends()) {
            (None, Some(end)) => end,
            _ => Time::from_nanos(length),
        };
        let rows = contestants.iter().map(|contestant| self.row(contestant, &ground, end)).collect::<Result<_, _>>()?;
        Ok(Report {
            patterns: self.patterns.iter().map(ToString::to_string).collect(),
            about: match self.patterns.as_slice() {
                [pattern] => Some(pattern.pattern().about),
                _ => None,
            },
            clients: traffic.clients(),
            length: Duration::from_nanos(end.as_nanos()),
            seed: self.seed,
            rows,
        })
    }

    /// The traffic from its beginning, the same each time.
    fn traffic(&self, ground: &Ground) -> Result<Box<dyn Traffic>, SimulateError> {
        if self.patterns.len() > PATTERNS_MAX {
            return Err(SimulateError::Patterns(self.patterns.len()));
        }
        let mut random = Random::new(self.seed);
        let mut built = self.patterns.iter().map(|pattern| pattern.build(ground, random.branch()));
        let traffic = match self.patterns.len() {
            0 => return Err(SimulateError::NoPattern),
            1 => built.next().ok_or(SimulateError::NoPattern)??,
            _ => Box::new(Merged::new(built.collect::<Result<_, _>>()?)),
        };
        if traffic.clients() > CLIENTS_MAX { Err(SimulateError::Clients(traffic.clients())) } else { Ok(traffic) }
    }

    fn row(&self, contestant: &Contestant, ground: &Ground, end: Time) -> Result<Row, SimulateError> {
        let keyed = if matches!(contestant, Contestant::Policies { .. }) { Keyed::Client } else { self.keyed };
        let course = Course { promises: contestant.promises(), keyed, end };
        let (tally, state_bytes) = self.go(contestant, ground, &course, None)?;
        let mut series = None;
        if let Some(bins) = self.bins {
            // The key of which most passed is known now, so it is the one to watch.
            let watched = tally.worst_key();
            let period = course.promises.first().map_or(60_000_000_000, |promise| promise.period_ns());
            let mut recorder = Recorder::new(end.as_nanos(), bins, watched, Duration::from_nanos(period));
            self.go(contestant, ground, &course, Some(&mut recorder))?;
            series = Some(recorder.into_series());
        }
        let has_limits = !course.promises.is_empty();
        Ok(Row {
            name: contestant.name(),
            limits: contestant.quotas().iter().map(|quota| Limit::Quota(*quota)).collect(),
            arrivals: tally.arrivals,
            admitted: tally.admitted,
            denied: tally.denied,
            never: tally.never,
            worst_second: tally.worst_second(),
            worst_minute: tally.worst_minute(),
            worst_period: tally.worst_period().map(|(most, _)| most),
            promise: course.promises.first().copied(),
            overshoot: tally.overshoot(),
            false_denials: has_limits.then_some(tally.false_denials),
            stopped: tally.stopped,
            longest_wait: tally.longest_wait,
            state_bytes,
            keys: tally.keys_seen(),
            series,
        })
    }

    /// Runs the traffic once, from its beginning, against buckets that are full.
    fn go(
        &self,
        contestant: &Contestant,
        ground: &Ground,
        course: &Course,
        recorder: Option<&mut Recorder>,
    ) -> Result<(Tally, Option<usize>), SimulateError> {
        let mut traffic = self.traffic(ground)?;
        let keys = course.keyed.keys(traffic.clients());
        match contestant {
            Contestant::Limits { algorithm: Algorithm::SlidingLog, quotas } => {
                through(Logs::new(quotas, keys), &mut *traffic, course, recorder)
            }
            Contestant::Limits { quotas, .. } => match quotas.as_slice() {
                [quota] => through(One::new(*quota, keys), &mut *traffic, course, recorder),
                several => through(Several::new(several, keys), &mut *traffic, course, recorder),
            },
            Contestant::Policies { policies, .. } => {
                through(ByPolicies::new(policies, keys), &mut *traffic, course, recorder)
            }
        }
    }
}

fn through<K: Keeper>(
    mut keeper: K,
    traffic: &mut dyn Traffic,
    course: &Course,
    recorder: Option<&mut Recorder>,
) -> Result<(Tally, Option<usize>), SimulateError> {
    let tally = course.run(&mut keeper, traffic, recorder)?;
    Ok((tally, keeper.bytes_per_key()))
}

impl Keyed {
    pub(super) const fn keys(self, clients: u32) -> u32 {
        match self {
            Self::Client => clients,
            Self::Global => 1,
        }
    }

    pub(super) const fn key(self, client: u32) -> u32 {
        match self {
            Self::Client => client,
            Self::Global => 0,
        }
    }
}

/// Why there is nothing to run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimulateError {
    /// A pattern cannot be built.
    Pattern(PatternError),
    /// No pattern was chosen.
    NoPattern,
    /// There are more clients than [`CLIENTS_MAX`].
    Clients(u32),
    /// There are more patterns than [`PATTERNS_MAX`].
    Patterns(usize),
    /// By this instant more has passed than can be remembered for the worst windows.
    Remembered(Time),
    /// No limit, or more than [`CHARGES_MAX`].
    LimitCount(usize),
    /// An unlimited limit decides nothing.
    Unlimited,
    /// An algorithm does not take a limit.
    Quota {
        /// The limit.
        limit: Limit,
        /// The algorithm.
        algorithm: Algorithm,
        /// Why it does not.
        error: QuotaError,
    },
}

impl From<PatternError> for SimulateError {
    fn from(error: PatternError) -> Self {
        Self::Pattern(error)
    }
}

impl fmt::Display for SimulateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(error) => error.fmt(f),
            Self::NoPattern => f.write_str("there is no traffic without a pattern"),
            Self::Clients(clients) => write!(f, "there are {clients} clients; the maximum is {CLIENTS_MAX}"),
            Self::Patterns(count) => write!(f, "there are {count} patterns; the maximum is {PATTERNS_MAX}"),
            Self::Remembered(at) => write!(
                f,
                "at {} the windows of all clients hold more than {} requests, and so many are remembered; choose \
                 fewer clients, lower rates or a shorter duration",
                Clock(*at),
                grouped(REMEMBERED_MAX as u64)
            ),
            Self::LimitCount(count) => {
                write!(f, "there are {count} limits; from 1 to {CHARGES_MAX} are decided at once")
            }
            Self::Unlimited => f.write_str("`unlimited` lets everything pass, so there is nothing to see"),
            Self::Quota { limit, algorithm, error } => write!(f, "`{limit}` under {algorithm}: {error}"),
        }
    }
}

impl std::error::Error for SimulateError {}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
