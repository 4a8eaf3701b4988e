//! Events of the native protocol: made of schema changes by statements, of schema rows that another
//! node has written, and of changes in the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use cluster::RingEvent;
use cql::{SchemaChangeKind, SchemaEvent, SchemaTarget};
use protocol::response::{Event, SchemaChange, SchemaChangeTarget, StatusChange, TopologyChange};
use schema::{FunctionKey, KeyspaceMetadata, Schema};

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
fn of_schema(event: &SchemaEvent) -> Event {
    Event::Schema(schema_change(event))
}

/// The events of a change that a statement has made. `event`: the answer to the statement, which
/// names one object. Views change with their table, and tables with a user type.
pub fn of_statement(event: &SchemaEvent, before: &Schema, after: &Schema) -> Vec<Event> {
    let all = match event.target {
        // a keyspace goes with all that it has, which may be more than connections can be told of
        SchemaTarget::Keyspace => Vec::new(),
        _ => of_difference(before, after),
    };
    if all.is_empty() { vec![of_schema(event)] } else { all }
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

/// Functions or aggregates of a keyspace.
type Functions<T> = BTreeMap<FunctionKey, Arc<T>>;

struct Difference {
    events: Vec<Event>,
}

impl Difference {
    fn add(&mut self, change: SchemaChangeKind, target: SchemaTarget, keyspace: &str, name: &str) {
        let (keyspace, name) = (keyspace.to_owned(), name.to_owned());
        self.events.push(of_schema(&SchemaEvent { change, target, keyspace, name, argument_types: Vec::new() }));
    }

    fn add_function(&mut self, change: SchemaChangeKind, target: SchemaTarget, keyspace: &str, key: &FunctionKey) {
        let (keyspace, (name, argument_types)) = (keyspace.to_owned(), key.clone());
        self.events.push(of_schema(&SchemaEvent { change, target, keyspace, name, argument_types }));
    }

    /// The functions and aggregates of a keyspace, created or dropped with it. An aggregate comes
    /// after the functions that it is made of, and goes before them.
    fn content(&mut self, change: SchemaChangeKind, keyspace: &KeyspaceMetadata) {
        let name = &keyspace.name;
        if change == SchemaChangeKind::Dropped {
            keyspace.aggregates.keys().for_each(|key| self.add_function(change, SchemaTarget::Aggregate, name, key));
            keyspace.functions.keys().for_each(|key| self.add_function(change, SchemaTarget::Function, name, key));
        }
        keyspace.user_types.keys().for_each(|ty| self.add(change, SchemaTarget::Type, name, ty));
        keyspace.tables.keys().for_each(|table| self.add(change, SchemaTarget::Table, name, table));
        if change == SchemaChangeKind::Created {
            keyspace.functions.keys().for_each(|key| self.add_function(change, SchemaTarget::Function, name, key));
            keyspace.aggregates.keys().for_each(|key| self.add_function(change, SchemaTarget::Aggregate, name, key));
        }
    }

    /// The functions of `new` that differ from those of `old`: created, dropped or updated ones.
    fn functions<T: PartialEq>(
        &mut self,
        change: SchemaChangeKind,
        target: SchemaTarget,
        keyspace: &str,
        (old, new): (&Functions<T>, &Functions<T>),
    ) {
        let (of, others) = if change == SchemaChangeKind::Dropped { (old, new) } else { (new, old) };
        for (key, function) in of {
            let is_it = match others.get(key) {
                None => change != SchemaChangeKind::Updated,
                Some(other) => change == SchemaChangeKind::Updated && other != function,
            };
            if is_it {
                self.add_function(change, target, keyspace, key);
            }
        }
    }

    fn altered(&mut self, old: &KeyspaceMetadata, new: &KeyspaceMetadata) {
        use SchemaChangeKind::{Created, Dropped, Updated};
        let keyspace = &new.name;
        let functions = (&old.functions, &new.functions);
        let aggregates = (&old.aggregates, &new.aggregates);
        self.functions(Dropped, SchemaTarget::Aggregate, keyspace, aggregates);
        self.functions(Dropped, SchemaTarget::Function, keyspace, functions);
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
        self.functions(Created, SchemaTarget::Function, keyspace, functions);
        self.functions(Created, SchemaTarget::Aggregate, keyspace, aggregates);
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
        self.functions(Updated, SchemaTarget::Function, keyspace, functions);
        self.functions(Updated, SchemaTarget::Aggregate, keyspace, aggregates);
    }
}

#[cfg(test)]
mod tests {
    use schema::{AggregateMetadata, FunctionMetadata};
    use types::CqlType;

    use super::*;

    fn told(before: &Schema, after: &Schema) -> Vec<String> {
        shown(of_difference(before, after))
    }

    fn shown(events: Vec<Event>) -> Vec<String> {
        let show = |event: Event| match event {
            Event::Schema(change) => {
                let name = match change.target {
                    SchemaChangeTarget::Table(name) | SchemaChangeTarget::Type(name) => format!(".{name}"),
                    SchemaChangeTarget::Function(name, types) | SchemaChangeTarget::Aggregate(name, types) => {
                        format!(".{name}({})", types.join(", "))
                    }
                    SchemaChangeTarget::Keyspace => String::new(),
                };
                format!("{:?} {}{name}", change.kind, change.keyspace)
            }
            other => panic!("{other:?}"),
        };
        events.into_iter().map(show).collect()
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

    /// A statement may change more than the object that it names.
    #[test]
    fn a_statement_tells_of_all_that_it_changes() {
        let empty = schema::system::schema();
        let mut keyspace = empty.keyspaces["system_traces"].as_ref().clone();
        keyspace.name = "ks".to_owned();
        let before = empty.with_keyspace(keyspace.clone());
        for table in keyspace.tables.values_mut() {
            let mut altered = table.as_ref().clone();
            altered.params.comment = "other".to_owned();
            *table = Arc::new(altered);
        }
        let after = before.with_keyspace(keyspace);
        let event = |change, target, name: &str| SchemaEvent {
            change,
            target,
            keyspace: "ks".to_owned(),
            name: name.to_owned(),
            argument_types: Vec::new(),
        };
        let altered = event(SchemaChangeKind::Updated, SchemaTarget::Table, "sessions");
        assert_eq!(shown(of_statement(&altered, &before, &after)), ["Updated ks.events", "Updated ks.sessions"]);
        assert_eq!(shown(of_statement(&altered, &after, &after)), ["Updated ks.sessions"]);
        let dropped = event(SchemaChangeKind::Dropped, SchemaTarget::Keyspace, "");
        assert_eq!(shown(of_statement(&dropped, &after, &empty)), ["Dropped ks"]);
    }

    /// Functions are told of with the types of their arguments. An aggregate comes after the
    /// functions that it is made of, and goes before them.
    #[test]
    fn functions_of_other_nodes_are_events() {
        let empty = schema::system::schema();
        let mut keyspace = empty.keyspaces["system_traces"].as_ref().clone();
        keyspace.name = "ks".to_owned();
        keyspace.tables.clear();
        let plain = empty.with_keyspace(keyspace.clone());
        let function = |body: &str| FunctionMetadata {
            keyspace: "ks".to_owned(),
            name: "f".to_owned(),
            arguments: vec![("s".to_owned(), CqlType::Int), ("x".to_owned(), CqlType::Text)],
            returns: CqlType::Int,
            called_on_null: true,
            language: "java".to_owned(),
            body: body.to_owned(),
            compiled: Arc::new(Err(String::new())),
        };
        let mut with = |body: &str| {
            let function = Arc::new(function(body));
            let aggregate = AggregateMetadata {
                keyspace: "ks".to_owned(),
                name: "total".to_owned(),
                arguments: vec![CqlType::Text],
                returns: CqlType::Int,
                state_function: Arc::clone(&function),
                state_type: CqlType::Int,
                final_function: None,
                initial: None,
            };
            keyspace.functions.insert(function.key(), function);
            keyspace.aggregates.insert(aggregate.key(), Arc::new(aggregate));
            empty.with_keyspace(keyspace.clone())
        };
        let (one, other) = (with("return 1;"), with("return 2;"));
        let (f, total) = ("ks.f(int, text)", "ks.total(text)");
        assert_eq!(told(&plain, &one), [format!("Created {f}"), format!("Created {total}")]);
        assert_eq!(told(&one, &other), [format!("Updated {f}"), format!("Updated {total}")]);
        assert_eq!(told(&one, &plain), [format!("Dropped {total}"), format!("Dropped {f}")]);
        assert_eq!(told(&empty, &one), ["Created ks".to_owned(), format!("Created {f}"), format!("Created {total}")]);
        assert_eq!(told(&one, &empty), [format!("Dropped {total}"), format!("Dropped {f}"), "Dropped ks".to_owned()]);
    }
}
