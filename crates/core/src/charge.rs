//! Several limits in one decision: all are charged, or none.

use core::cmp::Reverse;
use core::fmt;
use core::time::Duration;

use crate::{Cost, Decision, Handling, LogView, Quota, State, Time, decide, decide_log};

/// The most charges in one decision.
pub const CHARGES_MAX: usize = 16;

/// Which limit: the hash of the names of its policy and of itself. Two limits with equal names are one limit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitId(u64);

impl LimitId {
    /// The identity of limit `limit` of policy `policy`.
    ///
    /// FNV-1a over both names, with a byte between them that UTF-8 does not use. The names come from whoever
    /// configures the limits, so a hash that an attacker could collide is enough.
    #[must_use]
    pub const fn of(policy: &str, limit: &str) -> Self {
        let hash = fnv1a(0xcbf2_9ce4_8422_2325, policy.as_bytes());
        let hash = fnv1a(hash, &[0xff]);
        Self(fnv1a(hash, limit.as_bytes()))
    }

    /// The identity under which the same limit is charged for keys that stand in for missing ones: the same in every
    /// process, and no limit's own, since it is a hash over one byte more that UTF-8 does not use.
    #[must_use]
    pub const fn for_stand_ins(self) -> Self {
        Self(fnv1a(self.0, &[0xff]))
    }

    /// The identity of the same names where buckets are kept by other parts of a request, named by `parts`: what was
    /// owed under one kind of key says nothing about another, so such a limit starts fresh.
    #[must_use]
    pub const fn keyed_by(self, parts: &str) -> Self {
        // A byte that UTF-8 does not use, and another one than the stand-ins have.
        Self(fnv1a(fnv1a(self.0, &[0xfe]), parts.as_bytes()))
    }

    /// The identity that [`LimitId::as_u64`] gave as a number.
    #[must_use]
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The identity of a bucket that is kept beside those of a limit, named by `part`: no limit's own.
    #[must_use]
    pub const fn beside(self, part: &str) -> Self {
        Self(fnv1a(fnv1a(self.0, &[0xfd]), part.as_bytes()))
    }

    /// The identity as a number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for LimitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LimitId({:016x})", self.0)
    }
}

const fn fnv1a(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

/// Does a denial of this limit deny the request?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Yes.
    #[default]
    Enforce,
    /// No: it is evaluated and counted after the enforced ones, and charged only if they allowed.
    Shadow,
    /// Yes, and what it lets pass takes nothing from it: for a bucket that something else fills, such as the time for
    /// which a key is held back.
    Guard,
}

impl Mode {
    /// Does a denial deny the request?
    #[must_use]
    pub const fn is_enforced(self) -> bool {
        !matches!(self, Self::Shadow)
    }
}

/// One limit's claim on one request: so much of this key's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge<'a> {
    /// The limit.
    pub limit: LimitId,
    /// What it allows.
    pub quota: Quota,
    /// Whose bucket is charged; compared as bytes.
    pub key: &'a [u8],
    /// How much.
    pub cost: Cost,
    /// Whether a denial counts.
    pub mode: Mode,
    /// What the limit wants of its store, beyond a decision.
    pub handling: Handling,
}

impl<'a> Charge<'a> {
    /// A charge of one token, enforced, handled as by default.
    #[must_use]
    pub fn new(limit: LimitId, quota: Quota, key: &'a [u8]) -> Self {
        Self { limit, quota, key, cost: Cost::ONE, mode: Mode::default(), handling: Handling::default() }
    }

    /// The same charge of another cost.
    #[must_use]
    pub fn with_cost(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }

    /// The same charge in another mode.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// The same charge, handled otherwise.
    #[must_use]
    pub fn with_handling(self, handling: Handling) -> Self {
        Self { handling, ..self }
    }

    /// Do both draw on one bucket? Then their costs are summed.
    #[must_use]
    pub fn shares_bucket(&self, other: &Self) -> bool {
        self.limit == other.limit && self.key == other.key
    }
}

/// The answer to a request, over all of its charges.
#[must_use = "a verdict that nobody looks at limits nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// May the request pass?
    pub allowed: bool,
    /// The place, among the charges, of the one that binds: of those that deny the one with the longest wait, else
    /// the one with the least remaining. Limits in shadow never bind. `None` if nothing was charged.
    pub binding: Option<usize>,
    /// Who decided.
    pub source: Source,
}

/// Who decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The store in which the buckets live.
    #[default]
    Store,
    /// A denial by the store that is not over yet, remembered in this process.
    DeniedCache,
    /// Tokens that this process had taken ahead.
    Lease,
    /// The failure modes of the limits: the store could not answer.
    Fallback,
}

impl Source {
    /// Every source, the store first.
    pub const ALL: [Self; 4] = [Self::Store, Self::DeniedCache, Self::Lease, Self::Fallback];

    /// The name that metrics use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::DeniedCache => "denied-cache",
            Self::Lease => "lease",
            Self::Fallback => "fallback",
        }
    }
}

