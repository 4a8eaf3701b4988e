//! Java's types as far as bodies may name them: primitives, classes with their supertypes, arrays,
//! and the variables of generic signatures.

use std::fmt;

use types::CqlType;

/// A primitive type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Prim {
    Boolean,
    Byte,
    Short,
    Char,
    Int,
    Long,
    Float,
    Double,
}

impl Prim {
    pub fn name(self) -> &'static str {
        ["boolean", "byte", "short", "char", "int", "long", "float", "double"][self as usize]
    }

    pub fn from_name(name: &str) -> Option<Self> {
        use Prim::*;
        [Boolean, Byte, Short, Char, Int, Long, Float, Double].into_iter().find(|prim| prim.name() == name)
    }

    /// The class of its boxes.
    pub fn boxed(self) -> JavaClass {
        use Prim::*;
        match self {
            Boolean => JavaClass::Boolean,
            Byte => JavaClass::Byte,
            Short => JavaClass::Short,
            Char => JavaClass::Character,
            Int => JavaClass::Integer,
            Long => JavaClass::Long,
            Float => JavaClass::Float,
            Double => JavaClass::Double,
        }
    }

    pub fn is_numeric(self) -> bool {
        self != Prim::Boolean
    }

    pub fn is_integral(self) -> bool {
        matches!(self, Prim::Byte | Prim::Short | Prim::Char | Prim::Int | Prim::Long)
    }

    /// Whether a value is widened to `to` without a cast (JLS 5.1.2), itself included.
    pub fn widens_to(self, to: Self) -> bool {
        use Prim::*;
        match (self, to) {
            (Boolean, _) | (_, Boolean) => self == to,
            (Char, Char) => true,
            (Char, _) => to >= Int,
            (_, Char) => false,
            _ => self <= to,
        }
    }
}

macro_rules! classes {
    ($($variant:ident $package:literal $name:literal [$($parent:ident),*],)*) => {
        /// A class or an interface that bodies may name.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub(crate) enum JavaClass { $($variant,)* }

        impl JavaClass {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The package.
            pub fn package(self) -> &'static str {
                match self { $(Self::$variant => $package,)* }
            }

            /// The name without the package.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The direct supertypes, without Object.
            pub fn parents(self) -> &'static [Self] {
                match self { $(Self::$variant => &[$(Self::$parent),*],)* }
            }
        }
    };
}

const TYPES: &str = "org.apache.cassandra.cql3.functions.types";

