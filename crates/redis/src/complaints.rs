//! What speaks against the configuration, named once.
//!
//! A wrong password fails every decision; saying so every time helps nobody. A complaint is handed out once, and again
//! only if another came, or an answer, in between.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::FailureKind;
use crate::failure::Fault;

/// What is wrong with how the store is configured, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    kind: FailureKind,
    text: String,
}

impl Complaint {
    /// The kind of failure behind it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.kind
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.text, self.kind.remedy())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Complaints {
    told: Mutex<Told>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Told {
    /// What is wrong now, as far as is known.
    current: Option<Complaint>,
    is_new: bool,
}

impl Complaints {
    pub(crate) fn tell(&self, fault: &Fault) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.current.as_ref().is_some_and(|current| current.kind == fault.kind) {
            return;
        }
        *told = Told { current: Some(Complaint { kind: fault.kind, text: fault.text.clone() }), is_new: true };
        self.news.notify_one();
    }

    /// The store answers: nothing is wrong any more.
    pub(crate) fn settle(&self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Told::default();
    }

    pub(crate) fn current(&self) -> Option<Complaint> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).current.clone()
    }

    /// The next one that nobody was told.
    pub(crate) async fn next(&self) -> Complaint {
        loop {
            if let Some(complaint) = self.take() {
                return complaint;
            }
            self.news.notified().await;
        }
    }

    fn take(&self) -> Option<Complaint> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut told.is_new) {
            return None;
        }
        told.current.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_told_once_and_again_after_an_answer() {
        let complaints = Complaints::default();
        let fault = Fault::answered("NOPERM no".to_owned());
        complaints.tell(&fault);
        complaints.tell(&fault);
        let told = complaints.take().unwrap();
        assert!(told.to_string().starts_with("NOPERM no; grant the user"), "{told}");
        complaints.tell(&fault);
        assert_eq!(complaints.take(), None);
        assert_eq!(complaints.current().as_ref(), Some(&told));
        complaints.settle();
        assert_eq!(complaints.current(), None);
        complaints.tell(&fault);
        assert_eq!(complaints.take(), Some(told));
    }
}
