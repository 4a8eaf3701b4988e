//! Changes of views that belong to other nodes: in this node's batch log until they have them.
//!
//! The record is applied with the base, in one group. Once that is done each change is sent to its
//! replica, and to those that are about to be one; when all have answered the record is removed. A
//! record that stays is sent again by the batch log, to all replicas of the view.
//!
//! Agrees with `StorageProxy.mutateMV`, `BatchlogCleanup` and `BatchlogManager.store` of a local
//! batch.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use internode::payload::batch::StoredBatch;
use internode::{Envelope, Verb};
use membership::{Asker, Request, Unanswered};
use ring::{EndpointId, Ring};
use rows::Mutation;
use rows::codec::encode_mutation;
use rows::views::{Entry, View, updates};

use crate::coordinator::sent::result_of;
use crate::node::Node;
use crate::replica::views::Owed;

/// A change of one row of a view, and who gets it.
struct Change {
    payload: Bytes,
    to: Vec<SocketAddr>,
}

/// The changes of one write that belong to others.
pub(super) struct Remote {
    node: Arc<Node>,
    id: [u8; 16],
    created_micros: i64,
    changes: Vec<Change>,
    /// Whether a change has nobody to go to now, or its replica is down: the record stays then.
    is_left: bool,
}

impl Remote {
    pub fn new(node: &Arc<Node>) -> Self {
        let (id, created_micros) = (node.uuids.next(), node.clock.next_micros());
        Self { node: Arc::clone(node), id, created_micros, changes: Vec::new(), is_left: false }
    }

    /// Adds a change. `is_paired`: the replica to which it belongs is known.
    pub fn add(&mut self, view: &Arc<View>, entry: Entry, is_paired: bool, to: &[EndpointId], ring: &Ring) {
        for update in updates(view, vec![entry]) {
            let mut payload = Vec::new();
            encode_mutation(&mut payload, &Mutation::of(update));
            let up = to.iter().map(|id| ring.endpoint(*id)).filter(|endpoint| endpoint.is_up);
            let addresses: Vec<SocketAddr> = up.map(|endpoint| endpoint.address).collect();
            self.is_left |= !is_paired || addresses.len() < to.len();
            self.changes.push(Change { payload: payload.into(), to: addresses });
        }
    }

    pub fn unless_empty(self) -> Option<Box<dyn Owed>> {
        (!self.changes.is_empty()).then(|| Box::new(self) as Box<dyn Owed>)
    }
}

impl Owed for Remote {
    fn record(&self) -> Mutation {
        let mutations = self.changes.iter().map(|change| change.payload.clone()).collect();
        self.node.record_of(&StoredBatch { id: self.id, created_micros: self.created_micros, mutations })
    }

    fn send(self: Box<Self>) {
        // the record is applied
        self.node.batch_replay.expect_records();
        let Some(others) = self.node.others() else { return };
        let asked = self.changes.iter().map(|change| change.to.len()).sum();
        let waiting = Waiting {
            node: Arc::downgrade(&self.node),
            id: self.id,
            left: AtomicUsize::new(asked),
            is_left: AtomicBool::new(self.is_left),
        };
        let asker: Arc<dyn Asker> = Arc::new(waiting);
        let timeout = self.node.timeouts().write;
        for change in self.changes {
            let request = Request::new(Verb::MutationReq, change.payload, timeout);
            for address in change.to {
                others.messenger.ask(address, &[], request.clone(), &asker);
            }
        }
    }
}

/// The wait for the answers.
struct Waiting {
    node: Weak<Node>,
    id: [u8; 16],
    /// Answers that have not come.
    left: AtomicUsize,
    /// The record stays: somebody does not have its change.
    is_left: AtomicBool,
}

impl Asker for Waiting {
    fn hear(&self, _: SocketAddr, answer: Result<Envelope, Unanswered>) {
        if !answer.is_ok_and(|message| result_of(&message).is_ok()) {
            self.is_left.store(true, Ordering::Relaxed);
        }
        let was = self.left.fetch_sub(1, Ordering::AcqRel);
        assert!(was > 0, "membership tells of a peer once");
        if was == 1
            && !self.is_left.load(Ordering::Relaxed)
            && let Some(node) = self.node.upgrade()
        {
            node.remove_record(&self.id);
        }
    }
}
