//! Which decimal digits Java prints for a binary floating-point number.
//!
//! Cassandra 5.0 runs on Java 11 and 17, whose `Double.toString` does not always give the shortest
//! digits (that came with Java 19): whole numbers beyond the precision keep a digit too many,
//! halves round to even. The digits are those of `jdk.internal.math.FloatingDecimal`, found in this
//! way:
//!
//! 1. A whole number below 2^63 is written out; then as many digits as its unit in the last place
//!    leaves open are rounded away.
//! 2. Any other is B / S × 10^exponent, with half a unit in the last place M on the scale of B.
//!    Digits are divided off until the rest is below M, or above 10·S less M; then the last digit
//!    is rounded.
//!
//! If B and S fit 32 or 64 bits, Java calculates in that width, compares with `>` instead of `>=`
//! in step 2, and lets sums wrap around. All three show in the digits.

use std::cmp::Ordering;

use num_bigint::BigUint;
use num_traits::ToPrimitive;

/// Digits and the position of the point before them: 0.d₁d₂d₃… × 10^point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Digits {
    /// ASCII digits, at least one.
    pub digits: Vec<u8>,
    /// Exponent of ten in front of the first digit.
    pub point: i32,
}

/// A positive binary number: `fraction × 2^(exponent - 52)` with bit 52 of the fraction set.
struct Binary {
    fraction: u64,
    exponent: i32,
    /// Number of significant bits of the fraction; fewer than 53 for subnormal numbers and floats.
    precision: i32,
}

const FRACTION_BITS: i32 = 52;
/// Up to this exponent a whole number fits 63 bits.
const WHOLE_EXPONENT_MAX: i32 = 62;

/// The digits of a finite double above zero.
pub fn of_double(value: f64) -> Digits {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> FRACTION_BITS & 0x7ff) as i32, bits & ((1 << FRACTION_BITS) - 1));
    digits(&normalized(fraction, exponent, FRACTION_BITS, 1023))
}

/// The digits of a finite float above zero.
pub fn of_float(value: f32) -> Digits {
    const FRACTION_BITS: i32 = 23;
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> FRACTION_BITS & 0xff) as i32, bits & ((1 << FRACTION_BITS) - 1));
    digits(&normalized(u64::from(fraction), exponent, FRACTION_BITS, 127))
}

fn normalized(fraction: u64, exponent: i32, fraction_bits: i32, bias: i32) -> Binary {
    let widen = FRACTION_BITS - fraction_bits;
    if exponent > 0 {
        let fraction = (fraction | 1 << fraction_bits) << widen;
        return Binary { fraction, exponent: exponent - bias, precision: fraction_bits + 1 };
    }
    let precision = 64 - fraction.leading_zeros() as i32;
    let shift = fraction_bits + 1 - precision;
    Binary { fraction: fraction << (shift + widen), exponent: 1 - shift - bias, precision }
}

fn digits(number: &Binary) -> Digits {
    let zeros = number.fraction.trailing_zeros() as i32;
    let significant = FRACTION_BITS + 1 - zeros;
    // number of bits behind the point
    let tiny = (significant - number.exponent - 1).max(0);
    if tiny == 0 && number.exponent <= WHOLE_EXPONENT_MAX {
        return whole(number);
    }
    divided(number, significant, tiny)
}

fn whole(number: &Binary) -> Digits {
    let mut value = match number.exponent - FRACTION_BITS {
        shift @ 0.. => number.fraction << shift,
        shift => number.fraction >> -shift,
    };
    let open_bits = number.exponent - number.precision - 1;
    let mut dropped = 0;
    if open_bits > 1 {
        dropped = (1u64 << open_bits).ilog10();
        let unit = 10u64.pow(dropped);
        let rest = value % unit;
        value = value / unit + u64::from(dropped > 0 && rest >= unit / 2);
    }
    let text = value.to_string();
    let point = text.len() as i32 + dropped as i32;
    Digits { digits: text.trim_end_matches('0').as_bytes().to_vec(), point }
}

