//! Defects that a test switches on, to see that the judge that is there for each of them finds it.
//!
//! Only a build with the feature `defects` has them: `cargo test -p sim --features defects --test
//! mutations`. In every other build [`is_on`] is false when the program is compiled, and nothing of
//! a defect is left; the program itself does not compile with the feature.
//!
//! A defect is of the process: all machines of a simulation have it, and tests with different
//! defects run one after the other.

/// A defect, and the judge of the simulator that has to find it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Defect {
    /// A replica acknowledges a write before the commit log is durable (`acknowledged`).
    NoWait = 1,
    /// A replica acknowledges the deletion of a partition and forgets it (`invented`).
    ForgetDeletion,
    /// A read asks one replica, whatever its level (`monotonic`).
    ReadOne,
    /// A replica of Paxos accepts what its promises forbid (`linearizable`).
    BreakPromise,
    /// The leader of a counter applies an increment twice (`counted`).
    CountTwice,
    /// The coordinator of a logged batch keeps no record, and sends a part of it (`atomic`).
    SplitBatch,
    /// The queue of a link takes what is beyond its room, whether the reserve has any left
    /// (`bounds`).
    NoBound,
    /// A node does not take the schema changes of others (`agreement`).
    DeafToSchema,
    /// A node forgets one of the values that messages of gossip bring (`converged`).
    DeafToGossip,
    /// No hints are kept, and a repair streams nothing (`equal`).
    NoHealing,
    /// The schedule of repairs forgets one of the ranges of a node (`repaired`).
    LeaveOut,
}

/// Whether this build can have defects.
pub const ARE_COMPILED: bool = cfg!(feature = "defects");

/// Whether a defect is switched on.
#[cfg(not(feature = "defects"))]
#[inline(always)]
pub const fn is_on(_: Defect) -> bool {
    false
}

#[cfg(feature = "defects")]
pub use switch::{is_on, set};

#[cfg(feature = "defects")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Defect;

    /// The number of the defect that is switched on; 0: none is.
    static SWITCHED_ON: AtomicU8 = AtomicU8::new(0);

    /// Whether a defect is switched on.
    pub fn is_on(defect: Defect) -> bool {
        SWITCHED_ON.load(Ordering::Relaxed) == defect as u8
    }

    /// Switches one defect on, and every other off.
    pub fn set(defect: Option<Defect>) {
        SWITCHED_ON.store(defect.map_or(0, |defect| defect as u8), Ordering::Relaxed);
    }
}
