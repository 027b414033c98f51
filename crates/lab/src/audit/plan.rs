//! What is tried, one experiment after the other, each from what the ones before have shown.

use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use tidegate::Time;

use super::auditor::{Auditor, Service, Stop};
use super::fit::{Evidence, Fit, Hints};
use super::notebook::Call;

/// The share of the budget that may go before the first denial.
const VOLLEY_SHARE: f64 = 0.6;
/// The share that may go for one experiment that comes later.
const LATER_SHARE: f64 = 0.2;
/// Denials that end a volley.
const DENIALS: u32 = 3;
/// Calls, one after the other, before as many go at once, and then twice as many, up to the most.
const SAME_WIDTH: u32 = 32;
const WIDTH_MAX: u32 = 64;
/// A call that takes so much longer than the first ones, and by so much at least, was held back.
const HELD_BACK: (u32, Duration) = (8, Duration::from_millis(10));
/// The first wait for a return, and the factor to the next.
const PATIENCE: (Duration, f64) = (Duration::from_millis(2), 1.5);
/// How many times one looks within the span of the first return.
const LOOKS: u32 = 12;
/// Returns after which no more are waited for: of one call each, and of many at once.
const RETURNS: (u32, u32) = (40, 3);
/// The part of the time that is left which they may take.
const RETURNS_TIME: f64 = 0.4;
/// Tries to slip a lie in between two denials.
const LIES_TRIES: u32 = 8;
/// So often a lie must be believed: between two denials one may return by chance.
const LIES_BELIEVED: u32 = 5;
/// An uncertainty of the period that is small enough, as a part of it.
const SHARP: f64 = 0.015;
/// Calls, at most, to make it small.
const SHARPEN_MAX: u32 = 24;

/// What the experiments have shown, beside the answers themselves.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// How many passed before the first denial, or in the wave that met it; none if nothing was denied.
    pub(super) at_once: Option<u32>,
    /// How long that took.
    pub(super) volley: Duration,
    /// Calls were held back rather than denied; the spans between their answers. Seconds.
    pub(super) held_back: Option<Vec<f64>>,
    /// How long it took until one passed again: not before, and not after.
    pub(super) first_return: Option<(Duration, Duration)>,
    /// The instants of returns, and how many passed in each.
    pub(super) returns: Vec<(Time, u32)>,
    /// The fields that made a denied caller pass.
    pub(super) lies: Option<Vec<&'static str>>,
    /// Does the field that bears the key choose it?
    pub(super) key_chooses: Option<bool>,
    /// Of the promises of Retry-After that were tried: how many held.
    pub(super) promises: Promises,
}

/// What became of promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// Those that were waited for, to the second.
    pub tried: u32,
    /// Those after which a call passed.
    pub kept: u32,
}

/// The numbers of keys that are used once.
const OTHER_KEYS: u32 = 1_000_000;

/// Fields by which services take one caller for another, and what stands in front of the address in them.
const LIES: [(&str, &str); 6] = [
    ("x-forwarded-for", ""),
    ("x-real-ip", ""),
    ("forwarded", "for="),
    ("true-client-ip", ""),
    ("cf-connecting-ip", ""),
    ("x-client-ip", ""),
];
/// Networks that belong to nobody (RFC 5737).
const NETWORKS: [&str; 3] = ["192.0.2.", "198.51.100.", "203.0.113."];

/// All experiments, in the order in which they build on each other.
pub(super) async fn carry_out<S: Service>(auditor: &mut Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    auditor.say("a volley, until the first denial");
    volley(auditor, shown).await?;
    if shown.at_once.is_none() {
        return Ok(());
    }
    auditor.say("whether a denied caller passes under another name");
    lies(auditor, shown).await?;
    if shown.held_back.is_some() {
        return Ok(());
    }
    auditor.say("how long until the first returns");
    first_return(auditor, shown).await?;
    auditor.say("how many return, and how often");
    returns(auditor, shown).await?;
    auditor.say("whether the edge of a window lets more through");
    edge(auditor, shown).await?;
    halves(auditor, shown).await?;
    auditor.say("whether denied calls prolong the wait");
    press(auditor, shown).await?;
    auditor.say("whether Retry-After is true");
    promises(auditor, shown).await
}

/// Calls faster and faster, until some are denied.
async fn volley<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    let (allowance, begin) = (auditor.share(VOLLEY_SHARE), auditor.now());
    let (mut width, mut at_width, mut admitted, mut denied) = (1, 0, 0, 0);
    while auditor.spent() < allowance {
        let wave = auditor.wave(width.min(allowance - auditor.spent())).await?;
        let passed = wave.iter().filter(|call| call.is_admitted).count() as u32;
        denied += wave.len() as u32 - passed;
        admitted += passed;
        if denied >= DENIALS {
            (shown.at_once, shown.volley) = (Some(admitted), auditor.now().since(begin));
            return match spans_if_held_back(auditor, &wave) {
                Some(spans) => crowd(auditor, shown, width, &spans).await,
                None => Ok(()),
            };
        }
        at_width += 1;
        if denied == 0 && (at_width * width >= SAME_WIDTH || is_held_back(auditor, &wave)) && width < WIDTH_MAX {
            (width, at_width) = (2 * width, 0);
        }
    }
    Ok(())
}

