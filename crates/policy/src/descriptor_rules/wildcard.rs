//! A value with stars in it: each stands for any text, also for none.

/// The texts around the stars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wildcard {
    first: String,
    between: Vec<String>,
    last: String,
}

impl Wildcard {
    /// The pattern that a text is; `None` if there is no star in it.
    pub(super) fn new(text: &str) -> Option<Self> {
        let (first, rest) = text.split_once('*')?;
        let mut between: Vec<_> = rest.split('*').map(str::to_owned).collect();
        let last = between.pop().unwrap_or_default();
        between.retain(|text| !text.is_empty());
        Some(Self { first: first.to_owned(), between, last })
    }

    pub(super) fn matches(&self, value: &str) -> bool {
        let inner = value.strip_prefix(self.first.as_str()).and_then(|rest| rest.strip_suffix(self.last.as_str()));
        let Some(mut inner) = inner else { return false };
        // The first place of each is the one that leaves most to the others.
        self.between.iter().all(|text| match inner.split_once(text.as_str()) {
            Some((_, rest)) => {
                inner = rest;
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        let cases = [
            ("*", &["", "a", "a/b"][..], &[][..]),
            ("foo*", &["foo", "foobar"], &["fo", "barfoo"]),
            ("*foo", &["foo", "barfoo"], &["foobar"]),
            ("a*a", &["aa", "aba"], &["a", "ab"]),
            ("a*b*c", &["abc", "axbxc", "abbc"], &["ac", "acb", "abcd"]),
            ("**", &["", "a"], &[]),
        ];
        for (pattern, yes, no) in cases {
            let wildcard = Wildcard::new(pattern).unwrap();
            yes.iter().for_each(|value| assert!(wildcard.matches(value), "{pattern} {value}"));
            no.iter().for_each(|value| assert!(!wildcard.matches(value), "{pattern} {value}"));
        }
        assert_eq!(Wildcard::new("plain"), None);
    }
}
