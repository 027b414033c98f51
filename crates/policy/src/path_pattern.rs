//! Which paths are meant: `/login`, `/users/*/orders`, `/api/*`.

use std::fmt;
use std::str::FromStr;

use crate::{Printable, path::normal_path};

/// The longest pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// The most segments of a pattern.
const SEGMENTS_MAX: usize = 64;

/// A path, with `*` in place of one whole segment, and at its end in place of everything that follows.
///
/// It is compared with the normal form of a path, and brought to that form itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathPattern {
    pub(crate) segments: Vec<Segment>,
    pub(crate) end: End,
}

/// One segment of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Segment {
    Is(String),
    /// Any segment that is not empty.
    Any,
}

/// What stands behind the segments of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    /// Nothing.
    Here,
    /// One more segment at least, which begins with this text, and whatever follows.
    Begins(String),
}

impl PathPattern {
    /// Does it mean this path, which is in its normal form?
    #[must_use]
    pub fn fits(&self, path: &str) -> bool {
        let Some(mut rest) = path.strip_prefix('/').map(Some) else { return false };
        for segment in &self.segments {
            let Some(text) = rest else { return false };
            let (first, behind) = text.split_once('/').map_or((text, None), |(first, behind)| (first, Some(behind)));
            if !segment.fits(first) {
                return false;
            }
            rest = behind;
        }
        match &self.end {
            End::Here => rest.is_none(),
            End::Begins(begin) => rest.is_some_and(|rest| rest.starts_with(begin)),
        }
    }

    /// Is there a path that both mean?
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let common = self.segments.len().min(other.segments.len());
        let (head, more) = self.segments.split_at(common);
        let (other_head, other_more) = other.segments.split_at(common);
        head.iter().zip(other_head).all(|(one, other)| one.overlaps(other))
            && match (more.first(), other_more.first()) {
                (Some(next), _) => other.end.goes_on_as(next),
                (None, Some(next)) => self.end.goes_on_as(next),
                (None, None) => self.end.overlaps(&other.end),
            }
    }
}

impl Segment {
    pub(crate) fn fits(&self, text: &str) -> bool {
        match self {
            Self::Is(segment) => segment == text,
            Self::Any => !text.is_empty(),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, Self::Any) => true,
            (Self::Any, Self::Is(text)) | (Self::Is(text), Self::Any) => !text.is_empty(),
            (Self::Is(one), Self::Is(other)) => one == other,
        }
    }
}

impl End {
    fn goes_on_as(&self, next: &Segment) -> bool {
        match (self, next) {
            (Self::Here, _) => false,
            (Self::Begins(_), Segment::Any) => true,
            (Self::Begins(begin), Segment::Is(text)) => text.starts_with(begin),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Here, Self::Here) => true,
            (Self::Begins(one), Self::Begins(other)) => one.starts_with(other) || other.starts_with(one),
            _ => false,
        }
    }
}

impl FromStr for PathPattern {
    type Err = PathPatternError;

    /// Reads a pattern.
    ///
    /// # Errors
    /// It does not begin with a slash, has `*` beside other characters of a segment before the last, a query, or is too
    /// long.
    fn from_str(text: &str) -> Result<Self, PathPatternError> {
        let error = |fault| PathPatternError { text: text.to_owned(), fault };
        if !text.starts_with('/') {
            return Err(error(Fault::NoSlash));
        }
        if let Some(c) =
            text.chars().find(|c| matches!(c, '?' | '#' | '{' | '}') || c.is_whitespace() || c.is_control())
        {
            return Err(error(Fault::Character(c)));
        }
        let normal = normal_path(text);
        let mut parts: Vec<_> = normal[1..].split('/').collect();
        if text.len() > PATTERN_BYTES_MAX || parts.len() > SEGMENTS_MAX {
            return Err(error(Fault::TooLong));
        }
        let begin = parts.last().and_then(|last| last.strip_suffix('*')).map(str::to_owned);
        if begin.is_some() {
            parts.pop();
        }
        let is_partial = |part: &str| part.len() > 1 && part.contains('*');
        if parts.iter().any(|part| is_partial(part)) || begin.as_ref().is_some_and(|begin| begin.contains('*')) {
            return Err(error(Fault::PartOfSegment));
        }
        let segment = |part: &str| if part == "*" { Segment::Any } else { Segment::Is(part.to_owned()) };
        Ok(Self { segments: parts.into_iter().map(segment).collect(), end: begin.map_or(End::Here, End::Begins) })
    }
}

impl fmt::Display for PathPattern {
    /// The pattern; reading it gives the same one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            match segment {
                Segment::Is(text) => write!(f, "/{text}")?,
                Segment::Any => f.write_str("/*")?,
            }
        }
        match &self.end {
            End::Here => Ok(()),
            End::Begins(begin) => write!(f, "/{begin}*"),
        }
    }
}

