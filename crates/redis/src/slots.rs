//! Which slot of a cluster a name belongs to (Redis cluster specification, "Key distribution model").

/// A cluster has so many slots.
pub(crate) const SLOTS: u16 = 16_384;

/// The slot of a name: the CRC16 of its hash tag, or of all of it if it has none.
pub(crate) fn slot_of(name: &str) -> u16 {
    crc16(tag_of(name.as_bytes())) % SLOTS
}

/// What stands between the first opening brace and the next closing one, unless that is nothing.
fn tag_of(name: &[u8]) -> &[u8] {
    let tag = name.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &name[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    tag.unwrap_or(name)
}

/// CRC-16/XMODEM: polynomial 0x1021, starting from zero.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| crc << 8 ^ TABLE[usize::from(crc >> 8) ^ usize::from(*byte)])
}

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < table.len() {
        let mut crc = (i as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot_of("foo"), 12_182);
        assert_eq!(slot_of("{user1000}.following"), slot_of("{user1000}.followers"));
        assert_eq!(slot_of("foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot_of("foo{{bar}}zap"), crc16(b"{bar") % SLOTS);
        assert_eq!(slot_of("foo{bar}{zap}"), crc16(b"bar") % SLOTS);
        assert_eq!(slot_of("a}b{c"), crc16(b"a}b{c") % SLOTS);
    }
}
