//! EVENT, and the schema changes that RESULT shares with it. Agrees with
//! `org.apache.cassandra.transport.Event`.

use std::net::IpAddr;

use bytes::BytesMut;

use crate::request::EventType;
use crate::version::ProtocolVersion;
use crate::wire::{put_inet, put_string, put_string_list};

/// An event for clients that have registered for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node joined, left or moved; the address is its broadcast RPC address.
    Topology(TopologyChange, IpAddr, u16),
    /// A node is up or down; the address is its broadcast RPC address.
    Status(StatusChange, IpAddr, u16),
    /// The schema has changed.
    Schema(SchemaChange),
}

/// A change of a node's membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the specification's
pub enum TopologyChange {
    NewNode,
    RemovedNode,
    MovedNode,
}

/// A change of a node's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the specification's
pub enum StatusChange {
    Up,
    Down,
}

/// The kind of a schema change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the specification's
pub enum SchemaChangeKind {
    Created,
    Updated,
    Dropped,
}

/// The element that changed. Views are reported as tables.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the specification's
pub enum SchemaChangeTarget {
    Keyspace,
    Table(String),
    Type(String),
    Function(String, Vec<String>),
    Aggregate(String, Vec<String>),
}

/// A change of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// The kind: created, updated or dropped.
    pub kind: SchemaChangeKind,
    /// The keyspace of the element.
    pub keyspace: String,
    /// The element.
    pub target: SchemaChangeTarget,
}

impl Event {
    /// The event type that a client registers for to receive this event.
    pub fn event_type(&self) -> EventType {
        match self {
            Self::Topology(..) => EventType::TopologyChange,
            Self::Status(..) => EventType::StatusChange,
            Self::Schema(_) => EventType::SchemaChange,
        }
    }

    /// Appends the body of EVENT.
    pub fn encode(&self, out: &mut BytesMut, version: ProtocolVersion) {
        put_string(out, self.event_type().name());
        match self {
            Self::Topology(change, address, port) => {
                put_string(out, change.name());
                put_inet(out, *address, *port);
            }
            Self::Status(change, address, port) => {
                put_string(out, change.name());
                put_inet(out, *address, *port);
            }
            Self::Schema(change) => change.encode(out, version),
        }
    }
}

impl TopologyChange {
    fn name(self) -> &'static str {
        match self {
            Self::NewNode => "NEW_NODE",
            Self::RemovedNode => "REMOVED_NODE",
            Self::MovedNode => "MOVED_NODE",
        }
    }
}

impl StatusChange {
    fn name(self) -> &'static str {
        match self {
            Self::Up => "UP",
            Self::Down => "DOWN",
        }
    }
}

impl SchemaChangeKind {
    fn name(self) -> &'static str {
        match self {
            Self::Created => "CREATED",
            Self::Updated => "UPDATED",
            Self::Dropped => "DROPPED",
        }
    }
}

impl SchemaChange {
    /// Appends kind, target, keyspace and name. Version 3 has no functions; it is told that the
    /// keyspace was updated.
    pub fn encode(&self, out: &mut BytesMut, version: ProtocolVersion) {
        let (target, name, arguments) = match &self.target {
            SchemaChangeTarget::Function(..) | SchemaChangeTarget::Aggregate(..) if version < ProtocolVersion::V4 => {
                put_string(out, SchemaChangeKind::Updated.name());
                put_string(out, "KEYSPACE");
                put_string(out, &self.keyspace);
                return;
            }
            SchemaChangeTarget::Keyspace => ("KEYSPACE", None, None),
            SchemaChangeTarget::Table(name) => ("TABLE", Some(name), None),
            SchemaChangeTarget::Type(name) => ("TYPE", Some(name), None),
            SchemaChangeTarget::Function(name, arguments) => ("FUNCTION", Some(name), Some(arguments)),
            SchemaChangeTarget::Aggregate(name, arguments) => ("AGGREGATE", Some(name), Some(arguments)),
        };
        put_string(out, self.kind.name());
        put_string(out, target);
        put_string(out, &self.keyspace);
        if let Some(name) = name {
            put_string(out, name);
        }
        if let Some(arguments) = arguments {
            put_string_list(out, arguments);
        }
    }
}
