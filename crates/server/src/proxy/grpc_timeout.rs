//! The deadline of a gRPC call, as its client says it.
//!
//! `grpc-timeout` is a number of at most eight digits and a unit ("gRPC over HTTP/2", requests).

use std::time::Duration;

use http::{HeaderMap, HeaderName};

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const DIGITS_MAX: usize = 8;

/// The time that the call has, if its client says so.
pub(crate) fn grpc_timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(GRPC_TIMEOUT)?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > DIGITS_MAX || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_grpc_writes_them() {
        let read = |text: &'static str| grpc_timeout(&HeaderMap::from_iter([(GRPC_TIMEOUT, text.parse().unwrap())]));
        assert_eq!(read("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        let second = [read("1000m"), read("1000000u"), read("1S")];
        assert_eq!(second, [Some(Duration::from_secs(1)); 3]);
        assert_eq!((read("2M"), read("5n")), (Some(Duration::from_secs(120)), Some(Duration::from_nanos(5))));
        for wrong in ["", "S", "1", "1s", "+1S", "-1S", "1.5S", "123456789S", "1 S"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(grpc_timeout(&HeaderMap::new()), None);
    }
}
