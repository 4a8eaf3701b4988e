//! Values of any CQL type, generated from numbers: the same number gives the same value.

use std::net::{IpAddr, Ipv4Addr};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use scylla::frame::response::result::{CollectionType, ColumnType, NativeType};
use scylla::value::{
    Counter, CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlTimeuuid, CqlValue, CqlVarint,
};

use crate::distribution::Distribution;
use crate::{Error, Result};

/// Number of elements of a collection, and of bytes of its elements, if the given size is meant for
/// the whole.
const INNER_SIZE: Distribution = Distribution::uniform(4, 8);
/// 1970-01-01 as a CQL date.
const EPOCH_DATE: u32 = 1 << 31;
/// Days and milliseconds over which generated dates and times are spread: about 30 years from 1995.
const DAYS: i64 = 11_000;
const FIRST_DAY: i64 = 9_131;
const DAY_MILLIS: i64 = 86_400_000;
const DAY_NANOS: i64 = 86_400_000_000_000;

/// Mixes the bits of a number (the finisher of SplitMix64), so that neighbouring numbers give
/// unrelated results.
pub fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// A share for a number: at least 0, below 1.
pub fn unit(number: u64) -> f64 {
    (mix(number) >> 11) as f64 / (1u64 << 53) as f64
}

/// A hash of a value; equal values have the same.
pub fn hash(value: &CqlValue) -> u64 {
    let of = |bytes: &[u8]| {
        bytes.chunks(8).fold(mix(bytes.len() as u64), |hash, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mix(hash ^ u64::from_le_bytes(word))
        })
    };
    match value {
        CqlValue::Int(number) => mix(*number as u64),
        CqlValue::BigInt(number) => mix(*number as u64),
        CqlValue::Timestamp(time) => mix(time.0 as u64),
        CqlValue::Text(text) | CqlValue::Ascii(text) => of(text.as_bytes()),
        CqlValue::Blob(bytes) => of(bytes),
        CqlValue::Uuid(uuid) => of(uuid.as_bytes()),
        other => of(format!("{other:?}").as_bytes()),
    }
}

/// Generates the values of one column.
pub struct Generator {
    cql_type: ColumnType<'static>,
    /// Number of bytes of texts and blobs, and of elements of collections.
    size: Distribution,
    /// Selects one of the column's different values.
    population: Distribution,
    /// Makes the values of columns differ.
    salt: u64,
}

impl Generator {
    /// A generator for a column of this name and type; a type that cannot be generated is refused.
    pub fn new(
        name: &str,
        cql_type: ColumnType<'static>,
        size: Distribution,
        population: Distribution,
    ) -> Result<Self> {
        check(&cql_type).map_err(|error| format!("column {name}: {error}"))?;
        let salt = name.bytes().fold(0, |salt, byte| mix(salt ^ u64::from(byte)));
        Ok(Self { cql_type, size, population, salt })
    }

    /// The value for this seed.
    pub fn value(&self, seed: u64) -> CqlValue {
        let which = mix(self.population.draw_of(mix(seed ^ self.salt)) as u64 ^ self.salt);
        let mut random = SmallRng::seed_from_u64(which);
        of_type(&self.cql_type, self.size.draw_of(which).max(0) as usize, &mut random)
    }
}

fn check(cql_type: &ColumnType<'_>) -> Result<()> {
    match cql_type {
        ColumnType::Native(_) => Ok(()),
        ColumnType::Collection { typ: CollectionType::List(inner) | CollectionType::Set(inner), .. } => check(inner),
        ColumnType::Collection { typ: CollectionType::Map(key, value), .. } => check(key).and_then(|()| check(value)),
        ColumnType::Vector { typ, .. } => check(typ),
        ColumnType::Tuple(parts) => parts.iter().try_for_each(check),
        ColumnType::UserDefinedType { definition, .. } => {
            definition.field_types.iter().try_for_each(|(_, inner)| check(inner))
        }
        other => Err(Error::from(format!("values of type {other:?} are not made here"))),
    }
}

