//! Completes what others have begun and left: each such partition of the ranges comes to an
//! agreement as if a read at SERIAL were served.
//!
//! A ballot that is younger than a statement may take is left alone until then: its coordinator may
//! be at work. The first partition that cannot be completed ends the cleanup. Agrees in role with
//! `org.apache.cassandra.service.paxos.cleanup.PaxosCleanupLocalCoordinator` and `PaxosRepair`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use internode::payload::paxos::BallotFlag;
use internode::payload::paxos::cleanup::Tokens;
use schema::TableMetadata;
use types::Consistency;

use crate::coordinator::cas::Cas;
use crate::node::Node;
use crate::replica::paxos::{Uncommitted, uncommitted_bounds};

/// How often the completion of a partition is tried: statements of clients may come first.
const ATTEMPTS: usize = 5;

/// Completes everything in ranges of a table, and gives the number of partitions. Err: why it is
/// not all completed.
pub(super) async fn complete(node: &Node, table: &Arc<TableMetadata>, ranges: &[Tokens]) -> Result<u64, String> {
    let parallelism = node.repairs.permits.load().settings.paxos_parallelism.max(1);
    let mut completed = 0;
    for (mut start, end) in ranges.iter().flat_map(uncommitted_bounds) {
        loop {
            let page = node.replica.paxos_uncommitted(table, start, end.clone()).await;
            let page = page.map_err(|error| error.to_string())?;
            completed += page.found.len() as u64;
            let jobs = page.found.into_iter().map(|found| settle(node, table, found));
            let mut jobs = futures_util::stream::iter(jobs).buffer_unordered(parallelism);
            while let Some(settled) = jobs.next().await {
                settled?;
            }
            drop(jobs);
            match page.next {
                Some(next) => start = next,
                None => break,
            }
        }
    }
    Ok(completed)
}

async fn settle(node: &Node, table: &Arc<TableMetadata>, found: Uncommitted) -> Result<(), String> {
    let (serial, commit) = match found.ballot.flag() {
        BallotFlag::Global => (Consistency::Serial, Consistency::Quorum),
        BallotFlag::Local => (Consistency::LocalSerial, Consistency::LocalQuorum),
        // of a repair, or of a release that did not tell: nobody waits for it
        BallotFlag::None => return Ok(()),
    };
    wait_for_coordinator(node, &found).await;
    let cas = Cas { table, key: &found.key, serial, commit, trace: None };
    let mut completed = node.complete_partition(cas).await;
    for _ in 1..ATTEMPTS {
        if completed.is_ok() {
            break;
        }
        completed = node.complete_partition(cas).await;
    }
    completed.map_err(|error| format!("a partition of {}.{} is not completed: {error:?}", table.keyspace, table.name))
}

async fn wait_for_coordinator(node: &Node, found: &Uncommitted) {
    let timeouts = node.timeouts();
    let longest = timeouts.cas_contention.max(timeouts.write);
    let age = node.env.clock.now_micros().saturating_sub(found.ballot.micros());
    let age = Duration::from_micros(u64::try_from(age).unwrap_or(0));
    if let Some(rest) = longest.checked_sub(age) {
        node.env.sleep(rest).await;
    }
}
