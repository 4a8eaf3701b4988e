//! Math, BigInteger, BigDecimal, RoundingMode.

use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};
use types::decimal::Decimal;

use super::MethodTable;
use crate::class::JavaClass;
use crate::machine::{Machine, Object, Result, Value, rounding_names};

pub(super) fn declare(table: &mut MethodTable) {
    for class in [JavaClass::Math, JavaClass::StrictMath] {
        declare_math(table, class);
    }
    integers(table);
    decimals(table);
    table.add_methods(
        JavaClass::RoundingMode,
        &[
            ("int ordinal()", |m, a| match m.object(a[0])? {
                Object::Rounding(at) => Ok(Value::Int(i32::from(*at))),
                _ => Ok(Value::Null),
            }),
            ("String name()", |m, a| m.text_of(a[0])),
            ("static RoundingMode valueOf(String)", |m, a| {
                let name = m.rust_string(a[0])?;
                match rounding_names().iter().position(|known| *known == name) {
                    Some(at) => m.alloc(Object::Rounding(at as u8)),
                    None => m.throw(
                        JavaClass::IllegalArgumentException,
                        format!("No enum constant java.math.RoundingMode.{name}"),
                    ),
                }
            }),
        ],
    );
}

/// `Math.max` of floating numbers: NaN wins, 0.0 is more than -0.0.
pub(super) fn max(m: &mut Machine<'_>, a: &[Value]) -> Result {
    extreme(m, a, true)
}

/// `Math.min` of floating numbers.
pub(super) fn min(m: &mut Machine<'_>, a: &[Value]) -> Result {
    extreme(m, a, false)
}

fn extreme(m: &mut Machine<'_>, a: &[Value], largest: bool) -> Result {
    let (x, y) = (m.double(a[0])?, m.double(a[1])?);
    if x.is_nan() {
        return Ok(a[0]);
    }
    if y.is_nan() {
        return Ok(a[1]);
    }
    let first = m.compare(Value::Double(x), Value::Double(y))?.is_ge() == largest;
    Ok(if first { a[0] } else { a[1] })
}

fn overflow<T>(m: &mut Machine<'_>, name: &str) -> Result<T> {
    m.throw(JavaClass::ArithmeticException, format!("{name} overflow"))
}

fn int_of(m: &mut Machine<'_>, value: Option<i32>) -> Result {
    match value {
        Some(value) => Ok(Value::Int(value)),
        None => overflow(m, "integer"),
    }
}

fn long_of(m: &mut Machine<'_>, value: Option<i64>) -> Result {
    match value {
        Some(value) => Ok(Value::Long(value)),
        None => overflow(m, "long"),
    }
}

fn floor_div(a: i64, b: i64) -> i64 {
    let quotient = a.wrapping_div(b);
    if (a % b != 0) && ((a < 0) != (b < 0)) { quotient - 1 } else { quotient }
}

