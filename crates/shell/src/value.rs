//! Values as cqlsh shows them: in tables, in COPY TO, in CSV.
//!
//! Agrees with `cqlshlib/formatting.py` of cqlsh 6.2 (precisions, escapes, quotes within
//! collections) but for nulls within tuples, which are `null` here and `None` there.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use types::collection::{Elements, Fields, VectorElements};
use types::{CqlType, CustomType, Duration, java_number, literal, temporal};

/// cqlsh's format of timestamps.
pub const TIMESTAMP_FORMAT: &str = "%Y-%m-%d %H:%M:%S.%f%z";
/// Digits of float and double values in tables.
pub const PRECISION: usize = 5;
/// Values may be nested this deep; deeper ones are shown as bytes.
const DEPTH_MAX: usize = 64;

/// How values are written.
#[derive(Clone, Debug)]
pub struct Style {
    /// Format of timestamps, in the manner of strftime.
    pub timestamp_format: String,
    /// Time zone of timestamps.
    pub zone: TimeZone,
    /// Whether fractions of seconds end with the milliseconds, as COPY writes them.
    pub milliseconds_only: bool,
    /// Digits of float values.
    pub float_precision: usize,
    /// Digits of double values.
    pub double_precision: usize,
    /// The text of a null.
    pub null: String,
    /// The separator before decimals; None: a point.
    pub decimal_separator: Option<String>,
    /// The separator between groups of three digits; None: no separator.
    pub thousands_separator: Option<String>,
    /// The texts of true and false.
    pub booleans: [String; 2],
    /// Whether values are those of tables, as cqlsh shows them: backslashes and control characters
    /// are escaped, and times within collections stand without quotes.
    pub escape: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            timestamp_format: TIMESTAMP_FORMAT.to_owned(),
            zone: TimeZone::UTC,
            milliseconds_only: false,
            float_precision: PRECISION,
            double_precision: PRECISION,
            null: "null".to_owned(),
            decimal_separator: None,
            thousands_separator: None,
            booleans: ["True".to_owned(), "False".to_owned()],
            escape: true,
        }
    }
}

/// A value as a cell of a table or a field of CSV.
pub fn show(ty: &CqlType, value: Option<&[u8]>, style: &Style) -> String {
    let mut out = String::new();
    Writer { style }.put(&mut out, ty, value, false, 0);
    out
}

struct Writer<'s> {
    style: &'s Style,
}

