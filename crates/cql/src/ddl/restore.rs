//! A schema from the texts of `schema.cql` files: what a snapshot, a backup or DESCRIBE wrote.
//!
//! Statements are executed as clients' are, with more let through: COMPACT STORAGE with its hidden
//! columns, indexes and materialized views (as definitions: nothing is built), user types and
//! tables of a keyspace that has no CREATE KEYSPACE. A table in the comment with which Cassandra
//! prints what CQL cannot create is taken from there. What else stands in the text (functions,
//! triggers, data) is passed over and reported.
//!
//! Agrees with `org.apache.cassandra.db.SchemaCQLHelper` and
//! `CreateTableStatement.fixupCompactTable`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schema::table::ColumnSpec;
use schema::{
    ColumnKind, IndexKind, IndexMetadata, KeyspaceMetadata, Replication, Schema, TableFlags, TableId, TableKind,
    TableMetadata, TableParams, ViewDefinition, system,
};
use types::ident::maybe_quote;

use super::{ChangedSchema, DdlContext, Switches, apply, keyspace_of, properties, refused};
use crate::ast::{CreateIndex, CreateView, IndexTarget, IndexTargetKind, QualifiedName, Selectable, Statement};
use crate::coordinator::LEGACY_INDEX;
use crate::error::CqlError;
use crate::lexer::{Kind, Lexer};

/// The context in which the statements are read.
pub struct RestoreOptions<'a> {
    /// The keyspace of names that have none.
    pub keyspace: Option<String>,
    /// Microseconds since 1970.
    pub now_micros: i64,
    /// The id of a table that does not say its own: the one in its directory's name, as a rule.
    pub id_of: &'a dyn Fn(&str, &str) -> TableId,
}

/// The result of reading the statements.
#[derive(Debug)]
pub struct RestoredSchema {
    /// The schema.
    pub schema: Schema,
    /// Statements that were passed over, and why.
    pub skipped: Vec<String>,
}

/// The schema with what a text creates. A table that exists already stays as it is.
pub fn restore(text: &str, restoring: &RestoreOptions<'_>, schema: Schema) -> Result<RestoredSchema, CqlError> {
    let text = uncommented(text);
    let mut restored = RestoredSchema { schema, skipped: Vec::new() };
    let mut current = restoring.keyspace.clone();
    let mut made = BTreeSet::new();
    for statement in statements(&text)? {
        let parsed = crate::parse(statement)
            .map_err(|error| CqlError::Syntax(format!("{}…: {}", first_words(statement), CqlError::from(error))))?;
        if let Statement::Use(name) = &parsed.statement {
            current = Some(name.as_str().to_owned());
            continue;
        }
        let mut context = DdlContext {
            keyspace: current.clone(),
            now_micros: restoring.now_micros,
            new_table_id: TableId([0; 16]),
            datacenters: BTreeMap::new(),
            moving: Vec::new(),
            default_index: Some(LEGACY_INDEX.to_owned()),
            default_compaction: std::sync::Arc::new(schema::TableParams::default().compaction),
            restoring: true,
            switches: Switches::default(),
            guardrails: None,
        };
        execute(statement, &parsed.statement, &mut context, restoring, &mut made, &mut restored)?;
    }
    Ok(restored)
}

