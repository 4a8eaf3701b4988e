//! The questions of operators about hints: which wait, and their removal.

use std::net::{IpAddr, SocketAddr};

use hints::{HintStore, HostId, PendingHints};
use ring::Endpoint;

use crate::node::Node;

/// The hints that wait for a host, and the host if it is in the ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostHints {
    /// The hints of the host that wait in files.
    pub pending: PendingHints,
    /// The host; None: no node of the ring has this id.
    pub endpoint: Option<Endpoint>,
}

impl Node {
    /// The hints that wait in files, by host.
    pub fn pending_hints(&self) -> Vec<HostHints> {
        let pending = self.handoff.store.get().map(HintStore::pending).unwrap_or_default();
        let ring = self.ring();
        let endpoint =
            |host_id: &HostId| ring.endpoints().iter().find(|endpoint| endpoint.host_id == *host_id).cloned();
        pending.into_iter().map(|pending| HostHints { endpoint: endpoint(&pending.host_id), pending }).collect()
    }

    /// Removes all hints that wait in files.
    pub fn truncate_hints(&self) {
        if let Some(store) = self.handoff.store.get() {
            store.truncate(None);
        }
    }

    /// Removes the hints of a host that wait in files. False: no node of the ring has this
    /// address.
    pub fn truncate_hints_of(&self, address: IpAddr, port: Option<u16>) -> bool {
        let is_meant = |of: &SocketAddr| of.ip() == address && port.is_none_or(|port| port == of.port());
        let ring = self.ring();
        let Some(endpoint) = ring.endpoints().iter().find(|endpoint| is_meant(&endpoint.address)) else { return false };
        if let Some(store) = self.handoff.store.get() {
            store.truncate(Some(&endpoint.host_id));
        }
        true
    }

    /// Removes everything that is kept for a host that has left the ring. Waits for the disk.
    pub(crate) fn forget_hints(&self, host_id: &HostId) {
        if let Some(store) = self.handoff.store.get() {
            store.forget(host_id);
        }
    }
}
