//! `Filter.db`: the Bloom filter that says which partitions are surely absent.
//!
//! `i32` number of hashes, `i32` number of 64-bit words, then the bits: bit i is `byte[i / 8] >> (i
//! % 8) & 1`. Bit number j of a key is |(h1 + j·h0) mod capacity|, with the remainder's sign that
//! of the dividend. Before `na` the bytes of each word stand in the other order. Agrees with
//! `org.apache.cassandra.utils.{BloomFilter,BloomFilterSerializer,BloomCalculations}`.

use bytes::Bytes;
use stdx::{Cursor, put_u32};

use crate::error::Malformed;
use crate::version::Version;

/// At or above this false-positive chance there is no filter.
const NO_FILTER: f64 = 1.0;
/// Chances at or above this get the odd pair of Cassandra: two hashes on one bit.
const COARSEST: f64 = 0.393;
/// Bits a key, at most.
const BITS_MAX: usize = 20;
/// Hashes that the table knows, for 2 to [`BITS_MAX`] bits a key.
const HASHES_MAX: [usize; BITS_MAX + 1] = [0, 0, 2, 3, 4, 5, 6, 6, 7, 8, 8, 8, 8, 9, 10, 10, 11, 12, 12, 13, 14];
/// More hashes than this are a sign of corruption.
const HASHES_READ_MAX: u32 = 256;

// a filter that is written is read
const _: () = assert!(HASHES_MAX[BITS_MAX] <= HASHES_READ_MAX as usize);

/// Added to the bits of every filter.
const EXCESS_BITS: u64 = 20;

/// How large a filter is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilterSpec {
    /// Hashes a key.
    pub hashes: u32,
    /// Bits a key.
    pub bits: u32,
}

impl FilterSpec {
    /// For a table's `bloom_filter_fp_chance`; None: no filter is wanted. Chances below what 20
    /// bits give get 20 bits.
    pub fn for_chance(chance: f64) -> Option<Self> {
        if chance >= NO_FILTER {
            return None;
        }
        if chance >= COARSEST {
            return Some(Self { hashes: 2, bits: 1 });
        }
        let mut bits = 2;
        while bits < BITS_MAX && probability(bits, best_hashes(bits)) > chance {
            bits += 1;
        }
        let mut hashes = best_hashes(bits);
        while hashes > 1 && probability(bits, hashes - 1) <= chance {
            hashes -= 1;
        }
        Some(Self { hashes: hashes as u32, bits: bits as u32 })
    }

    /// Words of 64 bits for a number of keys.
    pub fn words(&self, keys: u64) -> u64 {
        (keys * u64::from(self.bits) + EXCESS_BITS).div_ceil(64)
    }
}

/// Chance of a false positive, to three significant digits as in the table of the origin.
fn probability(bits: usize, hashes: usize) -> f64 {
    if bits == 5 && hashes == 3 {
        return 0.092;
    }
    let exact = (1.0 - (-(hashes as f64) / bits as f64).exp()).powi(hashes as i32);
    let scale = 10f64.powi(2 - exact.log10().floor() as i32);
    (exact * scale).round() / scale
}

fn best_hashes(bits: usize) -> usize {
    let mut best = 1;
    for hashes in 2..=HASHES_MAX[bits] {
        if probability(bits, hashes) < probability(bits, best) {
            best = hashes;
        }
    }
    best
}

/// Both halves of a key's hash: computed once a read, used for every SSTable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyHash {
    /// First half; the token, but for one value.
    pub h0: i64,
    /// Second half.
    pub h1: i64,
}

impl KeyHash {
    /// The hash of a serialized key.
    pub fn of(key: &[u8]) -> Self {
        let (h0, h1) = stdx::murmur3(key);
        Self { h0, h1 }
    }

    /// The byte of the hash that the partition index keeps.
    pub fn index_byte(&self) -> u8 {
        self.h1 as u8
    }
}

fn bit_indexes(hash: KeyHash, hashes: u32, capacity: i64) -> impl Iterator<Item = u64> {
    let mut base = hash.h1;
    (0..hashes).map(move |_| {
        let index = base.wrapping_rem(capacity).unsigned_abs();
        base = base.wrapping_add(hash.h0);
        index
    })
}

