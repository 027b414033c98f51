//! `tidegate tune`: which limit leaves the callers of a log alone.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tidegate::policy::{AddressField, ClientAddress, KeyParts, KeyPartsError, NameError, Trust, TrustError};
use tidegate::{Limit, Quota};
use tidegate_lab::tune::{self, Allow, Ask, Of, Rule};

use crate::flags::Wrong;
use crate::log_flags::{LogFlags, Meter, whole};
use crate::picture::Picture;
use crate::say;

/// Find the smallest limits that leave the callers of an access log alone.
///
/// For each period it says the smallest count, then for a range of counts the smallest burst, and whom each would have
/// denied. A replay with any of them touches exactly as many as it says.
#[derive(Args)]
pub(crate) struct Tune {
    #[command(flatten)]
    logs: LogFlags,

    /// Whose requests are counted together: client (its address), segment:NUMBER, header:NAME, global, or several of
    /// these with commas between them.
    #[arg(long, value_name = "PARTS", default_value = "client", value_parser = key)]
    key: KeyParts,

    /// The share that must stay untouched.
    #[arg(long, value_name = "SHARE", default_value = "99.9%")]
    allow: Allow,

    /// A share of what: of the clients, so many of whom are never denied; or of the requests.
    #[arg(long, value_name = "WHAT", default_value = "clients", value_parser = of)]
    of: Of,

    /// The periods of the limits, with commas between them, such as s,min,h or 15min.
    #[arg(long = "period", value_name = "PERIODS", default_value = "s,min,h", value_delimiter = ',', value_parser = period)]
    periods: Vec<Duration>,

    /// Networks of your own proxies, whose word on the client's address is believed, as in `tidegate proxy`.
    #[arg(long, value_name = "CIDR", value_parser = trust)]
    trust: Vec<Trust>,

    /// The field in which those proxies name the client.
    #[arg(long, value_name = "FIELD", default_value = "x-forwarded-for", value_parser = address_field)]
    client_from: AddressField,

    /// Look at some callers apart: robots, by what they say of themselves; floods, of 50 requests within 10 seconds. They
    /// are no part of the share, and what the limits would do to them is shown beside.
    #[arg(long, value_name = "RULES", value_delimiter = ',', value_parser = rule)]
    set_apart: Vec<Rule>,

    /// Print one JSON object for machines.
    #[arg(long)]
    json: bool,

    /// Draw the burst that each rate needs, into FILE.svg or FILE.png.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Write a configuration file to start from; it must not be there yet.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

impl Tune {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let options = self.logs.options(0)?;
        if let Some(path) = self.write.as_ref().filter(|path| path.exists()) {
            return Err(Wrong::new(format_args!("--write: {} is there already", path.display())).into());
        }
        let picture = self.plot.as_deref().map(|path| Picture::named(path).map(|kind| (kind, path))).transpose()?;
        let mut feeds = self.logs.feeds()?;
        let client = ClientAddress {
            trust: self.trust.into_iter().collect(),
            field: self.client_from,
            ..ClientAddress::default()
        };
        let ask = Ask { allow: self.allow, of: self.of, periods: self.periods, set_apart: self.set_apart };
        let mut meter = Meter::new();
        let answer = tune::tune(&mut feeds, &self.key, client, ask, &options, &mut |progress| meter.tell(progress));
        meter.done();
        let answer = answer.map_err(Wrong::new)?;
        let text = match self.json {
            true => format!("{:#}\n", tune::to_json(&answer)),
            false => tune::to_text(&answer),
        };
        say::answer(text.as_bytes())?;
        whole(answer.broken())?;
        anyhow::ensure!(answer.requests > 0, "there are no requests to find a limit from");
        if let Some((kind, path)) = picture {
            kind.draw(&tune::to_bars(&answer), path)?;
        }
        self.write.as_ref().map_or(Ok(()), |path| write(path, &tune::to_toml(&answer)))
    }
}

/// Writes a file that is not there yet.
fn write(path: &Path, contents: &str) -> anyhow::Result<()> {
    let file = fs::OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(contents.as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))?;
    say::line(&format!("wrote {}", path.display()));
    Ok(())
}

fn key(text: &str) -> Result<KeyParts, KeyPartsError> {
    text.parse()
}

fn trust(text: &str) -> Result<Trust, TrustError> {
    text.parse()
}

fn address_field(text: &str) -> Result<AddressField, NameError> {
    text.parse()
}

fn rule(text: &str) -> Result<Rule, &'static str> {
    text.parse()
}

fn of(text: &str) -> Result<Of, &'static str> {
    match text {
        "clients" => Ok(Of::Clients),
        "requests" => Ok(Of::Requests),
        _ => Err("expected clients or requests"),
    }
}

/// A period, as limits write it behind the slash.
fn period(text: &str) -> Result<Duration, String> {
    let limit: Limit = format!("1/{}", text.trim()).parse().map_err(|error| format!("{error}"))?;
    let period = limit.quota().as_ref().map(Quota::rate).map(|rate| rate.period());
    period.ok_or_else(|| "expected a period such as min".to_owned())
}
