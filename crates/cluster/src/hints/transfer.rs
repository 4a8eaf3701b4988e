//! The hints of a node that leaves for good go to another node, which keeps them for their hosts.
//!
//! Each hint is sent with the id of its host: a node that is not this host keeps the hint
//! (`crate::serve::hint`). The node nearest to this one gets all of them, at the whole pace of
//! `hinted_handoff_throttle`. With `transfer_hints_on_decommission: false` they are removed.
//!
//! The node still serves clients, so that hints may come for as long as it is there. It gives those
//! that wait when it begins, then those that came meanwhile, and so on for [`ROUNDS_MAX`] rounds,
//! each of which is shorter than the one before unless more comes than goes. The rest stays: its
//! hosts get these mutations by repair. In Cassandra everything stays that comes meanwhile.
//! Agrees with `org.apache.cassandra.hints.HintsService.transferHints` and
//! `StorageService.getPreferredHintsStreamTarget`.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use hints::{HintStore, HostId};
use ring::State;
use sending::Pace;

use crate::node::Node;

/// Nodes that are tried, one after the other.
const TARGETS_MAX: usize = 2;

/// Time between two tries.
const PAUSE: Duration = Duration::from_secs(10);

/// Rounds of giving to one node. See the head of this file.
const ROUNDS_MAX: usize = 3;

/// Time between two looks at files that are being sent to their hosts.
const LOOK: Duration = Duration::from_millis(200);

impl Node {
    /// Gives all hints to another node. Err: some hints are left, or no node can take them.
    pub(crate) async fn transfer_hints(&self) -> Result<(), String> {
        let Some(store) = self.handoff.store.get() else { return Ok(()) };
        if !self.handoff.settings.load().transfers_on_decommission {
            tracing::info!("the hints that wait here are removed (transfer_hints_on_decommission: false)");
            self.change_handoff_settings(|settings| settings.is_enabled = false);
            self.pause_handoff();
            store.truncate(None);
            return Ok(());
        }
        self.resume_handoff();
        let mut tried = BTreeSet::new();
        for attempt in 1..=TARGETS_MAX {
            if store.is_empty() {
                return Ok(());
            }
            let Some((host_id, address)) = self.nearest_untried(&tried) else { break };
            tracing::info!(%address, attempt, "all hints go to another node");
            if self.transfer_to(store, &host_id).await {
                return Ok(());
            }
            tried.insert(host_id);
            if attempt < TARGETS_MAX {
                self.env.sleep(PAUSE).await;
            }
        }
        Err("Unable to stream hints: no live endpoint has taken them".to_owned())
    }

    /// Gives the hints to one node. False: the node has not taken all that it was to have.
    async fn transfer_to(&self, store: &HintStore, to: &HostId) -> bool {
        let mut pace = Pace::new(&self.env);
        for round in 1..=ROUNDS_MAX {
            if store.is_empty() {
                return true;
            }
            let begun_until = store.close_files();
            let bytes: u64 = store.pending().iter().map(|of_host| of_host.size).sum();
            tracing::info!(round, bytes, "hints are given to another node");
            if !self.transfer_files(store, to, begun_until, &mut pace).await {
                return false;
            }
        }
        if !store.is_empty() {
            tracing::warn!("hints that came while others were given away stay here: repair their hosts");
        }
        true
    }

    /// Gives the files that were begun until then to a node. False: it has not taken all of them.
    async fn transfer_files(&self, store: &HintStore, to: &HostId, begun_until: i64, pace: &mut Pace) -> bool {
        loop {
            let with_files = store.pending().into_iter().filter(|of_host| of_host.oldest_millis <= begun_until);
            let hosts: Vec<HostId> = with_files.map(|of_host| of_host.host_id).collect();
            if hosts.is_empty() {
                return true;
            }
            let mut has_sent = false;
            for host_id in hosts {
                // None: the dispatcher sends a file of this host to the host itself
                let Some(file) = store.take_file(&host_id) else { continue };
                if !self.send_whole(file, to, pace).await {
                    return false;
                }
                has_sent = true;
            }
            if !has_sent {
                self.env.sleep(LOOK).await;
            }
        }
    }

    /// The nearest member that stays in the ring and is not in `tried`: one of the own data
    /// center, or else one of another.
    fn nearest_untried(&self, tried: &BTreeSet<HostId>) -> Option<(HostId, SocketAddr)> {
        let ring = self.ring();
        let stays = |endpoint: &&ring::Endpoint| {
            let is_member = endpoint.is_up && endpoint.owns_tokens() && endpoint.state != State::Leaving;
            is_member && !tried.contains(&endpoint.host_id)
        };
        let here = ring.local_data_center();
        let nearest = ring.peers().filter(stays).min_by_key(|endpoint| endpoint.data_center != here);
        nearest.map(|endpoint| (endpoint.host_id, endpoint.address))
    }
}
