//! Decimals: an integer and a scale, `unscaled × 10^-scale`. Agrees with `java.math.BigDecimal` as
//! far as `DecimalType` uses it: the scale of a result, how many digits are kept, how they are
//! rounded.
//!
//! The scale may be any 32-bit number, so 1E+2000000000 is a value of five bytes. No function here
//! expands a number to more than [`DIGITS_MAX`] digits; a calculation that would need more is
//! refused.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::{BigInt, Sign};
use num_traits::{Signed, Zero};

use crate::{TypeError, java_number, radix};

/// Most digits that sums and products keep.
const PRECISION_MAX: i64 = 10_000;
/// Powers of ten that Java multiplies a `long` by: 10^0 to 10^18.
const LONG_POWERS: u32 = 19;
/// Fewest digits that a division gives, unless the quotient ends earlier.
const QUOTIENT_DIGITS_MIN: i64 = 32;
/// Largest scale of a quotient.
const QUOTIENT_SCALE_MAX: i64 = 1000;
/// Most digits of an intermediate result; a calculation that needs more is refused.
const DIGITS_MAX: u64 = 100_000;

/// A decimal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decimal {
    /// All digits, without the point.
    pub unscaled: BigInt,
    /// Number of digits behind the point; negative: number of zeros that follow the digits.
    pub scale: i32,
}

/// How dropped digits round the digit before them. All three work on the magnitude, whatever the
/// sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// Halves away from zero.
    HalfUp,
    /// Halves to the even digit.
    HalfEven,
    /// Toward zero.
    Down,
}

fn refuse<T>(message: &'static str) -> Result<T, TypeError> {
    Err(TypeError::Arithmetic(message.into()))
}

fn power_of_ten(exponent: u64) -> Result<BigInt, TypeError> {
    match u32::try_from(exponent) {
        Ok(small) if exponent <= DIGITS_MAX => Ok(BigInt::from(10u8).pow(small)),
        _ => refuse("Overflow"),
    }
}

/// `dividend / divisor`, rounded; the divisor is not zero.
fn divide_rounded(dividend: &BigInt, divisor: &BigInt, rounding: Rounding) -> BigInt {
    let quotient = dividend / divisor;
    let rest: BigInt = dividend - &quotient * divisor;
    let away = match (rounding, (rest.abs() * 2u8).cmp(&divisor.abs())) {
        (Rounding::Down, _) | (_, Ordering::Less) => false,
        (_, Ordering::Greater) | (Rounding::HalfUp, Ordering::Equal) => true,
        (Rounding::HalfEven, Ordering::Equal) => quotient.bit(0),
    };
    match away {
        false => quotient,
        true if dividend.is_negative() == divisor.is_negative() => quotient + 1,
        true => quotient - 1,
    }
}

impl Decimal {
    /// Zero with scale zero.
    pub fn zero() -> Self {
        Self { unscaled: BigInt::zero(), scale: 0 }
    }

    /// A decimal whose scale may not fit 32 bits; then an error.
    fn new(unscaled: BigInt, scale: i64) -> Result<Self, TypeError> {
        match i32::try_from(scale) {
            Ok(scale) => Ok(Self { unscaled, scale }),
            Err(_) if unscaled.is_zero() => Ok(Self { unscaled, scale: if scale > 0 { i32::MAX } else { i32::MIN } }),
            Err(_) => refuse(if scale > 0 { "Underflow" } else { "Overflow" }),
        }
    }