fn execute(
    text: &str,
    statement: &Statement<'_>,
    context: &mut DdlContext,
    restoring: &RestoreOptions<'_>,
    made: &mut BTreeSet<(String, String)>,
    restored: &mut RestoredSchema,
) -> Result<(), CqlError> {
    let Some(name) = created(statement, context)? else {
        restored.skipped.push(first_words(text));
        return Ok(());
    };
    if system::is_system_keyspace(&name.0) {
        return Ok(());
    }
    let is_keyspace = matches!(statement, Statement::CreateKeyspace(_) | Statement::AlterKeyspace(_));
    if !is_keyspace && restored.schema.keyspace(&name.0).is_none() {
        restored.schema = restored.schema.with_keyspace(unknown_keyspace(&name.0));
    }
    context.new_table_id = (restoring.id_of)(&name.0, &name.1);
    let exists = restored.schema.table(&name.0, &name.1).is_some();
    if matches!(statement, Statement::CreateTable(_)) && !exists {
        made.insert(name.clone());
    }
    let changed = match statement {
        // what an earlier text made, it also altered
        Statement::AlterTable(_) if !made.contains(&name) => None,
        Statement::CreateKeyspace(_) if restored.schema.keyspace(&name.0).is_some() => None,
        Statement::CreateTable(_) | Statement::CreateView(_) if exists => None,
        Statement::CreateType(_) if has_type(&restored.schema, &name) => None,
        Statement::CreateIndex(create) => Some(with_index(create, &name, &restored.schema)?),
        Statement::CreateView(create) => match view(text, create, &name, context, &restored.schema)? {
            Some(schema) => Some(schema),
            None => {
                restored.skipped.push(format!("{} (its base table is not there)", first_words(text)));
                None
            }
        },
        other => changed(apply(other, context, &restored.schema)?),
    };
    if let Some(schema) = changed {
        restored.schema = schema;
    }
    Ok(())
}

fn changed(changed: ChangedSchema) -> Option<Schema> {
    changed.map(|(schema, _)| schema)
}

/// Keyspace and name of what a statement creates or alters; None: it is passed over.
fn created(statement: &Statement<'_>, context: &DdlContext) -> Result<Option<(String, String)>, CqlError> {
    let of = |name: &QualifiedName<'_>| {
        keyspace_of(name, context).map(|keyspace| Some((keyspace.to_owned(), name.name.as_str().to_owned())))
    };
    match statement {
        Statement::CreateKeyspace(create) => Ok(Some((create.name.as_str().to_owned(), String::new()))),
        Statement::AlterKeyspace(alter) => Ok(Some((alter.name.as_str().to_owned(), String::new()))),
        Statement::CreateTable(create) => of(&create.name),
        Statement::AlterTable(alter) => of(&alter.name),
        Statement::CreateType(create) => of(&create.name),
        Statement::AlterType(alter) => of(&alter.name),
        Statement::CreateIndex(create) => of(&create.table),
        Statement::CreateView(create) => of(&create.name),
        _ => Ok(None),
    }
}

fn has_type(schema: &Schema, name: &(String, String)) -> bool {
    schema.keyspace(&name.0).is_some_and(|keyspace| keyspace.user_types.contains_key(&name.1))
}

fn first_words(text: &str) -> String {
    crate::obfuscate(text).split_whitespace().take(5).collect::<Vec<_>>().join(" ")
}

/// A keyspace of which only the name is known.
fn unknown_keyspace(name: &str) -> KeyspaceMetadata {
    let class = "org.apache.cassandra.locator.SimpleStrategy".to_owned();
    let options = BTreeMap::from([("replication_factor".to_owned(), "1".to_owned())]);
    KeyspaceMetadata {
        name: name.to_owned(),
        durable_writes: true,
        replication: Replication { class, options },
        tables: BTreeMap::new(),
        user_types: BTreeMap::new(),
        function_rows: Vec::new(),
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
        is_virtual: false,
    }
}

/// The text with the CREATE TABLE statements that stand in comments.
fn uncommented(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("/*\nWarning: Table ") {
        out += &rest[..start];
        let comment = &rest[start..];
        let end = comment.find("\n*/").unwrap_or(comment.len());
        if let Some(create) = comment[..end].find("\nCREATE TABLE ") {
            out += &comment[create..end];
        }
        rest = comment.get(end + 3..).unwrap_or_default();
    }
    out + rest
}

/// A thing of a schema that a statement makes or alters: names of the keyspace and of the thing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Object {
    /// A keyspace.
    Keyspace(String),
    /// A user type.
    Type(String, String),
    /// A table.
    Table(String, String),
    /// An index.
    Index(String, String),
    /// A materialized view.
    View(String, String),
}

