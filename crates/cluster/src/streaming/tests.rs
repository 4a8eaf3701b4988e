//! Two and three nodes of a simulated ring stream to each other; the rows that they have afterwards
//! are compared one by one.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use internode::payload::repair::Prepare;
use storage::TableStore;

use super::*;
use crate::node::Node;
use crate::repair::participant;
use crate::testing::{SimRing, poll, store_unreadable_table};

const KEYS: i32 = 300;

fn whole_ring() -> TokenRange {
    TokenRange { left: types::Token::MIN, right: types::Token::MIN }
}

/// A ring of two whose first node has rows that the second has not.
fn ring_with_rows(seed: u64) -> SimRing {
    filled(SimRing::new(seed, &["dc1", "dc1"]))
}

/// The first node has rows that the second has not.
fn filled(ring: SimRing) -> SimRing {
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    let rows: Vec<_> = (0..KEYS).flat_map(|k| (0..k % 4).map(move |c| (k, c))).collect();
    let rows: Vec<_> = rows.into_iter().map(|(k, c)| ring.row("ks", k, c, k * 10 + c, 1_000)).collect();
    ring.apply_alone(0, &rows);
    ring
}

fn expected(k: i32) -> Vec<(i32, i32)> {
    (0..k % 4).map(|c| (c, k * 10 + c)).collect()
}

fn ask(ring: &SimRing, from: usize, ranges: Vec<TokenRange>) -> StreamPlan {
    let request = RangeRequest { keyspace: "ks".to_owned(), tables: Vec::new(), ranges };
    let peer = PeerStreams { peer: ring.address(from), requests: vec![request], transfers: Vec::new() };
    let (operation, pending_repair, preview, since) = (Operation::Rebuild, None, Preview::None, None);
    StreamPlan { operation, pending_repair, preview, since, peers: vec![peer] }
}

fn run_on(ring: &SimRing, machine: usize, plan: StreamPlan) -> StreamOutcome {
    let node: Arc<Node> = Arc::clone(ring.node(machine));
    ring.world.block_on(async move { run(&node, plan).await })
}

#[test]
fn what_is_asked_for_comes_in_every_form() {
    for entire in [true, false] {
        let ring = ring_with_rows(1);
        ring.node(0).change_stream_settings(|settings| settings.entire = entire);
        let outcome = run_on(&ring, 1, ask(&ring, 0, vec![whole_ring()]));
        assert!(outcome.is_complete(), "{outcome:?}");
        for k in 0..KEYS {
            assert_eq!(ring.stored(1, "ks", k), expected(k), "key {k}, entire: {entire}");
        }
        let (_, summary) = outcome.sessions.into_iter().next().expect("one session");
        let received: i32 = summary.expect("complete").received.iter().map(|table| table.files).sum();
        assert_eq!(received > 1, entire, "an SSTable that goes whole counts a file for each component");
        assert!(ring.node(0).streaming_state.all().is_empty() && ring.node(1).streaming_state.all().is_empty());
        let [sender, receiver] = [0, 1].map(|machine| ring.node(machine).ended_streams().pop().expect("one session"));
        assert_eq!(receiver.received, receiver.to_receive, "entire: {entire}");
        assert_eq!(sender.sent, receiver.received, "entire: {entire}");
        assert!(receiver.receiving.is_empty() && sender.sending.is_empty(), "names of files are not remembered");
    }
}

/// Nodes of Cassandra may read a table that this node cannot read, and count its data as handed
/// on.
#[test]
fn a_table_that_is_left_out_is_handed_on_to_no_cassandra_in_silence() {
    let ring = ring_with_rows(40);
    let node = ring.node(0);
    store_unreadable_table(node);
    // what the nodes tell of themselves has come
    ring.world.run_for(Duration::from_secs(5));
    let (helenus, cassandra) = (ring.address(1), SocketAddr::from(([10, 9, 9, 9], 7000)));
    let is_refused = |peer: SocketAddr, keyspace: &str| {
        let peers = [peer];
        ring.world.block_on(checks::refuse_left_out(node, &peers, |meant| meant == keyspace)).is_err()
    };
    let refused = [is_refused(cassandra, "ks"), is_refused(helenus, "ks"), is_refused(cassandra, "other")];
    assert_eq!(refused, [true, false, false]);
}

/// Changes the table on one machine alone.
fn change_table(node: &Node, change: impl Fn(&mut schema::TableMetadata)) {
    let changed = storage::schema_change::change(&node.engine, |schema| {
        let table = schema.table("ks", "t").cloned().expect("the table");
        let mut keyspace = schema.keyspace("ks").cloned().expect("the keyspace");
        let mut changed = (*table).clone();
        change(&mut changed);
        std::sync::Arc::make_mut(&mut keyspace).tables.insert("t".to_owned(), Arc::new(changed));
        Ok::<_, ()>(schema.with_keyspace((*keyspace).clone()))
    });
    changed.expect("a sound disk").expect("not refused");
}