fn declare_math(table: &mut MethodTable, class: JavaClass) {
    macro_rules! doubles {
        ($($signature:literal $body:expr,)*) => {
            table.add_methods(class, &[$(($signature, |m, a| {
                let body: fn(f64) -> f64 = $body;
                Ok(Value::Double(body(m.double(a[0])?)))
            }),)*]);
        };
    }
    doubles! {
        "static double sqrt(double)" f64::sqrt,
        "static double cbrt(double)" f64::cbrt,
        "static double floor(double)" f64::floor,
        "static double ceil(double)" f64::ceil,
        "static double rint(double)" f64::round_ties_even,
        "static double exp(double)" f64::exp,
        "static double expm1(double)" f64::exp_m1,
        "static double log(double)" f64::ln,
        "static double log10(double)" types::number::log10,
        "static double log1p(double)" f64::ln_1p,
        "static double sin(double)" f64::sin,
        "static double cos(double)" f64::cos,
        "static double tan(double)" f64::tan,
        "static double asin(double)" f64::asin,
        "static double acos(double)" f64::acos,
        "static double atan(double)" f64::atan,
        "static double sinh(double)" f64::sinh,
        "static double cosh(double)" f64::cosh,
        "static double tanh(double)" f64::tanh,
        "static double toRadians(double)" |x| x * 0.017453292519943295,
        "static double toDegrees(double)" |x| x * 57.29577951308232,
        "static double signum(double)" |x| if x == 0.0 || x.is_nan() { x } else { x.signum() },
        "static double abs(double)" f64::abs,
    }
    table.add_methods(
        class,
        &[
            ("static int abs(int)", |m, a| m.int(a[0]).map(|x| Value::Int(x.wrapping_abs()))),
            ("static long abs(long)", |m, a| m.long(a[0]).map(|x| Value::Long(x.wrapping_abs()))),
            ("static float abs(float)", |m, a| m.float(a[0]).map(|x| Value::Float(x.abs()))),
            ("static int max(int, int)", |m, a| Ok(Value::Int(m.int(a[0])?.max(m.int(a[1])?)))),
            ("static long max(long, long)", |m, a| Ok(Value::Long(m.long(a[0])?.max(m.long(a[1])?)))),
            ("static float max(float, float)", max),
            ("static double max(double, double)", max),
            ("static int min(int, int)", |m, a| Ok(Value::Int(m.int(a[0])?.min(m.int(a[1])?)))),
            ("static long min(long, long)", |m, a| Ok(Value::Long(m.long(a[0])?.min(m.long(a[1])?)))),
            ("static float min(float, float)", min),
            ("static double min(double, double)", min),
            // Java's floor(x + 1/2), exactly: halves go up
            ("static long round(double)", |m, a| {
                let x = m.double(a[0])?;
                let floor = x.floor();
                Ok(Value::Long(if x - floor >= 0.5 { floor as i64 + 1 } else { floor as i64 }))
            }),
            ("static int round(float)", |m, a| {
                let x = m.float(a[0])?;
                let floor = x.floor();
                Ok(Value::Int(if x - floor >= 0.5 { (floor as i32).saturating_add(1) } else { floor as i32 }))
            }),
            ("static double pow(double, double)", |m, a| {
                let (x, y) = (m.double(a[0])?, m.double(a[1])?);
                // Java has no number for 1 to an infinite or unknown power
                let unknown = y.is_nan() || x.abs() == 1.0 && y.is_infinite();
                Ok(Value::Double(if unknown { f64::NAN } else { x.powf(y) }))
            }),
            ("static double atan2(double, double)", |m, a| Ok(Value::Double(m.double(a[0])?.atan2(m.double(a[1])?)))),
            ("static double hypot(double, double)", |m, a| Ok(Value::Double(m.double(a[0])?.hypot(m.double(a[1])?)))),
            ("static float signum(float)", |m, a| {
                m.float(a[0]).map(|x| Value::Float(if x == 0.0 || x.is_nan() { x } else { x.signum() }))
            }),
            ("static int addExact(int, int)", |m, a| {
                let value = m.int(a[0])?.checked_add(m.int(a[1])?);
                int_of(m, value)
            }),
            ("static long addExact(long, long)", |m, a| {
                let value = m.long(a[0])?.checked_add(m.long(a[1])?);
                long_of(m, value)
            }),
            ("static int subtractExact(int, int)", |m, a| {
                let value = m.int(a[0])?.checked_sub(m.int(a[1])?);
                int_of(m, value)
            }),
            ("static long subtractExact(long, long)", |m, a| {
                let value = m.long(a[0])?.checked_sub(m.long(a[1])?);
                long_of(m, value)
            }),
            ("static int multiplyExact(int, int)", |m, a| {
                let value = m.int(a[0])?.checked_mul(m.int(a[1])?);
                int_of(m, value)
            }),
            ("static long multiplyExact(long, long)", |m, a| {
                let value = m.long(a[0])?.checked_mul(m.long(a[1])?);
                long_of(m, value)
            }),
            ("static int negateExact(int)", |m, a| {
                let value = m.int(a[0])?.checked_neg();
                int_of(m, value)
            }),
            ("static long negateExact(long)", |m, a| {
                let value = m.long(a[0])?.checked_neg();
                long_of(m, value)
            }),
            ("static int incrementExact(int)", |m, a| {
                let value = m.int(a[0])?.checked_add(1);
                int_of(m, value)
            }),
            ("static int decrementExact(int)", |m, a| {
                let value = m.int(a[0])?.checked_sub(1);
                int_of(m, value)
            }),
            ("static int toIntExact(long)", |m, a| {
                let value = i32::try_from(m.long(a[0])?).ok();
                int_of(m, value)
            }),
            ("static int floorDiv(int, int)", |m, a| match (m.long(a[0])?, m.long(a[1])?) {
                (_, 0) => m.throw(JavaClass::ArithmeticException, "/ by zero"),
                (x, y) => Ok(Value::Int(floor_div(x, y) as i32)),
            }),
            ("static long floorDiv(long, long)", |m, a| match (m.long(a[0])?, m.long(a[1])?) {
                (_, 0) => m.throw(JavaClass::ArithmeticException, "/ by zero"),
                (x, -1) => Ok(Value::Long(x.wrapping_neg())),
                (x, y) => Ok(Value::Long(floor_div(x, y))),
            }),
            ("static int floorMod(int, int)", |m, a| match (m.long(a[0])?, m.long(a[1])?) {
                (_, 0) => m.throw(JavaClass::ArithmeticException, "/ by zero"),
                (x, y) => Ok(Value::Int((x - floor_div(x, y) * y) as i32)),
            }),
            ("static long floorMod(long, long)", |m, a| match (m.long(a[0])?, m.long(a[1])?) {
                (_, 0) => m.throw(JavaClass::ArithmeticException, "/ by zero"),
                (_, -1) => Ok(Value::Long(0)),
                (x, y) => Ok(Value::Long(x - floor_div(x, y) * y)),
            }),
        ],
    );
}

