//! Randomness: ids, jitter, tokens. Never a source of order that a user could see.

/// A source of random numbers, shared by all threads.
pub trait Random: Send + Sync {
    /// A uniformly distributed number.
    fn next_u64(&self) -> u64;

    /// Fills `buffer` with random bytes.
    fn fill(&self, buffer: &mut [u8]);

    /// A number below `bound` (0 when `bound` is 0); the bias is below 2^-32 for bounds under 2^32.
    fn below(&self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }
}
