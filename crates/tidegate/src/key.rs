//! What can be a key.
//!
//! A key is bytes, the same ones in every store. Numbers are eight or sixteen bytes, big end first; the parts of a
//! tuple are joined with their lengths, so that no two tuples give the same bytes.

use std::net::IpAddr;

/// Whatever a bucket can belong to.
///
/// Keys are compared as bytes: `"7"` and `7_u64` are different, and so are `"Ann"` and `"ann"`.
pub trait Key {
    /// Calls `with` with the key's bytes.
    fn with_bytes<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R;
}

/// Keys of tuples up to this length are joined on the stack.
const JOINED_INLINE_BYTES: usize = 128;

impl<K: Key + ?Sized> Key for &K {
    #[inline]
    fn with_bytes<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(with)
    }
}

/// For limits that have no keys: everything shares one bucket.
impl Key for () {
    fn with_bytes<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
        with(&[])
    }
}

impl Key for IpAddr {
    /// The address as it is; `tidegate-policy` knows how to group and unmap addresses.
    fn with_bytes<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::V4(v4) => with(&v4.octets()),
            Self::V6(v6) => with(&v6.octets()),
        }
    }
}

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn with_bytes<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
        with(self)
    }
}

macro_rules! as_bytes {
    ($($type:ty),*) => {$(
        impl Key for $type {
            #[inline]
            fn with_bytes<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
                with(self.as_ref())
            }
        }
    )*};
}

macro_rules! as_integer {
    ($($type:ty => $wide:ty),*) => {$(
        impl Key for $type {
            #[inline]
            fn with_bytes<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
                with(&<$wide>::from(*self).to_be_bytes())
            }
        }
    )*};
}

macro_rules! as_tuple {
    ($($name:ident)*) => {
        impl<$($name: Key),*> Key for ($($name,)*) {
            #[expect(non_snake_case, reason = "the fields are named after their types")]
            fn with_bytes<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
                let mut joined = Joined::default();
                let ($($name,)*) = self;
                $($name.with_bytes(|bytes| joined.push(bytes));)*
                with(joined.bytes())
            }
        }
    };
}

as_bytes!(str, String, [u8], Vec<u8>);
as_integer!(u8 => u64, u16 => u64, u32 => u64, u64 => u64, u128 => u128);
as_integer!(i8 => i64, i16 => i64, i32 => i64, i64 => i64, i128 => i128);
as_tuple!(A B);
as_tuple!(A B C);
as_tuple!(A B C D);

/// The parts of a tuple: the length of each in eight bytes, then its bytes.
struct Joined {
    inline: [u8; JOINED_INLINE_BYTES],
    length: usize,
    /// Used instead once the parts are too long.
    spilled: Vec<u8>,
}

impl Default for Joined {
    fn default() -> Self {
        Self { inline: [0; JOINED_INLINE_BYTES], length: 0, spilled: Vec::new() }
    }
}

impl Joined {
    fn push(&mut self, part: &[u8]) {
        self.append(&(part.len() as u64).to_be_bytes());
        self.append(part);
    }

    fn append(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if self.spilled.is_empty() && end <= JOINED_INLINE_BYTES {
            self.inline[self.length..end].copy_from_slice(bytes);
        } else {
            if self.spilled.is_empty() {
                self.spilled.extend_from_slice(&self.inline[..self.length]);
            }
            self.spilled.extend_from_slice(bytes);
        }
        self.length = end;
    }

    fn bytes(&self) -> &[u8] {
        if self.spilled.is_empty() { &self.inline[..self.length] } else { &self.spilled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(key: impl Key) -> Vec<u8> {
        key.with_bytes(<[u8]>::to_vec)
    }

    #[test]
    fn br_107_parts_that_only_look_alike_when_joined_are_different_keys() {
        let pairs = [
            (("a:b", "c"), ("a", "b:c")),
            (("api", "2001:db8::1"), ("api:2001", "db8::1")),
            (("a|b", "c"), ("a", "b|c")),
            (("a/b", "c"), ("a", "b/c")),
            (("a\n", "b"), ("a", "\nb")),
            (("", "ab"), ("ab", "")),
            (("a\0\0\0\0\0\0\0\x01b", ""), ("a", "b")),
        ];
        for (one, other) in pairs {
            assert_ne!(bytes(one), bytes(other), "{one:?} and {other:?}");
        }
    }

    #[test]
    fn long_parts_are_joined_like_short_ones() {
        let long = "x".repeat(JOINED_INLINE_BYTES);
        let joined = bytes((long.as_str(), "y"));
        assert_eq!(joined.len(), 8 + JOINED_INLINE_BYTES + 8 + 1);
        assert!(joined.ends_with(b"\0\0\0\0\0\0\0\x01y"));
        assert_ne!(joined, bytes(("y", long.as_str())));
    }

    #[test]
    fn the_width_of_an_integer_does_not_matter_but_its_kind_does() {
        assert_eq!(bytes(7_u8), bytes(7_u64));
        assert_ne!(bytes(7_u64), bytes("7"));
        assert_ne!(bytes(7_u128), bytes(7_u64));
    }
}
