//! The types of CQL, and the few that exist only by class name. Agrees with `org.apache.cassandra.db.marshal`.

use std::sync::Arc;

/// A type. Frozen or not matters for collections and user types only.
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
    /// No bytes at all: the value column of key-only compact tables.
    Empty,
    /// list<element>
    List {
        /// Of what.
        element: Arc<CqlType>,
        /// One value instead of cell by cell.
        frozen: bool,
    },
    /// set<element>
    Set {
        /// Of what.
        element: Arc<CqlType>,
        /// One value instead of cell by cell.
        frozen: bool,
    },
    /// map<key, value>
    Map {
        /// Keys.
        key: Arc<CqlType>,
        /// Values.
        value: Arc<CqlType>,
        /// One value instead of cell by cell.
        frozen: bool,
    },
    /// tuple<…>, always frozen.
    Tuple(Arc<[CqlType]>),
    /// A user type; true: frozen.
    Udt(Arc<UserType>, bool),
    /// vector<element, dimension>
    Vector {
        /// Of what.
        element: Arc<CqlType>,
        /// How many.
        dimension: u32,
    },
    /// A type by class name.
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
    /// DateType, the timestamp of old.
    LegacyDate,
    /// PartitionerDefinedOrder: a base table's partition key as clustering of an index.
    PartitionerDefinedOrder(Option<CqlType>),
    /// ReversedType where it is part of another type.
    Reversed(CqlType),
    /// Any other class: bytes.
    Unknown(String),
}

/// A user type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct UserType {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// Names and types of its fields.
    pub fields: Vec<(String, CqlType)>,
}

impl CqlType {
    /// Stored cell by cell.
    pub fn is_multi_cell(&self) -> bool {
        match self {
            Self::List { frozen, .. } | Self::Set { frozen, .. } | Self::Map { frozen, .. } | Self::Udt(_, frozen) => {
                !frozen
            }
            _ => false,
        }
    }

    /// List, set or map.
    pub fn is_collection(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Set { .. } | Self::Map { .. })
    }

    /// A counter.
    pub fn is_counter(&self) -> bool {
        matches!(self, Self::Counter)
    }

    /// Length of every value, where SSTables write no length: the table in docs/formats. None: lengths are written.
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
}
