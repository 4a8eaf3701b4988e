//! Turns of nodes in the schedule of repairs: each node tells by gossip how it stands, and the
//! node with the most urgent repair goes first.
//!
//! The value stands in the application state X8 ([`STATE`]), which Cassandra passes on and does not
//! read: `helenus repair=PHASE since=SECONDS`. Its first word also tells that the node is no
//! Cassandra (docs/notes/0016).
//!
//! 1. A node that has something to repair, and whose replicas are up, tells `due` with the time by
//!    which it should be done.
//! 2. Where nobody stands in its way ([`may_claim`]) it tells `claim`, waits until gossip has
//!    reached everybody, and looks again ([`may_keep`]): of two that have claimed at the same
//!    moment the later one by (time, host id) goes back.
//! 3. It tells `run`, repairs, and looks again before each repair.
//!
//! Invariant: as long as gossip reaches everybody within [`SETTLE`], no more nodes run at a time
//! than the bound, and none of two that hold a range together unless that is allowed. A node that
//! does not hear of another one for longer may run beside it until one of them looks again. Both
//! then only do work twice; nothing is lost.

use std::time::Duration;

use internode::payload::gossip::ApplicationState;

/// The state of gossip in which nodes tell of their schedules.
///
/// States go over the wire by their numbers, and Cassandra cannot read a message with a number that
/// its version does not have: every state in the message is lost with it. X8 has the last number of
/// Cassandra 4.0, where it is named X10. X9 and X10 have numbers that came with 4.1 and 5.0.
pub const STATE: ApplicationState = ApplicationState::X8;

/// The last number of a state that Cassandra 4.0 has.
const STATE_NUMBER_MAX: u8 = 28;

const _: () = assert!(STATE as u8 <= STATE_NUMBER_MAX, "Cassandra 4.0 reads a message with this state");

/// Gossip reaches all nodes of a ring within this time (docs/notes/0014).
pub const SETTLE: Duration = Duration::from_secs(20);

const NAME: &str = "helenus";

/// How a node stands in the schedule. The order is that in which nodes stand in each other's way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// The node repairs. `since`: when it claimed its turn.
    Run,
    /// The node is about to repair. `since`: when it claimed its turn.
    Claim,
    /// The node has something to repair. `since`: when that should be done.
    Due,
    /// Nothing is to be repaired now.
    Rest,
    /// The node has no schedule.
    Off,
}

impl Phase {
    const ALL: [(Self, &'static str); 5] =
        [(Self::Run, "run"), (Self::Claim, "claim"), (Self::Due, "due"), (Self::Rest, "rest"), (Self::Off, "off")];

    /// The name by which nodes and operators are told.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(phase, _)| *phase == self).map_or("", |(_, name)| name)
    }
}

/// The words of a node on its schedule. The order is that of turns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ScheduleStatus {
    /// The phase of the node.
    pub phase: Phase,
    /// A time that depends on the phase, seconds since 1970.
    pub since: i64,
}

impl ScheduleStatus {
    /// The value for gossip.
    pub fn text(self) -> String {
        format!("{NAME} repair={} since={}", self.phase.name(), self.since)
    }

    /// Reads a value of another node. None: the node is a Cassandra, or the value is unknown here.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        if words.next() != Some(NAME) {
            return None;
        }
        let mut status = Self { phase: Phase::Off, since: 0 };
        for word in words {
            match word.split_once('=') {
                Some(("repair", name)) => {
                    status.phase = Phase::ALL.iter().find(|(_, known)| *known == name).map(|(phase, _)| *phase)?;
                }
                Some(("since", since)) => status.since = since.parse().ok()?,
                // of a later version
                _ => {}
            }
        }
        Some(status)
    }
}

/// Another node that is up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Other {
    /// The host id of the node.
    pub id: [u8; 16],
    /// The schedule that the node tells.
    pub status: ScheduleStatus,
    /// The other node may not repair while this node does, because both hold a range.
    pub excludes: bool,
}

