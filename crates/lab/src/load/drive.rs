//! Requests, sent when they are planned.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::header::{HeaderValue, RETRY_AFTER};
use tidegate::Time;
use tokio::signal::ctrl_c;

use super::pacer::Pacer;
use super::tally::{Tally, Verdict};
use super::{Identity, LENGTH, LoadError, Options, Report, Snapshot};
use crate::simulate::{Arrival, Ground, Reply, Traffic, traffic};
use crate::wire::{Caller, Calling, Exchange, OpenError};

/// How often one hears how far it is.
const TOLD_EACH: Duration = Duration::from_millis(500);
/// The address of the first client, if each has its own; they go on from there.
const FIRST_ADDRESS: u32 = 0x7f01_0001;

/// Loads a service. `progress` hears now and then how far it is. Being interrupted ends it early, with what is known.
///
/// It opens sockets and waits, on a runtime of its own: it is not for use within another.
///
/// # Errors
/// The target cannot be called, may not, or there is no such traffic.
pub fn load(calling: Calling, options: &Options, progress: &mut dyn FnMut(&Snapshot)) -> Result<Report, LoadError> {
    let length = options.length.unwrap_or(LENGTH);
    let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
    let ground = Ground { limit: options.pace, length_ns, clients: options.clients };
    let traffic = traffic(&options.patterns, &ground, options.seed).map_err(LoadError::Traffic)?;
    let end = match (options.length, traffic.ends()) {
        (None, Some(end)) => end,
        _ => Time::from_nanos(length_ns),
    };
    let failed = |error| LoadError::Open(OpenError::Runtime(error));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let pacer = Pacer::start().map_err(failed)?;
    runtime.block_on(async {
        let target = calling.target.clone();
        let caller = Caller::new(calling).await.map_err(LoadError::Open)?;
        if matches!(options.identity, Identity::Address) && !caller.is_on_loopback() {
            return Err(LoadError::NotLoopback);
        }
        let tally = Tally::new(target, options, traffic.clients(), Duration::from_nanos(end.as_nanos()));
        let drive = Drive { caller: &caller, options, pacer, begin: caller.now(), end, tally };
        Ok(drive.run(traffic, progress).await)
    })
}

struct Drive<'a> {
    caller: &'a Caller,
    options: &'a Options,
    pacer: Pacer,
    begin: Time,
    end: Time,
    tally: Tally,
}

impl<'a> Drive<'a> {
    async fn run(mut self, mut traffic: Box<dyn Traffic>, progress: &mut dyn FnMut(&Snapshot)) -> Report {
        let mut on_their_way = FuturesUnordered::new();
        let mut interrupt = std::pin::pin!(ctrl_c());
        let mut tell_at = self.begin.saturating_add(TOLD_EACH);
        let mut next = self.plan(&mut *traffic);
        while next.is_some() || !on_their_way.is_empty() {
            let planned = next.map_or(Time::ZERO, |arrival| self.instant(&arrival));
            let has_room = on_their_way.len() < self.options.at_once_max;
            tokio::select! {
                Some((arrival, exchange)) = on_their_way.next(), if !on_their_way.is_empty() => {
                    let reply = self.note(&arrival, exchange);
                    traffic.told(&arrival, reply);
                    if next.is_none() {
                        // A herd may have planned to come back.
                        next = self.plan(&mut *traffic);
                    }
                }
                () = self.pacer.until(planned), if next.is_some() && has_room => {
                    if let Some(arrival) = next {
                        on_their_way.push(self.send(arrival));
                    }
                    next = self.plan(&mut *traffic);
                }
                _ = &mut interrupt => {
                    self.tally.interrupt();
                    break;
                }
            }
            let now = self.caller.now();
            if now >= tell_at {
                tell_at = now.saturating_add(TOLD_EACH);
                progress(&self.tally.snapshot(now.since(self.begin), on_their_way.len()));
            }
        }
        let took = self.caller.now().since(self.begin);
        self.tally.into_report(took)
    }

    /// The next arrival before the end, with its instant planned.
    fn plan(&self, traffic: &mut dyn Traffic) -> Option<Arrival> {
        let arrival = traffic.next().filter(|arrival| arrival.at < self.end)?;
        self.pacer.plan(self.instant(&arrival));
        Some(arrival)
    }

    /// When an arrival is planned, on the caller's clock.
    fn instant(&self, arrival: &Arrival) -> Time {
        self.begin.saturating_add(Duration::from_nanos(arrival.at.as_nanos()))
    }

    fn send(&self, arrival: Arrival) -> impl Future<Output = (Arrival, Exchange)> + use<'a> {
        let (caller, options) = (self.caller, self.options);
        async move {
            let name = || HeaderValue::from_str(&format!("client-{}", arrival.client)).ok();
            let (field, from) = match &options.identity {
                Identity::None => (None, None),
                Identity::Field(field) => (name().map(|name| (field.clone(), name)), None),
                Identity::Address => (None, Some(IpAddr::V4(Ipv4Addr::from_bits(FIRST_ADDRESS + arrival.client)))),
            };
            let path = options.has_paths.then(|| arrival.route.to_string());
            (arrival, caller.call(path.as_deref(), field.as_slice(), from).await)
        }
    }

    fn note(&mut self, arrival: &Arrival, exchange: Exchange) -> Reply {
        let planned = self.instant(arrival);
        let (verdict, reply) = match &exchange.outcome {
            Ok(answer) if self.options.denials.contains(&answer.status) => {
                let seconds = answer.fields.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
                (Verdict::Denied, Reply::Wait(Duration::from_secs(seconds.unwrap_or(1))))
            }
            Ok(answer) if answer.status.is_server_error() => (Verdict::Failed, Reply::Passed),
            Ok(_) => (Verdict::Passed, Reply::Passed),
            Err(_) => (Verdict::Failed, Reply::Passed),
        };
        self.tally.count(arrival, planned, &exchange, verdict);
        reply
    }
}
