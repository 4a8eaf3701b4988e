//! Endpoints that have come to tokens a moment ago, and the tokens that they owned before.
//!
//! Nodes hear of a change of the ring at different times. For [`MovementSettings::ring_delay`]
//! after this node has heard that another one has joined or moved, or has done so itself, writes
//! also go to those that held its ranges before ([`ring::FormerTokens`] tells why). A node that
//! replaces a dead one takes nothing from a living one, and one of which this node has not heard
//! that it was on its way has told its news long ago: neither counts.
//!
//! [`MovementSettings::ring_delay`]: crate::range_movement_state::MovementSettings::ring_delay

use std::net::SocketAddr;
use std::time::Duration;

use env::Instant;
use ring::{Endpoint, EndpointId, FormerTokens, State};
use types::Token;

/// An endpoint that has come to its tokens.
struct Arrival {
    address: SocketAddr,
    /// The tokens that it owned before.
    before: Vec<Token>,
    /// The time at which every node should have heard of the endpoint.
    until: Instant,
}

/// The endpoints that have come to their tokens lately: as many as join and move within the time.
#[derive(Default)]
pub(crate) struct FormerOwners {
    arrivals: Vec<Arrival>,
}

impl FormerOwners {
    /// Called when the endpoints change from `before` to `after`. True: one of them has come to
    /// tokens just now, and the ring has to be made again when its time is over.
    pub(crate) fn follow(&mut self, before: &[Endpoint], after: &[Endpoint], now: Instant, delay: Duration) -> bool {
        self.arrivals.retain(|arrival| now < arrival.until);
        let mut has_come = false;
        // few are on their way at a time, of however many
        let changing = before.iter().filter(|was| matches!(was.state, State::Joining | State::Moving(_)));
        for was in changing {
            let Some(endpoint) = after.iter().find(|endpoint| endpoint.address == was.address) else { continue };
            let owned: &[Token] = match was.state {
                _ if !endpoint.owns_tokens() => continue,
                State::Joining => &[],
                _ if was.tokens != endpoint.tokens => &was.tokens,
                _ => continue,
            };
            has_come = true;
            let until = now.plus(delay);
            match self.arrivals.iter_mut().find(|arrival| arrival.address == endpoint.address) {
                // the ring of those who have heard of neither change
                Some(arrival) => arrival.until = until,
                None => self.arrivals.push(Arrival { address: endpoint.address, before: owned.to_vec(), until }),
            }
        }
        has_come
    }

    /// Forgets the arrivals. Called where no task can be woken when their time is over.
    pub(crate) fn forget(&mut self) {
        self.arrivals.clear();
    }

    /// The arrivals among these endpoints, as the ring has them.
    pub(crate) fn of_endpoints(&self, endpoints: &[Endpoint]) -> FormerTokens {
        let ids = (0u32..).map(EndpointId).zip(endpoints);
        let before = |endpoint: &Endpoint| {
            self.arrivals.iter().find(|arrival| arrival.address == endpoint.address).map(|found| found.before.clone())
        };
        ids.filter_map(|(id, endpoint)| Some((id, before(endpoint)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::endpoint;

    #[test]
    fn who_has_joined_or_moved_counts_for_a_while() {
        let second = Duration::from_secs(1);
        let at = |seconds: u32| Instant::from_nanos(7).plus(second * seconds);
        let with = |of: Endpoint, state| Endpoint { state, ..of };
        let (stays, replaced) = (endpoint(1, &[1, 11]), endpoint(4, &[4]).address);
        let of = |joining, moving, replacing, unheard: Option<Endpoint>| {
            [Some(stays.clone()), Some(joining), Some(moving), Some(replacing), unheard].into_iter().flatten().collect()
        };
        let before: Vec<Endpoint> = of(
            with(endpoint(2, &[2]), State::Joining),
            with(endpoint(3, &[3]), State::Moving(Token(5))),
            with(endpoint(6, &[4]), State::Replacing(replaced)),
            None,
        );
        let after: Vec<Endpoint> = of(endpoint(2, &[2]), endpoint(3, &[5]), endpoint(6, &[4]), Some(endpoint(7, &[7])));
        let mut owners = FormerOwners::default();
        assert!(!owners.follow(&before, &before, at(0), second * 10));
        assert_eq!(owners.of_endpoints(&before), FormerTokens::new());
        assert!(owners.follow(&before, &after, at(1), second * 10));
        let former = FormerTokens::from([(EndpointId(1), vec![]), (EndpointId(2), vec![Token(3)])]);
        assert_eq!(owners.of_endpoints(&after), former);
        // another move counts from then on, and the tokens before the first one stay
        let moving: Vec<Endpoint> = of(
            endpoint(2, &[2]),
            with(endpoint(3, &[5]), State::Moving(Token(8))),
            endpoint(6, &[4]),
            Some(endpoint(7, &[7])),
        );
        let moved: Vec<Endpoint> = of(endpoint(2, &[2]), endpoint(3, &[8]), endpoint(6, &[4]), Some(endpoint(7, &[7])));
        assert!(!owners.follow(&after, &moving, at(2), second * 10));
        assert!(owners.follow(&moving, &moved, at(10), second * 10));
        assert_eq!(owners.of_endpoints(&moved), former);
        assert!(!owners.follow(&moved, &moved, at(11), second * 10));
        assert_eq!(owners.of_endpoints(&moved), FormerTokens::from([(EndpointId(2), vec![Token(3)])]));
        assert!(!owners.follow(&moved, &moved, at(20), second * 10));
        assert_eq!(owners.of_endpoints(&moved), FormerTokens::new());
    }
}
