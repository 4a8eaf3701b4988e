//! Requests for tokens of others between two nodes of a simulated ring, each partition of which has
//! one copy.

use std::time::Duration;

use bytes::Bytes;
use internode::Verb;
use internode::payload::counter::CounterMutation;
use internode::payload::paxos::{Ballot, Commit};
use internode::payload::read_request::ReadRequest;
use membership::{Request, RequestFailure};
use rows::Mutation;
use rows::codec::encode_mutation;
use types::{Consistency, FailureReason, Token};

use crate::testing::SimRing;

/// A ring of two with the keyspace `ks` at one copy, and a key of each node.
fn ring(seed: u64) -> (SimRing, [i32; 2]) {
    let ring = SimRing::new(seed, &["dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "1")]);
    let is_of = |machine: usize, k: i32| {
        let here = ring.node(machine).ring();
        let placement = here.placement("ks").expect("placed");
        placement.natural(Token::of_key(&k.to_be_bytes())).contains(&here.local_id())
    };
    let key_of = |machine: usize| (0..).find(|k| is_of(machine, *k)).expect("some key");
    let keys = [key_of(0), key_of(1)];
    (ring, keys)
}

/// The answer of the second node to the first.
fn ask(ring: &SimRing, verb: Verb, payload: Vec<u8>) -> Result<(), RequestFailure> {
    let messenger = ring.node(0).messenger().expect("it has joined").clone();
    let request = Request::new(verb, payload, Duration::from_secs(5));
    ring.world.block_on(messenger.request(ring.address(1), request)).map(|_| ())
}

fn encoded(mutation: &Mutation) -> Vec<u8> {
    let mut payload = Vec::new();
    encode_mutation(&mut payload, mutation);
    payload
}

/// A write, a read, an increment and a prepare of Paxos for the key `k`, as the second node answers
/// them.
fn answers(ring: &SimRing, k: i32) -> [Result<(), RequestFailure>; 4] {
    let row = ring.row("ks", k, 1, 5, 1_000);
    let read = ReadRequest::of(&ring.select_key("ks", k));
    let mutation = Bytes::from(encoded(&ring.increment("ks", k, 1, 1_000)));
    let counter = CounterMutation { mutation, level: Consistency::One }.encode();
    let update = row.updates[0].clone();
    let table = std::sync::Arc::clone(&update.table);
    let prepare = Commit::empty(Ballot::NONE, table, update.key).encode();
    [
        ask(ring, Verb::MutationReq, encoded(&row)),
        ask(ring, read.verb(), read.encode()),
        ask(ring, Verb::CounterMutationReq, counter),
        ask(ring, Verb::PaxosPrepareReq, prepare),
    ]
}

#[test]
fn requests_for_tokens_of_others_are_counted_and_refused_where_asked() {
    let (ring, [of_first, of_second]) = ring(91);
    let node = ring.node(1);
    // as by default: all is served, and counted
    let [write, read, _, prepare] = answers(&ring, of_first);
    assert_eq!([write, read, prepare], [Ok(()); 3]);
    assert_eq!(ring.stored(1, "ks", of_first), [(1, 5)]);
    assert_eq!(node.out_of_range_counts().into_iter().collect::<Vec<_>>(), [("ks".to_owned(), [1, 2, 1])]);
    assert_eq!(node.out_of_range_total(), 4);
    node.set_out_of_range_handling(true, true);
    let other = (of_first + 1..).find(|k| {
        let token = Token::of_key(&k.to_be_bytes());
        let here = node.ring();
        !here.placement("ks").expect("placed").natural(token).contains(&here.local_id())
    });
    let other = other.expect("some key");
    let failed = Err(RequestFailure::Failed(FailureReason::Unknown));
    // a read is dropped, as Cassandra does: nobody answers it
    assert_eq!(answers(&ring, other), [failed, Err(RequestFailure::TimedOut), failed, failed]);
    assert_eq!(ring.stored(1, "ks", other), [], "a refused write leaves nothing");
    assert_eq!(node.out_of_range_counts()["ks"], [2, 4, 2]);
    // tokens of its own are served, and not counted
    let [write, read, _, prepare] = answers(&ring, of_second);
    assert_eq!([write, read, prepare], [Ok(()); 3]);
    assert_eq!((node.out_of_range_counts()["ks"], node.out_of_range_total()), ([2, 4, 2], 8));
}

/// Keyspaces that come and go leave nothing behind.
#[test]
fn counts_go_with_their_keyspace() {
    let (ring, [of_first, _]) = ring(92);
    let node = ring.node(1);
    let [write, ..] = answers(&ring, of_first);
    assert_eq!(write, Ok(()));
    assert!(node.out_of_range_counts().contains_key("ks"));
    let dropped = node.change_schema(|schema| Ok::<_, ()>(schema.without_keyspace("ks")));
    ring.world.block_on(dropped).expect("stored").expect("not refused");
    assert_eq!(node.out_of_range_counts().len(), 0);
    assert!(node.out_of_range_total() > 0, "the sum is of all keyspaces that there were");
}

#[test]
fn ranges_are_shown_as_cassandra_writes_them() {
    let range = |start, end| (Token(start), Token(end));
    assert_eq!(super::shown(&[]), "[]");
    assert_eq!(super::shown(&[range(1, 2), range(-5, 9)]), "[(1,2], (-5,9]]");
    let many = vec![range(1, 2); super::RANGES_SHOWN_MAX + 3];
    assert!(super::shown(&many).ends_with(" and 3 more]"));
}
