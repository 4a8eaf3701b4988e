//! Verbs against the recorded output of Cassandra's nodetool (`testdata/nodetool`), through a node
//! that is not there.
//!
//! Where we differ on purpose, [`with`] says how.

use std::sync::Arc;

use super::*;
use crate::fake::{FakeNode, fake};
use crate::verb::LocalAdminApi;
use crate::verbs::{
    EndpointInfo, EndpointState, GetKeyspaces, PendingHintsInfo, RangeInfo, ReadRepairCounts, RingInfo, SnapshotInfo,
    StreamSessionInfo, StreamWayInfo,
};

/// Clock of the run.
const NOW: i64 = 1_795_254_300_000;

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/nodetool/", $name, ".txt"))
    };
}

// behind the macro, which they use
mod repairs;
mod rings;
mod settings;

/// Runs a command line; gives exit code and both outputs together.
fn run_on(node: &Arc<LocalAdminApi<FakeNode>>, line: &str) -> (u8, String) {
    let known = |address: IpAddr| (address == IpAddr::from([10, 0, 0, 2])).then(|| "two.example".to_owned());
    run_knowing(node, line, &known)
}

/// As [`run_on`], where hosts have these names.
fn run_knowing(node: &Arc<LocalAdminApi<FakeNode>>, line: &str, host_name: HostName<'_>) -> (u8, String) {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let connect = |_: NodeAddress| Ok(Box::new(Arc::clone(node)) as Box<dyn AdminApi>);
    let code = run_with(&args, NOW, &connect, host_name, &mut out, &mut err);
    out.extend(err);
    (code, String::from_utf8(out).expect("UTF-8"))
}

fn run_line(line: &str) -> (u8, String) {
    run_on(&fake(), line)
}

/// Scripts and Medusa hand properties of the virtual machine to nodetool.
#[test]
fn properties_of_a_virtual_machine_are_passed_over() {
    let plain = run_line("version");
    assert_eq!(run_line("-Dcom.sun.jndi.rmiURLParsing=legacy version"), plain);
    assert_eq!((plain.0, run_line("-Dx=y version -Da=b")), (0, plain));
}

/// Names and keys are no verbs and no properties, whatever they are.
#[test]
fn words_have_their_meaning_by_their_place() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let long = |line: &str| long_forms(&words(line)).join(" ");
    assert_eq!(long("snapshot -t import -p 7299"), "snapshot -t import -p 7299");
    let import = "-u import --password x -p 7299 import --copy-data ks t /new";
    assert_eq!(long("-u import -pw x -p 7299 import -p ks t /new"), import);
    assert_eq!(long("-Dx -h import -p 7299 status import -p 7299"), "-h import -p 7299 status import -p 7299");
    assert_eq!(long("getendpoints ks t -Dkey"), "getendpoints ks t -Dkey");
    assert_eq!(long("getendpoints -Da=b ks t -- -Dk=v -pr"), "getendpoints ks t -- -Dk=v -pr");
}

/// The texts and the layout of `org.apache.cassandra.tools.nodetool.ViewBuildStatus`.
#[test]
fn view_builds_are_shown_until_all_have_ended() {
    let node = fake();
    let done = (0, "shop.done has finished building\n".to_owned());
    assert_eq!(run_on(&node, "viewbuildstatus shop done"), done);
    assert_eq!(run_on(&node, "viewbuildstatus shop.done"), done);
    let (code, shown) = run_on(&node, "viewbuildstatus shop begun");
    let nodes = "Host      Info   \n127.0.0.1 SUCCESS\n127.0.0.2 STARTED\n";
    let head = "shop.begun has not finished building; node status is below.\n\n";
    assert_eq!((code, shown), (1, format!("{head}{nodes}")));
    let (code, shown) = run_on(&node, "viewbuildstatus shop");
    assert!(code == 1 && shown.contains("viewbuildstatus requires keyspace and view name arguments"), "{shown}");
}

#[test]
fn a_profile_is_shown() {
    let (code, shown) = run_line("profile -d 3");
    assert_eq!(code, 0);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = shown.lines().map(words).collect();
    assert_eq!(lines[0], "3.0 s, 0.50 cores busy");
    assert_eq!(lines[2], "worker-0 7 50.0 % 0.7 % 9");
    assert_eq!(lines[5], "anonymous 3 MiB");
    assert_eq!(lines[7], "Disks: 2 KiB read, 0 bytes written");
    assert!(lines[8].starts_with("Waits for a sync of the commit log: 0,"), "{shown}");
    assert_eq!(run_line("profile -d 61").0, 1);
}

#[test]
fn tombstones_are_shown_of_each_sstable() {
    let node = fake();
    let shown =
        "da-1-bti: 0 tombstones in 0 of 7 partitions (9 rows)\nda-2-bti: 0 tombstones in 0 of 7 partitions (9 rows)\n";
    assert_eq!(run_on(&node, "tombstones -n 3 shop orders"), (0, shown.to_owned()));
    assert_eq!(run_on(&node, "tombstones shop items"), (0, "shop.items has no SSTables\n".to_owned()));
    assert_eq!(run_on(&node, "tombstones shop").0, 1);
    assert_ne!(run_on(&node, "tombstones shop none").0, 0);
}

