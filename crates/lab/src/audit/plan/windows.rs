//! Where all return at once: by the clock, by the first call, or each by itself.

use std::time::Duration;

use super::{Auditor, LATER_SHARE, LOOKS, Service, Shown, Stop, Time, drain};

/// When half of a window is spent after its begin, and when it is looked who is back: as parts of the period.
const HALVES: [f64; 2] = [0.6, 1.06];

/// Where all return at once: takes all there is shortly before the next such instant, and again right after it.
pub(super) async fn edge<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
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
pub(super) async fn halves<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    let (Some((_, period)), Some(rest)) = (shown.bulk_period(), shown.rest()) else { return Ok(()) };
    if !auditor.renew_key() {
        auditor.wait(rest).await?;
    }
    let begin = auditor.now();
    for _ in 0..shown.at_once.unwrap_or(0) / 2 {
        auditor.call().await?;
    }
    for part in HALVES {
        auditor.wait_until(begin.saturating_add(period.mul_f64(part))).await?;
        drain(auditor, auditor.share(LATER_SHARE)).await?;
    }
    Ok(())
}

fn before(then: Time, span: Duration) -> Time {
    Time::from_nanos(then.as_nanos().saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
}