/// A receiver of Cassandra would look for the components of the index among the files.
#[test]
fn sstables_of_tables_with_attached_indexes_go_in_sections() {
    let ring = ring_with_rows(1);
    ring.node(0).change_stream_settings(|settings| settings.entire = true);
    let options = [("target", "v"), ("class_name", schema::index::attached::CLASS)];
    change_table(ring.node(0), |table| {
        let options = options.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let index = schema::IndexMetadata { name: "by_v".to_owned(), kind: schema::IndexKind::Custom, options };
        table.indexes.insert(index.name.clone(), index);
    });
    let outcome = run_on(&ring, 1, ask(&ring, 0, vec![whole_ring()]));
    assert!(outcome.is_complete(), "{outcome:?}");
    assert!((0..KEYS).all(|k| ring.stored(1, "ks", k) == expected(k)));
    let (_, summary) = outcome.sessions.into_iter().next().expect("one session");
    let received: Vec<i32> = summary.expect("complete").received.iter().map(|table| table.files).collect();
    assert_eq!(received, [1], "a file in sections counts as one");
}

/// Received rows of a table with `cdc = true` are in the commit log, where they are captured, and
/// not in the files that came; with `cdc_on_repair_enabled: false` they come as files.
#[test]
fn changes_of_captured_tables_are_received_as_writes() {
    for captures in [true, false] {
        let ring = ring_with_rows(13);
        let node = ring.node(1);
        node.change_stream_settings(|settings| settings.captures = captures);
        change_table(node, |table| table.params.cdc = Some(true));
        let outcome = run_on(&ring, 1, ask(&ring, 0, vec![whole_ring()]));
        assert!(outcome.is_complete(), "{outcome:?}");
        assert!((0..KEYS).all(|k| ring.stored(1, "ks", k) == expected(k)));
        let store = node.engine.table_by_name("ks", "t").expect("the table");
        let writes = store.metrics.writes.get();
        assert_eq!(writes > 0, captures, "{writes} writes");
        let files = node.env.disk.list_dir(&store.directory).expect("the table's directory");
        let data = files.iter().filter(|file| file.name.ends_with("Data.db")).count();
        assert_eq!(data, store.view().sstables.len(), "files that came are left: {files:?}");
    }
}

#[test]
fn ranges_that_were_not_asked_for_do_not_come() {
    let ring = ring_with_rows(2);
    let half = TokenRange { left: types::Token(0), right: types::Token::MAX };
    let outcome = run_on(&ring, 1, ask(&ring, 0, vec![half]));
    assert!(outcome.is_complete(), "{outcome:?}");
    let token = |k: i32| types::DecoratedKey::new(bytes::Bytes::copy_from_slice(&k.to_be_bytes())).token;
    for k in 0..KEYS {
        let wanted = if token(k).0 > 0 { expected(k) } else { Vec::new() };
        assert_eq!(ring.stored(1, "ks", k), wanted, "key {k}");
    }
}

/// A stream of a repair with a machine, in which both sides send.
fn exchange(ring: &SimRing, with: usize) -> StreamPlan {
    let mut plan = StreamPlan { operation: Operation::Repair, ..ask(ring, with, vec![whole_ring()]) };
    plan.peers[0].transfers = plan.peers[0].requests.clone();
    plan
}

/// A machine takes part in a full repair of `ks.t`.
fn take_part(ring: &SimRing, machine: usize) {
    let prepare = Prepare {
        tables: vec![store(ring, machine, "ks").id],
        parent: [7; 16],
        ranges: Vec::new(),
        is_incremental: false,
        repaired_at: 0,
        is_global: true,
        preview: internode::payload::repair::Preview::None,
    };
    participant::prepare(ring.node(machine), ring.address(0), prepare).expect("taken");
}

#[test]
fn data_is_sent_and_received_in_one_session() {
    let ring = ring_with_rows(3);
    ring.apply_alone(1, &[ring.row("ks", 9_000, 1, 7, 1_000)]);
    take_part(&ring, 1);
    let outcome = run_on(&ring, 0, exchange(&ring, 1));
    assert!(outcome.is_complete(), "{outcome:?}");
    for machine in [0, 1] {
        assert_eq!(ring.stored(machine, "ks", 9_000), [(1, 7)]);
        for k in 0..KEYS {
            assert_eq!(ring.stored(machine, "ks", k), expected(k), "key {k}");
        }
    }
}

