//! Several ways to decide on the same traffic, side by side.

use std::time::Duration;

use tidegate_core::{Algorithm, Limit, Time};

use super::engine::Course;
use super::keeper::{ByPolicies, Keeper, Logs, One, Several};
use super::series::Recorder;
use super::tally::Tally;
use super::traffic::Merged;
use super::{CLIENTS_MAX, Chosen, Contestant, Ground, Keyed, Pace, Random, Report, Row, SimulateError, Traffic};

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
        traffic(&self.patterns, ground, self.seed)
    }

    fn row(&self, contestant: &Contestant, ground: &Ground, end: Time) -> Result<Row, SimulateError> {
        let keyed = if matches!(contestant, Contestant::Policies { .. }) { Keyed::Client } else { self.keyed };
        let course = Course::new(contestant.promises(), keyed, end);
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

/// The traffic of these patterns together, each with clients of its own: of a seed always the same.
///
/// # Errors
/// There is no pattern or too many, one cannot be built, or there are too many clients.
pub fn traffic(patterns: &[Chosen], ground: &Ground, seed: u64) -> Result<Box<dyn Traffic>, SimulateError> {
    if patterns.len() > PATTERNS_MAX {
        return Err(SimulateError::Patterns(patterns.len()));
    }
    let mut random = Random::new(seed);
    let mut built = patterns.iter().map(|pattern| pattern.build(ground, random.branch()));
    let traffic = match patterns.len() {
        0 => return Err(SimulateError::NoPattern),
        1 => built.next().ok_or(SimulateError::NoPattern)??,
        _ => Box::new(Merged::new(built.collect::<Result<_, _>>()?)),
    };
    if traffic.clients() > CLIENTS_MAX { Err(SimulateError::Clients(traffic.clients())) } else { Ok(traffic) }
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

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