/// A statement of a schema's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaStatement {
    /// The statement, without its semicolon.
    pub text: String,
    /// The thing that the statement makes or alters.
    pub object: Object,
    /// Whether the statement alters the thing, which an earlier one makes.
    pub is_alteration: bool,
}

/// The statements of a text that make types, tables, indexes and views, or alter tables, as a
/// client sends them. Comments are no statements: a table that CQL cannot create is printed in a
/// comment, and left out. Other statements are left out too, as are functions, triggers and data.
/// Names without a keyspace are of `keyspace`. The kind of an index that has no class is named,
/// because the nodes that get the statements may have another default (`default_secondary_index`).
pub fn schema_statements(text: &str, keyspace: &str) -> Result<Vec<SchemaStatement>, CqlError> {
    let mut schema_statements = Vec::new();
    for text in statements(text)? {
        let parsed = crate::parse(text)
            .map_err(|error| CqlError::Syntax(format!("{}…: {}", first_words(text), CqlError::from(error))))?;
        let mut sent = text.trim().to_owned();
        let of =
            |name: &QualifiedName<'_>| (name.keyspace().unwrap_or(keyspace).to_owned(), name.name.as_str().to_owned());
        let (object, is_alteration) = match &parsed.statement {
            Statement::CreateType(create) => (named(Object::Type, of(&create.name)), false),
            Statement::CreateTable(create) => (named(Object::Table, of(&create.name)), false),
            Statement::AlterTable(alter) => (named(Object::Table, of(&alter.name)), true),
            Statement::CreateIndex(create) => {
                let (keyspace, table) = of(&create.table);
                if !create.custom && create.using.is_none() && create.properties.is_empty() {
                    // a line of its own: the statement may end with a comment
                    sent += &format!("\nUSING '{LEGACY_INDEX}'");
                }
                (Object::Index(keyspace, index_name(create, &table)), false)
            }
            Statement::CreateView(create) => (named(Object::View, of(&create.name)), false),
            _ => continue,
        };
        schema_statements.push(SchemaStatement { text: sent, object, is_alteration });
    }
    Ok(schema_statements)
}

fn named(kind: fn(String, String) -> Object, (keyspace, name): (String, String)) -> Object {
    kind(keyspace, name)
}

/// The name of an index, which is made of its table's and its column's where it is not given.
fn index_name(create: &CreateIndex<'_>, table: &str) -> String {
    let column = create.targets.first().map_or("", |target| target.column.as_str());
    create.name.as_ref().map_or_else(|| format!("{table}_{column}_idx"), |name| name.as_str().to_owned())
}

/// The statements of a text, without their semicolons. A semicolon inside a function's `$$` body or
/// a batch is theirs.
fn statements(text: &str) -> Result<Vec<&str>, CqlError> {
    let mut lexer = Lexer::new(text);
    let (mut statements, mut start) = (Vec::new(), None);
    loop {
        let token = lexer.next_token().map_err(|error| {
            let (line, column) = error.pos.line_column(text);
            CqlError::Syntax(format!("line {line}:{column} {}", error.what))
        })?;
        match (token.kind, start) {
            (Kind::End | Kind::Semicolon, Some(from)) => {
                statements.push(&text[from as usize..token.start as usize]);
                start = None;
            }
            (Kind::End | Kind::Semicolon, None) => {}
            (_, None) => start = Some(token.start),
            _ => {}
        }
        if token.kind == Kind::End {
            return Ok(statements);
        }
    }
}

