//! Sketch of how many distinct partition keys there are: HyperLogLog++ with p = 13 and sparse
//! precision 25, fed with 64-bit Murmur2 hashes.
//!
//! Bytes, with LEB128 varints: `i32 -2, varint 13, varint 25`, then sparse: `varint 1, varint
//! count`, each encoded hash as the difference from the one before; dense: `varint 0, varint
//! length`, 32-bit words of six 5-bit registers. Gives the bytes that
//! `com.clearspring.analytics.stream.cardinality.HyperLogLogPlus` gives Cassandra.

/// Registers: 2^13.
const PRECISION: u32 = 13;
const REGISTERS: usize = 1 << PRECISION;
const SPARSE_PRECISION: u32 = 25;
/// Sparse entries from which on registers are used.
const SPARSE_MAX: usize = REGISTERS * 3 / 4;
/// New hashes that are collected before they are merged.
const RECENT_MAX: usize = SPARSE_MAX / 4;
const REGISTERS_PER_WORD: usize = 6;
const REGISTER_BITS: usize = 5;
const WORDS: usize = REGISTERS / REGISTERS_PER_WORD + 1;
const FORMAT: i32 = -2;

/// The sketch. Sparse while small.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cardinality {
    /// Encoded hashes.
    Sparse {
        /// In the order in which they are written.
        merged: Vec<i32>,
        /// Not merged yet.
        recent: Vec<i32>,
    },
    /// Registers in words.
    Dense(Vec<u32>),
}

impl Default for Cardinality {
    fn default() -> Self {
        Self::Sparse { merged: Vec::new(), recent: Vec::new() }
    }
}

fn encode(hash: u64) -> i32 {
    let index = (hash >> (64 - SPARSE_PRECISION)) as u32;
    if index << (32 - SPARSE_PRECISION + PRECISION) != 0 {
        return (index << 1) as i32;
    }
    (((index << 6 | (run_length(hash) ^ 63)) << 1) | 1) as i32
}

/// Leading zeros, plus one, of what follows the register's index.
fn run_length(hash: u64) -> u32 {
    ((hash << PRECISION) | (1 << (PRECISION - 1))).leading_zeros() + 1
}

fn sparse_index(encoded: i32) -> u32 {
    let bits = encoded as u32;
    if bits & 1 == 1 { bits >> 7 } else { bits >> 1 }
}

fn decode_run_length(encoded: i32) -> u32 {
    let bits = encoded as u32;
    if bits & 1 == 1 {
        return (bits >> 1 & 63) ^ 63;
    }
    (bits << (PRECISION + 31 - SPARSE_PRECISION)).leading_zeros() + 1
}

fn update(words: &mut [u32], register: usize, value: u32) {
    let shift = register % REGISTERS_PER_WORD * REGISTER_BITS;
    let word = &mut words[register / REGISTERS_PER_WORD];
    if (*word >> shift) & 31 < value & 31 {
        *word = (*word & !(31 << shift)) | ((value & 31) << shift);
    }
}

impl Cardinality {
    /// Counts a partition key.
    pub fn add(&mut self, key: &[u8]) {
        let hash = murmur2(key);
        match self {
            Self::Dense(words) => update(words, (hash >> (64 - PRECISION)) as usize, run_length(hash)),
            Self::Sparse { recent, .. } => {
                recent.push(encode(hash));
                if recent.len() > RECENT_MAX {
                    self.merge_recent();
                }
            }
        }
    }

    fn merge_recent(&mut self) {
        let Self::Sparse { merged, recent } = self else { return };
        if recent.is_empty() {
            return;
        }
        recent.sort_by_key(|encoded| (sparse_index(*encoded), *encoded));
        recent.dedup_by_key(|encoded| sparse_index(*encoded));
        *merged = merge_sorted(merged, recent);
        recent.clear();
        if merged.len() > SPARSE_MAX {
            self.make_dense();
        }
    }

    fn make_dense(&mut self) -> &mut Vec<u32> {
        if let Self::Sparse { merged, recent } = self {
            let mut words = vec![0; WORDS];
            for encoded in merged.iter().chain(recent.iter()) {
                let register = sparse_index(*encoded) >> (SPARSE_PRECISION - PRECISION);
                update(&mut words, register as usize, decode_run_length(*encoded));
            }
            *self = Self::Dense(words);
        }
        match self {
            Self::Dense(words) => words,
            Self::Sparse { .. } => unreachable!("made dense above"),
        }
    }