    /// Reads the bytes: i32 scale, then the unscaled value. None: there are too few bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (scale, unscaled) = bytes.split_first_chunk::<4>()?;
        Some(Self { unscaled: BigInt::from_signed_bytes_be(unscaled), scale: i32::from_be_bytes(*scale) })
    }

    /// The bytes: i32 scale, then the unscaled value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.scale.to_be_bytes().to_vec();
        out.extend_from_slice(&self.unscaled.to_signed_bytes_be());
        out
    }

    /// Reads a decimal as Java does. None: the text is no decimal.
    pub fn parse(text: &str) -> Option<Self> {
        java_number::parse_decimal(text).map(|(unscaled, scale)| Self { unscaled, scale })
    }

    /// The decimal whose text is that of the double.
    pub fn of_double(value: f64) -> Result<Self, TypeError> {
        if value.is_nan() {
            return refuse("A NaN cannot be converted into a decimal");
        }
        if value.is_infinite() {
            return refuse("An infinite number cannot be converted into a decimal");
        }
        Ok(Self::parse(&java_number::print_double(value)).expect("a finite double prints as a decimal"))
    }

    /// The nearest double.
    pub fn to_double(&self) -> f64 {
        self.to_string().parse().expect("a decimal prints as a number")
    }

    /// The whole part. An error if it has too many digits.
    pub fn to_integer(&self) -> Result<BigInt, TypeError> {
        let scale = i64::from(self.scale);
        if scale <= 0 {
            return Ok(if self.unscaled.is_zero() {
                BigInt::zero()
            } else {
                &self.unscaled * power_of_ten(scale.unsigned_abs())?
            });
        }
        if scale > self.precision() {
            return Ok(BigInt::zero());
        }
        Ok(&self.unscaled / power_of_ten(scale.unsigned_abs())?)
    }

    /// The low 64 bits of the whole part.
    pub fn to_long(&self) -> i64 {
        // 10^64 is a multiple of 2^64, so such a scale leaves no low bits
        const SCALE_WITHOUT_LOW_BITS: i32 = -64;
        if self.scale <= SCALE_WITHOUT_LOW_BITS {
            return 0;
        }
        self.to_integer().map_or(0, |whole| low_bits(&whole))
    }

    /// Number of digits of the unscaled value; zero has one.
    pub fn precision(&self) -> i64 {
        digit_count(&self.unscaled)
    }

    /// Position of the first digit: 1 for 1 to 9.99…, 0 for 0.1 to 0.99….
    fn magnitude(&self) -> i64 {
        self.precision() - i64::from(self.scale)
    }

    /// Rounds to at most `precision` digits.
    pub fn round_to(self, precision: i64, rounding: Rounding) -> Result<Self, TypeError> {
        let mut rounded = self;
        // rounding up may carry into one more digit
        while let excess @ 1.. = rounded.precision() - precision {
            let unscaled = divide_rounded(&rounded.unscaled, &power_of_ten(excess.unsigned_abs())?, rounding);
            rounded = Self::new(unscaled, i64::from(rounded.scale) - excess)?;
        }
        Ok(rounded)
    }

    /// The same number with this scale, rounded if digits are dropped.
    pub fn with_scale(&self, scale: i32, rounding: Rounding) -> Result<Self, TypeError> {
        let more = i64::from(scale) - i64::from(self.scale);
        let unscaled = match more {
            0 => self.unscaled.clone(),
            _ if self.unscaled.is_zero() => BigInt::zero(),
            1.. => &self.unscaled * power_of_ten(more.unsigned_abs())?,
            // more digits are dropped than there are: nothing is left
            _ if more.unsigned_abs() > self.precision().unsigned_abs() + 1 => BigInt::zero(),
            _ => divide_rounded(&self.unscaled, &power_of_ten(more.unsigned_abs())?, rounding),
        };
        Ok(Self { unscaled, scale })
    }

    /// The sum, of at most 10,000 digits.
    pub fn add(&self, other: &Self) -> Result<Self, TypeError> {
        let scale = self.scale.max(other.scale);
        if self.unscaled.is_zero() || other.unscaled.is_zero() {
            let sum = if self.unscaled.is_zero() { other } else { self };
            let sum = sum.clone().round_to(PRECISION_MAX, Rounding::HalfUp)?;
            let room = PRECISION_MAX - sum.precision();
            let scale = i64::from(scale).min(i64::from(sum.scale) + room);
            return if scale > i64::from(sum.scale) { sum.with_scale(scale as i32, Rounding::Down) } else { Ok(sum) };
        }
        let (big, small) = if self.magnitude() >= other.magnitude() { (self, other) } else { (other, self) };
        let last_place = i64::from(big.scale).max(PRECISION_MAX - big.magnitude());
        let small = if -small.magnitude() > last_place + 2 {
            // too small to be seen, except for the direction of rounding
            &Self::new(small.unscaled.signum(), last_place + 3)?
        } else {
            small
        };
        let scale = big.scale.max(small.scale);
        let sum = big.with_scale(scale, Rounding::Down)?.unscaled + small.with_scale(scale, Rounding::Down)?.unscaled;
        Self { unscaled: sum, scale }.round_to(PRECISION_MAX, Rounding::HalfUp)
    }

    /// The difference, of at most 10,000 digits.
    pub fn subtract(&self, other: &Self) -> Result<Self, TypeError> {
        self.add(&other.negate())
    }

    /// The product, of at most 10,000 digits.
    pub fn multiply(&self, other: &Self) -> Result<Self, TypeError> {
        let scale = i64::from(self.scale) + i64::from(other.scale);
        Self::new(&self.unscaled * &other.unscaled, scale)?.round_to(PRECISION_MAX, Rounding::HalfUp)
    }

    /// The quotient as CQL divides: at least 32 digits, at least the scale of both operands, at
    /// most scale 1000, without zeros at the end.
    pub fn divide(&self, other: &Self) -> Result<Self, TypeError> {
        let scale = (QUOTIENT_DIGITS_MIN - (self.magnitude() - other.magnitude()))
            .max(i64::from(self.scale))
            .max(i64::from(other.scale))
            .clamp(QUOTIENT_DIGITS_MIN, QUOTIENT_SCALE_MAX);
        Ok(self.divide_to_scale(other, scale as i32, Rounding::HalfUp)?.strip_zeros())
    }

    /// Whether Java divides by a zero in `long`, which has words of its own: the dividend fits
    /// there, also shifted by so many digits, and so does the power of ten by which the zero is
    /// shifted.
    fn divides_as_long(&self, shift: i64) -> bool {
        let dividend = i64::try_from(&self.unscaled).ok().filter(|dividend| *dividend != i64::MIN);
        let power = u32::try_from(shift.unsigned_abs()).ok().filter(|power| *power < LONG_POWERS);
        match (dividend, power) {
            (Some(dividend), Some(power)) if shift > 0 => dividend.checked_mul(10i64.pow(power)).is_some(),
            (dividend, power) => dividend.is_some() && power.is_some(),
        }
    }

    /// The quotient with this scale.
    pub fn divide_to_scale(&self, other: &Self, scale: i32, rounding: Rounding) -> Result<Self, TypeError> {
        if other.unscaled.is_zero() {
            let shift = i64::from(scale) + i64::from(other.scale) - i64::from(self.scale);
            return refuse(if self.divides_as_long(shift) { "/ by zero" } else { "BigInteger divide by zero" });
        }
        if self.unscaled.is_zero() {
            return Ok(Self { unscaled: BigInt::zero(), scale });
        }
        let shift = i64::from(scale) + i64::from(other.scale) - i64::from(self.scale);
        let power = power_of_ten(shift.unsigned_abs())?;
        let unscaled = match shift {
            0.. => divide_rounded(&(&self.unscaled * power), &other.unscaled, rounding),
            _ => divide_rounded(&self.unscaled, &(&other.unscaled * power), rounding),
        };
        Ok(Self { unscaled, scale })
    }

    /// The quotient as Java divides to so many digits: rounded to the even neighbour, and where it
    /// is exact, with as few zeros behind its point as the scales of the operands allow. The
    /// divisor is not zero.
    pub fn divide_to_digits(&self, other: &Self, digits: i64) -> Result<Self, TypeError> {
        let preferred = i64::from(self.scale) - i64::from(other.scale);
        let scale = digits + 2 - (self.magnitude() - other.magnitude());
        let scale = scale.max(preferred);
        let dividend = &self.unscaled * power_of_ten((scale - preferred).unsigned_abs())?;
        let (quotient, rest) = (&dividend / &other.unscaled, &dividend % &other.unscaled);
        if !rest.is_zero() {
            // one more digit says that something is left, however small
            let unscaled = quotient * 10u8 + self.unscaled.signum() * other.unscaled.signum();
            return Self::new(unscaled, scale + 1)?.round_to(digits, Rounding::HalfEven);
        }
        let zeros = i64::from(trailing_zeros(&quotient)).min(scale - preferred);
        let unscaled = quotient / power_of_ten(zeros.unsigned_abs())?;
        Self::new(unscaled, scale - zeros)?.round_to(digits, Rounding::HalfEven)
    }

    /// The remainder of the division to a whole number; it has the sign of the dividend.
    pub fn remainder(&self, other: &Self) -> Result<Self, TypeError> {
        if other.unscaled.is_zero() {
            return refuse(if self.unscaled.is_zero() { "Division undefined" } else { "Division by zero" });
        }
        if self.unscaled.is_zero() || self.magnitude() < other.magnitude() {
            return Ok(self.clone());
        }
        let common = self.scale.max(other.scale);
        let dividend = self.with_scale(common, Rounding::Down)?.unscaled;
        let divisor = other.with_scale(common, Rounding::Down)?.unscaled;
        let (quotient, rest) = (&dividend / &divisor, &dividend % &divisor);
        if quotient.is_zero() {
            return Ok(self.clone());
        }
        // the quotient has as few zeros at its end as its scale allows; the remainder has the scale
        // of their product
        let scale = self.scale.max(other.scale.saturating_sub(trailing_zeros(&quotient)));
        Self { unscaled: rest, scale: common }.with_scale(scale, Rounding::Down)
    }

    /// The number with the other sign.
    pub fn negate(&self) -> Self {
        Self { unscaled: -&self.unscaled, scale: self.scale }
    }

    /// The same number with the smallest scale.
    pub fn strip_zeros(self) -> Self {
        if self.unscaled.is_zero() {
            return Self::zero();
        }
        let digits = radix::print(self.unscaled.magnitude());
        let kept = digits.trim_end_matches('0').len();
        let room = i64::from(self.scale) - i64::from(i32::MIN);
        let zeros = ((digits.len() - kept) as i64).min(room);
        match power_of_ten(zeros.unsigned_abs()) {
            Ok(power) => Self { unscaled: self.unscaled / power, scale: self.scale - zeros as i32 },
            Err(_) => self,
        }
    }
}

