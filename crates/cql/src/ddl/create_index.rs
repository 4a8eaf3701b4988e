//! CREATE INDEX: what is checked, and the index in the schema.
//!
//! Indexes of legacy kind, storage-attached ones and those of SASI are made; those of other classes
//! are checked as far as they share the rules, then refused: nothing keeps them up.
//! Must agree with: `CreateIndexStatement`, `IndexTarget`, `IndexAttributes`, `IndexMetadata`,
//! `SecondaryIndexes`.

mod attached;
mod sasi;

use std::collections::BTreeMap;
use std::sync::Arc;

use schema::ident::maybe_quote;
use schema::index::attached::is_attached_class;
use schema::index::sasi::CLASS;
use schema::{IndexKind, IndexMetadata, KeyspaceMetadata, Schema, TableKind, TableMetadata};
use types::CqlType;

use super::{
    ChangedSchema, DdlContext, SchemaAction, SchemaObject, check_changeable, event, is_word, properties, refused,
};
use crate::ast::{CreateIndex, IndexTarget, IndexTargetKind};
use crate::context::find_column;
use crate::coordinator::LEGACY_INDEX;
use crate::error::CqlError;
use crate::result::{SchemaChangeKind, SchemaTarget};

/// The package of Cassandra's own implementations.
const CASSANDRAS_CLASSES: &str = "org.apache.cassandra.index.";
/// Its options that are the statement's to give.
const RESERVED_OPTIONS: [&str; 2] = ["class_name", "target"];

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

pub(super) fn create(
    create: &CreateIndex<'_>,
    context: &DdlContext,
    schema: &Schema,
) -> Result<ChangedSchema, CqlError> {
    let keyspace_name = super::keyspace_of(&create.table, context)?;
    let table_name = create.table.name.as_str();
    let class = class(create, context)?;
    check_changeable(keyspace_name, SchemaAction::Alter, SchemaObject::Table(table_name))?;
    check_attributes(create, class.as_deref(), context)?;
    let Some(keyspace) = schema.keyspace(keyspace_name) else {
        return invalid(format!("Keyspace '{keyspace_name}' doesn't exist"));
    };
    let Some(table) = keyspace.tables.get(table_name) else {
        return invalid(format!("Table '{table_name}' doesn't exist"));
    };
    let given = create.name.as_ref().map(|name| name.as_str());
    if let Some(name) = given.filter(|name| has_index(keyspace, name)) {
        return if create.if_not_exists { Ok(None) } else { invalid(format!("Index '{name}' already exists")) };
    }
    if table.is_counter() {
        return invalid("Secondary indexes on counter tables aren't supported");
    }
    if table.kind == TableKind::View {
        return invalid("Secondary indexes on materialized views aren't supported");
    }
    let targets = targets(create, table, class.is_some())?;
    for (target, kind) in create.targets.iter().zip(&targets) {
        check_target(table, target, *kind, class.is_some())?;
    }
    let name = given.map_or_else(|| available_name(keyspace, table_name, &create.targets), str::to_owned);
    if let Some(class) = class.as_deref().filter(|class| !is_attached_class(class) && *class != CLASS) {
        return refuse_class(class);
    }
    let target = create.targets.iter().zip(&targets).map(|(target, kind)| target_text(target, *kind));
    let mut options = BTreeMap::from([("target".to_owned(), target.collect::<Vec<_>>().join(", "))]);
    let kind = match &class {
        None => IndexKind::Composites,
        Some(class) => {
            options.extend(given_options(create)?);
            options.insert("class_name".to_owned(), class.clone());
            IndexKind::Custom
        }
    };
    let index = IndexMetadata { name: name.clone(), kind, options };
    let is_equal = |other: &&IndexMetadata| other.kind == index.kind && other.options == index.options;
    if let Some(other) = table.indexes.values().find(is_equal) {
        let message = format!("Index {name} is a duplicate of existing index {}", other.name);
        return if create.if_not_exists { Ok(None) } else { invalid(message) };
    }
    if !is_word(&name) {
        return Err(CqlError::Config(format!("Illegal index name {name}")));
    }
    match class.as_deref() {
        None => {}
        Some(CLASS) => sasi::check(table, &index)?,
        Some(_) => attached::check(table, &index)?,
    }
    let mut altered = TableMetadata::clone(table);
    altered.indexes.insert(name, index);
    let mut after = KeyspaceMetadata::clone(keyspace);
    after.tables.insert(table_name.to_owned(), Arc::new(altered));
    let event = event(SchemaChangeKind::Updated, SchemaTarget::Table, keyspace_name, table_name);
    Ok(Some((schema.with_keyspace(after), event)))
}