/// An estimate of the floor of the logarithm to base ten; it may be one too large.
fn estimated_exponent(number: &Binary) -> i32 {
    let mantissa = f64::from_bits(1023 << FRACTION_BITS | number.fraction & ((1 << FRACTION_BITS) - 1));
    // the constants are Java's
    #[allow(clippy::approx_constant)]
    let estimate =
        (mantissa - 1.5) * 0.289_529_654 + 0.176_091_259 + f64::from(number.exponent) * 0.301_029_995_663_981;
    estimate.floor() as i32
}

/// Number of bits of a power of five, as Java counts them to choose the width of its calculation.
fn bits_of_power_of_five(exponent: i32) -> i32 {
    const TABLE_LENGTH: i32 = 27;
    if exponent == 0 {
        0
    } else if exponent < TABLE_LENGTH {
        (5u64.pow(exponent as u32).ilog2() + 1) as i32
    } else {
        exponent * 3
    }
}

fn divided(number: &Binary, significant: i32, tiny: i32) -> Digits {
    let exponent = estimated_exponent(number);
    let rest_fives = (-exponent).max(0);
    let divisor_fives = exponent.max(0);
    let mut rest_twos = rest_fives + tiny + number.exponent;
    let mut divisor_twos = divisor_fives + tiny;
    let mut margin_twos = rest_twos - number.precision;
    rest_twos -= significant - 1;
    let common = rest_twos.min(divisor_twos);
    rest_twos -= common;
    divisor_twos -= common;
    margin_twos -= common;
    if significant == 1 {
        // just below a power of two, neighbouring numbers are half as far apart
        margin_twos -= 1;
    }
    if margin_twos < 0 {
        rest_twos -= margin_twos;
        divisor_twos -= margin_twos;
        margin_twos = 0;
    }
    let fraction = number.fraction >> (FRACTION_BITS + 1 - significant);
    let rest_bits = significant + rest_twos + bits_of_power_of_five(rest_fives);
    let divisor_bits = divisor_twos + 1 + bits_of_power_of_five(divisor_fives + 1);
    let rest = (fraction, rest_fives, rest_twos);
    let (divisor, margin) = ((divisor_fives, divisor_twos), (rest_fives, margin_twos));
    match rest_bits.max(divisor_bits) {
        ..32 => divide_off(Narrow::<32>::new(rest, divisor, margin), exponent),
        32..64 => divide_off(Narrow::<64>::new(rest, divisor, margin), exponent),
        _ => divide_off(Wide::new(rest, divisor, margin), exponent),
    }
}

/// One more digit; whether the rest is now below the margin; whether the rest is above ten minus
/// the margin.
type Step = (u8, bool, bool);

/// A division in progress.
trait Division {
    fn step(&mut self) -> Step;
    /// Compares twice the rest with ten divisors: whether the digits that are left out are below,
    /// at or above a half.
    fn half(&self) -> Ordering;
}

fn divide_off(mut division: impl Division, mut exponent: i32) -> Digits {
    let mut digits = Vec::with_capacity(20);
    let (digit, mut low, mut high) = division.step();
    if digit == 0 && !high {
        exponent -= 1;
    } else {
        digits.push(b'0' + digit);
    }
    // with an exponent, at least two digits are printed
    if !(-3..8).contains(&exponent) {
        (low, high) = (false, false);
    }
    while !low && !high {
        let digit;
        (digit, low, high) = division.step();
        digits.push(b'0' + digit);
    }
    let is_odd = digits.last().is_some_and(|digit| digit % 2 == 1);
    let round_up = match (high, low, division.half()) {
        (false, ..) | (true, true, Ordering::Less) => false,
        (true, false, _) | (true, true, Ordering::Greater) => true,
        (true, true, Ordering::Equal) => is_odd,
    };
    if round_up {
        exponent += i32::from(carry(&mut digits));
    }
    Digits { digits, point: exponent + 1 }
}

/// A division in integers of `BITS` bits, which wrap around.
struct Narrow<const BITS: u32> {
    rest: i64,
    divisor: i64,
    margin: i64,
}

