//! Types as CQL text: printed as the schema tables and DESCRIBE show them, and read back.
//!
//! Agrees with `org.apache.cassandra.cql3.CQL3Type` (its `toString`) and
//! `org.apache.cassandra.schema.CQLTypeParser`. `frozen` is written at every frozen collection,
//! tuple and user type, also inside of others.

use std::sync::Arc;

use crate::ident::maybe_quote;
use crate::{CqlType, UserType, extent, marshal};

/// Deepest nesting that is read; deeper text is not a type. The types of a table nest
/// [`extent::DEPTH_MAX`] levels deep at most; `frozen` may stand around each.
const DEPTH_MAX: usize = 2 * extent::DEPTH_MAX;

const NATIVE: &[(&str, CqlType)] = &[
    ("ascii", CqlType::Ascii),
    ("bigint", CqlType::BigInt),
    ("blob", CqlType::Blob),
    ("boolean", CqlType::Boolean),
    ("counter", CqlType::Counter),
    ("date", CqlType::Date),
    ("decimal", CqlType::Decimal),
    ("double", CqlType::Double),
    ("duration", CqlType::Duration),
    ("empty", CqlType::Empty),
    ("float", CqlType::Float),
    ("inet", CqlType::Inet),
    ("int", CqlType::Int),
    ("smallint", CqlType::SmallInt),
    ("text", CqlType::Text),
    ("time", CqlType::Time),
    ("timestamp", CqlType::Timestamp),
    ("timeuuid", CqlType::TimeUuid),
    ("tinyint", CqlType::TinyInt),
    ("uuid", CqlType::Uuid),
    ("varint", CqlType::Varint),
];

/// A native type by its name in lower case; `varchar` is another name of text.
pub fn native(name: &str) -> Option<CqlType> {
    let name = if name == "varchar" { "text" } else { name };
    NATIVE.iter().find(|(known, _)| *known == name).map(|(_, ty)| ty.clone())
}

/// The type as CQL text.
pub fn print(ty: &CqlType) -> String {
    let frozen_if = |frozen: bool, inner: String| {
        if frozen { format!("frozen<{inner}>") } else { inner }
    };
    match ty {
        CqlType::List { element, frozen } => frozen_if(*frozen, format!("list<{}>", print(element))),
        CqlType::Set { element, frozen } => frozen_if(*frozen, format!("set<{}>", print(element))),
        CqlType::Map { key, value, frozen } => frozen_if(*frozen, format!("map<{}, {}>", print(key), print(value))),
        CqlType::Tuple(elements) => {
            let elements: Vec<String> = elements.iter().map(print).collect();
            format!("frozen<tuple<{}>>", elements.join(", "))
        }
        CqlType::Udt(udt, frozen) => frozen_if(*frozen, maybe_quote(&udt.name)),
        CqlType::Vector { element, dimension } => {
            format!("vector<{}, {dimension}>", print(element))
        }
        CqlType::Custom(_) => format!("'{}'", marshal::print(ty, false)),
        native => NATIVE.iter().find(|(_, known)| known == native).map_or("", |(name, _)| name).to_owned(),
    }
}

/// Reads a type. `user_type` finds a user type of the keyspace by name. None: the text is not a
/// type.
pub fn parse(text: &str, user_type: &dyn Fn(&str) -> Option<Arc<UserType>>) -> Option<CqlType> {
    let mut parser = Parser { rest: text.trim(), user_type };
    let ty = parser.ty(0)?;
    parser.rest.is_empty().then_some(ty)
}

struct Parser<'a> {
    rest: &'a str,
    user_type: &'a dyn Fn(&str) -> Option<Arc<UserType>>,
}

