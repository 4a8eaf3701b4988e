//! Completion: the words that may follow what stands before the cursor.
//!
//! A function from the names of the schema and the text to candidates; the names are read elsewhere
//! ([`crate::editor`]).

use std::collections::BTreeMap;

use crate::help;
use crate::lexer::{self, Kind, Token};

/// Names of a keyspace.
#[derive(Clone, Debug, Default)]
pub struct Keyspace {
    /// Tables and views with their columns.
    pub tables: BTreeMap<String, Vec<String>>,
    /// User types.
    pub types: Vec<String>,
    /// Functions and aggregates.
    pub functions: Vec<String>,
    /// Indexes.
    pub indexes: Vec<String>,
}

/// Names of the schema, by keyspace.
pub type Names = BTreeMap<String, Keyspace>;

const STARTS: &[&str] = &[
    "SELECT", "INSERT", "UPDATE", "DELETE", "BEGIN", "CREATE", "ALTER", "DROP", "TRUNCATE", "USE", "GRANT", "REVOKE",
    "LIST", "EXPLAIN", "APPLY", "ADD",
];
const OBJECTS: &[&str] = &[
    "TABLE",
    "KEYSPACE",
    "TYPE",
    "INDEX",
    "CUSTOM",
    "MATERIALIZED",
    "VIEW",
    "ROLE",
    "USER",
    "FUNCTION",
    "AGGREGATE",
    "TRIGGER",
    "OR",
];
const DESCRIBED: &[&str] = &[
    "CLUSTER",
    "KEYSPACES",
    "TABLES",
    "TYPES",
    "FUNCTIONS",
    "AGGREGATES",
    "SCHEMA",
    "FULL",
    "KEYSPACE",
    "TABLE",
    "INDEX",
    "MATERIALIZED",
    "TYPE",
    "FUNCTION",
    "AGGREGATE",
];
const WORDS: &[&str] = &[
    "ALLOW FILTERING",
    "AND",
    "APPLY BATCH",
    "AS",
    "ASC",
    "BATCH",
    "BETWEEN",
    "BY",
    "CLUSTERING ORDER BY",
    "CONTAINS",
    "COUNTER",
    "DESC",
    "DISTINCT",
    "EXISTS",
    "FILTERING",
    "FROM",
    "GROUP BY",
    "IF",
    "IF EXISTS",
    "IF NOT EXISTS",
    "IN",
    "INTO",
    "IS NOT NULL",
    "JSON",
    "KEY",
    "LIKE",
    "LIMIT",
    "LOGGED",
    "NOT",
    "NULL",
    "ORDER BY",
    "PER PARTITION LIMIT",
    "PRIMARY KEY",
    "SET",
    "STATIC",
    "TIMESTAMP",
    "TOKEN",
    "TTL",
    "UNLOGGED",
    "USING",
    "VALUES",
    "WHERE",
    "WITH",
    "ON",
    "TO",
    "ADD",
    "DROP",
    "RENAME",
];
const TYPES: &[&str] = &[
    "ascii",
    "bigint",
    "blob",
    "boolean",
    "counter",
    "date",
    "decimal",
    "double",
    "duration",
    "float",
    "frozen",
    "inet",
    "int",
    "list",
    "map",
    "set",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timeuuid",
    "tinyint",
    "tuple",
    "uuid",
    "varchar",
    "varint",
    "vector",
];
const FUNCTIONS: &[&str] = &[
    "avg(",
    "cast(",
    "count(",
    "current_date()",
    "current_time()",
    "current_timestamp()",
    "current_timeuuid()",
    "max(",
    "min(",
    "max_timeuuid(",
    "min_timeuuid(",
    "now()",
    "sum(",
    "to_date(",
    "to_timestamp(",
    "to_unix_timestamp(",
    "to_json(",
    "from_json(",
    "token(",
    "ttl(",
    "uuid()",
    "writetime(",
    "maxwritetime(",
    "map_keys(",
    "map_values(",
    "collection_count(",
    "collection_min(",
    "collection_max(",
    "collection_sum(",
    "collection_avg(",
    "similarity_cosine(",
    "similarity_euclidean(",
    "similarity_dot_product(",
    "abs(",
    "exp(",
    "log(",
    "log10(",
    "round(",
    "mask_default(",
    "mask_hash(",
    "mask_inner(",
    "mask_null(",
    "mask_outer(",
    "mask_replace(",
];
const LEVELS: &[&str] = &[
    "ANY",
    "ONE",
    "TWO",
    "THREE",
    "QUORUM",
    "ALL",
    "LOCAL_ONE",
    "LOCAL_QUORUM",
    "EACH_QUORUM",
    "SERIAL",
    "LOCAL_SERIAL",
];
const COPY_OPTIONS: &[&str] = &[
    "DELIMITER",
    "QUOTE",
    "ESCAPE",
    "HEADER",
    "NULL",
    "DATETIMEFORMAT",
    "ENCODING",
    "DECIMALSEP",
    "THOUSANDSSEP",
    "BOOLSTYLE",
    "MAXATTEMPTS",
    "REPORTFREQUENCY",
    "RATEFILE",
    "NUMPROCESSES",
    "CONFIGFILE",
    "PAGESIZE",
    "PAGETIMEOUT",
    "BEGINTOKEN",
    "ENDTOKEN",
    "MAXREQUESTS",
    "MAXOUTPUTSIZE",
    "FLOATPRECISION",
    "DOUBLEPRECISION",
    "CHUNKSIZE",
    "INGESTRATE",
    "MINBATCHSIZE",
    "MAXBATCHSIZE",
    "MAXROWS",
    "SKIPROWS",
    "SKIPCOLS",
    "MAXPARSEERRORS",
    "MAXINSERTERRORS",
    "ERRFILE",
    "PREPAREDSTATEMENTS",
    "TTL",
];

