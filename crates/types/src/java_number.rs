//! Numbers as Java prints and reads them, for JSON, literals and casts to text. Agrees with
//! `Float.toString`, `Double.toString`, `BigDecimal.toString` and the parsers of these classes.

mod digits;

use std::num::FpCategory;

use num_bigint::{BigInt, Sign};

use crate::radix;

/// Most digits of a decimal's exponent; with more, the scale cannot fit 32 bits.
const EXPONENT_DIGITS_MAX: usize = 10;

/// A double as Java prints it: `1.0`, `0.01`, `1.0E-4`.
pub fn print_double(value: f64) -> String {
    special(value).unwrap_or_else(|| {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}{}", digits::lay_out(&digits::of_double(value.abs())))
    })
}

/// A float as Java prints it.
pub fn print_float(value: f32) -> String {
    special(f64::from(value)).unwrap_or_else(|| {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}{}", digits::lay_out(&digits::of_float(value.abs())))
    })
}

/// The text of a number without digits: zero, NaN, infinity. None: it has digits.
fn special(value: f64) -> Option<String> {
    let negative = value.is_sign_negative();
    let text = match value.classify() {
        FpCategory::Nan => "NaN",
        FpCategory::Infinite if negative => "-Infinity",
        FpCategory::Infinite => "Infinity",
        FpCategory::Zero if negative => "-0.0",
        FpCategory::Zero => "0.0",
        _ => return None,
    };
    Some(text.to_owned())
}

/// A decimal as Java prints it: without exponent if the scale is not negative and the number is not
/// too small.
pub fn print_decimal(unscaled: &BigInt, scale: i32) -> String {
    const EXPONENT_PLAIN_MIN: i64 = -6;
    let digits = radix::print(unscaled.magnitude());
    let sign = if unscaled.sign() == Sign::Minus { "-" } else { "" };
    let scale = i64::from(scale);
    let exponent = digits.len() as i64 - 1 - scale;
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    if scale > 0 && exponent >= EXPONENT_PLAIN_MIN {
        let point = digits.len() as i64 - scale;
        return match usize::try_from(point) {
            Ok(point) if point > 0 => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
            _ => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
        };
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    match exponent {
        0 => format!("{sign}{first}{point}{rest}"),
        _ => format!("{sign}{first}{point}{rest}E{exponent:+}"),
    }
}

/// A double as Java reads it. None: the text is not a number.
pub fn parse_double(text: &str) -> Option<f64> {
    match floating(text)? {
        Floating::Digits(digits) => digits.parse().ok(),
        Floating::Special(value) => Some(value),
    }
}

/// A float as Java reads it. None: the text is not a number.
pub fn parse_float(text: &str) -> Option<f32> {
    match floating(text)? {
        Floating::Digits(digits) => digits.parse().ok(),
        Floating::Special(value) => Some(value as f32),
    }
}

enum Floating<'a> {
    Digits(&'a str),
    Special(f64),
}

/// Takes a text apart as Java does: blanks are trimmed, a type suffix, `NaN` and `Infinity` are
/// accepted, digits are those that Rust accepts too.
fn floating(text: &str) -> Option<Floating<'_>> {
    let text = text.trim_matches(|c| c <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned {
        "NaN" => return Some(Floating::Special(f64::NAN)),
        "Infinity" if text.starts_with('-') => return Some(Floating::Special(f64::NEG_INFINITY)),
        "Infinity" => return Some(Floating::Special(f64::INFINITY)),
        _ => {}
    }
    let digits = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    let plain = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'+' | b'-' | b'e' | b'E'));
    (plain && digits.bytes().any(|byte| byte.is_ascii_digit())).then_some(Floating::Digits(digits))
}

/// An integer. None: the text is not one, or has more than [`radix::DIGITS_MAX`] digits.
pub fn parse_integer(text: &str) -> Option<BigInt> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !(1..=radix::DIGITS_MAX).contains(&unsigned.len()) || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = BigInt::from(radix::parse(unsigned));
    Some(if text.starts_with('-') { -value } else { value })
}

