//! A running digest of all events (FNV-1a), to compare two runs of a seed.

use std::sync::Mutex;

use super::lock;

pub(super) struct Trace(Mutex<(u64, u64)>);

impl Default for Trace {
    fn default() -> Self {
        Trace(Mutex::new((0xcbf2_9ce4_8422_2325, 0)))
    }
}

impl Trace {
    pub(super) fn record(&self, what: &str, numbers: &[u64]) {
        let mut state = lock(&self.0);
        let bytes = what.bytes().chain(numbers.iter().flat_map(|number| number.to_le_bytes()));
        state.0 = bytes.fold(state.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        state.1 += 1;
    }

    pub(super) fn digest(&self) -> (u64, u64) {
        *lock(&self.0)
    }
}