/// `streaming_connections_per_host`: two sessions, told of as one.
#[test]
fn a_plan_is_split_over_sessions_with_a_peer() {
    let ring = ring_with_rows(9);
    ring.node(1).change_stream_settings(|settings| settings.connections_per_host = 2);
    let mut plan = ask(&ring, 0, vec![TokenRange { left: types::Token::MIN, right: types::Token(0) }]);
    let mut upper = plan.peers[0].requests[0].clone();
    upper.ranges = vec![TokenRange { left: types::Token(0), right: types::Token::MAX }];
    plan.peers[0].requests.push(upper);
    let outcome = run_on(&ring, 1, plan);
    assert!(outcome.is_complete() && outcome.sessions.len() == 1, "{outcome:?}");
    assert_eq!(ring.node(0).ended_streams().len(), 2);
    assert!((0..KEYS).all(|k| ring.stored(1, "ks", k) == expected(k)));
}

#[test]
fn a_preview_moves_nothing() {
    let ring = ring_with_rows(4);
    let mut plan = ask(&ring, 0, vec![whole_ring()]);
    plan.preview = Preview::All;
    let outcome = run_on(&ring, 1, plan);
    let (_, summary) = outcome.sessions.into_iter().next().expect("one session");
    assert!(summary.expect("complete").received.iter().any(|table| table.bytes > 1000));
    assert!(ring.stored(1, "ks", 3).is_empty());
}

/// `reject_out_of_token_range_requests`: neither side of a stream gives or takes ranges that it has
/// no copy of. Otherwise they are counted.
#[test]
fn ranges_of_others_are_refused_where_asked() {
    for (refuses, sender_refuses) in [(true, true), (true, false), (false, false)] {
        let ring = ring_with_rows(14);
        ring.create_keyspace("one", "SimpleStrategy", &[("replication_factor", "1")]);
        let rows: Vec<_> = (0..50).map(|k| ring.row("one", k, 1, k, 1_000)).collect();
        ring.apply_alone(0, &rows);
        ring.node(0).change_stream_settings(|settings| settings.entire = false);
        ring.node(0).set_out_of_range_handling(true, sender_refuses);
        ring.node(1).set_out_of_range_handling(true, refuses);
        let mut plan = ask(&ring, 0, vec![whole_ring()]);
        plan.peers[0].requests[0].keyspace = "one".to_owned();
        let outcome = run_on(&ring, 1, plan);
        let came = (0..50).filter(|k| !ring.stored(1, "one", *k).is_empty()).count();
        match outcome.failures().next() {
            None => assert!(!refuses && came == 50, "{came} have come"),
            Some(failure) => {
                assert!(refuses && came == 0, "{failure}, {came} have come");
                // the sender tells nobody why it fails the session
                if !sender_refuses {
                    assert!(failure.reason.starts_with("Received stream for sstable one.t/"), "{failure}");
                }
            }
        }
        let counted = [0, 1].map(|machine| ring.node(machine).out_of_range_total() > 0);
        assert_eq!(counted, [true, !sender_refuses]);
    }
}

/// `server_encryption_options`: a ring whose nodes take no link without TLS from where the scope
/// says, so a stream that arrives has come over TLS.
#[test]
fn streams_come_over_encrypted_links() {
    use links::Scope;
    for (scope, centers) in [(Scope::All, ["dc1", "dc1"]), (Scope::BetweenDataCenters, ["dc1", "dc2"])] {
        for entire in [true, false] {
            let ring = filled(SimRing::encrypted(15, &centers, scope));
            ring.node(0).change_stream_settings(|settings| settings.entire = entire);
            let outcome = run_on(&ring, 1, ask(&ring, 0, vec![whole_ring()]));
            assert!(outcome.is_complete(), "{scope:?}: {outcome:?}");
            assert!((0..KEYS).all(|k| ring.stored(1, "ks", k) == expected(k)), "{scope:?}, entire: {entire}");
        }
    }
}

#[test]
fn what_cannot_be_taken_is_refused_before_bytes_flow() {
    let ring = ring_with_rows(5);
    let mut plan = ask(&ring, 0, vec![whole_ring()]);
    plan.peers[0].requests[0].tables = vec!["nothing".to_owned()];
    let outcome = run_on(&ring, 1, plan);
    assert!(!outcome.is_complete());
    ring.create_keyspace_untold(&[0], "alone", "SimpleStrategy", &[("replication_factor", "2")]);
    ring.apply_alone(0, &[ring.row("alone", 1, 1, 1, 1_000)]);
    let mut plan = ask(&ring, 0, vec![whole_ring()]);
    plan.peers[0].requests[0].keyspace = "alone".to_owned();
    let outcome = run_on(&ring, 1, plan);
    let failure = outcome.failures().next().expect("the table is not known");
    assert!(failure.reason.contains("there is no table"), "{failure}");
    ring.world.disk(1).set_capacity(Some(0));
    let outcome = run_on(&ring, 1, ask(&ring, 0, vec![whole_ring()]));
    let failure = outcome.failures().next().expect("there is no room");
    assert!(failure.reason.contains("bytes would come, and the disk has room for 0"), "{failure}");
}

