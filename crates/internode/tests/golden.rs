//! Messages that real Cassandra 5.0.8 nodes sent each other, read and written again byte for byte.
//!
//! `testdata/messages/` holds message envelopes of three captured rings (version 12; version 13;
//! version 13 with LZ4 frames and two data centers), `messages.jsonl` what each of them says.
//! `testdata/links/` holds links from their first byte, both directions.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)] // reads its captures, as any test may

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use bytes::{Buf, Bytes, BytesMut};
use internode::payload::batch::StoredBatch;
use internode::payload::counter::CounterMutation;
use internode::payload::failure;
use internode::payload::gossip::tokens::tokens_of;
use internode::payload::gossip::{Ack, Ack2, ApplicationState, Digest, EndpointState, Shutdown, States, Syn};
use internode::payload::hint::HintMessage;
use internode::payload::simple::{Truncated, Truncation, decode_ping, decode_uuid, encode_ping};
use internode::{
    Accept, Envelope, Framing, Header, Initiate, LinkType, MessageReader, MessageWriter, MessagingVersion, Parameter,
    Received, Verb,
};
use serde_json::{Value, json};

fn testdata() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

fn lines(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(testdata().join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn hex_uuid(bytes: &[u8; 16]) -> String {
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex[from..to].concat();
    [part(0, 4), part(4, 6), part(6, 8), part(8, 10), part(10, 16)].join("-")
}

fn of_parameter(parameter: &Parameter) -> Value {
    match parameter {
        Parameter::ForwardTo(forward) => {
            json!(["FORWARD_TO", forward.iter().map(|(to, id)| json!([to.to_string(), id])).collect::<Vec<_>>()])
        }
        Parameter::RespondTo(address) => json!(["RESPOND_TO", address.to_string()]),
        Parameter::TraceSession(session) => json!(["TRACE_SESSION", hex_uuid(session)]),
        Parameter::TraceType(kind) => json!(["TRACE_TYPE", kind]),
        Parameter::Other(9, value) => json!(["TOMBSTONE_WARNING", value.clone().get_i32()]),
        Parameter::Other(11, value) => json!(["LOCAL_READ_SIZE_WARN", value.clone().get_i64()]),
        Parameter::Other(id, value) => panic!("parameter {id} {value:?} was not expected in the captures"),
    }
}

fn of_state(state: &EndpointState) -> Value {
    let values: serde_json::Map<String, Value> = state
        .values
        .iter()
        .map(|(state, value)| {
            let shown = match state {
                ApplicationState::Tokens => json!(tokens_of(&value.value).unwrap()),
                _ => json!(value.value),
            };
            (state.name().to_owned(), json!([shown, value.version]))
        })
        .collect();
    json!({"generation": state.generation, "heartbeat": state.heartbeat, "states": values})
}

fn of_states(states: &States) -> Value {
    states
        .iter()
        .map(|(endpoint, state)| (endpoint.to_string(), of_state(state)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn of_digests(digests: &[Digest]) -> Value {
    digests.iter().map(|d| json!([d.endpoint.to_string(), d.generation, d.max_version])).collect()
}

/// The content of a payload as JSON, and the payload written again. `None`: its family is not read
/// by this crate.
fn payload(verb: Verb, payload: &[u8], version: MessagingVersion) -> Option<(Value, Vec<u8>)> {
    Some(match verb {
        Verb::GossipDigestSyn => {
            let syn = Syn::decode(payload).unwrap();
            let told =
                json!({"cluster": syn.cluster, "partitioner": syn.partitioner, "digests": of_digests(&syn.digests)});
            (told, syn.encode().unwrap())
        }
        Verb::GossipDigestAck => {
            let ack = Ack::decode(payload).unwrap();
            (json!({"digests": of_digests(&ack.digests), "states": of_states(&ack.states)}), ack.encode().unwrap())
        }
        Verb::GossipDigestAck2 => {
            let ack2 = Ack2::decode(payload).unwrap();
            (json!({"states": of_states(&ack2.states)}), ack2.encode().unwrap())
        }
        Verb::GossipShutdown => {
            let shutdown = Shutdown::decode(payload, version).unwrap();
            (shutdown.state.as_ref().map_or(json!({}), of_state), shutdown.encode(version).unwrap())
        }
        Verb::PingReq => {
            let link = decode_ping(payload).unwrap();
            (json!({"link_type": link.number()}), encode_ping(link))
        }
        Verb::SchemaVersionRsp => {
            let version = decode_uuid(payload).unwrap();
            (json!({"version": hex_uuid(&version)}), version.to_vec())
        }
        Verb::BatchRemoveReq => {
            let id = decode_uuid(payload).unwrap();
            (json!({"id": hex_uuid(&id)}), id.to_vec())
        }
        Verb::TruncateReq => {
            let of = Truncation::decode(payload).unwrap();
            (json!({"keyspace": of.keyspace, "table": of.table}), of.encode().unwrap())
        }
        Verb::TruncateRsp => {
            let done = Truncated::decode(payload).unwrap();
            let told = json!({"keyspace": done.of.keyspace, "table": done.of.table, "success": done.success});
            (told, done.encode().unwrap())
        }
        Verb::FailureRsp => {
            let reason = failure::decode(payload).unwrap();
            (json!({"code": reason.code()}), failure::encode(reason))
        }
        _ if payload.is_empty() => (json!({}), Vec::new()),
        _ => return None,
    })
}

/// Reads and writes again the bytes around the mutations in a payload: gives the written bytes
/// where they differ, None where they are equal.
fn around_mutations(verb: Verb, payload: &Bytes) -> Option<Vec<u8>> {
    let again = match verb {
        Verb::BatchStoreReq => StoredBatch::decode(payload).unwrap().encode(),
        Verb::CounterMutationReq => CounterMutation::decode(payload).unwrap().encode(),
        Verb::HintReq => HintMessage::decode(payload).unwrap().encode(),
        _ => return None,
    };
    (again != *payload).then_some(again)
}

#[test]
fn captured_messages() {
    let mut read = 0;
    for told in lines("messages.jsonl") {
        let file = told["file"].as_str().unwrap();
        let bytes = Bytes::from(fs::read(testdata().join("messages").join(file)).unwrap());
        let envelope = Envelope::decode(&bytes).unwrap_or_else(|error| panic!("{file}: {error}"));
        let Header { id, life, verb, flags, parameters, .. } = &envelope.header;
        assert_eq!(
            (verb.name(), *id, *life),
            (told["verb"].as_str().unwrap(), told["id"].as_u64().unwrap(), told["life_ms"].as_u64().unwrap()),
            "{file}"
        );
        assert_eq!(i64::from(flags.0), told["flags"].as_i64().unwrap(), "{file}");
        assert_eq!(Value::Array(parameters.iter().map(of_parameter).collect()), told["params"], "{file}");
        let mut again = Vec::new();
        envelope.encode(&mut again);
        assert_eq!(again, bytes, "{file}");
        let version = MessagingVersion::from_number(told["version"].as_i64().unwrap() as i32).unwrap();
        assert_eq!(around_mutations(*verb, &envelope.payload), None, "{file}");
        if let Some(decoded) = told.get("decoded") {
            let (told, again) =
                payload(*verb, &envelope.payload, version).unwrap_or_else(|| panic!("{file}: no payload read"));
            assert_eq!(&told, decoded, "{file}");
            assert_eq!(again, envelope.payload, "{file}");
            read += 1;
        }
    }
    assert!(read > 150, "{read} payloads were read");
}

fn framing_of(name: &str) -> Framing {
    match name {
        "crc" => Framing::Crc,
        "lz4" => Framing::Lz4,
        other => panic!("framing {other}"),
    }
}

#[test]
fn captured_links() {
    for told in lines("links.jsonl") {
        let file = told["opener"].as_str().unwrap();
        let opener = fs::read(testdata().join("links").join(file)).unwrap();
        let (initiate, size) = Initiate::decode(&opener).unwrap().unwrap();
        let expected = &told["initiate"];
        let link = LinkType::MESSAGING
            .into_iter()
            .find(|link| format!("{link:?}").to_uppercase() == expected["link"].as_str().unwrap());
        assert_eq!(Some(initiate.link), link, "{file}");
        assert_eq!(initiate.framing, framing_of(expected["framing"].as_str().unwrap()), "{file}");
        assert_eq!(initiate.from, expected["from"].as_str().unwrap().parse::<SocketAddr>().unwrap(), "{file}");
        let versions = (u64::from(initiate.versions.min), u64::from(initiate.versions.max));
        assert_eq!(versions, (expected["min"].as_u64().unwrap(), expected["max"].as_u64().unwrap()), "{file}");
        assert_eq!(initiate.encode(), opener[..size], "{file}");

        let acceptor = fs::read(testdata().join("links").join(told["acceptor"].as_str().unwrap())).unwrap();
        let (accept, accept_size) = Accept::decode(&acceptor).unwrap().unwrap();
        assert_eq!(accept.encode(), acceptor, "an acceptor sends nothing else");
        assert_eq!(accept_size, acceptor.len());
        assert_eq!(json!({"max": accept.max, "use": accept.version}), told["accept"], "{file}");

        let mut reader = MessageReader::new(initiate.framing, 128 << 20);
        let (mut input, mut messages) = (BytesMut::new(), Vec::new());
        for piece in opener[size..].chunks(1000) {
            input.extend_from_slice(piece);
            while let Some(received) = reader.next(&mut input).unwrap_or_else(|error| panic!("{file}: {error}")) {
                match received {
                    Received::Message(envelope) => messages.push(envelope),
                    Received::Lost(error) => panic!("{file}: {error}"),
                }
            }
        }
        let verbs: Vec<_> = messages.iter().map(|message| message.header.verb.name()).collect();
        // the list names the first eighty
        let listed = told["messages"].as_array().unwrap();
        assert_eq!(json!(verbs[..listed.len()]), told["messages"], "{file}");
        assert_eq!(verbs.len() > listed.len(), listed.len() == 80, "{file}");

        // what we write for them is read alike
        let mut writer = MessageWriter::new(initiate.framing);
        let mut out = BytesMut::new();
        for message in &messages {
            writer.append(&mut out, message);
        }
        writer.finish(&mut out);
        let mut reader = MessageReader::new(initiate.framing, 128 << 20);
        for message in messages {
            assert_eq!(reader.next(&mut out).unwrap(), Some(Received::Message(message)), "{file}");
        }
        assert_eq!(reader.next(&mut out), Ok(None));
        assert!(out.is_empty());
    }
}
