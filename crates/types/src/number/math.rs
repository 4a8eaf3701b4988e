//! Functions of one number: `abs`, `exp`, `log`, `log10`, `round`. The result has the type of the
//! argument.

use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::convert::{Number, integer};
use crate::decimal::{Decimal, Rounding};
use crate::{CqlType, TypeError};

/// Fewest and most digits that decimal functions give.
const PRECISION_MIN: i64 = 32;
const PRECISION_MAX: i64 = 10_000;
/// Digits that are calculated beyond those that are kept.
const GUARD_DIGITS: i64 = 12;
/// Digits of a decimal `log10` beyond those that are kept, when logarithms are divided.
const QUOTIENT_DIGITS: i64 = 2;
/// Largest argument of a decimal `exp`; the exponent of its result still fits the scale.
const EXP_ARGUMENT_MAX: i64 = 4_000_000_000;
/// How often the argument of `exp` is halved before its series. Each halving makes the series
/// shorter and costs a squaring.
const EXP_HALVINGS: u32 = 8;

/// A function of one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// Absolute value.
    Abs,
    /// e to the power of the number.
    Exp,
    /// Natural logarithm.
    Log,
    /// Logarithm to base 10.
    Log10,
    /// To the nearest whole number.
    Round,
}

/// Applies a function to a value of a numeric type. None: there is no value.
pub fn apply(function: Function, ty: &CqlType, value: &[u8]) -> Result<Option<Vec<u8>>, TypeError> {
    let Some(number) = Number::decode(ty, value) else { return Ok(None) };
    Ok(Some(match number {
        Number::Long(value) => integer(ty, of_long(function, ty, value)),
        Number::Float(value) => of_float(function, value).to_be_bytes().to_vec(),
        Number::Double(value) => of_double(function, value).to_be_bytes().to_vec(),
        Number::Decimal(value) => of_decimal(function, &value)?.encode(),
        Number::Varint(value) => match function {
            Function::Abs => value.abs().to_signed_bytes_be(),
            Function::Round => value.to_signed_bytes_be(),
            _ => of_decimal(function, &Decimal { unscaled: value, scale: 0 })?.to_integer()?.to_signed_bytes_be(),
        },
    }))
}

/// Whole numbers are calculated as doubles and converted back as Java casts them: first to an int
/// if the type is narrower than that.
fn of_long(function: Function, ty: &CqlType, value: i64) -> i64 {
    let result = match function {
        Function::Abs => return value.wrapping_abs(),
        Function::Round => return value,
        Function::Exp | Function::Log | Function::Log10 => of_double(function, value as f64),
    };
    match ty {
        CqlType::BigInt | CqlType::Counter => result as i64,
        _ => i64::from(result as i32),
    }
}

fn of_float(function: Function, value: f32) -> f32 {
    match function {
        Function::Abs => value.abs(),
        Function::Round => round_half_toward_positive(f64::from(value)) as i32 as f32,
        _ => of_double(function, f64::from(value)) as f32,
    }
}

fn of_double(function: Function, value: f64) -> f64 {
    match function {
        Function::Abs => value.abs(),
        Function::Exp => value.exp(),
        Function::Log => value.ln(),
        Function::Log10 => log10(value),
        Function::Round => round_half_toward_positive(value) as i64 as f64,
    }
}

