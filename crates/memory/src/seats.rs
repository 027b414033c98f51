//! Decisions that involve more than one group: several charges at once, and keys that their home has no room for.
//!
//! First each key gets a seat: the slot it has, else one that is free, else what its limit says about the bound. All
//! groups in question are locked meanwhile, in the order of their addresses, so that two such decisions never wait for
//! each other. Then the core decides on all of them, and what changed is written before the locks are let go.
//!
//! A key sits in its home or in one of the seven groups behind it. As long as the home's flag is down, none of its keys
//! sits elsewhere; so a first round locks homes alone, and a key that turns out to need more starts a second one.
//! Whoever changes a key's seat holds the lock of its home: a key has one seat at most.

use tidegate_core::{
    AtBound, CHARGES_MAX, Charge, Cost, Decision, Held, LogView, Standing, State, Time, Verdict, decide_all_with_logs,
    settle,
};

use crate::attempt::Full;
use crate::fingerprint::Fingerprint;
use crate::groups::{KEYS_AWAY, KEYS_POOLED, SLOTS, Slot};
use crate::head::Lock;
use crate::locks::Locks;
use crate::log_seats::{LogSeats, is_log};
use crate::pools::{Pool, PoolsLock};
use crate::table::{PROBES, Table, count};

/// One charge, as the table sees it.
#[derive(Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) home: usize,
    /// The number of the charge's quota.
    pub(crate) number: u32,
    /// Since when that quota is in force.
    pub(crate) since: Time,
}

impl Ask {
    pub(crate) const NONE: Self = Self { fingerprint: Fingerprint::NONE, home: 0, number: 0, since: Time::MAX };
}

/// What is done with the buckets, once each has a seat.
#[derive(Clone, Copy)]
pub(crate) enum Deed {
    /// All are charged, or none.
    Charge,
    /// Each is settled: it was charged at that time, and truly cost so much.
    Settle { reserved_at: Time, actual: Cost },
}