    /// Takes in another sketch.
    pub fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        let theirs = std::mem::take(other.make_dense());
        let ours = self.make_dense();
        for register in 0..REGISTERS {
            let shift = register % REGISTERS_PER_WORD * REGISTER_BITS;
            update(ours, register, (theirs[register / REGISTERS_PER_WORD] >> shift) & 31);
        }
    }

    /// About how many distinct keys were added.
    pub fn estimate(&self) -> u64 {
        if let Self::Sparse { merged, recent } = self {
            // so few that the finer registers tell them apart
            let mut indexes: Vec<u32> = merged.iter().chain(recent).map(|encoded| sparse_index(*encoded)).collect();
            indexes.sort_unstable();
            indexes.dedup();
            let registers = f64::from(1u32 << SPARSE_PRECISION);
            return (registers * (registers / (registers - indexes.len() as f64)).ln()).round() as u64;
        }
        let mut dense = self.clone();
        let words = dense.make_dense();
        let values = (0..REGISTERS).map(|register| {
            (words[register / REGISTERS_PER_WORD] >> (register % REGISTERS_PER_WORD * REGISTER_BITS)) & 31
        });
        let (mut zeros, mut sum) = (0u32, 0.0f64);
        for value in values {
            zeros += u32::from(value == 0);
            sum += 1.0 / f64::from(1u32 << value);
        }
        let registers = REGISTERS as f64;
        let raw = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
        let linear = registers * (registers / f64::from(zeros)).ln();
        (if zeros > 0 && linear < 2.5 * registers { linear } else { raw }).round() as u64
    }

    /// From its bytes; None when they are none of a sketch of this size.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (format, rest) = bytes.split_first_chunk::<4>()?;
        let mut rest = rest.iter();
        if i32::from_be_bytes(*format) != FORMAT
            || [get_varint(&mut rest)?, get_varint(&mut rest)?] != [PRECISION, SPARSE_PRECISION]
        {
            return None;
        }
        match get_varint(&mut rest)? {
            0 => {
                let length = get_varint(&mut rest)? as usize;
                let (words, _) = rest.as_slice().as_chunks::<4>();
                let words: Vec<u32> = words.iter().map(|word| u32::from_be_bytes(*word)).collect();
                (length == WORDS * 4 && words.len() == WORDS).then_some(Self::Dense(words))
            }
            1 => {
                let count = get_varint(&mut rest)?;
                let mut merged = Vec::new();
                let mut last = 0i32;
                for _ in 0..count {
                    last = last.wrapping_add(get_varint(&mut rest)? as i32);
                    if sparse_index(last) >> SPARSE_PRECISION != 0 {
                        return None;
                    }
                    merged.push(last);
                }
                Some(Self::Sparse { merged, recent: Vec::new() })
            }
            _ => None,
        }
    }

    /// Its bytes.
    pub fn write(mut self) -> Vec<u8> {
        self.merge_recent();
        let mut out = FORMAT.to_be_bytes().to_vec();
        put_varint(&mut out, PRECISION);
        put_varint(&mut out, SPARSE_PRECISION);
        match self {
            Self::Sparse { merged, .. } => {
                put_varint(&mut out, 1);
                put_varint(&mut out, merged.len() as u32);
                let mut last = 0i32;
                for encoded in merged {
                    put_varint(&mut out, encoded.wrapping_sub(last) as u32);
                    last = encoded;
                }
            }
            Self::Dense(words) => {
                put_varint(&mut out, 0);
                put_varint(&mut out, (WORDS * 4) as u32);
                words.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
            }
        }
        debug_assert!(Self::read(&out).is_some(), "a sketch is read as it was written");
        out
    }
}

/// Joins two lists; of entries with one index the smaller stays. Order is by encoded value, as the
/// origin has it.
fn merge_sorted(a: &[i32], b: &[i32]) -> Vec<i32> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        match (a.peek(), b.peek()) {
            (None, None) => return out,
            (Some(left), None) => {
                out.push(**left);
                a.next();
            }
            (None, Some(right)) => {
                out.push(**right);
                b.next();
            }
            (Some(left), Some(right)) if sparse_index(**left) == sparse_index(**right) => {
                out.push(**left.min(right));
                a.next();
                b.next();
            }
            (Some(left), Some(right)) if left < right => {
                out.push(**left);
                a.next();
            }
            (Some(_), Some(right)) => {
                out.push(**right);
                b.next();
            }
        }
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn get_varint(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u32> {
    let mut value = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = bytes.next()?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// MurmurHash2, 64 bits, seed 0, with the tail bytes taken as signed.
fn murmur2(key: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = M.wrapping_mul(key.len() as u64);
    let (words, tail) = key.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(M);
        word ^= word >> R;
        hash = (hash ^ word.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (index, byte) in tail.iter().enumerate() {
            hash ^= (*byte as i8 as i64 as u64) << (index * 8);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> R)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_and_bytes() {
        for count in [0u32, 1, 100, 1536, 1537, 5000, 9000, 200_000] {
            let mut sketch = Cardinality::default();
            for id in 0..count {
                sketch.add(&id.to_be_bytes());
                sketch.add(&(id / 2).to_be_bytes());
            }
            let estimate = sketch.estimate() as f64;
            assert!((estimate - f64::from(count)).abs() <= f64::from(count) * 0.05 + 1.0, "{estimate} for {count}");
            let bytes = sketch.clone().write();
            let back = Cardinality::read(&bytes).unwrap();
            assert_eq!(back.estimate(), sketch.estimate());
            assert_eq!(back.clone().write(), bytes);
            let mut twice = back;
            twice.merge(&sketch);
            sketch.make_dense();
            assert_eq!(twice.estimate(), sketch.estimate());
            for length in 0..bytes.len().min(60) {
                let _ = Cardinality::read(&bytes[..length]);
            }
        }
    }
}
