//! What can be asked for, and how: paths and methods, and what they mean.

use http::Method;

use super::Refusal;
use super::query::KeyQuery;

/// What an operator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// The policies in force.
    Policies,
    /// How it stands with a key.
    Look(KeyQuery),
    /// The key's buckets are full again.
    Reset(KeyQuery),
    /// Tokens are given back to the key.
    Grant(KeyQuery, u64),
    /// The key is allowed something else; what, says this body.
    Override(KeyQuery, String),
    /// The key is allowed what the file says.
    RemoveOverride(KeyQuery),
    /// The overrides that were put in force since the start.
    Overrides,
    /// The keys denied most.
    Denied,
    /// Those are counted anew.
    ForgetDenied,
}

/// What is found at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Livez,
    Readyz,
    Metrics,
    Policies,
    Keys,
    Grant,
    Override,
    Overrides,
    Denied,
}

impl Resource {
    const ALL: [(&'static str, Self); 9] = [
        ("/livez", Self::Livez),
        ("/readyz", Self::Readyz),
        ("/metrics", Self::Metrics),
        ("/v1/policies", Self::Policies),
        ("/v1/keys", Self::Keys),
        ("/v1/keys/grant", Self::Grant),
        ("/v1/keys/override", Self::Override),
        ("/v1/overrides", Self::Overrides),
        ("/v1/denied", Self::Denied),
    ];

    pub(crate) fn of(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == path).map(|(_, resource)| resource)
    }

    /// All paths, for a message.
    pub(crate) fn paths() -> String {
        Self::ALL.map(|(path, _)| path).join(", ")
    }

    /// Does it answer everybody?
    pub(crate) fn is_probe(self) -> bool {
        matches!(self, Self::Livez | Self::Readyz)
    }

    /// The methods it takes, as the field Allow lists them.
    pub(crate) fn allow(self) -> &'static str {
        match self {
            Self::Livez | Self::Readyz | Self::Metrics | Self::Policies | Self::Overrides => "GET, HEAD",
            Self::Keys | Self::Denied => "GET, HEAD, DELETE",
            Self::Grant => "POST",
            Self::Override => "PUT, DELETE",
        }
    }

    pub(crate) fn takes(self, method: &Method) -> bool {
        self.allow().split(", ").any(|allowed| allowed == method.as_str())
    }

    pub(crate) fn has_body(self, method: &Method) -> bool {
        matches!(self, Self::Grant | Self::Override) && method != Method::DELETE
    }

    /// What is asked for by a method that it takes.
    pub(crate) fn operation(self, method: &Method, query: Option<&str>, body: String) -> Result<Operation, Refusal> {
        let key = || KeyQuery::read(query);
        Ok(match (self, method == Method::DELETE) {
            (Self::Keys, false) => Operation::Look(key()?),
            (Self::Keys, true) => Operation::Reset(key()?),
            (Self::Grant, _) => Operation::Grant(key()?, tokens(&body)?),
            (Self::Override, false) => Operation::Override(key()?, body),
            (Self::Override, true) => Operation::RemoveOverride(key()?),
            (Self::Overrides, _) => Operation::Overrides,
            (Self::Denied, false) => Operation::Denied,
            (Self::Denied, true) => Operation::ForgetDenied,
            (Self::Policies | Self::Livez | Self::Readyz | Self::Metrics, _) => Operation::Policies,
        })
    }
}

/// The body `{"tokens": 5}`.
fn tokens(body: &str) -> Result<u64, Refusal> {
    let json: serde_json::Value =
        serde_json::from_str(body).map_err(|error| Refusal::bad(format!("the body is not JSON: {error}")))?;
    let Some(fields) = json.as_object() else {
        return Err(Refusal::bad("the body is no object; write one such as `{\"tokens\": 5}`"));
    };
    if let Some(name) = fields.keys().find(|name| *name != "tokens") {
        let name = tidegate_policy::Printable(name.as_bytes());
        return Err(Refusal::bad(format!("a grant has no field `{name}`; it has `tokens`")));
    }
    let tokens =
        fields.get("tokens").ok_or_else(|| Refusal::bad("a grant needs `tokens`, such as `{\"tokens\": 5}`"))?;
    let whole = tokens.as_u64().filter(|tokens| *tokens > 0);
    whole.ok_or_else(|| Refusal::bad(format!("`tokens` is {tokens}; expected a whole number from 1")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_a_whole_number_of_tokens() {
        assert_eq!(tokens("{\"tokens\": 5}"), Ok(5));
        for (body, expect) in [
            ("", "the body is not JSON: "),
            ("[5]", "the body is no object"),
            ("{}", "a grant needs `tokens`"),
            ("{\"tokens\": 5, \"limit\": \"a\"}", "a grant has no field `limit`; it has `tokens`"),
            ("{\"tokens\": \"5\"}", "`tokens` is \"5\"; expected a whole number from 1"),
            ("{\"tokens\": 0}", "`tokens` is 0;"),
            ("{\"tokens\": -1}", "`tokens` is -1;"),
            ("{\"tokens\": 1.5}", "`tokens` is 1.5;"),
        ] {
            let refusal = tokens(body).unwrap_err();
            assert!(refusal.detail.starts_with(expect), "{body}: {}", refusal.detail);
        }
    }

    #[test]
    fn every_path_takes_what_it_says() {
        for (path, resource) in Resource::ALL {
            assert_eq!(Resource::of(path), Some(resource));
            let all = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
            let taken: Vec<_> = all.into_iter().filter(|method| resource.takes(&method.parse().unwrap())).collect();
            assert_eq!(taken.join(", "), resource.allow());
        }
        assert_eq!(Resource::of("/v1/keys/"), None);
    }
}