/// The class that is to keep the index up; None: it is of legacy kind.
fn class(create: &CreateIndex<'_>, context: &DdlContext) -> Result<Option<String>, CqlError> {
    let named = match (create.using.as_deref(), &context.default_index) {
        (Some(named), _) => named,
        (None, Some(default)) => default,
        (None, None) => return invalid("Must specify index implementation via USING"),
    };
    let is_legacy = !create.custom && named.eq_ignore_ascii_case(LEGACY_INDEX);
    Ok((!is_legacy).then(|| named.to_owned()))
}

fn check_attributes(create: &CreateIndex<'_>, class: Option<&str>, context: &DdlContext) -> Result<(), CqlError> {
    let options = properties::options(&create.properties)?;
    options.check_names(&["options"]).map_err(refused)?;
    if class.is_none() && !options.is_empty() {
        return invalid("Cannot specify options for a non-CUSTOM index");
    }
    let given = options.map("options").map_err(refused)?;
    for reserved in RESERVED_OPTIONS {
        if given.is_some_and(|given| given.contains_key(reserved)) {
            return invalid(format!("Cannot specify {reserved} as a CUSTOM option"));
        }
    }
    if class == Some(CLASS) && !context.switches.sasi {
        return invalid("SASI indexes are disabled. Enable in cassandra.yaml to use.");
    }
    Ok(())
}

/// The options of the statement.
fn given_options(create: &CreateIndex<'_>) -> Result<BTreeMap<String, String>, CqlError> {
    let options = properties::options(&create.properties)?;
    let given = options.map("options").map_err(refused)?;
    Ok(given.into_iter().flatten().map(|(name, value)| (name.to_string(), value.to_string())).collect())
}

fn refuse_class<T>(class: &str) -> Result<T, CqlError> {
    let own = class.strip_prefix(CASSANDRAS_CLASSES);
    let name = own.and_then(|own| own.rsplit('.').next()).unwrap_or(class);
    Err(match name.to_ascii_lowercase().as_str() {
        _ if own.is_some() => CqlError::unsupported(&format!("Indexes of class {class} are")),
        _ => CqlError::Config(format!("Unable to find custom indexer class '{class}'")),
    })
}

/// An index of the keyspace has the name.
pub(super) fn has_index(keyspace: &KeyspaceMetadata, name: &str) -> bool {
    keyspace.tables.values().any(|table| table.indexes.contains_key(name))
}

/// The parts of their columns that the targets index: the name of a collection alone means its
/// values.
fn targets(create: &CreateIndex<'_>, table: &TableMetadata, is_custom: bool) -> Result<Vec<IndexTargetKind>, CqlError> {
    let mut kinds = Vec::with_capacity(create.targets.len());
    for target in &create.targets {
        let column = find_column(table, target.column.as_str())?;
        let means_values = target.kind == IndexTargetKind::Simple && column.ty.is_collection();
        kinds.push(if means_values { IndexTargetKind::Values } else { target.kind });
    }
    if kinds.is_empty() && !is_custom {
        return invalid("Only CUSTOM indexes can be created without specifying a target column");
    }
    if kinds.len() > 1 {
        if !is_custom {
            return invalid("Only CUSTOM indexes support multiple columns");
        }
        for (at, target) in create.targets.iter().enumerate() {
            if create.targets[..at].iter().any(|other| other.column == target.column) {
                return invalid(format!("Duplicate column '{}' in index target list", target.column.as_str()));
            }
        }
    }
    Ok(kinds)
}

