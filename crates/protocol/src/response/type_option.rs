//! Type options: the description of a column's type, for each version.
//!
//! A type that a version does not know is sent as a custom type with Cassandra's class name; a
//! vector is one in every version. Whether a type is frozen is not visible. Agrees with
//! `org.apache.cassandra.transport.DataType`.

use bytes::{BufMut, BytesMut};
use types::{CqlType, CustomType};

use crate::version::ProtocolVersion;
use crate::wire::put_string;

const CUSTOM: u16 = 0x00;
const LIST: u16 = 0x20;
const MAP: u16 = 0x21;
const SET: u16 = 0x22;
const UDT: u16 = 0x30;
const TUPLE: u16 = 0x31;

/// The class name of a type, as Cassandra stores it.
pub(super) fn type_name(cql_type: &CqlType) -> String {
    types::marshal::print(cql_type, false)
}

/// Appends the type option.
pub fn put_type(out: &mut BytesMut, cql_type: &CqlType, version: ProtocolVersion) {
    if let Some((id, since)) = scalar(cql_type) {
        if version >= since {
            out.put_u16(id);
        } else {
            put_custom(out, cql_type);
        }
        return;
    }
    match cql_type {
        CqlType::List { element, .. } => {
            out.put_u16(LIST);
            put_type(out, element, version);
        }
        CqlType::Set { element, .. } => {
            out.put_u16(SET);
            put_type(out, element, version);
        }
        CqlType::Map { key, value, .. } => {
            out.put_u16(MAP);
            put_type(out, key, version);
            put_type(out, value, version);
        }
        CqlType::Tuple(elements) => {
            out.put_u16(TUPLE);
            out.put_u16(elements.len() as u16);
            for element in elements.iter() {
                put_type(out, element, version);
            }
        }
        CqlType::Udt(user_type, _) => {
            out.put_u16(UDT);
            put_string(out, &user_type.keyspace);
            put_string(out, &user_type.name);
            out.put_u16(user_type.fields.len() as u16);
            for (name, field) in user_type.fields.iter() {
                put_string(out, name);
                put_type(out, field, version);
            }
        }
        _ => put_custom(out, cql_type),
    }
}

fn put_custom(out: &mut BytesMut, cql_type: &CqlType) {
    out.put_u16(CUSTOM);
    put_string(out, &type_name(cql_type));
}

/// The id of a type without parameters, and the first version that knows the type. None: the type
/// is not such a one.
fn scalar(cql_type: &CqlType) -> Option<(u16, ProtocolVersion)> {
    use ProtocolVersion::{V3, V4, V5};
    Some(match cql_type {
        CqlType::Ascii => (0x01, V3),
        CqlType::BigInt => (0x02, V3),
        CqlType::Blob => (0x03, V3),
        CqlType::Boolean => (0x04, V3),
        CqlType::Counter => (0x05, V3),
        CqlType::Decimal => (0x06, V3),
        CqlType::Double => (0x07, V3),
        CqlType::Float => (0x08, V3),
        CqlType::Int => (0x09, V3),
        CqlType::Timestamp => (0x0B, V3),
        CqlType::Uuid => (0x0C, V3),
        CqlType::Text => (0x0D, V3),
        CqlType::Varint => (0x0E, V3),
        CqlType::TimeUuid => (0x0F, V3),
        CqlType::Inet => (0x10, V3),
        CqlType::Date => (0x11, V4),
        CqlType::Time => (0x12, V4),
        CqlType::SmallInt => (0x13, V4),
        CqlType::TinyInt => (0x14, V4),
        CqlType::Duration => (0x15, V5),
        // the former timestamp is sent as the present one
        CqlType::Custom(custom) if **custom == CustomType::LegacyDate => (0x0B, V3),
        _ => return None,
    })
}
