//! What statements say of schema changes, as the native protocol says it.

use cql::{SchemaChangeKind, SchemaEvent, SchemaTarget};
use protocol::response::{Event, SchemaChange, SchemaChangeTarget};

/// The message of a schema change, for its RESULT and its EVENT.
pub fn schema_change(event: &SchemaEvent) -> SchemaChange {
    let name = || event.name.clone();
    SchemaChange {
        kind: match event.change {
            SchemaChangeKind::Created => protocol::response::SchemaChangeKind::Created,
            SchemaChangeKind::Updated => protocol::response::SchemaChangeKind::Updated,
            SchemaChangeKind::Dropped => protocol::response::SchemaChangeKind::Dropped,
        },
        keyspace: event.keyspace.clone(),
        target: match event.target {
            SchemaTarget::Keyspace => SchemaChangeTarget::Keyspace,
            SchemaTarget::Table => SchemaChangeTarget::Table(name()),
            SchemaTarget::Type => SchemaChangeTarget::Type(name()),
            SchemaTarget::Function => SchemaChangeTarget::Function(name(), event.argument_types.clone()),
            SchemaTarget::Aggregate => SchemaChangeTarget::Aggregate(name(), event.argument_types.clone()),
        },
    }
}

/// The event for registered clients.
pub fn of_schema(event: &SchemaEvent) -> Event {
    Event::Schema(schema_change(event))
}
