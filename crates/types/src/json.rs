//! Values as JSON and back: `SELECT JSON`, `INSERT … JSON`, `toJson`, `fromJson`.
//!
//! Agrees with `toJSONString` and `fromJSONObject` of each class of
//! `org.apache.cassandra.db.marshal`, and with Jackson in the class of number that a JSON number
//! becomes.

mod read;
mod write;

pub use read::{Json, parse};
pub use write::{put_json, put_json_string, to_json};

use std::collections::BTreeMap;

use num_bigint::BigInt;

use crate::collection;
use crate::java_number;
use crate::{CqlType, CustomType, TypeError, parse_text};

/// The most bytes of a value that is read. Larger ones are refused: the value of a user type has
/// four bytes for each field that its text leaves out, so that a text of some megabytes could
/// stand for hundreds of gigabytes.
const VALUE_SIZE_MAX: usize = 64 << 20;

fn refuse<T>(message: String) -> Result<T, TypeError> {
    Err(TypeError::Json(message))
}

/// The value for a piece of JSON that is not null.
pub fn from_json(ty: &CqlType, json: &Json) -> Result<Vec<u8>, TypeError> {
    match ty {
        CqlType::Ascii => text(ty, json, "an ascii string"),
        CqlType::Text => text(ty, json, "a UTF-8 string"),
        CqlType::Inet => text(ty, json, "a string representation of an inet value"),
        CqlType::Date => text(ty, json, "a string representation of a date value"),
        CqlType::Time => text(ty, json, "a string representation of a time value"),
        CqlType::Duration => text(ty, json, "a string representation of a duration"),
        CqlType::Uuid => text(ty, json, "a string representation of a uuid"),
        CqlType::TimeUuid => text(ty, json, "a string representation of a timeuuid"),
        CqlType::Blob => blob(json),
        CqlType::Boolean => match json {
            Json::Bool(value) => Ok(vec![u8::from(*value)]),
            _ => text(ty, json, "a boolean value"),
        },
        CqlType::TinyInt => small_integer(ty, json, "a byte"),
        CqlType::SmallInt => small_integer(ty, json, "a short"),
        CqlType::Int => match json {
            Json::Integer(value) if i32::try_from(value).is_ok() => parse_text(ty, &value.to_string()),
            _ => text(ty, json, "an int value"),
        },
        CqlType::BigInt => match json {
            Json::Integer(value) if i64::try_from(value).is_ok() => parse_text(ty, &value.to_string()),
            _ => text(ty, json, "a bigint value"),
        },
        CqlType::Varint => varint(json),
        CqlType::Decimal => parse_text(ty, &json.to_string())
            .or_else(|_| refuse(format!("Value '{json}' is not a valid representation of a decimal value"))),
        CqlType::Float => floating(ty, json, "a float value"),
        CqlType::Double => floating(ty, json, "a double value"),
        CqlType::Timestamp => timestamp(json, "timestamp"),
        CqlType::Counter => refuse("Counters are not written as JSON".to_owned()),
        CqlType::Empty => match json {
            Json::String(text) if text.is_empty() => Ok(Vec::new()),
            Json::String(text) => refuse(format!("'{text}' is not empty")),
            _ => refuse(format!("Expected an empty string, but got: {json}")),
        },
        CqlType::Custom(custom) => custom_value(custom, json),
        _ => compound(ty, json),
    }
}

/// Accepts a JSON string and reads it as a literal of the type.
fn text(ty: &CqlType, json: &Json, expected: &str) -> Result<Vec<u8>, TypeError> {
    match json {
        Json::String(text) => parse_text(ty, text),
        _ => refuse(format!("Expected {expected}, but got a {}: {json}", json.java_class())),
    }
}

fn blob(json: &Json) -> Result<Vec<u8>, TypeError> {
    let invalid = |why: String| refuse(format!("Value '{json}' is not a valid blob representation: {why}"));
    match json {
        Json::String(text) => match text.strip_prefix("0x") {
            Some(digits) => match crate::literal::unhex(digits) {
                Some(bytes) => Ok(bytes),
                None => invalid(format!("cannot parse '{digits}' as hex bytes")),
            },
            None => invalid(format!("String representation of blob is missing 0x prefix: {text}")),
        },
        _ => {
            let class = json.java_class();
            let package = match json {
                Json::Array(_) | Json::Object(_) => "java.util",
                Json::Integer(_) if class == "BigInteger" => "java.math",
                _ => "java.lang",
            };
            invalid(format!(
                "class {package}.{class} cannot be cast to class java.lang.String ({package}.{class} and \
                 java.lang.String are in module java.base of loader 'bootstrap')"
            ))
        }
    }
}