/// Links between two machines break by chance in the middle of a file: a session whose link for
/// files was lost sends the file again; one whose control link was lost fails.
#[test]
fn a_lost_link_for_files_is_opened_again() {
    let (mut resumed, mut failed) = (0, 0);
    for seed in 20..32 {
        let ring = ring_with_rows(seed);
        ring.node(0).change_stream_settings(|settings| settings.entire = seed % 2 == 0);
        let running = Running::begin(&ring, ask(&ring, 0, vec![whole_ring()]));
        for _ in 0..4 {
            ring.world.network().reset_one(0, 1);
            ring.world.run_for(Duration::from_secs(1));
        }
        let outcome = running.end(&ring);
        let resent = ring.node(0).stream_figures().resent.get();
        match outcome.failures().next() {
            None => {
                resumed += u64::from(resent > 0);
                assert!((0..KEYS).all(|k| ring.stored(1, "ks", k) == expected(k)), "seed {seed}");
            }
            Some(failure) => {
                assert!(!failure.reason.contains("middle of a file"), "seed {seed}: {failure}");
                failed += 1;
                assert_nothing_came(&ring, 1);
            }
        }
    }
    assert!(resumed > 0, "{resumed} resumed, {failed} failed");
}

/// A file that lost its link goes again before those that wait for their turn, which here takes
/// longer than a receiver waits for the lost one.
#[test]
fn a_file_that_lost_its_link_goes_before_those_that_wait() {
    const SSTABLES: i32 = 24;
    let mut resumed = 0;
    for seed in [44, 49] {
        let ring = ring_with_rows(seed);
        let node = ring.node(0);
        let store = node.engine.table_by_name("ks", "t").expect("the table");
        store.auto_compaction.set(false);
        for at in 1..SSTABLES {
            ring.world.block_on(node.engine.flush(&store)).expect("flushed");
            let rows: Vec<_> = (0..KEYS).map(|k| ring.row("ks", k, 9, at, 1_000 + i64::from(at))).collect();
            ring.apply_alone(0, &rows);
        }
        let running = Running::begin(&ring, ask(&ring, 0, vec![whole_ring()]));
        ring.world.run_for(Duration::from_secs(10));
        ring.world.network().reset_one(0, 1);
        let outcome = running.end(&ring);
        let took = ring.node(1).ended_streams().pop().expect("one session").millis;
        let resent = node.stream_figures().resent.get();
        assert!(outcome.is_complete(), "seed {seed}: {outcome:?}");
        assert!(took > 90_000, "seed {seed}: the session took {took} ms, less than a lost file is waited for");
        assert!((0..KEYS).all(|k| ring.stored(1, "ks", k).contains(&(9, SSTABLES - 1))), "seed {seed}");
        resumed += u64::from(resent > 0);
    }
    assert!(resumed > 0, "no link for files was hit: the seeds are to be drawn anew");
}

/// A plan that runs on the second machine.
struct Running(tokio::sync::oneshot::Receiver<StreamOutcome>);

impl Running {
    /// Runs the plan until the first file has begun to come. Its data waits ten seconds.
    fn begin(ring: &SimRing, plan: StreamPlan) -> Self {
        let sender = ring.node(0);
        sender.change_stream_settings(|settings| {
            (settings.throughput, settings.entire_throughput) = (1000, 1000);
        });
        for is_entire in [true, false] {
            sender.streaming_state.throttle(sender.env.now(), 10_000, is_entire, false);
        }
        let node = Arc::clone(ring.node(1));
        let (tell, told) = tokio::sync::oneshot::channel();
        let of_plan = Arc::clone(&node);
        let make: env::LocalFutureFactory = Box::new(move || {
            Box::pin(async move {
                let _ = tell.send(run(&of_plan, plan).await);
            })
        });
        drop(node.env.tasks.spawn_local_worker("plan", make));
        let begun = ring.world.run_until(Duration::from_secs(30), || {
            node.streaming_state.all().iter().any(|live| live.snapshot(node.env.now()).to_receive.files > 0)
        });
        assert!(begun);
        ring.world.run_for(Duration::from_secs(2));
        Self(told)
    }

    fn end(mut self, ring: &SimRing) -> StreamOutcome {
        let mut outcome = None;
        ring.world.run_until(Duration::from_secs(600), || {
            outcome = outcome.take().or_else(|| self.0.try_recv().ok());
            outcome.is_some()
        });
        outcome.expect("the session ends")
    }
}

