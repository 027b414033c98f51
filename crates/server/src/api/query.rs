//! The part of a target behind its question mark.

use super::refusal::Refusal;
use crate::operating::admin::decoded;

/// The most parameters.
const PARAMETERS_MAX: usize = 16;

/// The parameters of a target, which are among `known`; of those in `several` there may be more than one.
pub(super) fn read(
    query: Option<&str>,
    known: &[&'static str],
    several: &[&'static str],
) -> Result<Vec<(&'static str, String)>, Refusal> {
    let mut read = Vec::<(&'static str, String)>::new();
    for parameter in query.unwrap_or_default().split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let Some(name) = known.iter().find(|known| **known == name) else { return Err(unknown(name, known)) };
        if !several.contains(name) && read.iter().any(|(there, _)| there == name) {
            return Err(Refusal::parameter(name, "it is there twice"));
        }
        if read.len() == PARAMETERS_MAX {
            return Err(Refusal::parameter(name, format_args!("there are more than {PARAMETERS_MAX} parameters")));
        }
        let value = decoded(value).and_then(|value| String::from_utf8(value).ok());
        let value = value.ok_or_else(|| Refusal::parameter(name, "its value is no text in UTF-8, percent-encoded"))?;
        read.push((name, value));
    }
    Ok(read)
}

fn unknown(name: &str, known: &[&str]) -> Refusal {
    let known = match known {
        [] => "this takes none".to_owned(),
        known => format!("there are {}", known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    };
    Refusal::parameter(name, format_args!("there is no such parameter; {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_by_their_names() {
        let read = |query| read(Some(query), &["key", "limit"], &["key"]).map_err(|refusal| refusal.detail);
        let key = |text: &str| ("key", text.to_owned());
        assert_eq!(read(""), Ok(Vec::new()));
        assert_eq!(read("key=a%2Fb+c&key=&key=%C3%A9"), Ok(vec![key("a/b c"), key(""), key("\u{e9}")]));
        assert_eq!(read("limit=1&limit=2").unwrap_err(), "`limit`: it is there twice");
        assert_eq!(read("keys=1").unwrap_err(), "`keys`: there is no such parameter; there are `key`, `limit`");
        let no_text = "`key`: its value is no text in UTF-8, percent-encoded";
        assert_eq!((read("key=%ff").unwrap_err().as_str(), read("key=%f").unwrap_err().as_str()), (no_text, no_text));
        assert!(read(&"key=a&".repeat(PARAMETERS_MAX + 1)).is_err());
    }
}
