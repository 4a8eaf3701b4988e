//! The nodes that have been replaced, as this node has heard of it.
//!
//! Of two endpoints that own one token the one that was started last has it. Their generations tell
//! which one that is, and generations come from clocks: where the clock of a dead node was ahead,
//! the node that replaces it would never come to its tokens. So a node that has told which node it
//! replaces (BOOT_REPLACE), and later is a member with all of that node's tokens, has them,
//! whatever the generations say.
//!
//! A replacement that is under way or has been given up takes nothing, and neither does one of a
//! node that is up. A node that has been replaced is an endpoint again once it tells of a later
//! start.
//!
//! A node that was not there when the other one was replaced goes by the generations: it remembers
//! the dead node in a generation before all others, and nobody tells it of that one any more.
//! Agrees with `StorageService.{handleStateNormal,updateTokenMetadata}`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ring::{Endpoint, State};

/// The most replaced nodes that are remembered. Beyond this number the generations decide again.
const REPLACED_MAX: usize = 1_000;

/// The replacements of which this node has heard since it was started.
#[derive(Default)]
pub(crate) struct Replacements {
    /// Nodes that have said that they replace another, by address: their host id, and the address
    /// of that other. As many as gossip knows.
    begun: BTreeMap<SocketAddr, ([u8; 16], SocketAddr)>,
    /// Nodes that have been replaced, by address: their host id, and the generation of their last
    /// start. Another node that has the address later is not concerned, whatever its clock says.
    replaced: BTreeMap<SocketAddr, ([u8; 16], i32)>,
    /// The host ids of nodes that have been replaced, each with that of the node that has its
    /// tokens since. At most [`REPLACED_MAX`].
    successors: BTreeMap<[u8; 16], [u8; 16]>,
}

impl Replacements {
    /// Takes what the endpoints tell now, the other nodes each with its generation. Gives the
    /// other nodes that have not been replaced. `is_known`: gossip knows an address.
    pub(crate) fn follow(
        &mut self,
        this: &Endpoint,
        mut others: Vec<(i32, Endpoint)>,
        is_known: impl Fn(&SocketAddr) -> bool,
    ) -> Vec<(i32, Endpoint)> {
        self.begun.retain(|address, _| *address == this.address || is_known(address));
        for endpoint in others.iter().map(|(_, endpoint)| endpoint).chain([this]) {
            match endpoint.state {
                State::Replacing(replaced) if replaced != endpoint.address => {
                    self.begun.insert(endpoint.address, (endpoint.host_id, replaced));
                }
                // the node has begun anew, and replaces nobody
                State::Joining => {
                    self.begun.remove(&endpoint.address);
                }
                State::Normal => self.complete(endpoint, &others),
                State::Replacing(_) | State::Leaving | State::Moving(_) => {}
            }
        }
        let is_there = |(generation, endpoint): &(i32, Endpoint)| {
            let replaced = self.replaced.get(&endpoint.address);
            replaced.is_none_or(|(host_id, replaced)| endpoint.host_id != *host_id || generation > replaced)
        };
        others.retain(is_there);
        others
    }

    /// The host id of the node that has the tokens of a replaced one now; None: this node has not
    /// heard that the node with this host id was replaced. A node that has replaced another may
    /// have been replaced in turn. `is_there`: the ring has a host id.
    pub(crate) fn successor(&self, of: &[u8; 16], is_there: impl Fn(&[u8; 16]) -> bool) -> Option<[u8; 16]> {
        let mut next = self.successors.get(of);
        // each step passes one entry; more steps than entries would go round in a circle
        for _ in 0..self.successors.len() {
            match next {
                Some(id) if is_there(id) => break,
                Some(id) => next = self.successors.get(id),
                None => break,
            }
        }
        next.filter(|id| is_there(id)).copied()
    }

