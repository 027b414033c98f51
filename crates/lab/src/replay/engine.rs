//! Policies at work on a log: the same charges and the same decisions as in the proxy, on the log's time.
//!
//! What a request is to be charged follows from the line alone, so it is found out when the line is read; the decision
//! is made later, when the line's turn in time has come. Between the two a request is one number: its plan, the list of
//! buckets that it draws on. Buckets are kept by their exact keys, in a list: no two share one, and none is displaced,
//! however many there are.

use std::collections::HashMap;

use tidegate_core::{
    CHARGES_MAX, Charge, Cost, Decision, LimitId, Mode, Standing, State, Time, decide, decide_all_with_logs, grant,
    owe, total_cost,
};
use tidegate_policy::{Attributes, Charging, CostRule, Exempt, KeyPart, Keys, Match, Policies, Policy};

use crate::replay::interner::Interner;
use crate::replay::logs::{Logs, is_log};

/// Policies, the plans of the requests so far, and the state of every bucket.
#[derive(Debug)]
pub(crate) struct Engine {
    policies: Policies,
    /// Does who the client is decide what a request is charged? Then the plan of each client is kept.
    by_client: Option<Vec<u32>>,
    keys: Keys,
    scratch: Vec<u8>,
    buckets: Interner,
    plan_keys: Interner,
    plans: Vec<Plan>,
    claims: Vec<Claim>,
    templates: Vec<Template>,
    known: HashMap<(LimitId, [u64; 5], u64), u32>,
    states: Vec<State>,
    logs: Logs,
    pub(crate) limits: Vec<LimitTally>,
}

/// What one request is charged: so many claims, from `first` on.
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    first: u32,
    count: u16,
    /// It lacks a key without which it is denied.
    is_denied: bool,
}

/// One charge: which bucket, and how.
#[derive(Clone, Copy, Debug)]
struct Claim {
    bucket: u32,
    template: u32,
}

/// A charge, but for the key.
#[derive(Clone, Copy, Debug)]
struct Template {
    charge: Charge<'static>,
    /// The place among the limits.
    limit: u32,
    /// Does only the response tell what is charged?
    is_settled: bool,
    /// Is it charged to a log, which a state does not hold?
    is_log: bool,
}

/// A limit, and what it has decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitTally {
    /// The name of its policy.
    pub policy: String,
    /// Its own name.
    pub limit: String,
    /// What it says.
    pub text: String,
    /// Does it only count?
    pub is_shadow: bool,
    /// How many requests it was asked about.
    pub asked: u64,
    /// How many it denied, alone or with others; in shadow, would have denied.
    pub denied: u64,
}

/// What was decided on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) is_allowed: bool,
    /// The least that remains of its buckets; `None` if none was asked.
    pub(crate) remaining: Option<u64>,
}

const NO_PLAN: u32 = u32::MAX;
/// The plan of requests that are charged nothing.
const FREE: u32 = 0;
/// The plan of requests that lack a key which a policy demands.
const DENIED: u32 = 1;

impl Engine {
    /// All buckets are full. `is_same_client`: do the clients of the log bear the numbers that these policies tell them
    /// apart by?
    pub(crate) fn new(policies: Policies, is_same_client: bool) -> Self {
        let is_by_client = is_same_client && policies.exempt() == &Exempt::default() && {
            let is_by_client = |policy: &Policy| {
                policy.key().as_slice() == [KeyPart::Client]
                    && policy.matching() == &Match::default()
                    && policy.exempt() == &Exempt::default()
                    && policy.overrides().is_empty()
                    && matches!(policy.cost(), CostRule::Constant(_))
            };
            policies.as_slice().iter().all(is_by_client)
        };
        let limits =
            policies.as_slice().iter().flat_map(|policy| policy.limits().iter().map(move |named| (policy, named)));
        let limits = limits.map(|(policy, named)| LimitTally {
            policy: policy.name().to_owned(),
            limit: named.name.clone(),
            text: named.limit.to_string(),
            is_shadow: named.mode == Mode::Shadow,
            ..LimitTally::default()
        });
        Self {
            limits: limits.collect(),
            policies,
            by_client: is_by_client.then(Vec::new),
            keys: Keys::new(),
            scratch: Vec::new(),
            buckets: Interner::default(),
            plan_keys: Interner::default(),
            plans: vec![Plan::default(), Plan { is_denied: true, ..Plan::default() }],
            claims: Vec::new(),
            templates: Vec::new(),
            known: HashMap::new(),
            states: Vec::new(),
            logs: Logs::default(),
        }
    }

