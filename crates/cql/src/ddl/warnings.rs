//! Warnings for clients about a change of the schema that is made all the same.
//!
//! Must agree with: `SimpleStrategy.maybeWarnOnOptions`,
//! `NetworkTopologyStrategy.maybeWarnOnOptions`, `AlterKeyspaceStatement.clientWarnings`.
//! Guardrails are in [`crate::guardrails`].

use schema::{KeyspaceMetadata, Schema, system};

use crate::ast::Statement;

const MORE_COPIES: &str =
    "When increasing replication factor you need to run a full (-full) repair to distribute the data.";

/// The warnings for a statement that has turned `before` into `after`, in a cluster of one node a
/// datacenter.
pub fn warnings(statement: &Statement<'_>, before: &Schema, after: &Schema) -> Vec<String> {
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
        _ => Vec::new(),
    }
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
