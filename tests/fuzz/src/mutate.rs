//! Damage by a seed: cut, flipped, spliced, with lengths where there were none.

/// Numbers from a seed.
pub struct Random(u64);

impl Random {
    /// Of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

/// Integers that decoders stumble over.
const EXTREMES: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, i64::MAX as u64, u64::MAX];

/// A damaged copy; `other` gives what is spliced in. One to four wounds.
pub fn mutate(random: &mut Random, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(4) {
        damage(random, &mut bytes, other);
    }
    bytes
}

fn damage(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(bytes.len() + 1);
    match random.below(7) {
        0 => bytes.truncate(at),
        1 | 2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        3 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.below(256) as u8;
            }
        }
        4 => {
            let value = EXTREMES[random.below(EXTREMES.len())].to_be_bytes();
            let width = [1, 2, 4, 8][random.below(4)];
            let end = (at + width).min(bytes.len());
            bytes.splice(at..end, value[8 - width..].iter().copied());
        }
        5 => {
            let end = (at + 1 + random.below(16)).min(bytes.len());
            bytes.drain(at.min(end)..end);
        }
        _ => {
            let from = random.below(other.len() + 1);
            let to = (from + 1 + random.below(64)).min(other.len());
            bytes.splice(at..at, other[from.min(to)..to].iter().copied());
        }
    }
}
