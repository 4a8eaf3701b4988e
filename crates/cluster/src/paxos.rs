//! How a node coordinates conditional statements and reads at SERIAL among several nodes: values of
//! `paxos_*` in cassandra.yaml. What it does by them is in [`crate::coordinator::cas`].

mod purging;
mod strategy;
mod variant;

pub use purging::{OnViolation, PaxosPurging};
pub use strategy::{ContentionInputs, ContentionStrategy};
pub use variant::PaxosVariant;

/// The settings of a coordinator.
#[derive(Clone, PartialEq, Debug)]
pub struct PaxosOptions {
    /// `paxos_variant`
    pub variant: PaxosVariant,
    /// `paxos_contention_*`, for the rounds of v2
    pub contention: ContentionStrategy,
    /// `skip_paxos_repair_on_topology_change`: ranges move without a repair of Paxos.
    pub skips_repair: bool,
    /// `skip_paxos_repair_on_topology_change_keyspaces`: the ranges of these keyspaces move
    /// without a repair of Paxos.
    pub skips_repair_of: Vec<String>,
    /// `paxos_state_purging`, as a replica and as a coordinator
    pub purging: PaxosPurging,
    /// `paxos_on_linearizability_violations`, for the rounds of v2
    pub on_violation: OnViolation,
}

impl Default for PaxosOptions {
    fn default() -> Self {
        Self {
            variant: PaxosVariant::V1,
            contention: ContentionStrategy::default(),
            skips_repair: false,
            skips_repair_of: Vec::new(),
            purging: PaxosPurging::Legacy,
            on_violation: OnViolation::Ignore,
        }
    }
}
