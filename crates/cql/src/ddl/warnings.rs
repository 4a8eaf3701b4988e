//! What a change of the schema is worth a word about, though it is made.
//!
//! Must agree with: `SimpleStrategy.maybeWarnOnOptions`, `NetworkTopologyStrategy.maybeWarnOnOptions`,
//! `AlterKeyspaceStatement.clientWarnings`, the guardrail `zero_ttl_on_twcs` as it is by default.

use schema::{KeyspaceMetadata, Schema, TableMetadata, system};

use super::{DdlContext, keyspace_of};
use crate::ast::{QualifiedName, Statement, TableAlteration};

const MORE_COPIES: &str =
    "When increasing replication factor you need to run a full (-full) repair to distribute the data.";

const NO_TTL: &str = "Guardrail zero_ttl_on_twcs violated: 0 default_time_to_live on a table with \
     TimeWindowCompactionStrategy compaction strategy is not recommended. It is suspicious to use default_time_to_live set \
     to 0 with such compaction strategy. Please keep in mind that data will not start to automatically expire after they \
     are older than a respective compaction window unit of a certain size. Please set TTL for your INSERT or UPDATE \
     statements if you expect data to be expired as table settings will not do it. ";

/// The warnings for a statement that has turned `before` into `after`, in a cluster of one node a datacenter.
pub fn warnings(statement: &Statement<'_>, context: &DdlContext, before: &Schema, after: &Schema) -> Vec<String> {
    match statement {
        Statement::CreateKeyspace(create) => {
            after.keyspace(create.name.as_str()).map(|keyspace| too_many_copies(keyspace)).unwrap_or_default()
        }
        Statement::AlterKeyspace(alter) => {
            let name = alter.name.as_str();
            let (Some(old), Some(new)) = (before.keyspace(name), after.keyspace(name)) else {
                return Vec::new();
            };
            let mut warnings = too_many_copies(new);
            if old.replication.factor() < new.replication.factor() {
                warnings.push(MORE_COPIES.to_owned());
            }
            warnings
        }
        Statement::CreateTable(create) => no_ttl(table(&create.name, context, after)),
        Statement::AlterTable(alter) => match &alter.alteration {
            TableAlteration::With(properties)
                if properties.iter().any(|property| property.name.as_str() == "compaction") =>
            {
                no_ttl(table(&alter.name, context, after))
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn table<'a>(name: &QualifiedName<'_>, context: &DdlContext, schema: &'a Schema) -> Option<&'a TableMetadata> {
    schema.table(keyspace_of(name, context).ok()?, name.name.as_str()).map(|table| &**table)
}

/// More copies than nodes.
fn too_many_copies(keyspace: &KeyspaceMetadata) -> Vec<String> {
    if system::is_system_keyspace(&keyspace.name) {
        return Vec::new();
    }
    let simple = keyspace.replication.short_class() == "SimpleStrategy";
    let mut warnings = Vec::new();
    for (key, factor) in &keyspace.replication.options {
        if factor.parse::<u32>().is_ok_and(|copies| copies > 1) {
            let place = if simple { String::new() } else { format!(" for datacenter {key}") };
            warnings.push(format!(
                "Your replication factor {factor} for keyspace {} is higher than the number of nodes 1{place}",
                keyspace.name
            ));
        }
    }
    warnings
}

/// Time windows without a time to live.
fn no_ttl(table: Option<&TableMetadata>) -> Vec<String> {
    let suspicious = table.is_some_and(|table| {
        table.params.default_time_to_live == 0
            && table.params.compaction.get("class").is_some_and(|class| class.ends_with("TimeWindowCompactionStrategy"))
    });
    if suspicious { vec![NO_TTL.to_owned()] } else { Vec::new() }
}
