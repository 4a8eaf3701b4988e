//! CREATE and ALTER MATERIALIZED VIEW, and what changes of a base table change in its views.
//!
//! The checks stand in the order in which Cassandra makes them, since a statement with two mistakes
//! must be refused for the same one.
//!
//! Must agree with: `CreateViewStatement`, `AlterViewStatement`, `ViewMetadata`, and the parts
//! about views of `AlterTableStatement`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schema::table::ColumnSpec;
use schema::{
    ColumnKind, ColumnMetadata, KeyspaceMetadata, Schema, TableFlags, TableKind, TableMetadata, TableParams,
    ViewDefinition,
};
use types::CqlType;
use types::ident::maybe_quote;

use super::{
    ChangedSchema, DdlContext, SchemaAction, SchemaObject, check_changeable, event, keyspace_of, properties, refused,
};
use crate::ast::{AlterView, CreateView, Ident, Relation, Selectable, WhereClause};
use crate::context::find_column;
use crate::error::CqlError;
use crate::parse::where_clause;
use crate::restrictions::of_view;
use crate::result::{SchemaChangeKind, SchemaTarget};

/// The warning that clients get who create a view (`View.USAGE_WARNING`).
pub(super) const USAGE_WARNING: &str =
    "Materialized views are experimental and are not recommended for production use.";

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

pub(super) fn create(
    create: &CreateView<'_>,
    context: &DdlContext,
    schema: &Schema,
) -> Result<ChangedSchema, CqlError> {
    let keyspace_name = keyspace_of(&create.name, context)?;
    let (name, base_name) = (create.name.name.as_str(), create.base.name.as_str());
    if create.base.keyspace().is_some_and(|keyspace| keyspace != keyspace_name) {
        return invalid("Cannot create a materialized view on a table in a different keyspace");
    }
    check_orders(create)?;
    check_changeable(keyspace_name, SchemaAction::Alter, SchemaObject::Table(base_name))?;
    if !context.switches.views {
        return invalid("Materialized views are disabled. Enable in cassandra.yaml to use.");
    }
    let keyspace = super::existing_keyspace(schema, keyspace_name)?;
    let Some(base) = keyspace.tables.get(base_name).filter(|table| table.kind != TableKind::View) else {
        return invalid(format!("Base table '{base_name}' doesn't exist"));
    };
    if let Some(other) = keyspace.tables.get(name) {
        if other.kind != TableKind::View {
            return invalid(format!(
                "Cannot create materialized view '{name}' - a table with the same name already exists"
            ));
        }
        if create.if_not_exists {
            return Ok(None);
        }
        return Err(CqlError::AlreadyExists {
            keyspace: keyspace_name.to_owned(),
            table: name.to_owned(),
            message: format!("Cannot add already existing table \"{name}\" to keyspace \"{keyspace_name}\""),
        });
    }
    if base.is_counter() {
        return invalid("Materialized views are not supported on counter tables");
    }
    if base.params.gc_grace_seconds == 0 {
        return invalid(format!(
            "Cannot create materialized view '{name}' for base table '{base_name}' with gc_grace_seconds of 0, since this value is \
             used to TTL undelivered updates. Setting gc_grace_seconds too low might cause undelivered updates to expire \
             before being replayed."
        ));
    }
    let selected = selected(create, base, name)?;
    let key: Vec<&Ident<'_>> = create.primary_key.partition.iter().chain(&create.primary_key.clustering).collect();
    check_key(create, base, &selected, &key, name)?;
    check_where(create, base, &key, name, schema)?;
    let options = properties::of_table(&create.properties, context)?;
    let mut params = TableParams::create_with(&options, &context.default_compaction).map_err(refused)?;
    params.cdc = params.cdc.take().or(Some(false)).filter(|_| context.switches.cdc);
    if params.default_time_to_live != 0 {
        return invalid(
            "Cannot set default_time_to_live for a materialized view. Data in a materialized view always expire at the same time \
             than the corresponding data in the parent table.",
        );
    }
    let id = TableParams::table_id(&options).map_err(refused)?.unwrap_or(context.new_table_id);
    if schema.table_by_id(id).is_some() {
        return Err(CqlError::Config(format!("A table with id {id} exists already")));
    }
    let table = TableMetadata::new(
        id,
        keyspace_name,
        name,
        TableKind::View,
        TableFlags::COMPOUND,
        params,
        specs(create, base, &selected),
        BTreeMap::new(),
        None,
    );
    super::create_table::check_name(&table)?;
    let table = with_definition(table, create, base);
    let mut after = KeyspaceMetadata::clone(keyspace);
    after.tables.insert(name.to_owned(), Arc::new(table));
    let event = event(SchemaChangeKind::Created, SchemaTarget::Table, keyspace_name, name);
    Ok(Some((schema.with_keyspace(after), event)))
}

