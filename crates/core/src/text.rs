//! The text form of limits, read and written.
//!
//! ```text
//! limit  = count "/" [number] unit ["burst" number]  |  "unlimited"
//! ```
//!
//! Case does not matter; spaces may stand between the parts. There are no decimals, no signs and no bare numbers: what
//! could be read in two ways is refused, and the message says what was likely meant.

use core::time::Duration;

use crate::limit_error::{Excerpt, Fault};
use crate::period::{UNITS, unit};
use crate::{Limit, LimitError, Quota, QuotaError, Rate};

/// Reads a limit.
pub(crate) fn parse(text: &str) -> Result<Limit, LimitError> {
    let mut reader = Reader { text, at: 0 };
    reader.limit().map_err(|fault| LimitError { text: Excerpt::of(text), at: reader.at, fault })
}

/// Walks through the text; `at` stands where the next part begins, which is also where a fault is reported.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

/// A number as it was written: whole, or with digits behind a point.
#[derive(Clone, Copy)]
struct Written {
    /// All digits, without the point.
    digits: u64,
    /// 10 to the number of digits behind the point; 1 if whole.
    scale: u64,
}

impl Written {
    /// The digits before and behind the point; `None` if they are too many. A point alone counts as `.0`.
    fn read(whole: &str, fraction: &str, point: bool) -> Option<Self> {
        let fraction = if point && fraction.is_empty() { "0" } else { fraction };
        let mut digits: u64 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            digits = digits.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        }
        let scale = 10u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        Some(Self { digits, scale })
    }
}

impl<'a> Reader<'a> {
    fn limit(&mut self) -> Result<Limit, Fault> {
        self.skip_spaces();
        if self.rest().is_empty() {
            return Err(Fault::Empty);
        }
        if self.rest().trim_end().eq_ignore_ascii_case("unlimited") {
            return Ok(Limit::Unlimited);
        }
        let start = self.at;
        let count = self.count()?;
        let (period, unit) = self.period(count, start)?;
        let burst = self.burst()?;
        self.end()?;
        self.at = start;
        limit(count.digits, period, burst, unit)
    }

    /// The count, up to the slash.
    fn count(&mut self) -> Result<Written, Fault> {
        let start = self.at;
        let Some(count) = self.number()? else { return Err(self.no_count(start)) };
        self.skip_spaces();
        if self.take('/') {
            self.skip_spaces();
            return Ok(count);
        }
        let slash_at = self.at;
        let fault = self.no_slash(count, start);
        self.at = if matches!(fault, Fault::NoCount { .. } | Fault::Decimal) { start } else { slash_at };
        Err(fault)
    }

    /// What was likely meant by a text that does not begin with a number.
    fn no_count(&mut self, start: usize) -> Fault {
        self.take('/');
        let word = self.word();
        self.at = start;
        if unit(word).is_some() { Fault::NoCount { period: Excerpt::of(word) } } else { Fault::NotACount }
    }

    /// What was likely meant by a number without a slash behind it.
    fn no_slash(&mut self, count: Written, start: usize) -> Fault {
        let rest = Excerpt::of(self.rest().trim());
        let word = self.word();
        let is = |name: &&str| word.eq_ignore_ascii_case(name);
        match unit(word) {
            _ if count.scale > 1 => Fault::Decimal,
            _ if is(&"m") && count.digits == 0 => Fault::MinuteOrMonth { count: 0, number: 1 },
            _ if is(&"m") => Fault::MinuteOrMonth { count: 1, number: count.digits },
            _ if is(&"burst") => Fault::NoPeriod { count: count.digits, burst: self.written_burst() },
            _ if ["per", "in", "every", "each"].iter().any(is) => self.word_for_slash(count.digits),
            Some(_) if count.digits == 0 => Fault::WordForSlash { count: 0, period: Excerpt::of(word) },
            Some(_) => Fault::NoCount { period: Excerpt::of(self.text[start..self.at].trim()) },
            None if self.rest().is_empty() && word.is_empty() => Fault::NoPeriod { count: count.digits, burst: None },
            None => Fault::Trailing { rest },
        }
    }

