//! Policies from flags: one, named `default`, whose limits are called `limit-1`, `limit-2`, in their order; or from a
//! configuration file, which can say the same and more.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tidegate::policy::file::{self, Config, Format};
use tidegate::policy::{
    AddressField, ClientAddress, KeyParts, KeyPartsError, NameError, Policies, Policy, Trust, TrustError,
};
use tidegate::{Algorithm, AtBound, Handling, Limit, Mode};

use crate::flags::{self, Wrong};

/// The policy that the flags describe.
const POLICY: &str = "default";

/// Limits, and how they are charged: as flags, or as a file.
#[derive(Args, Debug)]
pub(crate) struct PolicyFlags {
    /// The configuration file: TOML, or YAML or JSON by its extension. It stands in place of the flags for limits.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["limits", "key", "algorithm", "shadow", "trust", "client_from", "at_bound"])]
    pub(crate) config: Option<PathBuf>,

    /// A limit, such as '3/min', '60/min burst 10' or '10/15min'. Repeat it for several.
    #[arg(
        long = "limit",
        value_name = "LIMIT",
        required_unless_present = "config",
        value_parser = flags::limit,
        allow_hyphen_values = true
    )]
    limits: Vec<Limit>,

    /// Whose requests are counted together: client, header:NAME, cookie:NAME, segment:NUMBER, global, or several of
    /// these with commas between them.
    #[arg(long, value_name = "PARTS", default_value = "client", value_parser = key)]
    key: KeyParts,

    /// How the limits are enforced.
    #[arg(long, value_name = "ALGORITHM", default_value_t, value_parser = flags::algorithm())]
    algorithm: Algorithm,

    /// Evaluate and count the limits, but deny nothing.
    #[arg(long)]
    shadow: bool,

    /// Networks of your own proxies, whose word on the client's address is believed.
    #[arg(long, value_name = "CIDR", value_parser = trust)]
    trust: Vec<Trust>,

    /// The field in which those proxies name the client.
    #[arg(long, value_name = "FIELD", default_value = "x-forwarded-for", value_parser = address_field)]
    client_from: AddressField,

    /// What happens to a new key when the room for keys is taken.
    #[arg(long, value_name = "WHAT", default_value = "displace", value_parser = at_bound())]
    at_bound: AtBound,
}

impl PolicyFlags {
    /// What the file says, or the flags.
    ///
    /// # Errors
    /// The file cannot be read or is wrong, or the flags do not fit together.
    pub(crate) fn config(&self) -> Result<Config, Wrong> {
        let Some(path) = &self.config else { return self.flags_alone() };
        let name = path.display();
        let contents = fs::read(path).map_err(|error| Wrong::new(format_args!("cannot read {name}: {error}")))?;
        let contents = String::from_utf8(contents);
        let contents = contents.map_err(|_| Wrong::new(format_args!("{name} is not a text in UTF-8")))?;
        file::read(&name.to_string(), &contents, Format::of(path)).map_err(Wrong::new)
    }

    fn flags_alone(&self) -> Result<Config, Wrong> {
        let mode = if self.shadow { Mode::Shadow } else { Mode::Enforce };
        let client = ClientAddress {
            trust: self.trust.iter().cloned().collect(),
            field: self.client_from.clone(),
            ..ClientAddress::default()
        };
        let enforced = |limit: &Limit| {
            flags::enforced_by(*limit, self.algorithm)
                .map_err(|error| Wrong::new(format!("--limit '{limit}' --algorithm {}: {error}", self.algorithm)))
        };
        let limits = self.limits.iter().map(enforced).collect::<Result<Vec<_>, _>>()?;
        let handling = Handling::default().with_at_bound(self.at_bound);
        let policy = Policy::new(POLICY, self.key.clone()).with_limits(limits, mode).with_handling(handling);
        let policies = Policies::new(client, vec![policy]).map_err(Wrong::new)?;
        Ok(Config { policies, proxy: Vec::new() })
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

fn at_bound() -> impl TypedValueParser<Value = AtBound> {
    PossibleValuesParser::new(["displace", "deny", "pool"]).map(|name| match name.as_str() {
        "deny" => AtBound::Deny,
        "pool" => AtBound::Pool,
        _ => AtBound::Displace,
    })
}