impl Verdict {
    /// The same verdict, of another origin.
    pub const fn from_source(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// The verdict of the store that follows from the decisions on all charges.
    #[inline]
    pub fn over(charges: &[Charge<'_>], decisions: &[Decision]) -> Self {
        // Most requests make one charge, and then there is nothing to compare.
        if let ([Charge { mode: Mode::Enforce, .. }], [decision]) = (charges, decisions) {
            return Self { allowed: decision.is_allowed(), binding: Some(0), source: Source::Store };
        }
        Self::over_several(charges, decisions)
    }

    fn over_several(charges: &[Charge<'_>], decisions: &[Decision]) -> Self {
        let enforced = || charges.iter().zip(decisions).enumerate().filter(|(_, (charge, _))| is_enforced(charge));
        let denying = enforced().filter(|(_, (_, decision))| !decision.is_allowed());
        // Of equals the first one, hence the least of the reversed.
        let longest = denying.min_by_key(|(_, (_, decision))| Reverse((decision.is_never(), decision.retry_after())));
        if let Some((i, _)) = longest {
            return Self { allowed: false, binding: Some(i), source: Source::Store };
        }
        let least = enforced().min_by_key(|(_, (_, decision))| decision.remaining());
        Self { allowed: true, binding: least.map(|(i, _)| i), source: Source::Store }
    }
}

fn is_enforced(charge: &Charge<'_>) -> bool {
    charge.mode.is_enforced()
}

/// What a charge is decided on: the state of its bucket, or the time for which it has none.
pub type Standing = Result<State, Held>;

/// There is no bucket to charge for at least this long: the store has no room for another key, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held(pub Duration);

/// Decides all charges at once, and leaves in `standings` what follows: all are charged, or none.
///
/// `standings[i]` is the bucket of `charges[i]`; of several charges on one bucket the first one's place counts, and
/// the others are given the same decision. The same function decides in memory and in simulations; the script that
/// runs in a remote store is held against it.
///
/// # Panics
/// The slices differ in length, or are longer than [`CHARGES_MAX`].
pub fn decide_all(
    charges: &[Charge<'_>],
    standings: &mut [Standing],
    decisions: &mut [Decision],
    now: Time,
) -> Verdict {
    decide_all_with_logs(charges, standings, [None; CHARGES_MAX].get(..charges.len()).unwrap_or(&[]), decisions, now)
}

/// [`decide_all`], where sliding logs are among the buckets: `views[i]` is what charge `i`, or the sum of those on its
/// log, needs to know of it, and its standing is `Ok` with any state. Whoever keeps the logs charges them in the same
/// step: those of the decisions that allow, if the verdict does, and but for guards.
///
/// # Panics
/// As [`decide_all`].
pub fn decide_all_with_logs(
    charges: &[Charge<'_>],
    standings: &mut [Standing],
    views: &[Option<LogView>],
    decisions: &mut [Decision],
    now: Time,
) -> Verdict {
    assert!(charges.len() <= CHARGES_MAX, "at most {CHARGES_MAX} charges in one decision");
    assert!(charges.len() == standings.len() && charges.len() == decisions.len(), "one standing and decision each");
    assert!(charges.len() == views.len(), "one view, or none, each");
    let mut next = [State::FULL; CHARGES_MAX];
    for (i, charge) in charges.iter().enumerate() {
        match first_place(charges, i) {
            first if first < i => decisions[i] = decisions[first],
            _ => (decisions[i], next[i]) = decide_one(charge, standings[i], views[i], total_cost(charges, i), now),
        }
    }
    let verdict = Verdict::over(charges, decisions);
    for (i, decision) in decisions.iter_mut().enumerate() {
        let first = first_place(charges, i);
        let Ok(before) = standings[first] else { continue };
        if !verdict.allowed && decision.is_allowed() {
            *decision = uncharged(*decision, before, views[first]);
        } else if first == i {
            // Charged; or denied, when the state that follows is the old one or its repair.
            standings[i] = Ok(next[i]);
        }
    }
    if verdict.allowed { verdict } else { Verdict::over(charges, decisions) }
}

fn decide_one(
    charge: &Charge<'_>,
    standing: Standing,
    view: Option<LogView>,
    cost: Cost,
    now: Time,
) -> (Decision, State) {
    let (decision, next) = match (standing, view) {
        (Ok(state), Some(view)) => (decide_log(&charge.quota, view, cost, now), state),
        (Ok(state), None) => decide(&charge.quota, state, cost, now),
        (Err(Held(wait)), _) => (Decision::held(&charge.quota, cost, now, wait), State::FULL),
    };
    match standing {
        // What would have been taken is not; a repair of the stamp, which only a denial brings, is kept.
        Ok(before) if charge.mode == Mode::Guard && decision.is_allowed() => {
            (uncharged(decision, before, view), before)
        }
        _ => (decision, next),
    }
}

/// The decision as it is where nothing was taken, from what it was made on.
fn uncharged(decision: Decision, before: State, view: Option<LogView>) -> Decision {
    match view {
        Some(view) => decision.uncharged_log(view),
        None => decision.uncharged(before),
    }
}

fn first_place(charges: &[Charge<'_>], i: usize) -> usize {
    charges[..i].iter().position(|earlier| earlier.shares_bucket(&charges[i])).unwrap_or(i)
}

/// What the bucket of charge `i` is asked for: the costs of all charges that share it, summed.
#[must_use]
pub fn total_cost(charges: &[Charge<'_>], i: usize) -> Cost {
    let sharing = charges.iter().filter(|later| later.shares_bucket(&charges[i]));
    sharing.fold(Cost::ZERO, |sum, charge| sum.saturating_add(charge.cost))
}