    /// The policies.
    pub(crate) fn policies(&self) -> &Policies {
        &self.policies
    }

    /// The plan of a request. `attributes` is asked for only if the client does not decide it.
    #[inline]
    pub(crate) fn plan<A: Attributes>(&mut self, client: u32, attributes: impl FnOnce() -> A) -> u32 {
        let Some(by_client) = &self.by_client else { return self.new_plan(&attributes()) };
        match by_client.get(client as usize) {
            Some(plan) if *plan != NO_PLAN => *plan,
            _ => {
                let plan = self.new_plan(&attributes());
                if let Some(by_client) = &mut self.by_client {
                    by_client.resize(by_client.len().max(client as usize + 1), NO_PLAN);
                    by_client[client as usize] = plan;
                }
                plan
            }
        }
    }

    fn new_plan(&mut self, attributes: &impl Attributes) -> u32 {
        let Self { policies, keys, templates, known, limits, .. } = self;
        let charges = match policies.charging(attributes, keys) {
            Charging::Charged(charges) => charges,
            Charging::Free | Charging::Unmatched => return FREE,
            Charging::Denied { .. } => return DENIED,
        };
        let first = self.claims.len();
        for (i, charge) in charges.iter().enumerate() {
            let template =
                *known.entry((charge.limit, charge.quota.to_words(), charge.cost.tokens())).or_insert_with(|| {
                    let place = charges.place(i);
                    let limit = place.and_then(|place| {
                        let is_it =
                            |tally: &LimitTally| tally.policy == place.policy.name() && tally.limit == place.limit.name;
                        limits.iter().position(is_it)
                    });
                    templates.push(Template {
                        charge: Charge { key: &[], ..*charge },
                        limit: limit.unwrap_or(0) as u32,
                        is_settled: place.is_some_and(|place| place.policy.settling().is_some()),
                        is_log: is_log(&charge.quota),
                    });
                    templates.len() as u32 - 1
                });
            let bucket = match self.by_client {
                // Each client has a plan of its own, and so have its buckets.
                Some(_) => self.states.len() as u32,
                None => {
                    self.scratch.clear();
                    self.scratch.extend_from_slice(&charge.limit.as_u64().to_le_bytes());
                    self.scratch.extend_from_slice(charge.key);
                    self.buckets.intern(&self.scratch).0
                }
            };
            if bucket as usize >= self.states.len() {
                self.states.push(State::FULL);
            }
            self.claims.push(Claim { bucket, template });
        }
        self.keep_plan(first)
    }

    /// The plan of the claims from `first` on; they are dropped if there is such a plan already.
    fn keep_plan(&mut self, first: usize) -> u32 {
        let plan = Plan { first: first as u32, count: (self.claims.len() - first) as u16, is_denied: false };
        if self.by_client.is_some() {
            self.plans.push(plan);
            return self.plans.len() as u32 - 1;
        }
        self.scratch.clear();
        for claim in &self.claims[first..] {
            self.scratch.extend_from_slice(&claim.bucket.to_le_bytes());
            self.scratch.extend_from_slice(&claim.template.to_le_bytes());
        }
        let (number, is_new) = self.plan_keys.intern(&self.scratch);
        match is_new {
            true => self.plans.push(plan),
            false => self.claims.truncate(first),
        }
        // Behind the two plans that charge nothing.
        number + 2
    }

    /// Decides on a request whose turn it is. `status` is what the log tells of its response.
    #[inline]
    pub(crate) fn decide(&mut self, plan: u32, status: u16, now: Time) -> Ruling {
        let plan = self.plans[plan as usize];
        let claims = &self.claims[plan.first as usize..][..usize::from(plan.count)];
        match claims {
            [] => Ruling { is_allowed: !plan.is_denied, remaining: None },
            [claim] => {
                let template = &self.templates[claim.template as usize];
                if template.is_settled || template.is_log || template.charge.mode == Mode::Shadow {
                    return self.decide_together(plan, status, now);
                }
                let state = &mut self.states[claim.bucket as usize];
                let (decision, next) = decide(&template.charge.quota, *state, template.charge.cost, now);
                *state = next;
                let limit = &mut self.limits[template.limit as usize];
                limit.asked += 1;
                limit.denied += u64::from(!decision.is_allowed());
                Ruling { is_allowed: decision.is_allowed(), remaining: Some(decision.remaining()) }
            }
            _ => self.decide_together(plan, status, now),
        }
    }

