//! Commands become replies, in their order.
//!
//! What the store knows at once is answered at once. What a store elsewhere is asked for one pipeline is asked together,
//! and shares its calls.

use std::sync::Arc;

use futures_util::future::join_all;
use tidegate_core::{Charge, Decision, Source, Store};

use super::command::Words;
use super::handshake::{Client, Then};
use super::reply::Replies;
use super::throttle::{Dialect, Numbers, Throttle};
use super::{Face, LIMIT};

/// Decisions that a store elsewhere is asked for together.
const TOGETHER_MAX: usize = 64;

/// What follows from a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The next one.
    GoOn,
    /// What waits is to be settled; then the command comes again.
    Settle,
    /// Nothing.
    Close,
}

/// What is done for one client.
pub(super) struct Work<S> {
    pub(super) face: Arc<Face<S>>,
    pub(super) client: Client,
    pub(super) replies: Replies,
    /// The numbers of its last call.
    last: Option<Numbers>,
    /// Calls that wait for a store elsewhere, in their order, each with its key.
    waiting: Vec<(Box<[u8]>, Throttle)>,
}

impl<S: Store> Work<S> {
    pub(super) fn new(face: Arc<Face<S>>, id: u64) -> Self {
        let client = Client::new(id, face.setup.password.as_ref());
        Self { face, client, replies: Replies::new(), last: None, waiting: Vec::new() }
    }

    /// Answers a command, or has it wait.
    pub(super) fn command(&mut self, words: Words<'_>) -> Step {
        let mut rest = words.iter();
        // A client that sends nothing is answered nothing.
        let Some(name) = rest.next() else { return Step::GoOn };
        let dialect = match name {
            name if name.eq_ignore_ascii_case(b"CL.THROTTLE") => Dialect::Cell,
            name if name.eq_ignore_ascii_case(b"THROTTLE") => Dialect::Crab,
            _ if !self.waiting.is_empty() => return Step::Settle,
            _ => return self.other(name, &rest.collect::<Vec<_>>()),
        };
        if !self.client.is_let_in {
            self.replies.error("NOAUTH Authentication required.");
            return Step::GoOn;
        }
        match Throttle::read(dialect, rest, &mut self.last) {
            Ok((key, throttle)) => self.throttle(key, throttle),
            Err(_) if !self.waiting.is_empty() => Step::Settle,
            Err(refused) => {
                self.face.metrics.refused.inc();
                self.replies.error(&refused.to_string());
                Step::GoOn
            }
        }
    }

    /// A command that decides nothing.
    fn other(&mut self, name: &[u8], words: &[&[u8]]) -> Step {
        self.face.metrics.others.inc();
        match self.client.answer(name, words, self.face.setup.password.as_ref(), &mut self.replies) {
            Then::GoOn => Step::GoOn,
            Then::Close => Step::Close,
        }
    }

    fn throttle(&mut self, key: &[u8], throttle: Throttle) -> Step {
        let charge = charge(&self.face, key, &throttle);
        let now = match self.waiting.is_empty() {
            true => self.face.store.decide_one_now(&charge),
            // It must not overtake those before it.
            false => None,
        };
        match now {
            Some(decided) => reply(&self.face, &charge, &throttle, decided, &mut self.replies),
            None if self.waiting.len() == TOGETHER_MAX => return Step::Settle,
            None => self.waiting.push((key.into(), throttle)),
        }
        Step::GoOn
    }

    /// Answers the calls that wait.
    pub(super) async fn settle(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let (waiting, face) = (std::mem::take(&mut self.waiting), &self.face);
        let decided = join_all(waiting.iter().map(|(key, throttle)| async move {
            let charge = [charge(face, key, throttle)];
            let mut decision = [Decision::unmade(&throttle.quota)];
            let verdict = face.store.decide(&charge, &mut decision).await;
            verdict.map(|verdict| (decision[0], verdict.source))
        }));
        for ((key, throttle), decided) in waiting.iter().zip(decided.await) {
            reply(face, &charge(face, key, throttle), throttle, decided, &mut self.replies);
        }
    }
}

fn charge<'a, S>(face: &Face<S>, key: &'a [u8], throttle: &Throttle) -> Charge<'a> {
    let charge = Charge::new(face.limit, throttle.quota, key).with_cost(throttle.cost);
    charge.with_handling(face.setup.handling)
}

fn reply<S: Store>(
    face: &Face<S>,
    charge: &Charge<'_>,
    throttle: &Throttle,
    decided: Result<(Decision, Source), S::Error>,
    to: &mut Replies,
) {
    match decided {
        Ok((decision, source)) => {
            face.decisions.count(&decision, source);
            face.denied.iter().for_each(|denied| denied.count_brought(charge, &decision, LIMIT));
            to.integers(&throttle.reply(&decision));
        }
        Err(error) => {
            face.metrics.refused.inc();
            to.error(&format!("ERR {error}"));
        }
    }
}
