//! Verbs that show a ring of several nodes.

use super::*;

/// Two data centers, a node that is down and one that joins, with two keyspaces' worth of ranges.
fn several() -> RingInfo {
    let of = |last: u8, data_center: &str, is_up, state, tokens: &[i64], owns| EndpointInfo {
        address: format!("10.0.0.{last}"),
        rpc_address: format!("10.0.1.{last}"),
        host_id: format!("{last}cba1d95-7197-4a36-adab-d6f7139b492b"),
        data_center: data_center.to_owned(),
        rack: format!("r{last}"),
        is_up,
        state,
        load: is_up.then_some(1 << (10 + last)),
        release_version: Some("5.0.8".to_owned()),
        schema_version: Some("ae161058-45b9-3f9a-a388-15618625d21f".to_owned()),
        tokens: tokens.to_vec(),
        owns: Some(owns),
        ..crate::fake::endpoint(FakeNode::default().node().expect("a node"))
    };
    let normal = EndpointState::Normal;
    RingInfo {
        endpoints: vec![
            of(1, "east", true, normal, &[-100, 40], 2.0 / 3.0),
            of(2, "east", false, EndpointState::Leaving, &[7], 1.0 / 3.0),
            of(3, "west", true, EndpointState::Joining, &[90], 0.0),
        ],
        note: None,
        ranges: vec![
            RangeInfo { start: 40, end: -100, replicas: vec![0, 1] },
            RangeInfo { start: -100, end: 7, replicas: vec![1] },
        ],
    }
}

#[test]
fn a_ring_of_several_nodes_is_shown_as_it_is() {
    let node = fake();
    node.node().0.lock().expect("no panic inside").ring = Some(several());
    let shown = |line: &str| {
        let (code, text) = run_on(&node, line);
        assert_eq!(code, 0, "{line}");
        text
    };
    assert_eq!(
        shown("status"),
        "Datacenter: east\n\
         ================\n\
         Status=Up/Down\n\
         |/ State=Normal/Leaving/Joining/Moving\n\
         --  Address   Load   Tokens  Owns (effective)  Host ID                               Rack\n\
         UN  10.0.0.1  2 KiB  2       66.7%             1cba1d95-7197-4a36-adab-d6f7139b492b  r1  \n\
         DL  10.0.0.2  ?      1       33.3%             2cba1d95-7197-4a36-adab-d6f7139b492b  r2  \n\
         \n\
         Datacenter: west\n\
         ================\n\
         Status=Up/Down\n\
         |/ State=Normal/Leaving/Joining/Moving\n\
         --  Address   Load   Tokens  Owns (effective)  Host ID                               Rack\n\
         UJ  10.0.0.3  8 KiB  1       0.0%              3cba1d95-7197-4a36-adab-d6f7139b492b  r3  \n\
         \n"
    );
    let ring = shown("-pp ring");
    let rows: Vec<String> = ring.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in [
        "40",
        "10.0.0.1:7000 r1 Up Normal 2 KiB 66.67% -100",
        "10.0.0.2:7000 r2 Down Leaving ? 33.33% 7",
        "10.0.0.1:7000 r1 Up Normal 2 KiB 66.67% 40",
        "10.0.0.3:7000 r3 Up Joining 8 KiB 0.00% 90",
    ] {
        assert!(rows.iter().any(|shown| shown == row), "{row} in {ring}");
    }
    let resolved = |line: &str| {
        let text = shown(line);
        assert!(text.contains("two.example") && text.contains("10.0.0.1") && !text.contains("10.0.0.2"), "{text}");
        text
    };
    resolved("status -r");
    resolved("ring --resolve-ip");
    assert!(resolved("-pp status -r").contains(" two.example:7000 "));
    assert!(shown("describering shop").contains(
        "\tTokenRange(start_token:40, end_token:-100, endpoints:[10.0.0.1, 10.0.0.2], rpc_endpoints:[10.0.1.1, 10.0.1.2], \
         endpoint_details:[EndpointDetails(host:10.0.0.1, datacenter:east, rack:r1), EndpointDetails(host:10.0.0.2, \
         datacenter:east, rack:r2)])\n"
    ));
    assert!(shown("-pp describering shop").contains("endpoints:[10.0.0.2:7000], rpc_endpoints:[10.0.1.2:9042]"));
    let cluster = shown("describecluster");
    for part in [
        "\tSchema versions:\n\t\tUNREACHABLE: [10.0.0.2]\n\n\t\tae161058-45b9-3f9a-a388-15618625d21f: [10.0.0.1, 10.0.0.3]\n\n",
        "\tLive: 2\n\tJoining: 1\n\tMoving: 0\n\tLeaving: 1\n\tUnreachable: 1\n",
        "\teast #Nodes: 2 #Down: 1\n\twest #Nodes: 1 #Down: 0\n",
        "\t5.0.8: [10.0.0.1:7000, 10.0.0.2:7000, 10.0.0.3:7000]\n\n",
    ] {
        assert!(cluster.contains(part), "{cluster}");
    }
}

/// As Cassandra says it of keyspaces whose replications differ, and of one that is local.
#[test]
fn a_share_that_is_not_known_is_no_number() {
    let node = fake();
    let note = "Ownership values for keyspaces with LocalStrategy are meaningless";
    let unknown = |endpoint| EndpointInfo { owns: None, ..endpoint };
    let RingInfo { endpoints, ranges, .. } = several();
    let endpoints = endpoints.into_iter().take(1).map(unknown).collect();
    node.node().0.lock().expect("no panic inside").ring =
        Some(RingInfo { endpoints, note: Some(note.to_owned()), ranges });
    let (_, status) = run_on(&node, "status system");
    assert!(status.contains("Tokens  Owns  Host ID") && status.contains(" 2       ?     1cba1d95"), "{status}");
    assert!(status.ends_with(&format!("\n\nNote: {note}\n")), "{status}");
    let (_, ring) = run_on(&node, "ring system");
    assert!(
        ring.contains("2 KiB           ?                   -100 ") && ring.ends_with(&format!("\n\n  Note: {note}\n")),
        "{ring}"
    );
    assert_eq!(run_on(&node, "status nosuch"), (1, "\nError: The keyspace nosuch, does not exist\n".to_owned()));
    let refused = run_on(&node, "describering system");
    assert_eq!(
        (refused.0, refused.1.ends_with("error: There is no ring for the keyspace: system\n")),
        (2, true),
        "{refused:?}"
    );
    assert!(run_on(&node, "describering nosuch").1.ends_with("error: No such keyspace: nosuch\n"));
}
