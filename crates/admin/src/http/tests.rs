//! The API over a real socket: client and server agree on every path.

use std::sync::Arc;
use std::sync::mpsc;

use super::*;
use crate::api::{AdminApi, AdminError, TimeoutKind};
use crate::fake::FakeNode;
use crate::model::{
    CacheChange, Compact, CompactRequest, ImportRequest, SSTableRequest, SSTableWork, SnapshotRequest, StopRequest,
    TableSelection, TransportChange,
};

/// Serves a fake node on a free port, for the rest of the test process.
fn serve_fake() -> (Arc<FakeNode>, Client) {
    let env = env::real::env();
    let node = Arc::new(FakeNode::default());
    let (sender, receiver) = mpsc::channel();
    let (ops, api) = (env.clone(), Arc::clone(&node));
    let worker = env.tasks.spawn_worker(
        "ops",
        Box::new(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = ops.network.bind("127.0.0.1:0".parse().expect("an address"), false).expect("a listener");
                sender.send(listener.local_address().expect("bound").port()).expect("the test waits");
                serve(ops, listener, api).await.expect("serves");
            });
        }),
    );
    drop(worker);
    let port = receiver.recv().expect("it listens");
    (node, Client::new("127.0.0.1", port))
}

#[test]
fn everything_arrives() {
    let (node, client) = serve_fake();
    assert_eq!(client.node(), node.node());
    assert_eq!(client.keyspaces(), node.keyspaces());
    assert_eq!(client.tables(), node.tables());
    assert_eq!(client.client_latencies(), node.client_latencies());
    assert_eq!(client.compactions(), node.compactions());
    assert_eq!(client.compaction_history(), node.compaction_history());
    assert_eq!(client.pools(), node.pools());
    assert_eq!(client.metrics(), node.metrics());
    assert_eq!(client.endpoints("shop", "a table", "1:ä&b=%"), Ok(vec!["127.0.0.1".to_owned()]));
    client.flush(&TableSelection::default()).expect("flushed");
    let shop = TableSelection { keyspaces: vec!["shop".to_owned()], tables: Vec::new() };
    let what = Compact::Tokens { first: "-5".to_owned(), last: "7".to_owned() };
    client.compact(&CompactRequest { tables: shop.clone(), what }).expect("compacted");
    client.set_auto_compaction(&shop, false).expect("set");
    assert_eq!(client.auto_compaction(&shop), node.auto_compaction(&shop));
    assert_eq!(client.compaction_thresholds("shop", "orders"), node.compaction_thresholds("shop", "orders"));
    client.set_compaction_thresholds("shop", "orders", (2, 9)).expect("set");
    client.set_concurrent_compactors(7).expect("set");
    client.change_caches(&CacheChange::Capacities { keys: 1, rows: 2 }).expect("changed");
    client.drain().expect("drained");
    client.change_transport(TransportChange::Close { force: true }).expect("closed");
    client.clear_snapshots(Some("old"), &["shop".to_owned()]).expect("cleared");
    client.set_timeout(TimeoutKind::CasContention, 9).expect("set");
    for kind in TimeoutKind::ALL {
        assert_eq!(client.timeout(kind), node.timeout(kind));
    }
    client.set_trace_probability(0.5).expect("set");
    assert_eq!(client.trace_probability(), Ok(0.5));
    client.set_compaction_throughput(1).expect("set");
    assert_eq!(client.compaction_throughput(), Ok(1));
    client.set_logging_level("a", "DEBUG").expect("set");
    assert_eq!(client.logging_levels(), node.logging_levels());
    assert_eq!(client.snapshots(), node.snapshots());
    let calls = node.0.lock().expect("no panic inside").calls.clone();
    assert_eq!(
        calls,
        [
            "endpoints shop a table 1:ä&b=%",
            "flush [] []",
            "compact [\"shop\"] [] Tokens { first: \"-5\", last: \"7\" }",
            "auto compaction [\"shop\"] [] false",
            "thresholds shop orders 2 9",
            "concurrent compactors 7",
            "caches Capacities { keys: 1, rows: 2 }",
            "drain",
            "transport Close { force: true }",
            "clear Some(\"old\") [\"shop\"]",
            "timeout cascontention 9"
        ]
    );
}

#[test]
fn failures_arrive_as_such() {
    let (_node, client) = serve_fake();
    let taken = SnapshotRequest { name: "taken".to_owned(), ..SnapshotRequest::default() };
    assert_eq!(client.take_snapshot(&taken), Err(AdminError::Failed("Snapshot taken already exists.".to_owned())));
    let nobody = Client::new("127.0.0.1", 1);
    assert!(matches!(nobody.node(), Err(AdminError::Unreachable(_))));
}

#[test]
fn metrics_are_text() {
    let (node, client) = serve_fake();
    let text = client.metrics_text().expect("text");
    assert_eq!(text, crate::prometheus::collect(node.as_ref()).expect("text"));
}

#[test]
fn work_on_sstables_arrives() {
    let (node, client) = serve_fake();
    let import = ImportRequest { directories: vec!["/bad".to_owned()], ..ImportRequest::default() };
    assert_eq!(client.import(&import), node.import(&import));
    assert_eq!(client.refresh("shop", "orders"), node.refresh("shop", "orders"));
    let (keyspace, tables) = ("shop".to_owned(), vec!["busy".to_owned()]);
    let request = SSTableRequest { keyspace, tables, jobs: 1, work: SSTableWork::Recompress };
    assert_eq!(client.work_on_sstables(&request), node.work_on_sstables(&request));
    let stop = StopRequest::Kind("SCRUB".to_owned());
    assert_eq!(client.stop(&stop), node.stop(&stop));
    assert_eq!(client.sstables("shop", "orders", "1", true), node.sstables("shop", "orders", "1", true));
    let calls = node.0.lock().expect("no panic inside").calls.clone();
    assert_eq!(calls.len(), 10);
    assert!(calls.chunks(2).all(|pair| pair[0] == pair[1]), "{calls:?}");
}
