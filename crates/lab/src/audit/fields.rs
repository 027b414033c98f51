//! The fields by which a service tells its callers of limits.

use http::HeaderMap;

/// Does a field of this name, in lower case, tell of limits?
fn tells_of_limits(name: &str) -> bool {
    let name = name.strip_prefix("x-").unwrap_or(name);
    name == "retry-after" || name.starts_with("ratelimit") || name.starts_with("rate-limit")
}

/// Those of an answer, in the order in which they stand.
pub(super) fn of_limits(fields: &HeaderMap) -> Vec<(String, String)> {
    let told = fields.iter().filter(|(name, _)| tells_of_limits(name.as_str()));
    told.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use http::header::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn fields_of_limits_are_told_from_others() {
        let names = ["ratelimit", "ratelimit-policy", "x-ratelimit-limit", "x-rate-limit-reset", "retry-after"];
        let others = ["content-type", "x-rate", "date", "x-request-id"];
        let pairs =
            names.iter().chain(&others).map(|name| (HeaderName::from_static(name), HeaderValue::from_static("1")));
        let told = of_limits(&pairs.collect());
        let mut told: Vec<_> = told.iter().map(|(name, _)| name.as_str()).collect();
        told.sort_unstable();
        let mut expected = names;
        expected.sort_unstable();
        assert_eq!(told, expected);
    }
}