/// Most bits of a BigInteger or of the digits of a BigDecimal.
const BITS_MAX: u64 = 1 << 20;

pub(crate) fn big(m: &mut Machine<'_>, value: Value) -> Result<BigInt> {
    m.step_bytes(m.whole_size(value))?;
    match m.peek(value) {
        Some(Object::Integer(value)) => Ok(value.clone()),
        _ => m.wrong_class(value, "java.math.BigInteger"),
    }
}

pub(crate) fn decimal(m: &mut Machine<'_>, value: Value) -> Result<Decimal> {
    m.step_bytes(m.whole_size(value))?;
    match m.peek(value) {
        Some(Object::Decimal(value)) => Ok(value.clone()),
        _ => m.wrong_class(value, "java.math.BigDecimal"),
    }
}

fn put(m: &mut Machine<'_>, value: BigInt) -> Result {
    m.step(value.bits() as usize / 64)?;
    if value.bits() > BITS_MAX {
        return m.throw(JavaClass::ArithmeticException, "BigInteger would overflow supported range");
    }
    m.alloc(Object::Integer(value))
}

fn put_decimal(m: &mut Machine<'_>, value: Decimal) -> Result {
    m.step(value.unscaled.bits() as usize / 64)?;
    if value.unscaled.bits() > BITS_MAX {
        return m.throw(JavaClass::ArithmeticException, "Overflow");
    }
    m.alloc(Object::Decimal(value))
}

/// The number of digits.
fn precision(m: &mut Machine<'_>, value: &Decimal) -> Result<i64> {
    m.step_digits(value.unscaled.bits())?;
    Ok(value.precision())
}

/// Takes the steps of a product or quotient of two numbers.
fn cost(m: &mut Machine<'_>, a: &BigInt, b: &BigInt) -> Result<()> {
    m.step((a.bits() / 64 * (b.bits() / 64) / 8) as usize)
}

fn parse_big(m: &mut Machine<'_>, text: Value, radix: i32) -> Result {
    let shown = m.rust_string(text)?;
    m.step(shown.len() * shown.len() / 256)?;
    let digits = shown.strip_prefix(['+', '-']).unwrap_or(&shown);
    let plain = (2..=36).contains(&radix) && !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix as u32));
    match BigInt::parse_bytes(shown.as_bytes(), if plain { radix as u32 } else { 10 }).filter(|_| plain) {
        Some(value) => put(m, value),
        None if shown.is_empty() => m.throw(JavaClass::NumberFormatException, "Zero length BigInteger"),
        None => m.throw(JavaClass::NumberFormatException, format!("For input string: \"{shown}\"")),
    }
}

