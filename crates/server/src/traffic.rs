//! The end of a node's traffic where its disk has failed: the part of `commit_failure_policy` that
//! is not the log's own, and that of `disk_failure_policy` that is not the engine's.
//!
//! A node whose commit log has failed takes no write any more with policy `stop`, and one whose
//! SSTables cannot be read or written answers with errors. If such a node stayed in the ring,
//! drivers would go on choosing it as a coordinator, and other nodes would go on sending it
//! requests and keeping hints for it without end. So the native transport is closed and gossip
//! stops, as by `nodetool disablebinary` and `disablegossip`; the process and its admin port stay,
//! and an operator may open both again. Agrees with `CommitLog.handleCommitError`,
//! `DefaultFSErrorHandler` and `StorageService.stopTransports`.

use std::sync::{Arc, OnceLock, Weak};

use cluster::operations::gossip;
use native::ServerHandle;
use storage::commitlog::{FailurePolicy, LogError, OnFailure};
use storage::{DiskFailurePolicy, OnDiskFailure, StorageError};

use crate::services::Services;

/// The traffic of clients and of other nodes.
#[derive(Default)]
pub(crate) struct Traffic {
    /// Why the traffic has ended, as the beginning of a sentence; of several reasons the first.
    /// Empty: no failure has ended it. Never taken back.
    reason: OnceLock<&'static str>,
    /// The node and its native transport, through which the traffic is ended. Empty until the node
    /// has its ports.
    handles: OnceLock<(Weak<Services>, ServerHandle)>,
}

impl Traffic {
    /// The function that the commit log calls when it fails. The log itself has written why.
    pub(crate) fn on_failure(self: &Arc<Self>) -> OnFailure {
        let traffic = Arc::clone(self);
        Arc::new(move |policy: FailurePolicy, _: &LogError| match policy {
            FailurePolicy::Die => std::process::exit(1),
            FailurePolicy::Stop => traffic.end("the commit log has failed and commit_failure_policy is stop"),
            FailurePolicy::StopCommit | FailurePolicy::Ignore => {}
        })
    }

    /// The function that the engine calls where SSTables cannot be read or written.
    pub(crate) fn on_disk_failure(self: &Arc<Self>) -> OnDiskFailure {
        let traffic = Arc::clone(self);
        Arc::new(move |policy: DiskFailurePolicy, error: &StorageError| match policy {
            DiskFailurePolicy::Die => {
                tracing::error!(%error, "the disk has failed and disk_failure_policy is die: the process ends");
                std::process::exit(1)
            }
            DiskFailurePolicy::Stop => traffic.end("the disk has failed and disk_failure_policy is stop"),
            DiskFailurePolicy::StopParanoid => {
                traffic.end("the disk has failed, or an SSTable is damaged, and disk_failure_policy is stop_paranoid");
            }
            DiskFailurePolicy::Ignore => {}
        })
    }

    /// The node has its ports, which are closed if the disk fails.
    pub(crate) fn set_handles(&self, services: &Arc<Services>, transport: ServerHandle) {
        let _ = self.handles.set((Arc::downgrade(services), transport));
        self.end_if_failed();
    }

    fn end(&self, reason: &'static str) {
        let _ = self.reason.set(reason);
        self.end_if_failed();
    }

    /// Ends the traffic if the disk has failed. A start calls this last, because a failure on the
    /// way into the ring may come before there is anything to end. Waits for nothing: requests in
    /// flight come to their end. If nothing is open any more it does nothing, so that many failed
    /// reads in a row are told of once.
    pub(crate) fn end_if_failed(&self) {
        let (Some(reason), Some((services, transport))) = (self.reason.get(), self.handles.get()) else { return };
        let Some(services) = services.upgrade() else { return };
        let membership = services.node.membership();
        let gossips = membership.as_ref().is_some_and(|membership| membership.is_gossiping());
        if !gossips && !transport.is_serving() {
            return;
        }
        tracing::error!(
            "{reason}: clients are no longer served, and this node leaves gossip until it is started again"
        );
        gossip::set_ready(&services.node, false);
        transport.begin_pause();
        if let Some(membership) = membership {
            membership.stop_gossip();
        }
    }
}
