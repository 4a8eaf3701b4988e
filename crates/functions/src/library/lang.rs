//! java.lang without strings: Object, the boxes, Throwable; java.util.Objects.

use num_traits::ToPrimitive;

use super::MethodTable;
use crate::class::{JavaClass, Prim};
use crate::machine::{Machine, Object, Result, Value, convert};

pub(super) fn declare(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::Object,
        &[
            ("new()", |m, _| m.alloc(Object::Context)),
            ("boolean equals(Object)", |m, a| m.equal(a[0], a[1]).map(Value::Bool)),
            ("int hashCode()", |m, a| m.hash(a[0]).map(Value::Int)),
            ("String toString()", |m, a| m.text_of(a[0])),
        ],
    );
    table.add_methods(JavaClass::Comparable, &[("int compareTo(Object)", |m, a| compare_to(m, a[0], a[1]))]);
    numbers(table);
    boxes(table);
    throwables(table);
    table.add_methods(
        JavaClass::Objects,
        &[
            ("static boolean equals(Object, Object)", |m, a| m.equal(a[0], a[1]).map(Value::Bool)),
            ("static int hashCode(Object)", |m, a| m.hash(a[0]).map(Value::Int)),
            ("static int hash(Object...)", |m, a| {
                let items = m.items(a[0])?;
                let list = m.list(items)?;
                m.hash(list).map(Value::Int)
            }),
            ("static String toString(Object)", |m, a| m.text_of(a[0])),
            (
                "static String toString(Object, String)",
                |m, a| if a[0] == Value::Null { Ok(a[1]) } else { m.text_of(a[0]) },
            ),
            ("static boolean isNull(Object)", |_, a| Ok(Value::Bool(a[0] == Value::Null))),
            ("static boolean nonNull(Object)", |_, a| Ok(Value::Bool(a[0] != Value::Null))),
            ("static T requireNonNull(T)", |m, a| if a[0] == Value::Null { m.null_pointer() } else { Ok(a[0]) }),
            ("static T requireNonNull(T, String)", |m, a| match a[0] {
                Value::Null => m.throw_with(JavaClass::NullPointerException, a[1]),
                value => Ok(value),
            }),
            ("static T requireNonNullElse(T, T)", |m, a| match (a[0], a[1]) {
                (Value::Null, Value::Null) => m.throw(JavaClass::NullPointerException, "defaultObj"),
                (Value::Null, other) => Ok(other),
                (value, _) => Ok(value),
            }),
        ],
    );
}

/// `compareTo` of any class that has it: of strings the difference, of numbers -1, 0 or 1.
pub(super) fn compare_to(m: &mut Machine<'_>, a: Value, b: Value) -> Result {
    Ok(Value::Int(match (m.peek(a), m.peek(b)) {
        (Some(Object::Text(a)), Some(Object::Text(b))) => {
            let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
            let order = match (a.get(same), b.get(same)) {
                (Some(a), Some(b)) => i32::from(*a) - i32::from(*b),
                _ => a.len() as i32 - b.len() as i32,
            };
            m.step_bytes(same * 2)?;
            order
        }
        _ => match (a, b) {
            (Value::Byte(a), Value::Byte(b)) => i32::from(a) - i32::from(b),
            (Value::Short(a), Value::Short(b)) => i32::from(a) - i32::from(b),
            (Value::Char(a), Value::Char(b)) => i32::from(a) - i32::from(b),
            _ => m.compare(a, b)? as i32,
        },
    }))
}

fn number(m: &mut Machine<'_>, value: Value, to: Prim) -> Result {
    let bits = match m.peek(value) {
        Some(Object::Integer(big)) => big.bits(),
        Some(Object::Decimal(decimal)) => decimal.unscaled.bits(),
        _ => 0,
    };
    m.step_digits(bits)?;
    let plain = match m.peek(value) {
        Some(Object::Integer(big)) => match to {
            Prim::Float => Value::Float(big.to_string().parse().unwrap_or(f32::NAN)),
            Prim::Double => Value::Double(big.to_f64().unwrap_or(f64::NAN)),
            _ => Value::Long(Machine::low_bits(big)),
        },
        Some(Object::Decimal(decimal)) => match to {
            Prim::Float => Value::Float(decimal.to_string().parse().unwrap_or(f32::NAN)),
            Prim::Double => Value::Double(decimal.to_double()),
            _ => Value::Long(decimal.to_long()),
        },
        _ => value,
    };
    match convert(to, plain) {
        Some(value) => Ok(value),
        None => m.wrong_class(value, "java.lang.Number"),
    }
}

