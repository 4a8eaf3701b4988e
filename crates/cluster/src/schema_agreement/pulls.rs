//! The choice which node is asked for its schema, and when: a state machine without clock or
//! network. Agrees with `org.apache.cassandra.schema.MigrationCoordinator`.
//!
//! Each version that a neighbour tells of and that differs from ours is fetched once, from one of
//! the nodes that have it. A change is pushed to everybody at once, so a version that gossip tells
//! is usually on its way already: it is asked for only if it has not come after [`DELAY`]. A node
//! that has just joined asks at once. A node that is no member yet asks after [`EARLY_DELAY`]: it
//! fetches data by the schema that it has.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

/// Time that a pushed schema gets to arrive before the schema is asked for, and pause after a pull
/// that has failed.
pub(super) const DELAY: Duration = Duration::from_secs(60);
/// As [`DELAY`], for a node that less than [`DELAY`] ago has joined, or could not yet take what
/// another node sent; and for a version that a node which is no member yet hears of.
pub(super) const EARLY_DELAY: Duration = Duration::from_secs(1);

/// The version of a schema.
pub(super) type Version = [u8; 16];

/// Another node that is alive, with its schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Neighbour {
    pub address: SocketAddr,
    /// The version of the schema that the peer tells.
    pub version: Version,
    /// The peer speaks the messaging version of this node and is of the same major version: schemas
    /// are exchanged with no others.
    pub exchanges: bool,
}

/// The versions that neighbours have.
#[derive(Debug)]
pub(super) struct Pulls {
    /// When this node joined, or [`Pulls::hurry`] was called last; all times are on the caller's
    /// monotonic clock.
    hurried: Duration,
    /// True: this node is no member yet. Set before each look.
    pub is_outside: bool,
    versions: BTreeMap<Version, KnownVersion>,
}

#[derive(Debug)]
struct KnownVersion {
    /// The version is not asked for before this time.
    not_before: Duration,
    is_received: bool,
    /// The endpoint that is being asked; None: none is.
    asked: Option<SocketAddr>,
    /// The endpoint that was asked last; None: none was. The next one is another.
    last: Option<SocketAddr>,
}

impl Pulls {
    pub fn new(now: Duration) -> Self {
        Self { hurried: now, is_outside: false, versions: BTreeMap::new() }
    }

    fn delay(&self, now: Duration, early: Duration) -> Duration {
        if now < self.hurried + DELAY { early } else { DELAY }
    }

    /// Looks at the neighbours as they are now, and gives those that are to be asked. For each of
    /// them the caller must call [`Pulls::ended`] later.
    pub fn look(&mut self, now: Duration, own: Version, neighbours: &[Neighbour]) -> Vec<(SocketAddr, Version)> {
        self.versions.retain(|version, known| {
            known.asked.is_some() || neighbours.iter().any(|neighbour| neighbour.version == *version)
        });
        let push_max = if self.is_outside { EARLY_DELAY } else { DELAY };
        let first = now + self.delay(now, Duration::ZERO).min(push_max);
        for neighbour in neighbours {
            let new = || KnownVersion { not_before: first, is_received: false, asked: None, last: None };
            let known = self.versions.entry(neighbour.version).or_insert_with(new);
            known.is_received |= neighbour.version == own;
        }
        let mut to_ask = Vec::new();
        for (version, known) in &mut self.versions {
            if known.is_received || known.asked.is_some() || now < known.not_before {
                continue;
            }
            let have = neighbours.iter().filter(|neighbour| neighbour.version == *version && neighbour.exchanges);
            let mut have: Vec<SocketAddr> = have.map(|neighbour| neighbour.address).collect();
            have.sort();
            let next = have.iter().find(|address| known.last.is_none_or(|last| **address > last));
            known.asked = next.or(have.first()).copied();
            known.last = known.asked.or(known.last);
            to_ask.extend(known.asked.map(|address| (address, *version)));
        }
        to_ask
    }

    /// Called when a pull has ended. `merged`: this node has the rows now.
    pub fn ended(&mut self, now: Duration, version: Version, merged: bool) {
        let delay = self.delay(now, EARLY_DELAY);
        if let Some(known) = self.versions.get_mut(&version) {
            known.asked = None;
            known.is_received |= merged;
            known.not_before = now + delay;
        }
    }

    /// Called when a received schema could not be taken yet, and can soon. Nothing is on its way
    /// then, so it is asked for after [`EARLY_DELAY`].
    pub fn hurry(&mut self, now: Duration) {
        self.hurried = now;
        for known in self.versions.values_mut() {
            known.not_before = known.not_before.min(now + EARLY_DELAY);
        }
    }