fn word(kind: IndexTargetKind) -> &'static str {
    match kind {
        IndexTargetKind::Simple => "",
        IndexTargetKind::Values => "values",
        IndexTargetKind::Keys => "keys",
        IndexTargetKind::Entries => "entries",
        IndexTargetKind::Full => "full",
    }
}

fn target_text(target: &IndexTarget<'_>, kind: IndexTargetKind) -> String {
    let column = maybe_quote(target.column.as_str());
    match kind {
        IndexTargetKind::Simple => column,
        kind => format!("{}({column})", word(kind)),
    }
}

fn check_target(
    table: &TableMetadata,
    target: &IndexTarget<'_>,
    kind: IndexTargetKind,
    is_custom: bool,
) -> Result<(), CqlError> {
    let column = find_column(table, target.column.as_str())?;
    let (name, ty) = (&column.name, &column.ty);
    if is_custom && !is_word(name) {
        return invalid(format!("Column '{name}' contains non-alphanumeric-underscore characters"));
    }
    if has_duration(ty) {
        let what = match ty {
            _ if ty.is_collection() => "collections containing durations",
            CqlType::Tuple(_) => "tuples containing durations",
            CqlType::Udt(..) => "UDTs containing durations",
            _ => "duration columns",
        };
        return invalid(format!("Secondary indexes are not supported on {what}"));
    }
    if table.is_compact() && column.is_primary_key() {
        return invalid("Secondary indexes are not supported on PRIMARY KEY columns in COMPACT STORAGE tables");
    }
    if table.compact_value().is_some_and(|value| value.name == *name) {
        return invalid("Secondary indexes are not supported on compact value column of COMPACT STORAGE tables");
    }
    if column.kind == schema::ColumnKind::PartitionKey && table.partition_key.len() == 1 {
        return invalid(format!("Cannot create secondary index on the only partition key column {name}"));
    }
    let is_frozen_collection = ty.is_collection() && !ty.is_multi_cell();
    if is_frozen_collection && kind != IndexTargetKind::Full {
        return invalid(format!(
            "Cannot create {}() index on frozen column {name}. Frozen collections are immutable and must be fully indexed by using the \
             'full({})' modifier",
            word(kind),
            maybe_quote(name)
        ));
    }
    if !is_frozen_collection && kind == IndexTargetKind::Full {
        return invalid("full() indexes can only be created on frozen collections");
    }
    if !ty.is_collection() && kind != IndexTargetKind::Simple {
        return invalid(format!(
            "Cannot create {}() index on {name}. Non-collection columns only support simple indexes",
            word(kind)
        ));
    }
    let is_map = matches!(ty, CqlType::Map { .. }) && ty.is_multi_cell();
    if !is_map && matches!(kind, IndexTargetKind::Keys | IndexTargetKind::Entries) {
        return invalid(format!("Cannot create index on {} of column {name} with non-map type", word(kind)));
    }
    if matches!(ty, CqlType::Udt(..)) && ty.is_multi_cell() {
        return invalid(format!("Cannot create index on non-frozen UDT column {name}"));
    }
    Ok(())
}

fn has_duration(ty: &CqlType) -> bool {
    ty.any(&mut |ty| *ty == CqlType::Duration)
}

/// `table_column_idx`, with a number where there is one already.
fn available_name(keyspace: &KeyspaceMetadata, table: &str, targets: &[IndexTarget<'_>]) -> String {
    let base = match targets {
        [target] => format!("{table}_{}_idx", target.column.as_str()),
        _ => format!("{table}_idx"),
    };
    let base: String = base.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    if !has_index(keyspace, &base) {
        return base;
    }
    let numbered = (1u32..).map(|number| format!("{base}_{number}"));
    numbered.into_iter().find(|name| !has_index(keyspace, name)).unwrap_or(base)
}