impl Deed {
    fn done(
        self,
        charges: &[Charge<'_>],
        standings: &mut [Standing],
        views: &[Option<LogView>],
        decisions: &mut [Decision],
        now: Time,
    ) -> Verdict {
        let Self::Settle { reserved_at, actual } = self else {
            return decide_all_with_logs(charges, standings, views, decisions, now);
        };
        for (charge, state) in charges.iter().zip(standings.iter_mut().flatten()) {
            *state = settle(charge, *state, reserved_at, actual, now);
        }
        Verdict::over(charges, decisions)
    }
}

/// Where a key's state will be written.
#[derive(Clone, Copy)]
enum Seat {
    /// In the slot it has.
    Known(Place),
    /// In a slot that is free.
    Free(Place),
    /// In the slot of a bucket that is not full.
    Displacing(Place),
    /// In the pool of its limit.
    Pool,
    /// In a log, beside the table.
    Log,
    /// Nowhere, for so long.
    None(Held),
    /// With an earlier charge on the same key.
    Shared,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    group: usize,
    slot: usize,
}

/// What the groups in which a key can sit have to offer.
struct Room {
    free: Option<Place>,
    /// The bucket that is nearest to full, and when it will be; if none is free.
    nearest: Option<(Full, Place)>,
    /// Does another key of this home sit away from it, and owe something?
    has_keys_away: bool,
}

/// The charge at this index needs the groups behind its home as well.
struct NeedsProbing(usize);

impl Table {
    /// Decides all charges in one step; `probing` if it is known that the homes do not suffice.
    pub(crate) fn decide_seated(
        &self,
        asks: &[Ask],
        charges: &[Charge<'_>],
        probing: bool,
        decisions: &mut [Decision],
        now: Time,
    ) -> Verdict {
        self.do_seated(Deed::Charge, asks, charges, probing, decisions, now)
    }

    /// Does this in one step; `probing` if it is known that the homes do not suffice.
    pub(crate) fn do_seated(
        &self,
        deed: Deed,
        asks: &[Ask],
        charges: &[Charge<'_>],
        probing: bool,
        decisions: &mut [Decision],
        now: Time,
    ) -> Verdict {
        let mut probing = [probing; CHARGES_MAX];
        loop {
            let round = match (asks.len(), probing.contains(&true)) {
                (1, false) => self.round::<1, 1>(deed, asks, charges, &probing, decisions, now),
                (1, true) => self.round::<1, PROBES>(deed, asks, charges, &probing, decisions, now),
                (_, false) => self.round::<CHARGES_MAX, CHARGES_MAX>(deed, asks, charges, &probing, decisions, now),
                _ => self.round::<CHARGES_MAX, { CHARGES_MAX * PROBES }>(deed, asks, charges, &probing, decisions, now),
            };
            match round {
                Ok(verdict) => return verdict,
                // Each charge starts at most one further round.
                Err(NeedsProbing(i)) => probing[i] = true,
            }
        }
    }

    fn round<const CHARGES: usize, const LOCKS: usize>(
        &self,
        deed: Deed,
        asks: &[Ask],
        charges: &[Charge<'_>],
        probing: &[bool; CHARGES_MAX],
        decisions: &mut [Decision],
        now: Time,
    ) -> Result<Verdict, NeedsProbing> {
        let mut locks = Locks::<LOCKS>::take(self, asks, probing);
        let mut pools =
            charges.iter().any(|charge| charge.handling.at_bound == AtBound::Pool).then(|| self.pools.lock());
        let mut logs = LogSeats::<CHARGES>::take(self, asks, charges);
        let now = logs.start(self.start(asks, probing, now));
        let seats: [Seat; CHARGES] = self.seat_all(asks, charges, probing, &mut locks, pools.as_ref(), now)?;

        let names: [[u8; 8]; CHARGES] =
            std::array::from_fn(|i| asks.get(i).map_or(0, |ask| ask.fingerprint.as_u64()).to_ne_bytes());
        let mut asked = [Charge { key: &[], ..charges[0] }; CHARGES];
        let mut standings: [Standing; CHARGES] = [Ok(State::FULL); CHARGES];
        for (i, charge) in charges.iter().enumerate() {
            // All members of a pool are charged under one name, which no fingerprint has.
            let key = if matches!(seats[first_ask(asks, i)], Seat::Pool) { &[] } else { names[i].as_slice() };
            asked[i] = Charge { key, ..*charge };
            standings[i] = self.standing(&seats[i], &asks[i], charge, &mut locks, pools.as_ref(), now);
        }
        let n = charges.len();
        for i in (0..n).filter(|i| matches!((deed, seats[*i]), (Deed::Charge, Seat::Log))) {
            standings[i] = logs.stand(self, asks, &asked[..n], i, now);
        }
        let before = standings;
        let verdict = deed.done(&asked[..n], &mut standings[..n], &logs.views[..n], decisions, now);
        for i in 0..n {
            if let (Ok(before), Ok(after)) = (before[i], standings[i]) {
                self.write(&seats[i], &asks[i], &charges[i], before, after, &mut locks, &mut pools, now);
            }
            match seats[i] {
                Seat::None(_) if !decisions[i].is_allowed() => count(&self.counts.refused),
                Seat::Log => {
                    let (asked, allowed) = (&asked[..n], verdict.allowed);
                    let displaced = logs.finish(self, deed, asks, asked, i, &decisions[i], allowed, now);
                    (0..displaced).for_each(|_| count(&self.counts.displaced));
                    if decisions[i].held_by().is_some() && !decisions[i].is_allowed() {
                        count(&self.counts.refused);
                    }
                }
                Seat::Pool if verdict.allowed && decisions[i].is_allowed() && charges[i].cost > Cost::ZERO => {
                    count(&self.counts.pooled);
                    if let Some(home) = locks.of(asks[i].home) {
                        home.raise(KEYS_POOLED);
                    }
                }
                _ => {}
            }
        }
        Ok(verdict)
    }

    /// The time of the decision: not before any bucket that a newcomer might have had was forgotten.
    fn start(&self, asks: &[Ask], probing: &[bool; CHARGES_MAX], now: Time) -> Time {
        let chains = asks.iter().zip(probing).map(|(ask, probing)| self.chain(ask.home, *probing));
        chains.fold(now, |now, chain| self.watermarks.start_among(chain, now))
    }

    /// The groups in which a key of this home is looked for.
    pub(crate) fn chain(&self, home: usize, probing: bool) -> std::ops::Range<usize> {
        let length = if probing { PROBES } else { 1 };
        home..(home + length).min(self.groups.count())
    }

    fn seat_all<const CHARGES: usize, const LOCKS: usize>(
        &self,
        asks: &[Ask],
        charges: &[Charge<'_>],
        probing: &[bool; CHARGES_MAX],
        locks: &mut Locks<'_, LOCKS>,
        pools: Option<&PoolsLock<'_>>,
        now: Time,
    ) -> Result<[Seat; CHARGES], NeedsProbing> {
        let mut seats = [Seat::Shared; CHARGES];
        for (i, charge) in charges.iter().enumerate() {
            if first_ask(asks, i) == i && is_log(&charge.quota) {
                seats[i] = Seat::Log;
            }
        }
        // Those who have a seat keep it, so that nobody else is offered it.
        for (i, ask) in asks.iter().enumerate() {
            let is_first = first_ask(asks, i) == i && matches!(seats[i], Seat::Shared);
            if let (true, Some(place)) = (is_first, self.find(ask, probing[i])) {
                seats[i] = Seat::Known(place);
            }
        }
        for (i, ask) in asks.iter().enumerate() {
            if first_ask(asks, i) == i && matches!(seats[i], Seat::Shared) {
                let taken = |place: Place| seats.iter().any(|seat| seat.place() == Some(place));
                seats[i] = match locks.of(ask.home) {
                    Some(home) if !probing[i] && home.has(KEYS_AWAY) => return Err(NeedsProbing(i)),
                    Some(home) => {
                        self.seat_new(ask, &charges[i], home, probing[i], taken, pools, now).ok_or(NeedsProbing(i))?
                    }
                    None => Seat::Shared,
                };
            }
        }
        Ok(seats)
    }

    fn find(&self, ask: &Ask, probing: bool) -> Option<Place> {
        self.chain(ask.home, probing).find_map(|group| {
            let slot = self.groups.group(group).position(ask.fingerprint.as_u64())?;
            Some(Place { group, slot })
        })
    }

    /// A seat for a key that has none, after its chain was searched for it; `None` if more groups must be probed.
    #[expect(clippy::too_many_arguments, reason = "what one round holds, passed on as it is")]
    fn seat_new(
        &self,
        ask: &Ask,
        charge: &Charge<'_>,
        home: &mut Lock<'_>,
        probing: bool,
        taken: impl Fn(Place) -> bool,
        pools: Option<&PoolsLock<'_>>,
        now: Time,
    ) -> Option<Seat> {
        let room = self.room(ask.home, probing, home.has(KEYS_AWAY), taken, now);
        if home.has(KEYS_AWAY) && !room.has_keys_away {
            // Those that have refilled there are forgotten by this.
            self.watermarks.raise(ask.home, now);
            home.lower(KEYS_AWAY);
        }
        Some(match (room.free, charge.handling.at_bound, room.nearest, pools) {
            (Some(place), ..) => Seat::Free(place),
            _ if !probing => return None,
            (_, AtBound::Displace, Some((_, place)), _) => Seat::Displacing(place),
            (_, AtBound::Pool, _, Some(pools)) if pools.has_room_for(charge.limit) => Seat::Pool,
            (_, _, nearest, _) => Seat::None(Held(nearest.map_or(now, |(nearest, _)| nearest.at).since(now))),
        })
    }

    /// What the groups of a home have to offer, the locks of which must be held.
    fn room(&self, home: usize, probing: bool, flag: bool, taken: impl Fn(Place) -> bool, now: Time) -> Room {
        let mut room = Room { free: None, nearest: None, has_keys_away: false };
        for place in self.chain(home, probing).flat_map(|group| (0..SLOTS).map(move |slot| Place { group, slot })) {
            let slot = self.slot(place);
            let is_later = room.nearest.is_some_and(|(nearest, _)| nearest.is_no_later_than(&slot));
            // Under the lock no slot is torn.
            let full = if is_later { Time::MAX } else { self.full_at(&slot).unwrap_or(Time::MAX) };
            room.has_keys_away |= full > now && place.group != home && self.home_of_slot(&slot) == home;
            if !taken(place) && full <= now {
                room.free = room.free.or(Some(place));
                if !flag {
                    break;
                }
            } else if !taken(place) && room.nearest.is_none_or(|(nearest, _)| full < nearest.at) {
                room.nearest = Some((Full { slot, at: full }, place));
            }
        }
        room
    }

    fn standing<const LOCKS: usize>(
        &self,
        seat: &Seat,
        ask: &Ask,
        charge: &Charge<'_>,
        locks: &mut Locks<'_, LOCKS>,
        pools: Option<&PoolsLock<'_>>,
        now: Time,
    ) -> Standing {
        let under =
            |slot: &Slot| self.state_under(slot, ask.number, &charge.quota, ask.since, now).unwrap_or(State::FULL);
        let mut may_owe_pool = || locks.of(ask.home).is_some_and(|home| home.has(KEYS_POOLED));
        match seat {
            Seat::None(held) => Err(*held),
            Seat::Known(place) => Ok(under(&self.slot(*place))),
            Seat::Free(_) | Seat::Displacing(_) if !may_owe_pool() => Ok(State::FULL),
            // A newcomer owes what the pool of its limit owes, to which it may have been charged before.
            Seat::Free(_) | Seat::Displacing(_) | Seat::Pool => {
                let pool = pools.and_then(|pools| pools.pool(charge.limit));
                Ok(pool.map_or(State::FULL, |Pool { quota_number, state }| {
                    under(&Slot { fingerprint: 0, quota_number, state })
                }))
            }
            Seat::Log | Seat::Shared => Ok(State::FULL),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what one round holds, passed on as it is")]
    fn write<const LOCKS: usize>(
        &self,
        seat: &Seat,
        ask: &Ask,
        charge: &Charge<'_>,
        before: State,
        after: State,
        locks: &mut Locks<'_, LOCKS>,
        pools: &mut Option<PoolsLock<'_>>,
        now: Time,
    ) {
        let is_look = charge.cost == Cost::ZERO && before == after;
        let slot = Slot { fingerprint: ask.fingerprint.as_u64(), quota_number: ask.number, state: after };
        match *seat {
            // The flag may have been lowered in this round, since this bucket was full.
            Seat::Known(place) if !is_look => self.put_away(place, slot, ask.home, locks),
            Seat::Free(place) if before != after => {
                if self.slot(place).fingerprint != 0 {
                    self.watermarks.raise(place.group, now);
                }
                self.put_away(place, slot, ask.home, locks);
            }
            Seat::Displacing(place) if before != after => {
                count(&self.counts.displaced);
                self.put_away(place, slot, ask.home, locks);
            }
            Seat::Pool if before != after => {
                if let Some(pools) = pools {
                    pools.write(charge.limit, Pool { quota_number: ask.number, state: after });
                }
            }
            _ => {}
        }
    }

    fn put_away<const LOCKS: usize>(&self, place: Place, slot: Slot, home: usize, locks: &mut Locks<'_, LOCKS>) {
        self.put(place, slot);
        if let (true, Some(lock)) = (place.group != home, locks.of(home)) {
            lock.raise(KEYS_AWAY);
        }
    }

    fn slot(&self, place: Place) -> Slot {
        self.groups.group(place.group).slot(place.slot)
    }

    fn put(&self, place: Place, slot: Slot) {
        self.groups.group(place.group).write(place.slot, slot);
    }

    /// Changes the state of a key that has a slot, under the locks of its chain. `None` leaves it.
    pub(crate) fn rewrite(&self, fingerprint: Fingerprint, change: impl FnOnce(&Slot) -> Option<State>) {
        let ask = Ask { fingerprint, home: self.home(fingerprint), ..Ask::NONE };
        let _locks = Locks::<PROBES>::take(self, &[ask], &[true; CHARGES_MAX]);
        if let Some(place) = self.find(&ask, true) {
            let slot = self.slot(place);
            if let Some(state) = change(&slot) {
                self.put(place, Slot { state, ..slot });
            }
        }
    }
}

impl Seat {
    fn place(&self) -> Option<Place> {
        match self {
            Self::Known(place) | Self::Free(place) | Self::Displacing(place) => Some(*place),
            Self::Pool | Self::Log | Self::None(_) | Self::Shared => None,
        }
    }
}

/// The first ask on the same key; itself, mostly.
fn first_ask(asks: &[Ask], i: usize) -> usize {
    asks[..i].iter().position(|earlier| earlier.fingerprint == asks[i].fingerprint).unwrap_or(i)
}