fn numbers(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::Number,
        &[
            ("byte byteValue()", |m, a| number(m, a[0], Prim::Byte)),
            ("short shortValue()", |m, a| number(m, a[0], Prim::Short)),
            ("int intValue()", |m, a| number(m, a[0], Prim::Int)),
            ("long longValue()", |m, a| number(m, a[0], Prim::Long)),
            ("float floatValue()", |m, a| number(m, a[0], Prim::Float)),
            ("double doubleValue()", |m, a| number(m, a[0], Prim::Double)),
        ],
    );
}

/// Reads a whole number of a type with 8 to 64 bits.
fn parse(m: &mut Machine<'_>, text: Value, radix: i32, prim: Prim) -> Result {
    if text == Value::Null {
        return m.throw(JavaClass::NumberFormatException, "null");
    }
    let shown = m.rust_string(text)?;
    if !(2..=36).contains(&radix) {
        return m.throw(JavaClass::NumberFormatException, format!("radix {radix} out of range"));
    }
    let digits = shown.strip_prefix(['+', '-']).unwrap_or(&shown);
    let plain = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix as u32));
    let value = if plain { i64::from_str_radix(&shown, radix as u32).ok() } else { None };
    let of_int = value.filter(|value| prim == Prim::Long || i32::try_from(*value).is_ok());
    let Some(value) = of_int else {
        let under = if radix == 10 { String::new() } else { format!(" under radix {radix}") };
        return m.throw(JavaClass::NumberFormatException, format!("For input string: \"{shown}\"{under}"));
    };
    let cut = convert(prim, Value::Long(value)).unwrap_or(Value::Null);
    if convert(Prim::Long, cut) != Some(Value::Long(value)) {
        let message = format!("Value out of range. Value:\"{shown}\" Radix:{radix}");
        return m.throw(JavaClass::NumberFormatException, message);
    }
    Ok(cut)
}

fn parse_double(m: &mut Machine<'_>, text: Value) -> Result<f64> {
    if text == Value::Null {
        return m.null_pointer();
    }
    let shown = m.rust_string(text)?;
    match types::java_number::parse_double(&shown) {
        Some(value) => Ok(value),
        None if shown.trim_matches(|c| c <= ' ').is_empty() => {
            m.throw(JavaClass::NumberFormatException, "empty String")
        }
        None => m.throw(JavaClass::NumberFormatException, format!("For input string: \"{shown}\"")),
    }
}

fn parse_float(m: &mut Machine<'_>, text: Value) -> Result<f32> {
    parse_double(m, text)?;
    let shown = m.rust_string(text)?;
    Ok(types::java_number::parse_float(&shown).unwrap_or(f32::NAN))
}

/// The digits of a number without sign.
pub(super) fn radix_text(mut value: u64, radix: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((value % u64::from(radix)) as u32, radix).unwrap_or('0'));
        value /= u64::from(radix);
        if value == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

fn signed_text(value: i64, radix: i32) -> String {
    let radix = if (2..=36).contains(&radix) { radix as u32 } else { 10 };
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", radix_text(value.unsigned_abs(), radix))
}