/// Why a text is no pattern of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPatternError {
    text: String,
    fault: Fault,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    NoSlash,
    Character(char),
    PartOfSegment,
    TooLong,
}

impl fmt::Display for PathPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Printable(self.text.as_bytes());
        match self.fault {
            Fault::NoSlash if self.text == "*" => f.write_str("every path is `/*`, or no path at all"),
            Fault::NoSlash if self.text.starts_with('^') => {
                write!(f, "`{text}` looks like a regular expression; a path is written `/users/*/orders` or `/api/*`")
            }
            Fault::NoSlash => write!(f, "a path begins with a slash; did you mean `/{text}`?"),
            Fault::Character('?') => {
                write!(f, "`{text}`: the query is not part of the path; leave out `?` and what follows")
            }
            Fault::Character('{' | '}') => write!(f, "`{text}`: a segment with any text is written `*`"),
            Fault::Character(c) => write!(f, "`{text}`: `{}` cannot stand in a path", c.escape_default()),
            Fault::PartOfSegment => {
                write!(f, "`{text}`: `*` stands for a whole segment, or at the end for all that follows")
            }
            Fault::TooLong => write!(
                f,
                "the pattern is too long; the maximum is {PATTERN_BYTES_MAX} bytes and {SEGMENTS_MAX} segments"
            ),
        }
    }
}

impl std::error::Error for PathPatternError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> PathPattern {
        text.parse().unwrap()
    }

    #[track_caller]
    fn check(text: &str, fits: &[&str], others: &[&str]) {
        assert_eq!(pattern(text).to_string().parse(), Ok(pattern(text)));
        fits.iter().for_each(|path| assert!(pattern(text).fits(path), "{text} means {path}"));
        others.iter().for_each(|path| assert!(!pattern(text).fits(path), "{text} does not mean {path}"));
    }

    #[test]
    fn a_pattern_means_these_paths() {
        check("/", &["/"], &["/a", "//", "*"]);
        check("/login", &["/login"], &["/login/", "/Login", "/login2", "/a/login"]);
        check("/api/*", &["/api/", "/api/a", "/api/a/b"], &["/api", "/apis"]);
        check("/api*", &["/api", "/apis", "/api/a"], &["/ap", "/v1/api"]);
        check("/*", &["/", "/a", "/a/b"], &["*"]);
        check("/users/*/orders", &["/users/7/orders"], &["/users//orders", "/users/7/8/orders", "/users/7/orders/"]);
        check("/users/*/*", &["/users/7/", "/users/7/a/b"], &["/users/7"]);
        check("/a/../b/%7e", &["/b/~"], &["/b/%7e"]);
    }

    #[test]
    fn errors_name_what_was_meant() {
        for (text, expect) in [
            ("login", "a path begins with a slash; did you mean `/login`?"),
            ("*", "every path is `/*`, or no path at all"),
            ("^/a$", "`^/a$` looks like a regular expression; a path is written `/users/*/orders` or `/api/*`"),
            ("/a?b=1", "`/a?b=1`: the query is not part of the path; leave out `?` and what follows"),
            ("/users/{id}", "`/users/{id}`: a segment with any text is written `*`"),
            ("/a b", "`/a b`: ` ` cannot stand in a path"),
            ("/a*b/c", "`/a*b/c`: `*` stands for a whole segment, or at the end for all that follows"),
            ("/a*b*", "`/a*b*`: `*` stands for a whole segment, or at the end for all that follows"),
        ] {
            assert_eq!(text.parse::<PathPattern>().unwrap_err().to_string(), expect);
        }
        let long = "/a".repeat(SEGMENTS_MAX + 1);
        assert!(long.parse::<PathPattern>().unwrap_err().to_string().contains("too long"));
    }

    #[test]
    fn patterns_that_overlap_are_known() {
        let pairs = [
            ("/a", "/a", true),
            ("/a", "/b", false),
            ("/a", "/a/*", false),
            ("/a*", "/a", true),
            ("/a/*", "/a/b/c", true),
            ("/a/*", "/*", true),
            ("/a/*/c", "/a/b/*", true),
            ("/a/*/c", "/a/b/d", false),
            ("/ab*", "/a*", true),
            ("/ab*", "/ac*", false),
            ("/ab*", "/*/x", true),
            ("/ab*", "/ac/x", false),
            ("/", "/*", true),
        ];
        for (one, other, expect) in pairs {
            assert_eq!(pattern(one).overlaps(&pattern(other)), expect, "{one} {other}");
            assert_eq!(pattern(other).overlaps(&pattern(one)), expect, "{other} {one}");
        }
    }
}