/// No file of a stream is left on a machine, and no row.
fn assert_nothing_came(ring: &SimRing, machine: usize) {
    ring.world.run_for(Duration::from_secs(2));
    assert!((0..KEYS).all(|k| ring.stored(machine, "ks", k).is_empty()));
    let node = ring.node(machine);
    assert!(node.streaming_state.all().is_empty());
    let directory = node.engine.table_by_name("ks", "t").expect("the table").directory.clone();
    let files = node.env.disk.list_dir(&directory).unwrap_or_default();
    assert_eq!(files.iter().filter(|file| !file.is_dir).count(), 0, "{files:?}");
}

#[test]
fn a_peer_that_dies_fails_the_session_and_leaves_nothing() {
    for entire in [true, false] {
        let mut ring = ring_with_rows(6);
        ring.node(0).change_stream_settings(|settings| settings.entire = entire);
        let running = Running::begin(&ring, ask(&ring, 0, vec![whole_ring()]));
        ring.kill(0);
        assert!(!running.end(&ring).is_complete());
        assert_nothing_came(&ring, 1);
        let ended = ring.node(1).ended_streams();
        assert!(matches!(&ended[..], [session] if matches!(session.end, Some(Err(_)))), "{ended:?}");
    }
}

#[test]
fn a_receiver_that_loses_its_power_has_nothing_of_the_stream() {
    let mut ring = ring_with_rows(7);
    let running = Running::begin(&ring, ask(&ring, 0, vec![whole_ring()]));
    ring.power_cut(1);
    drop(running);
    ring.world.run_for(Duration::from_secs(200));
    assert!(ring.node(0).streaming_state.all().is_empty(), "the sender has given the session up");
    ring.start(1);
    ring.agree();
    assert_nothing_came(&ring, 1);
    let outcome = run_on(&ring, 1, ask(&ring, 0, vec![whole_ring()]));
    assert!(outcome.is_complete(), "{outcome:?}");
    assert!((0..KEYS).all(|k| ring.stored(1, "ks", k) == expected(k)));
}

/// Drops the table on one machine alone.
fn drop_table(node: &Node) {
    let changed = storage::schema_change::change(&node.engine, |schema| {
        let mut keyspace = schema.keyspace("ks").cloned().expect("the keyspace");
        Arc::make_mut(&mut keyspace).tables.remove("t");
        Ok::<_, ()>(schema.with_keyspace((*keyspace).clone()))
    });
    let dropped = changed.expect("a sound disk").expect("not refused").dropped;
    dropped.iter().for_each(|store| node.engine.dropper.request(store, None));
}

/// The table is dropped while a file of it comes, whose data is far away. Its receiver lets go of
/// what has come at once, and passes over the rest; a repair ends. Its sender sends what it has
/// told of.
#[test]
fn a_table_is_dropped_while_a_file_of_it_comes() {
    for (operation, entire) in [(Operation::Rebuild, true), (Operation::Rebuild, false), (Operation::Repair, true)] {
        let ring = ring_with_rows(22);
        ring.node(0).change_stream_settings(|settings| settings.entire = entire);
        let (node, directory) = (ring.node(1), store(&ring, 1, "ks").directory.clone());
        let running = Running::begin(&ring, StreamPlan { operation, ..ask(&ring, 0, vec![whole_ring()]) });
        drop_table(ring.node(0));
        drop_table(node);
        let files = || node.env.disk.list_dir(&directory).unwrap_or_default().into_iter().filter(|file| !file.is_dir);
        let is_gone = || files().next().is_none();
        assert!(ring.world.run_until(Duration::from_secs(4), is_gone), "{:?}", files().collect::<Vec<_>>());
        assert_eq!(node.streaming_state.all().is_empty(), operation == Operation::Repair);
        let outcome = running.end(&ring);
        match outcome.failures().next() {
            Some(failure) => {
                assert_eq!(operation, Operation::Repair, "{failure}");
                assert!(failure.reason.contains("ks.t was dropped meanwhile"), "{failure}");
            }
            None => {
                assert_ne!(operation, Operation::Repair);
                let session = node.ended_streams().pop().expect("one session");
                assert_eq!(session.received, session.to_receive, "entire: {entire}");
            }
        }
    }
}

/// The table is dropped on the node that is asked for it, before that node tells of its files.
#[test]
fn a_sender_passes_over_a_table_that_is_dropped() {
    let ring = ring_with_rows(25);
    let (sender, node) = (ring.node(0), Arc::clone(ring.node(1)));
    let store = store(&ring, 0, "ks");
    // the files are looked for when this one has ended
    let mut truncation = Box::pin(storage::truncate::truncate(&sender.engine, &store));
    carry_on_to_cut(&ring, &store, truncation.as_mut());
    let plan = ask(&ring, 0, vec![whole_ring()]);
    let later = async {
        node.env.sleep(Duration::from_secs(5)).await;
        drop_table(sender);
        drop(truncation);
    };
    let (outcome, ()) = ring.world.block_on(async { tokio::join!(run(&node, plan), later) });
    assert!(outcome.is_complete(), "{outcome:?}");
    assert_nothing_came(&ring, 1);
}

