//! The other nodes that change the ring: a change of this node waits for them, or is refused.
//!
//! Each change computes which ranges flow from the ring as it is then. Of two changes at a time
//! whose ranges overlap, one hands on or fetches by a ring that the other is about to end: a node
//! owns a range afterwards that nobody has given it. So one node changes the ring at a time, unless
//! `consistent_rangemovement` is off:
//!
//! - a bootstrap waits for its turn ([`super::bootstrap`]), and so does the replacement of a node;
//! - a decommission, a move and a removal are refused while another node changes the ring
//!   ([`Node::refuse_concurrent_change`]);
//! - nodes that begin at the same moment have not heard of each other then. When all know what each
//!   of them tells, the one with the lowest address goes on, and the others say NORMAL again. All
//!   of them give way to a node that joins ([`Node::check_precedence`]). Nodes that are asked to
//!   remove others do the same before they tell of the removal ([`super::removal`]).
//!
//! Cassandra refuses only a bootstrap or a replacement beside other changes, and a decommission or
//! a move of a node to which ranges come meanwhile.
//! `org.apache.cassandra.service.StorageService.{prepareForBootstrap,decommission,move}`.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use ring::{Endpoint, Ring, State};

use super::removal;
use crate::node::Node;

/// Time between two looks at whether others still change the ring.
pub(super) const LOOK: Duration = Duration::from_millis(500);

/// Most nodes that a refusal names, each with what the operator can do.
const NAMED_MAX: usize = 5;

/// A change of the ring that an operator asks for, in the words of its refusal.
pub(super) struct RequestedChange {
    /// The change, as the words behind "Cannot".
    pub what: String,
    /// Another way for the operator: a sentence.
    pub otherwise: &'static str,
}

/// Other nodes that change the ring.
pub(super) struct ChangingNodes(Vec<Endpoint>);

impl ChangingNodes {
    /// The nodes that change the ring and for which `counts` is true. None: there is none.
    pub fn of(ring: &Ring, counts: impl Fn(&Endpoint) -> bool) -> Option<Self> {
        let nodes: Vec<Endpoint> =
            ring.peers().filter(|other| other.state != State::Normal && counts(other)).cloned().collect();
        (!nodes.is_empty()).then_some(Self(nodes))
    }

    /// Whether one of them is down, so that the end of its change is not to be expected.
    pub fn is_one_down(&self) -> bool {
        self.0.iter().any(|endpoint| !endpoint.is_up)
    }

    /// A text for the operator: each of these nodes, its state and what can be done about it.
    /// `removed`: the endpoints that are being removed.
    pub fn describe(&self, removed: &[SocketAddr]) -> String {
        let named = self.0.iter().take(NAMED_MAX);
        let told: Vec<String> = named.map(|endpoint| tell(endpoint, removed.contains(&endpoint.address))).collect();
        match self.0.len().saturating_sub(NAMED_MAX) {
            0 => told.join("; "),
            more => format!("{}; and {more} more", told.join("; ")),
        }
    }
}

/// The words of Cassandra's refusal of a bootstrap.
impl fmt::Display for ChangingNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_state = |is_state: fn(State) -> bool| {
            let found = self.0.iter().filter(|endpoint| is_state(endpoint.state));
            found.map(|endpoint| endpoint.address.to_string()).collect::<Vec<_>>().join(",")
        };
        let joining = in_state(State::is_joining);
        let leaving = in_state(|state| state == State::Leaving);
        let moving = in_state(|state| matches!(state, State::Moving(_)));
        write!(
            f,
            "Other bootstrapping/leaving/moving nodes detected, cannot bootstrap while consistent_rangemovement is \
             true. Nodes detected, bootstrapping: {joining}; leaving: {leaving}; moving: {moving};"
        )
    }
}

