//! What was answered, for each key.

use std::error::Error;
use std::fmt;

/// One answer, at an instant of the store's clock.
pub(crate) struct Answer {
    pub(crate) at_ns: u64,
    pub(crate) is_allowed: bool,
}

/// All answers.
pub(crate) struct Seen {
    keys: Vec<Key>,
    errors: u64,
}

#[derive(Clone)]
struct Key {
    asked: u64,
    first_ns: u64,
    last_ns: u64,
    passed_ns: Vec<u64>,
}

impl Seen {
    pub(crate) fn of(keys: usize) -> Self {
        let unseen = Key { asked: 0, first_ns: u64::MAX, last_ns: 0, passed_ns: Vec::new() };
        Self { keys: vec![unseen; keys], errors: 0 }
    }

    pub(crate) fn record(&mut self, key: usize, answer: Answer) {
        let key = &mut self.keys[key];
        key.asked += 1;
        key.first_ns = key.first_ns.min(answer.at_ns);
        key.last_ns = key.last_ns.max(answer.at_ns);
        if answer.is_allowed {
            key.passed_ns.push(answer.at_ns);
        }
    }

    /// There was no answer.
    pub(crate) fn failed(&mut self, error: &(dyn Error + Send + Sync)) {
        if self.errors == 0 {
            eprintln!("{error}");
        }
        self.errors += 1;
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.errors += more.errors;
        for (key, more) in self.keys.iter_mut().zip(more.keys) {
            key.asked += more.asked;
            key.first_ns = key.first_ns.min(more.first_ns);
            key.last_ns = key.last_ns.max(more.last_ns);
            key.passed_ns.extend(more.passed_ns);
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "errors {}", self.errors)?;
        for (i, key) in self.keys.iter().enumerate().filter(|(_, key)| key.asked > 0) {
            write!(f, "key {i} asked {} first {} last {} passed", key.asked, key.first_ns, key.last_ns)?;
            key.passed_ns.iter().try_for_each(|ns| write!(f, " {ns}"))?;
            writeln!(f)?;
        }
        Ok(())
    }
}
