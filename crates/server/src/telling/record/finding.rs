//! What was decided on a request, in words that logs and traces keep to.

use std::time::Duration;

use tidegate::policy::Place;
use tidegate::{Answer, Cause, Charge, Decision, Mode};
use tidegate_http::Sight;
use tidegate_policy::{KeyHash, KeySalt};

/// What was decided on a request, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// All limits that applied let it pass.
    Allowed,
    /// It passed, and a limit in shadow would have denied it.
    ShadowDenied,
    /// Denied for a while.
    Denied,
    /// It costs more than can ever pass.
    Never,
    /// It passed: what matched made no charge.
    Free,
    /// It passed: no policy matched.
    Unmatched,
    /// The store gave no answer at all.
    Failed,
}

impl Ruling {
    pub(crate) const ALL: [Self; 7] =
        [Self::Allowed, Self::ShadowDenied, Self::Denied, Self::Never, Self::Free, Self::Unmatched, Self::Failed];

    /// The word that logs, traces and metrics keep to.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::ShadowDenied => "shadow-denied",
            Self::Denied => "denied",
            Self::Never => "never",
            Self::Free => "free",
            Self::Unmatched => "unmatched",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn of(sight: &Sight<'_>) -> Self {
        match &sight.answer {
            None => Self::Failed,
            Some(answer) if !answer.is_allowed() => Self::of_denied(answer),
            Some(_) if !sight.is_matched => Self::Unmatched,
            Some(_) if in_shadow(sight).is_some() => Self::ShadowDenied,
            Some(_) if sight.charges().next().is_some() => Self::Allowed,
            Some(_) => Self::Free,
        }
    }

    fn of_denied(answer: &Answer) -> Self {
        match answer.decision {
            Some(decision) if decision.is_never() => Self::Never,
            _ => Self::Denied,
        }
    }
}

/// The limit in shadow that would have denied.
fn in_shadow<'a>(sight: &Sight<'a>) -> Option<Charged<'a>> {
    sight.charges().find(|(_, charge, decision)| charge.mode == Mode::Shadow && !decision.is_allowed())
}

/// A decision, and the limit that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) ruling: Ruling,
    /// Why it was denied.
    pub(crate) cause: Option<&'static str>,
    /// Who decided.
    pub(crate) source: Option<&'static str>,
    pub(crate) binding: Option<Binding>,
}

/// The limit that binds: the one that denies with the longest wait, else the one with the least remaining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) policy: Box<str>,
    pub(crate) limit: Box<str>,
    pub(crate) key: KeyHash,
    pub(crate) remaining: u64,
    /// The least wait after which the same request passes; `None` if it passed, or never can.
    pub(crate) wait: Option<Duration>,
}

type Charged<'a> = (Place<'a>, &'a Charge<'a>, &'a Decision);

impl Finding {
    pub(crate) fn of(sight: &Sight<'_>, salt: &KeySalt) -> Self {
        let ruling = Ruling::of(sight);
        let Some(answer) = &sight.answer else {
            return Self { ruling, cause: Some(Cause::StoreDown.name()), source: None, binding: None };
        };
        let shadow = in_shadow(sight).filter(|_| ruling == Ruling::ShadowDenied);
        let binding = shadow.or_else(|| sight.charges().nth(answer.binding?));
        Self {
            ruling,
            cause: answer.cause.map(Cause::name),
            source: binding.map(|_| answer.source.name()),
            binding: binding.map(|binding| Binding::of(binding, salt)),
        }
    }
}

impl Binding {
    fn of((place, charge, decision): Charged<'_>, salt: &KeySalt) -> Self {
        Self {
            policy: place.policy.name().into(),
            limit: place.limit.name.as_str().into(),
            key: salt.hash(charge.key),
            remaining: decision.remaining(),
            wait: decision.retry_after(),
        }
    }
}