impl<const BITS: u32> Narrow<BITS> {
    fn new(rest: (u64, i32, i32), divisor: (i32, i32), margin: (i32, i32)) -> Self {
        let scaled = |value: i64, fives: i32, twos: i32| {
            Self::wrap(value.wrapping_mul(5i64.wrapping_pow(fives.unsigned_abs())).wrapping_shl(twos.unsigned_abs()))
        };
        Self {
            rest: scaled(rest.0 as i64, rest.1, rest.2),
            divisor: scaled(1, divisor.0, divisor.1),
            margin: scaled(1, margin.0, margin.1),
        }
    }

    fn wrap(value: i64) -> i64 {
        if BITS == 32 { i64::from(value as i32) } else { value }
    }
}

impl<const BITS: u32> Division for Narrow<BITS> {
    fn step(&mut self) -> Step {
        let digit = (self.rest / self.divisor) as u8;
        self.rest = Self::wrap((self.rest % self.divisor).wrapping_mul(10));
        self.margin = Self::wrap(self.margin.wrapping_mul(10));
        if self.margin <= 0 {
            return (digit, true, true);
        }
        let reach = Self::wrap(self.rest.wrapping_add(self.margin));
        (digit, self.rest < self.margin, reach > Self::wrap(self.divisor.wrapping_mul(10)))
    }

    fn half(&self) -> Ordering {
        let double = Self::wrap(self.rest.wrapping_mul(2));
        Self::wrap(double.wrapping_sub(Self::wrap(self.divisor.wrapping_mul(10)))).cmp(&0)
    }
}

/// A division in integers of any size.
struct Wide {
    rest: BigUint,
    divisor: BigUint,
    ten_divisors: BigUint,
    margin: BigUint,
}

impl Wide {
    fn new(rest: (u64, i32, i32), divisor: (i32, i32), margin: (i32, i32)) -> Self {
        let scaled = |value: u64, fives: i32, twos: i32| {
            (BigUint::from(value) * BigUint::from(5u8).pow(fives.unsigned_abs())) << twos.unsigned_abs()
        };
        let divisor = scaled(1, divisor.0, divisor.1);
        Self {
            rest: scaled(rest.0, rest.1, rest.2),
            ten_divisors: &divisor * 10u8,
            divisor,
            margin: scaled(1, margin.0, margin.1),
        }
    }
}

impl Division for Wide {
    fn step(&mut self) -> Step {
        let digit = (&self.rest / &self.divisor).to_u8().expect("the divisor is at least a tenth of the rest");
        self.rest = (&self.rest % &self.divisor) * 10u8;
        self.margin *= 10u8;
        (digit, self.rest < self.margin, &self.rest + &self.margin >= self.ten_divisors)
    }

    fn half(&self) -> Ordering {
        (&self.rest * 2u8).cmp(&self.ten_divisors)
    }
}

/// Adds one to the last digit. True: 99…9 became 10…0.
fn carry(digits: &mut [u8]) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit != b'9' {
            *digit += 1;
            return false;
        }
        *digit = b'0';
    }
    if let Some(first) = digits.first_mut() {
        *first = b'1';
    }
    true
}

/// The number laid out as Java does: with an exponent below 10^-3 and from 10^7 on.
pub fn lay_out(Digits { digits, point }: &Digits) -> String {
    let text = std::str::from_utf8(digits).expect("ASCII digits");
    match *point {
        1..=7 => {
            let point = *point as usize;
            let whole = &text[..point.min(text.len())];
            let fraction = text.get(point..).filter(|fraction| !fraction.is_empty()).unwrap_or("0");
            format!("{whole}{}.{fraction}", "0".repeat(point.saturating_sub(text.len())))
        }
        -2..=0 => format!("0.{}{text}", "0".repeat(point.unsigned_abs() as usize)),
        _ => {
            let fraction = if text.len() > 1 { &text[1..] } else { "0" };
            format!("{}.{fraction}E{}", &text[..1], point - 1)
        }
    }
}
