//! What is tried, one experiment after the other, each from what the ones before have shown.

mod denied;
mod lies;
mod returns;
mod sharpen;
mod shown;
mod volley;
mod windows;

use tidegate::Time;

use super::auditor::{Auditor, Service, Stop};
use super::fit::Evidence;
use super::notebook::Call;

pub(super) use self::sharpen::sharpen;
pub use self::shown::Promises;
pub(super) use self::shown::Shown;

/// The share of the budget that may go for one experiment that comes after the volley.
const LATER_SHARE: f64 = 0.2;
/// Denials that end a volley.
const DENIALS: u32 = 3;
/// How many times one looks within the span of the first return.
const LOOKS: u32 = 12;

/// All experiments, in the order in which they build on each other.
pub(in crate::audit) async fn carry_out<S: Service>(
    auditor: &mut Auditor<'_, S>,
    shown: &mut Shown,
) -> Result<(), Stop> {
    auditor.say("a volley, until the first denial");
    volley::volley(auditor, shown).await?;
    if shown.at_once.is_none() {
        return Ok(());
    }
    auditor.say("whether a denied caller passes under another name");
    lies::lies(auditor, shown).await?;
    if shown.held_back.is_some() {
        return Ok(());
    }
    auditor.say("how long until the first returns");
    returns::first_return(auditor, shown).await?;
    auditor.say("how many return, and how often");
    returns::returns(auditor, shown).await?;
    auditor.say("whether the edge of a window lets more through");
    windows::edge(auditor, shown).await?;
    windows::halves(auditor, shown).await?;
    auditor.say("whether denied calls prolong the wait");
    denied::press(auditor, shown).await?;
    auditor.say("whether Retry-After is true");
    denied::promises(auditor, shown).await
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

/// The one in the middle.
pub(super) fn middle(spans: &[f64]) -> f64 {
    let mut spans = spans.to_vec();
    spans.sort_by(f64::total_cmp);
    spans.get(spans.len() / 2).copied().unwrap_or_default()
}

/// All answers so far.
pub(in crate::audit) fn evidence<S: Service>(auditor: &Auditor<'_, S>, shown: &Shown) -> Evidence {
    let interval = shown.interval().map(|interval| interval.as_secs_f64());
    auditor.read(|notebook| Evidence::new(&notebook.in_order(), notebook.way().as_secs_f64(), interval))
}
