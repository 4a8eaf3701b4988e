//! The built-in keyspaces and tables, exactly those of Cassandra 5.0.8.
//!
//! Their definitions are lines of text (`system/tables.txt`), which are read once at the start.
//! `server` makes the content of the virtual tables. Agrees with `SystemKeyspace`,
//! `SchemaKeyspace`, `AuthKeyspace`, `SystemDistributedKeyspace`, `TraceKeyspace` and the virtual
//! tables of `org.apache.cassandra.db.virtual`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::IndexKind;
use crate::options::{OptionValue, Options};
use crate::table::ColumnSpec;
use crate::{
    ColumnKind, DroppedColumn, IndexMetadata, KeyspaceMetadata, Replication, Schema, TableFlags, TableId, TableKind,
    TableMetadata, TableParams, type_text,
};

const DEFINITIONS: &str = include_str!("system/tables.txt");

/// Keyspaces that are local to the node: not replicated, and clients cannot change them.
pub const LOCAL_KEYSPACES: &[&str] = &["system", "system_schema"];
/// Built-in keyspaces that are replicated like those of users.
pub const REPLICATED_KEYSPACES: &[&str] = &["system_auth", "system_distributed", "system_traces"];
/// Keyspaces whose tables are computed when they are read.
pub const VIRTUAL_KEYSPACES: &[&str] = &["system_views", "system_virtual_schema"];

/// Whether the keyspace is local to the node.
pub fn is_local_keyspace(name: &str) -> bool {
    LOCAL_KEYSPACES.contains(&name)
}

/// Whether the keyspace is built in.
pub fn is_system_keyspace(name: &str) -> bool {
    is_local_keyspace(name) || REPLICATED_KEYSPACES.contains(&name) || VIRTUAL_KEYSPACES.contains(&name)
}

/// The built-in keyspaces.
pub fn keyspaces() -> Vec<KeyspaceMetadata> {
    let mut reader = Reader::default();
    for line in DEFINITIONS.lines() {
        reader.line(line);
    }
    reader.finish_keyspace();
    reader.keyspaces
}

/// The timestamp, microseconds, with which Cassandra writes the rows of a built-in keyspace that is
/// replicated. It is the same on all nodes, so that their schemas agree, and below that of every
/// change, so that no change by a user is undone. `None`: the keyspace is not replicated.
pub fn generation(keyspace: &str) -> Option<i64> {
    match keyspace {
        "system_auth" => Some(1),
        "system_distributed" => Some(6),
        "system_traces" => Some(1_577_836_800_000_002),
        _ => None,
    }
}

/// A schema of the built-in keyspaces only, with which a node starts on an empty data directory.
/// The schema has no version yet: the version is a digest of stored rows.
pub fn schema() -> Schema {
    let mut schema = Schema::default();
    for keyspace in keyspaces() {
        for table in keyspace.tables.values() {
            schema.tables_by_id.insert(table.id, Arc::clone(table));
        }
        schema.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
    }
    schema
}

/// The state of reading: a keyspace with its tables so far, and the table whose lines are being
/// read.
#[derive(Default)]
struct Reader {
    keyspaces: Vec<KeyspaceMetadata>,
    keyspace: Option<KeyspaceMetadata>,
    shared: TableParams,
    table: Option<Draft>,
}

