//! Seeded ChaCha streams.

use std::sync::Mutex;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::lock;
use crate::Random;

/// A stream of numbers that depends only on the seed and the stream's number.
pub struct SimRandom(Mutex<ChaCha8Rng>);

impl SimRandom {
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        SimRandom(Mutex::new(generator))
    }

    /// Draws true with a probability of `percent` in 100.
    pub fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

impl Random for SimRandom {
    fn next_u64(&self) -> u64 {
        lock(&self.0).next_u64()
    }

    fn fill(&self, buffer: &mut [u8]) {
        lock(&self.0).fill_bytes(buffer);
    }
}