fn small_integer(ty: &CqlType, json: &Json, what: &str) -> Result<Vec<u8>, TypeError> {
    match json {
        Json::String(text) => parse_text(ty, text),
        Json::Integer(_) | Json::Float(_) => parse_text(ty, &json.to_string()),
        _ => refuse(format!("Expected {what} value, but got a {}: {json}", json.java_class())),
    }
}

fn varint(json: &Json) -> Result<Vec<u8>, TypeError> {
    match json {
        Json::Integer(value) => Ok(value.to_signed_bytes_be()),
        _ => match java_number::parse_integer(&json.to_string()) {
            Some(value) => Ok(value.to_signed_bytes_be()),
            None => refuse(format!("Value '{json}' is not a valid representation of a varint value")),
        },
    }
}

fn floating(ty: &CqlType, json: &Json, expected: &str) -> Result<Vec<u8>, TypeError> {
    let encode = |value: f64| match ty {
        CqlType::Float => (value as f32).to_be_bytes().to_vec(),
        _ => value.to_be_bytes().to_vec(),
    };
    match json {
        Json::Float(value) => Ok(encode(*value)),
        Json::Integer(value) => parse_text(ty, &value.to_string()),
        _ => text(ty, json, expected),
    }
}

/// Accepts a whole number from 2^31 on: there Java reads a long. Smaller numbers are refused, as in
/// Cassandra.
fn timestamp(json: &Json, what: &str) -> Result<Vec<u8>, TypeError> {
    match json {
        Json::Integer(value) if json.java_class() == "Long" => {
            let millis = i64::try_from(value).map_err(|_| TypeError::Json(format!("{value} is no timestamp")))?;
            Ok(millis.to_be_bytes().to_vec())
        }
        _ => text(&CqlType::Timestamp, json, &format!("a long or a datestring representation of a {what} value")),
    }
}

fn custom_value(custom: &CustomType, json: &Json) -> Result<Vec<u8>, TypeError> {
    match custom {
        CustomType::Reversed(ty) => from_json(ty, json),
        CustomType::LegacyDate => timestamp(json, "date"),
        CustomType::LexicalUuid => text(&CqlType::Uuid, json, "a string representation of a uuid"),
        _ => text(&CqlType::Custom(std::sync::Arc::new(custom.clone())), json, "a string"),
    }
}

/// Reads collections, tuples and user types. A string may hold them as JSON inside of JSON.
fn compound(ty: &CqlType, json: &Json) -> Result<Vec<u8>, TypeError> {
    let inner;
    let json = match json {
        Json::String(text) => {
            inner = parse(text)?;
            &inner
        }
        other => other,
    };
    match ty {
        CqlType::List { element, .. } => {
            Ok(collection::build_list(&elements(element, items(json, "a list")?, "list")?))
        }
        CqlType::Set { element, .. } => {
            let items = items(json, "a list (representing a set)")?;
            Ok(collection::build_set(element, elements(element, items, "set")?))
        }
        CqlType::Vector { element, dimension } => vector(element, *dimension, items(json, "a list")?, json),
        CqlType::Tuple(types) => tuple(types, items(json, "a list representation of a tuple")?, json),
        CqlType::Map { key, value, .. } => map(key, value, members(json)?),
        CqlType::Udt(udt, _) => user_type(udt, members(json)?),
        _ => refuse(format!("{} has no JSON form", ty.cql_name())),
    }
}

fn items<'a>(json: &'a Json, expected: &str) -> Result<&'a [Json], TypeError> {
    match json {
        Json::Array(items) => Ok(items),
        _ => refuse(format!("Expected {expected}, but got a {}: {json}", json.java_class())),
    }
}

fn members(json: &Json) -> Result<&[(String, Json)], TypeError> {
    match json {
        Json::Object(members) => Ok(members),
        _ => refuse(format!("Expected a map, but got a {}: {json}", json.java_class())),
    }
}

fn elements(ty: &CqlType, items: &[Json], kind: &str) -> Result<Vec<Vec<u8>>, TypeError> {
    let mut room = VALUE_SIZE_MAX;
    let element = |item: &Json| match item {
        Json::Null => refuse(format!("Invalid null element in {kind}")),
        item => sized(from_json(ty, item)?, &mut room),
    };
    items.iter().map(element).collect()
}

