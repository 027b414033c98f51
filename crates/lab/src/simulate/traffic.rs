//! Arrivals, in the order of time, and the answers that some of those who arrive act on.

use std::fmt;
use std::time::Duration;

use tidegate_core::{Cost, Time};

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, from the beginning of the run.
    pub at: Time,
    /// Who: a number below [`Traffic::clients`].
    pub client: u32,
    /// How much it takes.
    pub cost: Cost,
    /// What is asked for.
    pub route: Route,
}

/// What is asked for. Its `Display` is the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// A call of an API.
    #[default]
    Api,
    /// A page.
    Page,
    /// What a page is made of.
    Asset(u32),
    /// One of many things that can be listed.
    Item(u32),
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api => f.write_str("/api"),
            Self::Page => f.write_str("/"),
            Self::Asset(number) => write!(f, "/assets/{number}"),
            Self::Item(number) => write!(f, "/items/{number}"),
        }
    }
}

/// What a request was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It passed.
    Passed,
    /// It was denied, and can pass after this wait.
    Wait(Duration),
    /// It was denied, and can never pass.
    Never,
}

/// Requests in the order of time. Those that arrive may act on what they are told: after each arrival, and before the
/// next one is asked for, [`Traffic::told`] says what it was. Where answers take their time they can be told later, in
/// any order; what is planned by them then comes no earlier than what was given out already.
pub trait Traffic: Iterator<Item = Arrival> {
    /// How many clients there are.
    fn clients(&self) -> u32;

    /// When there is nothing more to see, for traffic that ends by itself.
    fn ends(&self) -> Option<Time> {
        None
    }

    /// What the last arrival was told.
    fn told(&mut self, _arrival: &Arrival, _reply: Reply) {}
}

/// Several traffics at once, each with clients of its own.
pub(super) struct Merged {
    streams: Vec<Stream>,
    /// The stream of the last arrival.
    last: usize,
}

struct Stream {
    traffic: Box<dyn Traffic>,
    /// The arrival that was asked for and not given yet.
    head: Option<Arrival>,
    /// Whether there is one to ask for: not before the last one was told.
    is_due: bool,
    /// The number of its first client.
    first_client: u32,
}

impl Merged {
    pub(super) fn new(traffics: Vec<Box<dyn Traffic>>) -> Self {
        let mut first_client = 0;
        let stream = |traffic: Box<dyn Traffic>| {
            let stream = Stream { head: None, is_due: true, first_client, traffic };
            first_client += stream.traffic.clients();
            stream
        };
        Self { streams: traffics.into_iter().map(stream).collect(), last: 0 }
    }
}

impl Iterator for Merged {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        for stream in &mut self.streams {
            if std::mem::take(&mut stream.is_due) {
                stream.head = stream.traffic.next();
            }
        }
        // Of equals the first stream's, so that the order is the same in every run.
        let heads = self.streams.iter().enumerate();
        let (first, _) = heads.filter_map(|(i, stream)| Some((i, stream.head?.at))).min_by_key(|(_, at)| *at)?;
        let stream = &mut self.streams[first];
        (self.last, stream.is_due) = (first, true);
        let arrival = stream.head.take()?;
        Some(Arrival { client: arrival.client + stream.first_client, ..arrival })
    }
}

impl Traffic for Merged {
    fn clients(&self) -> u32 {
        self.streams.iter().map(|stream| stream.traffic.clients()).sum()
    }

    fn ends(&self) -> Option<Time> {
        self.streams.iter().map(|stream| stream.traffic.ends()).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    fn told(&mut self, arrival: &Arrival, reply: Reply) {
        if let Some(stream) = self.streams.get_mut(self.last) {
            let own = Arrival { client: arrival.client.saturating_sub(stream.first_client), ..*arrival };
            stream.traffic.told(&own, reply);
        }
    }
}