fn with_definition(mut table: TableMetadata, create: &CreateView<'_>, base: &TableMetadata) -> TableMetadata {
    let shown = |column: &String| table.column_by_name(column).is_some();
    table.masks = base
        .masks
        .iter()
        .filter(|(column, _)| shown(column))
        .map(|(name, mask)| (name.clone(), mask.clone()))
        .collect();
    table.view = Some(ViewDefinition {
        base_id: base.id,
        base_name: base.name.clone(),
        include_all_columns: create.selectors.is_empty(),
        where_clause: text_of(&create.where_clause),
        has_base_column_in_key: table.has_column_in_key_beyond(base),
    });
    table
}

fn check_orders(create: &CreateView<'_>) -> Result<(), CqlError> {
    let mut ordered = BTreeSet::new();
    for order in &create.clustering_order {
        if !ordered.insert(order.column.as_str()) {
            return invalid(format!(
                "Duplicate column '{}' in CLUSTERING ORDER BY clause for view '{}'",
                order.column, create.name
            ));
        }
    }
    Ok(())
}

/// The names of the selected columns.
fn selected<'s>(
    create: &'s CreateView<'_>,
    base: &'s TableMetadata,
    name: &str,
) -> Result<BTreeSet<&'s str>, CqlError> {
    let mut selected = BTreeSet::new();
    if create.selectors.is_empty() {
        let columns = [&base.partition_key, &base.clustering, &base.statics, &base.regulars];
        selected.extend(columns.into_iter().flatten().map(|column| column.name.as_str()));
    }
    for selector in &create.selectors {
        if selector.alias.is_some() {
            return invalid(format!(
                "Cannot use aliases when defining a materialized view (got {})",
                selector_text(&selector.selectable, selector.alias.as_ref())
            ));
        }
        let Selectable::Column(column) = &selector.selectable else {
            return invalid(format!(
                "Can only select columns by name when defining a materialized view (got {})",
                selector_text(&selector.selectable, None)
            ));
        };
        selected.insert(find_column(base, column.as_str())?.name.as_str());
    }
    let of_base = |column: &&str| base.column_by_name(column);
    if let Some(column) = selected.iter().filter_map(of_base).find(|column| column.is_static()) {
        return invalid(format!(
            "Cannot include static column '{}' in materialized view '{name}'",
            maybe_quote(&column.name)
        ));
    }
    Ok(selected)
}

fn selector_text(selectable: &Selectable<'_>, alias: Option<&Ident<'_>>) -> String {
    match alias {
        Some(alias) => format!("{selectable} AS {alias}"),
        None => selectable.to_string(),
    }
}

