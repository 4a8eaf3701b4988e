//! Clocks and ids that functions ask for.
//!
//! The coordinator of a statement has them; constants and pure functions are evaluated without.

/// Clocks and ids for functions like `now()`.
pub(crate) trait Sources {
    /// Microseconds since 1970.
    fn micros(&self) -> i64;
    /// A new time UUID.
    fn timeuuid(&self) -> [u8; 16];
    /// A new random UUID.
    fn uuid(&self) -> [u8; 16];
}

/// For what asks no clock: constants, pure functions.
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