struct Draft {
    name: String,
    params: TableParams,
    specs: Vec<ColumnSpec>,
    dropped: BTreeMap<String, DroppedColumn>,
    indexes: BTreeMap<String, IndexMetadata>,
    is_local: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let trimmed = line.trim();
        let (word, rest) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
        match word {
            "" | "--" => {}
            "keyspace" => self.keyspace(rest),
            "table" => self.table(rest),
            "with" => self.with(rest),
            "dropped" => self.dropped(rest),
            "index" => self.index(rest),
            "local" => self.table.as_mut().expect("an order is of a table").is_local = true,
            kind => self.columns(ColumnKind::from_name(kind).expect("a kind of column"), rest),
        }
    }

    fn keyspace(&mut self, rest: &str) {
        self.finish_keyspace();
        let mut words = rest.split(' ');
        let name = words.next().expect("a name");
        let strategy = words.next().expect("a strategy");
        let replication = match words.next() {
            Some(factor) => Replication::simple(factor.parse().expect("a number")),
            None => Replication::local(),
        };
        self.shared = TableParams::default();
        self.keyspace = Some(KeyspaceMetadata {
            name: name.to_owned(),
            durable_writes: true,
            replication,
            tables: BTreeMap::new(),
            user_types: BTreeMap::new(),
            function_rows: Vec::new(),
            functions: BTreeMap::new(),
            aggregates: BTreeMap::new(),
            is_virtual: strategy == "virtual",
        });
    }

    fn table(&mut self, rest: &str) {
        self.finish_table();
        let (name, comment) = rest.split_once(':').expect("a colon after the name");
        let mut params = self.shared.clone();
        params.comment = comment.trim().to_owned();
        self.table = Some(Draft {
            name: name.to_owned(),
            params,
            specs: Vec::new(),
            dropped: BTreeMap::new(),
            indexes: BTreeMap::new(),
            is_local: false,
        });
    }

    fn with(&mut self, rest: &str) {
        let (name, value) = rest.split_once(' ').expect("a value");
        let value = if name == "compaction" {
            OptionValue::Map(pairs(value.split(' ')))
        } else {
            OptionValue::Text(value.to_owned())
        };
        let options: Options = [(name.to_owned(), value)].into_iter().collect();
        let params = self.table.as_mut().map_or(&mut self.shared, |table| &mut table.params);
        *params = params.altered(&options).expect("options of built-in tables are valid");
    }

    fn columns(&mut self, kind: ColumnKind, rest: &str) {
        let table = self.table.as_mut().expect("columns stand below a table");
        for column in split_columns(rest) {
            let (name, ty) = column.split_once(' ').expect("name and type");
            let position = match kind {
                ColumnKind::PartitionKey | ColumnKind::Clustering => {
                    table.specs.iter().filter(|spec| spec.kind == kind).count()
                }
                ColumnKind::Static | ColumnKind::Regular => 0,
            };
            let ty = type_text::parse(ty, &|_| None).expect("a type");
            table.specs.push(ColumnSpec { name: name.to_owned(), kind, position, ty, reversed: false });
        }
    }

    fn dropped(&mut self, rest: &str) {
        let table = self.table.as_mut().expect("columns stand below a table");
        let mut words = rest.splitn(3, ' ');
        let kind = words.next().and_then(ColumnKind::from_name).expect("a kind of column");
        let name = words.next().expect("a name").to_owned();
        let ty = words.next().and_then(|ty| type_text::parse(ty, &|_| None)).expect("a type");
        table.dropped.insert(name.clone(), DroppedColumn { name, ty, kind, dropped_time: i64::MAX });
    }

    fn index(&mut self, rest: &str) {
        let table = self.table.as_mut().expect("indexes stand below a table");
        let mut words = rest.split(' ');
        let name = words.next().expect("a name").to_owned();
        let kind = words.next().and_then(IndexKind::from_name).expect("a kind of index");
        table.indexes.insert(name.clone(), IndexMetadata { name, kind, options: pairs(words) });
    }

    fn finish_table(&mut self) {
        let (Some(draft), Some(keyspace)) = (self.table.take(), self.keyspace.as_mut()) else {
            return;
        };
        let kind = if keyspace.is_virtual { TableKind::Virtual } else { TableKind::Regular };
        let mut table = TableMetadata::new(
            TableId::of_system_table(&keyspace.name, &draft.name),
            &keyspace.name,
            &draft.name,
            kind,
            TableFlags::COMPOUND,
            draft.params,
            draft.specs,
            draft.dropped,
            None,
        );
        table.indexes = draft.indexes;
        table.local_order = draft.is_local.then(|| table.partition_key[0].ty.clone());
        keyspace.tables.insert(draft.name, Arc::new(table));
    }

    fn finish_keyspace(&mut self) {
        self.finish_table();
        self.keyspaces.extend(self.keyspace.take());
    }
}

fn pairs<'a>(words: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    words
        .map(|word| word.split_once('=').expect("key=value"))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Splits at the commas that are outside of `<…>`.
fn split_columns(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

#[cfg(test)]
mod tests;
