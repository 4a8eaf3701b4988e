//! REGISTER: the events that a connection wants to receive.

use crate::decode_error::DecodeError;
use crate::version::ProtocolVersion;
use crate::wire::Reader;

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the specification's
pub enum EventType {
    TopologyChange,
    StatusChange,
    SchemaChange,
    /// Accepted from version 4 on, but never sent, as in Cassandra 5.0.
    TraceComplete,
}

impl EventType {
    const ALL: [EventType; 4] = [Self::TopologyChange, Self::StatusChange, Self::SchemaChange, Self::TraceComplete];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::TopologyChange => "TOPOLOGY_CHANGE",
            Self::StatusChange => "STATUS_CHANGE",
            Self::SchemaChange => "SCHEMA_CHANGE",
            Self::TraceComplete => "TRACE_COMPLETE",
        }
    }
}

/// A REGISTER.
#[derive(Clone, Debug, PartialEq)]
pub struct Register {
    /// The events. Clients rarely send an empty list, but may.
    pub events: Vec<EventType>,
}

impl Register {
    pub(super) fn decode(reader: &mut Reader<'_>, version: ProtocolVersion) -> Result<Self, DecodeError> {
        let names = reader.string_list("the events of REGISTER")?;
        let mut events = Vec::with_capacity(EventType::ALL.len());
        for name in names {
            let known = EventType::ALL.into_iter().find(|event| event.name().eq_ignore_ascii_case(&name));
            let event = known.ok_or_else(|| DecodeError::EventType(name.to_string()))?;
            if event == EventType::TraceComplete && version < ProtocolVersion::V4 {
                return Err(DecodeError::EventVersion(event.name(), version.number()));
            }
            if !events.contains(&event) {
                events.push(event);
            }
        }
        Ok(Self { events })
    }
}