fn integers(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::BigInteger,
        &[
            ("BigInteger new(String)", |m, a| parse_big(m, a[0], 10)),
            ("BigInteger new(String, int)", |m, a| {
                let radix = m.int(a[1])?;
                parse_big(m, a[0], radix)
            }),
            ("static BigInteger valueOf(long)", |m, a| {
                let value = m.long(a[0])?;
                put(m, value.into())
            }),
            ("BigInteger add(BigInteger)", |m, a| {
                let value = big(m, a[0])? + big(m, a[1])?;
                put(m, value)
            }),
            ("BigInteger subtract(BigInteger)", |m, a| {
                let value = big(m, a[0])? - big(m, a[1])?;
                put(m, value)
            }),
            ("BigInteger multiply(BigInteger)", |m, a| {
                let (x, y) = (big(m, a[0])?, big(m, a[1])?);
                cost(m, &x, &y)?;
                put(m, x * y)
            }),
            ("BigInteger divide(BigInteger)", |m, a| {
                let (x, y) = (big(m, a[0])?, big(m, a[1])?);
                cost(m, &x, &y)?;
                if y.is_zero() {
                    m.throw(JavaClass::ArithmeticException, "BigInteger divide by zero")
                } else {
                    put(m, x / y)
                }
            }),
            ("BigInteger remainder(BigInteger)", |m, a| {
                let (x, y) = (big(m, a[0])?, big(m, a[1])?);
                cost(m, &x, &y)?;
                if y.is_zero() {
                    m.throw(JavaClass::ArithmeticException, "BigInteger divide by zero")
                } else {
                    put(m, x % y)
                }
            }),
            ("BigInteger mod(BigInteger)", |m, a| {
                let (x, y) = (big(m, a[0])?, big(m, a[1])?);
                cost(m, &x, &y)?;
                if !y.is_positive() {
                    return m.throw(JavaClass::ArithmeticException, "BigInteger: modulus not positive");
                }
                put(m, ((x % &y) + &y) % &y)
            }),
            ("BigInteger pow(int)", |m, a| {
                let (x, power) = (big(m, a[0])?, m.int(a[1])?);
                let Ok(power) = u32::try_from(power) else {
                    return m.throw(JavaClass::ArithmeticException, "Negative exponent");
                };
                let bits = x.bits().saturating_mul(u64::from(power));
                if bits > BITS_MAX && x.bits() > 1 {
                    return m.throw(JavaClass::ArithmeticException, "BigInteger would overflow supported range");
                }
                m.step((bits / 64 * (bits / 64) / 8) as usize)?;
                put(m, x.pow(power))
            }),
            ("BigInteger negate()", |m, a| {
                let value = -big(m, a[0])?;
                put(m, value)
            }),
            ("BigInteger abs()", |m, a| {
                let value = big(m, a[0])?.abs();
                put(m, value)
            }),
            ("BigInteger gcd(BigInteger)", |m, a| {
                let (mut x, mut y) = (big(m, a[0])?.abs(), big(m, a[1])?.abs());
                while !y.is_zero() {
                    cost(m, &x, &y)?;
                    m.step(1)?;
                    let rest = &x % &y;
                    x = std::mem::replace(&mut y, rest);
                }
                put(m, x)
            }),
            ("BigInteger and(BigInteger)", |m, a| {
                let value = big(m, a[0])? & big(m, a[1])?;
                put(m, value)
            }),
            ("BigInteger or(BigInteger)", |m, a| {
                let value = big(m, a[0])? | big(m, a[1])?;
                put(m, value)
            }),
            ("BigInteger xor(BigInteger)", |m, a| {
                let value = big(m, a[0])? ^ big(m, a[1])?;
                put(m, value)
            }),
            ("BigInteger not()", |m, a| {
                let value = -(big(m, a[0])? + BigInt::one());
                put(m, value)
            }),
            ("BigInteger shiftLeft(int)", |m, a| {
                let (x, by) = (big(m, a[0])?, m.int(a[1])?);
                shift(m, x, i64::from(by))
            }),
            ("BigInteger shiftRight(int)", |m, a| {
                let (x, by) = (big(m, a[0])?, m.int(a[1])?);
                shift(m, x, -i64::from(by))
            }),
            ("BigInteger max(BigInteger)", |m, a| Ok(if m.compare(a[0], a[1])?.is_ge() { a[0] } else { a[1] })),
            ("BigInteger min(BigInteger)", |m, a| Ok(if m.compare(a[0], a[1])?.is_le() { a[0] } else { a[1] })),
            ("int signum()", |m, a| Ok(Value::Int(big(m, a[0])?.signum().to_i32().unwrap_or(0)))),
            ("int bitLength()", |m, a| {
                let value = big(m, a[0])?;
                let of = if value.is_negative() { -(value + BigInt::one()) } else { value };
                Ok(Value::Int(of.bits() as i32))
            }),
            ("boolean testBit(int)", |m, a| {
                let (value, at) = (big(m, a[0])?, m.int(a[1])?);
                match u64::try_from(at) {
                    Ok(at) => Ok(Value::Bool(value.bit(at))),
                    Err(_) => m.throw(JavaClass::ArithmeticException, "Negative bit address"),
                }
            }),
            ("int compareTo(BigInteger)", |m, a| {
                big(m, a[1])?;
                m.compare(a[0], a[1]).map(|order| Value::Int(order as i32))
            }),
            ("int intValueExact()", |m, a| match big(m, a[0])?.to_i32() {
                Some(value) => Ok(Value::Int(value)),
                None => m.throw(JavaClass::ArithmeticException, "BigInteger out of int range"),
            }),
            ("long longValueExact()", |m, a| match big(m, a[0])?.to_i64() {
                Some(value) => Ok(Value::Long(value)),
                None => m.throw(JavaClass::ArithmeticException, "BigInteger out of long range"),
            }),
            ("String toString(int)", |m, a| {
                let (value, radix) = (big(m, a[0])?, m.int(a[1])?);
                let radix = if (2..=36).contains(&radix) { radix as u32 } else { 10 };
                m.step((value.bits() / 64 * value.bits() / 64) as usize)?;
                m.string(&value.to_str_radix(radix))
            }),
        ],
    );
}