classes! {
    Object "java.lang" "Object" [],
    Comparable "java.lang" "Comparable" [],
    CharSequence "java.lang" "CharSequence" [],
    String "java.lang" "String" [CharSequence, Comparable],
    StringBuilder "java.lang" "StringBuilder" [CharSequence],
    StringBuffer "java.lang" "StringBuffer" [CharSequence],
    Number "java.lang" "Number" [],
    Boolean "java.lang" "Boolean" [Comparable],
    Byte "java.lang" "Byte" [Number, Comparable],
    Short "java.lang" "Short" [Number, Comparable],
    Character "java.lang" "Character" [Comparable],
    Integer "java.lang" "Integer" [Number, Comparable],
    Long "java.lang" "Long" [Number, Comparable],
    Float "java.lang" "Float" [Number, Comparable],
    Double "java.lang" "Double" [Number, Comparable],
    Math "java.lang" "Math" [],
    StrictMath "java.lang" "StrictMath" [],
    BigInteger "java.math" "BigInteger" [Number, Comparable],
    BigDecimal "java.math" "BigDecimal" [Number, Comparable],
    RoundingMode "java.math" "RoundingMode" [Comparable],
    Iterable "java.lang" "Iterable" [],
    Collection "java.util" "Collection" [Iterable],
    List "java.util" "List" [Collection],
    ArrayList "java.util" "ArrayList" [List],
    LinkedList "java.util" "LinkedList" [List],
    Set "java.util" "Set" [Collection],
    HashSet "java.util" "HashSet" [Set],
    LinkedHashSet "java.util" "LinkedHashSet" [HashSet],
    TreeSet "java.util" "TreeSet" [Set],
    Map "java.util" "Map" [],
    HashMap "java.util" "HashMap" [Map],
    LinkedHashMap "java.util" "LinkedHashMap" [HashMap],
    TreeMap "java.util" "TreeMap" [Map],
    MapEntry "java.util" "Map.Entry" [],
    Iterator "java.util" "Iterator" [],
    Collections "java.util" "Collections" [],
    Arrays "java.util" "Arrays" [],
    Objects "java.util" "Objects" [],
    Optional "java.util" "Optional" [],
    Uuid "java.util" "UUID" [Comparable],
    Date "java.util" "Date" [Comparable],
    InetAddress "java.net" "InetAddress" [],
    ByteBuffer "java.nio" "ByteBuffer" [Comparable],
    LocalDate "org.apache.cassandra.cql3.functions.types" "LocalDate" [],
    Duration "org.apache.cassandra.cql3.functions.types" "Duration" [],
    TupleValue "org.apache.cassandra.cql3.functions.types" "TupleValue" [],
    UdtValue "org.apache.cassandra.cql3.functions.types" "UDTValue" [],
    UdfContext "org.apache.cassandra.cql3.functions" "UDFContext" [],
    Comparator "java.util" "Comparator" [],
    Function "java.util.function" "Function" [],
    BiFunction "java.util.function" "BiFunction" [],
    UnaryOperator "java.util.function" "UnaryOperator" [],
    BinaryOperator "java.util.function" "BinaryOperator" [],
    Predicate "java.util.function" "Predicate" [],
    Consumer "java.util.function" "Consumer" [],
    BiConsumer "java.util.function" "BiConsumer" [],
    Supplier "java.util.function" "Supplier" [],
    Throwable "java.lang" "Throwable" [],
    Error "java.lang" "Error" [Throwable],
    Exception "java.lang" "Exception" [Throwable],
    RuntimeException "java.lang" "RuntimeException" [Exception],
    ArithmeticException "java.lang" "ArithmeticException" [RuntimeException],
    ArrayStoreException "java.lang" "ArrayStoreException" [RuntimeException],
    ClassCastException "java.lang" "ClassCastException" [RuntimeException],
    IllegalArgumentException "java.lang" "IllegalArgumentException" [RuntimeException],
    IllegalStateException "java.lang" "IllegalStateException" [RuntimeException],
    NumberFormatException "java.lang" "NumberFormatException" [IllegalArgumentException],
    IndexOutOfBoundsException "java.lang" "IndexOutOfBoundsException" [RuntimeException],
    ArrayIndexOutOfBoundsException "java.lang" "ArrayIndexOutOfBoundsException" [IndexOutOfBoundsException],
    StringIndexOutOfBoundsException "java.lang" "StringIndexOutOfBoundsException" [IndexOutOfBoundsException],
    NegativeArraySizeException "java.lang" "NegativeArraySizeException" [RuntimeException],
    NullPointerException "java.lang" "NullPointerException" [RuntimeException],
    UnsupportedOperationException "java.lang" "UnsupportedOperationException" [RuntimeException],
    ConcurrentModificationException "java.util" "ConcurrentModificationException" [RuntimeException],
    NoSuchElementException "java.util" "NoSuchElementException" [RuntimeException],
    BufferUnderflowException "java.nio" "BufferUnderflowException" [RuntimeException],
    BufferOverflowException "java.nio" "BufferOverflowException" [RuntimeException],
    InvalidMarkException "java.nio" "InvalidMarkException" [IllegalStateException],
    InvalidTypeException "org.apache.cassandra.cql3.functions.types.exceptions" "InvalidTypeException" [RuntimeException],
    CodecNotFoundException "org.apache.cassandra.cql3.functions.types.exceptions" "CodecNotFoundException" [RuntimeException],
}

impl JavaClass {
    /// The name with its package.
    pub fn full_name(self) -> String {
        format!("{}.{}", self.package(), self.name().replace('.', "$"))
    }

