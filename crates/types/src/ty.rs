//! The types of CQL, and the few that exist by class name only. Agrees with
//! `org.apache.cassandra.db.marshal`.

use std::sync::Arc;

/// A type. `frozen` is kept for collections and user types only; other types have no two forms.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum CqlType {
    /// 7-bit text.
    Ascii,
    /// i64.
    BigInt,
    /// Bytes.
    Blob,
    /// One byte.
    Boolean,
    /// A counter: i64 to clients, a context of shards on disk.
    Counter,
    /// i32 scale and varint.
    Decimal,
    /// f64.
    Double,
    /// f32.
    Float,
    /// i32.
    Int,
    /// UTF-8.
    Text,
    /// i64 milliseconds since 1970.
    Timestamp,
    /// 16 bytes.
    Uuid,
    /// Minimal two's complement.
    Varint,
    /// 16 bytes, version 1.
    TimeUuid,
    /// 4 or 16 bytes.
    Inet,
    /// u32 days, 2^31 is 1970-01-01.
    Date,
    /// i64 nanoseconds since midnight.
    Time,
    /// i16.
    SmallInt,
    /// i8.
    TinyInt,
    /// Months, days, nanoseconds as signed variable-length integers.
    Duration,
    /// No bytes at all: the value column of compact tables that have only keys.
    Empty,
    /// list<element>
    List {
        /// The type of an element.
        element: Arc<CqlType>,
        /// Whether the list is stored as one value; false: cell by cell.
        frozen: bool,
    },
    /// set<element>
    Set {
        /// The type of an element.
        element: Arc<CqlType>,
        /// Whether the set is stored as one value; false: cell by cell.
        frozen: bool,
    },
    /// map<key, value>
    Map {
        /// The type of keys.
        key: Arc<CqlType>,
        /// The type of values.
        value: Arc<CqlType>,
        /// Whether the map is stored as one value; false: cell by cell.
        frozen: bool,
    },
    /// tuple<…>, always frozen.
    Tuple(Arc<[CqlType]>),
    /// A user type. The flag: it is frozen, that is, stored as one value.
    Udt(Arc<UserType>, bool),
    /// vector<element, dimension>
    Vector {
        /// The type of an element.
        element: Arc<CqlType>,
        /// Number of elements.
        dimension: u32,
    },
    /// A type that CQL names by its class only.
    Custom(Arc<CustomType>),
}

/// Types that CQL names by class only.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum CustomType {
    /// CompositeType.
    Composite(Vec<CqlType>),
    /// DynamicCompositeType with its aliases.
    DynamicComposite(Vec<(u8, CqlType)>),
    /// LexicalUUIDType.
    LexicalUuid,
    /// DateType, the former timestamp, whose order is unsigned.
    LegacyDate,
    /// PartitionerDefinedOrder: the partition key of a base table as clustering of an index.
    PartitionerDefinedOrder(Option<CqlType>),
    /// ReversedType inside of another type.
    Reversed(CqlType),
    /// Any other class; its values are bytes.
    Unknown(String),
}

/// A user type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct UserType {
    /// The keyspace that it belongs to.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// Names and types of its fields.
    pub fields: Vec<(String, CqlType)>,
}

impl CqlType {
    /// Whether a column of this type is stored cell by cell.
    pub fn is_multi_cell(&self) -> bool {
        match self {
            Self::List { frozen, .. } | Self::Set { frozen, .. } | Self::Map { frozen, .. } | Self::Udt(_, frozen) => {
                !frozen
            }
            _ => false,
        }
    }