/// The keyspace is dropped on the node that is asked for it, and the other one has not heard of
/// that. Of a keyspace that the asked node has never had it may not have heard itself.
#[test]
fn a_sender_passes_over_a_keyspace_that_it_has_dropped() {
    let ring = ring_with_rows(41);
    let without = |schema: &schema::Schema| Ok::<_, ()>(schema.without_keyspace("ks"));
    let changed = ring.world.block_on(ring.node(0).change_schema(without));
    assert!(changed.is_ok_and(|changed| changed.is_ok()));
    let mut plan = ask(&ring, 0, vec![whole_ring()]);
    let outcome = run_on(&ring, 1, plan.clone());
    assert!(outcome.is_complete(), "{outcome:?}");
    plan.peers[0].requests[0].keyspace = "nowhere".to_owned();
    assert!(!run_on(&ring, 1, plan).is_complete());
}

fn store(ring: &SimRing, machine: usize, keyspace: &str) -> Arc<TableStore> {
    ring.node(machine).engine.table_by_name(keyspace, "t").expect("the table")
}

/// Truncates a table on one machine alone.
fn truncate(ring: &SimRing, machine: usize, keyspace: &str) {
    let (engine, store) = (&ring.node(machine).engine, store(ring, machine, keyspace));
    ring.world.block_on(storage::truncate::truncate(engine, &store)).expect("truncated");
}

/// Carries a truncation on until its cut is made. It stays there as long as nobody polls it.
fn carry_on_to_cut(ring: &SimRing, store: &TableStore, mut truncation: Pin<&mut impl Future>) {
    while store.view_beside_no_truncation().is_some() {
        assert!(poll(truncation.as_mut()).is_pending(), "the cut is made first");
        ring.world.run_for(Duration::from_millis(1));
    }
}

/// TRUNCATE on the receiver while files come: rows that the sender has read before must not come
/// back. A stream that moves ranges goes on, also where its rows take the path of writes; a repair
/// has to compare anew.
#[test]
fn rows_from_before_a_truncation_are_dropped_or_fail_a_repair() {
    for (operation, captures) in [(Operation::Rebuild, false), (Operation::Bootstrap, true), (Operation::Repair, false)]
    {
        let ring = ring_with_rows(8);
        if captures {
            change_table(ring.node(1), |table| table.params.cdc = Some(true));
        }
        ring.apply_alone(1, &[ring.row("ks", 9_000, 1, 7, 1_000)]);
        let running = Running::begin(&ring, StreamPlan { operation, ..ask(&ring, 0, vec![whole_ring()]) });
        truncate(&ring, 1, "ks");
        let outcome = running.end(&ring);
        match outcome.failures().next() {
            Some(failure) => {
                assert_eq!(operation, Operation::Repair, "{failure}");
                assert!(failure.reason.contains("ks.t was truncated meanwhile"), "{failure}");
            }
            None => assert_ne!(operation, Operation::Repair),
        }
        assert_nothing_came(&ring, 1);
    }
}

/// All files have come while TRUNCATE is under way on the receiver, whose rows take the path of
/// writes: nobody knows yet whether the rows are wanted.
#[test]
fn rows_as_writes_await_the_end_of_a_truncation() {
    for ends_well in [true, false] {
        let ring = ring_with_rows(19);
        change_table(ring.node(1), |table| table.params.cdc = Some(true));
        let running = Running::begin(&ring, ask(&ring, 0, vec![whole_ring()]));
        let store = store(&ring, 1, "ks");
        let mut truncation = Box::pin(storage::truncate::truncate(&ring.node(1).engine, &store));
        carry_on_to_cut(&ring, &store, truncation.as_mut());
        ring.world.run_for(Duration::from_secs(180));
        let session = ring.node(1).stream_progress().pop().expect("the session waits");
        assert_eq!(session.received, session.to_receive);
        assert!((0..KEYS).all(|k| ring.stored(1, "ks", k).is_empty()));
        match ends_well {
            true => ring.world.block_on(&mut truncation).expect("truncated"),
            false => drop(truncation),
        }
        let outcome = running.end(&ring);
        assert!(outcome.is_complete(), "{outcome:?}");
        for k in 0..KEYS {
            let wanted = if ends_well { Vec::new() } else { expected(k) };
            assert_eq!(ring.stored(1, "ks", k), wanted, "key {k}, truncated: {ends_well}");
        }
    }
}

