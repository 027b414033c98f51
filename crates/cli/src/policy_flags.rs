//! Policies from flags: one, named `default`, whose limits are called `limit-1`, `limit-2`, in their order; or from a
//! configuration file, which can say the same and more.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use tidegate::policy::file::Config;
use tidegate::policy::{
    AddressField, ClientAddress, KeyParts, KeyPartsError, NameError, Policies, Policy, Trust, TrustError,
};
use tidegate::{Algorithm, AtBound, Handling, Limit, Mode};

use crate::config_file::ConfigFile;
use crate::flags::{self, Wrong};

/// The policy that the flags describe.
const POLICY: &str = "default";

/// Limits, and how they are charged: as flags, or as a file. Which of the two, if any, is for the command to ask.
#[derive(Args, Debug)]
pub(crate) struct PolicyFlags {
    /// The configuration file: TOML, or YAML or JSON by its extension. It stands in place of the flags for limits.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// A limit, such as '3/min', '60/min burst 10' or '10/15min'. Repeat it for several: a request is charged to all of
    /// them, or to none.
    #[arg(long = "limit", value_name = "LIMIT", value_parser = flags::limit, allow_hyphen_values = true)]
    limits: Vec<Limit>,

    /// Whose requests are counted together: client (its address), header:NAME, cookie:NAME, segment:NUMBER, global, or
    /// several of these with commas between them. [default: client]
    #[arg(long, value_name = "PARTS", value_parser = key)]
    key: Option<KeyParts>,

    /// How the limits are enforced. [default: token-bucket]
    #[arg(long, value_name = "ALGORITHM", value_parser = flags::algorithm())]
    algorithm: Option<Algorithm>,

    /// Evaluate and count the limits, but deny nothing.
    #[arg(long)]
    shadow: bool,

    /// Networks of your own proxies, whose word on the client's address is believed: 10.0.0.0/8, an address, private,
    /// loopback. Repeat it, or put commas between.
    #[arg(long, value_name = "CIDR", value_parser = trust)]
    trust: Vec<Trust>,

    /// The field in which those proxies name the client. [default: x-forwarded-for]
    #[arg(long, value_name = "FIELD", value_parser = address_field)]
    client_from: Option<AddressField>,

    /// What happens to a new key when the room for keys is taken: displace the bucket nearest to full, deny the
    /// newcomer, or let newcomers pool one bucket. [default: displace]
    #[arg(long, value_name = "WHAT", value_parser = at_bound())]
    at_bound: Option<AtBound>,
}

impl PolicyFlags {
    /// The file, if one is named.
    ///
    /// # Errors
    /// A flag says what belongs into it.
    pub(crate) fn file(&self) -> Result<Option<ConfigFile>, Wrong> {
        let Some(path) = &self.config else { return Ok(None) };
        let file = ConfigFile::new(path);
        let given = [
            ("--limit", !self.limits.is_empty(), "`limits` in a policy"),
            ("--key", self.key.is_some(), "`key` in a policy"),
            ("--algorithm", self.algorithm.is_some(), "`algorithm` in a policy"),
            ("--shadow", self.shadow, "`mode = \"shadow\"` in a policy"),
            ("--trust", !self.trust.is_empty(), "`trust` below `[client]`"),
            ("--client-from", self.client_from.is_some(), "`from` below `[client]`"),
            ("--at-bound", self.at_bound.is_some(), "`at_bound` in a policy"),
        ];
        belong_into(&file, &given)?;
        Ok(Some(file))
    }

    /// Is a limit given as a flag?
    pub(crate) fn has_limits(&self) -> bool {
        !self.limits.is_empty()
    }

    /// What the file says, or the flags.
    ///
    /// # Errors
    /// The file cannot be read or is wrong, or the flags do not fit together.
    pub(crate) fn config(&self) -> Result<Config, Wrong> {
        match self.file()? {
            Some(file) => file.meaning(&file.contents()?),
            None => Ok(Config { policies: self.policies(Handling::default())?, proxy: Vec::new() }),
        }
    }

    /// What the flags say, with this handling but for the memory bound.
    ///
    /// # Errors
    /// They do not fit together.
    pub(crate) fn policies(&self, handling: Handling) -> Result<Policies, Wrong> {
        self.policies_of(&self.limits, handling)
    }

    /// What the flags would say if these were their limits.
    ///
    /// # Errors
    /// They do not fit together.
    pub(crate) fn policies_of(&self, limits: &[Limit], handling: Handling) -> Result<Policies, Wrong> {
        let mode = if self.shadow { Mode::Shadow } else { Mode::Enforce };
        let client = ClientAddress {
            trust: self.trust.iter().cloned().collect(),
            field: self.client_from.clone().unwrap_or_default(),
            ..ClientAddress::default()
        };
        let algorithm = self.algorithm.unwrap_or_default();
        let enforced = |limit: &Limit| {
            flags::enforced_by(*limit, algorithm)
                .map_err(|error| Wrong::new(format!("--limit '{limit}' --algorithm {algorithm}: {error}")))
        };
        let limits = limits.iter().map(enforced).collect::<Result<Vec<_>, _>>()?;
        let handling = handling.with_at_bound(self.at_bound.unwrap_or_default());
        let key = self.key.clone().unwrap_or_default();
        let policy = Policy::new(POLICY, key).with_limits(limits, mode).with_handling(handling);
        Policies::new(client, vec![policy]).map_err(Wrong::new)
    }
}

/// That there is to be a file or a limit.
pub(crate) fn something_limited() -> ArgGroup {
    ArgGroup::new("something limited").args(["limits", "config"]).required(true).multiple(true)
}

/// Refuses flags beside a file that says the same: each with whether it is given, and what to write in the file.
pub(crate) fn belong_into(file: &ConfigFile, flags: &[(&str, bool, &str)]) -> Result<(), Wrong> {
    let given = flags.iter().filter(|(_, is_given, _)| *is_given);
    let told: Vec<_> = given.map(|(flag, _, instead)| format!("{flag} as {instead}")).collect();
    match told.is_empty() {
        true => Ok(()),
        false => Err(Wrong::new(format_args!(
            "with --config, what is limited stands in the file alone; write into {}: {}",
            file.name(),
            told.join(", ")
        ))),
    }
}

fn key(text: &str) -> Result<KeyParts, KeyPartsError> {
    text.parse()
}

fn trust(text: &str) -> Result<Trust, TrustError> {
    text.parse()
}

fn address_field(text: &str) -> Result<AddressField, NameError> {
    text.parse()
}

/// The behaviours at the memory bound, by name.
fn at_bound() -> impl TypedValueParser<Value = AtBound> {
    PossibleValuesParser::new(["displace", "deny", "pool"]).map(|name| match name.as_str() {
        "deny" => AtBound::Deny,
        "pool" => AtBound::Pool,
        _ => AtBound::Displace,
    })
}
