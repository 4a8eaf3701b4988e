//! Values of CQL from their bytes and back. Agrees with the codecs of
//! `org.apache.cassandra.cql3.functions.types.TypeCodec`: sets and maps are written in the order in
//! which they iterate.

use std::mem::discriminant;

use num_bigint::BigInt;
use types::decimal::Decimal;
use types::{CqlType, collection};

use super::objects::{Buffer, Kind, Object, Table};
use super::{Machine, Result, Value};
use crate::class::{JavaClass, Type};
use crate::machine::convert;

/// Dates count from the middle of the unsigned numbers.
const DATE_ZERO: i64 = 1 << 31;

impl Machine<'_> {
    /// The value of serialized bytes; bytes that are no value of the type throw.
    pub fn decode(&mut self, ty: &CqlType, bytes: &[u8]) -> Result {
        if bytes.is_empty() && !ty.empty_is_meaningful() {
            return Ok(Value::Null);
        }
        self.charge(bytes.len())?;
        match self.decode_simple(ty, bytes)? {
            Some(value) => Ok(value),
            None => {
                let message = format!("Invalid bytes for the CQL type {}", ty.cql_name());
                self.throw(JavaClass::InvalidTypeException, message)
            }
        }
    }

    fn decode_simple(&mut self, ty: &CqlType, bytes: &[u8]) -> Result<Option<Value>> {
        fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
            bytes.try_into().ok()
        }
        use CqlType as T;
        let object = match ty {
            T::Int => return Ok(fixed(bytes).map(|bytes| Value::Int(i32::from_be_bytes(bytes)))),
            T::BigInt | T::Counter | T::Time => {
                return Ok(fixed(bytes).map(|bytes| Value::Long(i64::from_be_bytes(bytes))));
            }
            T::Double => return Ok(fixed(bytes).map(|bytes| Value::Double(f64::from_be_bytes(bytes)))),
            T::Float => return Ok(fixed(bytes).map(|bytes| Value::Float(f32::from_be_bytes(bytes)))),
            T::Boolean => return Ok(bytes.first().map(|byte| Value::Bool(*byte != 0))),
            T::SmallInt => return Ok(fixed(bytes).map(|bytes| Value::Short(i16::from_be_bytes(bytes)))),
            T::TinyInt => return Ok(fixed(bytes).map(|bytes| Value::Byte(i8::from_be_bytes(bytes)))),
            T::Ascii | T::Text => {
                let text = String::from_utf8_lossy(bytes);
                Some(Object::Text(text.encode_utf16().collect()))
            }
            T::Date => {
                fixed(bytes).map(|bytes| Object::LocalDate((i64::from(u32::from_be_bytes(bytes)) - DATE_ZERO) as i32))
            }
            T::Timestamp => fixed(bytes).map(|bytes| Object::Date(i64::from_be_bytes(bytes))),
            T::Uuid | T::TimeUuid => fixed(bytes).map(Object::Uuid),
            T::Inet => matches!(bytes.len(), 4 | 16).then(|| Object::Inet(bytes.to_vec())),
            T::Varint => Some(Object::Integer(BigInt::from_signed_bytes_be(bytes))),
            T::Decimal => Decimal::decode(bytes).map(Object::Decimal),
            T::Duration => types::duration::Duration::decode(bytes).map(Object::Duration),
            T::Tuple(of) => Some(Object::Tuple(of.clone(), owned(bytes, of.len()))),
            T::Udt(udt, _) => Some(Object::Udt(udt.clone(), owned(bytes, udt.fields.len()))),
            T::List { element, .. } => {
                let mut items = Vec::new();
                for item in collection::elements(bytes) {
                    items.push(self.nested(|machine| machine.decode(element, item))?);
                }
                return self.list(items).map(Some);
            }
            T::Vector { element, dimension } => {
                let mut items = Vec::new();
                for item in collection::VectorElements::new(element, *dimension, bytes) {
                    let Ok(item) = item else { return Ok(None) };
                    items.push(self.nested(|machine| machine.decode(element, item))?);
                }
                return self.list(items).map(Some);
            }
            T::Set { element, .. } => {
                let set = self.alloc(Object::Set(Table::new(Kind::Linked)))?;
                for item in collection::elements(bytes) {
                    let item = self.nested(|machine| machine.decode(element, item))?;
                    self.table_fill(set, item, Value::Bool(true))?;
                }
                return Ok(Some(set));
            }
            T::Map { key, value, .. } => {
                let map = self.alloc(Object::Map(Table::new(Kind::Linked)))?;
                for (k, v) in collection::entries(bytes) {
                    let k = self.nested(|machine| machine.decode(key, k))?;
                    let v = self.nested(|machine| machine.decode(value, v))?;
                    self.table_fill(map, k, v)?;
                }
                return Ok(Some(map));
            }
            _ => {
                let limit = bytes.len();
                Some(Object::Buffer(Buffer { bytes: bytes.to_vec(), position: 0, limit, little: false, mark: None }))
            }
        };
        object.map(|object| self.alloc(object)).transpose()
    }

    /// The bytes of a value that is not null.
    pub fn encode(&mut self, ty: &CqlType, value: Value) -> Result<Vec<u8>> {
        use CqlType as T;
        let wanted = Type::of_cql(ty, false);
        if let Some(prim) = wanted.unboxed() {
            return match (convert(prim, value), value) {
                // by type, so that NaN is a value of its own type too
                (Some(same), _) if discriminant(&same) == discriminant(&value) => Ok(match value {
                    Value::Bool(value) => vec![u8::from(value)],
                    Value::Byte(value) => value.to_be_bytes().to_vec(),
                    Value::Short(value) => value.to_be_bytes().to_vec(),
                    Value::Int(value) => value.to_be_bytes().to_vec(),
                    Value::Long(value) => value.to_be_bytes().to_vec(),
                    Value::Float(value) => value.to_be_bytes().to_vec(),
                    Value::Double(value) => value.to_be_bytes().to_vec(),
                    _ => return self.invalid(ty),
                }),
                (_, Value::Null) => self.null_pointer(),
                _ => self.invalid(ty),
            };
        }
        let bytes = match (ty, self.peek(value)) {
            (T::Ascii | T::Text, Some(Object::Text(_))) => self.rust_string(value)?.into_bytes(),
            (T::Date, Some(Object::LocalDate(days))) => ((i64::from(*days) + DATE_ZERO) as u32).to_be_bytes().to_vec(),
            (T::Timestamp, Some(Object::Date(millis))) => millis.to_be_bytes().to_vec(),
            (T::Uuid, Some(Object::Uuid(bytes))) => bytes.to_vec(),
            (T::TimeUuid, Some(Object::Uuid(bytes))) => {
                let bytes = *bytes;
                if !types::timeuuid::is_timeuuid(&bytes) {
                    let message = format!("{} is not a Type 1 (time-based) UUID", types::literal::print_uuid(&bytes));
                    return self.throw(JavaClass::InvalidTypeException, message);
                }
                bytes.to_vec()
            }
            (T::Inet, Some(Object::Inet(bytes))) => bytes.clone(),
            (T::Varint, Some(Object::Integer(value))) => value.to_signed_bytes_be(),
            (T::Decimal, Some(Object::Decimal(value))) => value.encode(),
            (T::Duration, Some(Object::Duration(value))) => value.encode(),
            (T::Tuple(of), Some(Object::Tuple(types, fields))) if types == of => collection::build_tuple(fields),
            (T::Udt(of, _), Some(Object::Udt(udt, fields))) if udt == of => collection::build_tuple(fields),
            (T::List { element, .. }, Some(Object::List(_))) => {
                let items = self.items(value)?;
                let parts = self.encode_all(element, &items)?;
                collection::build_list(&parts)
            }
            (T::Vector { element, dimension }, Some(Object::List(items))) => {
                if items.items.len() != *dimension as usize {
                    return self.invalid(ty);
                }
                let items = self.items(value)?;
                let parts = self.encode_all(element, &items)?;
                collection::build_vector(element, &parts)
            }
            (T::Set { element, .. }, Some(Object::Set(_))) => {
                let items = self.items(value)?;
                let parts = self.encode_all(element, &items)?;
                collection::build_list(&parts)
            }
            (T::Map { key, value: of, .. }, Some(Object::Map(table))) => {
                let entries = table.entries();
                let mut out = Vec::new();
                collection::put_count(&mut out, entries.len());
                for (k, v) in entries {
                    for part in [self.encode_all(key, &[k])?, self.encode_all(of, &[v])?] {
                        stdx::put_int_bytes(&mut out, part.first().map(Vec::as_slice));
                    }
                }
                out
            }
            (_, Some(Object::Buffer(buffer))) if wanted.class() == Some(JavaClass::ByteBuffer) => {
                buffer.bytes.get(buffer.position..buffer.limit).unwrap_or_default().to_vec()
            }
            (_, None) if value == Value::Null => return self.null_pointer(),
            _ => return self.invalid(ty),
        };
        self.charge(bytes.len())?;
        Ok(bytes)
    }

    fn encode_all(&mut self, ty: &CqlType, items: &[Value]) -> Result<Vec<Vec<u8>>> {
        let mut parts = Vec::with_capacity(items.len());
        for item in items {
            if *item == Value::Null {
                return self.throw(JavaClass::NullPointerException, "Collection elements cannot be null");
            }
            parts.push(self.nested(|machine| machine.encode(ty, *item))?);
        }
        Ok(parts)
    }

    fn invalid<T>(&mut self, ty: &CqlType) -> Result<T> {
        self.throw(JavaClass::InvalidTypeException, format!("Invalid value for CQL type {}", ty.cql_name()))
    }
}

/// The fields of a tuple or user type, as bytes of their own.
fn owned(bytes: &[u8], count: usize) -> Vec<Option<Vec<u8>>> {
    collection::fields(bytes, count).map(|field| field.map(<[u8]>::to_vec)).collect()
}
