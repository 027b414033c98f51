//! From logs to requests in the order of time.
//!
//! Whoever looks at them is an [`Audience`]: it is shown each line when it is read, keeps a few bytes of it, and is given
//! them back when the line's turn has come.

use tidegate_core::Time;

use crate::log::{Bound, Feeds, Line, Origin, Outcome, Read, Reorder, origin};
use crate::replay::{Example, Filter};

/// The most lines that are shown as examples of what cannot be read.
const EXAMPLES_MAX: usize = 5;
/// So many lines are read between two calls that tell of progress.
const PROGRESS_LINES: u64 = 1 << 16;

/// What counts of a log, and how it is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only these requests.
    pub filter: Option<Filter>,
    /// Only requests from this second on, since 1970.
    pub since_s: Option<u64>,
    /// Only requests before this second.
    pub until_s: Option<u64>,
    /// How late a line may be.
    pub bound: Bound,
    /// How many clients and paths a report names.
    pub top: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { filter: None, since_s: None, until_s: None, bound: Bound::default(), top: 10 }
    }
}

/// How far the reading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Lines read so far.
    pub lines: u64,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Intake {
    pub(crate) lines: u64,
    /// Empty lines and comments.
    pub(crate) blank: u64,
    pub(crate) unparsed: u64,
    /// Requests that do not count, by the options.
    pub(crate) excluded: u64,
    pub(crate) requests: u64,
    pub(crate) late: u64,
    pub(crate) has_whole_stamps: bool,
    /// What cannot be read, by example.
    pub(crate) examples: Vec<Example>,
    /// Logs that end where they should not.
    pub(crate) broken: Vec<String>,
}

/// Who looks at requests.
pub(crate) trait Audience {
    /// What is kept of a request until its turn.
    type Held: Copy;

    /// A request was read.
    fn hold(&mut self, line: &Line<'_>, origin: Origin<'_>) -> Self::Held;

    /// Its turn has come.
    fn take(&mut self, now: Time, held: Self::Held);
}

/// Reads logs to their end, and shows the audience each request that counts.
pub(crate) fn stream<A: Audience>(
    feeds: &mut Feeds,
    options: &Options,
    audience: &mut A,
    progress: &mut dyn FnMut(Progress),
) -> Intake {
    let mut intake = Intake::default();
    let mut reorder = Reorder::new(options.bound);
    let names: Vec<String> = feeds.as_slice().iter().map(|feed| feed.name().to_owned()).collect();
    loop {
        let read = feeds.next(|read| {
            let Read { log, line: number, newest_s, outcome } = read;
            intake.lines += 1;
            let fault = match outcome {
                Outcome::Request(line) => match origin(line.client) {
                    Ok(origin) => {
                        // A request that does not count has its place among those of its second all the same.
                        let held = intake.counts(line, options).then(|| audience.hold(line, origin));
                        let mut each = |now, held: Option<A::Held>| {
                            if let Some(held) = held {
                                audience.take(now, held);
                            }
                        };
                        return reorder.push(line.time, log, held, newest_s, &mut each);
                    }
                    Err(fault) => fault.to_string(),
                },
                Outcome::Nothing => {
                    intake.blank += 1;
                    return;
                }
                Outcome::Fault(fault) => fault.to_string(),
                Outcome::TooLong(start) => {
                    format!("line of at most 1 MiB expected, got {}...", start[..start.len().min(20)].escape_ascii())
                }
                Outcome::Broken(error) => {
                    intake.lines -= 1;
                    let whole = number - 1;
                    intake.broken.push(format!("{} breaks off after line {whole}: {error}", names[usize::from(log)]));
                    return;
                }
            };
            intake.fault(&names[usize::from(log)], number, fault);
        });
        if read.is_none() {
            break;
        }
        if intake.lines % PROGRESS_LINES == 0 {
            progress(Progress { lines: intake.lines });
        }
    }
    reorder.finish(&mut |now, held| {
        if let Some(held) = held {
            audience.take(now, held);
        }
    });
    intake.late = reorder.late();
    intake
}

impl Intake {
    fn counts(&mut self, line: &Line<'_>, options: &Options) -> bool {
        self.has_whole_stamps |= line.time.is_whole;
        let is_within = options.since_s.is_none_or(|since| line.time.unix_s >= since)
            && options.until_s.is_none_or(|until| line.time.unix_s < until);
        let counts = is_within && options.filter.as_ref().is_none_or(|filter| filter.takes(line));
        *(if counts { &mut self.requests } else { &mut self.excluded }) += 1;
        counts
    }

    fn fault(&mut self, log: &str, line: u64, what: String) {
        self.unparsed += 1;
        if self.examples.len() < EXAMPLES_MAX && self.examples.iter().all(|example| example.what != what) {
            self.examples.push(Example { log: log.to_owned(), line, what });
        }
    }
}