/// A decimal as unscaled value and scale. None: the text is not a decimal, or its scale does not
/// fit.
pub fn parse_decimal(text: &str) -> Option<(BigInt, i32)> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let unsigned = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("{whole}{fraction}");
    let value = parse_integer(&digits).filter(|_| digits.as_bytes()[0].is_ascii_digit())?;
    let scale = i32::try_from(fraction.len() as i64 - exponent).ok()?;
    Some((if mantissa.starts_with('-') { -value } else { value }, scale))
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let fits = (1..=EXPONENT_DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let exponent: i64 = if fits { digits.parse().ok()? } else { return None };
    let exponent = if text.starts_with('-') { -exponent } else { exponent };
    i32::try_from(exponent).is_ok().then_some(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floating_point_numbers_are_printed_as_java_does() {
        let cases = [
            (1.0, "1.0"),
            (0.01, "0.01"),
            (0.0001, "1.0E-4"),
            (1e7, "1.0E7"),
            (123456.5, "123456.5"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (1.234e-300, "1.234E-300"),
            (f64::MAX, "1.7976931348623157E308"),
            (5e-324, "4.9E-324"),
        ];
        for (value, text) in cases {
            assert_eq!(print_double(value), text);
        }
        assert_eq!(print_float(f32::MAX), "3.4028235E38");
        assert_eq!(print_float(0.333), "0.333");
    }

    #[test]
    fn digits_are_those_of_java_17() {
        let mut text = String::new();
        let gz = include_bytes!("../testdata/floating.txt.gz");
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&gz[..]), &mut text)
            .expect("test data is gzip");
        for line in text.lines() {
            let mut words = line.split(' ');
            let (kind, bits, expected) = (words.next(), words.next(), words.next().expect("three words"));
            let bits = u64::from_str_radix(bits.expect("three words"), 16).expect("hex");
            let printed = match kind {
                Some("d") => print_double(f64::from_bits(bits)),
                _ => print_float(f32::from_bits(bits as u32)),
            };
            assert_eq!(printed, expected);
        }
        assert!(text.lines().count() > 1000);
    }

    #[test]
    fn decimals_go_there_and_back() {
        let texts = [
            "0",
            "1",
            "-1",
            "1.0",
            "0.00",
            "-0.5",
            "123.456",
            "0.000001",
            "1E-7",
            "1.5E-7",
            "1E+3",
            "-1.23E+300",
            "0E+3",
            "0E-7",
            "100",
        ];
        for text in texts {
            let (unscaled, scale) = parse_decimal(text).expect(text);
            assert_eq!(print_decimal(&unscaled, scale), text);
        }
        for (text, canonical) in [("+1.", "1"), (".5", "0.5"), ("1e3", "1E+3"), ("-.5e-2", "-0.005"), ("007", "7")] {
            let (unscaled, scale) = parse_decimal(text).expect(text);
            assert_eq!(print_decimal(&unscaled, scale), canonical);
        }
        for text in
            ["", ".", "-", "1e", "e1", "1.2.3", "1_000", "+-1", "--1", "1e99999999999", "1e3000000000", "0x1", " 1"]
        {
            assert_eq!(parse_decimal(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_as_java_reads_them() {
        assert_eq!(parse_double(" 1.5e3d "), Some(1500.0));
        assert_eq!(parse_double("-Infinity"), Some(f64::NEG_INFINITY));
        assert_eq!(parse_float("1e40"), Some(f32::INFINITY));
        for text in ["", "inf", "nan", "1e", "1_0", "e5", "d", "."] {
            assert_eq!(parse_double(text), None, "{text}");
        }
        assert_eq!(parse_integer("-0012"), Some(BigInt::from(-12)));
        assert_eq!(parse_integer("+-1"), None);
    }

    #[test]
    fn numbers_of_too_many_digits_are_refused() {
        let most = "0".repeat(radix::DIGITS_MAX);
        assert_eq!(parse_integer(&format!("-{most}")), Some(BigInt::ZERO));
        assert_eq!(parse_integer(&format!("{most}0")), None);
        assert!(parse_decimal(&most).is_some() && parse_decimal(&format!("{most}.0")).is_none());
    }
}