/// The lines of `org.apache.cassandra.tools.nodetool.NetStats` and of `ProgressInfo.toString`.
#[test]
fn streams_are_shown_while_they_run() {
    let node = fake();
    let way = |files, bytes, files_done, bytes_done, name: &str| StreamWayInfo {
        files,
        bytes,
        files_done,
        bytes_done,
        by_file: [(name.to_owned(), (bytes_done, bytes))].into(),
    };
    node.node().0.lock().expect("no panic inside").streams = vec![StreamSessionInfo {
        plan: "7b0e5f80-0000-1000-8000-000000000001".to_owned(),
        operation: "Rebuild".to_owned(),
        peer: "127.0.0.2:7000".to_owned(),
        receiving: way(9, 4096, 3, 1024, "shop.orders/da-0"),
        sending: way(1, 2048, 1, 2048, "/data/shop/orders/da-1-bti-Data.db"),
        resent: 2,
        ..StreamSessionInfo::default()
    }];
    let (code, shown) = run_on(&node, "netstats");
    let expected = "Rebuild 7b0e5f80-0000-1000-8000-000000000001
    /127.0.0.2
        Receiving 9 files, 4096 bytes total. Already received 3 files (33.33%), 1024 bytes total (25.00%)
            shop.orders/da-0 1024/4096 bytes (25%) received from idx:0/127.0.0.2:7000
        Sending 1 files, 2048 bytes total. Already sent 1 files (100.00%), 2048 bytes total (100.00%)
            /data/shop/orders/da-1-bti-Data.db 2048/2048 bytes (100%) sent to idx:0/127.0.0.2:7000
        Sent again: 2 files, whose link was lost
Read Repair";
    assert_eq!(code, 0);
    assert!(shown.contains(expected) && !shown.contains("Not sending"), "{shown}");
    let (_, shown) = run_on(&node, "netstats -H");
    assert!(shown.contains("Receiving 9 files, 4 KiB total."), "{shown}");
    assert!(run_on(&node, "-pp netstats").1.contains("\n    /127.0.0.2:7000\n"));
}

#[test]
fn read_repairs_are_counted_once_a_node_has_started() {
    let node = fake();
    node.node().0.lock().expect("no panic inside").read_repairs =
        ReadRepairCounts { repaired_blocking: 7, reconcile_read: 3 };
    let statistics =
        "Read Repair Statistics:\nAttempted: 0\nMismatch (Blocking): 7\nMismatch (Background): 0\nPool Name";
    let shown = run_on(&node, "netstats").1;
    assert!(shown.contains(statistics), "{shown}");
    node.node().0.lock().expect("no panic inside").mode = Some("STARTING");
    assert_eq!(run_on(&node, "netstats").1, "Mode: STARTING\nNot sending any streams.\n");
}

#[test]
fn verbs_print_what_cassandra_prints() {
    let cases = [
        ("status", recorded!("status")),
        ("statushandoff", recorded!("statushandoff")),
        ("getmaxhintwindow", recorded!("getmaxhintwindow")),
        ("status shop", recorded!("status_keyspace")),
        ("status -r", recorded!("status_r")),
        ("version", recorded!("version")),
        ("ring", recorded!("ring")),
        ("ring shop", recorded!("ring_keyspace")),
        ("describecluster", recorded!("describecluster")),
        ("gossipinfo", recorded!("gossipinfo")),
        ("netstats", recorded!("netstats")),
        ("statusbinary", recorded!("statusbinary")),
        ("statusgossip", recorded!("statusgossip")),
        ("statusbackup", recorded!("statusbackup")),
        ("flush", recorded!("flush")),
        ("flush nosuch", recorded!("flush_unknown")),
        ("compact shop", recorded!("compact")),
        ("getendpoints shop orders 1", recorded!("getendpoints")),
        ("getendpoints shop nosuch 1", recorded!("getendpoints_unknown")),
        ("getsstables shop orders 1", recorded!("getsstables")),
        (
            "toppartitions shop * 9000 -k 2 -a reads,READ_ROW_COUNT,CAS_CONTENTIONS",
            recorded!("profileload_toppartitions"),
        ),
        ("profileload -k 300", recorded!("profileload_k_large")),
        ("profileload -k 0", recorded!("profileload_k_zero")),
        ("profileload -s 2000", recorded!("profileload_s_large")),
        ("profileload -a NOSUCH", recorded!("profileload_nosuch")),
        ("profileload a b c d", recorded!("profileload_args")),
        ("profileload shop orders 0", recorded!("profileload_duration")),
        ("profileload shop orders 1000 -i 10", recorded!("profileload_interval")),
        ("profileload shop nosuch 100", recorded!("profileload_unknown_table")),
        ("profileload shop orders -t", recorded!("profileload_stop")),
        ("profileload shop orders 1000 -i 2000", recorded!("profileload_schedule_again")),
        ("profileload -l", recorded!("profileload_list_one")),
        ("gettimeout", recorded!("gettimeout")),
        ("gettimeout read", recorded!("gettimeout_read")),
        ("gettimeout range", recorded!("gettimeout_range")),
        ("gettimeout write", recorded!("gettimeout_write")),
        ("gettimeout counterwrite", recorded!("gettimeout_counterwrite")),
        ("gettimeout cascontention", recorded!("gettimeout_cascontention")),
        ("gettimeout truncate", recorded!("gettimeout_truncate")),
        ("gettimeout misc", recorded!("gettimeout_misc")),
        ("gettraceprobability", recorded!("gettraceprobability")),
        ("settraceprobability 2", recorded!("settraceprobability_refused")),
        ("settraceprobability 0.5", recorded!("settraceprobability")),
        ("getcompactionthroughput", recorded!("getcompactionthroughput")),
        ("getlogginglevels", recorded!("getlogginglevels")),
        ("setlogginglevel", recorded!("setlogginglevel_back")),
        ("compactionstats", recorded!("compactionstats")),
        ("compactionhistory", recorded!("compactionhistory")),
        ("proxyhistograms", recorded!("proxyhistograms")),
        ("tablehistograms shop orders", recorded!("tablehistograms")),
        ("listsnapshots", recorded!("listsnapshots")),
        ("snapshot -t before_sale shop", recorded!("snapshot")),
        ("snapshot -t everything", recorded!("snapshot_all")),
        ("snapshot -t orders_only -cf orders shop", recorded!("snapshot_table")),
        ("clearsnapshot -t before_sale", recorded!("clearsnapshot")),
        ("clearsnapshot -t orders_only -- shop", recorded!("clearsnapshot_keyspace")),
        ("clearsnapshot", recorded!("clearsnapshot_refused")),
        ("clearsnapshot --all", recorded!("clearsnapshot_all")),
        ("tablestats nosuch", recorded!("tablestats_unknown")),
        ("frobnicate", recorded!("unknown_verb")),
    ];
    for (line, expected) in cases {
        let (code, printed) = run_line(line);
        assert_eq!(
            printed.strip_suffix('\n').unwrap_or(&printed),
            expected.strip_suffix('\n').unwrap_or(expected),
            "{line}"
        );
        let fails = expected.contains("See 'nodetool help'") || expected.ends_with("not found.\n");
        assert_eq!(code, u8::from(fails), "{line}");
    }
}