/// Whether a word is shown as a keyword.
pub fn is_keyword(word: &str) -> bool {
    let upper = word.to_ascii_uppercase();
    let is_part = |words: &&str| words.split(' ').any(|part| part == upper);
    STARTS.contains(&upper.as_str())
        || OBJECTS.contains(&upper.as_str())
        || WORDS.iter().any(is_part)
        || help::commands().any(|command| command == upper)
        || types::ident::is_reserved(word)
}

/// Where the word before the cursor begins, and the words that it may become.
pub fn candidates(names: &Names, current: Option<&str>, line: &str, cursor: usize) -> (usize, Vec<String>) {
    let Some(before) = line.get(..cursor) else { return (cursor, Vec::new()) };
    let begin = statement_begin(before);
    let tokens: Vec<Token> = lexer::tokens(&before[begin..]);
    let before = &before[begin..];
    let (start, prefix) = match tokens.last() {
        Some(last) if matches!(last.kind, Kind::Word) || last.kind == Kind::Name && last.open => {
            (last.start, last.text(before))
        }
        _ => (before.len(), ""),
    };
    let earlier: Vec<&str> = tokens
        .iter()
        .filter(|token| token.is_meaningful() && token.end <= start)
        .map(|token| token.text(before))
        .collect();
    let found = words(names, current, &line[begin..], &earlier);
    let wanted = prefix.trim_start_matches('"').to_lowercase();
    let small = prefix.chars().next().is_some_and(char::is_lowercase);
    let mut matching: Vec<String> = Vec::new();
    let in_quotes = prefix.starts_with('"');
    for word in found.into_iter().filter(|word| !in_quotes || word.text.starts_with('"')) {
        if word.text.to_lowercase().trim_start_matches('"').starts_with(&wanted) {
            matching.push(if small && word.is_keyword { word.text.to_lowercase() } else { word.text });
        }
    }
    matching.sort();
    matching.dedup();
    (begin + start, matching)
}

