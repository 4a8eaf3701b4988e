//! Paxos is repaired before ranges move: statements that replicas have begun are completed, so
//! that a node that gains a range need not know what the node that loses it has promised.
//!
//! With the variants of `paxos_variant: v2` alone, as in Cassandra, not where
//! `paxos_repair_enabled` is off, and not for the keyspaces of
//! `skip_paxos_repair_on_topology_change_keyspaces`. The ranges are those that this node has or is
//! about to have. Each table's ranges of the same replicas are one repair ([`PaxosRepair`]).
//! Agrees with `StorageService.repairPaxosForTopologyChange`,
//! `ActiveRepairService.repairPaxosForTopologyChange` and
//! `PaxosRepair.hasSufficientLiveNodesForTopologyChange`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use internode::payload::token_ranges::Tokens;
use ring::{EndpointId, Placement, Ring};
use schema::system::is_system_keyspace;

use super::paxos::PaxosRepair;
use crate::node::Node;
use crate::repair_state::command::Command;
use crate::repair_state::options::RepairOptions;

/// How often a repair that has failed is tried again
/// (`cassandra.paxos_repair_on_topology_change_retries`).
const RETRIES_MAX: u32 = 10;

/// Pause before the first further attempt. Before each attempt after that the pause is longer by
/// this time.
const PAUSE: Duration = Duration::from_secs(10);

/// Most pairs of a table and its ranges that are repaired at one time.
const PARALLEL: usize = 8;

/// Ranges by the live replicas that they have.
type Groups = BTreeMap<Vec<SocketAddr>, Vec<Tokens>>;

impl Node {
    /// Repairs Paxos in the ranges of this node before a change of the ring, where
    /// `paxos_variant` wants it. Err: the reason why it cannot be done.
    pub(crate) async fn repair_paxos_before_movement(self: &Arc<Self>, change: &str) -> Result<(), String> {
        let options = self.paxos.load_full();
        if options.skips_repair || !options.variant.is_v2 {
            return Ok(());
        }
        if !self.repairs.permits.load().settings.repairs_paxos {
            tracing::warn!(change, "Paxos is not repaired before ranges move: paxos_repair_enabled is off");
            return Ok(());
        }
        tracing::info!(change, "Paxos is repaired before ranges move");
        let mut retries = 0;
        while let Err(why) = self.repair_paxos_once(change, &options.skips_repair_of).await {
            if retries == RETRIES_MAX {
                return Err(why);
            }
            retries += 1;
            tracing::warn!(change, retries, why, "Paxos is not repaired; it is tried again");
            self.env.sleep(PAUSE * retries).await;
        }
        Ok(())
    }

    async fn repair_paxos_once(self: &Arc<Self>, change: &str, skipped: &[String]) -> Result<(), String> {
        let ring = self.ring();
        let schema = self.schema();
        let mut jobs = Vec::new();
        for (keyspace, placement) in self.shared_keyspaces(&ring)? {
            if is_system_keyspace(&keyspace) || skipped.contains(&keyspace) {
                continue;
            }
            let groups = groups(&ring, &placement).map_err(|why| {
                format!(
                    "{why} in {keyspace} for {change}. skip_paxos_repair_on_topology_change skips this check, and \
                     skip_paxos_repair_on_topology_change_keyspaces skips it for a keyspace; conditional statements may \
                     then take effect twice or not at all"
                )
            })?;
            let tables = schema.keyspaces.get(&keyspace).into_iter().flat_map(|keyspace| keyspace.tables.values());
            for table in tables.filter(|table| !table.flags.counter) {
                jobs.extend(groups.iter().map(|group| (Arc::clone(table), group.0.clone(), group.1.clone())));
            }
        }
        let of_job = |(table, replicas, ranges): (_, _, Vec<Tokens>)| async move {
            let table: Arc<schema::TableMetadata> = table;
            let begun_at = self.env.clock.now_micros() / 1000;
            let command = Command::new(0, self.uuids.random(), &table.keyspace, RepairOptions::default(), begun_at);
            let repair =
                PaxosRepair { node: self, command: &command, table, ranges: &ranges, replicas, has_skipped: false };
            repair.run().await
        };
        let mut jobs = futures_util::stream::iter(jobs.into_iter().map(of_job)).buffer_unordered(PARALLEL);
        while let Some(done) = jobs.next().await {
            done?;
        }
        Ok(())
    }
}

/// The ranges that this node has or is about to have, by their live replicas. Err: too few of them
/// are up, or several nodes are about to have one.
fn groups(ring: &Ring, placement: &Placement) -> Result<Groups, String> {
    let local = ring.local_id();
    let mut groups = Groups::new();
    for (start, end, natural) in placement.ranges() {
        let pending = placement.pending(end);
        if !natural.contains(&local) && !pending.contains(&local) {
            continue;
        }
        let range = Tokens { start, end };
        if pending.len() > 1 {
            return Err(format!("Cannot begin paxos auto repair for {range}: multiple pending endpoints exist"));
        }
        if !are_enough(ring, natural) {
            let down = natural.iter().map(|id| ring.endpoint(*id)).filter(|endpoint| !endpoint.is_up);
            let down: Vec<_> = down.map(|endpoint| endpoint.address.to_string()).collect();
            return Err(format!(
                "Insufficient live nodes to repair paxos for {range}: there must be enough to satisfy EACH_QUORUM, but \
                 these are down: {},",
                down.join(", ")
            ));
        }
        let live = natural.iter().map(|id| ring.endpoint(*id)).filter(|endpoint| endpoint.is_up);
        groups.entry(live.map(|endpoint| endpoint.address).collect()).or_default().push(range);
    }
    Ok(groups)
}

/// Whether a majority of replicas, or all but one, are up: of all, and of each data center.
fn are_enough(ring: &Ring, replicas: &[EndpointId]) -> bool {
    let mut centers: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for endpoint in replicas.iter().map(|id| ring.endpoint(*id)) {
        let (all, live) = centers.entry(endpoint.data_center.as_str()).or_default();
        *all += 1;
        *live += usize::from(endpoint.is_up);
    }
    let is_enough = |(all, live): (usize, usize)| live > all / 2 || live + 1 >= all;
    let sum = centers.values().fold((0, 0), |sum, center| (sum.0 + center.0, sum.1 + center.1));
    centers.values().copied().chain([sum]).all(is_enough)
}