/// A node that changes the ring, its state, and what an operator does about it.
fn tell(endpoint: &Endpoint, is_removed: bool) -> String {
    let (address, id) = (endpoint.address, types::literal::print_uuid(&endpoint.host_id));
    let what = match (endpoint.state, endpoint.is_up) {
        (State::Joining | State::Replacing(_), true) => "is joining: wait until it has joined".to_owned(),
        (State::Joining | State::Replacing(_), false) => {
            "was joining and is down: start it again, or wait until the others have forgotten it, which takes five \
             minutes of silence"
                .to_owned()
        }
        (State::Leaving, _) if is_removed => format!(
            "is being removed: wait until it is gone; if the node that removes it has died, ask another one for \
             `nodetool removenode {id}`; `nodetool removenode force` ends a removal that waits in vain"
        ),
        (State::Leaving, true) => {
            "is leaving: wait until it has left; if it could not (DECOMMISSION_FAILED), ask it again, or start it \
             again: it stays then"
                .to_owned()
        }
        (State::Leaving, false) => {
            format!("was leaving and is down: start it again, it stays then, or remove it (`nodetool removenode {id}`)")
        }
        (State::Moving(_), true) => "is moving to another token: wait until it has moved".to_owned(),
        (State::Moving(_), false) => format!(
            "was moving to another token and is down: start it again, or remove it (`nodetool removenode {id}`)"
        ),
        (State::Normal, _) => "is a member".to_owned(),
    };
    format!("{address} {what}")
}

impl Node {
    /// Refuses a change of the ring while this node takes no part in gossip: it was stopped by an
    /// operator, or because the disk has failed. Otherwise no node would hear of the change, and
    /// none would write to the nodes that gain ranges by it.
    pub(crate) fn refuse_without_gossip(&self) -> Result<(), String> {
        if self.membership().is_none_or(|membership| membership.is_gossiping()) {
            return Ok(());
        }
        Err("This node takes no part in gossip, so that no other node would hear of a change of the ring: begin gossip \
             again (`nodetool enablegossip`), or start the node again"
            .to_owned())
    }

    /// Refuses what an operator asks for while another node that counts changes the ring, unless
    /// `consistent_rangemovement` is off.
    pub(super) fn refuse_concurrent_change(
        &self,
        change: &RequestedChange,
        counts: impl Fn(&Endpoint) -> bool,
    ) -> Result<(), String> {
        if !self.membership_state.movements.settings().is_consistent {
            return Ok(());
        }
        let Some(nodes) = ChangingNodes::of(&self.ring(), counts) else { return Ok(()) };
        let RequestedChange { what, otherwise } = change;
        let told = nodes.describe(&removal::removing(self));
        Err(format!("Cannot {what} while another node changes the ring: {told}. {otherwise}"))
    }

    /// The second look of a node that leaves or moves, when all others know that: whether another
    /// one has begun a change before it heard of this one's. Of such nodes the one with the lowest
    /// address goes on, once the others have withdrawn; a node that joins is before all of them,
    /// and waits for that. Err: this node withdraws.
    pub(super) async fn check_precedence(&self, change: &RequestedChange) -> Result<(), String> {
        let own = self.identity.broadcast;
        self.refuse_concurrent_change(change, |other| other.state.is_joining() || other.address < own)?;
        let (begun, limit) = (self.env.now(), self.membership_state.movements.settings().ring_delay);
        while self.env.elapsed(begun) < limit && self.refuse_concurrent_change(change, |_| true).is_err() {
            self.env.sleep(LOOK).await;
        }
        // a node that does not withdraw is one of Cassandra, or was told to go on (--force)
        self.refuse_concurrent_change(change, |_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::endpoint;

    #[test]
    fn each_is_told_with_its_state() {
        let with = |number, state, is_up| Endpoint { state, is_up, ..endpoint(number, &[i64::from(number)]) };
        let endpoints = vec![
            endpoint(1, &[1]),
            with(2, State::Joining, true),
            with(3, State::Leaving, false),
            with(4, State::Leaving, false),
            with(5, State::Moving(types::Token(50)), true),
        ];
        let ring = Ring::new(endpoints, ring::EndpointId(0));
        assert!(
            ChangingNodes::of(&ring, |other| other.address == endpoint(1, &[1]).address).is_none(),
            "it is this node"
        );
        let told = ChangingNodes::of(&ring, |_| true).expect("four").describe(&[endpoint(4, &[]).address]);
        for part in [
            "10.0.0.2:7000 is joining: wait until it has joined; ",
            "10.0.0.3:7000 was leaving and is down: start it again, it stays then, or remove it (`nodetool removenode \
             03030303-0303-0303-0303-030303030303`); ",
            "10.0.0.4:7000 is being removed: wait until it is gone; ",
            "10.0.0.5:7000 is moving to another token: wait until it has moved",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
    }
}
