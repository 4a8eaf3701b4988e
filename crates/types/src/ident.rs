//! Names as CQL text, in quotes where CQL requires them. Agrees with
//! `org.apache.cassandra.cql3.ColumnIdentifier.maybeQuote` and `ReservedKeywords`.

use std::fmt::Write;

/// Words that are names only in quotes; ascending, because they are searched by bisection.
const RESERVED: &[&str] = &[
    "add",
    "allow",
    "alter",
    "and",
    "apply",
    "asc",
    "authorize",
    "batch",
    "begin",
    "by",
    "columnfamily",
    "create",
    "delete",
    "desc",
    "describe",
    "drop",
    "entries",
    "execute",
    "from",
    "full",
    "grant",
    "if",
    "in",
    "index",
    "infinity",
    "insert",
    "into",
    "is",
    "keyspace",
    "limit",
    "materialized",
    "modify",
    "nan",
    "norecursive",
    "not",
    "null",
    "of",
    "on",
    "or",
    "order",
    "primary",
    "rename",
    "revoke",
    "schema",
    "select",
    "set",
    "table",
    "to",
    "token",
    "truncate",
    "unlogged",
    "update",
    "use",
    "using",
    "view",
    "where",
    "with",
];

/// Whether the text is a reserved word of CQL, in any case.
pub fn is_reserved(text: &str) -> bool {
    RESERVED.binary_search(&text.to_ascii_lowercase().as_str()).is_ok()
}

/// The name as CQL text: unchanged if it is in lower case and not reserved, otherwise in double
/// quotes.
pub fn maybe_quote(name: &str) -> String {
    let mut bytes = name.bytes();
    let plain = bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if plain && !is_reserved(name) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// `keyspace.table`, each in quotes where needed.
pub fn qualified(keyspace: &str, name: &str) -> String {
    format!("{}.{}", maybe_quote(keyspace), maybe_quote(name))
}

/// A text literal: in single quotes, with those inside doubled.
pub fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A map literal `{'a': 'b', …}` of texts, in the order of the pairs.
pub fn map_literal<'a>(pairs: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let mut out = String::from("{");
    for (index, (key, value)) in pairs.into_iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(out, "{comma}{}: {}", quote_text(key), quote_text(value)).expect("a String takes all");
    }
    out.push('}');
    out
}

pub use crate::java_number::print_double as java_double;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_only_where_they_must_be() {
        let cases = [
            ("simple", "simple"),
            ("a_1", "a_1"),
            ("1a", "\"1a\""),
            ("_a", "\"_a\""),
            ("Mixed", "\"Mixed\""),
            ("select", "\"select\""),
            ("key", "key"),
            ("white space", "\"white space\""),
            ("quo\"te", "\"quo\"\"te\""),
            ("", "\"\""),
        ];
        for (name, quoted) in cases {
            assert_eq!(maybe_quote(name), quoted);
        }
        assert!(RESERVED.is_sorted());
    }
}