/// The same wave again, once the queue is empty: what passes is what the queue holds.
async fn crowd<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown, width: u32, spans: &[f64]) -> Result<(), Stop> {
    shown.held_back = Some(spans.to_vec());
    auditor.wait(Duration::from_secs_f64(3.0 * middle(spans))).await?;
    let wave = auditor.wave(width).await?;
    shown.at_once = Some(wave.iter().filter(|call| call.is_admitted).count() as u32);
    shown.held_back = spans_if_held_back(auditor, &wave).or(shown.held_back.take());
    Ok(())
}

fn is_held_back<S: Service>(auditor: &Auditor<'_, S>, wave: &[Call]) -> bool {
    let way = auditor.read(|notebook| notebook.way());
    wave.iter().any(|call| call.latency() > (way * HELD_BACK.0).max(way + HELD_BACK.1) && call.is_admitted)
}

/// The spans between the answers that passed in a wave, if most of them were held back.
fn spans_if_held_back<S: Service>(auditor: &Auditor<'_, S>, wave: &[Call]) -> Option<Vec<f64>> {
    let mut answered: Vec<_> = wave.iter().filter(|call| call.is_admitted).map(|call| call.answered).collect();
    answered.sort();
    let spans: Vec<_> = answered.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect();
    (is_held_back(auditor, wave) && spans.len() >= 2).then_some(spans)
}

/// Calls until one is denied, and tells how many passed.
async fn drain<S: Service>(auditor: &Auditor<'_, S>, most: u32) -> Result<(u32, Call), Stop> {
    let mut passed = 0;
    loop {
        let call = auditor.call().await?;
        if !call.is_admitted {
            return Ok((passed, call));
        }
        passed += 1;
        if passed >= most.max(2) {
            return Ok((passed, call));
        }
    }
}

/// Under a name of its own between two denials: a caller who passes was taken for somebody else.
async fn lies<S: Service>(auditor: &mut Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    if shown.held_back.is_some() {
        // Nothing is denied to one who asks by himself, so a crowd keeps the queue full meanwhile.
        let crowd = shown.at_once.unwrap_or(0) + DENIALS + 2 * LIES.len() as u32;
        let (wave, believed) = tokio::join!(auditor.wave(crowd), believed_lies(auditor));
        wave?;
        shown.lies = Some(believed?);
        return Ok(());
    }
    shown.lies = Some(believed_lies(auditor).await?);
    if auditor.has_keys() {
        let chooses = passes_between_denials(auditor, |i| auditor.identity(OTHER_KEYS + i)).await?;
        shown.key_chooses = Some(chooses);
        if !chooses {
            auditor.forget_keys();
        }
    }
    Ok(())
}