    /// Whether the type is a list, set or map.
    pub fn is_collection(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Set { .. } | Self::Map { .. })
    }

    /// Whether the type is a counter.
    pub fn is_counter(&self) -> bool {
        matches!(self, Self::Counter)
    }

    /// Length of every value of a type for which SSTables write no length (table in
    /// docs/formats/types.md). None: lengths are written.
    pub fn fixed_length(&self) -> Option<usize> {
        match self {
            Self::Boolean => Some(1),
            Self::Int | Self::Float => Some(4),
            Self::BigInt | Self::Double | Self::Timestamp => Some(8),
            Self::Uuid | Self::TimeUuid => Some(16),
            Self::Empty => Some(0),
            Self::Vector { element, dimension } => {
                element.fixed_length().and_then(|length| length.checked_mul(usize::try_from(*dimension).ok()?))
            }
            Self::Custom(custom) => match custom.as_ref() {
                CustomType::LexicalUuid => Some(16),
                CustomType::LegacyDate => Some(8),
                CustomType::Reversed(ty) => ty.fixed_length(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The type stored as one value: frozen, like every type inside it. The fields of a user type
    /// stay as they were declared.
    pub fn freeze(&self) -> Self {
        let inner = |ty: &Arc<Self>| Arc::new(ty.freeze());
        match self {
            Self::List { element, .. } => Self::List { element: inner(element), frozen: true },
            Self::Set { element, .. } => Self::Set { element: inner(element), frozen: true },
            Self::Map { key, value, .. } => Self::Map { key: inner(key), value: inner(value), frozen: true },
            Self::Udt(udt, _) => Self::Udt(Arc::clone(udt), true),
            other => other.clone(),
        }
    }

    /// Whether a value of zero length is accepted.
    pub fn allows_empty(&self) -> bool {
        match self {
            Self::TinyInt | Self::SmallInt | Self::Date | Self::Time | Self::Duration => false,
            Self::List { .. } | Self::Set { .. } | Self::Map { .. } | Self::Vector { .. } => false,
            Self::Custom(custom) => match custom.as_ref() {
                CustomType::Reversed(ty) => ty.allows_empty(),
                _ => true,
            },
            _ => true,
        }
    }

    /// Whether an empty value differs from no value: the empty text, blob, tuple. For other types
    /// it reads as no value.
    pub fn empty_is_meaningful(&self) -> bool {
        match self {
            Self::Text | Self::Ascii | Self::Blob | Self::Tuple(_) | Self::Udt(..) => true,
            Self::Custom(custom) => match custom.as_ref() {
                CustomType::Reversed(ty) => ty.empty_is_meaningful(),
                CustomType::LexicalUuid | CustomType::LegacyDate => false,
                _ => true,
            },
            _ => false,
        }
    }

    /// Whether the type is a duration or contains one; durations have no order.
    pub fn references_duration(&self) -> bool {
        self.any(&mut |ty| matches!(ty, Self::Duration))
    }

    /// Whether `test` is true for the type or for one inside of it. Takes as many steps as the type
    /// has parts where user types stand in full ([`crate::extent`]).
    pub fn any(&self, test: &mut dyn FnMut(&Self) -> bool) -> bool {
        self.any_within(true, test)
    }

    /// Whether `test` is true for the type or for one inside of it, where a user type is but a
    /// name: the fields of user types are left out.
    pub fn any_by_name(&self, test: &mut dyn FnMut(&Self) -> bool) -> bool {
        self.any_within(false, test)
    }

    fn any_within(&self, has_fields: bool, test: &mut dyn FnMut(&Self) -> bool) -> bool {
        if test(self) {
            return true;
        }
        match self {
            Self::List { element, .. } | Self::Set { element, .. } | Self::Vector { element, .. } => {
                element.any_within(has_fields, test)
            }
            Self::Map { key, value, .. } => key.any_within(has_fields, test) || value.any_within(has_fields, test),
            Self::Tuple(types) => types.iter().any(|ty| ty.any_within(has_fields, test)),
            Self::Udt(udt, _) => has_fields && udt.fields.iter().any(|(_, ty)| ty.any_within(has_fields, test)),
            Self::Custom(custom) => match custom.as_ref() {
                CustomType::Composite(types) => types.iter().any(|ty| ty.any_within(has_fields, test)),
                CustomType::DynamicComposite(aliases) => aliases.iter().any(|(_, ty)| ty.any_within(has_fields, test)),
                CustomType::Reversed(ty) | CustomType::PartitionerDefinedOrder(Some(ty)) => {
                    ty.any_within(has_fields, test)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// The type as CQL text, for instance `frozen<list<int>>`: see [`crate::cql_name`].
    pub fn cql_name(&self) -> String {
        crate::cql_name::print(self)
    }
}