struct Word {
    text: String,
    is_keyword: bool,
}

fn keywords(words: &[&str]) -> Vec<Word> {
    words.iter().map(|word| Word { text: (*word).to_owned(), is_keyword: true }).collect()
}

fn plain<'n>(names: impl IntoIterator<Item = &'n String>) -> Vec<Word> {
    names.into_iter().map(|name| Word { text: types::ident::maybe_quote(name), is_keyword: false }).collect()
}

/// Offset behind the last `;` that ends a statement.
fn statement_begin(before: &str) -> usize {
    let (_, rest) = lexer::statements(before, true);
    before.len() - rest.len()
}

fn words(names: &Names, current: Option<&str>, line: &str, earlier: &[&str]) -> Vec<Word> {
    let upper: Vec<String> = earlier.iter().map(|word| word.to_uppercase()).collect();
    let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
    let mut with_keyspaces = plain(names.keys());
    match upper.as_slice() {
        [] => [keywords(STARTS), keywords(&help::commands().collect::<Vec<_>>())].into_iter().flatten().collect(),
        ["CONSISTENCY"] => keywords(LEVELS),
        ["SERIAL"] => keywords(&["CONSISTENCY"]),
        ["SERIAL", "CONSISTENCY"] => keywords(&["SERIAL", "LOCAL_SERIAL"]),
        ["TRACING" | "PAGING"] => keywords(&["ON", "OFF"]),
        ["EXPAND"] => keywords(&["ON", "OFF", "AUTO"]),
        ["FORMAT"] => keywords(&["TABLE", "JSON", "CSV"]),
        ["CAPTURE"] => keywords(&["OFF"]),
        ["SHOW"] => keywords(&["VERSION", "HOST", "SESSION", "REPLICAS"]),
        ["HELP"] => keywords(&help::commands().collect::<Vec<_>>()),
        ["EXPLAIN"] => keywords(&["ANALYZE", "SELECT", "INSERT", "UPDATE", "DELETE", "BEGIN"]),
        ["EXPLAIN", "ANALYZE"] => keywords(&["SELECT", "INSERT", "UPDATE", "DELETE", "BEGIN"]),
        ["INSERT"] => keywords(&["INTO"]),
        ["CREATE" | "ALTER" | "DROP"] => keywords(OBJECTS),
        ["DESCRIBE" | "DESC"] => {
            with_keyspaces.extend(keywords(DESCRIBED));
            with_keyspaces.extend(plain(tables(names, current)));
            with_keyspaces
        }
        [.., "USE" | "KEYSPACE"] => with_keyspaces,
        [.., _, "."] => {
            let keyspace = lexer::name(earlier[earlier.len() - 2]);
            let Some(inside) = names.get(&keyspace) else { return Vec::new() };
            let of_types = upper.contains(&"TYPE");
            match of_types {
                true => plain(&inside.types),
                false => plain(inside.tables.keys().chain(&inside.functions).chain(&inside.indexes)),
            }
        }
        [.., "FROM" | "INTO" | "UPDATE" | "TABLE" | "TRUNCATE" | "COPY" | "VIEW"] => {
            // a keyspace goes on with a point
            with_keyspaces.iter_mut().for_each(|word| word.text.push('.'));
            with_keyspaces.extend(plain(tables(names, current)));
            with_keyspaces
        }
        [.., "TYPE"] => {
            plain(current.and_then(|name| names.get(name)).map(|inside| &inside.types).into_iter().flatten())
        }
        [.., "INDEX"] => {
            plain(current.and_then(|name| names.get(name)).map(|inside| &inside.indexes).into_iter().flatten())
        }
        ["COPY", ..] if upper.contains(&"WITH") => keywords(COPY_OPTIONS),
        ["COPY", ..] => {
            let mut words = keywords(&["FROM", "TO", "WITH", "STDIN", "STDOUT"]);
            words.extend(plain(columns(names, current, line)));
            words
        }
        ["CREATE" | "ALTER", "TABLE" | "TYPE", ..] => {
            [keywords(TYPES), keywords(WORDS)].into_iter().flatten().collect()
        }
        _ => {
            let mut words = keywords(WORDS);
            words.extend(plain(columns(names, current, line)));
            let own = current.and_then(|name| names.get(name)).map(|inside| &inside.functions);
            words.extend(plain(own.into_iter().flatten()));
            words.extend(FUNCTIONS.iter().map(|name| Word { text: (*name).to_owned(), is_keyword: false }));
            words
        }
    }
}

