//! `Summary.db`: every so many entries of Index.db, by key and position.
//!
//! ```text
//! i32 min_index_interval; i32 samples n; i64 length of the two arrays; i32 sampling level;
//! i32 samples at full sampling
//! n × u32 LITTLE-endian offset of a sample, from the start of this array
//! n × { key, i64 LITTLE-endian position of its entry in Index.db }
//! int-bytes first key; int-bytes last key
//! ```
//! Sample i at full sampling is partition i × min_index_interval; Cassandra may have left some out
//! since. No checksum: who uses a sample compares its key with the entry. Agrees with
//! `org.apache.cassandra.io.sstable.indexsummary.{IndexSummary,IndexSummaryBuilder}`.

use bytes::Bytes;
use stdx::{Cursor, put_u32, put_u64};

use crate::error::Malformed;

const HEAD_LEN: usize = 24;
/// Sampling level of a summary from which nothing was left out.
const FULL_SAMPLING: u32 = 128;
/// Bytes of samples, at most: offsets are signed.
const SAMPLES_LENGTH_MAX: usize = i32::MAX as usize;

/// A read Summary.db. The samples stay where they are.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Partitions from one sample to the next, at full sampling.
    pub interval: u32,
    /// Samples there would be at full sampling.
    pub full_size: u32,
    /// Number of samples, at least 1.
    pub len: u32,
    /// Both arrays.
    arrays: Bytes,
    /// The first key.
    pub first: Bytes,
    /// The last key.
    pub last: Bytes,
}

