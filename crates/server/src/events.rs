//! Events of the native protocol: made of schema changes by statements, of schema rows that another
//! node has written, and of changes in the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use cluster::RingEvent;
use cql::{SchemaChangeKind, SchemaEvent, SchemaTarget};
use protocol::response::{Event, SchemaChange, SchemaChangeTarget, StatusChange, TopologyChange};
use schema::{KeyspaceMetadata, Schema};

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

/// The events of a change that another node has made, in the order of
/// `org.apache.cassandra.schema.SchemaChangeNotifier`: what is dropped, what is created, what is
/// altered; a keyspace before what it has when it comes, after it when it goes.
pub fn of_difference(before: &Schema, after: &Schema) -> Vec<Event> {
    let mut difference = Difference { events: Vec::new() };
    let shared = |schema: &Schema| -> BTreeMap<String, Arc<KeyspaceMetadata>> {
        let keyspaces = schema.keyspaces.iter().filter(|(_, keyspace)| !keyspace.is_virtual);
        keyspaces.map(|(name, keyspace)| (name.clone(), Arc::clone(keyspace))).collect()
    };
    let (before, after) = (shared(before), shared(after));
    for (name, keyspace) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
        difference.content(SchemaChangeKind::Dropped, keyspace);
        difference.add(SchemaChangeKind::Dropped, SchemaTarget::Keyspace, name, "");
    }
    for (name, keyspace) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        difference.add(SchemaChangeKind::Created, SchemaTarget::Keyspace, name, "");
        difference.content(SchemaChangeKind::Created, keyspace);
    }
    for (name, new) in &after {
        if let Some(old) = before.get(name).filter(|old| !Arc::ptr_eq(old, new)) {
            difference.altered(old, new);
        }
    }
    difference.events
}

struct Difference {
    events: Vec<Event>,
}

impl Difference {
    fn add(&mut self, change: SchemaChangeKind, target: SchemaTarget, keyspace: &str, name: &str) {
        let (keyspace, name) = (keyspace.to_owned(), name.to_owned());
        self.events.push(of_schema(&SchemaEvent { change, target, keyspace, name, argument_types: Vec::new() }));
    }

    fn content(&mut self, change: SchemaChangeKind, keyspace: &KeyspaceMetadata) {
        keyspace.user_types.keys().for_each(|name| self.add(change, SchemaTarget::Type, &keyspace.name, name));
        keyspace.tables.keys().for_each(|name| self.add(change, SchemaTarget::Table, &keyspace.name, name));
    }

    fn altered(&mut self, old: &KeyspaceMetadata, new: &KeyspaceMetadata) {
        use SchemaChangeKind::{Created, Dropped, Updated};
        let keyspace = &new.name;
        // a table that was made again under its name is another one
        let is_same =
            |name: &String| old.tables.get(name).zip(new.tables.get(name)).is_some_and(|(old, new)| old.id == new.id);
        for name in old.tables.keys().filter(|name| !is_same(name)) {
            self.add(Dropped, SchemaTarget::Table, keyspace, name);
        }
        for name in old.user_types.keys().filter(|name| !new.user_types.contains_key(*name)) {
            self.add(Dropped, SchemaTarget::Type, keyspace, name);
        }
        for name in new.user_types.keys().filter(|name| !old.user_types.contains_key(*name)) {
            self.add(Created, SchemaTarget::Type, keyspace, name);
        }
        for name in new.tables.keys().filter(|name| !is_same(name)) {
            self.add(Created, SchemaTarget::Table, keyspace, name);
        }
        if (old.durable_writes, &old.replication) != (new.durable_writes, &new.replication) {
            self.add(Updated, SchemaTarget::Keyspace, keyspace, "");
        }
        let is_other = |name: &String| old.user_types.get(name).is_some_and(|udt| *udt != new.user_types[name]);
        for name in new.user_types.keys().filter(|name| is_other(name)) {
            self.add(Updated, SchemaTarget::Type, keyspace, name);
        }
        for (name, table) in new.tables.iter().filter(|(name, _)| is_same(name)) {
            if old.tables[name] != *table {
                self.add(Updated, SchemaTarget::Table, keyspace, name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &Schema, after: &Schema) -> Vec<String> {
        let show = |event: Event| match event {
            Event::Schema(change) => {
                let name = match change.target {
                    SchemaChangeTarget::Table(name) | SchemaChangeTarget::Type(name) => format!(".{name}"),
                    _ => String::new(),
                };
                format!("{:?} {}{name}", change.kind, change.keyspace)
            }
            other => panic!("{other:?}"),
        };
        of_difference(before, after).into_iter().map(show).collect()
    }

    #[test]
    fn each_difference_is_an_event() {
        let empty = schema::system::schema();
        assert_eq!(told(&empty, &empty), Vec::<String>::new());
        let mut keyspace = empty.keyspaces["system_traces"].as_ref().clone();
        keyspace.name = "ks".to_owned();
        let created = empty.with_keyspace(keyspace.clone());
        assert_eq!(told(&empty, &created), ["Created ks", "Created ks.events", "Created ks.sessions"]);
        assert_eq!(told(&created, &empty), ["Dropped ks.events", "Dropped ks.sessions", "Dropped ks"]);
        keyspace.durable_writes = false;
        keyspace.tables.remove("events");
        let sessions = keyspace.tables["sessions"].as_ref().clone();
        let mut commented = sessions.clone();
        commented.params.comment = "other".to_owned();
        keyspace.tables.insert("sessions".to_owned(), Arc::new(commented));
        let altered = created.with_keyspace(keyspace.clone());
        assert_eq!(told(&created, &altered), ["Dropped ks.events", "Updated ks", "Updated ks.sessions"]);
        let mut again = sessions;
        again.id = schema::TableId([1; 16]);
        keyspace.tables.insert("sessions".to_owned(), Arc::new(again));
        let again = altered.with_keyspace(keyspace);
        assert_eq!(told(&altered, &again), ["Dropped ks.sessions", "Created ks.sessions"]);
    }
}