fn tables<'n>(names: &'n Names, current: Option<&str>) -> impl Iterator<Item = &'n String> {
    current.and_then(|name| names.get(name)).into_iter().flat_map(|inside| inside.tables.keys())
}

/// Columns of the table that the statement names, before or behind the cursor.
fn columns<'n>(names: &'n Names, current: Option<&str>, line: &str) -> Vec<&'n String> {
    let tokens = lexer::tokens(line);
    let meaningful: Vec<&str> =
        tokens.iter().filter(|token| token.is_meaningful()).map(|token| token.text(line)).collect();
    let is_before = |word: &&str| ["FROM", "INTO", "UPDATE", "COPY"].contains(&word.to_uppercase().as_str());
    let Some(at) = meaningful.iter().position(is_before) else { return Vec::new() };
    let (keyspace, table) = match meaningful.get(at + 1..) {
        Some([keyspace, ".", table, ..]) => (Some(lexer::name(keyspace)), lexer::name(table)),
        Some([table, ..]) => (current.map(str::to_owned), lexer::name(table)),
        _ => return Vec::new(),
    };
    let inside = keyspace.and_then(|keyspace| names.get(&keyspace));
    inside.and_then(|inside| inside.tables.get(&table)).into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut music = Keyspace { types: vec!["place".into()], ..Keyspace::default() };
        music.tables.insert("plays".into(), columns(&["listener", "at", "Song"]));
        music.tables.insert("places".into(), columns(&["id"]));
        Names::from([("music".into(), music), ("system".into(), Keyspace::default())])
    }

    /// The candidates at the `|` of a text.
    fn at(text: &str) -> Vec<String> {
        let cursor = text.find('|').unwrap();
        candidates(&names(), Some("music"), &text.replace('|', ""), cursor).1
    }

    #[test]
    fn words_by_their_place() {
        assert_eq!(at("SEL|"), ["SELECT"]);
        assert_eq!(at("sel|"), ["select"]);
        assert_eq!(at("SELECT * FROM pl|"), ["places", "plays"]);
        assert_eq!(at("SELECT * FROM mu|"), ["music."]);
        assert_eq!(at("SELECT * FROM music.pla|"), ["places", "plays"]);
        assert_eq!(at("SELECT lis| FROM plays"), ["listener"]);
        assert_eq!(at("SELECT \"S| FROM music.plays"), Vec::<String>::new());
        assert_eq!(at("SELECT * FROM plays WHERE so|"), ["\"Song\""]);
        assert_eq!(at("USE sys|"), ["system"]);
        assert_eq!(at("SELECT 1; consistency local_q|"), ["local_quorum"]);
        assert_eq!(at("SELECT 1; USE m|"), ["music"]);
        assert_eq!(at("DESCRIBE TYPE pl|"), ["place"]);
        assert_eq!(at("COPY plays TO 'x' WITH HEA|"), ["HEADER"]);
        assert_eq!(at("SELECT to_t| FROM plays"), ["to_timestamp("]);
    }

    #[test]
    fn the_word_begins_behind_the_point() {
        let line = "SELECT * FROM music.pl";
        assert_eq!(candidates(&names(), None, line, line.len()).0, line.len() - 2);
        assert!(candidates(&names(), None, "ü", 1).1.is_empty());
    }
}
