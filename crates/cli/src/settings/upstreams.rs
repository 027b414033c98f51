//! Where allowed requests go.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context as _, bail};
use clap::Args;
use tidegate_server::{Destination, HostTold, UpstreamBounds, UpstreamTls};

use super::Group;
use super::field::{Field, Given, Seconds};

/// Where allowed requests go.
#[derive(Args, Clone, Default)]
pub(crate) struct Upstreams {
    /// The API to protect, such as http://127.0.0.1:9000; or https://HOST, h2c://HOST, unix:/path. Can be repeated,
    /// with what it is for in front: api.example.org/v1=URL.
    ///
    /// h2c is HTTP/2 without TLS. In front stands a host (or *.example.org, or none for any), a path with which those
    /// of the requests begin, or both. The most special one counts, and the path is passed on whole.
    #[arg(long, value_name = "URL")]
    upstream: Vec<Given<Destination>>,

    /// Certificates of the authorities that sign upstreams over https, in PEM. [default: those the system trusts]
    #[arg(long, value_name = "FILE")]
    upstream_ca: Option<Given<PathBuf>>,

    /// Which host upstreams are told: that of the client's request (client), or that of their own URL (upstream), as many
    /// of those that are elsewhere on the network want it. [default: client]
    #[arg(long, value_name = "WHOSE")]
    upstream_host: Option<Given<Told>>,

    /// Seconds to wait for the upstream's answer before a 504. [default: 60]
    #[arg(long, value_name = "SECONDS")]
    upstream_timeout: Option<Given<Seconds<1, 86_400>>>,

    /// Seconds for which nothing may pass on a WebSocket or another upgraded connection, in a gRPC call, or in an event
    /// stream. [default: 3600]
    #[arg(long, value_name = "SECONDS")]
    stream_timeout: Option<Given<Seconds<1, 604_800>>>,
}

impl Group for Upstreams {
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)> {
        vec![
            ("upstream", &mut self.upstream),
            ("upstream_ca", &mut self.upstream_ca),
            ("upstream_host", &mut self.upstream_host),
            ("upstream_timeout", &mut self.upstream_timeout),
            ("stream_timeout", &mut self.stream_timeout),
        ]
    }
}

impl Upstreams {
    /// The upstreams; none if none is given.
    ///
    /// # Errors
    /// Two are for the same requests, or there are too many.
    pub(crate) fn upstreams(&self) -> anyhow::Result<Option<tidegate_server::Upstreams>> {
        if self.upstream.is_empty() {
            return Ok(None);
        }
        let destinations = self.upstream.iter().map(|given| Destination::clone(given)).collect();
        Ok(Some(tidegate_server::Upstreams::new(destinations)?))
    }

    /// What is trusted of upstreams over TLS; nothing if there is none.
    ///
    /// # Errors
    /// The authorities cannot be read, or none of the upstreams needs them.
    pub(crate) fn tls(&self) -> anyhow::Result<Option<UpstreamTls>> {
        let is_needed = self.upstream.iter().any(|given| given.upstream().is_over_tls());
        match &self.upstream_ca {
            Some(_) if !is_needed => bail!("--upstream-ca is for upstreams over https, and there is none"),
            Some(file) => Ok(Some(UpstreamTls::trusting_file(file).context("--upstream-ca")?)),
            None if is_needed => Ok(Some(UpstreamTls::trusting_system().context("try --upstream-ca")?)),
            None => Ok(None),
        }
    }

    pub(crate) fn host_told(&self) -> HostTold {
        self.upstream_host.as_ref().map_or_else(HostTold::default, |told| told.0)
    }

    /// For how long is waited.
    pub(super) fn bounds(&self) -> UpstreamBounds {
        let mut bounds = UpstreamBounds::default();
        if let Some(timeout) = &self.upstream_timeout {
            bounds.answer_timeout = timeout.duration();
        }
        if let Some(timeout) = &self.stream_timeout {
            bounds.stream_timeout = timeout.duration();
        }
        bounds
    }
}

#[derive(Clone, Copy)]
struct Told(HostTold);

impl FromStr for Told {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "client" => Ok(Self(HostTold::Client)),
            "upstream" => Ok(Self(HostTold::Upstream)),
            _ => Err("expected `client` or `upstream`"),
        }
    }
}