    /// All charges in one step, and afterwards what only the response tells.
    fn decide_together(&mut self, plan: Plan, status: u16, now: Time) -> Ruling {
        let claims = &self.claims[plan.first as usize..][..usize::from(plan.count)];
        let template = |claim: &Claim| &self.templates[claim.template as usize];
        let keys: [[u8; 4]; CHARGES_MAX] =
            std::array::from_fn(|i| claims.get(i).map_or([0; 4], |claim| claim.bucket.to_le_bytes()));
        let blank = template(&claims[0]).charge;
        let mut charges = [blank; CHARGES_MAX];
        let mut standings: [Standing; CHARGES_MAX] = [Ok(State::FULL); CHARGES_MAX];
        for (i, claim) in claims.iter().enumerate() {
            charges[i] = Charge { key: &keys[i], ..template(claim).charge };
            standings[i] = Ok(self.states[claim.bucket as usize]);
        }
        let mut decisions = [Decision::unmade(&blank.quota); CHARGES_MAX];
        let count = claims.len();
        let (before, buckets) = (standings, claims.iter().map(|claim| claim.bucket));
        let views = self.logs.views(&charges[..count], buckets, now);
        let (decided, views) = (&mut decisions[..count], &views[..count]);
        let verdict = decide_all_with_logs(&charges[..count], &mut standings[..count], views, decided, now);
        let mut remaining = None;
        for (i, claim) in claims.iter().enumerate() {
            let Template { limit, is_settled, is_log, charge } = *template(claim);
            if !charges[..i].iter().any(|earlier| earlier.shares_bucket(&charges[i])) {
                let state = standings[i].unwrap_or(State::FULL);
                let settled = verdict.allowed && is_settled && decisions[i].is_allowed();
                if is_log && verdict.allowed && decisions[i].is_allowed() {
                    let cost = if settled { self.cost_by(status, &charge) } else { total_cost(&charges[..count], i) };
                    self.logs.charge(claim.bucket, &charge.quota, cost, now);
                }
                self.states[claim.bucket as usize] = match settled {
                    true => self.settled(&charge, (before[i].unwrap_or(State::FULL), state), status, now),
                    false => state,
                };
            }
            let tally = &mut self.limits[limit as usize];
            tally.asked += 1;
            tally.denied += u64::from(!decisions[i].is_allowed());
            if charge.mode == Mode::Enforce {
                let left = decisions[i].remaining();
                remaining = Some(remaining.map_or(left, |least: u64| least.min(left)));
            }
        }
        Ruling { is_allowed: verdict.allowed, remaining }
    }

    /// What was charged after all, when the response was there.
    fn cost_by(&self, status: u16, charge: &Charge<'_>) -> Cost {
        let settling = self.policies.place(charge.limit).and_then(|place| place.policy.settling());
        settling.map_or(charge.cost, |settling| settling.cost(status, None, charge.cost))
    }

    /// The state after the response was there: nothing was charged, or what its status says.
    fn settled(&self, charge: &Charge<'_>, (before, after): (State, State), status: u16, now: Time) -> State {
        let (reserved, actual) = (charge.cost, self.cost_by(status, charge));
        match actual.tokens() {
            0 => before,
            tokens if actual < reserved => grant(&charge.quota, after, reserved.tokens() - tokens, now),
            tokens if actual > reserved => owe(&charge.quota, after, tokens - reserved.tokens(), now),
            _ => after,
        }
    }

    /// The bytes of the first key of a plan, if it charges any.
    pub(crate) fn key_of(&self, plan: u32) -> Option<&[u8]> {
        let plan = self.plans.get(plan as usize).filter(|plan| plan.count > 0)?;
        let bucket = self.claims.get(plan.first as usize)?.bucket;
        // Behind the limit's identity, of eight bytes.
        self.buckets.get(bucket).get(8..)
    }
}
