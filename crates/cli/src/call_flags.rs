//! The flags of the commands that call a service: what is called, how, and whether it may be.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tidegate_lab::simulate;
use tidegate_lab::wire::{Calling, HeaderMap, HeaderName, HeaderValue, Method, Target, TargetError, Trust};

/// What is called.
#[derive(Args, Clone)]
pub(crate) struct CallFlags {
    /// The URL of the service, such as http://127.0.0.1:8080/api.
    #[arg(value_parser = target)]
    url: Target,

    /// A header field of each call; repeat it for several.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = field)]
    fields: Vec<(HeaderName, HeaderValue)>,

    /// The method of each call.
    #[arg(long, value_name = "METHOD", default_value = "GET", value_parser = method)]
    method: Method,

    /// How long an answer is waited for.
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = span)]
    timeout: Duration,

    /// Authorities to trust over TLS, in PEM. [default: the system's]
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// The URL may name another machine than this one: calls in such numbers may harm it.
    #[arg(long)]
    i_own_this_host: bool,
}

impl CallFlags {
    /// All that calls have in common; they say who calls, unless a flag does.
    pub(crate) fn calling(&self, agent: &'static str) -> Calling {
        let mut fields =
            HeaderMap::from_iter([(HeaderName::from_static("user-agent"), HeaderValue::from_static(agent))]);
        let mut given = HeaderMap::new();
        for (name, value) in &self.fields {
            given.append(name.clone(), value.clone());
        }
        fields.extend(given);
        Calling {
            target: self.url.clone(),
            method: self.method.clone(),
            fields,
            timeout: self.timeout,
            is_ours: self.i_own_this_host,
            trust: self.cacert.clone().map_or(Trust::System, Trust::File),
        }
    }
}

fn target(text: &str) -> Result<Target, TargetError> {
    text.parse()
}

fn field(text: &str) -> Result<(HeaderName, HeaderValue), &'static str> {
    let (name, value) =
        text.split_once(':').ok_or("expected a name, a colon and a value, as in 'accept: text/html'")?;
    let name = name.trim().parse().map_err(|_| "what stands before the colon is no name of a header field")?;
    let value = value.trim().parse().map_err(|_| "what stands behind the colon is no value of a header field")?;
    Ok((name, value))
}

fn method(text: &str) -> Result<Method, &'static str> {
    text.parse().map_err(|_| "expected a method such as GET or POST")
}

/// Reads a span.
pub(crate) fn span(text: &str) -> Result<Duration, &'static str> {
    simulate::span(text).ok_or("expected a span such as `90s`, `5min` or `24h`, of at most a year")
}