fn shift(m: &mut Machine<'_>, value: BigInt, left: i64) -> Result {
    match left {
        0.. if value.is_zero() => put(m, value),
        0.. if left as u64 > BITS_MAX => {
            m.throw(JavaClass::ArithmeticException, "BigInteger would overflow supported range")
        }
        0.. => put(m, value << left as u64),
        _ => put(m, value >> left.unsigned_abs()),
    }
}

/// Rounding modes in the order of their ordinals.
const UP: u8 = 0;
const DOWN: u8 = 1;
const CEILING: u8 = 2;
const FLOOR: u8 = 3;
const HALF_UP: u8 = 4;
const HALF_DOWN: u8 = 5;
const HALF_EVEN: u8 = 6;

/// Divides integers, rounded by a mode; None: digits would be lost where none may.
fn divide_rounded(a: &BigInt, b: &BigInt, mode: u8) -> Option<BigInt> {
    let (quotient, rest) = (a / b, a % b);
    if rest.is_zero() {
        return Some(quotient);
    }
    let negative = a.is_negative() != b.is_negative();
    let half = (rest.abs() * 2u8).cmp(&b.abs());
    let away = match mode {
        UP => true,
        DOWN => false,
        CEILING => !negative,
        FLOOR => negative,
        HALF_UP => half.is_ge(),
        HALF_DOWN => half.is_gt(),
        HALF_EVEN => half.is_gt() || half.is_eq() && quotient.bit(0),
        _ => return None,
    };
    Some(match (away, negative) {
        (false, _) => quotient,
        (true, false) => quotient + 1,
        (true, true) => quotient - 1,
    })
}

/// Ten to a power that is not too large.
fn ten(m: &mut Machine<'_>, power: i64) -> Result<BigInt> {
    /// More digits do not fit [`BITS_MAX`].
    const POWER_MAX: i64 = 300_000;
    if !(0..=POWER_MAX).contains(&power) {
        return m.throw(JavaClass::ArithmeticException, "Overflow");
    }
    m.step((power / 16 * power / 1024) as usize)?;
    Ok(BigInt::from(10u8).pow(power as u32))
}

fn rescale(m: &mut Machine<'_>, value: &Decimal, scale: i64, mode: u8) -> Result<Decimal> {
    let Ok(wanted) = i32::try_from(scale) else { return m.throw(JavaClass::ArithmeticException, "Overflow") };
    let more = scale - i64::from(value.scale);
    let unscaled = if more >= 0 {
        &value.unscaled * ten(m, if value.unscaled.is_zero() { 0 } else { more })?
    } else if value.unscaled.is_zero() {
        BigInt::zero()
    } else {
        let power = (-more).min(precision(m, value)? + 2);
        match divide_rounded(&value.unscaled, &ten(m, power)?, mode) {
            Some(unscaled) => unscaled,
            None => return m.throw(JavaClass::ArithmeticException, "Rounding necessary"),
        }
    };
    Ok(Decimal { unscaled, scale: wanted })
}

fn mode(m: &mut Machine<'_>, value: Value) -> Result<u8> {
    match (m.peek(value), value) {
        (Some(Object::Rounding(at)), _) => Ok(*at),
        (_, Value::Int(at)) => match u8::try_from(at) {
            Ok(at) if at < 8 => Ok(at),
            _ => m.throw(JavaClass::IllegalArgumentException, "Invalid rounding mode"),
        },
        _ => m.null_pointer(),
    }
}

fn scale_checked(m: &mut Machine<'_>, scale: i64) -> Result<i32> {
    match i32::try_from(scale) {
        Ok(scale) => Ok(scale),
        Err(_) => m.throw(JavaClass::ArithmeticException, if scale > 0 { "Underflow" } else { "Overflow" }),
    }
}

fn sum(m: &mut Machine<'_>, a: &Decimal, b: &Decimal, sign: i8) -> Result {
    let scale = i64::from(a.scale.max(b.scale));
    let (x, y) = (rescale(m, a, scale, DOWN)?, rescale(m, b, scale, DOWN)?);
    let unscaled = if sign > 0 { x.unscaled + y.unscaled } else { x.unscaled - y.unscaled };
    put_decimal(m, Decimal { unscaled, scale: x.scale })
}