/// TRUNCATE on the receiver behind the news of the stream and before the first file of the table.
#[test]
fn a_truncation_before_the_first_file_of_its_table_drops_the_rows() {
    const SSTABLES: i32 = 3;
    let ring = ring_with_rows(16);
    ring.create_keyspace("other", "SimpleStrategy", &[("replication_factor", "2")]);
    let mut tables = ["ks", "other"].map(|keyspace| (store(&ring, 0, keyspace), keyspace));
    for (store, keyspace) in &tables {
        store.auto_compaction.set(false);
        for c in 5..5 + SSTABLES {
            let rows: Vec<_> = (0..KEYS).map(|k| ring.row(keyspace, k, c, k, 1_000)).collect();
            ring.apply_alone(0, &rows);
            ring.world.block_on(ring.node(0).engine.flush(store)).expect("flushed");
        }
    }
    // as the files go
    tables.sort_by_key(|(store, _)| store.id);
    let [(_, first), (_, last)] = tables;
    let mut plan = ask(&ring, 0, vec![whole_ring()]);
    let other = RangeRequest { keyspace: "other".to_owned(), ..plan.peers[0].requests[0].clone() };
    plan.peers[0].requests.push(other);
    let running = Running::begin(&ring, plan);
    let comes = || ring.node(1).stream_progress().pop().expect("one session").receiving;
    assert!(ring.world.run_until(Duration::from_secs(60), || !comes().is_empty()));
    assert!(comes().keys().all(|name| name.starts_with(&format!("{first}.t/"))), "{:?}", comes());
    truncate(&ring, 1, last);
    let outcome = running.end(&ring);
    assert!(outcome.is_complete(), "{outcome:?}");
    for k in 0..KEYS {
        assert!(ring.stored(1, first, k).len() >= SSTABLES as usize, "key {k}");
        assert_eq!(ring.stored(1, last, k), [], "key {k}");
    }
}

/// TRUNCATE comes to the receiver before a stream, and to the sender when it has told of its
/// files: the receiver takes the rows for later ones, those that come and those that have come,
/// until the sender has it truncate again. A receiver that was told long ago had its own TRUNCATE
/// behind that.
#[test]
fn a_sender_that_is_truncated_later_has_its_receiver_truncate_again() {
    for (seconds, is_kept) in [(0, false), (60, false), (600, true)] {
        let ring = ring_with_rows(26);
        truncate(&ring, 1, "ks");
        let running = Running::begin(&ring, ask(&ring, 0, vec![whole_ring()]));
        ring.world.run_for(Duration::from_secs(seconds));
        ring.world.block_on(ring.node(0).truncate_here("ks", "t")).expect("truncated");
        ring.apply_alone(1, &[ring.row("ks", 9_000, 1, 7, 1_000)]);
        let outcome = running.end(&ring);
        assert!(outcome.is_complete(), "{outcome:?}");
        let came = (0..KEYS).filter(|k| !ring.stored(1, "ks", *k).is_empty()).count();
        assert_eq!(came > 0, is_kept, "{came} keys have come, {seconds} s after the begin");
        assert_eq!(ring.stored(1, "ks", 9_000), [(1, 7)], "it was written behind the TRUNCATE");
    }
}

/// A TRUNCATE behind a repair truncates each node once: TRUNCATE ends streams of repairs on both
/// sides.
#[test]
fn a_sender_of_a_repair_has_nobody_truncate_again() {
    let ring = ring_with_rows(27);
    take_part(&ring, 1);
    let outcome = run_on(&ring, 0, exchange(&ring, 1));
    assert!(outcome.is_complete(), "{outcome:?}");
    let before = ring.node(1).engine.truncation_epoch();
    ring.world.block_on(ring.node(0).truncate_here("ks", "t")).expect("truncated");
    assert_eq!(ring.node(1).engine.truncation_epoch(), before);
}

/// TRUNCATE on the sender is under way while its files are asked for: its rows from before the cut
/// are about to go, and the receiver may have its own TRUNCATE behind it.
#[test]
fn a_sender_awaits_the_end_of_its_truncation() {
    let ring = ring_with_rows(17);
    let (sender, node) = (ring.node(0), Arc::clone(ring.node(1)));
    let store = store(&ring, 0, "ks");
    let mut truncation = Box::pin(storage::truncate::truncate(&sender.engine, &store));
    carry_on_to_cut(&ring, &store, truncation.as_mut());
    ring.apply_alone(0, &[ring.row("ks", 9_000, 1, 7, 1_000)]);
    let plan = ask(&ring, 0, vec![whole_ring()]);
    let later = async {
        node.env.sleep(Duration::from_secs(5)).await;
        truncation.await
    };
    let (outcome, truncated) = ring.world.block_on(async { tokio::join!(run(&node, plan), later) });
    truncated.expect("truncated");
    assert!(outcome.is_complete(), "{outcome:?}");
    assert!((0..KEYS).all(|k| ring.stored(1, "ks", k).is_empty()), "rows from before the truncation have come");
    assert_eq!(ring.stored(1, "ks", 9_000), [(1, 7)]);
}

