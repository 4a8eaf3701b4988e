//! Calculations on values: `+ - * / %` and negation of numbers, dates with durations, texts;
//! functions of numbers; casts.
//!
//! Agrees with `OperationFcts`, `NumberType` and its classes, `MathFcts`, `CastFcts` of Cassandra.
//! Integers wrap around, as Java's do. An empty operand of a type without an empty value makes the
//! result null: None.

mod convert;
mod math;
mod total;

pub use convert::{Number, can_cast, cast, millis_of, of_millis};
pub use math::{Function, apply, log10};
pub use total::Total;

use num_bigint::BigInt;
use num_traits::Zero;

use crate::decimal::Decimal;
use crate::duration::Duration;
use crate::temporal::DATE_EPOCH;
use crate::{CqlType, TypeError, calendar};

/// A binary operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

impl Operator {
    /// The operator as it is written.
    pub fn symbol(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
            Self::Modulo => '%',
        }
    }
}

/// Bytes of a numeric type; `u32::MAX` for decimals and varints, which have no bound. None: the
/// type is not numeric.
fn size(ty: &CqlType) -> Option<u32> {
    Some(match ty {
        CqlType::TinyInt => 1,
        CqlType::SmallInt => 2,
        CqlType::Int | CqlType::Float => 4,
        CqlType::BigInt | CqlType::Counter | CqlType::Double => 8,
        CqlType::Varint | CqlType::Decimal => u32::MAX,
        _ => return None,
    })
}

/// Whether the type is numeric.
pub fn is_numeric(ty: &CqlType) -> bool {
    size(ty).is_some()
}

fn is_floating(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Float | CqlType::Double | CqlType::Decimal)
}

/// The type of `left operator right`. None: there is no such operation.
pub fn result_type(operator: Operator, left: &CqlType, right: &CqlType) -> Option<CqlType> {
    use CqlType::{
        Ascii, BigInt, Date, Decimal, Double, Duration, Float, Int, SmallInt, Text, Timestamp, TinyInt, Varint,
    };
    if let (Some(left_size), Some(right_size)) = (size(left), size(right)) {
        let floating = is_floating(left) || is_floating(right);
        return Some(match (floating, left_size.max(right_size)) {
            (true, 4) => Float,
            (true, 8) => Double,
            (true, _) => Decimal,
            (false, 1) => TinyInt,
            (false, 2) => SmallInt,
            (false, 4) => Int,
            (false, 8) => BigInt,
            (false, _) => Varint,
        });
    }
    match (operator, left, right) {
        (Operator::Add | Operator::Subtract, Timestamp | Date, Duration) => Some(left.clone()),
        (Operator::Add, Ascii, Ascii) => Some(Ascii),
        (Operator::Add, Text | Ascii, Text | Ascii) => Some(Text),
        _ => None,
    }
}

/// Calculates `left operator right`. None: an operand has no value.
pub fn calculate(
    operator: Operator,
    (left_type, left): (&CqlType, &[u8]),
    (right_type, right): (&CqlType, &[u8]),
) -> Result<Option<Vec<u8>>, TypeError> {
    let failed = |error: TypeError| {
        let (left, right) = (left_type.cql_name(), right_type.cql_name());
        TypeError::Arithmetic(format!("the operation '{left} {} {right}' failed: {error}", operator.symbol()).into())
    };
    let Some(ty) = result_type(operator, left_type, right_type) else {
        return Err(failed(TypeError::Arithmetic("there is no such operation".into())));
    };
    match ty {
        CqlType::Text | CqlType::Ascii => Ok(Some([left, right].concat())),
        CqlType::Timestamp | CqlType::Date => shift_by_duration(operator, &ty, left, right).map_err(failed),
        _ => {
            let (Some(left), Some(right)) = (Number::decode(left_type, left), Number::decode(right_type, right)) else {
                return Ok(None);
            };
            numbers(operator, &ty, &left, &right).map(Some).map_err(failed)
        }
    }
}

/// The value with the opposite sign. None: there is no value.
pub fn negate(ty: &CqlType, value: &[u8]) -> Result<Option<Vec<u8>>, TypeError> {
    let Some(number) = Number::decode(ty, value) else { return Ok(None) };
    Ok(Some(match number {
        Number::Float(value) => (-value).to_be_bytes().to_vec(),
        Number::Double(value) => (-value).to_be_bytes().to_vec(),
        Number::Varint(value) => (-value).to_signed_bytes_be(),
        Number::Decimal(value) => value.negate().encode(),
        Number::Long(value) => convert::integer(ty, value.wrapping_neg()),
    }))
}

