//! Numbers read from serialized values, and conversions between numeric types.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::decimal::{Decimal, low_bits};
use crate::{CqlType, TypeError, java_number, literal, temporal, timeuuid};

const SECONDS_PER_DAY: i64 = 86_400;

/// A number of any numeric type. All integers of up to 64 bits are `Long`.
#[derive(Clone, PartialEq, Debug)]
pub enum Number {
    /// tinyint, smallint, int, bigint, counter.
    Long(i64),
    /// float.
    Float(f32),
    /// double.
    Double(f64),
    /// varint.
    Varint(BigInt),
    /// decimal.
    Decimal(Decimal),
}

impl Number {
    /// Reads a value of a numeric type. None: the bytes are empty, or of a length that the type
    /// does not have.
    pub fn decode(ty: &CqlType, bytes: &[u8]) -> Option<Self> {
        Some(match ty {
            CqlType::TinyInt => Self::Long(i64::from(i8::from_be_bytes(bytes.try_into().ok()?))),
            CqlType::SmallInt => Self::Long(i64::from(i16::from_be_bytes(bytes.try_into().ok()?))),
            CqlType::Int => Self::Long(i64::from(i32::from_be_bytes(bytes.try_into().ok()?))),
            CqlType::BigInt | CqlType::Counter => Self::Long(i64::from_be_bytes(bytes.try_into().ok()?)),
            CqlType::Float => Self::Float(f32::from_be_bytes(bytes.try_into().ok()?)),
            CqlType::Double => Self::Double(f64::from_be_bytes(bytes.try_into().ok()?)),
            CqlType::Varint if !bytes.is_empty() => Self::Varint(BigInt::from_signed_bytes_be(bytes)),
            CqlType::Decimal => Self::Decimal(Decimal::decode(bytes)?),
            _ => return None,
        })
    }

    /// The number as a float, as Java's `floatValue` gives it.
    pub fn to_float(&self) -> f32 {
        match self {
            Self::Long(value) => *value as f32,
            Self::Float(value) => *value,
            Self::Double(value) => *value as f32,
            Self::Varint(value) => value.to_f32().unwrap_or(f32::INFINITY),
            Self::Decimal(value) => value.to_string().parse().expect("a decimal prints as a number"),
        }
    }

    /// The number as a double, as Java's `doubleValue` gives it.
    pub fn to_double(&self) -> f64 {
        match self {
            Self::Long(value) => *value as f64,
            Self::Float(value) => f64::from(*value),
            Self::Double(value) => *value,
            Self::Varint(value) => value.to_f64().unwrap_or(f64::INFINITY),
            Self::Decimal(value) => value.to_double(),
        }
    }

    /// The number as 64-bit integer, as Java's `longValue` gives it: floating-point numbers stop at
    /// the ends of the range, other numbers lose high bits.
    pub fn to_long(&self) -> i64 {
        match self {
            Self::Long(value) => *value,
            Self::Float(value) => *value as i64,
            Self::Double(value) => *value as i64,
            Self::Varint(value) => low_bits(value),
            Self::Decimal(value) => value.to_long(),
        }
    }

    /// The number as 32-bit integer, as Java's `intValue` gives it: floating-point numbers stop at
    /// the ends of the range.
    fn to_int(&self) -> i32 {
        match self {
            Self::Float(value) => *value as i32,
            Self::Double(value) => *value as i32,
            other => other.to_long() as i32,
        }
    }

    /// The number as an operand of varint arithmetic.
    pub(super) fn to_integer(&self) -> Result<BigInt, TypeError> {
        Ok(match self {
            Self::Varint(value) => value.clone(),
            other => BigInt::from(other.to_long()),
        })
    }

    /// The number as an operand of decimal arithmetic. All but varints go through a double, so an
    /// int gets one zero behind the point.
    pub(super) fn to_operand_decimal(&self) -> Result<Decimal, TypeError> {
        match self {
            Self::Decimal(value) => Ok(value.clone()),
            Self::Varint(value) => Ok(Decimal { unscaled: value.clone(), scale: 0 }),
            other => Decimal::of_double(other.to_double()),
        }
    }

