//! The samples of one read: collected while it runs, and given to the sessions when it has ended
//! well. A read that begins on a worker and again in the background counts once.

use bytes::Bytes;
use schema::TableMetadata;

use super::{Sampler, Sampling};

/// Most samples of one read. Further partitions of the read are not sampled.
const SAMPLES_MAX: usize = 4096;

/// The samples of one read: see the head of this file.
#[derive(Default)]
pub(crate) struct ReadSamples {
    samples: Vec<(Sampler, Bytes, u64)>,
    /// The key of the partition that is being read, and the live rows and tombstones that were
    /// passed before it; None: no partition is being read.
    partition: Option<(Bytes, u64, u64)>,
    /// The key that the present command names, and the number of SSTables that were read before
    /// it; None: it names no key.
    named: Option<(Bytes, u64)>,
}

impl ReadSamples {
    /// The samples of a read that begins; None: no session runs.
    pub fn of(sampling: &Sampling) -> Option<Box<Self>> {
        sampling.is_on().then(Box::default)
    }

    /// Called when a partition begins, or with None behind the last one. `rows` and `tombstones`:
    /// what was passed so far.
    pub fn partition(&mut self, key: Option<&Bytes>, rows: u64, tombstones: u64) {
        let next = key.map(|key| (key.clone(), rows, tombstones));
        if let Some((key, rows_before, tombstones_before)) = std::mem::replace(&mut self.partition, next) {
            self.push(Sampler::ReadRowCount, key.clone(), rows - rows_before);
            self.push(Sampler::ReadTombstoneCount, key, tombstones - tombstones_before);
        }
    }

    /// Called when a command begins, or with None behind the last one or for a command without a
    /// key. `sstables`: how many were read so far.
    pub fn command(&mut self, key: Option<&Bytes>, sstables: u64) {
        let next = key.map(|key| (key.clone(), sstables));
        if let Some((key, before)) = std::mem::replace(&mut self.named, next) {
            self.push(Sampler::Reads, key.clone(), 1);
            self.push(Sampler::ReadSSTableCount, key, sstables - before);
        }
    }

    fn push(&mut self, sampler: Sampler, key: Bytes, value: u64) {
        if value > 0 && self.samples.len() < SAMPLES_MAX {
            self.samples.push((sampler, key, value));
        }
    }

    /// Gives the samples to the sessions. Called when the read has ended well.
    pub fn tell(mut self, sampling: &Sampling, table: &TableMetadata, rows: u64, tombstones: u64, sstables: u64) {
        self.partition(None, rows, tombstones);
        self.command(None, sstables);
        for (sampler, key, value) in &self.samples {
            sampling.add(*sampler, table, key, *value);
        }
    }
}