/// The quotient with a scale.
fn quotient(m: &mut Machine<'_>, a: &Decimal, b: &Decimal, scale: i64, mode: u8) -> Result {
    let wanted = scale_checked(m, scale)?;
    let shift = scale + i64::from(b.scale) - i64::from(a.scale);
    let power = ten(m, shift.abs())?;
    cost(m, &a.unscaled, &power)?;
    let (x, y) =
        if shift >= 0 { (&a.unscaled * power, b.unscaled.clone()) } else { (a.unscaled.clone(), &b.unscaled * power) };
    if y.is_zero() {
        // Java divides longs where the dividend is one
        let message = if x.to_i64().is_some() { "/ by zero" } else { "BigInteger divide by zero" };
        return m.throw(JavaClass::ArithmeticException, message);
    }
    cost(m, &x, &y)?;
    match divide_rounded(&x, &y, mode) {
        Some(unscaled) => put_decimal(m, Decimal { unscaled, scale: wanted }),
        None => m.throw(JavaClass::ArithmeticException, "Rounding necessary"),
    }
}

/// `divide(BigDecimal)`: exact, or an exception.
fn exact_quotient(m: &mut Machine<'_>, a: &Decimal, b: &Decimal) -> Result {
    if b.unscaled.is_zero() {
        let message = if a.unscaled.is_zero() { "Division undefined" } else { "Division by zero" };
        return m.throw(JavaClass::ArithmeticException, message);
    }
    let preferred = i64::from(a.scale) - i64::from(b.scale);
    if a.unscaled.is_zero() {
        return put_decimal(
            m,
            Decimal { unscaled: BigInt::zero(), scale: preferred.clamp(i32::MIN.into(), i32::MAX.into()) as i32 },
        );
    }
    // as many digits as an exact quotient can have
    let digits = precision(m, a)? + (10 * precision(m, b)? + 2) / 3;
    let power = ten(m, digits)?;
    let numerator = &a.unscaled * power;
    cost(m, &numerator, &b.unscaled)?;
    if !(&numerator % &b.unscaled).is_zero() {
        let message = "Non-terminating decimal expansion; no exact representable decimal result.";
        return m.throw(JavaClass::ArithmeticException, message);
    }
    let scale = preferred + digits;
    let mut result = Decimal { unscaled: numerator / &b.unscaled, scale: scale_checked(m, scale)? };
    let ten = BigInt::from(10u8);
    while i64::from(result.scale) > preferred && (&result.unscaled % &ten).is_zero() {
        m.step(1 + result.unscaled.bits() as usize / 64)?;
        result = Decimal { unscaled: result.unscaled / &ten, scale: result.scale - 1 };
    }
    put_decimal(m, result)
}

/// A text as BigDecimal reads it.
fn parse_decimal(m: &mut Machine<'_>, text: Value) -> Result {
    let shown = m.rust_string(text)?;
    m.step(shown.len() * shown.len() / 256)?;
    match Decimal::parse(&shown) {
        Some(value) => put_decimal(m, value),
        None => m.throw_with(JavaClass::NumberFormatException, Value::Null),
    }
}

