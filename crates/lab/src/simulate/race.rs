//! `race`: the same arithmetic, right and wrong, by the steps in which it is carried out.
//!
//! All callers ask at the same instant, and one token is left. A limiter that reads the bucket and writes it back in a
//! second step lets both pass who read before either wrote. One that decides in a single step does not, and neither
//! does one that takes its answer back when the bucket has changed since it was read.
//!
//! No thread runs here and no chance is drawn: a scheduler tries every order in which the steps can interleave. That is
//! what the models of the table do too; here the orders are few enough to be shown.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use tidegate_core::{Cost, Quota, State, Time, decide};

use crate::words::{counted, grouped};

/// The most callers; four of them interleave in thousands of orders.
pub const CALLERS_MAX: u32 = 4;
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// How a decision is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// The bucket is read; whoever may pass writes it back, in a second step.
    ReadThenWrite,
    /// The bucket is read; whoever may pass swaps it, if it is still what was read, and else begins again.
    CompareAndSwap,
    /// The bucket is read, decided on and written in one step.
    OneStep,
}

/// What callers do to one bucket in which one token is left.
#[derive(Clone, Debug)]
pub struct Race {
    quota: Quota,
    callers: u32,
    accounts: Vec<Account>,
}

/// What came out for one manner, over all orders.
#[derive(Clone, Debug)]
pub struct Account {
    /// How it decides.
    pub manner: Manner,
    /// In how many orders its steps can interleave.
    pub orders: u64,
    /// In how many of them more than one passed.
    pub wrong_orders: u64,
    /// The most that passed in any of them.
    pub most: u32,
    /// The steps of one order: the worst, and of equals the one with most steps.
    pub steps: Vec<Step>,
}

/// One step of one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whose.
    pub caller: u32,
    /// What is done.
    pub deed: &'static str,
    /// What is left in the bucket after it, as the caller sees it.
    pub left: u64,
    /// What it comes to, for the caller.
    pub outcome: &'static str,
}

impl Manner {
    /// All manners; the wrong one first.
    pub const ALL: [Self; 3] = [Self::ReadThenWrite, Self::CompareAndSwap, Self::OneStep];

    /// The name that JSON uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadThenWrite => "read-then-write",
            Self::CompareAndSwap => "compare-and-swap",
            Self::OneStep => "one-step",
        }
    }

    const fn about(self) -> &'static str {
        match self {
            Self::ReadThenWrite => "as many limiters over a shared store do",
            Self::CompareAndSwap => "as Tidegate does in memory",
            Self::OneStep => "as Tidegate does in Redis: one script",
        }
    }
}

impl Race {
    /// Lets so many callers, from 2 to [`CALLERS_MAX`], race for the last token of a full bucket's worth.
    #[must_use]
    pub fn run(quota: Quota, callers: u32) -> Self {
        let callers = callers.clamp(2, CALLERS_MAX);
        let (_, state) = decide(&quota, State::FULL, Cost::new(quota.burst().saturating_sub(1)), Time::ZERO);
        let account = |manner| {
            let mut account = Account { manner, orders: 0, wrong_orders: 0, most: 0, steps: Vec::new() };
            Moment::first(quota, manner, state, callers).every_order(&mut account);
            account
        };
        Self { quota, callers, accounts: Manner::ALL.map(account).into() }
    }

    /// What came out, the wrong manner first.
    #[must_use]
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// What came out, as text for a terminal of 80 columns, styled with ANSI sequences.
    #[must_use]
    pub fn to_text(&self) -> String {
        let (limit, callers) = (self.quota, self.callers);
        let mut out = format!("{BOLD}{callers} callers ask at once, and 1 token is left of {limit}{BOLD:#}\n");
        for account in &self.accounts {
            let (name, about) = (account.manner.name(), account.manner.about());
            let _ = writeln!(out, "\n{BOLD}{name}{BOLD:#}  {DIM}{about}{DIM:#}");
            for (step, number) in account.steps.iter().zip(1..) {
                let (name, left) = (name_of(step.caller), counted(step.left, "token left", "tokens left"));
                let line = format!("{number:>4}  {name} {:<9} {left:<15} {}", step.deed, step.outcome);
                let _ = writeln!(out, "{}", line.trim_end());
            }
            let (orders, wrong) = (grouped(account.orders), grouped(account.wrong_orders));
            let _ = match account.wrong_orders {
                0 => writeln!(out, "      {GOOD}1 passes{GOOD:#}, in all {orders} orders of the steps"),
                _ => writeln!(
                    out,
                    "      {BAD}{} pass where 1 may{BAD:#}; too many do in {wrong} of {orders} orders of the steps",
                    account.most
                ),
            };
        }
        out
    }

