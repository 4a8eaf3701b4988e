//! The partitions that go into the outputs of a flush or a compaction: how many keys there are, and
//! where in the ring. The Bloom filter of an output is made for about as many keys as it will have.
//! A filter that is made for far fewer answers "maybe" for every key: reads look into the SSTable
//! in vain, and tombstones stay because of data that is not there. One that is made for far more
//! takes memory.
//!
//! 1. Partitions of one key in several inputs become one. The sketches in the inputs' statistics
//!    say about how many keys there are; where one has no sketch, each partition counts.
//! 2. An output that has a part of the ring gets the partitions in that part. The partitions of an
//!    input are spread over the tokens from its first to its last, not over the ring: SSTables of
//!    upper levels lie within a shard or two.
//! 3. For an input that has more than the part, two shares are looked at: that of its tokens, and
//!    that of its data. The greater one counts. By tokens too little is estimated where nothing is
//!    in the gaps between a node's ranges, by data where some partitions are large. The parts
//!    together are never more than twice what goes in.
//!
//! 4. An output that ends at a size gets the keys of as many bytes of what is written. Where rows
//!    were overwritten, that is less than what goes in, as keys are fewer than partitions. An
//!    output then has a greater share of the keys than its size is of the bytes that go in.
//!
//! Agrees in role with `MaxSSTableSizeWriter.getTotalWriteSize` of
//! `org.apache.cassandra.db.compaction.writers` and with
//! `org.apache.cassandra.db.compaction.ShardTracker.shardAdjustedKeyCount`.

use std::sync::Arc;

use rows::{ReadContext, ReadError, ReadMode};
use sstable::SSTable;
use types::Token;

use crate::table::memtable::Memtable;
use crate::token_ranges::share_within;

/// Factor by which a sketch is taken to be wrong. Sketches are seldom wrong by more than a
/// twentieth; their standard error is a hundredth.
const SKETCH_MARGIN: f64 = 1.05;

/// The SSTables or memtables that are written into the outputs.
pub struct Inputs {
    parts: Vec<Part>,
    /// Bytes of data.
    bytes: u64,
    /// Estimated number of different keys.
    keys: f64,
    /// Different keys for each partition, 0 to 1.
    unique: f64,
}

/// One SSTable or memtable.
struct Part {
    /// Token of its first partition.
    first: Token,
    /// Token of its last partition.
    last: Token,
    partitions: f64,
    /// The SSTable; None: the input is a memtable.
    sstable: Option<Arc<SSTable>>,
    /// A token, and the offset in the data behind the partitions up to it: the next part of the
    /// ring begins there. None: not looked at yet.
    reached: Option<(Token, u64)>,
}

impl Inputs {
    /// The inputs of a compaction.
    pub fn of_sstables(sstables: &[Arc<SSTable>]) -> Self {
        let part = |sstable: &Arc<SSTable>| Part {
            first: sstable.first_key().token,
            last: sstable.last_key().token,
            partitions: sstable.partition_count() as f64,
            sstable: Some(Arc::clone(sstable)),
            reached: None,
        };
        let bytes = sstables.iter().map(|sstable| sstable.stored_length()).sum();
        Self::new(sstables.iter().map(part).collect(), bytes, distinct(sstables))
    }

    /// The inputs of a flush: frozen memtables, no two of which have a partition in common.
    pub fn of_memtables(memtables: &[Arc<Memtable>]) -> Self {
        let part = |memtable: &Arc<Memtable>| {
            let (first, last) = memtable.span()?;
            Some(Part { first, last, partitions: memtable.counts().0 as f64, sstable: None, reached: None })
        };
        let bytes: usize = memtables.iter().map(|memtable| memtable.size()).sum();
        Self::new(memtables.iter().filter_map(part).collect(), bytes as u64, None)
    }

    fn new(parts: Vec<Part>, bytes: u64, distinct: Option<f64>) -> Self {
        let all: f64 = parts.iter().map(|part| part.partitions).sum();
        let most = parts.iter().map(|part| part.partitions).fold(0.0, f64::max);
        let keys = distinct.map_or(all, |distinct| distinct.clamp(most, all));
        let unique = if all > 0.0 { keys / all } else { 1.0 };
        Self { parts, bytes, keys, unique }
    }

    /// Estimated number of different keys.
    pub fn keys(&self) -> f64 {
        self.keys
    }

