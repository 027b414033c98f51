//! What a caller holds of its reservation: all that settling it takes, so that no server has to remember it.
//!
//! ```text
//! 1 byte   the version of this form
//! 16 bytes the reservation's id
//! for each charge: the limit in 8 bytes, the quota in 40, what was taken in 8, whether it was in 1,
//!                  the length of the key in 2, the key
//! 16 bytes of the MAC over all before it
//! ```
//!
//! Numbers stand little end first, and all of it is written in hexadecimal digits. The MAC is there because the keys are:
//! who could write a token could give back what others owe. Whether the reservation is open, only the store knows.

use tidegate_core::{CHARGES_MAX, Charge, Cost, LimitId, Quota, ReservationId};

use super::mac::{MacKey, are_same};

const VERSION: u8 = 1;
/// Bytes of the MAC that are shown.
const MAC_BYTES: usize = 16;
/// Digits of the longest token that is read: more than that of as many charges as there can be, on the longest keys.
pub(super) const DIGITS_MAX: usize = 48 * 1024;

/// A reservation, as settling needs it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) id: ReservationId,
    taken: Vec<Taken>,
}

/// What was taken of one bucket.
#[derive(Debug, PartialEq, Eq)]
struct Taken {
    limit: LimitId,
    quota: Quota,
    cost: Cost,
    /// Not if the limit is in shadow and would have denied, or was only asked.
    is_made: bool,
    key: Box<[u8]>,
}

/// The token of a reservation of these charges, of which `is_made` says which were made.
pub(super) fn write<'c, 'k: 'c>(
    key: &MacKey,
    id: ReservationId,
    charges: impl Iterator<Item = (&'c Charge<'k>, bool)>,
) -> String {
    let mut bytes = vec![VERSION];
    bytes.extend(id.as_u128().to_le_bytes());
    for (charge, is_made) in charges {
        bytes.extend(charge.limit.as_u64().to_le_bytes());
        charge.quota.to_words().iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(charge.cost.tokens().to_le_bytes());
        bytes.push(u8::from(is_made));
        // Keys of policies and of calls are shorter than that.
        let length = u16::try_from(charge.key.len()).unwrap_or(u16::MAX);
        bytes.extend(length.to_le_bytes());
        bytes.extend(&charge.key[..length.into()]);
    }
    let mac = key.mac(&bytes);
    bytes.extend(&mac[..MAC_BYTES]);
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

/// The reservation of a token; `None` if it is none of ours.
pub(super) fn read(key: &MacKey, token: &str) -> Option<Reservation> {
    let bytes = bytes(token)?;
    let (text, mac) = bytes.split_at_checked(bytes.len().checked_sub(MAC_BYTES)?)?;
    if !are_same(&key.mac(text)[..MAC_BYTES], mac) {
        return None;
    }
    let (version, rest) = text.split_first()?;
    let (id, mut rest) = rest.split_first_chunk()?;
    let mut taken = Vec::new();
    while !rest.is_empty() && taken.len() < CHARGES_MAX {
        taken.push(one(&mut rest)?);
    }
    let id = ReservationId::new(u128::from_le_bytes(*id));
    (*version == VERSION && rest.is_empty()).then_some(Reservation { id, taken })
}

fn one(rest: &mut &[u8]) -> Option<Taken> {
    fn chunk<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
        let (chunk, behind) = rest.split_first_chunk()?;
        *rest = behind;
        Some(*chunk)
    }
    let mut number = || chunk(rest).map(u64::from_le_bytes);
    let (limit, words) = (LimitId::from_u64(number()?), [number()?, number()?, number()?, number()?, number()?]);
    let (cost, [is_made]) = (Cost::new(number()?), chunk(rest)?);
    let length = u16::from_le_bytes(chunk(rest)?);
    let (key, behind) = rest.split_at_checked(length.into())?;
    *rest = behind;
    Some(Taken { limit, quota: Quota::from_words(words)?, cost, is_made: is_made == 1, key: key.into() })
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).filter(|_| !digit.is_ascii_uppercase());
    let byte = |pair: &[u8]| u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok();
    let is_whole = digits.len().is_multiple_of(2) && digits.len() <= DIGITS_MAX;
    is_whole.then(|| digits.as_bytes().chunks_exact(2).map(byte).collect())?
}

impl Reservation {
    /// The charges with what was taken as cost, and the true cost of each.
    pub(super) fn settlement(&self, actual: Cost) -> (Vec<Charge<'_>>, Vec<Cost>) {
        let of = |cost, taken: &Taken| if taken.is_made { cost } else { Cost::ZERO };
        let charge = |taken: &Taken| Charge::new(taken.limit, taken.quota, &[]).with_cost(of(taken.cost, taken));
        self.taken.iter().map(|taken| (Charge { key: &taken.key, ..charge(taken) }, of(actual, taken))).unzip()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Algorithm, Limit};

    use super::*;

    fn quota(limit: &str) -> Quota {
        limit.parse::<Limit>().unwrap().quota().unwrap()
    }

    fn token(key: &MacKey) -> String {
        let log = quota("5/h").with_algorithm(Algorithm::SlidingLog).unwrap();
        let charges = [
            Charge::new(LimitId::of("api", "a"), quota("60/min burst 10"), b"ann").with_cost(Cost::new(7)),
            Charge::new(LimitId::of("api", "b"), log, b"\xff\0"),
        ];
        write(key, ReservationId::new(u128::MAX - 1), charges.iter().zip([true, false]))
    }

    #[test]
    fn a_token_holds_what_settling_takes() {
        let key = MacKey::of(b"secret");
        let reservation = read(&key, &token(&key)).unwrap();
        assert_eq!(reservation.id, ReservationId::new(u128::MAX - 1));
        let (charges, actual) = reservation.settlement(Cost::new(9));
        assert_eq!(
            (charges[0].key, charges[0].quota, charges[0].cost),
            (&b"ann"[..], quota("60/min burst 10"), Cost::new(7))
        );
        assert_eq!((charges[1].key, charges[1].quota.algorithm()), (&b"\xff\0"[..], Algorithm::SlidingLog));
        assert_eq!((charges[1].cost, actual), (Cost::ZERO, vec![Cost::new(9), Cost::ZERO]));
    }

    #[test]
    fn what_nobody_here_wrote_is_no_token() {
        let key = MacKey::of(b"secret");
        let token = token(&key);
        assert_eq!(read(&MacKey::of(b"other"), &token), None);
        for at in 0..token.len() {
            assert_eq!(read(&key, &token[..at]), None, "cut at {at}");
            let other = if token.as_bytes()[at] == b'0' { "1" } else { "0" };
            assert_eq!(read(&key, &format!("{}{other}{}", &token[..at], &token[at + 1..])), None, "changed at {at}");
        }
        assert_eq!(read(&key, &token.to_uppercase()), None);
        for wrong in ["", "0", "zz", "\u{e9}", "00"] {
            assert_eq!(read(&key, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_longest_token_is_read() {
        let (key, long) = (MacKey::of(b"secret"), [b'k'; 8 * 130]);
        let charges = [Charge::new(LimitId::of("p", "l"), quota("1/s"), &long); CHARGES_MAX];
        let token = write(&key, ReservationId::new(7), charges.iter().map(|charge| (charge, true)));
        assert!(token.len() < DIGITS_MAX && read(&key, &token).is_some());
    }
}
