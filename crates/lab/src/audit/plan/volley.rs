//! The first experiment: how many pass at once, and whether more are denied or held back.

use std::time::Duration;

use super::{Auditor, Call, DENIALS, Service, Shown, Stop, middle};

/// The share of the budget that may go before the first denial.
const SHARE: f64 = 0.6;
/// Calls, one after the other, before as many go at once, and then twice as many, up to the most.
const SAME_WIDTH: u32 = 32;
const WIDTH_MAX: u32 = 64;
/// A call that takes so much longer than the first ones, and by so much at least, was held back.
const HELD_BACK: (u32, Duration) = (8, Duration::from_millis(10));

/// Calls faster and faster, until some are denied.
pub(super) async fn volley<S: Service>(auditor: &Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    let (allowance, begin) = (auditor.share(SHARE), auditor.now());
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
