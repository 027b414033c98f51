//! The day on which a certificate ends, read from its bytes.
//!
//! A certificate is a tree of tagged values (DER). The way to the end of its validity is short: the first value of the
//! certificate, in it the fourth, of that the second (RFC 5280, section 4.1).

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The last second in which a certificate is valid, since the epoch of Unix. Nothing if that cannot be read.
pub(crate) fn not_after(certificate: &[u8]) -> Option<i64> {
    let mut fields = inside(inside(certificate, SEQUENCE)?, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = value(fields)?.2;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        fields = value(fields)?.2;
    }
    let validity = inside(fields, SEQUENCE)?;
    let (tag, time, _) = value(value(validity)?.2)?;
    unix_s(tag, time)
}

/// What is in the first value, which must have this tag.
fn inside(bytes: &[u8], expected: u8) -> Option<&[u8]> {
    let (tag, content, _) = value(bytes)?;
    (tag == expected).then_some(content)
}

/// The tag of the first value, what is in it, and what follows it.
fn value(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => (usize::from(u16::from_be_bytes(*rest.first_chunk()?)), rest.get(2..)?),
        // No certificate is as long as that.
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// `YYMMDDHHMMSSZ`, or with four digits for the year; years of two digits are from 1950 to 2049.
fn unix_s(tag: u8, text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    let pair = |at: usize| {
        let pair = digits.get(at..at + 2)?;
        let number = pair.iter().all(u8::is_ascii_digit).then(|| (pair[0] - b'0') * 10 + (pair[1] - b'0'));
        number.map(i64::from)
    };
    let (year, at) = match (tag, digits.len()) {
        (UTC_TIME, 12) => (pair(0).map(|year| if year < 50 { 2000 + year } else { 1900 + year })?, 2),
        (GENERALIZED_TIME, 14) => (pair(0)? * 100 + pair(2)?, 4),
        _ => return None,
    };
    let (month, day) = (pair(at)?, pair(at + 2)?);
    let time = pair(at + 4)? * 3600 + pair(at + 6)? * 60 + pair(at + 8)?;
    ((1..=12).contains(&month) && (1..=31).contains(&day)).then(|| days(year, month, day) * 86_400 + time)
}

/// Days since the epoch of Unix. Years begin in March here, so that the day that some of them have more is their last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(unix_s(UTC_TIME, b"700101000000Z"), Some(0));
        assert_eq!(unix_s(UTC_TIME, b"491231235959Z"), Some(2_524_607_999));
        assert_eq!(unix_s(GENERALIZED_TIME, b"20500101000000Z"), Some(2_524_608_000));
        assert_eq!(unix_s(GENERALIZED_TIME, b"20240229120000Z"), Some(1_709_208_000));
        assert_eq!(unix_s(UTC_TIME, b"240301000000Z"), Some(1_709_251_200));
        for text in ["", "Z", "2401010000Z", "24010100000aZ", "241301000000Z", "240100000000Z", "240101000000"] {
            assert_eq!(unix_s(UTC_TIME, text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn the_end_of_a_certificate_is_found() {
        let mut terms = rcgen::CertificateParams::new(["a.example".to_owned()]).unwrap();
        terms.not_after = rcgen::date_time_ymd(2031, 5, 6);
        let certificate = terms.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        assert_eq!(not_after(certificate.der()), Some(1_935_792_000));
        // Cut off anywhere before it, there is none; and no length makes it read beyond the end.
        (0..100).for_each(|length| assert_eq!(not_after(&certificate.der()[..length]), None));
    }
}