/// The logarithm to base 10 of a double, nearly always the nearest double, as in Java. That of the
/// C library may be the next but one.
///
/// x = m · 2^k with m near 1, and ln m = 2 (s + s³/3 + s⁵/5 + …) with s = (m - 1) / (m + 1). Sums
/// and products are pairs of doubles, of which the second is what the first has lost.
pub fn log10(value: f64) -> f64 {
    const LOG10_E: Pair = Pair(std::f64::consts::LOG10_E, 1.098_319_650_216_765e-17);
    const LOG10_TWO: Pair = Pair(std::f64::consts::LOG10_2, -2.803_728_127_785_170_4e-18);
    /// Behind so many terms none changes the sum: s is at most 0.172.
    const TERMS: u32 = 21;
    if !(value.is_normal() && value > 0.0) {
        return value.log10();
    }
    let bits = value.to_bits();
    let mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    let is_large = mantissa > std::f64::consts::SQRT_2;
    let m = if is_large { mantissa / 2.0 } else { mantissa };
    let exponent = (bits >> 52) as f64 - 1023.0 + f64::from(u8::from(is_large));
    if m == 1.0 {
        let Pair(high, low) = LOG10_TWO.times(Pair(exponent, 0.0));
        return high + low;
    }
    // both are exact
    let s = Pair(m - 1.0, 0.0).over(Pair::sum(m, 1.0));
    let square = s.times(s);
    let mut sum = Pair(0.0, 0.0);
    for term in (0..TERMS).rev() {
        let part = Pair(1.0, 0.0).over(Pair(f64::from(2 * term + 1), 0.0));
        sum = part.plus(sum.times(square));
    }
    let ln = sum.times(s).times(Pair(2.0, 0.0));
    let Pair(high, low) = ln.times(LOG10_E).plus(LOG10_TWO.times(Pair(exponent, 0.0)));
    high + low
}

/// A number as the sum of two doubles; the second is small beside the first.
#[derive(Clone, Copy)]
struct Pair(f64, f64);

impl Pair {
    /// The sum of two doubles with what rounding has lost.
    fn sum(a: f64, b: f64) -> Self {
        let sum = a + b;
        let of_b = sum - a;
        Self(sum, (a - (sum - of_b)) + (b - of_b))
    }

    fn plus(self, other: Self) -> Self {
        let Self(high, low) = Self::sum(self.0, other.0);
        Self::sum(high, low + self.1 + other.1)
    }

    fn times(self, other: Self) -> Self {
        let product = self.0 * other.0;
        let lost = self.0.mul_add(other.0, -product);
        Self::sum(product, lost + self.0 * other.1 + self.1 * other.0)
    }

    fn over(self, other: Self) -> Self {
        let quotient = self.0 / other.0;
        let Self(high, low) = other.times(Self(quotient, 0.0));
        let rest = ((self.0 - high) - low) + self.1;
        Self::sum(quotient, rest / other.0)
    }
}

/// Rounds as Java's `Math.round` does.
fn round_half_toward_positive(value: f64) -> f64 {
    let floor = value.floor();
    if value - floor >= 0.5 { floor + 1.0 } else { floor }
}

fn of_decimal(function: Function, value: &Decimal) -> Result<Decimal, TypeError> {
    let refuse = |message: &'static str| Err(TypeError::Arithmetic(message.into()));
    let precision = value.precision().clamp(PRECISION_MIN, PRECISION_MAX);
    match function {
        Function::Abs => Ok(Decimal { unscaled: value.unscaled.abs(), scale: value.scale }),
        Function::Round => value.with_scale(0, Rounding::HalfUp),
        Function::Exp => exp(value, precision),
        Function::Log if !value.unscaled.is_positive() => refuse("Natural log of number zero or less"),
        Function::Log10 if !value.unscaled.is_positive() => refuse("Log10 of number zero or less"),
        Function::Log => logarithm(value, precision, false),
        Function::Log10 => logarithm(value, precision, true),
    }
}

/// Numbers with a fixed number of digits behind the point.
struct Fixed {
    one: BigInt,
    digits: i64,
}

impl Fixed {
    fn new(digits: i64) -> Self {
        let exponent = u32::try_from(digits).expect("precision is bounded far below");
        Self { one: BigInt::from(10u8).pow(exponent), digits }
    }

    fn multiply(&self, a: &BigInt, b: &BigInt) -> BigInt {
        a * b / &self.one
    }

    /// ln((1 + z) / (1 - z)) for z = numerator / denominator, by its series.
    fn ln_of_ratio(&self, numerator: &BigInt, denominator: &BigInt) -> BigInt {
        let z = numerator * &self.one / denominator;
        let square = self.multiply(&z, &z);
        let (mut power, mut sum, mut odd) = (z.clone(), z, 1u32);
        loop {
            power = self.multiply(&power, &square);
            odd += 2;
            let term = &power / odd;
            if term.is_zero() {
                return sum * 2;
            }
            sum += term;
        }
    }

