//! The objects of a call, and their equality, hashes and order as Java defines them.
//!
//! Hash tables keep the order in which Java's iterate: by bucket of the spread hash, in a bucket by
//! age. (Java turns long buckets into trees; that does not change the order of iteration.)

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;
use types::decimal::Decimal;
use types::duration::Duration;
use types::{CqlType, UserType};

use super::{Machine, Result, Value};
use crate::class::{JavaClass, Type};

/// An object.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    Text(Vec<u16>),
    /// A builder; true: a StringBuffer.
    Builder(Vec<u16>, bool),
    Integer(BigInt),
    Decimal(Decimal),
    /// RoundingMode, by its ordinal.
    Rounding(u8),
    List(Items),
    /// A set whose values are ignored.
    Set(Table),
    Map(Table),
    /// An array with the type of its elements.
    Array(Type, Vec<Value>),
    /// An entry, and the map in which it stands.
    Entry(Value, Value, Value),
    /// An iterator over a snapshot: its source, the items, the next one, the source's changes.
    Iterator(Value, Vec<Value>, usize, u32),
    Optional(Value),
    Uuid([u8; 16]),
    Inet(Vec<u8>),
    Buffer(Buffer),
    /// Milliseconds since 1970.
    Date(i64),
    /// Days since 1970.
    LocalDate(i32),
    Duration(Duration),
    Tuple(Arc<[CqlType]>, Vec<Option<Vec<u8>>>),
    Udt(Arc<UserType>, Vec<Option<Vec<u8>>>),
    Throwable {
        class: JavaClass,
        message: Value,
        cause: Value,
    },
    Context,
    Lambda(u32, Vec<Value>),
    Comparator(Order),
}

/// A comparator that is no lambda.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Natural,
    /// The reverse of another; null: of the natural one.
    Reversed(Value),
    /// By a key; null: by the natural order of the key, else by a comparator of it.
    By(Value, Value),
    Then(Value, Value),
}

/// Which list it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sequence {
    Array,
    Linked,
    /// Cannot be changed.
    Fixed,
    /// Elements may be set, not added (`Arrays.asList`).
    Sized,
}

/// A list.
#[derive(Clone, Debug)]
pub(crate) struct Items {
    pub kind: Sequence,
    pub items: Vec<Value>,
    pub changes: u32,
}

/// A byte buffer: its bytes (an array object), position, limit, whether it is big-endian,
/// read-only.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub bytes: Vec<u8>,
    pub position: usize,
    pub limit: usize,
    pub little: bool,
    pub mark: Option<usize>,
}

impl Buffer {
    /// The bytes between position and limit, as Java compares them.
    fn signed(&self) -> impl Iterator<Item = i8> {
        let bytes = self.bytes.get(self.position..self.limit).unwrap_or_default();
        bytes.iter().map(|byte| *byte as i8)
    }
}

/// A map or set.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub kind: Kind,
    /// By hash and age; in a sorted table by rank.
    entries: BTreeMap<(i32, u64), (Value, Value)>,
    sorted: Vec<(Value, Value)>,
    pub comparator: Value,
    age: u64,
    capacity: u64,
    pub changes: u32,
}

/// Which table it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Hash,
    Linked,
    Tree,
    /// Of insertion order, and cannot be changed.
    Fixed,
}

/// Java's capacity of a new hash table, and its largest.
const CAPACITY_MIN: u64 = 16;
const CAPACITY_MAX: u64 = 1 << 30;

impl Table {
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            entries: BTreeMap::new(),
            sorted: Vec::new(),
            comparator: Value::Null,
            age: 0,
            capacity: CAPACITY_MIN,
            changes: 0,
        }
    }

    /// Sorted by a comparator.
    pub fn sorted(comparator: Value) -> Self {
        Self { comparator, ..Self::new(Kind::Tree) }
    }

    /// With the capacity of `new HashMap(capacity)`.
    pub fn with_capacity(kind: Kind, capacity: u64) -> Self {
        Self { capacity: capacity.clamp(1, CAPACITY_MAX).next_power_of_two(), ..Self::new(kind) }
    }

    pub fn len(&self) -> usize {
        self.entries.len() + self.sorted.len()
    }

    /// All entries in the order in which Java iterates.
    pub fn entries(&self) -> Vec<(Value, Value)> {
        if self.kind == Kind::Tree {
            return self.sorted.clone();
        }
        let mut all: Vec<_> = self.entries.iter().collect();
        let mask = self.capacity - 1;
        match self.kind {
            Kind::Hash => all.sort_by_key(|((hash, age), _)| (u64::from(*hash as u32) & mask, *age)),
            _ => all.sort_by_key(|((_, age), _)| *age),
        }
        all.into_iter().map(|(_, entry)| *entry).collect()
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.sorted.clear();
        self.changes += 1;
    }
}