    /// The versions that neighbours tell and whose rows this node has.
    pub fn received(&self) -> BTreeSet<Version> {
        self.versions.iter().filter(|(_, known)| known.is_received).map(|(version, _)| *version).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn neighbour(last: u8, version: u8) -> Neighbour {
        Neighbour { address: SocketAddr::from(([127, 0, 0, last], 7000)), version: [version; 16], exchanges: true }
    }

    fn asked(pulls: &[(SocketAddr, Version)]) -> Vec<(String, u8)> {
        pulls.iter().map(|(address, version)| (address.ip().to_string(), version[0])).collect()
    }

    #[test]
    fn a_node_that_has_just_joined_asks_at_once() {
        let mut pulls = Pulls::new(SECOND);
        let neighbours = [neighbour(2, 7), neighbour(3, 7), neighbour(4, 1)];
        assert_eq!(asked(&pulls.look(SECOND, [1; 16], &neighbours)), [("127.0.0.2".to_owned(), 7)]);
        assert!(pulls.look(SECOND * 2, [1; 16], &neighbours).is_empty(), "one at a time");
        assert_eq!(pulls.received(), BTreeSet::from([[1; 16]]));
        // it fails: a second later another one is asked
        pulls.ended(SECOND * 2, [7; 16], false);
        assert!(pulls.look(SECOND * 2, [1; 16], &neighbours).is_empty());
        assert_eq!(asked(&pulls.look(SECOND * 3, [1; 16], &neighbours)), [("127.0.0.3".to_owned(), 7)]);
        pulls.ended(SECOND * 4, [7; 16], true);
        // merged with what is here it may be another version, but it is not asked for again
        assert!(pulls.look(SECOND * 9, [9; 16], &neighbours).is_empty());
        assert_eq!(pulls.received(), BTreeSet::from([[1; 16], [7; 16]]));
    }

    #[test]
    fn later_a_push_has_time_to_come() {
        let mut pulls = Pulls::new(Duration::ZERO);
        let at = |seconds: u64| Duration::from_secs(seconds);
        let neighbours = [neighbour(2, 7)];
        assert!(pulls.look(at(100), [1; 16], &neighbours).is_empty());
        assert!(pulls.look(at(159), [1; 16], &neighbours).is_empty());
        assert_eq!(pulls.look(at(160), [1; 16], &neighbours).len(), 1);
        pulls.ended(at(161), [7; 16], false);
        assert!(pulls.look(at(220), [1; 16], &neighbours).is_empty());
        assert_eq!(pulls.look(at(221), [1; 16], &neighbours).len(), 1);
        pulls.ended(at(222), [7; 16], true);
        // another change, whose push comes in time
        let neighbours = [neighbour(2, 8)];
        assert!(pulls.look(at(300), [7; 16], &neighbours).is_empty());
        assert!(pulls.look(at(301), [8; 16], &neighbours).is_empty());
        assert!(pulls.look(at(400), [8; 16], &neighbours).is_empty());
    }

    #[test]
    fn a_node_that_is_no_member_yet_asks_soon() {
        let mut pulls = Pulls::new(Duration::ZERO);
        let at = |seconds: u64| Duration::from_secs(seconds);
        pulls.is_outside = true;
        let neighbours = [neighbour(2, 7)];
        assert!(pulls.look(at(100), [1; 16], &neighbours).is_empty(), "a push may be on its way");
        assert_eq!(pulls.look(at(101), [1; 16], &neighbours).len(), 1);
        // a neighbour that does not give it is not asked each second
        pulls.ended(at(102), [7; 16], false);
        assert!(pulls.look(at(161), [1; 16], &neighbours).is_empty());
        assert_eq!(pulls.look(at(162), [1; 16], &neighbours).len(), 1);
    }

    #[test]
    fn what_could_not_be_taken_yet_is_asked_for_soon() {
        let mut pulls = Pulls::new(Duration::ZERO);
        let at = |seconds: u64| Duration::from_secs(seconds);
        let mut neighbours = vec![neighbour(2, 7)];
        assert!(pulls.look(at(100), [1; 16], &neighbours).is_empty());
        pulls.hurry(at(102));
        assert!(pulls.look(at(102), [1; 16], &neighbours).is_empty());
        assert_eq!(pulls.look(at(103), [1; 16], &neighbours).len(), 1);
        pulls.ended(at(103), [7; 16], false);
        assert_eq!(pulls.look(at(104), [1; 16], &neighbours).len(), 1);
        // what the peer tells of only after its push was refused
        neighbours.push(neighbour(3, 8));
        assert_eq!(asked(&pulls.look(at(105), [1; 16], &neighbours)), [("127.0.0.3".to_owned(), 8)]);
    }

    #[test]
    fn nobody_is_asked_who_does_not_exchange() {
        let mut pulls = Pulls::new(Duration::ZERO);
        let other = Neighbour { exchanges: false, ..neighbour(2, 7) };
        assert!(pulls.look(SECOND, [1; 16], std::slice::from_ref(&other)).is_empty());
        assert_eq!(asked(&pulls.look(SECOND, [1; 16], &[other, neighbour(3, 7)])), [("127.0.0.3".to_owned(), 7)]);
        // who is gone while it is asked is not waited for twice
        assert!(pulls.look(SECOND, [1; 16], &[]).is_empty());
        pulls.ended(SECOND, [7; 16], false);
        assert!(pulls.look(SECOND, [1; 16], &[]).is_empty());
        assert!(pulls.received().is_empty());
    }
}
