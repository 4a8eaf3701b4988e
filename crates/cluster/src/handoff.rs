//! Hinted handoff as state: the settings, the store of hints, and what is known of hosts that get
//! none. The verbs are in [`crate::hints`].

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use env::Joinable;
use hints::{HintStore, HostId};
use metrics::Counter;
use tokio::sync::oneshot;
use types::FailureReason;

/// The settings of hinted handoff, which operators change while the node runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandoffSettings {
    /// `hinted_handoff_enabled`
    pub is_enabled: bool,
    /// `hinted_handoff_disabled_datacenters`: nodes of these data centers get no hints.
    pub disabled_data_centers: BTreeSet<String>,
    /// `max_hint_window`: a node that has been down for longer gets no more hints.
    pub window: Duration,
    /// `hint_window_persistent_enabled`: nor does a node whose oldest hint is older than the
    /// window.
    pub is_window_persistent: bool,
    /// `hinted_handoff_throttle` in bytes a second, shared by all other nodes; 0: without a limit.
    /// A node that leaves gives its hints to another node at all of it.
    pub throttle: u64,
    /// `max_hints_size_per_host` in bytes; 0: without a limit.
    pub size_per_host_max: u64,
    /// `auto_hints_cleanup_enabled`: files whose hints have all expired are removed every hour,
    /// also while their host is down.
    pub cleans_up: bool,
    /// `transfer_hints_on_decommission`: the hints of a node that leaves go to another node;
    /// otherwise they are removed.
    pub transfers_on_decommission: bool,
}

impl Default for HandoffSettings {
    /// The values of cassandra.yaml of 5.0.
    fn default() -> Self {
        Self {
            is_enabled: true,
            disabled_data_centers: BTreeSet::new(),
            window: Duration::from_secs(3 * 60 * 60),
            is_window_persistent: true,
            throttle: 1 << 20,
            size_per_host_max: 0,
            cleans_up: false,
            transfers_on_decommission: true,
        }
    }
}

/// Figures of hinted handoff since the start.
#[derive(Default, Debug)]
pub struct HandoffFigures {
    /// Mutations for which no hint was kept: handoff is off, the host was down for too long, its
    /// hints have their size, or memory is full.
    pub refused: Counter,
    /// Of these, mutations of hosts that had been down for longer than the window.
    pub past_window: Counter,
    /// Hints that their hosts took.
    pub succeeded: Counter,
    /// Hints that their hosts refused, or that were not sent.
    pub failed: Counter,
    /// Hints that were not answered in time.
    pub timed_out: Counter,
    /// Hints that were dropped because their gc_grace had passed.
    pub expired: Counter,
    /// Entries of files that did not match their checksums.
    pub damaged: Counter,
    /// Hints of other nodes for partitions that this node is no replica of.
    pub received_for_others: Counter,
}

/// The task that sends hints, until the sender is dropped.
pub(crate) struct Dispatcher {
    pub stop: oneshot::Sender<()>,
    pub thread: Box<dyn Joinable>,
}

/// A hint of this node itself, on its way into the node's tables.
pub(crate) type HintApplication = Pin<Box<dyn Future<Output = Result<(), FailureReason>>>>;

/// Applies a hint that this node has kept for itself, given as it stands in a hint file. Passed
/// in, because hints that come to a node are applied where its requests are served, in a module
/// that knows this one.
pub(crate) type ApplyOwnHint = Box<dyn Fn(Bytes) -> HintApplication + Send + Sync>;

/// The state of hinted handoff. Without a store no hint is kept: the node is alone.
#[derive(Default)]
pub(crate) struct Handoff {
    pub settings: ArcSwap<HandoffSettings>,
    pub store: OnceLock<HintStore>,
    /// `nodetool pausehandoff`: hints are kept and not sent.
    pub is_paused: AtomicBool,
    /// Hosts that get no hints because the window is over, ascending. Made anew at every round of
    /// the dispatcher, and when the window changes.
    pub past_window: ArcSwap<Vec<HostId>>,
    pub dispatcher: Mutex<Option<Dispatcher>>,
    /// Applies the hints of this node for itself; not set: the node has not joined.
    pub apply_own_hint: OnceLock<ApplyOwnHint>,
    pub figures: HandoffFigures,
}