fn decimals(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::BigDecimal,
        &[
            ("BigDecimal new(String)", |m, a| parse_decimal(m, a[0])),
            ("BigDecimal new(int)", |m, a| {
                let value = m.int(a[0])?;
                put_decimal(m, Decimal { unscaled: value.into(), scale: 0 })
            }),
            ("BigDecimal new(long)", |m, a| {
                let value = m.long(a[0])?;
                put_decimal(m, Decimal { unscaled: value.into(), scale: 0 })
            }),
            ("BigDecimal new(double)", |m, a| {
                let value = m.double(a[0])?;
                exact(m, value)
            }),
            ("BigDecimal new(BigInteger)", |m, a| {
                let unscaled = big(m, a[0])?;
                put_decimal(m, Decimal { unscaled, scale: 0 })
            }),
            ("BigDecimal new(BigInteger, int)", |m, a| {
                let (unscaled, scale) = (big(m, a[0])?, m.int(a[1])?);
                put_decimal(m, Decimal { unscaled, scale })
            }),
            ("static BigDecimal valueOf(long)", |m, a| {
                let value = m.long(a[0])?;
                put_decimal(m, Decimal { unscaled: value.into(), scale: 0 })
            }),
            ("static BigDecimal valueOf(long, int)", |m, a| {
                let (value, scale) = (m.long(a[0])?, m.int(a[1])?);
                put_decimal(m, Decimal { unscaled: value.into(), scale })
            }),
            ("static BigDecimal valueOf(double)", |m, a| {
                let value = m.double(a[0])?;
                match Decimal::of_double(value) {
                    Ok(value) => put_decimal(m, value),
                    Err(_) => not_a_number(m),
                }
            }),
            ("BigDecimal add(BigDecimal)", |m, a| {
                let (x, y) = (decimal(m, a[0])?, decimal(m, a[1])?);
                sum(m, &x, &y, 1)
            }),
            ("BigDecimal subtract(BigDecimal)", |m, a| {
                let (x, y) = (decimal(m, a[0])?, decimal(m, a[1])?);
                sum(m, &x, &y, -1)
            }),
            ("BigDecimal multiply(BigDecimal)", |m, a| {
                let (x, y) = (decimal(m, a[0])?, decimal(m, a[1])?);
                cost(m, &x.unscaled, &y.unscaled)?;
                let scale = scale_checked(m, i64::from(x.scale) + i64::from(y.scale))?;
                put_decimal(m, Decimal { unscaled: x.unscaled * y.unscaled, scale })
            }),
            ("BigDecimal divide(BigDecimal)", |m, a| {
                let (x, y) = (decimal(m, a[0])?, decimal(m, a[1])?);
                exact_quotient(m, &x, &y)
            }),
            ("BigDecimal divide(BigDecimal, RoundingMode)", |m, a| {
                let (x, y, mode) = (decimal(m, a[0])?, decimal(m, a[1])?, mode(m, a[2])?);
                quotient(m, &x, &y, x.scale.into(), mode)
            }),
            ("BigDecimal divide(BigDecimal, int)", |m, a| {
                let (x, y, mode) = (decimal(m, a[0])?, decimal(m, a[1])?, mode(m, a[2])?);
                quotient(m, &x, &y, x.scale.into(), mode)
            }),
            ("BigDecimal divide(BigDecimal, int, RoundingMode)", |m, a| {
                let (x, y, scale, mode) = (decimal(m, a[0])?, decimal(m, a[1])?, m.int(a[2])?, mode(m, a[3])?);
                quotient(m, &x, &y, scale.into(), mode)
            }),
            ("BigDecimal divide(BigDecimal, int, int)", |m, a| {
                let (x, y, scale, mode) = (decimal(m, a[0])?, decimal(m, a[1])?, m.int(a[2])?, mode(m, a[3])?);
                quotient(m, &x, &y, scale.into(), mode)
            }),
            ("BigDecimal setScale(int)", |m, a| {
                let (x, scale) = (decimal(m, a[0])?, m.int(a[1])?);
                let value = rescale(m, &x, scale.into(), 7)?;
                put_decimal(m, value)
            }),
            ("BigDecimal setScale(int, RoundingMode)", |m, a| {
                let (x, scale, mode) = (decimal(m, a[0])?, m.int(a[1])?, mode(m, a[2])?);
                let value = rescale(m, &x, scale.into(), mode)?;
                put_decimal(m, value)
            }),
            ("BigDecimal setScale(int, int)", |m, a| {
                let (x, scale, mode) = (decimal(m, a[0])?, m.int(a[1])?, mode(m, a[2])?);
                let value = rescale(m, &x, scale.into(), mode)?;
                put_decimal(m, value)
            }),
            ("BigDecimal negate()", |m, a| {
                let value = decimal(m, a[0])?.negate();
                put_decimal(m, value)
            }),
            ("BigDecimal abs()", |m, a| {
                let value = decimal(m, a[0])?;
                put_decimal(m, Decimal { unscaled: value.unscaled.abs(), scale: value.scale })
            }),
            ("BigDecimal pow(int)", |m, a| {
                let (x, power) = (decimal(m, a[0])?, m.int(a[1])?);
                let Some(power) = u32::try_from(power).ok().filter(|power| *power <= 999_999_999) else {
                    return m.throw(JavaClass::ArithmeticException, "Invalid operation");
                };
                let bits = x.unscaled.bits().saturating_mul(u64::from(power));
                if bits > BITS_MAX {
                    return m.throw(JavaClass::ArithmeticException, "Overflow");
                }
                m.step((bits / 64 * (bits / 64) / 8) as usize)?;
                let scale = scale_checked(m, i64::from(x.scale) * i64::from(power))?;
                put_decimal(m, Decimal { unscaled: x.unscaled.pow(power), scale })
            }),
            ("BigDecimal stripTrailingZeros()", |m, a| {
                let value = decimal(m, a[0])?;
                m.step(value.unscaled.bits() as usize)?;
                put_decimal(m, value.strip_zeros())
            }),
            ("BigDecimal max(BigDecimal)", |m, a| Ok(if m.compare(a[0], a[1])?.is_ge() { a[0] } else { a[1] })),
            ("BigDecimal min(BigDecimal)", |m, a| Ok(if m.compare(a[0], a[1])?.is_le() { a[0] } else { a[1] })),
            ("BigDecimal movePointLeft(int)", |m, a| {
                let (x, by) = (decimal(m, a[0])?, m.int(a[1])?);
                move_point(m, &x, i64::from(by))
            }),
            ("BigDecimal movePointRight(int)", |m, a| {
                let (x, by) = (decimal(m, a[0])?, m.int(a[1])?);
                move_point(m, &x, -i64::from(by))
            }),
            ("BigDecimal remainder(BigDecimal)", |m, a| {
                let (x, y) = (decimal(m, a[0])?, decimal(m, a[1])?);
                m.step(x.unscaled.bits() as usize / 8)?;
                match x.remainder(&y) {
                    Ok(value) => put_decimal(m, value),
                    Err(_) => m.throw(
                        JavaClass::ArithmeticException,
                        if x.unscaled.is_zero() { "Division undefined" } else { "Division by zero" },
                    ),
                }
            }),
            ("int signum()", |m, a| Ok(Value::Int(decimal(m, a[0])?.unscaled.signum().to_i32().unwrap_or(0)))),
            ("int scale()", |m, a| Ok(Value::Int(decimal(m, a[0])?.scale))),
            ("int precision()", |m, a| {
                let value = decimal(m, a[0])?;
                Ok(Value::Int(precision(m, &value)? as i32))
            }),
            ("BigInteger unscaledValue()", |m, a| {
                let value = decimal(m, a[0])?.unscaled;
                put(m, value)
            }),
            ("BigInteger toBigInteger()", |m, a| {
                let value = decimal(m, a[0])?;
                let whole = rescale(m, &value, 0, DOWN)?;
                put(m, whole.unscaled)
            }),
            ("int intValueExact()", |m, a| {
                let value = decimal(m, a[0])?;
                match rescale(m, &value, 0, 7)?.unscaled.to_i32() {
                    Some(value) => Ok(Value::Int(value)),
                    None => m.throw(JavaClass::ArithmeticException, "Overflow"),
                }
            }),
            ("long longValueExact()", |m, a| {
                let value = decimal(m, a[0])?;
                match rescale(m, &value, 0, 7)?.unscaled.to_i64() {
                    Some(value) => Ok(Value::Long(value)),
                    None => m.throw(JavaClass::ArithmeticException, "Overflow"),
                }
            }),
            ("int compareTo(BigDecimal)", |m, a| {
                decimal(m, a[1])?;
                m.compare(a[0], a[1]).map(|order| Value::Int(order as i32))
            }),
            ("String toPlainString()", |m, a| {
                let value = decimal(m, a[0])?;
                let plain = if value.scale < 0 { rescale(m, &value, 0, DOWN)? } else { value };
                m.charge(plain.scale as usize)?;
                let digits = types::radix::print(plain.unscaled.magnitude());
                let scale = plain.scale as usize;
                let sign = if plain.unscaled.is_negative() { "-" } else { "" };
                // by hand: a width in format! has 16 bits
                let padded = "0".repeat((scale + 1).saturating_sub(digits.len())) + &digits;
                let (whole, fraction) = padded.split_at(padded.len() - scale);
                let point = if scale > 0 { "." } else { "" };
                m.string(&format!("{sign}{whole}{point}{fraction}"))
            }),
        ],
    );
}