    /// What was likely meant by the period behind a word such as `per`.
    fn word_for_slash(&mut self, count: u64) -> Fault {
        self.skip_spaces();
        let start = self.at;
        let number = self.number().ok().flatten();
        self.skip_spaces();
        let word = self.word();
        match number {
            _ if unit(word).is_some() => Fault::WordForSlash { count, period: Excerpt::of(&self.text[start..self.at]) },
            Some(Written { scale: 2.., .. }) => Fault::Decimal,
            _ if word.eq_ignore_ascii_case("m") => {
                Fault::MinuteOrMonth { count, number: number.map_or(1, |number| number.digits) }
            }
            Some(number) => Fault::NoUnit { count, number: number.digits, burst: None },
            None => Fault::NoPeriod { count, burst: None },
        }
    }

    /// The period behind the slash: its length in nanoseconds, and the name of its unit. The count stood at `count_at`.
    fn period(&mut self, count: Written, count_at: usize) -> Result<(u64, &'static str), Fault> {
        let start = self.at;
        let number = self.number()?;
        let unit_at = self.at;
        self.skip_spaces();
        let word = self.word();
        let whole = number.unwrap_or(Written { digits: 1, scale: 1 });
        let Some((unit_ns, name)) = unit(word) else {
            self.at = unit_at;
            let fault = self.no_unit(count, number);
            if fault == Fault::Decimal {
                self.at = if count.scale > 1 { count_at } else { start };
            }
            return Err(fault);
        };
        if count.scale > 1 {
            self.at = count_at;
            return Err(decimal_count(count, whole, name));
        }
        if whole.scale > 1 {
            self.at = start;
            return Err(decimal_period(count, whole, unit_ns));
        }
        let period_ns = whole.digits.checked_mul(unit_ns).ok_or(Fault::Quota(QuotaError::PeriodTooLong))?;
        Ok((period_ns, name))
    }

    /// What was likely meant by a period that has no unit that we know. Leaves `at` where the unit should stand.
    fn no_unit(&mut self, count: Written, number: Option<Written>) -> Fault {
        let unit_at = self.at;
        self.skip_spaces();
        let (rest, word) = (self.rest().trim(), self.word());
        let burst = if word.eq_ignore_ascii_case("burst") { Some(self.written_burst()) } else { None };
        self.at = unit_at;
        let decimal = count.scale > 1 || number.is_some_and(|number| number.scale > 1);
        let count = count.digits;
        match (rest, burst) {
            _ if rest.starts_with('-') => Fault::Negative,
            ("", _) | (_, Some(_)) if decimal => Fault::Decimal,
            _ if word.eq_ignore_ascii_case("m") && decimal => Fault::Decimal,
            _ if word.eq_ignore_ascii_case("m") => {
                Fault::MinuteOrMonth { count, number: number.map_or(1, |number| number.digits) }
            }
            ("", _) | (_, Some(_)) => match number {
                Some(number) => Fault::NoUnit { count, number: number.digits, burst: burst.flatten() },
                None => Fault::NoPeriod { count, burst: burst.flatten() },
            },
            _ => Fault::UnknownUnit { unit: Excerpt::of(if word.is_empty() { rest } else { word }) },
        }
    }

    /// The number behind the word `burst`, for a hint: `None` if it is not a whole one.
    fn written_burst(&mut self) -> Option<u64> {
        self.skip_spaces();
        self.number().ok().flatten().filter(|number| number.scale == 1).map(|number| number.digits)
    }