    /// Whether the class is `other` or one of its subtypes.
    pub fn is_a(self, other: Self) -> bool {
        self == other || other == Self::Object || self.parents().iter().any(|parent| parent.is_a(other))
    }

    /// Whether bodies name it without its package: the imports of the class that Cassandra makes.
    fn is_imported(self) -> bool {
        matches!(self.package(), "java.lang" | "java.util" | TYPES | "org.apache.cassandra.cql3.functions")
            || self == Self::ByteBuffer
    }

    /// The class of a name as written, with or without its package.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.replace("com.datastax.driver.core.", "org.apache.cassandra.cql3.functions.types.");
        Self::ALL.iter().copied().find(|class| {
            class.is_imported() && class.name() == name
                || name.strip_suffix(class.name()).and_then(|rest| rest.strip_suffix('.')) == Some(class.package())
        })
    }

    /// The primitive type of the boxes of this class.
    pub fn unboxed(self) -> Option<Prim> {
        use Prim::*;
        [Boolean, Byte, Short, Char, Int, Long, Float, Double].into_iter().find(|prim| prim.boxed() == self)
    }

    /// Number of type parameters.
    pub fn arity(self) -> usize {
        use JavaClass as C;
        match self {
            C::Map | C::HashMap | C::LinkedHashMap | C::TreeMap | C::MapEntry | C::Function | C::BiConsumer => 2,
            C::BiFunction => 3,
            C::Iterable | C::Iterator | C::Optional | C::Comparator | C::UnaryOperator | C::BinaryOperator => 1,
            C::Predicate | C::Consumer | C::Supplier | C::Comparable => 1,
            _ if self.is_a(C::Collection) => 1,
            _ => 0,
        }
    }

    /// Whether `new` makes objects of it.
    pub fn is_throwable(self) -> bool {
        self.is_a(Self::Throwable)
    }
}

/// A static type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    Void,
    /// The type of `null`.
    Null,
    Prim(Prim),
    /// A class with its type arguments; none: raw, or without parameters.
    Class(JavaClass, Vec<Type>),
    Array(Box<Type>),
    /// A variable of a signature: 0 and 1 (2) are those of the class, the others of the method.
    Var(u8),
}

pub(crate) const INT: Type = Type::Prim(Prim::Int);
pub(crate) const LONG: Type = Type::Prim(Prim::Long);
pub(crate) const BOOLEAN: Type = Type::Prim(Prim::Boolean);

impl Type {
    pub fn of(class: JavaClass) -> Self {
        Self::Class(class, Vec::new())
    }

    pub fn object() -> Self {
        Self::of(JavaClass::Object)
    }

    pub fn prim(&self) -> Option<Prim> {
        match self {
            Self::Prim(prim) => Some(*prim),
            _ => None,
        }
    }

    pub fn class(&self) -> Option<JavaClass> {
        match self {
            Self::Class(class, _) => Some(*class),
            _ => None,
        }
    }

    /// Its primitive type after unboxing.
    pub fn unboxed(&self) -> Option<Prim> {
        match self {
            Self::Prim(prim) => Some(*prim),
            Self::Class(class, _) => class.unboxed(),
            _ => None,
        }
    }

    /// Itself, or the class of its boxes.
    pub fn boxed(&self) -> Self {
        match self {
            Self::Prim(prim) => Self::of(prim.boxed()),
            other => other.clone(),
        }
    }

    pub fn is_reference(&self) -> bool {
        !matches!(self, Self::Prim(_) | Self::Void)
    }

    pub fn is_string(&self) -> bool {
        self.class() == Some(JavaClass::String)
    }

    /// The type argument at an index; Object if there is none.
    pub fn argument(&self, at: usize) -> Self {
        match self {
            Self::Class(_, arguments) => arguments.get(at).cloned().unwrap_or_else(Self::object),
            _ => Self::object(),
        }
    }