impl Writer<'_> {
    fn put(&self, out: &mut String, ty: &CqlType, value: Option<&[u8]>, quote: bool, depth: usize) {
        let Some(bytes) = value else { return out.push_str(&self.style.null) };
        if depth > DEPTH_MAX {
            out.push_str("0x");
            return out.push_str(&literal::hex(bytes));
        }
        let deeper = depth + 1;
        match ty {
            CqlType::Text | CqlType::Ascii => self.put_text(out, &String::from_utf8_lossy(bytes), quote),
            CqlType::Blob => {
                out.push_str("0x");
                out.push_str(&literal::hex(bytes));
            }
            _ if bytes.is_empty() && !matches!(ty, CqlType::Tuple(_) | CqlType::Udt(..)) => {}
            CqlType::List { element, .. } => self.put_elements(out, ["[", "]"], element, bytes, deeper),
            CqlType::Set { element, .. } => self.put_elements(out, ["{", "}"], element, bytes, deeper),
            CqlType::Map { key, value, .. } => self.put_map(out, key, value, bytes, deeper),
            CqlType::Vector { element, dimension } => {
                out.push('[');
                let elements = VectorElements::new(element, *dimension, bytes).map_while(Result::ok);
                for (at, part) in elements.enumerate() {
                    out.push_str(if at == 0 { "" } else { ", " });
                    self.put(out, element, Some(part), true, deeper);
                }
                out.push(']');
            }
            CqlType::Tuple(parts) => {
                out.push('(');
                let mut fields = Fields::new(bytes).map_while(Result::ok);
                for (at, ty) in parts.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { ", " });
                    self.put(out, ty, fields.next().flatten(), true, deeper);
                }
                out.push(')');
            }
            CqlType::Udt(user_type, _) => {
                out.push('{');
                let mut fields = Fields::new(bytes).map_while(Result::ok);
                for (at, (name, ty)) in user_type.fields.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { ", " });
                    self.put_text(out, name, false);
                    out.push_str(": ");
                    self.put(out, ty, fields.next().flatten(), true, deeper);
                }
                out.push('}');
            }
            _ => out.push_str(&self.scalar(ty, bytes, quote)),
        }
    }

    fn put_elements(&self, out: &mut String, brackets: [&str; 2], element: &CqlType, bytes: &[u8], depth: usize) {
        out.push_str(brackets[0]);
        for (at, part) in Elements::new(bytes).into_iter().flatten().map_while(Result::ok).enumerate() {
            out.push_str(if at == 0 { "" } else { ", " });
            self.put(out, element, part, true, depth);
        }
        out.push_str(brackets[1]);
    }

    fn put_map(&self, out: &mut String, key: &CqlType, value: &CqlType, bytes: &[u8], depth: usize) {
        out.push('{');
        let mut parts = Elements::of_map(bytes).into_iter().flatten().map_while(Result::ok);
        let mut first = true;
        while let (Some(k), Some(v)) = (parts.next(), parts.next()) {
            out.push_str(if first { "" } else { ", " });
            first = false;
            self.put(out, key, k, true, depth);
            out.push_str(": ");
            self.put(out, value, v, true, depth);
        }
        out.push('}');
    }

    fn put_text(&self, out: &mut String, text: &str, quote: bool) {
        out.push_str(if quote { "'" } else { "" });
        for c in text.chars() {
            match c {
                _ if !self.style.escape && c != '\'' => out.push(c),
                '\\' => out.push_str("\\\\"),
                '\'' if quote => out.push_str("''"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\0'..='\x1f' | '\x7f'..='\u{a0}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
                _ => out.push(c),
            }
        }
        out.push_str(if quote { "'" } else { "" });
    }

    fn scalar(&self, ty: &CqlType, bytes: &[u8], quote: bool) -> String {
        let style = self.style;
        let quoted = |text: String| if quote { format!("'{text}'") } else { text };
        let shown = match ty {
            CqlType::Boolean => bytes.first().map(|byte| style.booleans[usize::from(*byte == 0)].clone()),
            CqlType::TinyInt => integer(bytes, style),
            CqlType::SmallInt | CqlType::Int | CqlType::BigInt | CqlType::Counter => integer(bytes, style),
            CqlType::Varint => Some(grouped(num_bigint::BigInt::from_signed_bytes_be(bytes).to_string(), style)),
            CqlType::Decimal => literal::decode_decimal(bytes).map(|(unscaled, scale)| {
                let text = java_number::print_decimal(&unscaled, scale);
                match style.decimal_separator.is_some() || style.thousands_separator.is_some() {
                    true => text.parse().map_or(text, |value| float(value, style.float_precision, style)),
                    false => text,
                }
            }),
            CqlType::Float => {
                let value = bytes.try_into().ok().map(f32::from_be_bytes);
                value.map(|value| float(f64::from(value), style.float_precision, style))
            }
            CqlType::Double => {
                let value = bytes.try_into().ok().map(f64::from_be_bytes);
                value.map(|value| float(value, style.double_precision, style))
            }
            CqlType::Timestamp => {
                bytes.try_into().ok().map(|bytes| quoted(timestamp(i64::from_be_bytes(bytes), style)))
            }
            CqlType::Date => bytes.try_into().ok().map(|bytes| date(u32::from_be_bytes(bytes))),
            CqlType::Time => {
                let shown = bytes.try_into().ok().map(|bytes| time(i64::from_be_bytes(bytes)));
                // without quotes the colons of a key would end it
                if style.escape { shown } else { shown.map(quoted) }
            }
            CqlType::Duration => Duration::decode(bytes).map(|value| duration(&value)),
            CqlType::Uuid | CqlType::TimeUuid => bytes.try_into().ok().map(literal::print_uuid),
            CqlType::Inet => types::inet::of_bytes(bytes).map(|address| quoted(address.to_string())),
            CqlType::Custom(custom) => match custom.as_ref() {
                CustomType::Unknown(_) | CustomType::PartitionerDefinedOrder(_) => None,
                _ => Some(literal::to_plain_text(ty, bytes)),
            },
            _ => None,
        };
        shown.unwrap_or_else(|| format!("0x{}", literal::hex(bytes)))
    }
}