/// The schema with an index's definition.
fn with_index(create: &CreateIndex<'_>, name: &(String, String), schema: &Schema) -> Result<Schema, CqlError> {
    let missing = || CqlError::invalid(format!("Table '{}.{}' doesn't exist", name.0, name.1));
    let keyspace = schema.keyspace(&name.0).ok_or_else(missing)?;
    let table = keyspace.tables.get(&name.1).ok_or_else(missing)?;
    let targets: Vec<String> = create.targets.iter().map(|target| target_text(target, table)).collect();
    let mut options = BTreeMap::from([("target".to_owned(), targets.join(", "))]);
    let mut kind = if table.is_compact() { IndexKind::Keys } else { IndexKind::Composites };
    let is_legacy = |class: &str| !create.custom && class.eq_ignore_ascii_case(LEGACY_INDEX);
    if let Some(class) = create.using.as_deref().filter(|class| !is_legacy(class)) {
        kind = IndexKind::Custom;
        options.insert("class_name".to_owned(), class.to_owned());
    }
    for property in &create.properties {
        if let crate::ast::PropertyValue::Map(pairs) = &property.value {
            options.extend(pairs.iter().map(|(key, value)| (key.text.to_string(), value.text.to_string())));
        }
    }
    let index_name = index_name(create, &name.1);
    let mut altered = TableMetadata::clone(table);
    altered.indexes.insert(index_name.clone(), IndexMetadata { name: index_name, kind, options });
    let mut after = KeyspaceMetadata::clone(keyspace);
    after.tables.insert(name.1.clone(), Arc::new(altered));
    Ok(schema.with_keyspace(after))
}

/// A target as the schema tables have it.
fn target_text(target: &IndexTarget<'_>, table: &TableMetadata) -> String {
    let column = maybe_quote(target.column.as_str());
    let is_collection = table.column_by_name(target.column.as_str()).is_some_and(|column| column.ty.is_multi_cell());
    match target.kind {
        IndexTargetKind::Simple if is_collection => format!("values({column})"),
        IndexTargetKind::Simple => column,
        IndexTargetKind::Values => format!("values({column})"),
        IndexTargetKind::Keys => format!("keys({column})"),
        IndexTargetKind::Entries => format!("entries({column})"),
        IndexTargetKind::Full => format!("full({column})"),
    }
}

/// The schema with a view as a table; None: its base table is not known.
fn view(
    text: &str,
    create: &CreateView<'_>,
    name: &(String, String),
    context: &DdlContext,
    schema: &Schema,
) -> Result<Option<Schema>, CqlError> {
    let base_keyspace = create.base.keyspace().unwrap_or(&name.0);
    let Some(base) = schema.table(base_keyspace, create.base.name.as_str()) else { return Ok(None) };
    let options = properties::options(&create.properties)?;
    let params = TableParams::create(&options).map_err(refused)?;
    let id = TableParams::table_id(&options).map_err(refused)?.unwrap_or(context.new_table_id);
    let specs = view_columns(create, base)?;
    let kind = TableKind::View;
    let mut table =
        TableMetadata::new(id, &name.0, &name.1, kind, TableFlags::COMPOUND, params, specs, BTreeMap::new(), None);
    table.view = Some(ViewDefinition {
        base_id: base.id,
        base_name: base.name.clone(),
        include_all_columns: create.selectors.is_empty(),
        where_clause: where_text(text)?,
        has_base_column_in_key: table.has_column_in_key_beyond(base),
    });
    let keyspace = super::existing_keyspace(schema, &name.0)?;
    let mut after = KeyspaceMetadata::clone(keyspace);
    after.tables.insert(name.1.clone(), Arc::new(table));
    Ok(Some(schema.with_keyspace(after)))
}

fn view_columns(create: &CreateView<'_>, base: &TableMetadata) -> Result<Vec<ColumnSpec>, CqlError> {
    let key = &create.primary_key;
    let mut specs = Vec::new();
    let keys = [(ColumnKind::PartitionKey, &key.partition), (ColumnKind::Clustering, &key.clustering)];
    for (kind, names) in keys {
        for (position, name) in names.iter().enumerate() {
            let ordered = create.clustering_order.iter().find(|order| order.column == *name);
            let reversed = ordered.is_some_and(|order| order.descending);
            specs.push(ColumnSpec { position, reversed, ..view_column(base, name.as_str(), kind)? });
        }
    }
    let selected: Vec<String> = match create.selectors.is_empty() {
        true => base.regulars.iter().chain(&base.clustering).map(|column| column.name.clone()).collect(),
        false => create.selectors.iter().map(|selector| column_name(&selector.selectable)).collect::<Result<_, _>>()?,
    };
    for name in selected {
        if specs.iter().all(|spec| spec.name != name) {
            specs.push(view_column(base, &name, ColumnKind::Regular)?);
        }
    }
    Ok(specs)
}

