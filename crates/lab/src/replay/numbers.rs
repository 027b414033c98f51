//! Numbers as people read them.

use std::fmt;

use crate::words::grouped;

/// A count, with a comma after each three digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count(pub(crate) u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&grouped(self.0))
    }
}

/// A part of a whole, in percent. It is 0 % or 100 % only if it is exactly that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share(pub(crate) u64, pub(crate) u64);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(part, whole) = *self;
        let text = match whole {
            0 => "-".to_owned(),
            _ if part == 0 => "0%".to_owned(),
            _ if part == whole => "100%".to_owned(),
            _ => {
                let thousandths = u128::from(part) * 100_000 / u128::from(whole);
                match thousandths {
                    0 => "<0.001%".to_owned(),
                    1..1_000 => format!("0.{thousandths:03}%"),
                    _ => format!("{}.{:02}%", thousandths / 1_000, thousandths % 1_000 / 10),
                }
            }
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(format!("{} {} {:>6}", Count(0), Count(1_234_567), Count(999)), "0 1,234,567    999");
        assert_eq!(format!("{} {} {}", Share(0, 5), Share(5, 5), Share(0, 0)), "0% 100% -");
        assert_eq!(
            format!("{} {} {}", Share(35, 10_000), Share(1_399, 10_000), Share(1, 1_000_000)),
            "0.350% 13.99% <0.001%"
        );
    }
}
