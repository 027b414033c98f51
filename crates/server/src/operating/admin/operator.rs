//! Does what an operator asks for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use http::StatusCode;
use serde_json::{Value, json};
use tidegate::policy::file::{instant, read_override};
use tidegate::policy::{NamedLimit, OffenceCharges, Override, Policy, SingleKey};
use tidegate::{
    Charge, Cost, Decision, DeniedKey, FailureMode, Handling, LimitId, Mode, Quota, Sharing, Source, Store,
};
use tidegate_policy::KeySalt;

use super::asked::{Asked, Bucket, is_imported};
use super::operation::Operation;
use super::query::KeyQuery;
use super::refusal::Refusal;
use super::render;
use crate::operating::denied::Denied;
use crate::operating::in_force::Observed;
use crate::operating::runtime_overrides::RuntimeOverride;
use crate::telling::record::Ruling;
use crate::{Clock, Imports, Metrics};

/// What an operator's request comes to.
pub(crate) type Done = Result<Value, Refusal>;

/// Does what an operator asks for.
pub(crate) trait Operate: Send + Sync {
    fn operate(self: Arc<Self>, operation: Operation) -> Pin<Box<dyn Future<Output = Done> + Send>>;

    /// Why requests should go elsewhere; `None` if they need not.
    fn unready(&self) -> Option<String>;
}

/// The file that the policies in force were read from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) file: String,
    /// When, in seconds since the epoch of Unix.
    pub(crate) read_s: u64,
}

/// What an operator acts on.
pub(crate) struct Operator<S> {
    pub(crate) in_force: Observed<S>,
    pub(crate) imports: Imports,
    pub(crate) store: Arc<S>,
    pub(crate) is_up: fn(&S) -> bool,
    pub(crate) takes: fn(&S, &Quota) -> Result<(), String>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) origin: ArcSwapOption<Origin>,
    pub(crate) denied: Option<Arc<Denied>>,
    pub(crate) salt: KeySalt,
}

impl<S: Store + 'static> Operate for Operator<S> {
    fn operate(self: Arc<Self>, operation: Operation) -> Pin<Box<dyn Future<Output = Done> + Send>> {
        Box::pin(async move {
            match operation {
                Operation::Policies => Ok(self.policies()),
                Operation::Look(query) => self.look(&self.asked(&query)?).await,
                Operation::Reset(query) => self.reset(&self.asked(&query)?).await,
                Operation::Grant(query, tokens) => self.grant(&self.asked(&query)?, tokens).await,
                Operation::Override(query, body) => self.put_override(&query, &body),
                Operation::RemoveOverride(query) => self.remove_override(&query),
                Operation::Overrides => Ok(self.overrides()),
                Operation::Denied => self.denied(),
                Operation::ForgetDenied => self.forget_denied(),
            }
        })
    }

    fn unready(&self) -> Option<String> {
        if (self.is_up)(&self.store) {
            return None;
        }
        let by_policy = self.in_force.with_policies(|policies| {
            let each = |policy: &Policy| policy.limits().iter().find_map(|limit| denying(policy.name(), limit));
            policies.as_slice().iter().find_map(each)
        });
        let imported = self.imports.in_force();
        by_policy.or_else(|| imported.counted().find_map(|(limit, _)| denying(&limit.policy, &limit.named)))
    }
}

/// What is said of a limit that denies everything while the store is away; `None` if it does not.
fn denying(policy: &str, limit: &NamedLimit) -> Option<String> {
    let is_denying =
        limit.mode != Mode::Shadow && limit.limit.quota().is_some() && limit.handling.on_failure == FailureMode::Deny;
    let name = &limit.name;
    is_denying.then(|| {
        format!(
            "the store does not answer, and limit `{name}` of policy `{policy}` denies everything without it \
             (on_store_failure = \"deny\")"
        )
    })
}

