//! Who comes back, when, and how many at once.

use std::time::Duration;

use super::{Auditor, LATER_SHARE, LOOKS, Service, Shown, Stop, Time, drain};

/// The first wait for a return, and the factor to the next.
const PATIENCE: (Duration, f64) = (Duration::from_millis(2), 1.5);
/// Returns after which no more are waited for: of one call each, and of many at once.
const ENOUGH: (usize, u32) = (40, 3);
/// The part of the time that is left which they may take.
const TIME_SHARE: f64 = 0.4;

/// Waits, longer each time, until one passes: so it is found whether it takes milliseconds or minutes.
pub(super) async fn first_return<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
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
pub(super) async fn returns<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    let Some((_, span)) = shown.first_return else { return Ok(()) };
    let allowance = auditor.spent() + auditor.share(2.0 * LATER_SHARE);
    let (mut bulks, mut last) = (0, auditor.now());
    let until = last.saturating_add(auditor.time_left().mul_f64(TIME_SHARE));
    while auditor.spent() < allowance && auditor.now() < until && shown.returns.len() < ENOUGH.0 && bulks < ENOUGH.1 {
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
