//! Which logs are read, how, and what of them counts; and what is told while they are read.

use std::io::IsTerminal as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tidegate::{Clock as _, SystemClock, Time};
use tidegate_lab::ConditionError;
use tidegate_lab::log::{Bound, FILES_MAX, Feed, Feeds, Format, FormatError, Place, PlaceError, Source, moment};
use tidegate_lab::replay::{Filter, Options, Progress};

use crate::flags::Wrong;
use crate::say;

/// A format; `None` is the one that a log's first lines are in.
type Asked = Option<Format>;

/// Which logs are read, and what of them counts.
#[derive(Args, Debug)]
pub(crate) struct LogFlags {
    /// The access logs: plain, or compressed by gzip, zstd or bzip2; - is standard input. Several are read as one stream,
    /// whatever their order.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,

    /// How their lines are written: auto, combined, common, main, vhost-combined, vhost-common, caddy, traefik,
    /// traefik-json, envoy, haproxy, alb, elb, cloudfront, w3c, json; or written down as '$remote_addr [$time_local] ...'
    /// (nginx), '%h %l %u %t ...' (Apache), '%h %^[%d:%t %^] ...' (goaccess) or '{client} [{time}] ...'.
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = format)]
    format: Asked,

    /// The zone of times that name none, such as +02:00 or Europe/Berlin. Of an hour that comes twice the earlier one is
    /// meant, unless that is 15 minutes before the line before.
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = place)]
    tz: Place,

    /// Only requests from this moment on, such as 2026-11-29 or 2026-11-29T15:04:28Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Only requests before this moment.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// Only requests of which this holds, such as 'status >= 500 and path ~ "^/api"'.
    #[arg(long = "where", value_name = "CONDITION", value_parser = filter)]
    filter: Option<Filter>,

    /// How many seconds a line may stand behind newer ones, since servers write it when the response ends.
    #[arg(long, value_name = "SECONDS", default_value_t = Bound::default().seconds)]
    reorder: u64,

    /// The most lines that are held for that.
    #[arg(long, value_name = "LINES", default_value_t = NonZeroUsize::new(Bound::default().lines).unwrap_or(NonZeroUsize::MIN))]
    reorder_lines: NonZeroUsize,
}

impl LogFlags {
    /// Opens the logs.
    ///
    /// # Errors
    /// One of them cannot be read, or is of no known format.
    pub(crate) fn feeds(&self) -> anyhow::Result<Feeds> {
        if self.logs.len() > FILES_MAX {
            return Err(Wrong::new(format_args!(
                "{} logs are too many at once; the maximum is {FILES_MAX}",
                self.logs.len()
            ))
            .into());
        }
        for (at, path) in self.logs.iter().enumerate() {
            let is_again = self.logs[..at].contains(path);
            if is_again && path.as_os_str() == "-" {
                return Err(Wrong::new("standard input, -, can be read but once").into());
            } else if is_again {
                return Err(Wrong::new(format_args!("{} is named twice", path.display())).into());
            }
        }
        let open = |path: &PathBuf| -> anyhow::Result<Feed> {
            Ok(Feed::new(Source::open(path)?, self.format.as_ref(), self.tz.clone())?)
        };
        Ok(Feeds::new(self.logs.iter().map(open).collect::<anyhow::Result<_>>()?))
    }

    /// What of them counts.
    ///
    /// # Errors
    /// A moment cannot be read.
    pub(crate) fn options(&self, top: usize) -> Result<Options, Wrong> {
        let moment = |flag: &str, text: &Option<String>| match text {
            Some(text) => moment(text, &self.tz).map(Some).map_err(|error| Wrong::new(format_args!("{flag}: {error}"))),
            None => Ok(None),
        };
        let (since_s, until_s) = (moment("--since", &self.since)?, moment("--until", &self.until)?);
        if since_s.zip(until_s).is_some_and(|(since, until)| until <= since) {
            return Err(Wrong::new("--until is not after --since, so that nothing is left"));
        }
        Ok(Options {
            filter: self.filter.clone(),
            since_s,
            until_s,
            bound: Bound { seconds: self.reorder, lines: self.reorder_lines.get() },
            top,
        })
    }
}

/// Were the logs read to their ends? What a part of them shows is printed before; nobody must take it for the whole.
pub(crate) fn whole(broken: &[String]) -> anyhow::Result<()> {
    match broken {
        [] => Ok(()),
        _ => Err(anyhow::anyhow!("the answer is that of a part: {}", broken.join("; "))),
    }
}

fn format(text: &str) -> Result<Asked, FormatError> {
    if text.eq_ignore_ascii_case("auto") { Ok(None) } else { text.parse().map(Some) }
}

fn place(text: &str) -> Result<Place, PlaceError> {
    text.parse()
}

fn filter(text: &str) -> Result<Filter, ConditionError> {
    text.parse()
}

/// Tells on a terminal how far the reading is, once it has taken a while.
pub(crate) struct Meter {
    clock: Option<SystemClock>,
    start: Time,
    next: Time,
}

impl Meter {
    /// The first word comes after this, and then one each.
    const EACH: Duration = Duration::from_millis(500);

    pub(crate) fn new() -> Self {
        let clock = std::io::stderr().is_terminal().then(SystemClock::new);
        let start = clock.as_ref().map_or(Time::ZERO, |clock| clock.now());
        Self { clock, start, next: start.saturating_add(2 * Self::EACH) }
    }

    pub(crate) fn tell(&mut self, progress: Progress) {
        let Some(clock) = &self.clock else { return };
        let now = clock.now();
        if now >= self.next {
            self.next = now.saturating_add(Self::EACH);
            let seconds = now.since(self.start).as_secs_f64();
            say::progress(&format!("{} lines, {:.0} a second", progress.lines, progress.lines as f64 / seconds));
        }
    }

    /// Wipes what was told.
    pub(crate) fn done(self) {
        if self.clock.is_some() {
            say::progress("");
        }
    }
}