impl<S: Store + 'static> Operator<S> {
    fn policies(&self) -> Value {
        let origin = self.origin.load();
        let policies = self.in_force.with_policies(|policies| render::policies(policies, &self.metrics));
        json!({
            "file": origin.as_ref().map(|origin| origin.file.clone()),
            "read_at": origin.as_ref().map(|origin| instant(origin.read_s)),
            "unmatched": self.metrics.requests.counted(Ruling::Unmatched),
            "policies": policies,
            "imported": render::imported(&self.imports.in_force()),
        })
    }

    fn now_s(&self) -> u64 {
        render::unix_s((self.clock)())
    }

    fn asked(&self, query: &KeyQuery) -> Result<Asked, Refusal> {
        let (imported, now_s) = (self.imports.in_force(), self.now_s());
        self.in_force.with_policies(|policies| Asked::new(policies, &imported, query, now_s))
    }

    async fn look(&self, asked: &Asked) -> Done {
        let mut limits = Vec::new();
        for Bucket { limit, claim } in &asked.buckets {
            let look = match claim {
                Some((quota, handling)) => Some(self.look_at(limit.id, quota, handling, &asked.bytes).await?),
                None => None,
            };
            limits.push(render::bucket(limit, look.as_ref().map(|(decision, source)| (decision, *source))));
        }
        let [key, bytes] = render::key(&asked.bytes).map(|(_, value)| value);
        Ok(json!({
            "policy": asked.name,
            "key": key,
            "bytes": bytes,
            "hash": self.salt.hash(&asked.bytes).to_string(),
            "exempt": asked.is_exempt,
            "override": asked.is_override,
            "limits": limits,
            "penalty": self.penalty(asked).await?,
        }))
    }

    /// Whether the key is held back, and how near it is to it; nothing if its policy has no penalty.
    async fn penalty(&self, asked: &Asked) -> Done {
        let charges = asked.policy.as_ref().and_then(|policy| policy.offence(&asked.bytes));
        let Some(OffenceCharges { offence, hold }) = charges else { return Ok(Value::Null) };
        let (hold, _) = self.look_at(hold.limit, &hold.quota, &hold.handling, &asked.bytes).await?;
        let (offences, _) = self.look_at(offence.limit, &offence.quota, &offence.handling, &asked.bytes).await?;
        Ok(render::penalty(&hold, &offences))
    }

    /// A look at a bucket where it lives: a cost of nothing, and nothing taken ahead for it.
    async fn look_at(
        &self,
        limit: LimitId,
        quota: &Quota,
        handling: &Handling,
        key: &[u8],
    ) -> Result<(Decision, Source), Refusal> {
        let charge = Charge::new(limit, *quota, key).with_cost(Cost::ZERO);
        let charge = charge.with_handling(handling.with_sharing(Sharing::Exact));
        let mut decisions = [Decision::unmade(quota)];
        let verdict = self.store.decide(&[charge], &mut decisions).await.map_err(Refusal::of_store)?;
        Ok((decisions[0], verdict.source))
    }

    async fn reset(&self, asked: &Asked) -> Done {
        for Bucket { limit, .. } in &asked.buckets {
            self.store.reset(limit.id, &asked.bytes).await.map_err(Refusal::of_store)?;
        }
        let policy = asked.policy.as_ref().filter(|_| asked.is_whole);
        for penalty in policy.iter().flat_map(|policy| policy.penalty_ids()) {
            self.store.reset(penalty, &asked.bytes).await.map_err(Refusal::of_store)?;
        }
        self.look(asked).await
    }

    async fn grant(&self, asked: &Asked, tokens: u64) -> Done {
        for Bucket { limit, claim } in &asked.buckets {
            let Some((quota, _)) = claim else { continue };
            self.store.grant(limit.id, quota, &asked.bytes, tokens).await.map_err(Refusal::of_store)?;
        }
        self.look(asked).await
    }

    /// A limit that was written for another service has no override: its file says what it allows.
    fn check_override(&self, query: &KeyQuery) -> Result<(), Refusal> {
        let imported = self.imports.in_force();
        match self.in_force.with_policies(|policies| is_imported(policies, &imported, query)) {
            false => Ok(()),
            true => Err(Refusal::conflict(format!(
                "the limits of `{}` were written for another service, and no key of them can have limits of its own; \
                 change them in their file, or reset the key or grant it tokens",
                query.policy
            ))),
        }
    }

    fn put_override(&self, query: &KeyQuery, body: &str) -> Done {
        self.check_override(query)?;
        let (now_s, texts) = (self.now_s(), query.texts()?);
        let read = |key: &SingleKey<'_>| -> Result<(Override, Vec<u8>), Refusal> {
            let special = read_override("the body", body, key.policy(), texts).map_err(|error| {
                let fault = |it: &tidegate::policy::file::ConfigFault| {
                    format!("line {}, column {} of the body: {}", it.line, it.column, it.message)
                };
                Refusal::bad(error.faults().iter().map(fault).collect::<Vec<_>>().join("\n"))
            })?;
            Ok((special, key.bytes().to_vec()))
        };
        let (special, bytes) = self.in_force.with_policies(|policies| {
            policies.single_key(&query.policy, query.key(), now_s).map_err(Refusal::of_key).and_then(|key| read(&key))
        })?;
        if special.until_s.is_some_and(|until_s| until_s <= now_s) {
            return Err(Refusal::bad(format!("`until` is over: it is {} now", instant(now_s))));
        }
        for quota in special.limits.iter().filter_map(|(_, limit)| limit.quota()) {
            (self.takes)(&self.store, &quota)
                .map_err(|why| Refusal::bad(format!("`{}` {why}", tidegate::Limit::from(quota))))?;
        }
        let new = RuntimeOverride { policy: query.policy.clone(), special, bytes, since_s: now_s, put_off: None };
        self.in_force.change(|overrides| overrides.put(new.clone()).map(Some))?;
        Ok(render::runtime_override(&new))
    }

    fn remove_override(&self, query: &KeyQuery) -> Done {
        self.check_override(query)?;
        let is_removed = self.in_force.change(|overrides| Ok(overrides.remove(query, self.now_s())))?;
        match is_removed {
            true => Ok(self.overrides()),
            false => Err(Refusal::new(
                StatusCode::NOT_FOUND,
                "no override of this key was put in force while the process ran; those of the file are changed there",
            )),
        }
    }

    fn overrides(&self) -> Value {
        let all = self
            .in_force
            .with_overrides(|overrides| overrides.at(self.now_s()).map(render::runtime_override).collect::<Vec<_>>());
        json!({ "overrides": all })
    }

    fn denied_keys(&self) -> Result<&Denied, Refusal> {
        let off = "the keys denied most are not counted; start the program with --denied-keys COUNT";
        self.denied.as_deref().ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, off))
    }

    fn denied(&self) -> Done {
        let denied = self.denied_keys()?;
        let keys: Vec<_> = denied.keys.most().iter().map(|key| self.denied_key(key, denied.are_hashed)).collect();
        let (missed, since) = (denied.keys.missed(), instant(denied.since_s()));
        Ok(json!({ "since": since, "hashed": denied.are_hashed, "missed": missed, "denied": keys }))
    }

    fn denied_key(&self, denied: &DeniedKey, is_hashed: bool) -> Value {
        let DeniedKey { limit, key, count, error, since } = denied;
        let (policy, name, mode) = self.place_of(*limit);
        let since = instant(render::unix_s(*since));
        let mut shown = json!({ "policy": policy, "limit": name, "mode": mode, "count": count, "error": error,
                                "since": since, "hash": self.salt.hash(key).to_string() });
        if !is_hashed {
            render::key(key).into_iter().for_each(|(name, value)| shown[name] = value);
        }
        shown
    }

    /// The policy, the name and the mode of a limit; nothing if it is not in force any more. Each call says the mode of a
    /// limit that it brings.
    fn place_of(&self, limit: LimitId) -> (Value, Value, Value) {
        let shown = |policy: &str, limit: &NamedLimit| {
            (policy.into(), limit.name.as_str().into(), render::mode(limit.mode).into())
        };
        let by_policy = self
            .in_force
            .with_policies(|policies| policies.place(limit).map(|place| shown(place.policy.name(), place.limit)));
        let imported = || self.imports.in_force().by_id(limit).map(|known| shown(&known.policy, &known.named));
        let brought = || {
            let (face, name) = self.denied.as_ref()?.brought(limit)?;
            Some((face.into(), name.into(), Value::Null))
        };
        by_policy.or_else(imported).or_else(brought).unwrap_or_default()
    }

    fn forget_denied(&self) -> Done {
        self.denied_keys()?.clear();
        self.denied()
    }
}