fn numbers(operator: Operator, ty: &CqlType, left: &Number, right: &Number) -> Result<Vec<u8>, TypeError> {
    match ty {
        CqlType::Float => {
            let value = floats(operator, left.to_float(), right.to_float(), |a, b| a % b);
            Ok(value.to_be_bytes().to_vec())
        }
        CqlType::Double => {
            let value = floats(operator, left.to_double(), right.to_double(), |a, b| a % b);
            Ok(value.to_be_bytes().to_vec())
        }
        CqlType::Decimal => Ok(decimals(operator, &left.to_operand_decimal()?, &right.to_operand_decimal()?)?.encode()),
        CqlType::Varint => Ok(integers(operator, &left.to_integer()?, &right.to_integer()?)?.to_signed_bytes_be()),
        _ => Ok(convert::integer(ty, longs(operator, left.to_long(), right.to_long())?)),
    }
}

fn floats<T>(operator: Operator, a: T, b: T, modulo: impl Fn(T, T) -> T) -> T
where
    T: std::ops::Add<Output = T> + std::ops::Sub<Output = T> + std::ops::Mul<Output = T> + std::ops::Div<Output = T>,
{
    match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::Modulo => modulo(a, b),
    }
}

/// Calculates with 64 bits. Narrower integers use this too, because their low bits do not depend on
/// the width.
fn longs(operator: Operator, a: i64, b: i64) -> Result<i64, TypeError> {
    Ok(match operator {
        Operator::Add => a.wrapping_add(b),
        Operator::Subtract => a.wrapping_sub(b),
        Operator::Multiply => a.wrapping_mul(b),
        Operator::Divide | Operator::Modulo if b == 0 => return Err(TypeError::Arithmetic("/ by zero".into())),
        Operator::Divide => a.wrapping_div(b),
        Operator::Modulo => a.wrapping_rem(b),
    })
}

fn integers(operator: Operator, a: &BigInt, b: &BigInt) -> Result<BigInt, TypeError> {
    Ok(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide | Operator::Modulo if b.is_zero() => {
            return Err(TypeError::Arithmetic("BigInteger divide by zero".into()));
        }
        Operator::Divide => a / b,
        Operator::Modulo => a % b,
    })
}

fn decimals(operator: Operator, a: &Decimal, b: &Decimal) -> Result<Decimal, TypeError> {
    match operator {
        Operator::Add => a.add(b),
        Operator::Subtract => a.subtract(b),
        Operator::Multiply => a.multiply(b),
        Operator::Divide => a.divide(b),
        Operator::Modulo => a.remainder(b),
    }
}

/// A timestamp or date plus or minus a duration.
fn shift_by_duration(
    operator: Operator,
    ty: &CqlType,
    temporal: &[u8],
    duration: &[u8],
) -> Result<Option<Vec<u8>>, TypeError> {
    let Some(duration) = Duration::decode(duration) else { return Ok(None) };
    let precision = match ty {
        CqlType::Date if duration.nanoseconds != 0 => Some("day"),
        CqlType::Timestamp if duration.nanoseconds % 1_000_000 != 0 => Some("millisecond"),
        _ => None,
    };
    if let Some(precision) = precision {
        let message = format!("The duration must have a {precision} precision. Was: {duration}");
        return Err(TypeError::Arithmetic(message.into()));
    }
    let duration = if operator == Operator::Subtract { duration.negated() } else { duration };
    Ok(match ty {
        CqlType::Date => <[u8; 4]>::try_from(temporal).ok().map(|days| {
            let days = i64::from(u32::from_be_bytes(days)) - DATE_EPOCH;
            let millis = duration.add_to(days * calendar::MILLIS_PER_DAY);
            let days = millis.div_euclid(calendar::MILLIS_PER_DAY) + DATE_EPOCH;
            (days as u32).to_be_bytes().to_vec()
        }),
        _ => <[u8; 8]>::try_from(temporal)
            .ok()
            .map(|millis| duration.add_to(i64::from_be_bytes(millis)).to_be_bytes().to_vec()),
    })
}

#[cfg(test)]
mod tests;