/// Prints as Java does.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&java_number::print_decimal(&self.unscaled, self.scale))
    }
}

/// The low 64 bits of an integer, as Java's `longValue`.
pub(crate) fn low_bits(value: &BigInt) -> i64 {
    let low = value.magnitude().iter_u64_digits().next().unwrap_or(0);
    if value.sign() == Sign::Minus { low.wrapping_neg() as i64 } else { low as i64 }
}

/// Decimal digits of an integer; zero has one.
fn digit_count(value: &BigInt) -> i64 {
    radix::count(value.magnitude()) as i64
}

/// Zeros at the end of an integer that is not zero.
fn trailing_zeros(value: &BigInt) -> i32 {
    let digits = radix::print(value.magnitude());
    i32::try_from(digits.len() - digits.trim_end_matches('0').len()).unwrap_or(i32::MAX)
}

/// Compares two serialized decimals by number: 1.0 equals 1.00. Values of at most sixteen bytes are
/// compared without an allocation.
pub(crate) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    if let (Some(x), Some(y)) = (small(a), small(b)) {
        return compare_small(x, y);
    }
    match (Decimal::decode(a), Decimal::decode(b)) {
        (Some(a), Some(b)) => compare_any(&a, &b),
        _ => a.cmp(b),
    }
}

/// Unscaled value and scale. None: the unscaled value has more than sixteen bytes.
fn small(bytes: &[u8]) -> Option<(i128, i64)> {
    let (scale, unscaled) = bytes.split_first_chunk::<4>()?;
    let sign = unscaled.first().map_or(0, |byte| if *byte >= 0x80 { 0xff } else { 0 });
    let mut wide = [sign; 16];
    let start = wide.len().checked_sub(unscaled.len())?;
    wide[start..].copy_from_slice(unscaled);
    Some((i128::from_be_bytes(wide), i64::from(i32::from_be_bytes(*scale))))
}