/// A filter over the bytes of its file.
#[derive(Clone, Debug)]
pub struct Filter {
    hashes: u32,
    capacity: i64,
    bits: Bytes,
    /// Turns the index of a byte into where it is in its word.
    swap: usize,
}

impl Filter {
    /// Reads the head; the bits stay where they are.
    pub fn open(file: &Bytes, version: Version) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(file);
        let (hashes, words) = (cursor.u32()?, cursor.u32()?);
        let bits = cursor.take(words as usize * 8)?;
        if words == 0 || hashes == 0 || hashes > HASHES_READ_MAX || !cursor.is_empty() {
            let what = format!("a filter of {words} words and {hashes} hashes in {} bytes", file.len());
            return Err(Malformed::at(0, what));
        }
        let swap = if version.has_swapped_filter_words() { 7 } else { 0 };
        Ok(Self { hashes, capacity: i64::from(words) * 64, bits: file.slice_ref(bits), swap })
    }

    /// False: the key is surely not here.
    #[inline]
    pub fn may_contain(&self, hash: KeyHash) -> bool {
        bit_indexes(hash, self.hashes, self.capacity)
            .all(|index| self.bits[(index >> 3) as usize ^ self.swap] & (1 << (index & 7)) != 0)
    }

    /// Bytes of the bits.
    pub fn memory_size(&self) -> usize {
        self.bits.len()
    }
}

/// Collects keys.
#[derive(Debug)]
pub struct FilterBuilder {
    hashes: u32,
    capacity: i64,
    bits: Vec<u8>,
}

impl FilterBuilder {
    /// For about so many keys.
    pub fn new(spec: FilterSpec, keys: u64) -> Self {
        let words = spec.words(keys).min(i32::MAX as u64);
        Self { hashes: spec.hashes, capacity: words as i64 * 64, bits: vec![0; words as usize * 8] }
    }

    /// Adds a key.
    pub fn add(&mut self, hash: KeyHash) {
        for index in bit_indexes(hash, self.hashes, self.capacity) {
            self.bits[(index >> 3) as usize] |= 1 << (index & 7);
        }
    }

    /// The file.
    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.bits.len());
        put_u32(&mut out, self.hashes);
        put_u32(&mut out, (self.bits.len() / 8) as u32);
        out.extend_from_slice(&self.bits);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_cassandra() {
        let cases = [
            (0.5, 2, 1),
            (0.393, 2, 1),
            (0.3, 1, 3),
            (0.1, 3, 5),
            (0.05, 3, 7),
            (0.01, 5, 10),
            (0.001, 7, 15),
            (0.0001, 10, 20),
        ];
        for (chance, hashes, bits) in cases {
            assert_eq!(FilterSpec::for_chance(chance), Some(FilterSpec { hashes, bits }), "{chance}");
        }
        assert_eq!(FilterSpec::for_chance(1.0), None);
    }

    #[test]
    fn holds_what_was_added() {
        let spec = FilterSpec::for_chance(0.01).unwrap();
        let mut builder = FilterBuilder::new(spec, 1000);
        for id in 0..1000u32 {
            builder.add(KeyHash::of(&id.to_be_bytes()));
        }
        let file = builder.finish();
        let filter = Filter::open(&file.clone().into(), Version::DA).unwrap();
        let mut swapped = file;
        swapped[8..].chunks_exact_mut(8).for_each(<[u8]>::reverse);
        let older = Filter::open(&swapped.into(), Version::MA).unwrap();
        assert!(
            (0..21_000u32)
                .map(|id| KeyHash::of(&id.to_be_bytes()))
                .all(|hash| { filter.may_contain(hash) == older.may_contain(hash) })
        );
        assert!((0..1000u32).all(|id| filter.may_contain(KeyHash::of(&id.to_be_bytes()))));
        let wrong = (1000..21_000u32).filter(|id| filter.may_contain(KeyHash::of(&id.to_be_bytes()))).count();
        assert!(wrong < 400, "{wrong} of 20000");
    }
}