fn column_name(selectable: &Selectable<'_>) -> Result<String, CqlError> {
    match selectable {
        Selectable::Column(name) => Ok(name.as_str().to_owned()),
        _ => Err(CqlError::invalid("Can only select columns by name when defining a materialized view")),
    }
}

fn view_column(base: &TableMetadata, name: &str, kind: ColumnKind) -> Result<ColumnSpec, CqlError> {
    let column = base.column_by_name(name);
    let column = column.ok_or_else(|| CqlError::invalid(format!("Unknown column '{name}' in a materialized view")))?;
    Ok(ColumnSpec { name: name.to_owned(), kind, position: 0, ty: column.ty.clone(), reversed: false })
}

/// The text between WHERE and PRIMARY KEY.
fn where_text(text: &str) -> Result<String, CqlError> {
    let upper = text.to_ascii_uppercase();
    let start = upper.find("WHERE ").map(|at| at + "WHERE ".len());
    let end = upper.find("PRIMARY KEY");
    match (start, end) {
        (Some(start), Some(end)) if start <= end => Ok(text[start..end].trim().to_owned()),
        _ => Ok(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use schema::describe;

    use super::*;

    fn restored(text: &str) -> RestoredSchema {
        let id_of = |_: &str, table: &str| TableId([table.len() as u8; 16]);
        let restoring = RestoreOptions { keyspace: Some("ks".to_owned()), now_micros: 1, id_of: &id_of };
        restore(text, &restoring, system::schema()).unwrap()
    }

    fn columns(table: &TableMetadata) -> Vec<String> {
        let columns = table.columns_in_select_order().into_iter();
        let hidden = table.clustering.iter().chain(&table.regulars).filter(|column| table.is_hidden(column));
        let columns = columns.chain(hidden);
        columns.map(|column| format!("{} {} {}", column.name, column.ty.cql_name(), column.kind.name())).collect()
    }

    #[test]
    fn compact_tables_have_their_hidden_columns() {
        let text = "/*\nWarning: Table ks.d omitted because it has constructs not compatible with CQL (was created via \
             legacy API).\nApproximate structure, for reference:\n(this should not be used to reproduce this \
             schema)\n\nCREATE TABLE ks.d (\n    k text,\n    c int,\n    PRIMARY KEY (k, c)\n) WITH COMPACT STORAGE\n    \
             AND CLUSTERING ORDER BY (c DESC);\n*/\nCREATE TABLE ks.st (k text PRIMARY KEY, value int) WITH COMPACT STORAGE \
             AND CLUSTERING ORDER BY (column1 ASC); CREATE TABLE two (k int, a int, b int, v int, PRIMARY KEY (k, a, b)) WITH \
             COMPACT STORAGE;";
        let schema = restored(text).schema;
        let dense = schema.table("ks", "d").unwrap();
        assert_eq!(columns(dense), ["k text partition_key", "c int clustering", "value empty regular"]);
        assert_eq!((dense.flags.dense, dense.flags.compound, dense.clustering[0].reversed), (true, false, true));
        let fixed = schema.table("ks", "st").unwrap();
        let expected = ["k text partition_key", "value int static", "column1 text clustering", "value1 blob regular"];
        assert_eq!(columns(fixed), expected);
        assert_eq!((fixed.flags.dense, fixed.flags.compound), (false, false));
        let two = schema.table("ks", "two").unwrap();
        assert_eq!((two.flags.dense, two.flags.compound), (true, true));
        let described = describe::table(dense, false);
        assert!(
            described.contains("CREATE TABLE ks.d (\n    k text,\n    c int,\n    PRIMARY KEY (k, c)\n) WITH COMPACT")
        );
        let described = describe::table(fixed, false);
        assert!(
            described.contains("(\n    k text,\n    value int,\n    PRIMARY KEY (k)\n) WITH COMPACT"),
            "{described}"
        );
    }

    #[test]
    fn a_text_that_is_read_again_changes_nothing() {
        let text = "CREATE TABLE t (k int PRIMARY KEY, v int, gone text); ALTER TABLE t DROP gone USING TIMESTAMP 5;";
        let id_of = |_: &str, _: &str| TableId([1; 16]);
        let restoring = RestoreOptions { keyspace: Some("ks".to_owned()), now_micros: 1, id_of: &id_of };
        let once = restored(text).schema;
        let again = restore(text, &restoring, once.clone()).unwrap().schema;
        assert_eq!(again.table("ks", "t"), once.table("ks", "t"));
        assert_eq!(again.table("ks", "t").unwrap().dropped["gone"].dropped_time, 5);
    }

    /// The nodes that get the statements may make another kind where none is named, or refuse.
    #[test]
    fn indexes_are_made_again_as_what_they_were() {
        let text = "CREATE INDEX ON t (v) -- by value\n; CREATE INDEX s ON t (v) USING 'sai';";
        let texts: Vec<String> = schema_statements(text, "ks").unwrap().into_iter().map(|made| made.text).collect();
        let legacy = "CREATE INDEX ON t (v) -- by value\nUSING 'legacy_local_table'";
        assert_eq!(texts, [legacy, "CREATE INDEX s ON t (v) USING 'sai'"]);
        assert!(crate::parse(legacy).is_ok());
    }

    #[test]
    fn indexes_views_and_types_are_kept_as_definitions() {
        let text = "CREATE TYPE pt (x int, y int); CREATE TABLE t (k int, c int, p frozen<pt>, m map<int, text>, PRIMARY KEY (k, c)) \
             WITH ID = 54b6634c-2fb5-5635-b880-86461e077c63; CREATE INDEX i ON t (keys(m)); CREATE INDEX ON t (c) \
             USING 'legacy_local_table'; CREATE CUSTOM INDEX s ON t (p) USING 'StorageAttachedIndex' WITH OPTIONS = {'a': 'b'}; CREATE MATERIALIZED VIEW v AS SELECT c, k, p FROM t \
             WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k) WITH CLUSTERING ORDER BY (k DESC); CREATE FUNCTION \
             f(a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS $$ return a; $$;";
        let restored = restored(text);
        assert_eq!(restored.skipped, ["CREATE FUNCTION f(a int) RETURNS"]);
        let table = restored.schema.table("ks", "t").unwrap();
        assert_eq!(table.id.to_string(), "54b6634c-2fb5-5635-b880-86461e077c63");
        let texts: Vec<String> = table.indexes.values().map(|index| describe::index(table, index)).collect();
        let expected = [
            "CREATE INDEX i ON ks.t (keys(m));",
            "CREATE CUSTOM INDEX s ON ks.t (p) USING 'StorageAttachedIndex' WITH OPTIONS = {'a': 'b'};",
            "CREATE INDEX t_c_idx ON ks.t (c);",
        ];
        assert_eq!(texts, expected);
        let view = restored.schema.table("ks", "v").unwrap();
        assert_eq!(columns(view), ["c int partition_key", "k int clustering", "p frozen<pt> regular"]);
        let described = describe::view(view, view.view.as_ref().unwrap(), false);
        let head = "CREATE MATERIALIZED VIEW ks.v AS\n    SELECT c, k, p\n    FROM ks.t\n    WHERE k IS NOT NULL AND c IS NOT \
             NULL\n    PRIMARY KEY (c, k)\n WITH CLUSTERING ORDER BY (k DESC)\n    AND additional";
        assert!(described.starts_with(head), "{described}");
        // what is read back from the rows is what was written
        let rows = restored.schema.keyspaces["ks"].as_ref();
        let read = Schema::from_rows(schema::system_schema::rows_of(rows), None).schema;
        let view_again = read.table("ks", "v").unwrap();
        assert_eq!((&view_again.view, view_again.kind), (&view.view, view.kind));
    }
}