/// The recorded text with some parts as ours are.
fn with(recorded: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(recorded.to_owned(), |text, (theirs, ours)| {
        assert!(text.contains(theirs), "{theirs}");
        text.replace(theirs, ours)
    })
}

/// Means are over all requests, Cassandra's over the last minutes.
const OUR_MEANS: &[(&str, &str)] = &[("0.157", "0.143"), ("0.020", "0.019")];

#[test]
fn verbs_that_differ_on_purpose() {
    let caches = [
        ("capacity 51 MiB", "capacity 0 bytes"),
        ("capacity 25 MiB", "capacity 0 bytes"),
        ("Network Cache          : size 8 MiB, overflow size: 0 bytes, capacity 64 MiB\n", ""),
    ];
    assert_eq!(run_line("info").1, with(recorded!("info"), &caches));
    let tokens =
        [caches.as_slice(), &[("(seconds)       : 384", "(seconds)       : 374"), ("168.58", "120.58")]].concat();
    assert_eq!(run_line("info -T").1, with(recorded!("info_tokens"), &tokens));
    assert_eq!(run_line("tablestats shop.orders").1, with(recorded!("tablestats_table"), OUR_MEANS));
    assert_eq!(run_line("cfstats -H shop.orders").1, with(recorded!("tablestats_human"), OUR_MEANS));
    assert_eq!(run_line("tablestats shop").1, with(recorded!("tablestats_keyspace"), OUR_MEANS));
    assert_eq!(run_line("tablehistograms shop.items").1, recorded!("tablehistograms_dotted"));
}

/// `StorageService.isBootstrapFailed`, `isDecommissioning` and `isDecommissionFailed`.
#[test]
fn info_tells_what_has_become_of_joining_and_leaving() {
    for (mode, told) in [
        ("NORMAL", ["false", "false", "false"]),
        ("JOINING", ["false", "false", "false"]),
        ("JOINING_FAILED", ["true", "false", "false"]),
        ("LEAVING", ["false", "true", "false"]),
        ("DECOMMISSION_FAILED", ["false", "false", "true"]),
        ("DECOMMISSIONED", ["false", "false", "false"]),
        ("MOVING", ["false", "false", "false"]),
    ] {
        let node = fake();
        node.node().0.lock().expect("no panic inside").mode = Some(mode);
        let lines = format!(
            "Bootstrap failed       : {}\nDecommissioning        : {}\nDecommission failed    : {}\n",
            told[0], told[1], told[2]
        );
        let shown = run_on(&node, "info").1;
        assert!(shown.ends_with(&lines), "{mode}: {shown}");
        let is_joined = !mode.starts_with("JOINING") && mode != "DECOMMISSIONED";
        assert_eq!(shown.contains("Token                  : (node is not joined to the cluster)\n"), !is_joined);
    }
    let shown = run_line("info -O").1;
    let row = format!("\n{:<24} {:<48} {:>10} {:>10} {:>10}\n", "", "shop", 1, 2, 3);
    let head = format!("Invalid Token Ops      : {:<48} {:>10} {:>10} {:>10}", "Keyspace", "Read", "Write", "Paxos");
    assert!(shown.ends_with(&format!("{head}{row}")), "{shown}");
}

#[test]
fn ranges_of_the_ring_are_those_recorded() {
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&run_line("describering shop").1), sorted(recorded!("describering")));
}