fn integer(bytes: &[u8], style: &Style) -> Option<String> {
    let value = match bytes.len() {
        1 => i64::from(i8::from_be_bytes(bytes.try_into().ok()?)),
        2 => i64::from(i16::from_be_bytes(bytes.try_into().ok()?)),
        4 => i64::from(i32::from_be_bytes(bytes.try_into().ok()?)),
        8 => i64::from_be_bytes(bytes.try_into().ok()?),
        _ => return None,
    };
    Some(grouped(value.to_string(), style))
}

/// Digits with the separator between groups of three.
fn grouped(digits: String, style: &Style) -> String {
    let Some(separator) = &style.thousands_separator else { return digits };
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |digits| ("-", digits));
    let mut out = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push_str(separator);
        }
        out.push(digit);
    }
    out
}

fn float(value: f64, precision: usize, style: &Style) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if style.thousands_separator.is_some() {
        let whole = grouped(format!("{:.0}", value.trunc()), style);
        let fraction = format!("{:.precision$}", value.fract().abs());
        let fraction = fraction.get(2..).unwrap_or_default().trim_end_matches('0');
        let separator = style.decimal_separator.as_deref().unwrap_or(".");
        return if fraction.is_empty() { whole } else { format!("{whole}{separator}{fraction}") };
    }
    let mut digits = precision;
    if value.abs() > f64::EPSILON {
        // truncated towards zero, as Python's int() does
        let exponent = value.abs().log10() as i64;
        if (-4..precision as i64).contains(&exponent) {
            digits = (precision as i64 + exponent + 1).max(1) as usize;
        }
    }
    let text = general(value, digits);
    match &style.decimal_separator {
        Some(separator) => text.replace('.', separator),
        None => text,
    }
}

/// A number as C's `%.{precision}g` prints it.
fn general(value: f64, precision: usize) -> String {
    let precision = precision.max(1);
    let scientific = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let strip = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", strip(mantissa), exponent.abs());
    }
    let decimals = usize::try_from(precision as i32 - 1 - exponent).unwrap_or(0);
    strip(&format!("{value:.decimals$}"))
}

/// A timestamp by the style's format; years that Python does not know as milliseconds.
pub fn timestamp(millis: i64, style: &Style) -> String {
    let Ok(instant) = Timestamp::from_millisecond(millis) else { return millis.to_string() };
    let zoned = instant.to_zoned(style.zone.clone());
    if zoned.year() < 1 {
        return millis.to_string();
    }
    let fraction = if style.milliseconds_only { "%3f" } else { "%6f" };
    let format = style.timestamp_format.replace("%f", fraction);
    jiff::fmt::strtime::format(&format, &zoned).unwrap_or_else(|_| millis.to_string())
}

fn date(number: u32) -> String {
    let days = i64::from(number) - (1 << 31);
    match (-719_162..=2_932_896).contains(&days) {
        true => temporal::print_date(number),
        false => days.to_string(),
    }
}

fn time(nanos: i64) -> String {
    let seconds = nanos / 1_000_000_000;
    let fraction = nanos % 1_000_000_000;
    format!("{:02}:{:02}:{:02}.{fraction:09}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn duration(value: &Duration) -> String {
    let mut out = String::new();
    if value.is_negative() {
        out.push('-');
    }
    let mut put = |rest: u64, units: &[(u64, &str)]| {
        let mut rest = rest;
        for (size, unit) in units {
            if rest >= *size {
                out.push_str(&format!("{}{unit}", rest / size));
                rest %= size;
            }
        }
    };
    put(u64::from(value.months.unsigned_abs()), &[(12, "y"), (1, "mo")]);
    put(u64::from(value.days.unsigned_abs()), &[(1, "d")]);
    const UNITS: [(u64, &str); 6] = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    put(value.nanoseconds.unsigned_abs(), &UNITS);
    out
}

/// The colour of a type's values.
pub fn color(ty: &CqlType, is_null: bool) -> &'static str {
    match ty {
        _ if is_null => RED,
        CqlType::Text | CqlType::Ascii => YELLOW,
        CqlType::Blob => DARK_MAGENTA,
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => BLUE,
        CqlType::Tuple(_) | CqlType::Udt(..) | CqlType::Vector { .. } => BLUE,
        _ => GREEN,
    }
}

