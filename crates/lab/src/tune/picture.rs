//! The trade-off as a picture: the burst that each rate needs.

use crate::plot::{Bar, Bars, Group};
use crate::replay::Count;
use crate::tune::{Answer, Candidate, ForPeriod, Touch, period_text};

/// The answer as a picture.
#[must_use]
pub fn to_bars(answer: &Answer) -> Bars {
    let Answer { ask, requests, clients, most_touched, .. } = answer;
    Bars {
        title: format!("{} of {} untouched", ask.allow, ask.of.name()),
        subtitle: format!(
            "the burst that each rate needs; {} requests of {} keys, at most {} touched",
            Count(*requests),
            Count(*clients),
            Count(*most_touched)
        ),
        groups: answer.periods.iter().map(group).collect(),
    }
}

fn group(period: &ForPeriod) -> Group {
    let bar = |candidate: &Candidate| {
        let Touch { clients, denied } = candidate.touch;
        let rate = candidate.quota.rate();
        Bar {
            name: format!("{}/{}", Count(rate.count()), period_text(&candidate.quota)),
            value: candidate.quota.burst(),
            note: format!("touches {}, denies {}", Count(clients), Count(denied)),
            is_marked: candidate.quota == period.first.quota,
        }
    };
    Group {
        title: format!("per {}", period_text(&period.first.quota)),
        bars: period.candidates.iter().map(bar).collect(),
    }
}