    /// Called for an endpoint that is a member: if it was about to replace another one, it has
    /// done so.
    fn complete(&mut self, endpoint: &Endpoint, others: &[(i32, Endpoint)]) {
        let Some((host_id, address)) = self.begun.remove(&endpoint.address) else { return };
        assert!(address != endpoint.address, "a node replaces another one");
        let is_replaced = |other: &Endpoint| {
            let takes = |token| endpoint.tokens.binary_search(token).is_ok();
            // on another directory the node has not got the data of the other one
            other.address == address && !other.is_up && host_id == endpoint.host_id && other.tokens.iter().all(takes)
        };
        let Some((generation, other)) = others.iter().find(|(_, other)| is_replaced(other)) else { return };
        self.replaced.insert(address, (other.host_id, *generation));
        if self.replaced.len() > REPLACED_MAX {
            self.replaced.pop_first();
        }
        if other.host_id != endpoint.host_id {
            self.successors.insert(other.host_id, endpoint.host_id);
        }
        if self.successors.len() > REPLACED_MAX {
            self.successors.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::endpoint;

    /// Node 2 is dead, with a clock that was ahead. Whether node 4, or this node 1, has replaced it
    /// after what the endpoints have told one after the other.
    #[test]
    fn who_has_replaced_another_has_its_tokens_whatever_the_clocks_say() {
        let with = |of: &Endpoint, state| Endpoint { state, ..of.clone() };
        let this = endpoint(1, &[1]);
        let (up, new) = (endpoint(2, &[2, 3]), endpoint(4, &[2, 3]));
        let dead = Endpoint { is_up: false, ..up.clone() };
        let (begins, joins) = (with(&new, State::Replacing(up.address)), with(&new, State::Joining));
        let elsewhere = Endpoint { host_id: [7; 16], ..new.clone() };
        let own = Endpoint { tokens: new.tokens.clone(), ..this.clone() };
        let own_begins = with(&own, State::Replacing(up.address));
        // this node, node 2 with its generation, node 4
        let steps = |steps: &[(&Endpoint, (i32, &Endpoint), Option<&Endpoint>)]| {
            let mut replacements = Replacements::default();
            let mut is_there = true;
            for (this, (generation, second), fourth) in steps {
                let others = [Some((*generation, *second)), fourth.map(|fourth| (5, fourth))].into_iter().flatten();
                let others = others.map(|(generation, endpoint)| (generation, endpoint.clone())).collect();
                let after = replacements.follow(this, others, |address| *address != up.address);
                is_there = after.iter().any(|(_, endpoint)| endpoint.address == up.address);
                assert_eq!(after.len(), usize::from(is_there) + usize::from(fourth.is_some()));
            }
            !is_there
        };
        let (begun, done) = ((&this, (9, &dead), Some(&begins)), (&this, (9, &dead), Some(&new)));
        assert!(!steps(&[begun]), "it is under way");
        assert!(!steps(&[done]), "nobody has said so");
        assert!(steps(&[begun, done]));
        assert!(steps(&[begun, done, done]), "it stays so");
        assert!(steps(&[begun, done, (&this, (9, &up), Some(&new))]), "whoever was believed to be down");
        assert!(steps(&[begun, (&this, (9, &dead), None), done]), "it was restarted at its end");
        assert!(!steps(&[begun, done, (&this, (10, &dead), Some(&new))]), "the dead node was started again");
        let anew = Endpoint { host_id: [8; 16], ..up.clone() };
        assert!(!steps(&[begun, done, (&this, (5, &anew), Some(&new))]), "another node has the address");
        assert!(!steps(&[begun, (&this, (9, &up), Some(&new)), done]), "the other one was up");
        assert!(!steps(&[begun, (&this, (9, &dead), Some(&joins)), done]), "it was given up");
        assert!(!steps(&[begun, (&this, (9, &dead), Some(&elsewhere))]), "it is another directory");
        assert!(!steps(&[begun, (&this, (9, &dead), Some(&endpoint(4, &[2])))]), "it leaves a token");
        let (own_begun, own_done) = ((&own_begins, (9, &dead), None), (&own, (9, &dead), None));
        assert!(!steps(&[own_begun]) && steps(&[own_begun, own_done]));
    }

    /// Node 4 replaces node 2, and is replaced by node 5 when it has died.
    #[test]
    fn the_successor_of_a_replaced_node_is_the_one_that_is_there() {
        let this = endpoint(1, &[1]);
        let down = |of: &Endpoint| Endpoint { is_up: false, ..of.clone() };
        let mut replacements = Replacements::default();
        for (dead, new) in [(endpoint(2, &[2]), endpoint(4, &[2])), (endpoint(4, &[2]), endpoint(5, &[2]))] {
            let begins = Endpoint { state: State::Replacing(dead.address), ..new.clone() };
            for new in [begins, new] {
                replacements.follow(&this, vec![(5, down(&dead)), (6, new)], |_| true);
            }
        }
        let successor = |of: u8, there: &[u8]| {
            let found = replacements.successor(&[of; 16], |id| there.iter().any(|number| *id == [*number; 16]));
            found.map(|id| id[0])
        };
        assert_eq!(successor(2, &[1, 4]), Some(4));
        assert_eq!(successor(2, &[1, 5]), Some(5), "the first successor was replaced, too");
        assert_eq!(successor(4, &[1, 5]), Some(5));
        assert_eq!((successor(2, &[1]), successor(1, &[1, 4])), (None, None));
    }
}
