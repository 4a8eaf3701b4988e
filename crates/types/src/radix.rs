//! Integers of any size from and to decimal digits, in less than quadratic time.
//!
//! `num-bigint` converts digit group by digit group, which takes time by the square of the length:
//! a literal of 4 MB kept a worker busy for 17 s. Here long numbers are halved:
//!
//! 1. Reading: the upper and the lower half of the digits are read apart, and joined by one
//!    multiplication with a power of ten.
//! 2. Printing: one division by a power of ten gives both halves. `num-bigint` divides in quadratic
//!    time, so the division is a multiplication with the reciprocal of the power, which Newton's
//!    iteration finds.
//!
//! That is still a second for 4 MB, so [`DIGITS_MAX`] bounds what is read from text. Cassandra has
//! no such bound (and takes quadratic time). A stored value of any size is printed.
//!
//! Numbers of at most [`LEAF_DIGITS`] digits go to `num-bigint`, which is faster for these.
//! Multiplication is Toom-Cook's there, so both ways take about n^1.5.

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{ToPrimitive, Zero};

/// Most digits of a number that is read from text: about a tenth of a second of work. A number with
/// more is refused, as a text that is no number is.
pub const DIGITS_MAX: usize = 1_000_000;

/// Digits that are converted without being halved.
const LEAF_DIGITS: usize = 1216;

/// Divisors of at most this many bits are inverted by a plain division.
const INVERTED_BITS_MAX: u64 = 4096;

/// An integer of ASCII digits. At least one digit is there, at most [`DIGITS_MAX`], and nothing
/// else.
pub fn parse(digits: &str) -> BigUint {
    assert!(digits.len() <= DIGITS_MAX, "the length of a number is checked before it is read");
    let powers = powers_of_ten(digits.len());
    join(digits, &powers)
}

/// The decimal digits of an integer, without zeros in front; zero is `0`.
pub fn print(value: &BigUint) -> String {
    let powers = powers_of_ten(digits_max(value));
    let powers: Vec<Divisor> = powers.into_iter().map(Divisor::new).collect();
    let mut out = String::with_capacity(digits_max(value));
    put(value, &powers, 0, &mut out);
    out
}

/// The decimal digits of an integer, with its sign.
pub fn print_signed(value: &BigInt) -> String {
    let digits = print(value.magnitude());
    if value.sign() == Sign::Minus { format!("-{digits}") } else { digits }
}

/// How many decimal digits an integer has; zero has one.
pub fn count(value: &BigUint) -> u64 {
    match value.to_u128() {
        Some(0) => 1,
        Some(small) => u64::from(small.ilog10()) + 1,
        None => {
            let most = digits_max(value) as u64;
            // a number of these bits has `most` digits, or one less
            let least = u32::try_from(most - 1).expect("a value in memory has less than 2^32 digits");
            if *value < BigUint::from(10u8).pow(least) { most - 1 } else { most }
        }
    }
}

/// The most digits that an integer of so many bits can have.
fn digits_max(value: &BigUint) -> usize {
    (value.bits() as f64 * std::f64::consts::LOG10_2) as usize + 1
}

/// 10^[`LEAF_DIGITS`] and its successive squares, as long as they have less than `digits` digits.
fn powers_of_ten(digits: usize) -> Vec<BigUint> {
    let mut powers = Vec::new();
    let mut width = LEAF_DIGITS;
    while width < digits {
        let power = match powers.last() {
            None => BigUint::from(10u8).pow(LEAF_DIGITS as u32),
            Some(last) => last * last,
        };
        powers.push(power);
        width *= 2;
    }
    powers
}

/// Digits below the last of these powers: 10^`width`.
fn width(lesser: usize) -> usize {
    LEAF_DIGITS << lesser
}

fn join(digits: &str, powers: &[BigUint]) -> BigUint {
    let Some((power, lesser)) = powers.split_last() else {
        steps::add(digits.len() * digits.len());
        return digits.parse().expect("nothing but digits");
    };
    let Some(high) = digits.len().checked_sub(width(lesser.len())).filter(|high| *high > 0) else {
        return join(digits, lesser);
    };
    let (high, low) = digits.split_at(high);
    steps::multiplied(power);
    join(high, lesser) * power + join(low, lesser)
}

/// Appends the digits of a value, with zeros in front up to `width`.
fn put(value: &BigUint, powers: &[Divisor], width_min: usize, out: &mut String) {
    let Some((power, lesser)) = powers.split_last() else {
        let digits = value.to_string();
        steps::add(digits.len() * digits.len());
        out.extend(std::iter::repeat_n('0', width_min.saturating_sub(digits.len())));
        return out.push_str(&digits);
    };
    let low_width = width(lesser.len());
    let (high, low) = power.divide(value);
    if high.is_zero() && width_min <= low_width {
        return put(&low, lesser, width_min, out);
    }
    put(&high, lesser, width_min.saturating_sub(low_width), out);
    put(&low, lesser, low_width, out);
}

