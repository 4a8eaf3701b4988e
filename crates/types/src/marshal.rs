//! Type expressions by class name, as in SSTable headers and in the schema of custom types:
//! `org.apache.cassandra.db.marshal.MapType(org…UTF8Type,org…Int32Type)`. Agrees with `TypeParser`
//! and `AbstractType.toString`.
//!
//! Collections and user types without `FrozenType(…)` are stored cell by cell; inside of
//! `FrozenType(…)`, or inside of another type, they are one value.

use std::fmt;
use std::sync::Arc;

use crate::{CqlType, CustomType, UserType, extent};

/// The package of Cassandra's types; assumed for a class without a package.
const PACKAGE: &str = "org.apache.cassandra.db.marshal.";
/// Deepest nesting of a type expression; a deeper one is refused. The types of a table nest
/// [`extent::DEPTH_MAX`] levels deep at most; `FrozenType`, `ReversedType` and the composite of a
/// key may stand around them.
const NESTING_MAX: usize = 2 * extent::DEPTH_MAX;

/// Why a type expression could not be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MarshalError {
    /// The whole expression.
    pub expression: String,
    /// Offset of the error in the expression, in bytes.
    pub offset: usize,
    /// Description of the error.
    pub what: &'static str,
}

impl fmt::Display for MarshalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "type '{}': {} at {}", self.expression, self.what, self.offset)
    }
}

impl std::error::Error for MarshalError {}

/// Reads a type expression; the flag says whether it was `ReversedType(…)`.
pub fn parse(expression: &str) -> Result<(CqlType, bool), MarshalError> {
    let mut parser = Parser { text: expression, offset: 0, depth: 0 };
    let parsed = parser.top();
    match parsed {
        Ok(parsed) if parser.rest().trim().is_empty() => Ok(parsed),
        Ok(_) => Err(parser.error("something follows the type")),
        Err(what) => Err(parser.error(what)),
    }
}

