//! What statements say of schema changes, and the cluster of other nodes, as the native protocol
//! says it.

use cluster::RingEvent;
use cql::{SchemaChangeKind, SchemaEvent, SchemaTarget};
use protocol::response::{Event, SchemaChange, SchemaChangeTarget, StatusChange, TopologyChange};

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

/// The event for registered clients.
pub fn of_ring(event: RingEvent) -> Event {
    let topology = |change, at: std::net::SocketAddr| Event::Topology(change, at.ip(), at.port());
    let status = |change, at: std::net::SocketAddr| Event::Status(change, at.ip(), at.port());
    match event {
        RingEvent::Joined(at) => topology(TopologyChange::NewNode, at),
        RingEvent::Left(at) => topology(TopologyChange::RemovedNode, at),
        RingEvent::Moved(at) => topology(TopologyChange::MovedNode, at),
        RingEvent::Up(at) => status(StatusChange::Up, at),
        RingEvent::Down(at) => status(StatusChange::Down, at),
    }
}