    /// Estimated number of different keys of the next output, which ends behind `bytes` bytes. The
    /// outputs before it have `written` keys.
    ///
    /// Partitions of one key may have the same rows, of which only the newest are written, or
    /// different rows, which are all written. The first is assumed; otherwise filters would be too
    /// small in that case. The keys that were written bound the estimate from above. As the number
    /// of all keys is an estimate too, an output gets at least the keys that it has where all
    /// bytes are written again.
    pub fn keys_within(&self, bytes: u64, written: u64) -> f64 {
        let of = |total: u64| self.keys / (total / bytes.max(1)).max(1) as f64;
        let newest = (self.bytes as f64 * self.unique) as u64;
        of(newest).min(self.keys - written as f64).max(of(self.bytes))
    }

    /// Estimated number of different keys in the range `(after, end]`. The least token as an end
    /// is behind all tokens. Cheapest if each range follows the one before.
    pub fn keys_between(&mut self, after: Token, end: Token) -> Result<f64, ReadError> {
        let (mut sum, mut most) = (0.0, 0.0f64);
        for part in &mut self.parts {
            let partitions = part.partitions_between(after, end)?;
            sum += partitions;
            most = most.max(partitions);
        }
        // keys may be common in one part of the ring and not in another one, but there are as many
        // as one input has
        Ok((sum * self.unique).max(most).min(self.keys))
    }
}

impl Part {
    fn partitions_between(&mut self, after: Token, end: Token) -> Result<f64, ReadError> {
        let of_tokens = share_within((self.first, self.last), (after, end));
        let is_cut = of_tokens > 0.0 && of_tokens < 1.0;
        let of_data = if is_cut { self.share_of_data(after, end)? } else { None };
        Ok(self.partitions * of_data.unwrap_or(of_tokens).max(of_tokens))
    }

    /// The share of the data, before compression, that is behind `after` and not behind `end`.
    /// None: it is not known. Reads the index.
    fn share_of_data(&mut self, after: Token, end: Token) -> Result<Option<f64>, ReadError> {
        let Some(sstable) = self.sstable.as_ref().filter(|sstable| sstable.data_length() > 0) else { return Ok(None) };
        let length = sstable.data_length();
        let mut places = sstable.partition_offsets(&ReadContext::new(ReadMode::Background));
        let start = match self.reached {
            _ if after < self.first => 0,
            Some((token, place)) if token == after => place,
            _ => places.offset_after(after)?,
        };
        let stop = if end == Token::MIN { length } else { places.offset_after(end)? };
        self.reached = Some((end, stop));
        Ok(Some(stop.saturating_sub(start) as f64 / length as f64))
    }
}

/// Estimated number of different keys in SSTables; None: one has no sketch, or an empty one, which
/// is written with statistics whose sketch could not be read.
fn distinct(sstables: &[Arc<SSTable>]) -> Option<f64> {
    let sketch = |sstable: &Arc<SSTable>| {
        let found = sstable.statistics().cardinality.clone();
        found.filter(|sketch| sketch.estimate() > 0)
    };
    let mut sketches = sstables.iter().map(sketch);
    let mut all = sketches.next()??;
    for sketch in sketches {
        all.merge(&sketch?);
    }
    Some(all.estimate() as f64 * SKETCH_MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 400 MB of four SSTables that have the same 1000 keys, written as halves: 200 MB, 100 MB, and
    /// what is left.
    #[test]
    fn an_output_that_ends_at_a_size_has_more_of_the_keys_where_they_are_common() {
        let inputs = |unique| Inputs { parts: Vec::new(), bytes: 400, keys: 1_000.0, unique };
        let common = inputs(0.25);
        assert_eq!(common.keys_within(200, 0), 1_000.0, "the newest rows are 100 MB: nothing is left");
        // the partitions had other rows in each SSTable
        assert_eq!((common.keys_within(100, 500), common.keys_within(100, 750)), (500.0, 250.0));
        assert_eq!(common.keys_within(100, 1_200), 250.0, "there are more keys than were estimated");
        let different = inputs(1.0);
        assert_eq!([200, 100, 90].map(|bytes| different.keys_within(bytes, 0)), [500.0, 250.0, 250.0]);
        assert_eq!(different.keys_within(500, 0), 1_000.0);
    }
}
