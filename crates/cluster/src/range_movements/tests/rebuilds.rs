//! Members fetch their ranges anew.

use types::Token;

use super::*;

/// A node that joined without its data fetches it when it is asked to.
#[test]
fn a_node_rebuilds_its_ranges() {
    let mut ring = ring_of(7, 2);
    ring.movements.bootstraps = false;
    ring.start(2);
    agree_on_members(&ring, &[0, 1, 2]);
    assert!((0..KEYS).all(|k| ring.stored(2, "ks", k).is_empty()), "it has joined without data");
    let rebuild = |options: RebuildOptions| {
        let node = Arc::clone(ring.node(2));
        ring.world.block_on(async move { rebuild::rebuild(&node, options).await })
    };
    let elsewhere = RebuildOptions { source_data_center: Some("dc9".to_owned()), ..RebuildOptions::default() };
    let Err(OperationError::Invalid(why)) = rebuild(elsewhere) else { panic!("there is no such data center") };
    assert_eq!(why, "Provided datacenter 'dc9' is not a valid datacenter, available datacenters are: dc1");
    rebuild(RebuildOptions { keyspace: Some("ks".to_owned()), ..RebuildOptions::default() })
        .expect("its data has come");
    check_replicas(&ring, &[0]);
}

/// `nodetool rebuild -ts`: parts of the range that goes around the end of the ring. A range that
/// only begins and ends in that one is no part of it.
#[test]
fn a_node_rebuilds_parts_of_the_range_around_the_end() {
    let ring = ring_of(21, 3);
    let node = ring.node(0);
    let last = Token(i64::MAX - 1);
    let known = node.ring();
    let around = known.placement("ks").expect("placed").ranges().find(|(start, end, _)| start >= end);
    let (start, end, replicas) = around.expect("one range goes around");
    assert!(start == last && replicas.contains(&known.local_id()), "the range of machine 0");
    let first = Token(i64::MIN + 5);
    let cases = [
        ((start, first), true),
        ((Token(i64::MAX), end), true),
        ((start, Token(i64::MAX)), true),
        ((first, end), true),
        ((first, Token(i64::MIN + 4)), false),
        ((start, Token(end.0 + 1)), false),
    ];
    for (range, is_part) in cases {
        let options = RebuildOptions { keyspace: Some("ks".to_owned()), ranges: vec![range], ..Default::default() };
        let here = Arc::clone(node);
        let rebuilt = ring.world.block_on(async move { rebuild::rebuild(&here, options).await });
        match rebuilt {
            Ok(()) => assert!(is_part, "{range:?}"),
            Err(why) => assert!(!is_part && why.to_string().contains("not a range that is owned"), "{range:?}: {why}"),
        }
    }
}
