//! The door to crate `types` for what statements need of single values: names, checks, literals, numbers, casts.
//!
//! Casts agree with `org.apache.cassandra.cql3.functions.CastFcts`.

use bigdecimal::BigDecimal;
use bytes::Bytes;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use types::{CqlType, TypeError, literal};

use crate::error::CqlError;

impl From<TypeError> for CqlError {
    fn from(error: TypeError) -> Self {
        Self::Invalid(error.message().to_owned())
    }
}

/// A type as CQL writes it.
pub(crate) fn type_name(ty: &CqlType) -> String {
    ty.cql_name()
}

/// Refuses bytes that are no value of the type.
#[inline]
pub(crate) fn validate(ty: &CqlType, value: &[u8]) -> Result<(), CqlError> {
    Ok(types::validate(ty, value)?)
}

/// The value that a literal's text means for a type.
pub(crate) fn parse_text(ty: &CqlType, text: &str) -> Result<Bytes, CqlError> {
    Ok(literal::parse_text(ty, text)?.into())
}

/// A number of whatever type, while it is calculated with.
#[derive(Clone, Debug)]
pub(crate) enum Number {
    /// tinyint to varint, counter.
    Int(BigInt),
    /// float, double.
    Float(f64),
    /// decimal.
    Decimal(BigDecimal),
}

fn wrong_number(ty: &CqlType) -> CqlError {
    CqlError::invalid(format!("Not a value of type {}", type_name(ty)))
}

impl Number {
    /// Of a value that is not empty.
    pub fn decode(ty: &CqlType, value: &[u8]) -> Result<Self, CqlError> {
        Ok(match ty {
            CqlType::Float => {
                let bytes = value.try_into().map_err(|_| wrong_number(ty))?;
                Self::Float(f64::from(f32::from_be_bytes(bytes)))
            }
            CqlType::Double => Self::Float(f64::from_be_bytes(value.try_into().map_err(|_| wrong_number(ty))?)),
            CqlType::Decimal => {
                let (unscaled, scale) = literal::decode_decimal(value).ok_or_else(|| wrong_number(ty))?;
                Self::Decimal(BigDecimal::new(unscaled, i64::from(scale)))
            }
            _ => Self::Int(BigInt::from_signed_bytes_be(value)),
        })
    }

    fn to_f64(&self) -> f64 {
        match self {
            Self::Int(number) => number.to_f64().unwrap_or(f64::NAN),
            Self::Float(number) => *number,
            Self::Decimal(number) => number.to_f64().unwrap_or(f64::NAN),
        }
    }

    fn to_int(&self) -> BigInt {
        match self {
            Self::Int(number) => number.clone(),
            #[allow(clippy::cast_possible_truncation)] // as Java's narrowing, which saturates too
            Self::Float(number) => BigInt::from(*number as i64),
            Self::Decimal(number) => {
                number.with_scale_round(0, bigdecimal::RoundingMode::Down).into_bigint_and_scale().0
            }
        }
    }

    fn to_decimal(&self) -> Option<BigDecimal> {
        match self {
            Self::Int(number) => Some(BigDecimal::from(number.clone())),
            Self::Float(number) if number.is_finite() => types::java_number::print_double(*number).parse().ok(),
            Self::Float(_) => None,
            Self::Decimal(number) => Some(number.clone()),
        }
    }
}

/// The last bytes of a number, as Java's narrowing leaves them.
fn narrow<const N: usize>(number: &BigInt) -> [u8; N] {
    let fill = if number.sign() == num_bigint::Sign::Minus { 0xff } else { 0 };
    let bytes = number.to_signed_bytes_be();
    let mut out = [fill; N];
    for (to, from) in out.iter_mut().rev().zip(bytes.iter().rev()) {
        *to = *from;
    }
    out
}

/// A number as a value of a type. Integers that do not fit lose their upper bytes.
pub(crate) fn encode_number(ty: &CqlType, number: Number) -> Bytes {
    let bytes = match ty {
        CqlType::TinyInt => narrow::<1>(&number.to_int()).to_vec(),
        CqlType::SmallInt => narrow::<2>(&number.to_int()).to_vec(),
        CqlType::Int => narrow::<4>(&number.to_int()).to_vec(),
        CqlType::Varint => number.to_int().to_signed_bytes_be(),
        #[allow(clippy::cast_possible_truncation)] // the nearest float
        CqlType::Float => (number.to_f64() as f32).to_be_bytes().to_vec(),
        CqlType::Double => number.to_f64().to_be_bytes().to_vec(),
        CqlType::Decimal => {
            let (unscaled, scale) = number.to_decimal().unwrap_or_default().into_bigint_and_scale();
            literal::encode_decimal(&unscaled, i32::try_from(scale).unwrap_or(i32::MAX))
        }
        _ => narrow::<8>(&number.to_int()).to_vec(),
    };
    bytes.into()
}

fn is_number(ty: &CqlType) -> bool {
    use CqlType as T;
    matches!(
        ty,
        T::TinyInt | T::SmallInt | T::Int | T::BigInt | T::Counter | T::Float | T::Double | T::Varint | T::Decimal
    )
}

/// A cast exists.
pub(crate) fn can_cast(from: &CqlType, to: &CqlType) -> bool {
    use CqlType as T;
    let text = matches!(to, T::Text | T::Ascii);
    match from {
        from if from == to => true,
        from if is_number(from) => text || (is_number(to) && *to != T::Counter),
        T::Boolean | T::Uuid | T::Inet | T::Time => text,
        T::Ascii => *to == T::Text,
        T::TimeUuid => text || matches!(to, T::Timestamp | T::Date),
        T::Timestamp => text || *to == T::Date,
        T::Date => text || *to == T::Timestamp,
        _ => false,
    }
}

/// `CAST(value AS to)`; None is null.
pub(crate) fn cast(from: &CqlType, to: &CqlType, value: &Bytes) -> Result<Option<Bytes>, CqlError> {
    if from == to {
        return Ok(Some(value.clone()));
    }
    if !can_cast(from, to) {
        return Err(CqlError::invalid(format!("{} cannot be cast to {}", type_name(from), type_name(to))));
    }
    if value.is_empty() {
        return Ok(if matches!(from, CqlType::Ascii) { Some(Bytes::new()) } else { None });
    }
    if matches!(to, CqlType::Text | CqlType::Ascii) {
        let from = if *from == CqlType::Counter { &CqlType::BigInt } else { from };
        return Ok(Some(literal::to_text_unquoted(from, value).into_bytes().into()));
    }
    if is_number(from) {
        let number = Number::decode(from, value)?;
        if *to == CqlType::Decimal && number.to_decimal().is_none() {
            return Err(CqlError::invalid(
                "Character N is neither a decimal digit number, decimal point, nor \"e\" notation exponential mark.",
            ));
        }
        return Ok(Some(encode_number(to, number)));
    }
    Ok(crate::functions::convert_time(from, to, value))
}
