//! MurmurHash3 x64 128-bit as it was published, with several seeds in one pass, over bytes that
//! come in pieces.
//!
//! The tail is not sign-extended, unlike in [`murmur3`](super::murmur3): Merkle trees of repair
//! hash with Guava's `Hashing.murmur3_128`. The seeds differ in their states alone, so that what a
//! block contributes is computed once for all of them.

use super::{finish, mix1, mix2};

const BLOCK: usize = 16;
/// Bytes that are gathered before their blocks are hashed: pieces are mostly a few bytes.
const GATHERED_MAX: usize = 1024;

/// Hashes of the bytes that it is given, one for each seed.
#[derive(Clone)]
pub struct StandardMurmur3<const N: usize> {
    seeds: [u64; N],
    states: [(u64, u64); N],
    /// The first `waiting` bytes are not hashed yet.
    gathered: Box<[u8; GATHERED_MAX]>,
    waiting: usize,
    length: u64,
}

const _: () = assert!(GATHERED_MAX.is_multiple_of(BLOCK), "what is gathered is hashed block by block");

impl<const N: usize> StandardMurmur3<N> {
    /// Of nothing yet.
    pub fn new(seeds: [u64; N]) -> Self {
        let states = seeds.map(|seed| (seed, seed));
        Self { seeds, states, gathered: Box::new([0; GATHERED_MAX]), waiting: 0, length: 0 }
    }

    /// Takes in a piece.
    #[inline]
    pub fn update(&mut self, piece: &[u8]) {
        self.length += piece.len() as u64;
        let end = self.waiting + piece.len();
        match self.gathered.get_mut(self.waiting..end) {
            Some(room) => {
                room.copy_from_slice(piece);
                self.waiting = end;
            }
            None => self.hash_with(piece),
        }
    }

    /// Hashes what was gathered and a piece for which there is no room behind it.
    #[cold]
    fn hash_with(&mut self, piece: &[u8]) {
        let whole = self.waiting.next_multiple_of(BLOCK);
        let (completes, rest) = piece.split_at(whole - self.waiting);
        self.gathered[self.waiting..whole].copy_from_slice(completes);
        hash_blocks(&mut self.states, &self.gathered[..whole]);
        let tail = hash_blocks(&mut self.states, rest);
        self.gathered[..tail.len()].copy_from_slice(tail);
        self.waiting = tail.len();
    }

    /// The hashes in the order of the seeds. Begins again with nothing.
    pub fn finish(&mut self) -> [[u8; 16]; N] {
        let mut states = std::mem::replace(&mut self.states, self.seeds.map(|seed| (seed, seed)));
        let tail = hash_blocks(&mut states, &self.gathered[..self.waiting]);
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        let (low, high) = tail.split_at(tail.len().min(8));
        let (k1, k2, length) = (mix1(word(low)), mix2(word(high)), self.length);
        (self.waiting, self.length) = (0, 0);
        states.map(|(h1, h2)| {
            let (mut h1, mut h2) = (h1 ^ k1 ^ length, h2 ^ k2 ^ length);
            h1 = h1.wrapping_add(h2);
            h2 = h2.wrapping_add(h1);
            (h1, h2) = (finish(h1), finish(h2));
            h1 = h1.wrapping_add(h2);
            h2 = h2.wrapping_add(h1);
            let mut hash = [0; 16];
            hash[..8].copy_from_slice(&h1.to_le_bytes());
            hash[8..].copy_from_slice(&h2.to_le_bytes());
            hash
        })
    }
}

/// Hashes whole blocks, and gives the bytes behind them.
fn hash_blocks<'a, const N: usize>(states: &mut [(u64, u64); N], bytes: &'a [u8]) -> &'a [u8] {
    let (blocks, tail) = bytes.as_chunks::<BLOCK>();
    for block in blocks {
        let (low, high) = block.split_at(8);
        let k1 = mix1(u64::from_le_bytes(low.try_into().expect("half of sixteen bytes")));
        let k2 = mix2(u64::from_le_bytes(high.try_into().expect("half of sixteen bytes")));
        for (h1, h2) in &mut *states {
            *h1 = (*h1 ^ k1).rotate_left(27).wrapping_add(*h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
            *h2 = (*h2 ^ k2).rotate_left(31).wrapping_add(*h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
        }
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(hashes: [[u8; 16]; 2]) -> String {
        hashes.concat().iter().map(|byte| format!("{byte:02X}")).collect()
    }

    #[test]
    fn a_hash_of_guava() {
        let mut hash = StandardMurmur3::new([1000, 2000]);
        for _ in 0..2 {
            hash.update(b"hel");
            hash.update(b"lo");
            assert_eq!(
                hex(hash.finish()),
                "0C96BEE4BDA09B2D04B7A2EFF3028FC7888D2416C865E4809E747437CFFFA844",
                "the second time too, from the beginning"
            );
        }
    }

    #[test]
    fn pieces_do_not_matter() {
        let bytes: Vec<u8> = (0..5000u32).map(|at| (at * 37 % 251) as u8).collect();
        for length in [0, 1, 15, 16, 17, 1023, 1024, 1025, 5000] {
            let mut whole = StandardMurmur3::new([0]);
            whole.update(&bytes[..length]);
            let whole = whole.finish();
            for piece in [1, 7, 16, 100, 1023, 1024, 1500] {
                let mut pieces = StandardMurmur3::new([0]);
                bytes[..length].chunks(piece).for_each(|piece| pieces.update(piece));
                assert_eq!(pieces.finish(), whole, "{length} bytes in pieces of {piece}");
            }
        }
    }

    #[test]
    fn without_a_high_bit_in_the_tail_both_forms_agree() {
        for length in [0, 5, 16, 21, 31, 40] {
            let bytes = vec![0x41; length];
            let (h1, h2) = crate::murmur3(&bytes);
            let mut hash = StandardMurmur3::new([0]);
            hash.update(&bytes);
            let [both] = hash.finish();
            assert_eq!(both[..8], h1.to_le_bytes());
            assert_eq!(both[8..], h2.to_le_bytes());
        }
    }
}