fn of_type(cql_type: &ColumnType<'_>, size: usize, random: &mut SmallRng) -> CqlValue {
    let inner = |inner: &ColumnType<'_>, random: &mut SmallRng| {
        let size = INNER_SIZE.draw(0, random) as usize;
        of_type(inner, size, random)
    };
    match cql_type {
        ColumnType::Native(native) => of_native(native, size, random),
        ColumnType::Collection { typ: CollectionType::List(element), .. } => {
            CqlValue::List((0..size).map(|_| inner(element, random)).collect())
        }
        ColumnType::Collection { typ: CollectionType::Set(element), .. } => {
            CqlValue::Set((0..size).map(|_| inner(element, random)).collect())
        }
        ColumnType::Collection { typ: CollectionType::Map(key, value), .. } => {
            CqlValue::Map((0..size).map(|_| (inner(key, random), inner(value, random))).collect())
        }
        ColumnType::Vector { typ, dimensions } => {
            CqlValue::Vector((0..*dimensions).map(|_| inner(typ, random)).collect())
        }
        ColumnType::Tuple(parts) => CqlValue::Tuple(parts.iter().map(|part| Some(inner(part, random))).collect()),
        ColumnType::UserDefinedType { definition, .. } => CqlValue::UserDefinedType {
            keyspace: definition.keyspace.to_string(),
            name: definition.name.to_string(),
            fields: definition
                .field_types
                .iter()
                .map(|(name, part)| (name.to_string(), Some(inner(part, random))))
                .collect(),
        },
        // `check` refuses these
        _ => CqlValue::Empty,
    }
}

fn of_native(native: &NativeType, size: usize, random: &mut SmallRng) -> CqlValue {
    let millis = |random: &mut SmallRng| random.random_range(FIRST_DAY * DAY_MILLIS..(FIRST_DAY + DAYS) * DAY_MILLIS);
    match native {
        NativeType::Ascii => CqlValue::Ascii(text(size, random)),
        NativeType::Text => CqlValue::Text(text(size, random)),
        NativeType::Blob => CqlValue::Blob(bytes(size, random)),
        NativeType::Boolean => CqlValue::Boolean(random.random()),
        NativeType::Counter => CqlValue::Counter(Counter(random.random_range(1..100))),
        NativeType::Int => CqlValue::Int(random.random()),
        NativeType::BigInt => CqlValue::BigInt(random.random()),
        NativeType::SmallInt => CqlValue::SmallInt(random.random()),
        NativeType::TinyInt => CqlValue::TinyInt(random.random()),
        NativeType::Float => CqlValue::Float(random.random()),
        NativeType::Double => CqlValue::Double(random.random()),
        NativeType::Varint => CqlValue::Varint(CqlVarint::from_signed_bytes_be(bytes(size.clamp(1, 16), random))),
        NativeType::Decimal => CqlValue::Decimal(CqlDecimal::from_signed_be_bytes_and_exponent(
            bytes(size.clamp(1, 16), random),
            random.random_range(0..10),
        )),
        NativeType::Date => {
            CqlValue::Date(CqlDate(EPOCH_DATE + random.random_range(FIRST_DAY..FIRST_DAY + DAYS) as u32))
        }
        NativeType::Time => CqlValue::Time(CqlTime(random.random_range(0..DAY_NANOS))),
        NativeType::Timestamp => CqlValue::Timestamp(CqlTimestamp(millis(random))),
        NativeType::Duration => CqlValue::Duration(CqlDuration {
            months: random.random_range(0..100),
            days: random.random_range(0..100),
            nanoseconds: random.random_range(0..DAY_NANOS),
        }),
        NativeType::Inet => CqlValue::Inet(IpAddr::V4(Ipv4Addr::from_bits(random.random()))),
        NativeType::Uuid => CqlValue::Uuid(uuid(4, random)),
        NativeType::Timeuuid => CqlValue::Timeuuid(CqlTimeuuid::from_bytes(uuid_bytes(1, random))),
        _ => CqlValue::Empty,
    }
}

fn bytes(size: usize, random: &mut SmallRng) -> Vec<u8> {
    let mut bytes = vec![0; size];
    rand::Rng::fill_bytes(random, &mut bytes);
    bytes
}

/// Letters and digits, from six bits each.
fn text(size: usize, random: &mut SmallRng) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    bytes(size, random).iter().map(|byte| char::from(LETTERS[usize::from(byte & 63)])).collect()
}

fn uuid_bytes(version: u8, random: &mut SmallRng) -> [u8; 16] {
    let mut bytes: [u8; 16] = random.random();
    bytes[6] = (bytes[6] & 0x0F) | (version << 4);
    bytes[8] = (bytes[8] & 0x3F) | 0x80;
    bytes
}

fn uuid(version: u8, random: &mut SmallRng) -> uuid::Uuid {
    uuid::Uuid::from_bytes(uuid_bytes(version, random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_value_and_a_population_bounds_how_many_there_are() {
        let generator = |population| {
            Generator::new("c", ColumnType::Native(NativeType::Text), Distribution::fixed(20), population)
                .expect("a type")
        };
        let many = generator(Distribution::uniform(1, 1_000_000));
        assert_eq!(many.value(1), many.value(1));
        assert_ne!(many.value(1), many.value(2));
        let few = generator(Distribution::uniform(1, 3));
        let different: std::collections::HashSet<String> =
            (0..1000).filter_map(|seed| few.value(seed).as_text().cloned()).collect();
        assert_eq!(different.len(), 3);
        assert!(different.iter().all(|text| text.len() == 20));
    }
}