/// The names stand alone, as `FailureDetector.getAllEndpointStatesWithResolveIp` has them.
#[test]
fn gossip_is_shown_with_the_names_of_hosts() {
    for (line, head) in [("gossipinfo -r", "one.example\n"), ("-pp gossipinfo --resolve-ip", "one.example:7000\n")] {
        let shown = run_knowing(&fake(), line, &|_| Some("one.example".to_owned())).1;
        assert!(shown.starts_with(head), "{shown}");
    }
}

#[test]
fn gossip_changes_reach_the_node() {
    let node = fake();
    for line in ["disablegossip", "enablegossip", "assassinate 10.0.0.9"] {
        assert_eq!(run_on(&node, line), (0, String::new()), "{line}");
    }
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    assert_eq!(calls, ["gossip Stop", "gossip Start", "gossip Assassinate(\"10.0.0.9\")"]);
    assert_eq!(
        run_line("getseeds").1,
        "Current list of seed node IPs, excluding the current node's IP: /10.0.0.2:7000 /10.0.0.3:7000\n"
    );
    assert_eq!(run_line("reloadseeds").1, "Seed node list does not contain any remote node IPs\n");
    assert_eq!(run_on(&node, "reloadssl"), (0, String::new()));
    assert_eq!(
        node.node().0.lock().expect("no panic inside").calls.last().map(String::as_str),
        Some("reload certificates")
    );
    assert_eq!(run_line("failuredetector").1, "  Endpoint,             Phi\n");
}

#[test]
fn range_movements_reach_the_node() {
    let node = fake();
    for line in [
        "decommission -f",
        "removenode 00000000-0000-0000-0000-000000000001",
        "move \\-17",
        "rebuild -ks shop -ts (1,2] -s 10.0.0.2 --exclude-local-dc east",
        "cleanup -j 1 shop",
    ] {
        assert_eq!(run_on(&node, line), (0, String::new()), "{line}");
    }
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    assert_eq!(calls[0], "movement Decommission { force: true }");
    assert_eq!(calls[1], "movement Remove(\"00000000-0000-0000-0000-000000000001\")");
    assert_eq!(calls[2], "movement Move(\"-17\")");
    assert!(calls[3].contains("source_data_center: Some(\"east\"), keyspace: Some(\"shop\"), tokens: Some(\"(1,2]\")"));
    assert_eq!(calls[4], "cleanup [\"shop\"] [] 1");
    let status = "RemovalStatus: No token removals in process.\n".to_owned();
    assert_eq!(run_on(&node, "removenode status"), (0, status));
    for (line, why) in [
        ("rebuild -ts (1,2]", "nodetool: Cannot specify tokens without keyspace."),
        ("bootstrap resume", "error: 'nodetool bootstrap resume' is disabled."),
        ("join", "error: This node has already joined the ring."),
    ] {
        let (code, told) = run_on(&node, line);
        assert!(code != 0 && told.starts_with(why), "{line}: {told}");
    }
    assert_eq!(run_on(&node, "bootstrap resume -f"), (0, "Node is already bootstrapped.\n".to_owned()));
    node.node().0.lock().expect("no panic inside").mode = Some("JOINING_FAILED");
    let resumed = "Resuming bootstrap\nAll data was fetched again, not the rest alone: nothing was heard of \
                   10.0.0.2:7000 for 400 s.\nResume bootstrap complete\n";
    assert_eq!(run_on(&node, "bootstrap resume -f"), (0, resumed.to_owned()));
}

#[test]
fn pools_have_the_recorded_layout() {
    let printed = run_line("tpstats").1;
    let lines: Vec<&str> = recorded!("tpstats").lines().collect();
    let head = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let ours: Vec<&str> = printed.lines().collect();
    assert_eq!(ours[..3], [lines[0], lines[1], lines[2]]);
    assert_eq!(ours[5], "Latencies waiting in queue (micros) per dropped message types");
    assert_eq!(head(ours[6]), head("Message type Dropped 50% 95% 99% Max"));
    assert_eq!(head(ours[7]), "READ_REQ 2 0.0 0.0 0.0 0.0");
}

#[test]
fn tablestats_in_json_has_the_recorded_keys_and_values() {
    let (code, printed) = run_line("tablestats -F json shop.orders");
    assert_eq!(code, 0);
    let ours: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let theirs: serde_json::Value = serde_json::from_str(&with(recorded!("tablestats_json"), OUR_MEANS)).expect("JSON");
    let theirs_of_table = theirs["shop"]["tables"]["orders"].as_object().expect("a map");
    let of_table = ours["shop"]["tables"]["orders"].as_object().expect("a map");
    for (key, value) in theirs_of_table.iter().filter(|(key, _)| !key.starts_with("sai_")) {
        assert_eq!(of_table.get(key), Some(value), "{key}");
    }
    for key in ["read_count", "read_latency", "read_latency_ms", "write_count", "write_latency_ms", "pending_flushes"] {
        assert_eq!(ours["shop"][key], theirs["shop"][key], "{key}");
    }
    assert!(printed.starts_with("{\n  \"shop\" : {\n    \"pending_flushes\" : 0,\n"));
    let yaml = run_line("tablestats -F yaml shop.orders").1;
    assert!(yaml.contains("      local_read_latency_ms: '0.143'\n"));
}

