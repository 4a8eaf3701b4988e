//! New ballots: later than those that this node has made, and than those that it was told of.

use internode::payload::paxos::{Ballot, BallotFlag};
use types::Consistency;

use crate::node::Node;

impl Node {
    /// A ballot for a statement at a serial level, not before `floor` (microseconds).
    ///
    /// The clock is that of write timestamps, so a conditional write is later than an ordinary
    /// write that this node acknowledged before. A floor that is ahead of the clock does not set
    /// the clock: its node's clock is wrong, and other partitions have no part in it. Two ballots
    /// of one microsecond differ in their random bytes.
    pub(super) fn next_ballot(&self, floor: i64, serial: Consistency) -> Ballot {
        let flag = match serial {
            Consistency::LocalSerial => BallotFlag::Local,
            _ => BallotFlag::Global,
        };
        let mut random = [0; 8];
        self.env.random.fill(&mut random);
        Ballot::new(self.clock.next_micros().max(floor), flag, u64::from_be_bytes(random))
    }
}