fn check_key(
    create: &CreateView<'_>,
    base: &TableMetadata,
    selected: &BTreeSet<&str>,
    key: &[&Ident<'_>],
    name: &str,
) -> Result<(), CqlError> {
    if create.primary_key.partition.is_empty() {
        return invalid(format!("Must provide at least one partition key column for materialized view '{name}'"));
    }
    let mut seen = BTreeSet::new();
    for column in key {
        let found = base.column_by_name(column.as_str()).filter(|_| selected.contains(column.as_str()));
        let Some(found) = found else {
            return invalid(format!(
                "Unknown column '{column}' referenced in PRIMARY KEY for materialized view '{name}'"
            ));
        };
        if !seen.insert(column.as_str()) {
            return invalid(format!(
                "Duplicate column '{column}' in PRIMARY KEY clause for materialized view '{name}'"
            ));
        }
        check_key_type(found, column)?;
    }
    let ordered = create.clustering_order.iter().map(|order| order.column.as_str());
    if !create.clustering_order.is_empty() && !create.primary_key.clustering.iter().map(Ident::as_str).eq(ordered) {
        return invalid("Clustering key columns must exactly match columns in CLUSTERING ORDER BY directive");
    }
    let of_base = || base.partition_key.iter().chain(&base.clustering);
    let missing: Vec<&str> =
        of_base().map(|column| column.name.as_str()).filter(|column| !seen.contains(column)).collect();
    if !missing.is_empty() {
        return invalid(format!(
            "Cannot create materialized view '{name}' without primary key columns {} from base table '{}'",
            missing.join(", "),
            base.name
        ));
    }
    let of_base: BTreeSet<&str> = of_base().map(|column| column.name.as_str()).collect();
    let beyond = seen.into_iter().filter(|name| !of_base.contains(name));
    let beyond = in_hash_order(beyond.collect());
    if beyond.len() > 1 {
        return invalid(format!(
            "Cannot include more than one non-primary key column in materialized view primary key (got {})",
            beyond.join(", ")
        ));
    }
    Ok(())
}

/// Names in the order in which Cassandra's messages list them: that of a `HashSet` of Java, by the
/// hashes of their bytes.
fn in_hash_order(mut names: Vec<&str>) -> Vec<&str> {
    const LEAST: usize = 16;
    // a set grows when it is three quarters full
    let room = (LEAST..).find(|room| room.is_power_of_two() && names.len() * 4 <= room * 3).unwrap_or(LEAST);
    let place = |name: &&str| {
        let hash = name
            .bytes()
            .rev()
            .fold(1i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(i8::from_ne_bytes([byte]))));
        let hash = hash.cast_unsigned();
        (hash ^ (hash >> 16)) as usize & (room - 1)
    };
    names.sort_by_key(place);
    names
}

fn check_key_type(column: &ColumnMetadata, name: &Ident<'_>) -> Result<(), CqlError> {
    let ty = &column.ty;
    if ty.is_multi_cell() {
        let what = if ty.is_collection() { "collection" } else { "user-defined" };
        return invalid(format!(
            "Invalid non-frozen {what} type '{}' for PRIMARY KEY column '{name}'",
            types::marshal::print(ty, false)
        ));
    }
    if ty.is_counter() {
        return invalid(format!("counter type is not supported for PRIMARY KEY column '{name}'"));
    }
    if ty.any(&mut |ty| *ty == CqlType::Duration) {
        return invalid(format!("duration type is not supported for PRIMARY KEY column '{name}'"));
    }
    Ok(())
}

fn check_where(
    create: &CreateView<'_>,
    base: &Arc<TableMetadata>,
    key: &[&Ident<'_>],
    name: &str,
    schema: &Schema,
) -> Result<(), CqlError> {
    let clause = &create.where_clause;
    let is_of_token =
        |relation: &Relation<'_>| matches!(relation, Relation::Token { .. } | Relation::TokenBetween { .. });
    if clause.relations.iter().any(is_of_token) {
        return invalid("Cannot use token relation when defining a materialized view");
    }
    // the text is part of the schema, which Cassandra nodes of the ring read too
    let is_not_in = |relation: &Relation<'_>| {
        matches!(relation, Relation::ColumnIn { negated: true, .. } | Relation::TupleIn { negated: true, .. })
    };
    if clause.relations.iter().any(is_not_in) {
        return invalid("NOT IN cannot be used when defining a materialized view");
    }
    if !clause.expressions.is_empty() {
        return invalid(format!("WHERE clause for materialized view '{name}' cannot contain custom index expressions"));
    }
    of_view(&Arc::new(schema.clone()), base, clause)?;
    let restricted: BTreeSet<&str> = clause.relations.iter().flat_map(Relation::columns).map(Ident::as_str).collect();
    let open = key.iter().map(|column| column.as_str()).filter(|column| !restricted.contains(column));
    let open = in_hash_order(open.collect());
    if !open.is_empty() {
        return invalid(format!(
            "Primary key columns {} must be restricted with 'IS NOT NULL' or otherwise",
            open.join(", ")
        ));
    }
    let tests = clause.relations.iter().filter(|relation| !matches!(relation, Relation::IsNotNull { .. }));
    let columns: BTreeSet<&str> = tests.flat_map(Relation::columns).map(Ident::as_str).collect();
    let is_beyond = |column: &&str| base.column_by_name(column).is_some_and(|column| !column.is_primary_key());
    let beyond: Vec<&str> = columns.into_iter().filter(is_beyond).collect();
    if !beyond.is_empty() {
        return invalid(format!(
            "Non-primary key columns can only be restricted with 'IS NOT NULL' (got: {} restricted illegally)",
            beyond.join(",")
        ));
    }
    Ok(())
}