    /// What came out, as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let step = |step: &Step| json!({ "caller": name_of(step.caller), "deed": step.deed, "left": step.left, "outcome": step.outcome });
        let account = |account: &Account| {
            json!({
                "manner": account.manner.name(),
                "orders": account.orders,
                "wrong_orders": account.wrong_orders,
                "most_admitted": account.most,
                "steps": account.steps.iter().map(step).collect::<Vec<_>>(),
            })
        };
        let results: Vec<_> = self.accounts.iter().map(account).collect();
        json!({ "limit": self.quota.to_string(), "callers": self.callers, "left": 1, "results": results })
    }
}

fn name_of(caller: u32) -> char {
    char::from(b'A' + caller as u8)
}

/// Where everybody stands between two steps.
#[derive(Clone)]
struct Moment {
    quota: Quota,
    manner: Manner,
    bucket: State,
    /// How often the bucket was written.
    version: u64,
    callers: Vec<Caller>,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// Has yet to read.
    Waiting,
    /// Has read, and may pass if it writes this.
    Read {
        next: State,
        version: u64,
    },
    Passed,
    Denied,
}

impl Moment {
    fn first(quota: Quota, manner: Manner, bucket: State, callers: u32) -> Self {
        let callers = vec![Caller::Waiting; callers as usize];
        Self { quota, manner, bucket, version: 0, callers, steps: Vec::new() }
    }

    /// Goes on in every way in which one can. A swap fails only since another one did not, so it ends.
    fn every_order(&self, account: &mut Account) {
        let going = |caller: &Caller| matches!(caller, Caller::Waiting | Caller::Read { .. });
        let mut is_over = true;
        for who in (0..self.callers.len()).filter(|who| going(&self.callers[*who])) {
            is_over = false;
            let mut next = self.clone();
            next.step(who);
            next.every_order(account);
        }
        if is_over {
            self.conclude(account);
        }
    }

    fn conclude(&self, account: &mut Account) {
        let passed = self.callers.iter().filter(|caller| **caller == Caller::Passed).count() as u32;
        account.orders += 1;
        account.wrong_orders += u64::from(passed > 1);
        if (passed, self.steps.len()) > (account.most, account.steps.len()) {
            (account.most, account.steps) = (passed, self.steps.clone());
        }
    }

    fn step(&mut self, who: usize) {
        let (decision, next) = decide(&self.quota, self.bucket, Cost::ONE, Time::ZERO);
        let is_one_step = self.manner == Manner::OneStep;
        let (caller, deed, outcome) = match self.callers[who] {
            Caller::Waiting if !decision.is_allowed() => {
                (Caller::Denied, if is_one_step { "decides" } else { "reads" }, "is denied")
            }
            Caller::Waiting if is_one_step => {
                self.write(next);
                (Caller::Passed, "decides", "passes")
            }
            Caller::Waiting => (Caller::Read { next, version: self.version }, "reads", "may pass"),
            Caller::Read { version, .. } if self.manner == Manner::CompareAndSwap && version != self.version => {
                (Caller::Waiting, "swaps", "in vain: the bucket has changed; begins again")
            }
            Caller::Read { next, .. } => {
                self.write(next);
                let deed = if self.manner == Manner::CompareAndSwap { "swaps" } else { "writes" };
                (Caller::Passed, deed, "passes")
            }
            over @ (Caller::Passed | Caller::Denied) => (over, "", ""),
        };
        // Whoever has read goes by what was read, also when the bucket has changed since.
        let left = decide(&self.quota, self.bucket, Cost::ZERO, Time::ZERO).0.remaining();
        self.callers[who] = caller;
        self.steps.push(Step { caller: who as u32, deed, left, outcome });
    }

    fn write(&mut self, next: State) {
        self.bucket = next;
        self.version += 1;
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Limit;

    use super::*;

    fn race(callers: u32) -> Race {
        let quota = "59/min".parse::<Limit>().unwrap().quota().unwrap();
        Race::run(quota, callers)
    }

    #[test]
    fn two_steps_let_too_many_pass_and_one_step_does_not() {
        for (callers, orders) in [(2, 6), (3, 90), (4, 2_520)] {
            let race = race(callers);
            let [wrong, swapping, one_step] = race.accounts() else { panic!("three manners") };
            // 2n steps in any order that keeps each caller's two in theirs; fewer where a read already denies.
            assert!(wrong.orders <= orders, "{}", wrong.orders);
            assert_eq!(wrong.most, callers, "all read before anybody writes");
            assert!(wrong.wrong_orders > 0 && wrong.wrong_orders < wrong.orders);
            for right in [swapping, one_step] {
                assert_eq!((right.most, right.wrong_orders), (1, 0), "{:?}", right.manner);
            }
        }
    }

    #[test]
    fn the_interleaving_is_shown_line_by_line() {
        let text = race(2).to_text();
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with("   ")).take(4).collect();
        let wanted = [
            "   1  A reads     1 token left    may pass",
            "   2  B reads     1 token left    may pass",
            "   3  A writes    0 tokens left   passes",
            "   4  B writes    0 tokens left   passes",
        ];
        assert_eq!(lines, wanted);
    }
}