/// TRUNCATE on the node that opens a stream of a repair, while it looks for the files that it
/// sends: the replicas were compared before that.
#[test]
fn a_truncation_before_a_repair_sends_its_files_fails_the_stream() {
    let ring = ring_with_rows(20);
    let (node, store) = (Arc::clone(ring.node(1)), store(&ring, 1, "ks"));
    // the files are looked for when this one has ended
    let mut first = Box::pin(storage::truncate::truncate(&node.engine, &store));
    carry_on_to_cut(&ring, &store, first.as_mut());
    let plan = exchange(&ring, 0);
    let later = async {
        node.env.sleep(Duration::from_secs(5)).await;
        tokio::join!(first, storage::truncate::truncate(&node.engine, &store))
    };
    let (outcome, truncated) = ring.world.block_on(async { tokio::join!(run(&node, plan), later) });
    assert_eq!(truncated, (Ok(()), Ok(())));
    let failure = outcome.failures().next().expect("the repair has to compare anew");
    assert!(failure.reason.contains("ks.t was truncated meanwhile"), "{failure}");
    assert_nothing_came(&ring, 1);
}

/// TRUNCATE on the node that opens a stream of a repair, between the look at its replicas and the
/// begin of the session.
#[test]
fn a_truncation_before_a_stream_of_a_repair_begins_fails_the_stream() {
    let ring = ring_with_rows(24);
    let since = Some(ring.node(1).engine.truncation_epoch());
    truncate(&ring, 1, "ks");
    let outcome = run_on(&ring, 1, StreamPlan { since, ..exchange(&ring, 0) });
    let failure = outcome.failures().next().expect("the repair has to compare anew");
    assert!(failure.reason.contains("ks.t was truncated meanwhile"), "{failure}");
    assert_nothing_came(&ring, 1);
}

/// TRUNCATE has ended a repair on one node. Another one, which has not heard of the TRUNCATE yet,
/// opens a stream of the repair and sends rows from before.
#[test]
fn files_of_a_repair_that_has_ended_here_are_refused() {
    let ring = ring_with_rows(23);
    take_part(&ring, 1);
    ring.world.block_on(ring.node(1).truncate_here("ks", "t")).expect("truncated");
    assert!(!run_on(&ring, 0, exchange(&ring, 1)).is_complete());
    assert_nothing_came(&ring, 1);
    let ended = ring.node(1).ended_streams().pop().expect("one session").end;
    assert_eq!(ended, Some(Err("this node takes part in no repair of ks.t".to_owned())));
}

/// TRUNCATE of either side ends streams of repairs of the table.
#[test]
fn a_truncation_on_either_side_ends_a_stream_of_a_repair() {
    for truncated in [0, 1] {
        let ring = ring_with_rows(18);
        let plan = StreamPlan { operation: Operation::Repair, ..ask(&ring, 0, vec![whole_ring()]) };
        let running = Running::begin(&ring, plan);
        let node = ring.node(truncated);
        ring.world.block_on(node.truncate_here("ks", "t")).expect("truncated");
        let outcome = running.end(&ring);
        assert!(!outcome.is_complete(), "machine {truncated} is truncated");
        assert_nothing_came(&ring, 1);
    }
}

/// `stream_throughput_outbound` for parts, and `entire_sstable_stream_throughput_outbound` for
/// whole SSTables: bytes take as long as they may, by the sender's clock. Each limit is its own.
#[test]
fn streams_keep_to_their_pace() {
    const RATE: u64 = 2_000;
    for entire in [true, false] {
        let ring = ring_with_rows(12);
        ring.node(0).change_stream_settings(|settings| {
            settings.entire = entire;
            (settings.throughput, settings.entire_throughput) = if entire { (1, RATE) } else { (RATE, 1) };
        });
        // the last bytes of a session are paid for by the next one
        let outcomes = [0, 1].map(|_| run_on(&ring, 1, ask(&ring, 0, vec![whole_ring()])));
        assert!(outcomes.iter().all(StreamOutcome::is_complete), "{outcomes:?}");
        let session = ring.node(0).ended_streams().pop().expect("two sessions");
        let (bytes, took) = (session.sent.bytes, session.millis);
        let paid = bytes * 1000 / RATE;
        assert!((paid * 9 / 10..paid + 2_000).contains(&took), "{bytes} bytes take {took} ms, entire: {entire}");
    }
}
