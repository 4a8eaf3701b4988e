//! Each thread's cryptographic generator, seeded by the kernel.

use rand::Rng;

use crate::Random;

pub(super) struct ThreadRandom;

impl Random for ThreadRandom {
    fn next_u64(&self) -> u64 {
        rand::rng().next_u64()
    }

    fn fill(&self, buffer: &mut [u8]) {
        rand::rng().fill_bytes(buffer);
    }
}
