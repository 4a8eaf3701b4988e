//! Clocks and ids that functions ask for.
//!
//! The coordinator of a statement implements them. Constants and pure functions are evaluated with
//! [`NoSources`].

/// Clocks and ids for functions like `now()`.
pub(crate) trait Sources {
    /// The present time, in microseconds since 1970.
    fn micros(&self) -> i64;
    /// A new time UUID.
    fn timeuuid(&self) -> [u8; 16];
    /// A new random UUID.
    fn uuid(&self) -> [u8; 16];
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