fn boxes(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::Integer,
        &[
            ("Integer new(int)", |_, a| Ok(a[0])),
            ("static Integer valueOf(int)", |_, a| Ok(a[0])),
            ("static Integer valueOf(String)", |m, a| parse(m, a[0], 10, Prim::Int)),
            ("static Integer valueOf(String, int)", |m, a| {
                let radix = m.int(a[1])?;
                parse(m, a[0], radix, Prim::Int)
            }),
            ("static int parseInt(String)", |m, a| parse(m, a[0], 10, Prim::Int)),
            ("static int parseInt(String, int)", |m, a| {
                let radix = m.int(a[1])?;
                parse(m, a[0], radix, Prim::Int)
            }),
            ("static String toString(int)", |m, a| m.text_of(a[0])),
            ("static String toString(int, int)", |m, a| {
                let (value, radix) = (m.int(a[0])?, m.int(a[1])?);
                m.string(&signed_text(value.into(), radix))
            }),
            ("static String toHexString(int)", |m, a| {
                let value = m.int(a[0])?;
                m.string(&format!("{value:x}"))
            }),
            ("static String toBinaryString(int)", |m, a| {
                let value = m.int(a[0])?;
                m.string(&format!("{value:b}"))
            }),
            ("static String toOctalString(int)", |m, a| {
                let value = m.int(a[0])?;
                m.string(&format!("{value:o}"))
            }),
            ("static int compare(int, int)", |m, a| m.compare(a[0], a[1]).map(|order| Value::Int(order as i32))),
            ("int compareTo(Integer)", |m, a| compare_to(m, a[0], a[1])),
            ("static int signum(int)", |m, a| m.int(a[0]).map(|value| Value::Int(value.signum()))),
            ("static int sum(int, int)", |m, a| Ok(Value::Int(m.int(a[0])?.wrapping_add(m.int(a[1])?)))),
            ("static int max(int, int)", |m, a| Ok(Value::Int(m.int(a[0])?.max(m.int(a[1])?)))),
            ("static int min(int, int)", |m, a| Ok(Value::Int(m.int(a[0])?.min(m.int(a[1])?)))),
            ("static int bitCount(int)", |m, a| m.int(a[0]).map(|value| Value::Int(value.count_ones() as i32))),
            ("static int reverse(int)", |m, a| m.int(a[0]).map(|value| Value::Int(value.reverse_bits()))),
            ("static int reverseBytes(int)", |m, a| m.int(a[0]).map(|value| Value::Int(value.swap_bytes()))),
            ("static int highestOneBit(int)", |m, a| {
                m.int(a[0])
                    .map(|value| Value::Int(if value == 0 { 0 } else { (1u32 << (31 - value.leading_zeros())) as i32 }))
            }),
            ("static int lowestOneBit(int)", |m, a| m.int(a[0]).map(|value| Value::Int(value & value.wrapping_neg()))),
            ("static int numberOfLeadingZeros(int)", |m, a| {
                m.int(a[0]).map(|value| Value::Int(value.leading_zeros() as i32))
            }),
            ("static int numberOfTrailingZeros(int)", |m, a| {
                m.int(a[0]).map(|value| Value::Int(value.trailing_zeros() as i32))
            }),
            ("static int rotateLeft(int, int)", |m, a| {
                Ok(Value::Int(m.int(a[0])?.rotate_left(m.int(a[1])? as u32 & 31)))
            }),
            ("static int rotateRight(int, int)", |m, a| {
                Ok(Value::Int(m.int(a[0])?.rotate_right(m.int(a[1])? as u32 & 31)))
            }),
            ("static int hashCode(int)", |_, a| Ok(a[0])),
            ("static int divideUnsigned(int, int)", |m, a| {
                match (m.int(a[0])? as u32).checked_div(m.int(a[1])? as u32) {
                    Some(value) => Ok(Value::Int(value as i32)),
                    None => m.throw(JavaClass::ArithmeticException, "/ by zero"),
                }
            }),
            ("static long toUnsignedLong(int)", |m, a| m.int(a[0]).map(|value| Value::Long(i64::from(value as u32)))),
        ],
    );
    table.add_methods(
        JavaClass::Long,
        &[
            ("Long new(long)", |_, a| Ok(a[0])),
            ("static Long valueOf(long)", |_, a| Ok(a[0])),
            ("static Long valueOf(String)", |m, a| parse(m, a[0], 10, Prim::Long)),
            ("static long parseLong(String)", |m, a| parse(m, a[0], 10, Prim::Long)),
            ("static long parseLong(String, int)", |m, a| {
                let radix = m.int(a[1])?;
                parse(m, a[0], radix, Prim::Long)
            }),
            ("static String toString(long)", |m, a| m.text_of(a[0])),
            ("static String toString(long, int)", |m, a| {
                let (value, radix) = (m.long(a[0])?, m.int(a[1])?);
                m.string(&signed_text(value, radix))
            }),
            ("static String toHexString(long)", |m, a| {
                let value = m.long(a[0])?;
                m.string(&format!("{value:x}"))
            }),
            ("static String toBinaryString(long)", |m, a| {
                let value = m.long(a[0])?;
                m.string(&format!("{value:b}"))
            }),
            ("static int compare(long, long)", |m, a| m.compare(a[0], a[1]).map(|order| Value::Int(order as i32))),
            ("int compareTo(Long)", |m, a| compare_to(m, a[0], a[1])),
            ("static int signum(long)", |m, a| m.long(a[0]).map(|value| Value::Int(value.signum() as i32))),
            ("static long sum(long, long)", |m, a| Ok(Value::Long(m.long(a[0])?.wrapping_add(m.long(a[1])?)))),
            ("static long max(long, long)", |m, a| Ok(Value::Long(m.long(a[0])?.max(m.long(a[1])?)))),
            ("static long min(long, long)", |m, a| Ok(Value::Long(m.long(a[0])?.min(m.long(a[1])?)))),
            ("static int bitCount(long)", |m, a| m.long(a[0]).map(|value| Value::Int(value.count_ones() as i32))),
            ("static long reverse(long)", |m, a| m.long(a[0]).map(|value| Value::Long(value.reverse_bits()))),
            ("static long reverseBytes(long)", |m, a| m.long(a[0]).map(|value| Value::Long(value.swap_bytes()))),
            ("static int numberOfLeadingZeros(long)", |m, a| {
                m.long(a[0]).map(|value| Value::Int(value.leading_zeros() as i32))
            }),
            ("static int numberOfTrailingZeros(long)", |m, a| {
                m.long(a[0]).map(|value| Value::Int(value.trailing_zeros() as i32))
            }),
            ("static long rotateLeft(long, int)", |m, a| {
                Ok(Value::Long(m.long(a[0])?.rotate_left(m.int(a[1])? as u32 & 63)))
            }),
            ("static int hashCode(long)", |m, a| m.hash(a[0]).map(Value::Int)),
        ],
    );
    table.add_methods(
        JavaClass::Short,
        &[
            ("static Short valueOf(short)", |_, a| Ok(a[0])),
            ("static short parseShort(String)", |m, a| parse(m, a[0], 10, Prim::Short)),
            ("static String toString(short)", |m, a| m.text_of(a[0])),
            ("static int compare(short, short)", |m, a| compare_to(m, a[0], a[1])),
            ("int compareTo(Short)", |m, a| compare_to(m, a[0], a[1])),
        ],
    );
    table.add_methods(
        JavaClass::Byte,
        &[
            ("static Byte valueOf(byte)", |_, a| Ok(a[0])),
            ("static byte parseByte(String)", |m, a| parse(m, a[0], 10, Prim::Byte)),
            ("static String toString(byte)", |m, a| m.text_of(a[0])),
            ("static int toUnsignedInt(byte)", |m, a| m.int(a[0]).map(|value| Value::Int(value & 255))),
            ("static int compare(byte, byte)", |m, a| compare_to(m, a[0], a[1])),
            ("int compareTo(Byte)", |m, a| compare_to(m, a[0], a[1])),
        ],
    );
    table.add_methods(
        JavaClass::Double,
        &[
            ("Double new(double)", |_, a| Ok(a[0])),
            ("static Double valueOf(double)", |_, a| Ok(a[0])),
            ("static Double valueOf(String)", |m, a| parse_double(m, a[0]).map(Value::Double)),
            ("static double parseDouble(String)", |m, a| parse_double(m, a[0]).map(Value::Double)),
            ("static String toString(double)", |m, a| m.text_of(a[0])),
            ("static int compare(double, double)", |m, a| m.compare(a[0], a[1]).map(|order| Value::Int(order as i32))),
            ("int compareTo(Double)", |m, a| compare_to(m, a[0], a[1])),
            ("static boolean isNaN(double)", |m, a| m.double(a[0]).map(|value| Value::Bool(value.is_nan()))),
            ("static boolean isInfinite(double)", |m, a| m.double(a[0]).map(|value| Value::Bool(value.is_infinite()))),
            ("static boolean isFinite(double)", |m, a| m.double(a[0]).map(|value| Value::Bool(value.is_finite()))),
            ("boolean isNaN()", |m, a| m.double(a[0]).map(|value| Value::Bool(value.is_nan()))),
            ("boolean isInfinite()", |m, a| m.double(a[0]).map(|value| Value::Bool(value.is_infinite()))),
            ("static double sum(double, double)", |m, a| Ok(Value::Double(m.double(a[0])? + m.double(a[1])?))),
            ("static double max(double, double)", |m, a| super::math::max(m, a)),
            ("static double min(double, double)", |m, a| super::math::min(m, a)),
            ("static int hashCode(double)", |m, a| m.hash(a[0]).map(Value::Int)),
            ("static long doubleToLongBits(double)", |m, a| {
                m.double(a[0]).map(|value| {
                    Value::Long(if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() as i64 })
                })
            }),
            ("static long doubleToRawLongBits(double)", |m, a| {
                m.double(a[0]).map(|value| Value::Long(value.to_bits() as i64))
            }),
            ("static double longBitsToDouble(long)", |m, a| {
                m.long(a[0]).map(|value| Value::Double(f64::from_bits(value as u64)))
            }),
        ],
    );
    table.add_methods(
        JavaClass::Float,
        &[
            ("static Float valueOf(float)", |_, a| Ok(a[0])),
            ("static Float valueOf(String)", |m, a| parse_float(m, a[0]).map(Value::Float)),
            ("static float parseFloat(String)", |m, a| parse_float(m, a[0]).map(Value::Float)),
            ("static String toString(float)", |m, a| m.text_of(a[0])),
            ("static int compare(float, float)", |m, a| m.compare(a[0], a[1]).map(|order| Value::Int(order as i32))),
            ("int compareTo(Float)", |m, a| compare_to(m, a[0], a[1])),
            ("static boolean isNaN(float)", |m, a| m.float(a[0]).map(|value| Value::Bool(value.is_nan()))),
            ("static boolean isInfinite(float)", |m, a| m.float(a[0]).map(|value| Value::Bool(value.is_infinite()))),
            ("boolean isNaN()", |m, a| m.float(a[0]).map(|value| Value::Bool(value.is_nan()))),
            ("static int floatToIntBits(float)", |m, a| {
                m.float(a[0]).map(|value| Value::Int(crate::machine::Machine::bits_of(value)))
            }),
            ("static float intBitsToFloat(int)", |m, a| {
                m.int(a[0]).map(|value| Value::Float(f32::from_bits(value as u32)))
            }),
        ],
    );
    table.add_methods(
        JavaClass::Boolean,
        &[
            ("static Boolean valueOf(boolean)", |_, a| Ok(a[0])),
            ("static Boolean valueOf(String)", parse_boolean),
            ("static boolean parseBoolean(String)", parse_boolean),
            ("static String toString(boolean)", |m, a| m.text_of(a[0])),
            ("boolean booleanValue()", |_, a| Ok(a[0])),
            ("static int compare(boolean, boolean)", |m, a| {
                m.compare(a[0], a[1]).map(|order| Value::Int(order as i32))
            }),
            ("int compareTo(Boolean)", |m, a| compare_to(m, a[0], a[1])),
            ("static boolean logicalAnd(boolean, boolean)", |m, a| Ok(Value::Bool(m.bool(a[0])? & m.bool(a[1])?))),
            ("static boolean logicalOr(boolean, boolean)", |m, a| Ok(Value::Bool(m.bool(a[0])? | m.bool(a[1])?))),
            ("static boolean logicalXor(boolean, boolean)", |m, a| Ok(Value::Bool(m.bool(a[0])? ^ m.bool(a[1])?))),
        ],
    );
    table.add_methods(
        JavaClass::Character,
        &[
            ("static Character valueOf(char)", |_, a| Ok(a[0])),
            ("static String toString(char)", |m, a| m.text_of(a[0])),
            ("char charValue()", |_, a| Ok(a[0])),
            ("static int compare(char, char)", |m, a| compare_to(m, a[0], a[1])),
            ("int compareTo(Character)", |m, a| compare_to(m, a[0], a[1])),
            ("static boolean isDigit(char)", |m, a| test(m, a, |c| c.is_ascii_digit())),
            ("static boolean isLetter(char)", |m, a| test(m, a, char::is_alphabetic)),
            ("static boolean isLetterOrDigit(char)", |m, a| test(m, a, char::is_alphanumeric)),
            ("static boolean isAlphabetic(int)", |m, a| {
                let code = m.int(a[0])?;
                Ok(Value::Bool(u32::try_from(code).ok().and_then(char::from_u32).is_some_and(char::is_alphabetic)))
            }),
            ("static boolean isUpperCase(char)", |m, a| test(m, a, char::is_uppercase)),
            ("static boolean isLowerCase(char)", |m, a| test(m, a, char::is_lowercase)),
            ("static boolean isWhitespace(char)", |m, a| {
                test(m, a, |c| {
                    matches!(c, '\t'..='\r' | '\u{1c}'..='\u{1f}')
                        || c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}')
                })
            }),
            ("static char toUpperCase(char)", |m, a| map(m, a, |c| single(c, c.to_uppercase()))),
            ("static char toLowerCase(char)", |m, a| map(m, a, |c| single(c, c.to_lowercase()))),
            ("static int getNumericValue(char)", |m, a| {
                let unit = m.char(a[0])?;
                let digit = char::from_u32(unit.into()).and_then(|c| c.to_digit(36));
                Ok(Value::Int(digit.map_or(-1, |digit| digit as i32)))
            }),
            ("static int digit(char, int)", |m, a| {
                let (unit, radix) = (m.char(a[0])?, m.int(a[1])?);
                let radix = u32::try_from(radix).ok().filter(|radix| (2..=36).contains(radix));
                let digit = char::from_u32(unit.into()).zip(radix).and_then(|(c, radix)| c.to_digit(radix));
                Ok(Value::Int(digit.map_or(-1, |digit| digit as i32)))
            }),
            ("static int hashCode(char)", |m, a| m.hash(a[0]).map(Value::Int)),
        ],
    );
}