    /// Whether a reference of this type is one of `to` without a cast. Type arguments may be
    /// narrower than those of `to`, which Java allows with wildcards only.
    pub fn is_subtype(&self, to: &Self) -> bool {
        match (self, to) {
            (Self::Null, to) => to.is_reference(),
            (Self::Class(a, args), Self::Class(b, wanted)) => {
                a.is_a(*b)
                    && (args.is_empty()
                        || wanted.is_empty()
                        || args.len() != wanted.len()
                        || args.iter().zip(wanted).all(|(a, b)| a.is_subtype(b)))
            }
            (Self::Array(a), Self::Array(b)) => a == b || a.is_reference() && a.is_subtype(b),
            (Self::Array(_), Self::Class(JavaClass::Object, _)) => true,
            (Self::Var(_), _) | (_, Self::Var(_)) => true,
            (a, b) => a == b,
        }
    }

    /// The Java type of a CQL type, as Cassandra gives it to functions.
    pub fn of_cql(ty: &CqlType, primitive: bool) -> Self {
        use CqlType as T;
        let of = |prim: Prim| if primitive { Self::Prim(prim) } else { Self::of(prim.boxed()) };
        match ty {
            T::Ascii | T::Text => Self::of(JavaClass::String),
            T::BigInt | T::Counter | T::Time => of(Prim::Long),
            T::Boolean => of(Prim::Boolean),
            T::Double => of(Prim::Double),
            T::Float => of(Prim::Float),
            T::Int => of(Prim::Int),
            T::SmallInt => of(Prim::Short),
            T::TinyInt => of(Prim::Byte),
            T::Date => Self::of(JavaClass::LocalDate),
            T::Decimal => Self::of(JavaClass::BigDecimal),
            T::Varint => Self::of(JavaClass::BigInteger),
            T::Inet => Self::of(JavaClass::InetAddress),
            T::Timestamp => Self::of(JavaClass::Date),
            T::Uuid | T::TimeUuid => Self::of(JavaClass::Uuid),
            T::Duration => Self::of(JavaClass::Duration),
            T::List { element, .. } | T::Vector { element, .. } => {
                Self::Class(JavaClass::List, vec![Self::of_cql(element, false)])
            }
            T::Set { element, .. } => Self::Class(JavaClass::Set, vec![Self::of_cql(element, false)]),
            T::Map { key, value, .. } => {
                Self::Class(JavaClass::Map, vec![Self::of_cql(key, false), Self::of_cql(value, false)])
            }
            T::Tuple(_) => Self::of(JavaClass::TupleValue),
            T::Udt(..) => Self::of(JavaClass::UdtValue),
            _ => Self::of(JavaClass::ByteBuffer),
        }
    }

    /// Parameters and result of the method of a functional interface.
    pub fn shape(&self) -> Option<(Vec<Self>, Self)> {
        use JavaClass as C;
        let arg = |at| self.argument(at);
        Some(match self.class()? {
            C::Function => (vec![arg(0)], arg(1)),
            C::BiFunction => (vec![arg(0), arg(1)], arg(2)),
            C::UnaryOperator => (vec![arg(0)], arg(0)),
            C::BinaryOperator => (vec![arg(0), arg(0)], arg(0)),
            C::Predicate => (vec![arg(0)], BOOLEAN),
            C::Consumer => (vec![arg(0)], Self::Void),
            C::BiConsumer => (vec![arg(0), arg(1)], Self::Void),
            C::Supplier => (vec![], arg(0)),
            C::Comparator => (vec![arg(0), arg(0)], INT),
            _ => return None,
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Void => f.write_str("void"),
            Self::Null => f.write_str("null"),
            Self::Prim(prim) => f.write_str(prim.name()),
            Self::Class(class, arguments) => {
                f.write_str(class.name())?;
                for (at, argument) in arguments.iter().enumerate() {
                    write!(f, "{}{argument}", if at == 0 { "<" } else { "," })?;
                }
                f.write_str(if arguments.is_empty() { "" } else { ">" })
            }
            Self::Array(element) => write!(f, "{element}[]"),
            Self::Var(at) => write!(f, "T{at}"),
        }
    }
}