fn compare_small((x, x_scale): (i128, i64), (y, y_scale): (i128, i64)) -> Ordering {
    if x_scale == y_scale || x.signum() != y.signum() || x == 0 {
        return if x_scale == y_scale { x.cmp(&y) } else { x.signum().cmp(&y.signum()) };
    }
    let (a, b) = (x.unsigned_abs(), y.unsigned_abs());
    let magnitude = |value: u128, scale: i64| i64::from(value.ilog10()) - scale;
    let order = magnitude(a, x_scale).cmp(&magnitude(b, y_scale)).then_with(|| {
        // equal magnitudes: the scales differ by less than 39
        let power = |exponent: i64| 10u128.checked_pow(u32::try_from(exponent).unwrap_or(u32::MAX));
        let widened = match y_scale - x_scale {
            more @ 1.. => power(more).and_then(|power| a.checked_mul(power)).map(|a| a.cmp(&b)),
            less => power(-less).and_then(|power| b.checked_mul(power)).map(|b| a.cmp(&b)),
        };
        widened.unwrap_or_else(|| compare_digits(&a.to_string(), &b.to_string()))
    });
    if x < 0 { order.reverse() } else { order }
}

fn compare_any(a: &Decimal, b: &Decimal) -> Ordering {
    let order = a.unscaled.sign().cmp(&b.unscaled.sign());
    if order != Ordering::Equal || a.unscaled.is_zero() {
        return order;
    }
    let order = a
        .magnitude()
        .cmp(&b.magnitude())
        .then_with(|| compare_digits(&radix::print(a.unscaled.magnitude()), &radix::print(b.unscaled.magnitude())));
    if a.unscaled.is_negative() { order.reverse() } else { order }
}

