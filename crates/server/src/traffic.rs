//! The end of a node's traffic where its commit log has failed: the part of `commit_failure_policy`
//! that is not the log's own.
//!
//! A node with policy `stop` takes no write any more. If it stayed in the ring, drivers would go on
//! choosing it as a coordinator, and other nodes would go on sending it writes and keeping hints
//! for it without end. So the native transport is closed and gossip stops, as by `nodetool
//! disablebinary` and `disablegossip`; the process and its admin port stay, and an operator may
//! open both again. Agrees with `CommitLog.handleCommitError` and `StorageService.stopTransports`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use cluster::operations::gossip;
use native::ServerHandle;
use storage::commitlog::{FailurePolicy, LogError, OnFailure};

use crate::services::Services;

/// The traffic of clients and of other nodes.
#[derive(Default)]
pub(crate) struct Traffic {
    /// The commit log has failed under policy `stop`. Never taken back.
    is_over: AtomicBool,
    /// The ways in. Empty until the node has its ports.
    ways: OnceLock<(Weak<Services>, ServerHandle)>,
}

impl Traffic {
    /// The function that the commit log calls when it fails. The log itself has written why.
    pub(crate) fn on_failure(self: &Arc<Self>) -> OnFailure {
        let traffic = Arc::clone(self);
        Arc::new(move |policy: FailurePolicy, _: &LogError| match policy {
            FailurePolicy::Die => std::process::exit(1),
            FailurePolicy::Stop => {
                traffic.is_over.store(true, Ordering::SeqCst);
                traffic.end_if_over();
            }
            FailurePolicy::StopCommit | FailurePolicy::Ignore => {}
        })
    }

    /// The node has its ports, which are closed if the log fails.
    pub(crate) fn begin(&self, services: &Arc<Services>, transport: ServerHandle) {
        let _ = self.ways.set((Arc::downgrade(services), transport));
        self.end_if_over();
    }

    /// Ends the traffic if the log has failed. A start calls this last, because a failure on the
    /// way into the ring may come before there is anything to end. Waits for nothing: requests in
    /// flight come to their end.
    pub(crate) fn end_if_over(&self) {
        let ways = self.ways.get().filter(|_| self.is_over.load(Ordering::SeqCst));
        let Some((services, transport)) = ways else { return };
        let Some(services) = services.upgrade() else { return };
        tracing::error!(
            "the commit log has failed and commit_failure_policy is stop: clients are no longer served, and this node \
             leaves gossip until it is started again"
        );
        gossip::set_ready(&services.node, false);
        transport.begin_pause();
        if let Some(membership) = services.node.membership() {
            membership.stop_gossip();
        }
    }
}
