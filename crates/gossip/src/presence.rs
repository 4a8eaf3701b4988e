//! Whether others may have forgotten a node that joins.
//!
//! A member that has heard nothing new of a node that joins for [`SILENT_JOINING`] forgets it, and
//! writes to others only until it hears of that node again. The node is not told so. It sees how
//! long it has heard nothing new of a member. News of a member come with the answer to a question,
//! so that they show that the way is open in both directions: while no member is silent for long,
//! every member hears this node.
//!
//! - A member whose silence was long, and that goes on in the same generation, has been cut off:
//!   it may have forgotten this node.
//! - A member that was started again has asked the ring which nodes join. Its silence says
//!   nothing.
//! - A member that is silent still is dead or cut off. When more than half of them are, this node
//!   is the one that is cut off.
//! - A member that was dead before the watch began does not count until it is heard.
//!
//! Not here: the watch is begun by [`crate::Gossip::watch_presence`].

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::options::SILENT_JOINING;
use crate::peer::Peer;

/// Silence of a member from which on it may have forgotten this node: half of the time that
/// members wait: the two sides hear of each other at different times.
pub const SILENCE_MAX: Duration = Duration::from_secs(SILENT_JOINING.as_secs() / 2);

/// A silence in which a member may have forgotten this node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Absence {
    /// The member that was silent, or still is; of several that still are, the one with the
    /// longest silence.
    pub member: SocketAddr,
    /// The length of the member's silence.
    pub silence: Duration,
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing was heard of {} for {} s", self.member, self.silence.as_secs())
    }
}

/// A watch over the silences of members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    /// When the watch began. Silences are counted from then on.
    since: Duration,
    /// The first silence that was too long and has ended; None: there was none.
    ended: Option<Absence>,
}

impl Watch {
    pub fn new(now: Duration) -> Self {
        Self { since: now, ended: None }
    }

    fn silence(&self, peer: &Peer, now: Duration) -> Duration {
        now.saturating_sub(peer.updated.max(self.since))
    }

    /// Called when news of a peer has come in the generation that is known of it. `peer`: its
    /// state before.
    pub fn hear(&mut self, address: SocketAddr, peer: &Peer, now: Duration) {
        let silence = self.silence(peer, now);
        if silence >= SILENCE_MAX && peer.is_member() && self.ended.is_none() {
            self.ended = Some(Absence { member: address, silence });
        }
    }

    /// The silence in which a member may have forgotten this node; None: there was none.
    pub fn absence<'p>(
        &self,
        peers: impl Iterator<Item = (&'p SocketAddr, &'p Peer)>,
        now: Duration,
    ) -> Option<Absence> {
        if self.ended.is_some() {
            return self.ended;
        }
        let counts = |peer: &Peer| peer.is_member() && (peer.is_alive || peer.since >= self.since);
        let counted = peers.filter(|(_, peer)| counts(peer));
        let silences: Vec<Absence> =
            counted.map(|(member, peer)| Absence { member: *member, silence: self.silence(peer, now) }).collect();
        let are_long = silences.iter().filter(|absence| absence.silence >= SILENCE_MAX).count();
        let longest = silences.iter().max_by_key(|absence| absence.silence);
        longest.filter(|_| are_long * 2 > silences.len()).copied()
    }
}
