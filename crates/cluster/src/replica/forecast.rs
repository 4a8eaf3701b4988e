//! Forecasts which reads are long: those that were long the last time. They go to the threads for
//! long reads at once, instead of beginning on a worker and a second time there.
//!
//! A table of marks of fixed size, found by what a read is about: table, partition (or a range of
//! any), and whether a limit holds it small. A page of a paged read is like the page before it. A
//! mark is a tag, so that few others meet it by chance, and a count of short reads after which it
//! is forgotten. Being wrong costs time and nothing else.

use std::sync::atomic::{AtomicU8, Ordering};

use rows::{PartitionRange, ReadCommand};

/// Number of marks: a read meets the mark of another read once in 64 times this number.
const MARKS: usize = 4096;

/// Short reads in a row after which a read is no longer taken for long. The last page of a
/// partition is short.
const PATIENCE: u8 = 3;

const PATIENCE_BITS: u8 = 2;

/// Marks of reads that were long, found by a hash of the read. A mark may be overwritten by another
/// read: then the forecast is that reads are short.
pub(crate) struct Forecast {
    marks: Box<[AtomicU8]>,
}

/// A read, known by a hash: the index of its mark, and a tag that tells it from most other reads
/// with that index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fingerprint {
    index: usize,
    tag: u8,
}

impl Default for Forecast {
    fn default() -> Self {
        Self { marks: (0..MARKS).map(|_| AtomicU8::new(0)).collect() }
    }
}

impl Fingerprint {
    /// The fingerprint of a statement by its first command. A limit of at most `short` rows holds
    /// a read small.
    pub fn of(commands: &[ReadCommand], short: u32) -> Self {
        let Some(command) = commands.first() else { return Self { index: 0, tag: 0 } };
        let partition = match &command.range {
            PartitionRange::Key(key) => key.token.0 as u64,
            PartitionRange::Range { .. } => 1,
        };
        let id = command.table.id.0;
        let table = u64::from_le_bytes([id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7]]);
        let shape = u64::from(command.limits.rows > short) | u64::from(commands.len() > 1) << 1;
        let mixed = (partition ^ table.rotate_left(17) ^ shape).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { index: (mixed >> 52) as usize % MARKS, tag: ((mixed >> 40) as u8) & !((1 << PATIENCE_BITS) - 1) }
    }
}

impl Forecast {
    /// Whether such a read was long.
    pub fn is_long(&self, fingerprint: Fingerprint) -> bool {
        let mark = self.marks[fingerprint.index].load(Ordering::Relaxed);
        mark & PATIENCE != 0 && mark & !PATIENCE == fingerprint.tag
    }

    /// Notes that such a read turned out to be long.
    pub fn mark_long(&self, fingerprint: Fingerprint) {
        self.marks[fingerprint.index].store(fingerprint.tag | PATIENCE, Ordering::Relaxed);
    }

    /// Notes that a read that was taken for long was short: the mark loses some of its patience.
    pub fn mark_short(&self, fingerprint: Fingerprint) {
        if self.is_long(fingerprint) {
            let mark = &self.marks[fingerprint.index];
            mark.store(mark.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_long_is_taken_for_long_until_it_was_short_three_times() {
        let forecast = Forecast::default();
        let (fingerprint, other) =
            (Fingerprint { index: 7, tag: 0b1010_0000 }, Fingerprint { index: 7, tag: 0b1111_0000 });
        assert!(!forecast.is_long(fingerprint));
        forecast.mark_long(fingerprint);
        assert!(forecast.is_long(fingerprint) && !forecast.is_long(other));
        forecast.mark_short(other);
        (0..2).for_each(|_| forecast.mark_short(fingerprint));
        assert!(forecast.is_long(fingerprint));
        forecast.mark_short(fingerprint);
        assert!(!forecast.is_long(fingerprint));
        forecast.mark_short(fingerprint);
        assert!(!forecast.is_long(fingerprint));
    }
}
