//! How far a compaction has read its inputs, in bytes as they are stored: for the throughput and
//! for progress.
//!
//! The places in the data that streams tell are those before compression; the bytes of an SSTable
//! on disk are spread evenly over them. A partition that is left in the middle is passed over by
//! the index: about one chunk of the bytes between is read. Agrees in role with
//! `org.apache.cassandra.db.compaction.CompactionManager.compactionRateLimiterAcquire`.

use std::sync::Arc;

use env::sync::atomic::{AtomicU64, Ordering};
use sstable::SSTable;

/// The sums over all inputs. Only the thread that works on the compaction changes them.
#[derive(Default)]
pub struct Meter {
    /// Bytes that were read.
    read: AtomicU64,
    /// Bytes that were passed over without being read.
    skipped: AtomicU64,
}

impl Meter {
    /// Bytes that were read.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes that were read or passed over.
    pub fn passed(&self) -> u64 {
        self.read() + self.skipped.load(Ordering::Relaxed)
    }
}

/// The place that a stream over all of an SSTable has reached.
pub struct StreamProgress {
    meter: Arc<Meter>,
    /// Bytes of the data before compression.
    length: u64,
    /// Bytes on disk for each byte before compression.
    ratio: f64,
    /// Bytes before compression of a chunk. If the index leads further than that, the bytes
    /// between are passed over without being read.
    chunk_length: u64,
    /// The offset in the data, before compression.
    at: u64,
    read: Counted,
    skipped: Counted,
}

/// Bytes before compression, and how many bytes on disk were counted for them.
#[derive(Default)]
struct Counted {
    raw: u64,
    stored: u64,
}

impl Counted {
    /// Counts more bytes before compression; gives the bytes on disk that they are. The sum
    /// decides, since a row may be less than a byte on disk.
    fn add(&mut self, raw: u64, ratio: f64) -> u64 {
        self.raw += raw;
        let stored = (self.raw as f64 * ratio) as u64;
        let more = stored.saturating_sub(self.stored);
        self.stored += more;
        more
    }
}

impl StreamProgress {
    /// The place at the beginning of an SSTable.
    pub fn new(meter: &Arc<Meter>, sstable: &SSTable) -> Self {
        let length = sstable.data_length();
        Self {
            meter: Arc::clone(meter),
            length,
            ratio: sstable.stored_length() as f64 / length.max(1) as f64,
            chunk_length: sstable.data().chunk_length() as u64,
            at: 0,
            read: Counted::default(),
            skipped: Counted::default(),
        }
    }

    /// Counts everything up to a place as read.
    #[inline]
    pub fn read_to(&mut self, place: u64) {
        let raw = place.saturating_sub(self.at);
        self.at = self.at.max(place);
        let stored = self.read.add(raw, self.ratio);
        if stored > 0 {
            self.meter.read.fetch_add(stored, Ordering::Relaxed);
        }
    }

    /// Notes that the index has led to a place: the bytes before it count as passed over.
    pub fn skip_to(&mut self, place: u64) {
        let skipped = place.saturating_sub(self.at).saturating_sub(self.chunk_length);
        self.at += skipped;
        self.meter.skipped.fetch_add(self.skipped.add(skipped, self.ratio), Ordering::Relaxed);
        self.read_to(place);
    }

    /// Notes that the end of the SSTable is reached.
    pub fn end(&mut self) {
        self.skip_to(self.length);
    }
}