#[test]
fn tables_can_be_sorted() {
    let printed = run_line("tablestats -s space_used_live -t 1").1;
    assert!(printed.starts_with(
        "Total number of tables: 2 (showing top 1 by space_used_live)\n----------------\n\tTable: shop.orders\n"
    ));
    let first = |key: &str| {
        let printed = run_line(&format!("tablestats -s {key} -t 1")).1;
        let name = printed.lines().find_map(|line| line.strip_prefix("\tTable: ")).map(str::to_owned);
        name.expect("a table")
    };
    // shop.items was never read: its latency is no number
    assert_eq!(first("read_latency"), "shop.orders");
    assert_eq!(first("average_live_cells_per_slice_last_five_minutes"), "shop.orders");
    assert_eq!((first("full_name"), first("table_name")), ("shop.orders".to_owned(), "shop.orders".to_owned()));
    let json = run_line("tablestats -s reads -t 1 -F json").1;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let keys: Vec<&String> = json.as_object().expect("a map").keys().collect();
    assert_eq!(keys, ["shop.orders", "total_number_of_tables"]);
    assert_eq!(json["total_number_of_tables"], 2);
    assert_eq!(json["shop.orders"]["local_read_count"], 100);
    assert_eq!(run_line("tablestats -t 1").0, EXIT_USAGE);
    assert_eq!(run_line("tablestats -s colour").0, EXIT_USAGE);
}

#[test]
fn snapshots_are_listed_as_recorded() {
    let node = fake();
    let snapshot = |name: &str, table: &str, true_size, size_on_disk, created_at| SnapshotInfo {
        name: name.to_owned(),
        keyspace: "shop".to_owned(),
        table: table.to_owned(),
        table_id: String::new(),
        true_size,
        size_on_disk,
        created_at: Some(created_at),
    };
    node.node().0.lock().expect("no panic inside").snapshots = vec![
        snapshot("orders_only", "orders", 1198, 30_505, 1_795_254_264_141),
        snapshot("before_sale", "items", 1085, 6369, 1_795_254_261_921),
    ];
    let printed = run_on(&node, "listsnapshots").1;
    let lines: Vec<String> =
        printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let recorded: Vec<String> = recorded!("listsnapshots_some")
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(lines[..4], recorded[..4]);
    assert_eq!(lines[4..], ["", "Total TrueDiskSpaceUsed: 2.23 KiB", ""]);
    assert_eq!(run_on(&node, "listsnapshots -nt").1, printed);
    let printed = run_on(&node, "listsnapshots -e").1;
    let ends: Vec<_> = printed.lines().map(|line| line.split_whitespace().last().unwrap_or_default()).collect();
    assert_eq!(ends[1..4], ["Ephemeral", "false", "false"]);
}

#[test]
fn tables_of_a_snapshot_are_named_with_their_keyspace() {
    let node = fake();
    let (code, printed) = run_on(&node, "snapshot -t x shop.orders shop.items");
    assert!(code == 0 && printed.starts_with("Requested creating snapshot(s) for [shop.orders, shop.items]"));
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    assert!(calls[0].contains("tables: [(\"shop\", \"orders\"), (\"shop\", \"items\")]"), "{calls:?}");
    assert_eq!(run_on(&node, "snapshot -t x shop.orders shop").0, EXIT_USAGE);
}

#[test]
fn snapshots_of_an_age_are_cleared() {
    let node = fake();
    let head = "Requested clearing snapshot(s) for [shop] with [all snapshots]";
    for (options, seconds) in [("--older-than 2d", 172_800), ("--older-than 3m", 180), ("--older-than 0s", 0)] {
        let told = format!("{head} older than {seconds} seconds.\n");
        assert_eq!(run_on(&node, &format!("clearsnapshot --all {options} shop")), (0, told));
    }
    let at = run_on(&node, "clearsnapshot --all --older-than-timestamp 2022-12-03T10:15:30Z shop");
    assert_eq!(at, (0, format!("{head} older than timestamp 2022-12-03T10:15:30Z\n")));
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    let of = |age: &str| format!("clear {age} [\"shop\"]");
    assert_eq!(calls, ["Seconds(172800)", "Seconds(180)", "Seconds(0)", "TakenAt(1670062530000)"].map(of));
    for (options, why) in [
        ("--older-than 2d", "Specify snapshot name or --all"),
        ("--all --older-than 2", "Invalid duration: 2 Accepted units:[SECONDS, MINUTES, HOURS, DAYS]"),
        ("--all --older-than 5ms", "Invalid duration"),
        ("--all --older-than d", "Invalid duration"),
        ("--all --older-than 999999999999999999d", "Invalid duration"),
        ("--all --older-than-timestamp monday", "has to be a valid instant in ISO format"),
        ("--all --older-than 2d --older-than-timestamp 2022-12-03T10:15:30Z", "Specify only one of --older-than or"),
        ("-t x --older-than 2d", "snapshot name together with --older-than flag"),
        ("-t x --older-than-timestamp 2022-12-03T10:15:30Z", "name together with --older-than-timestamp flag"),
    ] {
        let (code, text) = run_on(&node, &format!("clearsnapshot {options}"));
        assert!(code == EXIT_USAGE && text.contains(why), "{options}: {text}");
    }
    let (code, text) = run_on(&node, "snapshot --ttl 1d shop");
    assert!(code == EXIT_USAGE && text.contains("snapshots do not expire"), "{text}");
    assert_eq!(node.node().0.lock().expect("no panic inside").calls.len(), calls.len());
}

