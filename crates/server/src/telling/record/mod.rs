//! What is told of one request when its answer has ended: to the access log, and to the tracer.
//!
//! A [`Record`] begins outside of the limit layer, so that it sees denials, and tells itself when it is dropped: with
//! the last piece of the answer's body, or with a request that was given up. What is learned further in is noted on the
//! way ([`Notes`]). Where nobody wants to be told, there is no record, and a request pays one look for it.

mod finding;
mod head;
mod notes;
mod service;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode, Version};
use tidegate::Time;
use tidegate_http::{Onlooker, RequestAttributes, peer_in_extensions};
use tidegate_policy::{Client, KeySalt};

pub(crate) use finding::{Finding, Ruling};
pub(crate) use head::Head;
pub(crate) use notes::{Noted, Notes};
pub(crate) use service::Recorded;

use crate::telling::access_log::AccessLog;
use crate::telling::trace::{Position, Tracer};
use crate::{Believed, Clock, Peer};

/// The status of a request that was given up before it was answered, as nginx has it.
const GIVEN_UP: u16 = 499;

/// Finds the client of a request as the policies in force do.
pub(crate) type ClientLookup = Arc<dyn Fn(&RequestAttributes<'_>) -> Client + Send + Sync>;

/// Who keeps records, and for whom.
pub(crate) struct Recorder {
    pub(crate) clock: Clock,
    pub(crate) client: ClientLookup,
    pub(crate) salt: Arc<KeySalt>,
    pub(crate) log: Option<Arc<AccessLog>>,
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// Whose word on traces is taken.
    pub(crate) believed: Believed,
}

impl Recorder {
    /// Begins the record of `request`, which carries along what notes on it need.
    fn begin<B>(self: &Arc<Self>, request: &mut Request<B>) -> Box<Record> {
        let started_at = (self.clock)();
        let peer = peer_in_extensions(request.extensions());
        let client = peer.map(|_| (self.client)(&RequestAttributes::new(request, peer)));
        let head = Head::of(request);
        let is_believed = peer.is_some_and(|peer| self.believed.believes(peer.into()));
        let position = self.tracer.as_ref().map(|tracer| tracer.begin(request.headers_mut(), is_believed));
        let notes = Arc::new(Notes::new(Arc::clone(&self.salt)));
        Onlooker::new(Arc::<Notes>::clone(&notes)).accompany(request);
        request.extensions_mut().insert(Noted(Arc::clone(&notes)));
        Box::new(Record {
            recorder: Arc::clone(self),
            notes,
            head,
            version: request.version(),
            peer,
            client,
            started_at,
            position,
            status: None,
            sent_bytes: 0,
            is_whole: false,
        })
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("log", &self.log).field("tracer", &self.tracer).finish_non_exhaustive()
    }
}

/// One request and what came of it.
pub(crate) struct Record {
    recorder: Arc<Recorder>,
    notes: Arc<Notes>,
    pub(crate) head: Head,
    pub(crate) version: Version,
    pub(crate) peer: Option<Peer>,
    pub(crate) client: Option<Client>,
    pub(crate) started_at: Time,
    /// Its place in a trace.
    position: Option<Position>,
    /// None until there is an answer.
    status: Option<StatusCode>,
    /// Bytes of the answer's body that were handed to the connection.
    pub(crate) sent_bytes: u64,
    /// Was all of the answer handed to the connection?
    pub(crate) is_whole: bool,
}

impl Record {
    /// The trace that it belongs to, if requests are traced.
    pub(crate) fn trace(&self) -> Option<u128> {
        self.position.map(|position| position.own.trace)
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> u16 {
        self.status.map_or(GIVEN_UP, |status| status.as_u16())
    }

    /// What was decided; `None` if it was given up before, or refused before anything could be decided.
    pub(crate) fn finding(&self) -> Option<&Finding> {
        self.notes.finding()
    }

    /// The time from passing it on to the end of the response's header section; `None` if there was no response.
    pub(crate) fn upstream_time(&self) -> Option<Duration> {
        self.notes.upstream_time()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let took = (self.recorder.clock)().since(self.started_at);
        if let Some(meant) = self.notes.take_meant() {
            (self.head, self.client) = (meant.head, Some(meant.client));
        }
        self.recorder.log.iter().for_each(|log| log.tell(self, took));
        if let (Some(tracer), Some(position)) = (&self.recorder.tracer, &self.position) {
            tracer.end(position, self, took);
        }
    }
}