/// Takes the bytes of a part from those that its value may still have.
fn sized(part: Vec<u8>, room: &mut usize) -> Result<Vec<u8>, TypeError> {
    match room.checked_sub(part.len()) {
        Some(left) => {
            *room = left;
            Ok(part)
        }
        None => refuse(format!("The value would be larger than {} MiB", VALUE_SIZE_MAX >> 20)),
    }
}

fn vector(ty: &CqlType, dimension: u32, items: &[Json], json: &Json) -> Result<Vec<u8>, TypeError> {
    if items.len() as u64 != u64::from(dimension) {
        return refuse(format!("List had incorrect size: expected {dimension} but given {}; {json}", items.len()));
    }
    Ok(collection::build_vector(ty, &elements(ty, items, "list")?))
}

fn tuple(types: &[CqlType], items: &[Json], json: &Json) -> Result<Vec<u8>, TypeError> {
    if items.len() > types.len() {
        return refuse(format!("Tuple contains extra items (expected {}): {json}", types.len()));
    }
    if items.len() < types.len() {
        return refuse(format!("Tuple is missing items (expected {}): {json}", types.len()));
    }
    let mut room = VALUE_SIZE_MAX;
    let fields: Result<Vec<_>, _> = types.iter().zip(items).map(|(ty, item)| field(ty, item, &mut room)).collect();
    Ok(collection::build_tuple(&fields?))
}

fn field(ty: &CqlType, item: &Json, room: &mut usize) -> Result<Option<Vec<u8>>, TypeError> {
    match item {
        Json::Null => Ok(None),
        item => sized(from_json(ty, item)?, room).map(Some),
    }
}

fn map(key: &CqlType, value: &CqlType, members: &[(String, Json)]) -> Result<Vec<u8>, TypeError> {
    let (mut entries, mut room) = (Vec::with_capacity(members.len()), VALUE_SIZE_MAX);
    for (name, item) in members {
        if *item == Json::Null {
            return refuse("Invalid null value in map".to_owned());
        }
        let key = sized(from_json(key, &Json::String(name.clone()))?, &mut room)?;
        entries.push((key, sized(from_json(value, item)?, &mut room)?));
    }
    Ok(collection::build_map(key, entries))
}

fn user_type(udt: &crate::UserType, members: &[(String, Json)]) -> Result<Vec<u8>, TypeError> {
    let mut members = members_by_name(members);
    let (mut fields, mut room) = (Vec::with_capacity(udt.fields.len()), VALUE_SIZE_MAX);
    for (name, ty) in &udt.fields {
        fields.push(match members.remove(name) {
            Some((_, item)) => field(ty, item, &mut room)?,
            None => None,
        });
    }
    // as in Cassandra, behind mistakes in the others
    if let Some((name, _)) = members.iter().min_by_key(|(_, (place, _))| *place) {
        return refuse(format!("Unknown field '{name}' in value of user defined type {}", udt.name));
    }
    Ok(collection::build_tuple(&fields))
}

/// The members of an object by the names that CQL reads, each with its place among them. Of
/// several with one name the last counts; a name that has to be changed for CQL comes behind those
/// that are written as CQL reads them. Agrees with `JsonUtils.handleCaseSensitivity`.
pub fn members_by_name(members: &[(String, Json)]) -> BTreeMap<String, (usize, &Json)> {
    let (mut by_name, mut names) = (BTreeMap::<String, (usize, &Json)>::new(), Vec::new());
    for (name, item) in members {
        match by_name.get_mut(name) {
            Some((_, known)) => *known = item,
            None => {
                by_name.insert(name.clone(), (names.len(), item));
                names.push(name);
            }
        }
    }
    for (at, name) in names.iter().enumerate() {
        let folded = fold_case(name);
        if folded != **name
            && let Some((_, item)) = by_name.remove(*name)
        {
            by_name.entry(folded).or_insert((names.len() + at, item)).1 = item;
        }
    }
    by_name
}

/// A name in JSON as CQL reads it: in lower case, unless the string contains double quotes around
/// the name.
fn fold_case(name: &str) -> String {
    match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(quoted) => quoted.to_owned(),
        None => name.to_lowercase(),
    }
}

/// The Java class of an integer of this size.
fn java_integer(value: &BigInt) -> &'static str {
    match (i32::try_from(value), i64::try_from(value)) {
        (Ok(_), _) => "Integer",
        (_, Ok(_)) => "Long",
        _ => "BigInteger",
    }
}

#[cfg(test)]
mod tests;