/// Whether a node that is due may claim a turn: at most `bound` nodes run at a time.
pub fn may_claim(own: ([u8; 16], ScheduleStatus), others: &[Other], bound: usize) -> bool {
    has_room(own, others, bound)
}

/// Whether a node that has claimed a turn, or runs, keeps it.
pub fn may_keep(own: ([u8; 16], ScheduleStatus), others: &[Other], bound: usize) -> bool {
    let earlier: Vec<Other> = others.iter().filter(|other| other.status.phase <= Phase::Claim).copied().collect();
    has_room(own, &earlier, bound)
}

fn has_room((id, status): ([u8; 16], ScheduleStatus), others: &[Other], bound: usize) -> bool {
    let is_before = |other: &&Other| other.status.phase <= Phase::Due && (other.status, other.id) < (status, id);
    let before = others.iter().filter(is_before);
    before.clone().count() < bound.max(1) && !before.clone().any(|other| other.excludes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(number: u8, phase: Phase, since: i64) -> Other {
        Other { id: [number; 16], status: ScheduleStatus { phase, since }, excludes: false }
    }

    #[test]
    fn values_come_back_and_those_of_others_are_none() {
        for (phase, name) in Phase::ALL {
            let status = ScheduleStatus { phase, since: 1_700_000_000 };
            assert_eq!(status.text(), format!("helenus repair={name} since=1700000000"));
            assert_eq!(ScheduleStatus::parse(&status.text()), Some(status));
        }
        assert_eq!(
            ScheduleStatus::parse("helenus colour=red repair=run since=7 x"),
            Some(ScheduleStatus { phase: Phase::Run, since: 7 })
        );
        for foreign in ["", "cassandra", "helenus repair=fast", "helenus repair=run since=x", "helenusx repair=run"] {
            assert_eq!(ScheduleStatus::parse(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn the_most_urgent_goes_first() {
        let own = ([5; 16], ScheduleStatus { phase: Phase::Due, since: 100 });
        assert!(may_claim(own, &[], 1));
        for (others, bound, expected) in [
            (vec![other(1, Phase::Rest, 0), other(2, Phase::Off, 0)], 1, true),
            (vec![other(1, Phase::Due, 101)], 1, true),
            (vec![other(1, Phase::Due, 99)], 1, false),
            (vec![other(1, Phase::Due, 100)], 1, false),
            (vec![other(9, Phase::Due, 100)], 1, true),
            (vec![other(9, Phase::Run, 500)], 1, false),
            (vec![other(9, Phase::Claim, 500)], 1, false),
            (vec![other(9, Phase::Run, 500)], 2, true),
            (vec![other(9, Phase::Run, 500), other(1, Phase::Due, 99)], 2, false),
            (vec![Other { excludes: true, ..other(9, Phase::Run, 500) }], 3, false),
            (vec![Other { excludes: true, ..other(9, Phase::Due, 500) }], 3, true),
        ] {
            assert_eq!(may_claim(own, &others, bound), expected, "{others:?}, {bound}");
        }
    }

    #[test]
    fn of_two_claims_one_goes_back() {
        let claims = [[1u8; 16], [2; 16]].map(|id| (id, ScheduleStatus { phase: Phase::Claim, since: 7 }));
        let seen_by = |own: usize| {
            let (id, status) = claims[1 - own];
            may_keep(claims[own], &[Other { id, status, excludes: false }], 1)
        };
        assert!(seen_by(0) && !seen_by(1));
        // one that runs stays before one that claims
        let runs = ([9; 16], ScheduleStatus { phase: Phase::Run, since: 50 });
        assert!(may_keep(runs, &[other(1, Phase::Claim, 7), other(2, Phase::Due, 1)], 1));
        assert!(!may_keep(runs, &[other(1, Phase::Run, 49)], 1));
    }
}