fn specs(create: &CreateView<'_>, base: &TableMetadata, selected: &BTreeSet<&str>) -> Vec<ColumnSpec> {
    let orders = create.clustering_order.iter().map(|order| (order.column.as_str(), order.descending));
    let orders: BTreeMap<&str, bool> = orders.collect();
    let spec = |name: &str, kind, position| {
        let column = base.column_by_name(name)?;
        // a column that is descending in the base stays so where nothing else is said
        let reversed = orders.get(name).copied().unwrap_or(column.reversed);
        let reversed = reversed && kind == ColumnKind::Clustering;
        Some(ColumnSpec { name: name.to_owned(), kind, position, ty: column.ty.clone(), reversed })
    };
    let key = &create.primary_key;
    let keys = [(ColumnKind::PartitionKey, &key.partition), (ColumnKind::Clustering, &key.clustering)];
    let of_keys = keys.into_iter().flat_map(|(kind, names)| {
        names.iter().enumerate().filter_map(move |(position, name)| spec(name.as_str(), kind, position))
    });
    let names = super::create_table::key_names(key);
    let rest = selected.iter().filter(|name| !names.contains(*name));
    of_keys.chain(rest.filter_map(|name| spec(name, ColumnKind::Regular, 0))).collect()
}

/// A WHERE as `system_schema.views` has it.
pub(super) fn text_of(clause: &WhereClause<'_>) -> String {
    clause.relations.iter().map(relation_text).collect::<Vec<_>>().join(" AND ")
}

