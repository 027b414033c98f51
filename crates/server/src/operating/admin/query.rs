//! The part of a target behind its question mark: names and values, percent-decoded.

use tidegate_policy::{NamedKey, Printable};

use super::Refusal;

/// The most parameters: a key has at most eight parts.
const PARAMETERS_MAX: usize = 16;

/// Which key an operation is about, and which of its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyQuery {
    pub(crate) policy: String,
    /// The values of the key's parts, in order.
    values: Vec<Vec<u8>>,
    /// The bytes of the key, instead.
    bytes: Option<Vec<u8>>,
    /// One limit of the policy; all, if none is named.
    pub(crate) limit: Option<String>,
}

impl KeyQuery {
    pub(crate) fn read(query: Option<&str>) -> Result<Self, Refusal> {
        let mut read = Self::default();
        let parameters = query.unwrap_or_default().split('&').filter(|parameter| !parameter.is_empty());
        for (i, parameter) in parameters.enumerate() {
            if i >= PARAMETERS_MAX {
                return Err(Refusal::bad(format!("there are more than {PARAMETERS_MAX} parameters")));
            }
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = decoded(value).ok_or_else(|| {
                Refusal::bad(format!("`{name}`: a `%` in its value is not followed by two hexadecimal digits"))
            })?;
            match name {
                "key" => read.values.push(value),
                "policy" if read.policy.is_empty() => read.policy = text(name, value)?,
                "limit" if read.limit.is_none() => read.limit = Some(text(name, value)?),
                "bytes" if read.bytes.is_none() => read.bytes = Some(hexadecimal(&value)?),
                "policy" | "limit" | "bytes" => return Err(Refusal::bad(format!("`{name}` is there twice"))),
                _ => return Err(unknown(name)),
            }
        }
        match &read {
            Self { policy, .. } if policy.is_empty() => Err(Refusal::bad("which policy? Add `policy=NAME`")),
            Self { bytes: Some(_), values, .. } if !values.is_empty() => {
                Err(Refusal::bad("a key is named by `key` or by `bytes`, not by both"))
            }
            _ => Ok(read),
        }
    }

    pub(crate) fn key(&self) -> NamedKey<'_> {
        match &self.bytes {
            Some(bytes) => NamedKey::Bytes(bytes),
            None => NamedKey::Values(&self.values),
        }
    }

    /// The values as texts, as an override has them.
    pub(crate) fn texts(&self) -> Result<Vec<String>, Refusal> {
        if self.bytes.is_some() {
            return Err(Refusal::bad("a key that gets limits of its own is named by its values: `key=VALUE`"));
        }
        self.values.iter().map(|value| text("key", value.clone())).collect()
    }
}

fn unknown(name: &str) -> Refusal {
    let name = Printable(name.as_bytes());
    Refusal::bad(format!("there is no parameter `{name}`; there are `policy`, `key` (for each part), `bytes`, `limit`"))
}

fn text(name: &str, value: Vec<u8>) -> Result<String, Refusal> {
    String::from_utf8(value).map_err(|_| Refusal::bad(format!("`{name}` is not a text in UTF-8")))
}

fn hexadecimal(value: &[u8]) -> Result<Vec<u8>, Refusal> {
    let pairs = value.len().is_multiple_of(2).then(|| value.chunks(2).map(byte).collect::<Option<Vec<_>>>());
    pairs.flatten().ok_or_else(|| Refusal::bad("`bytes` is not a row of bytes in hexadecimal digits, two for each"))
}

/// Without `%` and two digits in place of a byte, and without `+` in place of a space, as forms write it.
pub(crate) fn decoded(value: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(value.len()), value.as_bytes());
    while let [first, behind @ ..] = rest {
        rest = behind;
        bytes.push(match first {
            b'%' => {
                let (digits, after) = behind.split_at_checked(2)?;
                rest = after;
                byte(digits)?
            }
            b'+' => b' ',
            plain => *plain,
        });
    }
    Some(bytes)
}

/// Two hexadecimal digits.
fn byte(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    u8::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, policy: &str, key: NamedKey<'_>, limit: Option<&str>) {
        let read = KeyQuery::read(Some(query)).unwrap();
        assert_eq!((read.policy.as_str(), read.key(), read.limit.as_deref()), (policy, key, limit));
    }

    #[test]
    fn keys_are_read_part_by_part() {
        check("policy=p&key=gold-1", "p", NamedKey::Values(&[b"gold-1".to_vec()]), None);
        let two = [b"a&b=c".to_vec(), b"d e+\xff".to_vec()];
        check("key=a%26b%3Dc&policy=p&key=d+e%2b%FF&limit=day", "p", NamedKey::Values(&two), Some("day"));
        check("policy=p&key=", "p", NamedKey::Values(&[Vec::new()]), None);
        check("policy=p", "p", NamedKey::Values(&[]), None);
        check("policy=p&bytes=7606", "p", NamedKey::Bytes(b"v\x06"), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (query, expect) in [
            ("", "which policy? Add `policy=NAME`"),
            ("policy=p&keys=a", "there is no parameter `keys`; there are"),
            ("policy=p&policy=q", "`policy` is there twice"),
            ("policy=p&key=%4", "`key`: a `%` in its value is not followed by two hexadecimal digits"),
            ("policy=p&key=%+1", "`key`: a `%` in its value"),
            ("policy=%ff", "`policy` is not a text in UTF-8"),
            ("policy=p&bytes=abc", "`bytes` is not a row of bytes"),
            ("policy=p&bytes=76&key=a", "a key is named by `key` or by `bytes`, not by both"),
        ] {
            let refusal = KeyQuery::read(Some(query)).unwrap_err();
            assert!(refusal.detail.starts_with(expect), "{query}: {}", refusal.detail);
        }
        assert!(KeyQuery::read(Some(&format!("policy=p{}", "&key=a".repeat(16)))).is_err());
    }
}