struct Parser<'a> {
    text: &'a str,
    offset: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, what: &'static str) -> MarshalError {
        MarshalError { expression: self.text.to_owned(), offset: self.offset, what }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.offset += rest.len() - rest.trim_start().len();
    }

    fn accept(&mut self, symbol: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(symbol);
        if found {
            self.offset += symbol.len();
        }
        found
    }

    fn expect(&mut self, symbol: &str, what: &'static str) -> Result<(), &'static str> {
        if self.accept(symbol) { Ok(()) } else { Err(what) }
    }

    fn word(&mut self) -> &'a str {
        self.blanks();
        let rest = self.rest();
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '&' | '$');
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        self.offset += end;
        &rest[..end]
    }

    fn top(&mut self) -> Result<(CqlType, bool), &'static str> {
        let start = self.offset;
        let class = self.word();
        if class.rsplit('.').next() == Some("ReversedType") {
            self.expect("(", "( expected")?;
            let ty = self.ty(true)?;
            self.expect(")", ") expected")?;
            return Ok((ty, true));
        }
        self.offset = start;
        Ok((self.ty(true)?, false))
    }

    /// `multi_cell`: collections and user types without `FrozenType` are stored cell by cell at
    /// this level.
    fn ty(&mut self, multi_cell: bool) -> Result<CqlType, &'static str> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err("types nest too deep");
        }
        let class = self.word();
        if class.is_empty() {
            return Err("a class name expected");
        }
        let simple = class.strip_prefix(PACKAGE).unwrap_or(class);
        let ty = match simple_type(simple) {
            Some(ty) => ty,
            None => self.complex_type(class, simple, multi_cell)?,
        };
        self.depth -= 1;
        Ok(ty)
    }

    fn types(&mut self) -> Result<Vec<CqlType>, &'static str> {
        self.expect("(", "( expected")?;
        let mut types = vec![self.ty(false)?];
        while self.accept(",") {
            types.push(self.ty(false)?);
        }
        self.expect(")", ") expected")?;
        Ok(types)
    }

    fn one(&mut self) -> Result<CqlType, &'static str> {
        let [ty] = <[CqlType; 1]>::try_from(self.types()?).map_err(|_| "one type expected")?;
        Ok(ty)
    }

    fn complex_type(&mut self, class: &str, simple: &str, multi_cell: bool) -> Result<CqlType, &'static str> {
        let frozen = !multi_cell;
        Ok(match simple {
            "ListType" => CqlType::List { element: Arc::new(self.one()?), frozen },
            "SetType" => CqlType::Set { element: Arc::new(self.one()?), frozen },
            "MapType" => {
                let [key, value] = <[CqlType; 2]>::try_from(self.types()?).map_err(|_| "two types expected")?;
                CqlType::Map { key: Arc::new(key), value: Arc::new(value), frozen }
            }
            "TupleType" => CqlType::Tuple(self.types()?.into()),
            "FrozenType" => self.one()?,
            "UserType" => self.user_type(frozen)?,
            "VectorType" => self.vector()?,
            "CompositeType" => CqlType::Custom(Arc::new(CustomType::Composite(self.types()?))),
            "DynamicCompositeType" => self.dynamic_composite()?,
            "ReversedType" => CqlType::Custom(Arc::new(CustomType::Reversed(self.one()?))),
            "PartitionerDefinedOrder" => self.partitioner_defined_order()?,
            _ => CqlType::Custom(Arc::new(CustomType::Unknown(class.to_owned()))),
        })
    }

    fn user_type(&mut self, frozen: bool) -> Result<CqlType, &'static str> {
        self.expect("(", "( expected")?;
        let keyspace = self.word().to_owned();
        self.expect(",", ", expected")?;
        let name = self.hex_text()?;
        let mut fields = Vec::new();
        while self.accept(",") {
            let field = self.hex_text()?;
            self.expect(":", ": expected")?;
            fields.push((field, self.ty(false)?));
        }
        self.expect(")", ") expected")?;
        Ok(CqlType::Udt(Arc::new(UserType { keyspace, name, fields }), frozen))
    }

    fn hex_text(&mut self) -> Result<String, &'static str> {
        let digits = self.word().as_bytes();
        // a number may have a sign, a byte has two digits
        if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err("hex digits expected");
        }
        let mut bytes = Vec::with_capacity(digits.len() / 2);
        for pair in digits.chunks(2) {
            let pair = std::str::from_utf8(pair).map_err(|_| "hex digits expected")?;
            bytes.push(u8::from_str_radix(pair, 16).map_err(|_| "hex digits expected")?);
        }
        String::from_utf8(bytes).map_err(|_| "a name that is not text")
    }

    fn vector(&mut self) -> Result<CqlType, &'static str> {
        self.expect("(", "( expected")?;
        let element = self.ty(false)?;
        self.expect(",", ", expected")?;
        let dimension = self.word().parse().map_err(|_| "a dimension expected")?;
        self.expect(")", ") expected")?;
        Ok(CqlType::Vector { element: Arc::new(element), dimension })
    }

    fn dynamic_composite(&mut self) -> Result<CqlType, &'static str> {
        let mut aliases = Vec::new();
        if !self.accept("(") || self.accept(")") {
            return Ok(CqlType::Custom(Arc::new(CustomType::DynamicComposite(aliases))));
        }
        loop {
            let &[alias] = self.word().as_bytes() else { return Err("an alias of one letter expected") };
            self.expect("=>", "=> expected")?;
            aliases.push((alias, self.ty(false)?));
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")", ") expected")?;
        Ok(CqlType::Custom(Arc::new(CustomType::DynamicComposite(aliases))))
    }

    fn partitioner_defined_order(&mut self) -> Result<CqlType, &'static str> {
        self.expect("(", "( expected")?;
        self.word();
        let base = if self.accept(":") { Some(self.ty(false)?) } else { None };
        self.expect(")", ") expected")?;
        Ok(CqlType::Custom(Arc::new(CustomType::PartitionerDefinedOrder(base))))
    }
}

const SIMPLE: [(&str, CqlType); 22] = [
    ("AsciiType", CqlType::Ascii),
    ("LongType", CqlType::BigInt),
    ("BytesType", CqlType::Blob),
    ("BooleanType", CqlType::Boolean),
    ("CounterColumnType", CqlType::Counter),
    ("DecimalType", CqlType::Decimal),
    ("DoubleType", CqlType::Double),
    ("FloatType", CqlType::Float),
    ("Int32Type", CqlType::Int),
    ("UTF8Type", CqlType::Text),
    ("TimestampType", CqlType::Timestamp),
    ("UUIDType", CqlType::Uuid),
    ("IntegerType", CqlType::Varint),
    ("TimeUUIDType", CqlType::TimeUuid),
    ("InetAddressType", CqlType::Inet),
    ("SimpleDateType", CqlType::Date),
    ("TimeType", CqlType::Time),
    ("ShortType", CqlType::SmallInt),
    ("ByteType", CqlType::TinyInt),
    ("DurationType", CqlType::Duration),
    ("EmptyType", CqlType::Empty),
    ("LegacyTimeUUIDType", CqlType::TimeUuid),
];