    /// The number as a cast to decimal gives it.
    fn to_cast_decimal(&self) -> Result<Decimal, TypeError> {
        let text = match self {
            Self::Decimal(value) => return Ok(value.clone()),
            Self::Varint(value) => return Ok(Decimal { unscaled: value.clone(), scale: 0 }),
            Self::Long(value) => return Ok(Decimal { unscaled: BigInt::from(*value), scale: 0 }),
            Self::Double(value) => java_number::print_double(*value),
            Self::Float(value) => java_number::print_float(*value),
        };
        Decimal::parse(&text).ok_or_else(|| {
            let first = text.trim_start_matches('-').chars().next().unwrap_or('N');
            let message = format!(
                "Character {first} is neither a decimal digit number, decimal point, nor \"e\" notation exponential mark."
            );
            TypeError::Arithmetic(message.into())
        })
    }

    /// Serializes this number as a numeric type, converted as casts do.
    pub fn encode(&self, ty: &CqlType) -> Result<Vec<u8>, TypeError> {
        Ok(match ty {
            CqlType::TinyInt | CqlType::SmallInt | CqlType::Int => integer(ty, i64::from(self.to_int())),
            CqlType::Float => self.to_float().to_be_bytes().to_vec(),
            CqlType::Double => self.to_double().to_be_bytes().to_vec(),
            CqlType::Decimal => self.to_cast_decimal()?.encode(),
            CqlType::Varint => match self {
                Self::Varint(value) => value.to_signed_bytes_be(),
                other => BigInt::from(other.to_long()).to_signed_bytes_be(),
            },
            _ => self.to_long().to_be_bytes().to_vec(),
        })
    }
}

/// The low bytes of an integer, as many as the type has.
pub(super) fn integer(ty: &CqlType, value: i64) -> Vec<u8> {
    let width = match ty {
        CqlType::TinyInt => 1,
        CqlType::SmallInt => 2,
        CqlType::Int => 4,
        _ => 8,
    };
    value.to_be_bytes()[8 - width..].to_vec()
}

/// Whether `CAST(from AS to)` exists.
pub fn can_cast(from: &CqlType, to: &CqlType) -> bool {
    use CqlType::{Ascii, Boolean, Counter, Date, Inet, Text, Time, TimeUuid, Timestamp, Uuid};
    if from == to {
        return true;
    }
    match (from, to) {
        (from, to) if super::is_numeric(from) && super::is_numeric(to) => !matches!(to, Counter),
        (Ascii, Text) => true,
        (Inet | Boolean | TimeUuid | Timestamp | Date | Time | Uuid, Text | Ascii) => true,
        (from, Text | Ascii) => super::is_numeric(from),
        (TimeUuid, Date | Timestamp) | (Timestamp, Date) | (Date, Timestamp) => true,
        _ => false,
    }
}

/// Calculates `CAST(value AS to)`. None: there is no value.
pub fn cast(from: &CqlType, to: &CqlType, value: &[u8]) -> Result<Option<Vec<u8>>, TypeError> {
    if !can_cast(from, to) {
        return Err(TypeError::Arithmetic(format!("{} cannot be cast to {}", from.cql_name(), to.cql_name()).into()));
    }
    if from == to || matches!(from, CqlType::Ascii) {
        return Ok(Some(value.to_vec()));
    }
    if value.is_empty() {
        return Ok(None);
    }
    match to {
        CqlType::Text | CqlType::Ascii => Ok(Some(literal::to_text_unquoted(from, value).into_bytes())),
        CqlType::Date | CqlType::Timestamp => Ok(millis_of(from, value).map(|millis| of_millis(to, millis))),
        _ => Number::decode(from, value).map(|number| number.encode(to)).transpose(),
    }
}

/// Milliseconds since 1970 of a timestamp, date or timeuuid.
pub fn millis_of(ty: &CqlType, value: &[u8]) -> Option<i64> {
    match ty {
        CqlType::Timestamp => value.try_into().ok().map(i64::from_be_bytes),
        CqlType::TimeUuid => value.try_into().ok().map(timeuuid::unix_millis),
        CqlType::Date => {
            let days = value.try_into().ok().map(u32::from_be_bytes)?;
            Some((i64::from(days) - temporal::DATE_EPOCH) * crate::calendar::MILLIS_PER_DAY)
        }
        _ => None,
    }
}

/// A date or timestamp for milliseconds since 1970.
pub fn of_millis(ty: &CqlType, millis: i64) -> Vec<u8> {
    match ty {
        CqlType::Date => {
            // as Java's Duration.toDays: to whole seconds downward, to days toward zero
            let days = millis.div_euclid(1000) / SECONDS_PER_DAY + temporal::DATE_EPOCH;
            (days as u32).to_be_bytes().to_vec()
        }
        _ => millis.to_be_bytes().to_vec(),
    }
}