/// Compares digits that stand behind the same point.
fn compare_digits(a: &str, b: &str) -> Ordering {
    a.trim_end_matches('0').cmp(b.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).expect(text)
    }

    #[test]
    fn arithmetic_keeps_the_scales_of_java() {
        let add = |a: &str, b: &str| decimal(a).add(&decimal(b)).expect("small").to_string();
        assert_eq!(add("1.0", "2.00"), "3.00");
        assert_eq!(add("0", "1E+3"), "1000");
        assert_eq!(add("0.000", "1"), "1.000");
        assert_eq!(add("-1.5", "1.5"), "0.0");
        let multiply = |a: &str, b: &str| decimal(a).multiply(&decimal(b)).expect("small").to_string();
        assert_eq!(multiply("1.50", "2.0"), "3.000");
        let divide = |a: &str, b: &str| decimal(a).divide(&decimal(b)).expect("not zero").to_string();
        assert_eq!(divide("1", "3"), "0.33333333333333333333333333333333");
        assert_eq!(divide("10", "4"), "2.5");
        assert_eq!(divide("2", "0.3"), "6.66666666666666666666666666666667");
        assert_eq!(divide("100", "1"), "1E+2");
        assert_eq!(divide("0", "7"), "0");
        let remainder = |a: &str, b: &str| decimal(a).remainder(&decimal(b)).expect("not zero").to_string();
        assert_eq!(remainder("10", "0.3"), "0.1");
        assert_eq!(remainder("-7.5", "2"), "-1.5");
        assert_eq!(remainder("1", "3.00"), "1");
    }

    #[test]
    fn numbers_with_huge_exponents_do_not_grow() {
        let huge = decimal("1E+2000000000");
        let tiny = decimal("1E-2000000000");
        let sum = huge.add(&tiny).expect("rounded away");
        assert_eq!(sum.precision(), PRECISION_MAX);
        assert!(huge.divide(&decimal("3")).is_err());
        assert!(huge.remainder(&decimal("3")).is_err());
        assert!(huge.multiply(&huge).is_err());
        assert!(decimal("1").divide(&decimal("0.0")).is_err());
        assert_eq!(huge.to_long(), 0);
        assert_eq!(tiny.to_integer(), Ok(BigInt::zero()));
        assert_eq!(compare(&huge.encode(), &tiny.encode()), Ordering::Greater);
    }

    #[test]
    fn order_is_by_number() {
        let ordered = [
            "-1E+300",
            "-123456789012345678901234567890123456789012",
            "-2",
            "-1.50",
            "-0.001",
            "-1E-300",
            "0",
            "1E-2000000000",
            "1E-300",
            "0.1",
            "0.10000000000000000000000000000000000000000001",
            "0.11",
            "1",
            "1.5",
            "2",
            "10",
            "99999999999999999999999999999999999999",
            "1E+38",
            "123456789012345678901234567890123456789012",
            "1E+300",
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                assert_eq!(compare(&decimal(a).encode(), &decimal(b).encode()), i.cmp(&j), "{a} {b}");
            }
        }
        for (a, b) in [("1", "1.00"), ("100", "1E+2"), ("0", "0.000"), ("-5", "-5.0")] {
            assert_eq!(compare(&decimal(a).encode(), &decimal(b).encode()), Ordering::Equal);
        }
    }
}