/// The keys and the layout of `CompactionHistoryHolder`, as Jackson and SnakeYAML write them.
#[test]
fn compactions_that_ended_are_shown_in_other_formats() {
    let json = run_line("compactionhistory -F json").1;
    let head = "{\n  \"CompactionHistory\" : [ {\n    \"bytes_in\" : 22843,\n    \"bytes_out\" : 22843,\n";
    assert!(json.starts_with(head) && json.contains("\n  }, {\n") && json.ends_with("\n  } ]\n}\n"), "{json}");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let first = &value["CompactionHistory"][0];
    assert_eq!(first["compaction_properties"], "{compaction_type:Major compaction}");
    assert_eq!(first["compacted_at"], "2026-11-21T09:44:29.282");
    let yaml = run_line("compactionhistory -F yaml").1;
    let head = "CompactionHistory:\n- bytes_in: 22843\n  bytes_out: 22843\n  columnfamily_name: 'orders'\n";
    assert!(yaml.starts_with(head) && yaml.contains("\n- bytes_in: 4387\n"), "{yaml}");
    assert_eq!(run_line("compactionhistory -F xml").0, EXIT_USAGE);
}

#[test]
fn the_native_transport_is_closed_and_opened() {
    let node = fake();
    for line in ["disablebinary", "disablebinary -f", "disablebinary --force", "enablebinary"] {
        assert_eq!(run_on(&node, line), (0, String::new()));
    }
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    let forced = "transport Close { force: true }";
    assert_eq!(calls, ["transport Close { force: false }", forced, forced, "transport Open"]);
}

#[test]
fn failures_have_their_exit_codes() {
    let failed = run_line("snapshot -t taken");
    assert_eq!(failed.0, EXIT_FAILURE);
    assert!(failed.1.ends_with("error: Snapshot taken already exists.\n"));
    let refused = run_line("gcstats");
    assert_eq!(refused.0, EXIT_USAGE);
    assert!(
        refused.1.starts_with(
            "nodetool: gcstats exists in Cassandra, but is not supported: there is no garbage collector\n"
        )
    );
    assert_eq!(run_line("status --nonsense").0, EXIT_USAGE);
    assert_eq!(run_line("-u cassandra -pw secret -p 7199 statusbinary"), (0, "running\n".to_owned()));
    assert_eq!(run_line("--help").0, 0);
}

#[test]
fn imports_say_what_failed() {
    let node = fake();
    assert_eq!(run_on(&node, "import shop orders /new"), (0, String::new()));
    assert_eq!(run_on(&node, "import -l -r -v -t -c -e -p -ri -niv shop orders /new /more"), (0, String::new()));
    let quick = "Doing a quick import - skipping sstable verification and row cache invalidation\n";
    assert_eq!(run_on(&node, "import -q -e shop orders /new"), (0, quick.to_owned()));
    let some = "Some directories failed to import, check server logs for details:\n/bad\n/bad2\n";
    assert_eq!(run_on(&node, "import shop orders /bad /new /bad2"), (1, some.to_owned()));
    let none = run_on(&node, "import shop orders /nowhere");
    assert_eq!(none, (2, "error: Directory /nowhere does not exist\n".to_owned()));
    assert!(run_on(&node, "import shop orders").1.contains("import requires keyspace, table name and directories"));
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    let told = |reset: bool, verify: bool, extended: bool, copy: bool| {
        format!(
            "reset_level: {reset}, clear_repaired: {reset}, verify: {verify}, extended_verify: {extended}, copy: {copy}, "
        )
    };
    let checks = |tokens: bool, indexes: bool| format!("verify_tokens: {tokens}, require_indexes: {indexes} }}");
    for (call, told, checks) in [
        (&calls[0], told(true, true, false, false), checks(true, false)),
        (&calls[1], told(false, false, true, true), checks(false, true)),
        (&calls[2], told(true, false, false, false), checks(false, false)),
    ] {
        assert!(call.ends_with(&(told + &checks)), "{call}");
    }
    let refreshed = "nodetool refresh is deprecated, use nodetool import instead\n";
    assert_eq!(run_on(&node, "refresh shop orders"), (0, refreshed.to_owned()));
    assert_eq!(run_on(&node, "refresh shop").0, EXIT_USAGE);
}