fn not_a_number(m: &mut Machine<'_>) -> Result {
    m.throw(JavaClass::NumberFormatException, "Infinite or NaN")
}

/// The decimal that has exactly the value of a double.
fn exact(m: &mut Machine<'_>, value: f64) -> Result {
    if !value.is_finite() {
        return not_a_number(m);
    }
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i64;
    let fraction = bits & ((1 << 52) - 1);
    let (mut digits, mut power) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    if digits == 0 {
        return put_decimal(m, Decimal::zero());
    }
    while digits % 2 == 0 && power < 0 {
        digits /= 2;
        power += 1;
    }
    let sized = BigInt::from(digits) * if value < 0.0 { -1 } else { 1 };
    let decimal = if power >= 0 {
        Decimal { unscaled: sized << power as u64, scale: 0 }
    } else {
        let places = power.unsigned_abs() as u32;
        Decimal { unscaled: sized * BigInt::from(5u8).pow(places), scale: places as i32 }
    };
    put_decimal(m, decimal)
}

fn move_point(m: &mut Machine<'_>, value: &Decimal, left: i64) -> Result {
    if left == 0 {
        return put_decimal(m, value.clone());
    }
    let scale = scale_checked(m, i64::from(value.scale) + left)?;
    let moved = Decimal { unscaled: value.unscaled.clone(), scale };
    let whole = if scale < 0 { rescale(m, &moved, 0, DOWN)? } else { moved };
    put_decimal(m, whole)
}
