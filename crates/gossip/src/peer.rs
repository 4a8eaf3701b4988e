//! An endpoint as this node knows it: its state, and when it was heard of.

use std::time::Duration;

use internode::payload::gossip::{ApplicationState, EndpointState};

use crate::detector::ArrivalWindow;
use crate::options::{FORGET, SILENT_CLIENT, SILENT_JOINING};
use crate::status::Status;

/// Another node.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The state that the endpoint tells of itself.
    pub state: EndpointState,
    /// Whether the node has answered an ECHO_REQ, and has not been silent for too long since.
    pub is_alive: bool,
    /// When the node became alive or dead. For a dead node the window of hints begins then.
    pub since: Duration,
    /// True: the node is only known from before this node's restart and has not been heard of
    /// since. Its remembered state is not told to others: it may have left the ring meanwhile.
    pub is_remembered: bool,
    /// The generation and greatest version of this node's state that the peer is known to have.
    pub(crate) knows: (i32, i32),
    pub(crate) arrivals: ArrivalWindow,
    /// When a greater heartbeat or value came last.
    pub(crate) updated: Duration,
    /// When the ECHO_REQ was sent that is still unanswered; None: there is none.
    pub(crate) echo_sent: Option<Duration>,
}

impl Peer {
    pub(crate) fn new(state: EndpointState, now: Duration) -> Self {
        let arrivals = ArrivalWindow::default();
        Self {
            state,
            is_alive: false,
            since: now,
            is_remembered: false,
            knows: (0, 0),
            arrivals,
            updated: now,
            echo_sent: None,
        }
    }

    /// The endpoint's status. `None`: it has told none yet.
    pub fn status(&self) -> Option<Status> {
        Status::of(&self.state)
    }

    /// Whether the status is one in which an endpoint is never marked alive.
    pub fn is_dead_state(&self) -> bool {
        self.status().is_some_and(|status| status.is_dead())
    }

    /// Whether the endpoint owns tokens: it is a member of the ring, and is kept however long it is
    /// silent.
    pub fn is_member(&self) -> bool {
        self.state.value(ApplicationState::Tokens).is_some() && self.status().is_some_and(|status| status.owns_tokens())
    }

    /// The time for which nothing new has come of the endpoint, not even a greater heartbeat.
    pub fn silence(&self, now: Duration) -> Duration {
        now.saturating_sub(self.updated)
    }

    /// Whether the endpoint has to be forgotten: it owns no tokens, and is silent or past its
    /// time.
    pub(crate) fn is_to_be_evicted(&self, now: Duration, wall_millis: i64) -> bool {
        if self.is_member() {
            return false;
        }
        let silent = self.silence(now);
        match self.status() {
            Some(status) if status.is_dead() => match status.expiry() {
                Some(expiry) => wall_millis > expiry,
                None => silent > FORGET,
            },
            Some(status) if status.is_joining() => silent > SILENT_JOINING,
            _ => silent > SILENT_CLIENT,
        }
    }
}
