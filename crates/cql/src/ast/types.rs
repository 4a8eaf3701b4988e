//! Types as written in a statement, not yet looked up.
//!
//! Must agree with: Cassandra's `comparatorType` rule and `CQL3Type.Raw`.

use std::borrow::Cow;
use std::fmt;

use super::QualifiedName;

/// A type as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeName<'a> {
    /// `int`, `text`, …
    Native(NativeType),
    /// `list<…>`.
    List(Box<TypeName<'a>>),
    /// `set<…>`.
    Set(Box<TypeName<'a>>),
    /// `map<…, …>`.
    Map(Box<TypeName<'a>>, Box<TypeName<'a>>),
    /// `tuple<…>`.
    Tuple(Vec<TypeName<'a>>),
    /// `vector<element, dimension>`. The dimension is not yet checked to be positive.
    Vector(Box<TypeName<'a>>, i32),
    /// `frozen<…>`.
    Frozen(Box<TypeName<'a>>),
    /// Any other name: a user-defined type.
    User(Box<QualifiedName<'a>>),
    /// `'class name'`: a type given by the name of Cassandra's class.
    Custom(Cow<'a, str>),
}

impl TypeName<'_> {
    /// Whether it is `counter`.
    pub fn is_counter(&self) -> bool {
        matches!(self, TypeName::Native(NativeType::Counter))
    }
}

/// As the statement would be written again, in lower case.
impl fmt::Display for TypeName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeName::Native(native) => f.write_str(native.name()),
            TypeName::List(element) => write!(f, "list<{element}>"),
            TypeName::Set(element) => write!(f, "set<{element}>"),
            TypeName::Map(key, value) => write!(f, "map<{key}, {value}>"),
            TypeName::Tuple(elements) => {
                f.write_str("tuple<")?;
                super::term::write_separated(f, elements)?;
                f.write_str(">")
            }
            TypeName::Vector(element, dimension) => write!(f, "vector<{element}, {dimension}>"),
            TypeName::Frozen(inner) => write!(f, "frozen<{inner}>"),
            TypeName::User(name) => write!(f, "{name}"),
            TypeName::Custom(class) => write!(f, "'{class}'"),
        }
    }
}

macro_rules! native_types {
    ($($variant:ident $name:literal),* $(,)?) => {
        /// A type with a name of its own in the grammar.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum NativeType {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl NativeType {
            /// Every native type.
            pub const ALL: &'static [NativeType] = &[$(NativeType::$variant),*];

            /// Its name in CQL. `varchar` keeps its own name: it is a synonym of `text`.
            pub fn name(self) -> &'static str {
                match self {
                    $(NativeType::$variant => $name,)*
                }
            }
        }
    };
}

native_types! {
    Ascii "ascii", Bigint "bigint", Blob "blob", Boolean "boolean", Counter "counter", Date "date",
    Decimal "decimal", Double "double", Duration "duration", Float "float", Inet "inet", Int "int",
    Smallint "smallint", Text "text", Time "time", Timestamp "timestamp", Timeuuid "timeuuid",
    Tinyint "tinyint", Uuid "uuid", Varchar "varchar", Varint "varint",
}