    fn burst(&mut self) -> Result<Option<u64>, Fault> {
        self.skip_spaces();
        let start = self.at;
        if !self.word().eq_ignore_ascii_case("burst") {
            self.at = start;
            return Ok(None);
        }
        self.skip_spaces();
        match self.number()? {
            Some(Written { digits, scale: 1 }) => Ok(Some(digits)),
            Some(_) => Err(Fault::Decimal),
            None => Err(Fault::BurstWithoutNumber),
        }
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.skip_spaces();
        if self.rest().is_empty() { Ok(()) } else { Err(Fault::Trailing { rest: Excerpt::of(self.rest().trim()) }) }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The byte that comes next.
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        // Nearly always something visible comes next.
        if self.byte().is_some_and(|byte| byte.is_ascii_graphic()) {
            return;
        }
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn take(&mut self, c: char) -> bool {
        let taken = self.rest().starts_with(c);
        self.at += if taken { c.len_utf8() } else { 0 };
        taken
    }

    /// The letters that follow, possibly none.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let ascii = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let end = match rest.as_bytes().get(ascii) {
            // The word of another language goes on.
            Some(0x80..) => rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len()),
            _ => ascii,
        };
        self.at += end;
        &rest[..end]
    }

    /// The number that follows, if one does.
    fn number(&mut self) -> Result<Option<Written>, Fault> {
        if matches!(self.byte(), Some(b'-' | b'+')) {
            return Err(Fault::Negative);
        }
        let start = self.at;
        let whole = self.digits();
        let after_point = self.rest().strip_prefix('.');
        let fraction = match after_point {
            None if whole.is_empty() => return Ok(None),
            Some(rest) if whole.is_empty() && !rest.starts_with(|c: char| c.is_ascii_digit()) => return Ok(None),
            None => "",
            Some(_) => {
                self.take('.');
                self.digits()
            }
        };
        Written::read(whole, fraction, after_point.is_some()).map(Some).ok_or_else(|| {
            self.at = start;
            Fault::TooLarge
        })
    }

    fn digits(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.bytes().take_while(u8::is_ascii_digit).count();
        self.at += end;
        &rest[..end]
    }
}

fn limit(count: u64, period_ns: u64, burst: Option<u64>, unit: &'static str) -> Result<Limit, Fault> {
    let period = Duration::from_nanos(period_ns);
    if count == 0 {
        if burst.is_some() {
            return Err(Fault::ZeroWithBurst { unit });
        }
        Quota::block(period).map_err(Fault::Quota)?;
        return Ok(Limit::Block { period });
    }
    let rate = Rate::new(count, period).map_err(Fault::Quota)?;
    let quota = burst.map_or_else(|| Quota::new(rate), |burst| Quota::with_burst(rate, burst));
    quota.map(Limit::Quota).map_err(Fault::Quota)
}

/// `1.5/s` is `3/2s`: the fraction in lowest terms, its denominator in the period.
fn decimal_count(count: Written, period: Written, unit: &'static str) -> Fault {
    let Some(denominator) = count.scale.checked_mul(period.digits) else { return Fault::Decimal };
    let divisor = gcd(count.digits, denominator);
    if period.scale > 1 || divisor == 0 || count.digits == 0 {
        return Fault::Decimal;
    }
    Fault::DecimalCount { numerator: count.digits / divisor, denominator: denominator / divisor, unit }
}

/// `10/1.5h` is `10/90min`: the same period in the largest unit that divides it.
fn decimal_period(count: Written, period: Written, unit_ns: u64) -> Fault {
    let ns = u128::from(period.digits) * u128::from(unit_ns);
    let scale = u128::from(period.scale);
    let same = UNITS.iter().find(|(ns_each, ..)| ns > 0 && ns % (scale * u128::from(*ns_each)) == 0);
    let Some((unit_ns, unit, _)) = same else { return Fault::Decimal };
    match u64::try_from(ns / scale / u128::from(*unit_ns)) {
        Ok(number) => Fault::DecimalPeriod { count: count.digits, number, unit },
        Err(_) => Fault::Decimal,
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