impl Parser<'_> {
    fn ty(&mut self, depth: usize) -> Option<CqlType> {
        if depth > DEPTH_MAX {
            return None;
        }
        if self.rest.starts_with('\'') {
            return self.class();
        }
        let (name, quoted) = self.name()?;
        let lower = name.to_ascii_lowercase();
        match lower.as_str() {
            "frozen" if !quoted && self.at('<') => {
                let mut inner = self.arguments(depth)?;
                (inner.len() == 1).then(|| inner.remove(0).freeze())
            }
            "list" | "set" if !quoted && self.at('<') => {
                let mut inner = self.arguments(depth)?;
                let element = (inner.len() == 1).then(|| Arc::new(inner.remove(0)))?;
                Some(if lower == "list" {
                    CqlType::List { element, frozen: false }
                } else {
                    CqlType::Set { element, frozen: false }
                })
            }
            "map" if !quoted && self.at('<') => {
                let [key, value] = <[CqlType; 2]>::try_from(self.arguments(depth)?).ok()?;
                Some(CqlType::Map { key: Arc::new(key), value: Arc::new(value), frozen: false })
            }
            "tuple" if !quoted && self.at('<') => {
                let elements: Vec<CqlType> = self.arguments(depth)?.iter().map(CqlType::freeze).collect();
                Some(CqlType::Tuple(elements.into()))
            }
            "vector" if !quoted && self.at('<') => self.vector(depth),
            native_name if !quoted && native(native_name).is_some() => native(native_name),
            _ if quoted => (self.user_type)(&name).map(|udt| CqlType::Udt(udt, false)),
            _ => (self.user_type)(&lower).map(|udt| CqlType::Udt(udt, false)),
        }
    }

    fn vector(&mut self, depth: usize) -> Option<CqlType> {
        self.eat('<')?;
        let element = self.ty(depth + 1)?.freeze();
        self.eat(',')?;
        let (number, _) = self.name()?;
        self.eat('>')?;
        let dimension = number.parse().ok().filter(|dimension| *dimension > 0)?;
        Some(CqlType::Vector { element: Arc::new(element), dimension })
    }

    fn arguments(&mut self, depth: usize) -> Option<Vec<CqlType>> {
        self.eat('<')?;
        let mut types = vec![self.ty(depth + 1)?];
        while self.at(',') {
            self.eat(',')?;
            types.push(self.ty(depth + 1)?);
        }
        self.eat('>')?;
        Some(types)
    }

    fn class(&mut self) -> Option<CqlType> {
        let (class, rest) = self.rest.strip_prefix('\'')?.split_once('\'')?;
        self.rest = rest.trim_start();
        marshal::parse(class).ok().map(|(ty, _)| ty)
    }

    fn name(&mut self) -> Option<(String, bool)> {
        if let Some(inner) = self.rest.strip_prefix('"') {
            let end = closing_quote(inner)?;
            let name = inner[..end].replace("\"\"", "\"");
            self.rest = inner[end + 1..].trim_start();
            return Some((name, true));
        }
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        (!name.is_empty()).then(|| (name.to_owned(), false))
    }

    fn at(&self, c: char) -> bool {
        self.rest.starts_with(c)
    }

    fn eat(&mut self, c: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(c)?.trim_start();
        Some(())
    }
}

/// The position of the quote that ends a quoted name: the first quote that is not doubled.
fn closing_quote(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find('"')?;
        if !text[at + 1..].starts_with('"') {
            return Some(at);
        }
        from = at + 2;
    }
}

/// The type with user types replaced by tuples: the form in which dropped columns are remembered.
pub fn expand_user_types(ty: &CqlType) -> CqlType {
    match ty {
        CqlType::List { element, frozen } => {
            CqlType::List { element: Arc::new(expand_user_types(element)), frozen: *frozen }
        }
        CqlType::Set { element, frozen } => {
            CqlType::Set { element: Arc::new(expand_user_types(element)), frozen: *frozen }
        }
        CqlType::Map { key, value, frozen } => CqlType::Map {
            key: Arc::new(expand_user_types(key)),
            value: Arc::new(expand_user_types(value)),
            frozen: *frozen,
        },
        CqlType::Tuple(elements) => CqlType::Tuple(elements.iter().map(expand_user_types).collect()),
        CqlType::Udt(udt, _) => {
            CqlType::Tuple(udt.fields.iter().map(|(_, ty)| expand_user_types(ty).freeze()).collect())
        }
        CqlType::Vector { element, dimension } => {
            CqlType::Vector { element: Arc::new(expand_user_types(element)), dimension: *dimension }
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(name: &str) -> Option<Arc<UserType>> {
        let fields = vec![("zip".to_owned(), CqlType::Text)];
        matches!(name, "address" | "Odd \"Type\"")
            .then(|| Arc::new(UserType { keyspace: "ks".to_owned(), name: name.to_owned(), fields }))
    }

    #[test]
    fn types_come_back_as_they_were_printed() {
        let cases = [
            "int",
            "list<int>",
            "frozen<list<int>>",
            "map<text, frozen<set<int>>>",
            "frozen<map<text, frozen<set<int>>>>",
            "frozen<tuple<int, text>>",
            "list<frozen<tuple<int, text>>>",
            "vector<float, 3>",
            "address",
            "frozen<address>",
            "list<frozen<address>>",
            "\"Odd \"\"Type\"\"\"",
            "empty",
        ];
        for text in cases {
            assert_eq!(parse(text, &address).map(|ty| print(&ty)).as_deref(), Some(text));
        }
    }

    #[test]
    fn freezing_goes_all_the_way_down() {
        let ty = parse("frozen<map<text,list<tuple<set<int>,address>>>>", &address).expect("a type");
        assert_eq!(print(&ty), "frozen<map<text, frozen<list<frozen<tuple<frozen<set<int>>, frozen<address>>>>>>>");
    }

    #[test]
    fn what_is_no_type_is_refused() {
        let deep = format!("{}int{}", "list<".repeat(100), ">".repeat(100));
        for text in
            ["", "nosuch", "list<", "list<int", "map<int>", "int>", "vector<int, 0>", "vector<int, x>", "frozen", &deep]
        {
            assert_eq!(parse(text, &address), None, "{text}");
        }
    }
}
