//! REGISTER and EVENT.

use std::sync::Arc;

use native::{EventHub, ServerOptions};
use protocol::response::{Event, SchemaChange, SchemaChangeKind, SchemaChangeTarget, StatusChange};

use crate::client::*;
use crate::handler::{eventually, options, start};

fn schema_event() -> Event {
    Event::Schema(SchemaChange {
        kind: SchemaChangeKind::Created,
        keyspace: "ks".into(),
        target: SchemaChangeTarget::Keyspace,
    })
}

#[test]
fn registered_connections_hear_what_they_asked_for() {
    let events = Arc::new(EventHub::default());
    let (server, _) = start(ServerOptions { events: events.clone(), workers: 2, ..options() });
    let mut clients: Vec<Client> =
        [3, 4, 5, 5].map(|version| Client::ready(server.address(), version)).into_iter().collect();
    for client in &mut clients {
        client.send(1, REGISTER, b"\0\x01\0\x0DSCHEMA_CHANGE");
        assert_eq!(client.receive().opcode, READY);
    }
    let mut deaf = Client::ready(server.address(), 4);
    events.publish(Event::Status(StatusChange::Up, "127.0.0.1".parse().unwrap(), 9042));
    events.publish(schema_event());
    for client in &mut clients {
        let event = client.receive();
        assert_eq!((event.stream, event.opcode), (-1, EVENT));
        assert_eq!(event.body, b"\0\x0DSCHEMA_CHANGE\0\x07CREATED\0\x08KEYSPACE\0\x02ks"[..]);
        assert_eq!(client.ask("void").opcode, RESULT);
    }
    assert_eq!(deaf.ask("void").opcode, RESULT);
}

#[test]
fn who_does_not_take_events_is_closed() {
    let events = Arc::new(EventHub::default());
    let (server, _) = start(ServerOptions { events: events.clone(), ..options() });
    let mut client = Client::ready(server.address(), 4);
    client.send(1, REGISTER, b"\0\x01\0\x0DSCHEMA_CHANGE");
    assert_eq!(client.receive().opcode, READY);
    eventually(|| {
        for _ in 0..20_000 {
            events.publish(schema_event());
        }
        server.connections().is_empty()
    });
}
