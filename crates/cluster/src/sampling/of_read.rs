//! The samples of one read: kept while it runs, and told when it has ended well. What is begun on a
//! worker and again in the background counts once.

use bytes::Bytes;
use schema::TableMetadata;

use super::{Sampler, Sampling};

/// Samples of one read: beyond, its partitions are not sampled any more.
const SAMPLES_MAX: usize = 4096;

/// See the module.
#[derive(Default)]
pub(crate) struct ReadSamples {
    samples: Vec<(Sampler, Bytes, u64)>,
    /// The partition that is being read, and what had been passed before it: live rows, tombstones.
    partition: Option<(Bytes, u64, u64)>,
    /// The key that a command names, and SSTables read before it.
    named: Option<(Bytes, u64)>,
}

impl ReadSamples {
    /// None: nobody samples.
    pub fn of(sampling: &Sampling) -> Option<Box<Self>> {
        sampling.is_on().then(Box::default)
    }

    /// A partition begins, or (`None`) there is none any more.
    pub fn partition(&mut self, key: Option<&Bytes>, rows: u64, tombstones: u64) {
        let next = key.map(|key| (key.clone(), rows, tombstones));
        if let Some((key, rows_before, tombstones_before)) = std::mem::replace(&mut self.partition, next) {
            self.push(Sampler::ReadRowCount, key.clone(), rows - rows_before);
            self.push(Sampler::ReadTombstoneCount, key, tombstones - tombstones_before);
        }
    }

    /// A command begins, of one key or not, or (`None`) there is none any more; so many SSTables
    /// were read before.
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

    /// The read has ended well.
    pub fn tell(mut self, sampling: &Sampling, table: &TableMetadata, rows: u64, tombstones: u64, sstables: u64) {
        self.partition(None, rows, tombstones);
        self.command(None, sstables);
        for (sampler, key, value) in &self.samples {
            sampling.add(*sampler, table, key, *value);
        }
    }
}
