//! Clocks and ids that functions ask for.
//!
//! The coordinator of a statement implements them. Constants and pure functions are evaluated with
//! [`NoSources`], the changes of a conditional transaction with [`TransactionSources`].

use std::cell::Cell;

/// The latest second since 1970 at which data with a TTL may end: 2106-02-07T06:28:13Z.
pub const EXPIRATION_MAX: u32 = u32::MAX - 2;
/// The latest one that nodes of Cassandra 4 understand: 2038-01-19T03:14:06Z.
pub const EXPIRATION_MAX_CASSANDRA_4: u32 = i32::MAX as u32 - 1;

/// Clocks and ids for functions like `now()`.
pub(crate) trait Sources {
    /// The present time, in microseconds since 1970.
    fn micros(&self) -> i64;
    /// A new time UUID.
    fn timeuuid(&self) -> [u8; 16];
    /// A new random UUID.
    fn uuid(&self) -> [u8; 16];
    /// The place of the next list element in a conditional transaction; None: the statement is in
    /// none, and a new time UUID is the place.
    fn element_place(&self) -> Option<ElementPlace> {
        None
    }
    /// The latest second since 1970 at which data with a TTL may end.
    fn expiration_max(&self) -> u32 {
        EXPIRATION_MAX
    }
}

/// The place of a list element that a conditional transaction writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ElementPlace {
    /// The time of the transaction, in microseconds since 1970.
    pub micros: i64,
    /// Places that the transaction has given before.
    pub nth: u32,
}

/// The sources of the changes of a conditional transaction. The elements that it adds to lists are
/// placed by the time of its ballot, not by a clock: ballots ascend from one transaction of a
/// partition to the next whatever the clocks of coordinators do, so what is appended later stands
/// later. Agrees with `CQL3CasRequest.CASUpdateParameters`.
pub(crate) struct TransactionSources<'s> {
    sources: &'s dyn Sources,
    micros: i64,
    given: Cell<u32>,
}

impl<'s> TransactionSources<'s> {
    /// Sources of a transaction with this timestamp, microseconds since 1970.
    pub fn new(sources: &'s dyn Sources, micros: i64) -> Self {
        Self { sources, micros, given: Cell::new(0) }
    }
}

impl Sources for TransactionSources<'_> {
    fn micros(&self) -> i64 {
        self.sources.micros()
    }
    fn timeuuid(&self) -> [u8; 16] {
        self.sources.timeuuid()
    }
    fn uuid(&self) -> [u8; 16] {
        self.sources.uuid()
    }
    fn element_place(&self) -> Option<ElementPlace> {
        let nth = self.given.get();
        self.given.set(nth.saturating_add(1));
        Some(ElementPlace { micros: self.micros, nth })
    }
    fn expiration_max(&self) -> u32 {
        self.sources.expiration_max()
    }
}

/// The sources of terms that need none: constants and pure functions.
pub(crate) struct NoSources;

impl Sources for NoSources {
    fn micros(&self) -> i64 {
        0
    }
    fn timeuuid(&self) -> [u8; 16] {
        [0; 16]
    }
    fn uuid(&self) -> [u8; 16] {
        [0; 16]
    }
}