#[test]
fn work_on_sstables_ends_as_in_cassandra() {
    let node = fake();
    for line in [
        "upgradesstables shop orders",
        "upgradesstables -a -t 5 -j 1 shop",
        "recompress_sstables shop",
        "verify -f -e -t shop",
        "scrub -ns -s -n -r shop orders",
        "garbagecollect -g CELL shop",
        "relocatesstables shop orders",
    ] {
        assert_eq!(run_on(&node, line), (0, String::new()), "{line}");
    }
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    assert!(calls[0].contains("jobs: 2, work: Upgrade { include_all: false, max_timestamp: 9223372036854775807 }"));
    assert!(calls[1].contains("jobs: 1, work: Upgrade { include_all: true, max_timestamp: 5 }"));
    assert!(calls[5].contains("jobs: 1, work: GarbageCollect { cells: true }"));
    assert_eq!(run_on(&node, "garbagecollect -g TABLE shop").0, EXIT_USAGE);
    let jobs = "jobs (3) is bigger than configured concurrent_compactors (2) on the host, using at most 2 threads\n";
    assert_eq!(run_on(&node, "scrub -j 3 shop orders"), (0, jobs.to_owned()));
    let stopped =
        "Aborted scrubbing for at least one table in keyspace shop, check server logs for more information.\n";
    assert_eq!(run_on(&node, "scrub shop stopped"), (0, stopped.to_owned()));
    let busy = "a line\nFailed marking some sstables compacting in keyspace shop, check server logs for more \
                information.\nerror: nodetool failed, check server logs\n";
    assert_eq!(run_on(&node, "upgradesstables shop busy"), (2, busy.to_owned()));
    assert_eq!(run_on(&node, "upgradesstables nosuch").0, EXIT_USAGE);
    let corrupt = "error: Invalid SSTable da-1-bti-Data.db, please force a full repair\n";
    assert_eq!(run_on(&node, "verify -f shop corrupt"), (2, corrupt.to_owned()));
    let disabled = run_on(&node, "verify shop");
    assert!(disabled.0 == 1 && disabled.1.starts_with("verify is disabled unless a [-f|--force]"), "{disabled:?}");
    let tokens = (1, "Token verification requires --extended-verify\n".to_owned());
    assert_eq!(run_on(&node, "verify -f -t shop"), tokens);
}

#[test]
fn all_keyspaces_are_worked_on_without_arguments() {
    let node = fake();
    assert_eq!(run_on(&node, "upgradesstables").0, 0);
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    assert_eq!(calls.len(), (&*node as &dyn AdminApi).ask(&GetKeyspaces {}).expect("a list").len());
}

#[test]
fn compactions_are_stopped_by_kind_or_id() {
    let node = fake();
    for line in ["stop SCRUB", "stop", "stop -id 116d40a0-e590-11f1-8d07-ad9415c13406"] {
        assert_eq!(run_on(&node, line), (0, String::new()), "{line}");
    }
    assert_eq!(run_on(&node, "stop EVERYTHING").0, EXIT_USAGE);
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    let id = "Id(\"116d40a0-e590-11f1-8d07-ad9415c13406\")";
    assert_eq!(calls, ["Kind(\"SCRUB\")", "Kind(\"UNKNOWN\")", id]);
}

#[test]
fn levels_are_shown_where_there_are_levels() {
    let node = fake();
    let printed = run_on(&node, "getsstables -l -hf shop items 0A").1;
    let starts: Vec<&str> = printed.lines().map(|line| line.split('/').next().unwrap_or_default()).collect();
    assert_eq!(starts, ["0: ", "1: ", "2: "]);
    assert_eq!(run_on(&node, "getsstables --show-levels shop orders 1").1, recorded!("getsstables"));
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    assert_eq!(calls, ["sstables 0A true", "sstables 1 false"]);
}

#[test]
fn compactions_of_a_part_are_asked_for() {
    let node = fake();
    assert_eq!(run_on(&node, "compact -s shop orders"), (0, String::new()));
    assert_eq!(run_on(&node, "compact -st -5 -et 7 shop"), (0, String::new()));
    assert_eq!(run_on(&node, "compact --partition 1 shop orders"), (0, String::new()));
    assert_eq!(run_on(&node, "compact --user-defined /a-Data.db /b-Data.db"), (0, String::new()));
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    assert_eq!(
        calls,
        [
            "compact [\"shop\"] [\"orders\"] All { split: true }",
            "compact [\"shop\"] [] Tokens { first: \"-5\", last: \"7\" }",
            "compact [\"shop\"] [\"orders\"] Partition(\"1\")",
            "compact [] [] Files([\"/a-Data.db\", \"/b-Data.db\"])",
        ]
    );
    let refused = |line: &str, why: &str| {
        assert_eq!(run_line(line), (EXIT_FAILURE, format!("error: Invalid option combination: {why}\n")));
    };
    refused("compact -s --user-defined a", "Can not use split-output here");
    refused("compact -s -st 1 shop", "Can not use split-output here");
    refused("compact --user-defined -et 1 a", "Can not provide tokens when using user-defined");
}

#[test]
fn auto_compaction_is_switched() {
    let node = fake();
    assert_eq!(run_on(&node, "statusautocompaction"), (0, "running\n".to_owned()));
    assert_eq!(run_on(&node, "disableautocompaction shop orders"), (0, String::new()));
    assert_eq!(run_on(&node, "statusautocompaction shop"), (0, "partially running\n".to_owned()));
    let table = "Keyspace Table  Status     \nshop     items  running    \nshop     orders not running\n";
    assert_eq!(run_on(&node, "statusautocompaction -a").1, table);
    assert_eq!(run_on(&node, "enableautocompaction"), (0, String::new()));
    assert_eq!(run_on(&node, "statusautocompaction"), (0, "running\n".to_owned()));
}