/// Spreads the high bits of a hash, as HashMap does.
fn spread(hash: i32) -> i32 {
    hash ^ ((hash as u32) >> 16) as i32
}

impl Object {
    pub fn class(&self) -> JavaClass {
        match self {
            Self::Text(_) => JavaClass::String,
            Self::Builder(_, false) => JavaClass::StringBuilder,
            Self::Builder(_, true) => JavaClass::StringBuffer,
            Self::Integer(_) => JavaClass::BigInteger,
            Self::Decimal(_) => JavaClass::BigDecimal,
            Self::Rounding(_) => JavaClass::RoundingMode,
            Self::List(items) => match items.kind {
                Sequence::Array => JavaClass::ArrayList,
                Sequence::Linked => JavaClass::LinkedList,
                Sequence::Fixed | Sequence::Sized => JavaClass::List,
            },
            Self::Set(table) => match table.kind {
                Kind::Hash => JavaClass::HashSet,
                Kind::Linked => JavaClass::LinkedHashSet,
                Kind::Tree => JavaClass::TreeSet,
                Kind::Fixed => JavaClass::Set,
            },
            Self::Map(table) => match table.kind {
                Kind::Hash => JavaClass::HashMap,
                Kind::Linked => JavaClass::LinkedHashMap,
                Kind::Tree => JavaClass::TreeMap,
                Kind::Fixed => JavaClass::Map,
            },
            Self::Array(..) => JavaClass::Object,
            Self::Entry(..) => JavaClass::MapEntry,
            Self::Iterator(..) => JavaClass::Iterator,
            Self::Optional(_) => JavaClass::Optional,
            Self::Uuid(_) => JavaClass::Uuid,
            Self::Inet(_) => JavaClass::InetAddress,
            Self::Buffer(_) => JavaClass::ByteBuffer,
            Self::Date(_) => JavaClass::Date,
            Self::LocalDate(_) => JavaClass::LocalDate,
            Self::Duration(_) => JavaClass::Duration,
            Self::Tuple(..) => JavaClass::TupleValue,
            Self::Udt(..) => JavaClass::UdtValue,
            Self::Throwable { class, .. } => *class,
            Self::Context => JavaClass::UdfContext,
            Self::Lambda(..) => JavaClass::Object,
            Self::Comparator(_) => JavaClass::Comparator,
        }
    }

    /// Bytes of its content.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(units) | Self::Builder(units, _) => units.len() * 2,
            Self::Integer(value) => value.bits() as usize / 8,
            Self::Decimal(value) => value.unscaled.bits() as usize / 8,
            Self::List(items) => items.items.len() * 16,
            Self::Set(table) | Self::Map(table) => table.len() * 64,
            Self::Array(_, items) | Self::Iterator(_, items, ..) | Self::Lambda(_, items) => items.len() * 16,
            Self::Buffer(buffer) => buffer.bytes.len(),
            Self::Tuple(_, fields) | Self::Udt(_, fields) => {
                fields.iter().map(|field| 24 + field.as_ref().map_or(0, Vec::len)).sum()
            }
            _ => 0,
        }
    }
}

/// The hash of bytes or units from a start value.
fn rolling(start: i32, items: impl Iterator<Item = i32>) -> i32 {
    items.fold(start, |hash, item| hash.wrapping_mul(31).wrapping_add(item))
}

fn hash_long(value: i64) -> i32 {
    (value ^ ((value as u64) >> 32) as i64) as i32
}

fn hash_integer(value: &BigInt) -> i32 {
    let words: Vec<u32> = value.magnitude().to_u32_digits();
    let hash = rolling(0, words.iter().rev().map(|word| *word as i32));
    if value.sign() == Sign::Minus { hash.wrapping_neg() } else { hash }
}

