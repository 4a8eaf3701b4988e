//! The movements of ranges that this node takes part in, as state. The verbs are in
//! [`crate::range_movements`].

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use env::Instant;

/// The name of the movement of a node that is on its way into its ring.
pub(crate) const JOINING: &str = "joining";

/// How ranges move.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MovementSettings {
    /// `auto_bootstrap`: a node that is new in its ring fetches its data before it is a member.
    pub bootstraps: bool,
    /// `join_ring`: the node becomes a member when it starts.
    pub joins: bool,
    /// `consistent_rangemovement`: one change of the ring at a time, and a range comes from the
    /// node that loses it.
    pub is_consistent: bool,
    /// `ring_delay`: the longest time to wait until all others know of a change.
    pub ring_delay: Duration,
    /// `severity_during_decommission`: the severity that the node tells of itself once it begins to
    /// leave, so that others ask it last; 0 or less: none.
    pub severity_of_leaving: f64,
    /// `replace_address_first_boot`: the node in whose place a new one stands.
    pub replaces: Option<SocketAddr>,
}

impl Default for MovementSettings {
    /// Cassandra's defaults.
    fn default() -> Self {
        Self {
            bootstraps: true,
            joins: true,
            is_consistent: true,
            ring_delay: Duration::from_secs(30),
            severity_of_leaving: 0.0,
            replaces: None,
        }
    }
}

/// The part that this node takes in the ring, in Cassandra's words (`nodetool netstats`, "Mode").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// The node is a member.
    #[default]
    Normal,
    /// The node is in touch with the others, and no member yet.
    Starting,
    /// The node fetches its data.
    Joining,
    /// Not all of the node's data has come. It is still BOOT for the others, and the operator may
    /// try again.
    JoiningFailed,
    /// The node hands its ranges on.
    Leaving,
    /// The node could not hand all of its ranges on. It is still LEAVING for the others, and the
    /// operator may try again.
    DecommissionFailed,
    /// The node has left for good.
    Decommissioned,
    /// The node fetches the ranges of its new token and hands on those of the old one.
    Moving,
}

impl Mode {
    /// Whether the node is no member yet.
    pub(crate) fn is_outside(self) -> bool {
        matches!(self, Self::Starting | Self::Joining | Self::JoiningFailed)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "NORMAL",
            Self::Starting => "STARTING",
            Self::Joining => "JOINING",
            Self::JoiningFailed => "JOINING_FAILED",
            Self::Leaving => "LEAVING",
            Self::DecommissionFailed => "DECOMMISSION_FAILED",
            Self::Decommissioned => "DECOMMISSIONED",
            Self::Moving => "MOVING",
        })
    }
}

/// The movements of this node, as state.
#[derive(Default)]
pub(crate) struct Movements {
    settings: Mutex<MovementSettings>,
    state: Mutex<MovementState>,
}

/// The movements that are under way.
#[derive(Default)]
pub(crate) struct MovementState {
    pub(crate) mode: Mode,
    /// The node fetches its data before it becomes a member.
    pub(crate) fetches: bool,
    /// The bootstrap has fetched last from a ring in which users had no keyspaces: from any
    /// replica, and without a turn.
    pub(crate) is_of_new_ring: bool,
    /// The reason why a bootstrap that had begun has fetched all ranges again, as a sentence
    /// without a full stop; None: it has not fetched them again. It is about the bootstrap that
    /// runs, or the last one.
    pub(crate) restart_reason: Option<String>,
    /// The name of the join, decommission, move or rebuild that runs; while it runs no other
    /// begins. None: none runs.
    pub(crate) running: Option<&'static str>,
    /// The removal that this node coordinates; None: there is none.
    pub(crate) removal: Option<Removal>,
    /// When the last removal that this node coordinated ended; None: it has coordinated none.
    pub(crate) removal_ended: Option<Instant>,
}

impl MovementState {
    /// Ends the removal that this node coordinates, if there is one.
    pub(crate) fn end_removal(&mut self, now: Instant) {
        if self.removal.take().is_some() {
            self.removal_ended = Some(now);
        }
    }
}

impl Movements {
    pub(crate) fn settings(&self) -> MovementSettings {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn configure(&self, settings: MovementSettings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, MovementState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        tracing::info!(%mode, "the part of this node in the ring");
        self.state().mode = mode;
    }

    /// Begins a movement of which only one may run at a time. The movement ends when the returned
    /// value is dropped.
    pub(crate) fn begin(&self, name: &'static str) -> Result<Running<'_>, String> {
        let mut state = self.state();
        if let Some(running) = state.running {
            return Err(format!("Node is still {running}. Check nodetool netstats."));
        }
        state.running = Some(name);
        Ok(Running(self))
    }
}

/// A movement that runs.
pub(crate) struct Running<'a>(&'a Movements);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.state().running = None;
    }
}

/// A removal that this node coordinates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Removal {
    /// The node that is removed.
    pub address: SocketAddr,
    /// First token of the removed node, shown to the operator.
    pub token: i64,
    /// When the operator asked for the removal: tells it from a later removal of the same node.
    pub begun: Instant,
    /// Nodes that have not told yet that they have the data of the removed node.
    pub waiting: BTreeSet<SocketAddr>,
}

/// `system.local.bootstrapped`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BootstrapState {
    /// The node has not joined its ring.
    NeedsBootstrap,
    /// The node fetches its data, or was interrupted.
    InProgress,
    /// The node has the data of its ranges.
    Completed,
    /// The node has left for good.
    Decommissioned,
}

impl BootstrapState {
    /// The stored text.
    pub fn text(self) -> &'static str {
        match self {
            Self::NeedsBootstrap => "NEEDS_BOOTSTRAP",
            Self::InProgress => "IN_PROGRESS",
            Self::Completed => "COMPLETED",
            Self::Decommissioned => "DECOMMISSIONED",
        }
    }

    /// The state of a stored text; an unknown text counts as the state of a new directory.
    pub fn parse(text: &str) -> Self {
        let all = [Self::InProgress, Self::Completed, Self::Decommissioned];
        all.into_iter().find(|state| state.text() == text).unwrap_or(Self::NeedsBootstrap)
    }
}