/// A number to divide by, with its reciprocal.
struct Divisor {
    divisor: BigInt,
    bits: u64,
    /// 2^(2 · bits) / divisor, but for a few units.
    reciprocal: BigInt,
}

impl Divisor {
    fn new(divisor: BigUint) -> Self {
        let bits = divisor.bits();
        let divisor = BigInt::from(divisor);
        Divisor { reciprocal: reciprocal(&divisor, bits), divisor, bits }
    }

    /// Quotient and remainder of a value below the divisor's square.
    fn divide(&self, value: &BigUint) -> (BigUint, BigUint) {
        let value = BigInt::from(value.clone());
        if value < self.divisor {
            return (BigUint::zero(), value.into_parts().1);
        }
        steps::multiplied(self.divisor.magnitude());
        let mut quotient: BigInt = ((&value >> (self.bits - 1)) * &self.reciprocal) >> (self.bits + 1);
        let mut rest = value - &quotient * &self.divisor;
        // the estimate is a few units off at most
        while rest.sign() == Sign::Minus {
            rest += &self.divisor;
            quotient -= 1;
        }
        while rest >= self.divisor {
            rest -= &self.divisor;
            quotient += 1;
        }
        (quotient.into_parts().1, rest.into_parts().1)
    }
}

/// 2^(2 · bits) / divisor for a divisor of `bits` bits, but for a few units.
fn reciprocal(divisor: &BigInt, bits: u64) -> BigInt {
    if bits <= INVERTED_BITS_MAX {
        return (BigInt::from(1) << (2 * bits)) / divisor;
    }
    // the reciprocal of the upper half, good for half of the bits; Newton's step doubles them
    let upper_bits = bits / 2 + 2;
    let dropped = bits - upper_bits;
    let rough = reciprocal(&(divisor >> dropped), upper_bits) << dropped;
    steps::multiplied(divisor.magnitude());
    let correction = (divisor * (&rough * &rough)) >> (2 * bits);
    (rough << 1) - correction
}

/// Work done, for the test that holds it below a quadratic bound; nothing outside of tests.
mod steps {
    use num_bigint::BigUint;

    #[cfg(test)]
    thread_local! {
        pub(super) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[inline]
    pub(super) fn add(_steps: usize) {
        #[cfg(test)]
        STEPS.set(STEPS.get() + _steps);
    }

    /// A multiplication with a number: what Karatsuba's method takes.
    #[inline]
    pub(super) fn multiplied(_by: &BigUint) {
        #[cfg(test)]
        add((_by.bits() as f64 / 64.0).powf(1.585) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `length` digits from a seed; runs of zeros and nines among them.
    fn digits(length: usize, seed: u64) -> String {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut text = String::with_capacity(length);
        while text.len() < length {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let run = if state.is_multiple_of(97) { 300 } else { 1 };
            let digit = [b'0', b'9', b'1' + (state >> 20) as u8 % 9][(state >> 40) as usize % 3];
            text.extend(std::iter::repeat_n(char::from(digit), run.min(length - text.len())));
        }
        format!("7{}", &text[1..])
    }

    #[test]
    fn long_numbers_are_those_of_the_plain_way() {
        let lengths = [1, 2, 1215, 1216, 1217, 2431, 2432, 2433, 4865, 9999, 20_011];
        for (length, seed) in lengths.into_iter().flat_map(|length| (0..3).map(move |seed| (length, seed))) {
            let text = digits(length, seed);
            let plain: BigUint = text.parse().expect("digits");
            let zeros = format!("000{text}");
            assert!(parse(&text) == plain && parse(&zeros) == plain, "{length} digits, seed {seed}");
            assert!(print(&plain) == text, "{length} digits, seed {seed}");
            assert_eq!(count(&plain), length as u64);
        }
    }

    #[test]
    fn powers_of_ten_and_their_neighbours() {
        for exponent in [0, 1, 38, 39, 1215, 1216, 1217, 2432, 4864, 4865] {
            let power = BigUint::from(10u8).pow(exponent);
            for value in [&power - 1u8, power.clone(), &power + 1u8] {
                let text = print(&value);
                assert!(text == value.to_string() && parse(&text) == value, "10^{exponent}");
                assert_eq!(count(&value), text.len() as u64, "10^{exponent}");
            }
        }
        assert_eq!(print_signed(&BigInt::from(-12)), "-12");
        assert_eq!(print(&BigUint::zero()), "0");
    }

    #[test]
    fn four_times_the_digits_take_far_less_than_sixteen_times_the_steps() {
        let work = |length| {
            let text = digits(length, 1);
            steps::STEPS.set(0);
            let value = parse(&text);
            let parsed = steps::STEPS.take();
            assert!(print(&value) == text);
            (parsed, steps::STEPS.take())
        };
        let (small, large) = (work(40_000), work(160_000));
        for (name, small, large) in [("parse", small.0, large.0), ("print", small.1, large.1)] {
            assert!(small > 0 && large < small * 10, "{name}: {small} steps, four times the digits {large}");
        }
    }
}
