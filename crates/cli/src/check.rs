//! `tidegate check`: what a configuration means, and what it does to a request.

use std::fmt::{Display, Write as _};

use clap::Args;
use tidegate::policy::descriptor_rules::DescriptorRules;
use tidegate::policy::{
    Charged, Considered, CostRule, Counting, Exempt, Explanation, KeyText, Mismatch, NamedLimit, Offence, Peer,
    Penalty, Policies, Policy, Say,
};
use tidegate::{Handling, Mode, Sharing};

use crate::imported::RuleFlags;
use crate::policy_flags::{PolicyFlags, something_limited};
use crate::sample::{self, Named, RequestLine, Sample};
use crate::say;

/// The width of the names in front of lines.
const NAME_WIDTH: usize = 11;

/// Check a configuration, and say in plain words what it does.
///
/// With --request it says which policies apply to that request and why, and which keys are charged. A configuration
/// that is wrong ends it with exit code 2, and with every mistake at once.
#[derive(Args)]
#[command(group(something_limited().arg("ratelimit_config")))]
pub(crate) struct Check {
    #[command(flatten)]
    policies: PolicyFlags,

    #[command(flatten)]
    rules: RuleFlags,

    /// A request to try: 'GET /api/x', or with a whole URL for the host.
    #[arg(long, value_name = "LINE", value_parser = sample::request_line)]
    request: Option<RequestLine>,

    /// The address from which that request comes, or unix.
    #[arg(long, value_name = "ADDRESS", default_value = "192.0.2.1", value_parser = sample::peer, requires = "request")]
    client: Peer,

    /// A header field of that request. Repeat it for several.
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = sample::header, requires = "request")]
    headers: Vec<Named>,

    /// What a trusted layer has verified about its caller. Repeat it for several.
    #[arg(long = "claim", value_name = "NAME=VALUE", value_parser = sample::claim, requires = "request")]
    claims: Vec<Named>,
}

impl Check {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut out = Out(String::new());
        if let Some(imported) = self.rules.read(Handling::default(), false)? {
            out.rules(&imported.rules);
            imported.warnings().iter().for_each(|warning| say::warning(warning));
            if !self.policies.has_limits() && self.policies.file()?.is_none() {
                return say::answer(out.0.as_bytes());
            }
            out.line(&"");
        }
        let config = self.policies.config()?;
        let policies = &config.policies;
        let sample = self.request.as_ref().map(|line| Sample::new(line, self.client, &self.headers, &self.claims));
        match sample.map(|sample| policies.consider(&sample)) {
            Some(considered) => out.request(&considered),
            None => out.all(policies),
        }
        say::answer(out.0.as_bytes())?;
        policies.warnings().iter().for_each(|warning| say::warning(&warning.to_string()));
        Ok(())
    }
}

/// The answer so far.
struct Out(String);