fn hash_decimal(value: &Decimal) -> i32 {
    let compact = value.unscaled.to_i64().filter(|compact| *compact != i64::MIN);
    let hash = match compact {
        Some(compact) => {
            let size = compact.unsigned_abs();
            let hash = ((size >> 32) as i32).wrapping_mul(31).wrapping_add(size as i32);
            if compact < 0 { hash.wrapping_neg() } else { hash }
        }
        None => hash_integer(&value.unscaled),
    };
    hash.wrapping_mul(31).wrapping_add(value.scale)
}

/// The bits of a double with one pattern for NaN.
pub(crate) fn double_bits(value: f64) -> i64 {
    if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() as i64 }
}

/// The bits of a float with one pattern for NaN.
pub(crate) fn float_bits(value: f32) -> i32 {
    if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() as i32 }
}

/// The order of doubles in Java: -0.0 before 0.0, NaN last.
pub(crate) fn compare_doubles(a: f64, b: f64) -> Ordering {
    if a < b {
        Ordering::Less
    } else if a > b {
        Ordering::Greater
    } else {
        double_bits(a).cmp(&double_bits(b))
    }
}

impl Machine<'_> {
    /// `hashCode()`
    pub fn hash(&mut self, value: Value) -> Result<i32> {
        self.step(1)?;
        Ok(match value {
            Value::Null => 0,
            Value::Bool(value) => {
                if value {
                    1231
                } else {
                    1237
                }
            }
            Value::Byte(value) => value.into(),
            Value::Short(value) => value.into(),
            Value::Char(value) => value.into(),
            Value::Int(value) => value,
            Value::Long(value) => hash_long(value),
            Value::Float(value) => float_bits(value),
            Value::Double(value) => hash_long(double_bits(value)),
            Value::Ref(at) => {
                self.step_bytes(self.whole_size(value))?;
                let inner: Vec<Value> = match self.peek(value) {
                    Some(Object::Text(units)) => return Ok(rolling(0, units.iter().map(|unit| i32::from(*unit)))),
                    Some(Object::Integer(value)) => return Ok(hash_integer(value)),
                    Some(Object::Decimal(value)) => return Ok(hash_decimal(value)),
                    Some(Object::Uuid(bytes)) => {
                        let both = u128::from_be_bytes(*bytes);
                        return Ok(hash_long(((both >> 64) as u64 ^ both as u64) as i64));
                    }
                    Some(Object::Date(millis)) => return Ok(hash_long(*millis)),
                    Some(Object::LocalDate(days)) => return Ok(*days),
                    Some(Object::Inet(bytes)) => {
                        let words = bytes.chunks(4).map(|word| {
                            word.iter().fold(0i32, |sum, byte| {
                                // four bytes of an IPv4 address are unsigned, of an IPv6 address
                                // signed
                                let byte = if bytes.len() == 4 { i32::from(*byte) } else { i32::from(*byte as i8) };
                                (sum << 8).wrapping_add(byte)
                            })
                        });
                        return Ok(words.fold(0, i32::wrapping_add));
                    }
                    Some(Object::Buffer(buffer)) => {
                        let bytes = buffer.bytes.get(buffer.position..buffer.limit).unwrap_or_default();
                        return Ok(rolling(1, bytes.iter().rev().map(|byte| i32::from(*byte as i8))));
                    }
                    Some(Object::Duration(value)) => {
                        let parts = [value.months, value.days, hash_long(value.nanoseconds)];
                        return Ok(rolling(1, parts.into_iter()));
                    }
                    Some(Object::List(items)) => items.items.clone(),
                    Some(Object::Optional(of)) => return self.hash(*of),
                    Some(Object::Entry(_, key, of)) => {
                        let (key, of) = (*key, *of);
                        return Ok(self.hash(key)? ^ self.hash(of)?);
                    }
                    Some(Object::Set(table)) => {
                        let keys = table.entries();
                        return self.nested(|machine| {
                            keys.iter().try_fold(0i32, |sum, (key, _)| Ok(sum.wrapping_add(machine.hash(*key)?)))
                        });
                    }
                    Some(Object::Map(table)) => {
                        let entries = table.entries();
                        return self.nested(|machine| {
                            entries.iter().try_fold(0i32, |sum, (key, value)| {
                                Ok(sum.wrapping_add(machine.hash(*key)? ^ machine.hash(*value)?))
                            })
                        });
                    }
                    // the hash by identity is any number; ours is the same in each run
                    _ => return Ok(at as i32),
                };
                self.nested(|machine| {
                    let mut hash = 1i32;
                    for item in inner {
                        hash = hash.wrapping_mul(31).wrapping_add(machine.hash(item)?);
                    }
                    Ok(hash)
                })?
            }
        })
    }

    /// `equals`; nulls are equal.
    pub fn equal(&mut self, a: Value, b: Value) -> Result<bool> {
        self.step(1)?;
        let (Value::Ref(x), Value::Ref(y)) = (a, b) else {
            return Ok(match (a, b) {
                (Value::Float(a), Value::Float(b)) => float_bits(a) == float_bits(b),
                (Value::Double(a), Value::Double(b)) => double_bits(a) == double_bits(b),
                (a, b) => a == b,
            });
        };
        if x == y {
            return Ok(true);
        }
        self.step_bytes(self.whole_size(a).min(self.whole_size(b)))?;
        let (Some(left), Some(right)) = (self.peek(a), self.peek(b)) else { return Ok(false) };
        Ok(match (left, right) {
            (Object::Text(a), Object::Text(b)) => a == b,
            (Object::Integer(a), Object::Integer(b)) => a == b,
            (Object::Decimal(a), Object::Decimal(b)) => a == b,
            (Object::Rounding(a), Object::Rounding(b)) => a == b,
            (Object::Uuid(a), Object::Uuid(b)) => a == b,
            (Object::Inet(a), Object::Inet(b)) => a == b,
            (Object::Date(a), Object::Date(b)) => a == b,
            (Object::LocalDate(a), Object::LocalDate(b)) => a == b,
            (Object::Duration(a), Object::Duration(b)) => a == b,
            (Object::Buffer(a), Object::Buffer(b)) => {
                a.bytes.get(a.position..a.limit) == b.bytes.get(b.position..b.limit)
            }
            (Object::Tuple(t, a), Object::Tuple(u, b)) => t == u && a == b,
            (Object::Udt(t, a), Object::Udt(u, b)) => t == u && a == b,
            (Object::Optional(a), Object::Optional(b)) => {
                let (a, b) = (*a, *b);
                self.equal(a, b)?
            }
            (Object::Entry(_, k, v), Object::Entry(_, l, w)) => {
                let (k, v, l, w) = (*k, *v, *l, *w);
                self.equal(k, l)? && self.equal(v, w)?
            }
            (Object::List(a), Object::List(b)) => {
                if a.items.len() != b.items.len() {
                    return Ok(false);
                }
                let pairs: Vec<_> = a.items.iter().copied().zip(b.items.iter().copied()).collect();
                self.nested(|machine| {
                    for (a, b) in pairs {
                        if !machine.equal(a, b)? {
                            return Ok(false);
                        }
                    }
                    Ok(true)
                })?
            }
            (Object::Set(x), Object::Set(y)) | (Object::Map(x), Object::Map(y)) => {
                if x.len() != y.len() {
                    return Ok(false);
                }
                let entries = x.entries();
                self.nested(|machine| {
                    for (key, value) in entries {
                        match machine.table_get(b, key)? {
                            Some(other) if machine.equal(value, other)? => {}
                            _ => return Ok(false),
                        }
                    }
                    Ok(true)
                })?
            }
            _ => false,
        })
    }

    /// `compareTo`
    pub fn compare(&mut self, a: Value, b: Value) -> Result<Ordering> {
        self.step(1)?;
        self.step_bytes(self.whole_size(a).min(self.whole_size(b)))?;
        if let (Some(Object::Decimal(x)), Some(Object::Decimal(y))) = (self.peek(a), self.peek(b)) {
            let bits = x.unscaled.bits().max(y.unscaled.bits());
            self.step_digits(bits)?;
        }
        Ok(match (a, b) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(&b),
            (Value::Byte(a), Value::Byte(b)) => a.cmp(&b),
            (Value::Short(a), Value::Short(b)) => a.cmp(&b),
            (Value::Char(a), Value::Char(b)) => a.cmp(&b),
            (Value::Int(a), Value::Int(b)) => a.cmp(&b),
            (Value::Long(a), Value::Long(b)) => a.cmp(&b),
            (Value::Float(a), Value::Float(b)) => compare_doubles(a.into(), b.into()),
            (Value::Double(a), Value::Double(b)) => compare_doubles(a, b),
            _ => match (self.peek(a), self.peek(b)) {
                (Some(Object::Text(a)), Some(Object::Text(b))) => a.cmp(b),
                (Some(Object::Integer(a)), Some(Object::Integer(b))) => a.cmp(b),
                (Some(Object::Decimal(x)), Some(Object::Decimal(y))) => {
                    let ty = CqlType::Decimal;
                    types::compare(&ty, &x.encode(), &y.encode())
                }
                (Some(Object::Date(a)), Some(Object::Date(b))) => a.cmp(b),
                (Some(Object::Rounding(a)), Some(Object::Rounding(b))) => a.cmp(b),
                // both halves are signed
                (Some(Object::Uuid(a)), Some(Object::Uuid(b))) => {
                    let halves = |bytes: &[u8; 16]| {
                        let both = u128::from_be_bytes(*bytes);
                        ((both >> 64) as i64, both as i64)
                    };
                    halves(a).cmp(&halves(b))
                }
                (Some(Object::Buffer(a)), Some(Object::Buffer(b))) => a.signed().cmp(b.signed()),
                (None, _) if a == Value::Null => return self.null_pointer(),
                (_, None) if b == Value::Null => return self.null_pointer(),
                _ => return self.wrong_class(b, &self.class_of(a).map(JavaClass::full_name).unwrap_or_default()),
            },
        })
    }

    /// Compares by a comparator; null: by the natural order.
    pub fn compare_by(&mut self, comparator: Value, a: Value, b: Value) -> Result<Ordering> {
        match self.peek(comparator) {
            None => self.compare(a, b),
            Some(Object::Comparator(order)) => {
                let order = *order;
                self.nested(|machine| match order {
                    Order::Natural => machine.compare(a, b),
                    Order::Reversed(of) => Ok(machine.compare_by(of, b, a)?),
                    Order::By(key, of) => {
                        let (a, b) = (machine.invoke(key, &[a])?, machine.invoke(key, &[b])?);
                        machine.compare_by(of, a, b)
                    }
                    Order::Then(first, second) => match machine.compare_by(first, a, b)? {
                        Ordering::Equal => machine.compare_by(second, a, b),
                        decided => Ok(decided),
                    },
                })
            }
            Some(_) => {
                let order = self.invoke(comparator, &[a, b])?;
                Ok(self.int(order)?.cmp(&0))
            }
        }
    }

    fn table(&mut self, table: Value) -> Result<&mut Table> {
        if !matches!(self.peek(table), Some(Object::Set(_) | Object::Map(_))) {
            return self.wrong_class(table, "java.util.Map");
        }
        match self.object(table)? {
            Object::Set(table) | Object::Map(table) => Ok(table),
            _ => Err(super::Stop::Depth),
        }
    }

    /// The place of a key in a sorted table.
    pub fn rank(&mut self, table: Value, key: Value) -> Result<std::result::Result<usize, usize>> {
        let (comparator, mut from, mut to) = {
            let table = self.table(table)?;
            (table.comparator, 0, table.sorted.len())
        };
        if to == 0 {
            // a key that cannot be compared is refused in an empty table too
            self.compare_by(comparator, key, key)?;
        }
        while from < to {
            let middle = (from + to) / 2;
            let other = self.table(table)?.sorted[middle].0;
            match self.compare_by(comparator, key, other)? {
                Ordering::Less => to = middle,
                Ordering::Greater => from = middle + 1,
                Ordering::Equal => return Ok(Ok(middle)),
            }
        }
        Ok(Err(from))
    }

    /// The place of a key in a hash table, with the spread hash.
    fn find(&mut self, table: Value, key: Value) -> Result<(i32, Option<u64>)> {
        let hash = spread(self.hash(key)?);
        let near: Vec<(u64, Value)> = self
            .table(table)?
            .entries
            .range((hash, 0)..=(hash, u64::MAX))
            .map(|((_, age), (key, _))| (*age, *key))
            .collect();
        for (age, other) in near {
            if self.equal(key, other)? {
                return Ok((hash, Some(age)));
            }
        }
        Ok((hash, None))
    }

    /// The value of a key; None: the key is not there.
    pub fn table_get(&mut self, table: Value, key: Value) -> Result<Option<Value>> {
        if self.table(table)?.kind == Kind::Tree {
            let rank = self.rank(table, key)?;
            return Ok(rank.ok().and_then(|at| self.objects_table(table)?.sorted.get(at)).map(|(_, value)| *value));
        }
        let (hash, age) = self.find(table, key)?;
        Ok(age.and_then(|age| self.objects_table(table)?.entries.get(&(hash, age))).map(|(_, value)| *value))
    }

    fn objects_table(&self, table: Value) -> Option<&Table> {
        match self.peek(table) {
            Some(Object::Set(table) | Object::Map(table)) => Some(table),
            _ => None,
        }
    }

    fn writable(&mut self, table: Value) -> Result<()> {
        if self.table(table)?.kind == Kind::Fixed {
            return self.throw_with(JavaClass::UnsupportedOperationException, Value::Null);
        }
        Ok(())
    }

    /// Puts a value; the result is the value before, None: the key is new.
    pub fn table_put(&mut self, table: Value, key: Value, value: Value) -> Result<Option<Value>> {
        self.writable(table)?;
        self.table_fill(table, key, value)
    }

    /// Puts a value, into a table that bodies cannot change too.
    pub fn table_fill(&mut self, table: Value, key: Value, value: Value) -> Result<Option<Value>> {
        /// Bytes of an entry with its share of the tree around it.
        const ENTRY_SIZE: usize = 96;
        self.charge(ENTRY_SIZE)?;
        if self.table(table)?.kind == Kind::Tree {
            let rank = self.rank(table, key)?;
            let found = self.table(table)?;
            return Ok(match rank {
                Ok(at) => Some(std::mem::replace(&mut found.sorted[at].1, value)),
                Err(at) => {
                    found.sorted.insert(at, (key, value));
                    found.changes += 1;
                    None
                }
            });
        }
        let (hash, age) = self.find(table, key)?;
        let found = self.table(table)?;
        if let Some(entry) = age.and_then(|age| found.entries.get_mut(&(hash, age))) {
            return Ok(Some(std::mem::replace(&mut entry.1, value)));
        }
        found.age += 1;
        found.changes += 1;
        let age = found.age;
        found.entries.insert((hash, age), (key, value));
        // more than three quarters of the buckets
        if found.entries.len() as u64 * 4 > found.capacity * 3 && found.capacity < CAPACITY_MAX {
            found.capacity *= 2;
        }
        Ok(None)
    }

    /// Takes a key away; the result is its value.
    pub fn table_remove(&mut self, table: Value, key: Value) -> Result<Option<Value>> {
        self.writable(table)?;
        let removed = if self.table(table)?.kind == Kind::Tree {
            let rank = self.rank(table, key)?;
            let found = self.table(table)?;
            rank.ok().map(|at| found.sorted.remove(at).1)
        } else {
            let (hash, age) = self.find(table, key)?;
            let found = self.table(table)?;
            age.and_then(|age| found.entries.remove(&(hash, age))).map(|(_, value)| value)
        };
        if removed.is_some() {
            self.table(table)?.changes += 1;
        }
        Ok(removed)
    }

    /// A new list.
    pub fn list(&mut self, items: Vec<Value>) -> Result {
        self.alloc(Object::List(Items { kind: Sequence::Array, items, changes: 0 }))
    }

    /// The elements of a list, set, array or iterator, in order.
    pub fn items(&mut self, value: Value) -> Result<Vec<Value>> {
        let items = match self.peek(value) {
            Some(Object::List(items)) => items.items.clone(),
            Some(Object::Set(table)) => table.entries().into_iter().map(|(key, _)| key).collect(),
            Some(Object::Array(_, items)) => items.clone(),
            _ => return self.wrong_class(value, "java.util.Collection"),
        };
        self.step(items.len())?;
        self.charge(items.len() * 16)?;
        Ok(items)
    }

    /// Number of structural changes of a collection so far.
    pub fn changes(&self, value: Value) -> u32 {
        match self.peek(value) {
            Some(Object::List(items)) => items.changes,
            Some(Object::Set(table) | Object::Map(table)) => table.changes,
            _ => 0,
        }
    }
}
