//! Defects that a test switches on, to see that the judge of each defect finds it.
//!
//! Only a build with the feature `defects` has them: `cargo test -p sim --features defects --test
//! mutations`. In every other build [`is_on`] is false when the program is compiled, and no code
//! of a defect is compiled; the program itself does not compile with the feature.
//!
//! A defect that only an order of threads brings to light is found by the tests of threads
//! (`crates/storage/tests/threads.rs`): `cargo test -p storage --features shuttle --test threads`.
//!
//! A defect is of the process: all machines of a simulation have it, and tests with different
//! defects run one after the other.

/// A defect, and the judge of the simulator (or `threads`) that has to find it.
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
    /// The queue of a link takes more than its room, even if nothing is left of the reserve
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
    /// The log's writer releases the writers that wait before it has stored the new position
    /// (`threads`).
    ReleaseFirst,
    /// A writer that has put itself on the list of waiters does not look at the position again
    /// (`threads`).
    NoSecondLook,
    /// A sync of the log counts as if it covered records that were appended meanwhile (`threads`).
    AdvanceTooFar,
    /// A request for a flush wakes the flusher before it is in the queue (`threads`).
    WakeFirst,
    /// The position of the log is taken before the doors of the memtables that are frozen there
    /// are entered (`threads`).
    CutBeforeDoors,
    /// Memtables are frozen after their doors were left again (`threads`).
    FreezeLate,
    /// A writer that needs memory begins to listen for a flush only after it has looked how much
    /// memory is in use (`threads`).
    ListenLate,
    /// A wake that comes while a background task runs a step is forgotten (`threads`).
    ForgetWake,
    /// A pool's thread is told of a job before the job is in the queue (`threads`).
    NotifyFirst,
    /// A thread of a pool that has waited for long ends without a look at the queue (`threads`).
    LeaveJobs,
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