impl Out {
    fn line(&mut self, text: &dyn Display) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "{text}");
    }

    /// A name and what belongs to it; further lines of it are set below the first.
    fn entry(&mut self, name: &str, what: &dyn Display) {
        let indented = what.to_string().trim_end().replace('\n', &format!("\n{:1$}", "", NAME_WIDTH + 3));
        self.line(&format_args!("  {name:<NAME_WIDTH$} {indented}"));
    }

    /// Each rule, and what its number means.
    fn rules(&mut self, rules: &DescriptorRules) {
        let count = rules.rules().len();
        self.line(&format_args!("{count} {}", if count == 1 { "rule" } else { "rules" }));
        for rule in rules.rules() {
            self.line(&format_args!("\n{}: {}", rule.domain, rule.path));
            if rule.mode == Mode::Shadow && !rule.is_quota {
                self.entry("mode", &"shadow: counted, and denies nothing");
            }
            self.entry("limit", &Explanation::of(rule.limit));
        }
    }

    fn all(&mut self, policies: &Policies) {
        let count = policies.as_slice().len();
        self.line(&format_args!("{count} {}", if count == 1 { "policy" } else { "policies" }));
        let (address, plain) = (policies.client(), policies.exempt() == &Exempt::default());
        match address.trust.is_nothing() {
            true => self.entry("client", &"the peer of the connection; nobody is trusted to name another"),
            false => self.entry("client", &format_args!("from {}, as {} say", address.field, address.trust)),
        }
        if !plain {
            self.entry("exempt", &exempt(policies.exempt()));
        }
        for policy in policies.as_slice() {
            self.line(&format_args!("\n{}", policy.name()));
            self.entry(
                "about",
                &format_args!("{}{}", policy.matching(), if policy.is_final() { "; final" } else { "" }),
            );
            self.entry("key", policy.key());
            self.meaning(policy);
        }
    }

    fn request(&mut self, considered: &Considered<'_>) {
        self.line(&format_args!("client {}, path {}", considered.client, considered.path));
        if let Some(exemption) = considered.exemption {
            self.line(&format_args!("all policies let it off: {exemption}"));
        }
        for (policy, say) in &considered.policies {
            self.line(&format_args!("\n{}", policy.name()));
            match say {
                Say::Charges(charged) if considered.exemption.is_none() => self.charged(policy, charged),
                Say::Charges(_) => self.entry("applies", &"but lets the request off, as all do"),
                _ => self.entry("does not", &why_not(policy, say)),
            }
        }
        let is_unmatched = considered.policies.iter().all(|(_, say)| matches!(say, Say::Mismatch(_)));
        if is_unmatched && considered.exemption.is_none() {
            self.line(&"\nno policy matches, so the request passes");
        }
    }

    fn charged(&mut self, policy: &Policy, charged: &Charged) {
        self.entry("applies", &format_args!("is about {}", policy.matching()));
        let special = if charged.is_override { ", which has limits of its own" } else { "" };
        self.entry("key", &format_args!("{} ({}){special}", KeyText(&charged.key), policy.key()));
        if let Some((_, charge)) = charged.charges.first() {
            let cost = charge.cost.tokens();
            match policy.cost() {
                CostRule::Response { name, .. } => {
                    self.entry("costs", &format_args!("{cost} until {name} of the response says what"));
                }
                CostRule::Constant(_) | CostRule::Header { .. } => self.entry("costs", &cost),
            }
        }
        for named in policy.limits() {
            let charge = charged.charges.iter().find(|(id, _)| *id == named.id);
            let limit = charge.map_or(tidegate::Limit::Unlimited, |(_, charge)| match charge.quota.burst() {
                0 => named.limit,
                _ => charge.quota.into(),
            });
            self.limit(named, limit);
        }
        self.outcomes(policy);
    }

    fn meaning(&mut self, policy: &Policy) {
        match policy.cost() {
            CostRule::Constant(cost) if cost.tokens() == 1 => {}
            CostRule::Constant(cost) => self.entry("costs", &cost.tokens()),
            CostRule::Header { name, otherwise } => {
                self.entry("costs", &format_args!("what {name} of a trusted peer says, else {}", otherwise.tokens()));
            }
            CostRule::Response { name, estimate } => {
                let estimate = estimate.tokens();
                self.entry("costs", &format_args!("what {name} of the response says; until then {estimate} reserved"));
            }
        }
        if policy.exempt() != &Exempt::default() {
            self.entry("exempt", &exempt(policy.exempt()));
        }
        policy.limits().iter().for_each(|named| self.limit(named, named.limit));
        self.outcomes(policy);
        match policy.overrides().len() {
            0 => {}
            1 => self.entry("overrides", &"1 key has limits of its own"),
            count => self.entry("overrides", &format_args!("{count} keys have limits of their own")),
        }
    }

    fn limit(&mut self, named: &NamedLimit, limit: tidegate::Limit) {
        let mut words = Explanation::of(limit).to_string();
        if let Some(quota) = limit.quota() {
            let _ = writeln!(words, "  period         {}", Seconds(quota.rate().period()));
        }
        if named.mode == Mode::Shadow {
            words.push_str("  in shadow      counted, and denies nothing\n");
        }
        let _ = writeln!(words, "  store away     {}", named.handling.on_failure);
        if let Sharing::Leased { most } = named.handling.sharing {
            let _ = writeln!(words, "  leased         up to {most} tokens of a key in each process, on top of that");
        }
        self.entry(&named.name, &words);
    }

    fn outcomes(&mut self, policy: &Policy) {
        if let Counting::Responses(statuses) = policy.counting() {
            let statuses = statuses.to_texts().join(", ");
            self.entry(
                "charged for",
                &format_args!("responses {statuses}; taken at the request, and given back for others"),
            );
        }
        if let Some(penalty @ Penalty { of, after, .. }) = policy.penalty() {
            let (of, under_way) = match of {
                Offence::Denials => ("denials".to_owned(), String::new()),
                Offence::Responses(statuses) => (
                    format!("responses {}", statuses.to_texts().join(", ")),
                    format!("\nno more than {} that could be are under way at once", after.burst()),
                ),
            };
            let shadow = if policy.holds_back() { "" } else { "\nin shadow: counted, and denies nothing" };
            let hold = penalty.hold_text();
            self.entry("penalty", &format_args!("after {after} of {of}, held back for {hold}{under_way}{shadow}"));
        }
    }
}

/// Why a policy does not charge a request.
fn why_not(policy: &Policy, say: &Say<'_>) -> String {
    match say {
        Say::Mismatch(mismatch) => {
            let what = match mismatch {
                Mismatch::Host => "its host is another".to_owned(),
                Mismatch::Method => "its method is another".to_owned(),
                Mismatch::Path => "its path is another".to_owned(),
                Mismatch::Header(header) => format!("it has no {header}"),
                _ => "it is another".to_owned(),
            };
            format!("apply: {what}; about {}", policy.matching())
        }
        Say::BehindFinal(last) => format!("apply: {} comes earlier, matches, and is final", last.name()),
        Say::Exempt(exemption) => format!("charge: {exemption}"),
        Say::Missing { part, is_denied: true } => format!("let it pass: it has no {part}, so it is denied"),
        Say::Missing { part, is_denied: false } => format!("charge: it has no {part}"),
        _ => "charge".to_owned(),
    }
}

fn exempt(exempt: &Exempt) -> String {
    let addresses = (!exempt.addresses.is_nothing()).then(|| format!("addresses {}", exempt.addresses));
    let paths = exempt.paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let paths = (!paths.is_empty()).then(|| format!("paths {paths}"));
    let keys = (!exempt.keys.is_empty()).then(|| format!("{} keys", exempt.keys.len()));
    let health = exempt.health_checks.then(|| "health checks".to_owned());
    let preflights = (!exempt.preflights).then(|| "not preflights".to_owned());
    [addresses, paths, keys, health, preflights].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A length of time in seconds, exactly.
struct Seconds(std::time::Duration);

impl Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.subsec_nanos() {
            0 => write!(f, "{} s", self.0.as_secs()),
            nanos => {
                let digits = format!("{nanos:09}");
                write!(f, "{}.{} s", self.0.as_secs(), digits.trim_end_matches('0'))
            }
        }
    }
}
