//! The place of a request in a trace, as the field `traceparent` says it (W3C Trace Context, section 3.2).

use http::{HeaderMap, HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The length of the field in the version that is written here: `00-<trace>-<span>-<flags>`.
const BYTES: usize = 55;

/// The flag that says that the sender records the trace.
const SAMPLED: u8 = 1;

/// A span, and the trace that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    /// Not zero.
    pub(crate) trace: u128,
    /// Not zero.
    pub(crate) span: u64,
    pub(crate) is_sampled: bool,
}

impl Context {
    /// What the fields say; `None` if they say nothing, or nothing that can be read.
    pub(crate) fn read(fields: &HeaderMap) -> Option<Self> {
        let mut lines = fields.get_all(TRACEPARENT).iter();
        let line = lines.next()?;
        if lines.next().is_some() {
            return None;
        }
        Self::parse(line.as_bytes())
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let (known, more) = text.split_at_checked(BYTES)?;
        let [a, b, b'-', rest @ ..] = known else { return None };
        let version = hex(&[*a, *b])?;
        // A later version may say more, behind a dash.
        let is_read = version != 0xff && (more.is_empty() || (version > 0 && more[0] == b'-'));
        let (trace, rest) = rest.split_at_checked(32)?;
        let (span, flags) = rest.strip_prefix(b"-")?.split_at_checked(16)?;
        let (trace, span, flags) = (hex(trace)?, hex(span)?, hex(flags.strip_prefix(b"-")?)?);
        // Sixteen and two digits.
        let (span, flags) = (span as u64, flags as u8);
        (is_read && trace != 0 && span != 0).then_some(Self { trace, span, is_sampled: flags & SAMPLED > 0 })
    }

    /// Puts it into the fields. What vendors have to say goes on with the trace that it belongs to, and ends with one
    /// that does not go on.
    pub(crate) fn write(&self, fields: &mut HeaderMap, goes_on: bool) {
        let Self { trace, span, is_sampled } = self;
        let text = format!("00-{trace:032x}-{span:016x}-{:02x}", u8::from(*is_sampled));
        if let Ok(value) = HeaderValue::try_from(text) {
            fields.insert(TRACEPARENT, value);
        }
        if !goes_on {
            fields.remove(TRACESTATE);
        }
    }
}

/// Hexadecimal digits, in lower case as the standard has them.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number: u128, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn read(lines: &[&str]) -> Option<Context> {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append("traceparent", line.parse().unwrap());
        }
        Context::read(&fields)
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        let context = read(&[TEXT]).unwrap();
        assert_eq!((context.trace, context.span), (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, 0xb7ad_6b71_6920_3331));
        assert!(context.is_sampled);
        let mut fields = HeaderMap::new();
        fields.insert("tracestate", "a=b".parse().unwrap());
        context.write(&mut fields, true);
        assert_eq!((&fields["traceparent"], &fields["tracestate"]), (&TEXT.parse().unwrap(), &"a=b".parse().unwrap()));
        context.write(&mut fields, false);
        assert!(!fields.contains_key("tracestate"));
    }

    #[test]
    fn what_the_standard_does_not_know_is_not_read() {
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01more",
            "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
        ] {
            assert_eq!(read(&[wrong]), None, "{wrong}");
        }
        assert_eq!(read(&[TEXT, TEXT]), None);
        let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more";
        assert_eq!(read(&[later]).map(|context| context.is_sampled), Some(false));
    }
}