fn simple_type(simple: &str) -> Option<CqlType> {
    match simple {
        "LexicalUUIDType" => Some(CqlType::Custom(Arc::new(CustomType::LexicalUuid))),
        "DateType" => Some(CqlType::Custom(Arc::new(CustomType::LegacyDate))),
        _ => SIMPLE.iter().find(|(name, _)| *name == simple).map(|(_, ty)| ty.clone()),
    }
}

/// The type expression of a column; `reversed` wraps it in ReversedType.
pub fn print(ty: &CqlType, reversed: bool) -> String {
    let mut out = String::new();
    if reversed {
        out.push_str(PACKAGE);
        out.push_str("ReversedType(");
    }
    put(&mut out, ty, true);
    if reversed {
        out.push(')');
    }
    out
}

/// Appends a type expression. `bare`: at this level a collection that is stored cell by cell stands
/// bare and a frozen one in FrozenType. That is so at the top, directly inside of a type that is
/// stored cell by cell, and in a vector at such a level; inside of a frozen type nothing is wrapped
/// again.
fn put(out: &mut String, ty: &CqlType, bare: bool) {
    if let Some((name, _)) = SIMPLE.iter().find(|(_, simple)| simple == ty) {
        out.push_str(PACKAGE);
        out.push_str(name);
        return;
    }
    let wrap = bare && !ty.is_multi_cell() && is_freezable(ty);
    if wrap {
        out.push_str(PACKAGE);
        out.push_str("FrozenType(");
    }
    put_complex(out, ty, bare);
    if wrap {
        out.push(')');
    }
}

fn is_freezable(ty: &CqlType) -> bool {
    ty.is_collection() || matches!(ty, CqlType::Udt(..))
}

fn put_complex(out: &mut String, ty: &CqlType, bare: bool) {
    match ty {
        CqlType::List { element, frozen } => put_call(out, "ListType", &[element], !frozen),
        CqlType::Set { element, frozen } => put_call(out, "SetType", &[element], !frozen),
        CqlType::Map { key, value, frozen } => put_call(out, "MapType", &[key, value], !frozen),
        CqlType::Tuple(types) => put_call(out, "TupleType", &types.iter().collect::<Vec<_>>(), false),
        CqlType::Vector { element, dimension } => {
            out.push_str(PACKAGE);
            out.push_str("VectorType(");
            put(out, element, bare);
            out.push_str(&format!(" , {dimension})"));
        }
        CqlType::Udt(udt, frozen) => {
            out.push_str(&format!("{PACKAGE}UserType({},{}", udt.keyspace, hex(&udt.name)));
            for (name, ty) in &udt.fields {
                out.push_str(&format!(",{}:", hex(name)));
                put(out, ty, !frozen);
            }
            out.push(')');
        }
        CqlType::Custom(custom) => put_custom(out, custom),
        _ => out.push_str("org.apache.cassandra.db.marshal.BytesType"),
    }
}

fn put_call(out: &mut String, class: &str, types: &[&CqlType], bare: bool) {
    out.push_str(PACKAGE);
    out.push_str(class);
    out.push('(');
    for (index, ty) in types.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        put(out, ty, bare);
    }
    out.push(')');
}

fn put_custom(out: &mut String, custom: &CustomType) {
    match custom {
        CustomType::Composite(types) => put_call(out, "CompositeType", &types.iter().collect::<Vec<_>>(), false),
        CustomType::DynamicComposite(aliases) => {
            out.push_str(PACKAGE);
            out.push_str("DynamicCompositeType(");
            for (index, (alias, ty)) in aliases.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push(char::from(*alias));
                out.push_str("=>");
                put(out, ty, false);
            }
            out.push(')');
        }
        CustomType::LexicalUuid => out.push_str("org.apache.cassandra.db.marshal.LexicalUUIDType"),
        CustomType::LegacyDate => out.push_str("org.apache.cassandra.db.marshal.DateType"),
        CustomType::PartitionerDefinedOrder(base) => {
            out.push_str(PACKAGE);
            out.push_str("PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner");
            if let Some(base) = base {
                out.push(':');
                put(out, base, false);
            }
            out.push(')');
        }
        CustomType::Reversed(ty) => put_call(out, "ReversedType", &[ty], false),
        CustomType::Unknown(class) => out.push_str(class),
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}