    /// ln 10 = 3 ln 2 + ln 1.25
    fn ln_ten(&self) -> BigInt {
        let one = BigInt::one();
        self.ln_of_ratio(&one, &BigInt::from(3)) * 3 + self.ln_of_ratio(&one, &BigInt::from(9))
    }

    fn result(self, value: BigInt, exponent: i64, precision: i64) -> Result<Decimal, TypeError> {
        let scale = i32::try_from(self.digits - exponent).map_err(|_| TypeError::Arithmetic("Overflow".into()))?;
        Decimal { unscaled: value, scale }.round_to(precision, Rounding::HalfEven)
    }
}

/// e^x = 10^k · e^r with x = k ln 10 + r.
fn exp(value: &Decimal, precision: i64) -> Result<Decimal, TypeError> {
    if value.unscaled.is_zero() {
        return Ok(Decimal { unscaled: BigInt::one(), scale: 0 });
    }
    let whole = value.to_integer()?.to_i64().filter(|whole| whole.abs() <= EXP_ARGUMENT_MAX);
    let Some(whole) = whole else { return Err(TypeError::Arithmetic("Overflow".into())) };
    let fixed = Fixed::new(precision + GUARD_DIGITS + i64::from(whole.unsigned_abs().max(1).ilog10()));
    let x = value.with_scale(fixed.digits as i32, Rounding::Down)?.unscaled;
    let ln_ten = fixed.ln_ten();
    let exponent = &x / &ln_ten;
    let rest: BigInt = (x - &exponent * ln_ten) >> EXP_HALVINGS;
    let (mut term, mut sum, mut count) = (fixed.one.clone(), fixed.one.clone(), 0u32);
    while !term.is_zero() {
        count += 1;
        term = fixed.multiply(&term, &rest) / count;
        sum += &term;
    }
    for _ in 0..EXP_HALVINGS {
        sum = fixed.multiply(&sum, &sum);
    }
    let exponent = exponent.to_i64().expect("smaller than the argument");
    fixed.result(sum, exponent, precision)
}

/// ln(m · 10^k) = ln m + k ln 10, with m between 1 and 10.
fn logarithm(value: &Decimal, precision: i64, base_ten: bool) -> Result<Decimal, TypeError> {
    let digits = value.precision();
    let stripped = value.clone().strip_zeros();
    if stripped.unscaled.is_one() && stripped.scale == 0 {
        // Java's zero has an exponent if it comes from a division
        let scale = if base_ten { -(precision as i32) - 1 } else { 0 };
        return Ok(Decimal { unscaled: BigInt::zero(), scale });
    }
    let fixed = Fixed::new(precision + digits.min(PRECISION_MAX) + GUARD_DIGITS);
    let exponent = digits - 1 - i64::from(value.scale);
    let scale = i32::try_from(digits - 1).map_err(|_| TypeError::Arithmetic("Overflow".into()))?;
    let mantissa = Decimal { unscaled: value.unscaled.clone(), scale };
    let mantissa = mantissa.with_scale(fixed.digits as i32, Rounding::Down)?.unscaled;
    let ln_mantissa = fixed.ln_of_ratio(&(&mantissa - &fixed.one), &(&mantissa + &fixed.one));
    let ln_ten = fixed.ln_ten();
    let ln = ln_mantissa + &ln_ten * exponent;
    if !base_ten {
        return fixed.result(ln, 0, precision);
    }
    // both logarithms are rounded before they are divided: of powers of ten the quotient is a whole
    // number with or without zeros behind its point
    let digits = precision + QUOTIENT_DIGITS;
    let rounded = |unscaled| Decimal { unscaled, scale: fixed.digits as i32 }.round_to(digits, Rounding::HalfEven);
    let quotient = rounded(ln)?.divide_to_digits(&rounded(ln_ten)?, digits)?;
    quotient.round_to(precision, Rounding::HalfEven)
}