async fn believed_lies<S: Service>(auditor: &Auditor<'_, S>) -> Result<Vec<&'static str>, Stop> {
    let mut believed = Vec::new();
    for (name, before) in LIES {
        let lie = |i: u32| {
            let network = NETWORKS[i as usize % NETWORKS.len()];
            let value = HeaderValue::from_str(&format!("{before}{network}{}", 7 + 31 * i)).ok();
            value.map(|value| (HeaderName::from_static(name), value)).into_iter().collect()
        };
        if passes_between_denials(auditor, lie).await? {
            believed.push(name);
        }
    }
    Ok(believed)
}

/// Does each of several callers pass while this one is denied? Each has fields of its own.
async fn passes_between_denials<S: Service>(
    auditor: &Auditor<'_, S>,
    other: impl Fn(u32) -> Vec<(HeaderName, HeaderValue)>,
) -> Result<bool, Stop> {
    let mut believed = 0;
    for i in 0..LIES_TRIES {
        // With the fields that the caller always sends, but for those of the other.
        let mut fields = auditor.identity(auditor.key());
        let others = other(i);
        fields.retain(|(name, _)| others.iter().all(|(other, _)| other != name));
        fields.extend(others);
        let (_, before) = drain(auditor, u32::MAX).await?;
        if !auditor.call_as(&fields).await? {
            return Ok(false);
        }
        let after = auditor.call().await?;
        believed += u32::from(!before.is_admitted && !after.is_admitted);
        if believed == LIES_BELIEVED {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Waits, longer each time, until one passes: so it is found whether it takes milliseconds or minutes.
async fn first_return<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    let mut denied_at = auditor.read(|notebook| notebook.calls.last().map_or(Time::ZERO, |call| call.answered));
    let begin = denied_at;
    let mut wait = PATIENCE.0.max(auditor.read(|notebook| notebook.way()) * 2);
    loop {
        auditor.wait(wait).await?;
        let call = auditor.call().await?;
        if call.is_admitted {
            shown.first_return = Some((denied_at.since(begin), call.answered.since(begin)));
            let (more, _) = drain(auditor, auditor.share(LATER_SHARE)).await?;
            shown.returns.push((call.sent, more + 1));
            return Ok(());
        }
        denied_at = call.sent;
        wait = wait.mul_f64(PATIENCE.1);
    }
}

/// Looks at short intervals who returns, and takes all that there is each time.
async fn returns<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    let Some((_, span)) = shown.first_return else { return Ok(()) };
    let allowance = auditor.spent() + auditor.share(2.0 * LATER_SHARE);
    let (mut bulks, mut last) = (0, auditor.now());
    let until = last.saturating_add(auditor.time_left().mul_f64(RETURNS_TIME));
    while auditor.spent() < allowance
        && auditor.now() < until
        && shown.returns.len() < RETURNS.0 as usize
        && bulks < RETURNS.1
    {
        // Where the first return came soon by chance, and the next does not, one looks less and less often.
        auditor.wait((span / LOOKS).max(auditor.now().since(last) / (2 * LOOKS))).await?;
        let call = auditor.call().await?;
        if call.is_admitted {
            let (more, _) = drain(auditor, auditor.share(LATER_SHARE)).await?;
            shown.returns.push((call.sent, more + 1));
            bulks += u32::from(shown.is_bulk(more + 1));
            last = auditor.now();
        }
    }
    Ok(())
}

/// Where all return at once: takes all there is shortly before the next such instant, and again right after it.
async fn edge<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    let Some((last, period)) = shown.bulk_period() else { return Ok(()) };
    // A whole period of rest comes before.
    let elapsed = auditor.now().since(last);
    let periods = (elapsed.as_secs_f64() / period.as_secs_f64()).floor() as u32 + 2;
    let next = last.saturating_add(period * periods);
    auditor.wait_until(before(next, period / 5)).await?;
    drain(auditor, auditor.share(LATER_SHARE)).await?;
    auditor.wait_until(before(next, period / 25)).await?;
    for _ in 0..LOOKS {
        let call = auditor.call().await?;
        if call.is_admitted {
            let (more, _) = drain(auditor, auditor.share(LATER_SHARE)).await?;
            shown.returns.push((call.sent, more + 1));
            return Ok(());
        }
        auditor.wait(period / 50).await?;
    }
    Ok(())
}

/// Where all return at once: takes half after a rest, and the rest later. Where the window goes by its first call all
/// are back a period after it, and where each call goes by itself only the first half is.
async fn halves<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    let (Some((_, period)), Some(rest)) = (shown.bulk_period(), shown.rest()) else { return Ok(()) };
    if !auditor.renew_key() {
        auditor.wait(rest).await?;
    }
    let begin = auditor.now();
    for _ in 0..shown.at_once.unwrap_or(0) / 2 {
        auditor.call().await?;
    }
    for part in [0.6, 1.06] {
        auditor.wait_until(begin.saturating_add(period.mul_f64(part))).await?;
        drain(auditor, auditor.share(LATER_SHARE)).await?;
    }
    Ok(())
}

fn before(then: Time, span: Duration) -> Time {
    Time::from_nanos(then.as_nanos().saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
}

/// After a rest, takes all there is, goes on calling as often again, and looks when one returns then.
async fn press<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    let Some(rest) = shown.rest() else { return Ok(()) };
    if !auditor.renew_key() {
        auditor.wait(rest).await?;
    }
    let (passed, _) = drain(auditor, auditor.share(LATER_SHARE)).await?;
    for _ in 0..passed.max(DENIALS).min(auditor.share(LATER_SHARE / 2.0)) {
        auditor.call().await?;
    }
    let looks_until = auditor.spent() + auditor.share(LATER_SHARE / 2.0).min(3 * LOOKS);
    while auditor.spent() < looks_until {
        auditor.wait(rest / (2 * LOOKS)).await?;
        if auditor.call().await?.is_admitted {
            return Ok(());
        }
    }
    Ok(())
}

/// Waits as long as a denial says, and no longer.
async fn promises<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    for _ in 0..2 {
        let (_, denied) = drain(auditor, auditor.share(LATER_SHARE)).await?;
        let Some(claim) = denied.claim.filter(|_| !denied.is_admitted) else { return Ok(()) };
        auditor.wait_until(denied.answered.saturating_add(claim)).await?;
        shown.promises.tried += 1;
        shown.promises.kept += u32::from(auditor.call().await?.is_admitted);
    }
    Ok(())
}

