//! What the native functions do.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.{TimeFcts,UuidFcts,BytesConversionFcts,TokenFct,CastFcts}`.

use bytes::Bytes;
use types::{CqlType, Token, json, timeuuid};

use super::{Function, TimeKind};
use crate::context::Sources;
use crate::error::CqlError;
use crate::scalar;

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;
/// The day number of 1970-01-01.
const DATE_EPOCH: i64 = 1 << 31;

fn bytes_of(value: &[u8]) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(value))
}

/// Calls a function.
pub(super) fn call(
    function: &Function,
    arguments: &[Option<Bytes>],
    sources: &dyn Sources,
) -> Result<Option<Bytes>, CqlError> {
    let first = || arguments.first().and_then(Option::as_ref).filter(|value| !value.is_empty());
    let millis = sources.micros().div_euclid(1000);
    Ok(match function {
        Function::Uuid => bytes_of(&sources.uuid()),
        Function::Now => bytes_of(&sources.timeuuid()),
        Function::CurrentTimestamp => bytes_of(&millis.to_be_bytes()),
        Function::CurrentDate => date_of(millis),
        Function::CurrentTime => bytes_of(&(millis.rem_euclid(DAY) * 1_000_000).to_be_bytes()),
        Function::ToDate(kind) => first().and_then(|value| millis_of(*kind, value)).and_then(date_of),
        Function::ToTimestamp(kind) | Function::ToUnixTimestamp(kind) => {
            first().and_then(|value| millis_of(*kind, value)).and_then(|millis| bytes_of(&millis.to_be_bytes()))
        }
        Function::MinTimeuuid => {
            first().and_then(millis_value).and_then(|millis| bytes_of(&timeuuid::min_of_millis(millis)))
        }
        Function::MaxTimeuuid => {
            first().and_then(millis_value).and_then(|millis| bytes_of(&timeuuid::max_of_millis(millis)))
        }
        Function::Token(columns) => token(arguments, *columns)?,
        Function::LocalToken => match arguments.iter().cloned().collect::<Option<Vec<Bytes>>>() {
            None => None,
            Some(values) => Some(crate::keys::compose(&values)?),
        },
        Function::ToBlob(_) => arguments.first().cloned().flatten(),
        Function::FromBlob(name, ty) => match arguments.first().cloned().flatten() {
            None => None,
            Some(value) if scalar::validate(ty, &value).is_ok() => Some(value),
            Some(value) => {
                let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
                let ty = scalar::type_name(ty);
                return Err(CqlError::invalid(format!(
                    "In call to function system.{name}, value 0x{hex} is not a valid binary representation for type {ty}"
                )));
            }
        },
        Function::ToJson(ty) => {
            let text = match arguments.first().and_then(Option::as_ref) {
                Some(value) => json::to_json(ty, value),
                None => "null".to_owned(),
            };
            Some(text.into_bytes().into())
        }
        Function::FromJson(ty) => match arguments.first().cloned().flatten() {
            None => None,
            Some(text) => from_json(ty, &text)?,
        },
        Function::Cast(from, to) => match arguments.first().cloned().flatten() {
            None => None,
            Some(value) => scalar::cast(from, to, &value)?,
        },
    })
}

fn from_json(ty: &CqlType, text: &[u8]) -> Result<Option<Bytes>, CqlError> {
    let text = String::from_utf8_lossy(text);
    let failed = |message: &str| CqlError::FunctionFailure {
        keyspace: "system".into(),
        function: "from_json".into(),
        argument_types: vec!["text".into()],
        message: format!("Could not decode JSON string '{text}': {message}"),
    };
    match json::parse(&text).map_err(|error| failed(error.message()))? {
        json::Json::Null => Ok(None),
        parsed => match json::from_json(ty, &parsed) {
            Ok(value) => Ok(Some(value.into())),
            Err(error) => Err(failed(error.message())),
        },
    }
}

fn millis_value(value: &Bytes) -> Option<i64> {
    millis_of(TimeKind::Timestamp, value)
}

fn date_of(millis: i64) -> Option<Bytes> {
    bytes_of(&types::number::of_millis(&CqlType::Date, millis))
}

/// Milliseconds since 1970 of a value of time.
fn millis_of(kind: TimeKind, value: &[u8]) -> Option<i64> {
    match kind {
        TimeKind::Timestamp => Some(i64::from_be_bytes(value.try_into().ok()?)),
        TimeKind::Date => Some((i64::from(u32::from_be_bytes(value.try_into().ok()?)) - DATE_EPOCH) * DAY),
        TimeKind::TimeUuid => Some(timeuuid::unix_millis(value.try_into().ok()?)),
    }
}

fn token(arguments: &[Option<Bytes>], columns: usize) -> Result<Option<Bytes>, CqlError> {
    let Some(values) = arguments.iter().cloned().collect::<Option<Vec<Bytes>>>() else { return Ok(None) };
    let key = if columns == 1 { values.into_iter().next().unwrap_or_default() } else { crate::keys::compose(&values)? };
    Ok(bytes_of(&Token::of_key(&key).0.to_be_bytes()))
}
