//! Scans of simulated replicas: whatever the portions, a scan gives what a read that keeps
//! everything gives, and holds little.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use internode::payload::partitions::PartitionsWriter;
use rows::live::TombstoneLimits;
use rows::{LiveRows, PartitionRange, ReadCommand};
use types::Consistency;

use super::*;
use crate::coordinator::contacts::{Contact, Contacts};
use crate::coordinator::distributed_read::DistributedRead;
use crate::coordinator::part_read::{Data, Portion};
use crate::coordinator::parts::Part;
use crate::replica::read::Warnings;
use crate::testing::{SimRing, table};

/// The rows that a scan gave, and how it went on.
struct Scanned {
    /// The keys and clusterings of live rows.
    rows: Vec<(DecoratedKey, ClusteringValues)>,
    /// How often it went on behind what it had given.
    pages: usize,
    /// Bytes of answers that it still held then.
    kept: usize,
}

/// Scans at a level through the first node; `take`: rows that are wanted of each partition.
fn scan(ring: &SimRing, commands: &[ReadCommand], level: Consistency, portion: u32, take: usize) -> Scanned {
    let node = ring.node(0);
    let warnings = Warnings::default();
    let distributed_read = DistributedRead::new(
        node,
        node.messenger().expect("joined"),
        level,
        Duration::from_secs(1_000),
        &warnings,
        None,
    );
    let parts = node.plan_parts_if_distributed(commands, level).expect("all are up").expect("others have a share");
    let parts = parts.into_iter().map(|part| PartRead::new(part, None).in_portions_of(portion)).collect();
    let (mut pages, mut kept, mut window) = (0, 0, 1);
    let fetch = |FetchRequest { mut parts, missing, repairs }: FetchRequest| {
        ring.world.block_on(distributed_read.repair::<ReadError>(repairs)).expect("all answer");
        if missing == Missing::Part(0) {
            pages += 1;
            kept += parts[0].size;
        }
        let mut taken = None;
        let fetched = distributed_read.fetch::<ReadError>(&mut parts, missing, &mut window, &mut taken);
        ring.world.block_on(fetched).expect("all answer");
        Ok(parts)
    };
    let mut stream = ScanStream::new(Arc::new(parts), fetch);
    let (table, now) = (Arc::clone(&commands[0].table), commands[0].now);
    let mut live = LiveRows::new(&mut stream, table, now, TombstoneLimits::NONE);
    let mut rows = Vec::new();
    while let Some(partition) = live.next_partition().expect("it is sound") {
        for _ in 0..take {
            let Some(row) = live.next_row().expect("it is sound") else { break };
            rows.push((partition.key.clone(), row.clustering));
        }
    }
    ring.world.block_on(distributed_read.repair::<ReadError>(stream.finish())).expect("all answer");
    Scanned { rows, pages, kept }
}

/// Three nodes with rows that differ from replica to replica.
fn drawn(seed: u64) -> SimRing {
    let ring = SimRing::new(seed, &["dc1", "dc1", "dc1"]);
    for (keyspace, factor) in [("ks", "3"), ("two", "2")] {
        ring.create_keyspace(keyspace, "SimpleStrategy", &[("replication_factor", factor)]);
    }
    for number in 0..400 {
        let (k, c) = (number * 7 % 23, number * 13 % 31);
        let machine = (number % 3) as usize;
        let mutations = ["ks", "two"].map(|keyspace| {
            let mut mutation = ring.row(keyspace, k, c, number, i64::from(number) + 10);
            if number % 4 == 0 {
                let row = mutation.updates[0].rows.first_mut().expect("one row");
                row.deletion = rows::DeletionTime::new(i64::from(number) + 10, 1_000_000_000);
                row.liveness = rows::Liveness::EMPTY;
                row.columns.clear();
            }
            mutation
        });
        ring.apply_alone(machine, &mutations[..1]);
        ring.write(0, mutations[1..].to_vec(), Consistency::One).expect("written");
    }
    ring
}

#[test]
fn a_scan_gives_what_a_read_that_keeps_everything_gives() {
    let ring = drawn(31);
    ring.world.run_for(Duration::from_secs(5));
    for keyspace in ["two", "ks"] {
        let all = ring.select(keyspace, PartitionRange::all());
        let keys: Vec<ReadCommand> = [9, 2, 17, 4].map(|k| ring.select_key(keyspace, k)).into();
        for commands in [vec![all], keys] {
            // what replicas lack is told them by the first scan, which has the smallest portions
            for take in [usize::MAX, 1] {
                let expected = scan(&ring, &commands, Consistency::All, 1, take).rows;
                for portion in [3, 5_000] {
                    let scanned = scan(&ring, &commands, Consistency::All, portion, take).rows;
                    assert_eq!(scanned, expected, "{keyspace}, portions of {portion}, {take} of each partition");
                }
            }
        }
        let all = ring.select(keyspace, PartitionRange::all());
        let read = ring.read(0, vec![all.clone()], Consistency::All).expect("answered");
        let scanned = scan(&ring, &[all], Consistency::All, 2, usize::MAX);
        assert_eq!(scanned.rows.len(), read.len());
    }
}

#[test]
fn a_scan_drops_what_it_has_read() {
    let ring = drawn(32);
    let all = ring.select("ks", PartitionRange::all());
    let scanned = scan(&ring, &[all], Consistency::All, 1, usize::MAX);
    assert!(scanned.pages > 5, "{} pages", scanned.pages);
    assert_eq!(scanned.kept, 0, "bytes of rows that were given are kept");
}

/// More scans at once than there are threads for long jobs, each of which waits for a portion that
/// such a job reads. Without turns the scans hold all threads, and none of them ends.
#[test]
fn scans_leave_threads_to_what_they_wait_for() {
    let env = env::real::env();
    let turns = Arc::new(Semaphore::new(SCANS_MAX));
    let contact = Contact { address: "127.0.0.1:7000".parse().expect("an address"), is_local: true };
    let command = ReadCommand::whole(&table("ks", "t"), PartitionRange::all());
    let contacts = Contacts { asked: vec![contact], spare: Vec::new(), shortage: None, is_planned: true };
    let part = PartRead::new(Part { command, contacts }, None);
    let scan = || async {
        let read_portion = async |FetchRequest { mut parts, .. }: FetchRequest| {
            let command = parts[0].first();
            let question = parts[0].question(&command);
            let asked = Arc::clone(&question);
            let read = env.blocking_long("scan", move || PartitionsWriter::new(&asked).finish()).await;
            let portion = Portion::new(Data::Encoded(read.expect("room in the queue")), &question);
            parts[0].add_first(contact, &command, portion)?;
            Ok::<_, ReadError>(parts)
        };
        let build =
            |stream: &mut dyn PartitionStream| -> Result<bool, ReadError> { Ok(stream.next_partition()?.is_none()) };
        let parts = Arc::new(vec![part.clone()]);
        let scanned = run(&env, &turns, || Duration::from_secs(10), parts, Arc::new(build), read_portion).await;
        scanned.map(|scanned| scanned.result)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let all = async { env.timeout(Duration::from_secs(10), join_all((0..=LONG_THREADS_MAX).map(|_| scan()))).await };
    let ended = runtime.block_on(all).expect("no scan waits for ever");
    assert!(ended.iter().all(|result| matches!(result, Ok(Ok(true)))), "{ended:?}");
}