/// Calls where the shortest and the longest period that are possible disagree, until they hardly differ.
pub(super) async fn sharpen<S: Service>(auditor: &Auditor<'_, S>, shown: &Shown, mut fit: Fit) -> Result<(), Stop> {
    for _ in 0..SHARPEN_MAX {
        let (least, most) = fit.periods;
        if most - least < SHARP * fit.guess.period {
            return Ok(());
        }
        let evidence = evidence(auditor, shown);
        let state = |period| {
            let guess = super::model::Guess { period, ..fit.guess };
            evidence.state(guess, auditor.key())
        };
        let (short, long) = (state(least), state(most));
        let begin = auditor.read(|notebook| notebook.in_order().first().map_or(Time::ZERO, |call| call.sent));
        let now = auditor.now().since(begin).as_secs_f64();
        let step = fit.guess.period / 2_000.0;
        let differ = |i: &u32| short.admits(now + f64::from(*i) * step) != long.admits(now + f64::from(*i) * step);
        let Some(from) = (1..6_000).find(differ) else {
            drain(auditor, auditor.share(LATER_SHARE)).await?;
            continue;
        };
        let to = (from..6_000).take_while(differ).last().unwrap_or(from);
        auditor
            .wait_until(begin.saturating_add(Duration::from_secs_f64(now + f64::from(from.midpoint(to)) * step)))
            .await?;
        auditor.call().await?;
        fit = self::evidence(auditor, shown).again(fit);
    }
    Ok(())
}

/// The one in the middle.
pub(super) fn middle(spans: &[f64]) -> f64 {
    let mut spans = spans.to_vec();
    spans.sort_by(f64::total_cmp);
    spans.get(spans.len() / 2).copied().unwrap_or_default()
}

/// All answers so far.
pub(super) fn evidence<S: Service>(auditor: &Auditor<'_, S>, shown: &Shown) -> Evidence {
    let interval = shown.interval().map(|interval| interval.as_secs_f64());
    auditor.read(|notebook| Evidence::new(&notebook.in_order(), notebook.way().as_secs_f64(), interval))
}

impl Shown {
    /// Do so many that return at once mean that all return at once?
    fn is_bulk(&self, count: u32) -> bool {
        count >= 3 && 2 * count >= self.at_once.unwrap_or(0)
    }

    /// The last instant at which many returned at once, and the span between two of them.
    fn bulk_period(&self) -> Option<(Time, Duration)> {
        let bulks: Vec<_> = self.returns.iter().filter(|(_, count)| self.is_bulk(*count)).map(|(at, _)| *at).collect();
        let spans = bulks.windows(2).map(|pair| pair[1].since(pair[0]));
        Some((*bulks.last()?, spans.min()?))
    }

    /// The span between two returns, one by one.
    fn interval(&self) -> Option<Duration> {
        let ((first, _), (last, _)) = (self.returns.first()?, self.returns.last()?);
        let count: u32 = self.returns.iter().skip(1).map(|(_, count)| count).sum();
        (count > 0).then(|| last.since(*first) / count)
    }

    /// A rest after which everything is as it was at first.
    fn rest(&self) -> Option<Duration> {
        match (self.bulk_period(), self.interval()) {
            (Some((_, period)), _) => Some(period * 2),
            (None, Some(interval)) => Some(interval * (self.at_once? + 1)),
            (None, None) => self.first_return.map(|(_, most)| most * 2),
        }
    }

    /// What may explain the answers, in seconds from `begin`; their middle is given.
    pub(super) fn hints(&self, begin: Time, middle: f64) -> Hints {
        let at_once = self.at_once.unwrap_or(1).max(1);
        let mut hints = Hints::default();
        // What came back while the volley lasted did not pass at once.
        let refilled = self.interval().map_or(0.0, |interval| self.volley.as_secs_f64() / interval.as_secs_f64());
        hints.counts.extend([at_once, at_once.div_ceil(2), at_once.saturating_sub(refilled as u32).max(1)]);
        hints.counts.extend(self.returns.iter().map(|(_, count)| *count).filter(|count| self.is_bulk(*count)));
        hints.counts.sort_unstable();
        hints.counts.dedup();
        let periods = [
            self.bulk_period().map(|(_, period)| period.as_secs_f64()),
            self.interval().map(|interval| interval.as_secs_f64() * f64::from(at_once)),
            self.first_return.map(|(_, most)| most.as_secs_f64()),
        ];
        hints.periods.extend(periods.into_iter().flatten().filter(|period| *period > 0.0));
        hints.middle = middle;
        hints.edges.extend(self.returns.iter().take(6).map(|(at, _)| at.since(begin).as_secs_f64()));
        hints
    }
}