#[test]
fn caches_of_roles_are_changed() {
    let node = fake();
    for verb in [
        "invalidatecredentialscache",
        "invalidaterolescache a b",
        "invalidatenetworkpermissionscache a",
        "invalidatepermissionscache",
        "invalidatepermissionscache a --keyspace shop --table orders",
    ] {
        assert_eq!(run_on(&node, verb), (0, String::new()), "{verb}");
    }
    let shown = "Validity Period: 2000\nUpdate Interval: 1000\nMax Entries: 1000\nActive Update: false\n".to_owned();
    assert_eq!(run_on(&node, "getauthcacheconfig --cache-name RolesCache"), (0, shown));
    let told = "Changed Validity Period to 500\nChanged Max Entries to 7\n".to_owned();
    let set = "setauthcacheconfig --cache-name PermissionsCache --validity-period 500 --max-entries 7";
    assert_eq!(run_on(&node, set), (0, told));
    // as without a key of the interval: the validity stands for it
    let told = "Changed Update Interval to -1\n".to_owned();
    assert_eq!(run_on(&node, "setauthcacheconfig --cache-name RolesCache --update-interval -1"), (0, told));
    for verb in [
        "invalidatepermissionscache a",
        "invalidatepermissionscache --all-roles",
        "invalidatepermissionscache a b --all-roles",
        "getauthcacheconfig --cache-name Roles",
        "setauthcacheconfig --cache-name RolesCache",
        "setauthcacheconfig --cache-name RolesCache --update-interval -2",
        "setauthcacheconfig --cache-name RolesCache --enable-active-update",
    ] {
        assert_eq!(run_on(&node, verb).0, EXIT_USAGE, "{verb}");
    }
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    let set = "auth caches Set { cache: Permissions, validity_millis: Some(500), update_interval_millis: None, \
               entries_max: Some(7) }";
    let unset =
        "auth caches Set { cache: Roles, validity_millis: None, update_interval_millis: Some(-1), entries_max: None }";
    let wanted = [
        "auth caches Invalidate(Credentials, None)",
        "auth caches Invalidate(Roles, Some(\"a\"))",
        "auth caches Invalidate(Roles, Some(\"b\"))",
        "auth caches Invalidate(NetworkPermissions, Some(\"a\"))",
        "auth caches Invalidate(Permissions, None)",
        "auth caches Invalidate(Permissions, Some(\"a\"))",
        set,
        unset,
    ];
    assert_eq!(calls, wanted);
}

#[test]
fn hints_that_wait_and_changes_of_handoff() {
    let node = fake();
    assert_eq!(run_on(&node, "listpendinghints").1, "This node does not have any pending hints\n");
    let hints = PendingHintsInfo {
        host_id: "4799343a-fe41-4c70-bf8e-7815389bcb3c".to_owned(),
        address: Some("127.0.0.12:7000".to_owned()),
        rack: "rack1".to_owned(),
        data_center: "dc1".to_owned(),
        status: "DOWN".to_owned(),
        files: 2,
        newest_millis: 1_795_376_665_385,
        oldest_millis: 1_795_376_600_000,
    };
    let gone = PendingHintsInfo { address: None, status: "Unknown".to_owned(), ..hints.clone() };
    node.node().0.lock().expect("no panic inside").pending_hints = vec![hints, gone];
    let shown = run_on(&node, "listpendinghints").1;
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0].join(" "), "Host ID Address Rack DC Status Total files Newest Oldest");
    let of_file = ["2", "2026-11-22", "19:44:25,385", "2026-11-22", "19:43:20,000"];
    assert_eq!(lines[1][1..5], ["127.0.0.12:7000", "rack1", "dc1", "DOWN"]);
    assert_eq!(lines[2][1..5], ["null", "rack1", "dc1", "Unknown"]);
    assert!(lines[1..].iter().all(|line| line[5..] == of_file), "{shown}");
    for line in [
        "disablehandoff",
        "enablehandoff",
        "pausehandoff",
        "resumehandoff",
        "disablehintsfordc dc1",
        "enablehintsfordc dc1",
        "setmaxhintwindow 1000",
        "sethintedhandoffthrottlekb 64",
        "truncatehints",
        "truncatehints 127.0.0.2",
    ] {
        assert_eq!(run_on(&node, line), (0, String::new()), "{line}");
    }
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    assert_eq!(
        calls,
        [
            "handoff Enable(false)",
            "handoff Enable(true)",
            "handoff Send(false)",
            "handoff Send(true)",
            "handoff EnableFor(\"dc1\", false)",
            "handoff EnableFor(\"dc1\", true)",
            "handoff Window(1000)",
            "handoff ThrottleKib(64)",
            "handoff Truncate(None)",
            "handoff Truncate(Some(\"127.0.0.2\"))",
        ]
    );
    for line in ["disablehintsfordc", "enablehintsfordc a b", "sethintedhandoffthrottlekb -1"] {
        assert_eq!(run_on(&node, line).0, 1, "{line}");
    }
}

/// Cassandra's options for a login, and those of an encrypted port.
#[test]
fn a_login_and_encryption_are_asked_for_whole() {
    let node = fake();
    for good in ["-u ann -pw x version", "-u ann -pwf /etc/passwords version", "--ssl --truststore ca.pem version"] {
        assert_eq!(run_on(&node, good).0, 0, "{good}");
    }
    for (bad, why) in [
        ("-u ann version", "-u needs the password"),
        ("--ssl version", "--truststore FILE"),
        ("--truststore ca.pem version", "are for --ssl"),
    ] {
        let (code, text) = run_on(&node, bad);
        assert!(code == EXIT_USAGE && text.contains(why), "{bad}: {text}");
    }
}