impl Machine<'_> {
    /// `floatToIntBits`
    pub fn bits_of(value: f32) -> i32 {
        if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() as i32 }
    }
}

fn parse_boolean(m: &mut Machine<'_>, a: &[Value]) -> Result {
    if a[0] == Value::Null {
        return Ok(Value::Bool(false));
    }
    Ok(Value::Bool(m.rust_string(a[0])?.eq_ignore_ascii_case("true")))
}

fn test(m: &mut Machine<'_>, a: &[Value], of: fn(char) -> bool) -> Result {
    let unit = m.char(a[0])?;
    Ok(Value::Bool(char::from_u32(unit.into()).is_some_and(of)))
}

fn map(m: &mut Machine<'_>, a: &[Value], of: fn(char) -> char) -> Result {
    let unit = m.char(a[0])?;
    let mapped = char::from_u32(unit.into()).map(of).and_then(|c| u16::try_from(u32::from(c)).ok());
    Ok(Value::Char(mapped.unwrap_or(unit)))
}

/// The one character of a case mapping; itself if there are several.
fn single(c: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

fn throwables(table: &mut MethodTable) {
    macro_rules! constructors {
        ($($class:ident),*) => {
            $(table.add_methods(JavaClass::$class, &[
                (concat!(stringify!($class), " new()"), |m, _| new_throwable(m, JavaClass::$class, Value::Null, Value::Null)),
                (concat!(stringify!($class), " new(String)"), |m, a| new_throwable(m, JavaClass::$class, a[0], Value::Null)),
            ]);)*
        };
    }
    macro_rules! with_cause {
        ($($class:ident),*) => {
            $(table.add_methods(JavaClass::$class, &[
                (concat!(stringify!($class), " new(String, Throwable)"), |m, a| new_throwable(m, JavaClass::$class, a[0], a[1])),
                (concat!(stringify!($class), " new(Throwable)"), |m, a| {
                    let message = if a[0] == Value::Null { Value::Null } else { m.text_of(a[0])? };
                    new_throwable(m, JavaClass::$class, message, a[0])
                }),
            ]);)*
        };
    }
    constructors!(
        Throwable,
        Error,
        Exception,
        RuntimeException,
        ArithmeticException,
        ArrayStoreException,
        ClassCastException,
        IllegalArgumentException,
        IllegalStateException,
        NumberFormatException,
        IndexOutOfBoundsException,
        ArrayIndexOutOfBoundsException,
        StringIndexOutOfBoundsException,
        NegativeArraySizeException,
        NullPointerException,
        UnsupportedOperationException,
        ConcurrentModificationException,
        NoSuchElementException,
        BufferUnderflowException,
        BufferOverflowException,
        InvalidMarkException,
        InvalidTypeException
    );
    with_cause!(
        Throwable,
        Error,
        Exception,
        RuntimeException,
        IllegalArgumentException,
        IllegalStateException,
        UnsupportedOperationException
    );
    table.add_methods(
        JavaClass::Throwable,
        &[
            ("String getMessage()", |m, a| match m.object(a[0])? {
                Object::Throwable { message, .. } => Ok(*message),
                _ => Ok(Value::Null),
            }),
            ("String getLocalizedMessage()", |m, a| match m.object(a[0])? {
                Object::Throwable { message, .. } => Ok(*message),
                _ => Ok(Value::Null),
            }),
            ("Throwable getCause()", |m, a| match m.object(a[0])? {
                Object::Throwable { cause, .. } => Ok(*cause),
                _ => Ok(Value::Null),
            }),
        ],
    );
}

fn new_throwable(m: &mut Machine<'_>, class: JavaClass, message: Value, cause: Value) -> Result {
    m.alloc(Object::Throwable { class, message, cause })
}
