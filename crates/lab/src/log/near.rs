//! The place of a byte that is likely to be near: most fields are shorter than what makes wide registers worth their
//! setting up.

/// So many bytes are looked through eight at a time.
const NEAR_BYTES: usize = 32;
/// One in each of eight bytes.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The first place of this byte.
#[inline]
pub(crate) fn near(byte: u8, rest: &[u8]) -> Option<usize> {
    let (eights, _) = rest.as_chunks::<8>();
    for (at, eight) in eights.iter().take(NEAR_BYTES / 8).enumerate() {
        // A byte of the difference is zero where it stands, and the lowest zero is found exactly.
        let difference = u64::from_le_bytes(*eight) ^ (u64::from(byte) * ONES);
        let zeros = difference.wrapping_sub(ONES) & !difference & (ONES << 7);
        if zeros != 0 {
            return Some(at * 8 + zeros.trailing_zeros() as usize / 8);
        }
    }
    let passed = rest.len().min(NEAR_BYTES) / 8 * 8;
    memchr::memchr(byte, &rest[passed..]).map(|at| passed + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_what_a_plain_search_finds() {
        let mut random = 1_u64;
        for round in 0..2_000 {
            let text: Vec<u8> = (0..round % 90)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    b" !\x80\xa0\0\x01x"[(random >> 33) as usize % 7]
                })
                .collect();
            for byte in [b' ', b'!', 0x80, 0xa0, 0, 1, b'y'] {
                assert_eq!(near(byte, &text), text.iter().position(|found| *found == byte), "{byte} in {text:?}");
            }
        }
    }
}
