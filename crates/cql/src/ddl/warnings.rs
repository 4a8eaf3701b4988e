//! Warnings for clients about a change of the schema that is made all the same.
//!
//! Must agree with: `SimpleStrategy.maybeWarnOnOptions`,
//! `NetworkTopologyStrategy.maybeWarnOnOptions`, `AlterKeyspaceStatement.clientWarnings`.
//! Guardrails are in [`crate::guardrails`].

use schema::index::definition::IndexDefinition;
use schema::{KeyspaceMetadata, Schema, system};

use super::{DdlContext, view};
use crate::ast::{CreateIndex, Statement};

const MORE_COPIES: &str =
    "When increasing replication factor you need to run a full (-full) repair to distribute the data.";

const VECTOR_USAGE_WARNING: &str =
    "SAI ANN indexes on vector columns are experimental and are not recommended for production use.
They don't yet support SELECT queries with:
 * Consistency level higher than ONE/LOCAL_ONE.
 * Paging.
 * No LIMIT clauses.
 * PER PARTITION LIMIT clauses.
 * GROUP BY clauses.
 * Aggregation functions.
 * Filters on columns without a SAI index.";

const SASI_USAGE_WARNING: &str = "SASI indexes are experimental and are not recommended for production use.";

/// The index that a statement has made. None: it has made none, or one that this node does not keep
/// up.
fn new_index(
    create: &CreateIndex<'_>,
    context: &DdlContext,
    before: &Schema,
    after: &Schema,
) -> Option<IndexDefinition> {
    let keyspace = super::keyspace_of(&create.table, context).ok()?;
    let table = |schema: &Schema| schema.keyspace(keyspace)?.tables.get(create.table.name.as_str()).cloned();
    let (old, new) = (table(before)?, table(after)?);
    let index = new.indexes.values().find(|index| !old.indexes.contains_key(&index.name))?;
    IndexDefinition::of(&new, index, false)
}

/// The warnings for a statement that has turned `before` into `after`.
pub fn warnings(statement: &Statement<'_>, context: &DdlContext, before: &Schema, after: &Schema) -> Vec<String> {
    match statement {
        Statement::CreateKeyspace(create) => {
            let keyspace = after.keyspace(create.name.as_str());
            keyspace.map(|keyspace| too_many_copies(keyspace, context)).unwrap_or_default()
        }
        // also where IF NOT EXISTS finds the view
        Statement::CreateView(_) => vec![view::USAGE_WARNING.to_owned()],
        Statement::CreateIndex(create) => match new_index(create, context, before, after) {
            Some(index) if index.vectors.is_some() => vec![VECTOR_USAGE_WARNING.to_owned()],
            Some(index) if index.sasi.is_some() => vec![SASI_USAGE_WARNING.to_owned()],
            _ => Vec::new(),
        },
        Statement::AlterKeyspace(alter) => {
            let name = alter.name.as_str();
            let (Some(old), Some(new)) = (before.keyspace(name), after.keyspace(name)) else {
                return Vec::new();
            };
            let mut warnings = too_many_copies(new, context);
            if old.replication.factor() < new.replication.factor() {
                warnings.push(MORE_COPIES.to_owned());
            }
            warnings
        }
        _ => Vec::new(),
    }
}

/// More copies than nodes: than all of them with SimpleStrategy, else than those of the datacenter.
fn too_many_copies(keyspace: &KeyspaceMetadata, context: &DdlContext) -> Vec<String> {
    if system::is_system_keyspace(&keyspace.name) {
        return Vec::new();
    }
    let simple = keyspace.replication.short_class() == "SimpleStrategy";
    let mut warnings = Vec::new();
    for (key, factor) in &keyspace.replication.options {
        let (nodes, place) = match simple {
            true => (context.datacenters.values().sum(), String::new()),
            false => (context.datacenters.get(key).copied().unwrap_or(0), format!(" for datacenter {key}")),
        };
        // no node at all is known where a schema is read outside of a ring
        if nodes > 0 && factor.parse::<usize>().is_ok_and(|copies| copies > nodes) {
            warnings.push(format!(
                "Your replication factor {factor} for keyspace {} is higher than the number of nodes {nodes}{place}",
                keyspace.name
            ));
        }
    }
    warnings
}