impl Summary {
    /// Over the bytes of the file.
    pub fn open(file: &Bytes) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(file);
        let (interval, len, length) = (cursor.u32()?, cursor.u32()?, cursor.u64()?);
        let (_level, full_size) = (cursor.u32()?, cursor.u32()?);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let arrays = file.slice_ref(cursor.take(length)?);
        let key = |bytes: Option<&[u8]>| bytes.map(Bytes::copy_from_slice);
        let (first, last) = (key(cursor.int_bytes()?), key(cursor.int_bytes()?));
        let (Some(first), Some(last), true) = (first, last, len > 0 && interval > 0 && full_size >= len) else {
            return Err(Malformed::at(0, format!("a summary of {len} samples, {interval} entries each")));
        };
        let summary = Self { interval, full_size, len, arrays, first, last };
        if summary.offset(0)? != len as usize * 4 {
            return Err(Malformed::at(HEAD_LEN as u64, "samples that do not begin behind their offsets"));
        }
        Ok(summary)
    }

    fn offset(&self, index: u32) -> Result<usize, Malformed> {
        let at = index as usize * 4;
        let bytes = self.arrays.get(at..).and_then(|bytes| bytes.first_chunk::<4>());
        match bytes {
            Some(bytes) if index < self.len => Ok(u32::from_le_bytes(*bytes) as usize),
            _ => Err(Malformed::at((HEAD_LEN + at) as u64, format!("no sample {index}"))),
        }
    }

    /// Key and position in Index.db of a sample.
    #[inline]
    pub fn sample(&self, index: u32) -> Result<(&[u8], u64), Malformed> {
        let start = self.offset(index)?;
        let end = if index + 1 < self.len { self.offset(index + 1)? } else { self.arrays.len() };
        let sample = self.arrays.get(start..end).and_then(|sample| sample.split_last_chunk::<8>());
        match sample {
            Some((key, position)) => Ok((key, u64::from_le_bytes(*position))),
            None => Err(Malformed::at((HEAD_LEN + start) as u64, format!("sample {index} from {start} to {end}"))),
        }
    }

    /// How many samples, from the first on, fulfil a condition that those behind do not.
    pub fn partition_point(&self, mut is_before: impl FnMut(&[u8]) -> bool) -> Result<u32, Malformed> {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(self.sample(middle)?.0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Number of partitions, where so many entries of Index.db are at or behind the last sample.
    pub fn partitions(&self, tail: u64) -> u64 {
        let interval = u64::from(self.interval);
        u64::from(self.full_size - 1) * interval + tail.saturating_sub(1) % interval + 1
    }
}

/// Takes samples while partitions pass in order.
#[derive(Debug)]
pub struct SummaryBuilder {
    interval: u32,
    partitions: u64,
    offsets: Vec<u32>,
    samples: Vec<u8>,
    first: Vec<u8>,
    last: Vec<u8>,
    /// The position of the last partition's entry.
    position: u64,
}

impl SummaryBuilder {
    /// A sample every `interval` partitions.
    pub fn new(interval: u32) -> Self {
        let interval = interval.max(1);
        let (offsets, samples, first, last) = Default::default();
        Self { interval, partitions: 0, offsets, samples, first, last, position: 0 }
    }

    /// A partition whose entry is at `position` of Index.db.
    pub fn add(&mut self, key: &[u8], position: u64) {
        if self.partitions == 0 {
            self.first = key.to_vec();
        }
        assert!(self.partitions == 0 || self.position < position, "entries of Index.db ascend");
        self.position = position;
        let fits = self.samples.len() + self.offsets.len() * 4 + key.len() + 12 <= SAMPLES_LENGTH_MAX;
        if self.partitions.is_multiple_of(u64::from(self.interval)) && fits {
            self.offsets.push(self.samples.len() as u32);
            self.samples.extend_from_slice(key);
            self.samples.extend_from_slice(&position.to_le_bytes());
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        self.partitions += 1;
    }

    /// Partitions so far.
    pub fn partitions(&self) -> u64 {
        self.partitions
    }

    /// The file.
    pub fn finish(self) -> Vec<u8> {
        let full_size = self.partitions.div_ceil(u64::from(self.interval));
        assert!(self.offsets.len() as u64 <= full_size, "no partition is sampled twice");
        let base = self.offsets.len() as u32 * 4;
        let mut out = Vec::with_capacity(HEAD_LEN + base as usize + self.samples.len() + 64);
        put_u32(&mut out, self.interval);
        put_u32(&mut out, self.offsets.len() as u32);
        put_u64(&mut out, u64::from(base) + self.samples.len() as u64);
        put_u32(&mut out, FULL_SAMPLING);
        put_u32(&mut out, u32::try_from(full_size).unwrap_or(u32::MAX));
        for offset in &self.offsets {
            out.extend_from_slice(&(offset + base).to_le_bytes());
        }
        out.extend_from_slice(&self.samples);
        for key in [&self.first, &self.last] {
            put_u32(&mut out, key.len() as u32);
            out.extend_from_slice(key);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sampled_is_found() {
        for (count, interval) in [(1u32, 128), (128, 128), (129, 128), (1000, 1), (1000, 7)] {
            let mut builder = SummaryBuilder::new(interval);
            (0..count).for_each(|id| builder.add(&(id * 2).to_be_bytes(), u64::from(id) * 10));
            let file = builder.finish();
            let summary = Summary::open(&file.clone().into()).unwrap();
            assert_eq!(summary.len, count.div_ceil(interval));
            assert_eq!(
                (summary.first[..].to_vec(), summary.last[..].to_vec()),
                ([0; 4].to_vec(), (count * 2 - 2).to_be_bytes().to_vec())
            );
            for key in 0..count * 2 {
                let index = summary.partition_point(|sample| sample <= &key.to_be_bytes()[..]).unwrap() - 1;
                let (sample, position) = summary.sample(index).unwrap();
                assert_eq!(sample, ((key / 2 / interval) * interval * 2).to_be_bytes());
                assert_eq!(position, u64::from(key / 2 / interval * interval) * 10);
            }
            let tail = u64::from((count - 1) % interval + 1);
            assert_eq!(summary.partitions(tail), u64::from(count));
            for length in 0..file.len() {
                assert!(Summary::open(&Bytes::copy_from_slice(&file[..length])).is_err());
            }
        }
    }
}