/// Escape sequences of colours: cqlsh's.
#[allow(missing_docs)] // the names are the colours
pub const RED: &str = "\x1b[0;1;31m";
#[allow(missing_docs)]
pub const GREEN: &str = "\x1b[0;1;32m";
#[allow(missing_docs)]
pub const YELLOW: &str = "\x1b[0;1;33m";
#[allow(missing_docs)]
pub const BLUE: &str = "\x1b[0;1;34m";
#[allow(missing_docs)]
pub const MAGENTA: &str = "\x1b[0;1;35m";
#[allow(missing_docs)]
pub const CYAN: &str = "\x1b[0;1;36m";
#[allow(missing_docs)]
pub const DARK_MAGENTA: &str = "\x1b[0;35m";
#[allow(missing_docs)]
pub const DIM: &str = "\x1b[2m";
/// The end of a colour.
pub const RESET: &str = "\x1b[0m";

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(ty: &CqlType, text: &str) -> String {
        show(ty, Some(&types::parse_text(ty, text).unwrap()), &Style::default())
    }

    #[test]
    fn numbers_as_cqlsh_prints_them() {
        for (text, expected) in [
            ("1.1", "1.1"),
            ("-2", "-2"),
            ("0", "0"),
            ("123456.789", "1.2346e+05"),
            ("1234.56789", "1234.56789"),
            ("0.00001", "1e-05"),
            ("1e300", "1e+300"),
            ("NaN", "NaN"),
            ("-Infinity", "-Infinity"),
        ] {
            assert_eq!(shown(&CqlType::Double, text), expected, "{text}");
        }
        assert_eq!(shown(&CqlType::Float, "3.4028235e38"), "3.4028e+38");
        assert_eq!(shown(&CqlType::Float, "1.4e-45"), "1.4013e-45");
    }

    #[test]
    fn groups_of_digits() {
        let style =
            Style { thousands_separator: Some(".".into()), decimal_separator: Some(",".into()), ..Style::default() };
        let value = |ty: &CqlType, text: &str| show(ty, Some(&types::parse_text(ty, text).unwrap()), &style);
        assert_eq!(value(&CqlType::Int, "-1234567"), "-1.234.567");
        assert_eq!(value(&CqlType::Double, "1234567.25"), "1.234.567,25");
    }

    #[test]
    fn times() {
        assert_eq!(shown(&CqlType::Timestamp, "2024-02-29 12:34:56.789Z"), "2024-02-29 12:34:56.789000+0000");
        assert_eq!(shown(&CqlType::Time, "23:59:59.999999999"), "23:59:59.999999999");
        assert_eq!(shown(&CqlType::Date, "2024-02-29"), "2024-02-29");
        assert_eq!(shown(&CqlType::Duration, "14mo25d5h6m7s8ms9us10ns"), "1y2mo25d5h6m7s8ms9us10ns");
        let style = Style { milliseconds_only: true, ..Style::default() };
        assert_eq!(timestamp(-1, &style), "1969-12-31 23:59:59.999+0000");
    }

    #[test]
    fn texts_and_collections() {
        let list = |element| CqlType::List { element: std::sync::Arc::new(element), frozen: false };
        let value = types::collection::build_list(&["it's", "a\nb\\"]);
        assert_eq!(show(&list(CqlType::Text), Some(&value), &Style::default()), "['it''s', 'a\\nb\\\\']");
        let pair = CqlType::Tuple([CqlType::Int, CqlType::Text].into());
        let value = types::collection::build_tuple(&[Some(&[0, 0, 0, 1][..]), None]);
        assert_eq!(show(&pair, Some(&value), &Style::default()), "(1, null)");
        assert_eq!(show(&CqlType::Int, None, &Style::default()), "null");
        assert_eq!(show(&CqlType::Int, Some(&[]), &Style::default()), "");
        assert_eq!(show(&CqlType::Blob, Some(&[]), &Style::default()), "0x");
    }

    #[test]
    fn damaged_values_are_shown_as_bytes() {
        let map = CqlType::Map { key: CqlType::Int.into(), value: CqlType::Text.into(), frozen: false };
        for bytes in [&[0xff][..], &[0, 0, 0, 9, 1], &[0x7f, 0xff, 0xff, 0xff]] {
            for ty in [CqlType::Int, CqlType::Decimal, CqlType::Duration, CqlType::Inet, CqlType::Uuid, map.clone()] {
                show(&ty, Some(bytes), &Style::default());
            }
        }
        assert_eq!(shown(&CqlType::Blob, "0xff"), "0xff");
        assert_eq!(show(&CqlType::Uuid, Some(&[1, 2]), &Style::default()), "0x0102");
    }
}
