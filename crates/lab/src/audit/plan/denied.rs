//! What becomes of a caller who is denied: whether going on makes it worse, and whether what it is told is true.

use super::{Auditor, DENIALS, LATER_SHARE, LOOKS, Service, Shown, Stop, drain};

/// Promises that are waited for.
const PROMISES: u32 = 2;

/// After a rest, takes all there is, goes on calling as often again, and looks when one returns then.
pub(super) async fn press<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
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
pub(super) async fn promises<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    for _ in 0..PROMISES {
        let (_, denied) = drain(auditor, auditor.share(LATER_SHARE)).await?;
        let Some(claim) = denied.claim.filter(|_| !denied.is_admitted) else { return Ok(()) };
        auditor.wait_until(denied.answered.saturating_add(claim)).await?;
        shown.promises.tried += 1;
        shown.promises.kept += u32::from(auditor.call().await?.is_admitted);
    }
    Ok(())
}