/// A relation as Cassandra 5.0 reads it: BETWEEN is written as two comparisons. Quotes in texts are
/// doubled, which Cassandra leaves as they are: the WHERE is parsed again when the schema is read.
fn relation_text(relation: &Relation<'_>) -> String {
    let quoted = |name: &Ident<'_>| maybe_quote(name.as_str());
    let names = |columns: &[Ident<'_>]| columns.iter().map(quoted).collect::<Vec<_>>().join(", ");
    match relation {
        Relation::Column { column, operator, value } => format!("{} {} {value:#}", quoted(column), operator.symbol()),
        Relation::ColumnIn { column, values, negated } => {
            format!("{} {} {values:#}", quoted(column), if *negated { "NOT IN" } else { "IN" })
        }
        Relation::IsNotNull { column } => format!("{} IS NOT NULL", quoted(column)),
        Relation::Element { column, key, operator, value } => {
            format!("{}[{key:#}] {} {value:#}", quoted(column), operator.symbol())
        }
        Relation::Token { columns, operator, value } => {
            format!("token({}) {} {value:#}", names(columns), operator.symbol())
        }
        Relation::Tuple { columns, operator, value } => {
            format!("({}) {} {value:#}", names(columns), operator.symbol())
        }
        Relation::TupleIn { columns, values, negated } => {
            format!("({}) {} {values:#}", names(columns), if *negated { "NOT IN" } else { "IN" })
        }
        Relation::Between { .. } | Relation::TokenBetween { .. } | Relation::TupleBetween { .. } => {
            relation.bounds().iter().flatten().map(relation_text).collect::<Vec<_>>().join(" AND ")
        }
    }
}

pub(super) fn alter(alter: &AlterView<'_>, context: &DdlContext, schema: &Schema) -> Result<ChangedSchema, CqlError> {
    let (keyspace_name, name) = (keyspace_of(&alter.name, context)?, alter.name.name.as_str());
    check_changeable(keyspace_name, SchemaAction::Alter, SchemaObject::AllTables)?;
    let found = schema.keyspace(keyspace_name).and_then(|keyspace| Some((keyspace, keyspace.tables.get(name)?)));
    let Some((keyspace, view)) = found.filter(|(_, table)| table.kind == TableKind::View) else {
        if alter.if_exists {
            return Ok(None);
        }
        return invalid(format!("Materialized view '{keyspace_name}.{name}' doesn't exist"));
    };
    let options = properties::of_table(&alter.properties, context)?;
    let mut params = view.params.altered(&options).map_err(refused)?;
    if !context.switches.cdc {
        params.cdc = view.params.cdc;
    }
    if TableParams::table_id(&options).map_err(refused)?.is_some() {
        return Err(CqlError::Config("Cannot alter table id.".to_owned()));
    }
    if params.gc_grace_seconds == 0 {
        return invalid(
            "Cannot alter gc_grace_seconds of a materialized view to 0, since this value is used to TTL undelivered updates. Setting \
             gc_grace_seconds too low might cause undelivered updates to expire before being replayed.",
        );
    }
    if params.default_time_to_live > 0 {
        return invalid(
            "Forbidden default_time_to_live detected for a materialized view. Data in a materialized view always expire at the same \
             time than the corresponding data in the parent table. default_time_to_live must be set to zero, see CASSANDRA-12868 \
             for more information",
        );
    }
    let mut altered = TableMetadata::clone(view);
    altered.params = params;
    let mut after = KeyspaceMetadata::clone(keyspace);
    after.tables.insert(name.to_owned(), Arc::new(altered));
    let event = event(SchemaChangeKind::Updated, SchemaTarget::Table, keyspace_name, name);
    Ok(Some((schema.with_keyspace(after), event)))
}

/// The views of a table that is altered: columns that are new are in those of `SELECT *`, columns
/// of the key that are renamed are renamed in all. `renamed`: old and new names.
pub(super) fn alter_views_of(
    keyspace: &mut KeyspaceMetadata,
    base: &TableMetadata,
    altered: &TableMetadata,
    renamed: &[(Ident<'_>, Ident<'_>)],
) -> Result<(), CqlError> {
    let names: BTreeMap<&str, &str> = renamed.iter().rev().map(|(old, new)| (old.as_str(), new.as_str())).collect();
    let added: Vec<&ColumnMetadata> =
        altered.regulars.iter().filter(|column| base.column_by_name(&column.name).is_none()).collect();
    for view in keyspace.tables.values_mut() {
        let Some(definition) = view.view.clone().filter(|view| view.base_id == base.id) else { continue };
        let mut specs = view.specs();
        let (mut masks, mut clause) = (view.masks.clone(), definition.where_clause.clone());
        if !names.is_empty() {
            let named = |old: &str| names.get(old).map_or_else(|| old.to_owned(), |new| (*new).to_owned());
            specs.iter_mut().for_each(|spec| spec.name = named(&spec.name));
            masks = masks.into_iter().map(|(old, mask)| (named(&old), mask)).collect();
            clause = renamed_clause(&clause, &names)?;
        }
        if definition.include_all_columns {
            for column in &added {
                let (name, ty) = (column.name.clone(), column.ty.clone());
                masks.extend(altered.masks.get(&name).map(|mask| (name.clone(), mask.clone())));
                specs.push(ColumnSpec { name, kind: ColumnKind::Regular, position: 0, ty, reversed: false });
            }
        }
        let (of, name, dropped) = (&view.keyspace, &view.name, view.dropped.clone());
        let params = view.params.clone();
        let mut next =
            TableMetadata::new(view.id, of, name, view.kind, view.flags, params, specs, dropped, Some(&**view));
        next.masks = masks;
        next.view = Some(ViewDefinition { where_clause: clause, ..definition });
        *view = Arc::new(next);
    }
    Ok(())
}

fn renamed_clause(text: &str, names: &BTreeMap<&str, &str>) -> Result<String, CqlError> {
    let mut clause = where_clause(text)?;
    for column in clause.relations.iter_mut().flat_map(Relation::columns_mut) {
        if let Some(new) = names.get(column.as_str()) {
            *column = Ident::owned(new);
        }
    }
    Ok(text_of(&clause))
}
