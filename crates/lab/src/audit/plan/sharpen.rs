//! Calls at the instants at which the guesses that remain disagree.

use std::time::Duration;

use super::super::fit::Fit;
use super::super::model::{Guess, Model};
use super::{Auditor, LATER_SHARE, Service, Shown, Stop, Time, drain, evidence};

/// An uncertainty of the period that is small enough, as a part of it.
const SHARP: f64 = 0.015;
/// Calls, at most, to make it small.
const CALLS_MAX: u32 = 24;
/// How finely, and how far ahead, it is looked where guesses disagree: as parts of the period.
const STEP: f64 = 1.0 / 2_000.0;
const STEPS: u32 = 6_000;

/// Calls where the shortest and the longest period that are possible disagree, until they hardly differ.
pub(in crate::audit) async fn sharpen<S: Service>(
    auditor: &Auditor<'_, S>,
    shown: &Shown,
    mut fit: Fit,
) -> Result<(), Stop> {
    for _ in 0..CALLS_MAX {
        let (least, most) = fit.periods;
        if most - least < SHARP * fit.guess.period {
            return Ok(());
        }
        let evidence = evidence(auditor, shown);
        let [short, long] = [least, most].map(|period| evidence.state(Guess { period, ..fit.guess }, auditor.key()));
        let begin = auditor.read(|notebook| notebook.in_order().first().map_or(Time::ZERO, |call| call.sent));
        let now = auditor.now().since(begin).as_secs_f64();
        match apart(&short, &long, now, fit.guess.period * STEP) {
            Some(at) => {
                auditor.wait_until(begin.saturating_add(Duration::from_secs_f64(at))).await?;
                auditor.call().await?;
                fit = self::evidence(auditor, shown).again(fit);
            }
            // There is nothing to wait for as long as some are left.
            None => _ = drain(auditor, auditor.share(LATER_SHARE)).await?,
        }
    }
    Ok(())
}

/// The middle of the next span in which one admits and the other does not.
fn apart(short: &Model, long: &Model, now: f64, step: f64) -> Option<f64> {
    let at = |i: u32| now + f64::from(i) * step;
    let differ = |i: &u32| short.admits(at(*i)) != long.admits(at(*i));
    let from = (1..STEPS).find(differ)?;
    let to = (from..STEPS).take_while(differ).last().unwrap_or(from);
    Some(at(from.midpoint(to)))
}
