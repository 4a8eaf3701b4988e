//! Changes of views that belong to other nodes: in this node's batch log until they have them.
//!
//! The record is applied with the base, in one group. Once that is done each change is sent to its
//! replica, and to those that are about to be one; one that is down gets a hint. When all have
//! answered, and the hints are durable, the record is removed. A record that stays is sent again by
//! the batch log, to all replicas of the view.
//!
//! Agrees with `StorageProxy.mutateMV`, `BatchlogCleanup` and `BatchlogManager.store` of a local
//! batch. Cassandra keeps the record of a change of which a replica is down beside the hint.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use hints::HostId;
use internode::payload::batch::StoredBatch;
use internode::{Envelope, Verb};
use membership::{Request, RequestCallback, RequestFailure};
use ring::{EndpointId, Ring};
use rows::Mutation;
use rows::codec::encode_mutation;
use rows::views::{Entry, View, updates};

use crate::coordinator::pending_write::result_of;
use crate::hints::{HintOutcome, Hintable};
use crate::node::Node;
use crate::replica::views::RemoteViewChanges;

/// A change of one row of a view, and the replicas that get it.
struct Change {
    /// The mutation for a replica that is down.
    hintable: Hintable,
    /// The mutation as it is sent.
    payload: Bytes,
    /// Addresses of the replicas that are up.
    to: Vec<SocketAddr>,
    /// Host ids of the replicas that are down.
    down: Vec<HostId>,
}

/// The changes of one write that belong to others.
pub(super) struct PeerViewChanges {
    node: Arc<Node>,
    id: [u8; 16],
    created_micros: i64,
    changes: Vec<Change>,
    /// True: the replica of a change is not known, and the record stays.
    is_left: bool,
}

impl PeerViewChanges {
    pub fn new(node: &Arc<Node>) -> Self {
        let (id, created_micros) = (node.uuids.next(), node.clock.next_micros());
        Self { node: Arc::clone(node), id, created_micros, changes: Vec::new(), is_left: false }
    }

    /// Adds a change. `is_paired`: the replica to which it belongs is known.
    pub fn add(&mut self, view: &Arc<View>, entry: Entry, is_paired: bool, to: &[EndpointId], ring: &Ring) {
        for update in updates(view, vec![entry]) {
            let (mutation, mut payload) = (Mutation::of(update), Vec::new());
            encode_mutation(&mut payload, &mutation);
            let payload = Bytes::from(payload);
            let hintable = Hintable::new(&mutation, payload.clone());
            let endpoints = || to.iter().map(|id| ring.endpoint(*id));
            let up = endpoints().filter(|endpoint| endpoint.is_up).map(|endpoint| endpoint.address).collect();
            let down = endpoints().filter(|endpoint| !endpoint.is_up).map(|endpoint| endpoint.host_id).collect();
            self.is_left |= !is_paired;
            self.changes.push(Change { hintable, payload, to: up, down });
        }
    }

    /// Keeps hints for the replicas that are down. Gives two answers: whether a replica is down,
    /// and whether one of them has no hint.
    fn hint(&self) -> (bool, bool) {
        let (mut are_down, mut lacks_hint) = (false, false);
        for change in &self.changes {
            for host_id in &change.down {
                let kept = self.node.hint_in_any_case(*host_id, &change.hintable, self.created_micros / 1000);
                are_down = true;
                lacks_hint |= kept != HintOutcome::Yes;
            }
        }
        (are_down, lacks_hint)
    }

    pub fn unless_empty(self) -> Option<Box<dyn RemoteViewChanges>> {
        (!self.changes.is_empty()).then(|| Box::new(self) as Box<dyn RemoteViewChanges>)
    }
}

impl RemoteViewChanges for PeerViewChanges {
    fn record(&self) -> Mutation {
        let mutations = self.changes.iter().map(|change| change.payload.clone()).collect();
        self.node.record_of(&StoredBatch { id: self.id, created_micros: self.created_micros, mutations })
    }

    fn send(self: Box<Self>) {
        // the record is applied
        self.node.batch_replay.expect_records();
        let Some(others) = self.node.ring_peers() else { return };
        // a record that stays in any case leaves its hints when it is sent again
        let (is_hinted, lacks_hint) = if self.is_left { (false, false) } else { self.hint() };
        let asked: usize = self.changes.iter().map(|change| change.to.len()).sum();
        let waiting = PendingViewAnswers {
            node: Arc::downgrade(&self.node),
            id: self.id,
            left: AtomicUsize::new(asked),
            is_hinted,
            is_left: AtomicBool::new(self.is_left || lacks_hint),
        };
        if asked == 0 {
            waiting.settle();
            return;
        }
        let callback: Arc<dyn RequestCallback> = Arc::new(waiting);
        let timeout = self.node.timeouts().write;
        for change in self.changes {
            let request = Request::new(Verb::MutationReq, change.payload, timeout);
            for address in change.to {
                others.messenger.ask(address, &[], request.clone(), &callback);
            }
        }
    }
}

/// The wait for the answers.
struct PendingViewAnswers {
    node: Weak<Node>,
    id: [u8; 16],
    /// Number of answers that have not come.
    left: AtomicUsize,
    /// True: a hint was kept for a replica that is down.
    is_hinted: bool,
    /// True: the record stays, because a replica does not have its change.
    is_left: AtomicBool,
}

impl PendingViewAnswers {
    /// Called when all answers have come.
    fn settle(&self) {
        let Some(node) = self.node.upgrade().filter(|_| !self.is_left.load(Ordering::Relaxed)) else { return };
        match self.is_hinted {
            true => node.batch_replay.wait_for_hints(self.id),
            false => node.remove_record(&self.id),
        }
    }
}

impl RequestCallback for PendingViewAnswers {
    fn on_outcome(&self, _: SocketAddr, answer: Result<Envelope, RequestFailure>) {
        if !answer.is_ok_and(|message| result_of(&message).is_ok()) {
            self.is_left.store(true, Ordering::Relaxed);
        }
        let was = self.left.fetch_sub(1, Ordering::AcqRel);
        assert!(was > 0, "membership tells of a peer once");
        if was == 1 {
            self.settle();
        }
    }
}
