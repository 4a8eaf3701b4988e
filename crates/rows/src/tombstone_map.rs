//! A map of the tombstones of one SSTable: how many of each kind, where on the ring and in which
//! partitions they are, when they may go, and which sources keep those whose gc_grace has ended.
//!
//! A tombstone may go if gc_grace has ended and no data outside of its SSTable can be as old as
//! what it deletes. If several SSTables or memtables may hold the partition, the one with the
//! oldest data is named. The SSTable is read once. What is kept in memory does not grow with it:
//! [`RANGES`] parts of the ring, the `top` partitions, and a count for each source.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::{self, Write};

use schema::TableMetadata;
use types::DecoratedKey;

use crate::dead::{DeadItem, DeadKind, GracePeriod, each, each_of_head};
use crate::{PartitionStream, ReadError};

/// Number of parts of the ring for which tombstones are counted.
pub const RANGES: usize = 16;
// the parts are of one width
const _: () = assert!(RANGES.is_power_of_two());

/// Most partitions that can be listed.
pub const TOP_MAX: usize = 1_000;

/// Classes of the time until gc_grace ends: upper limits in seconds, and names. The last class has
/// no limit.
const WAITS: [(u32, &str); 6] = [
    (0, "now"),
    (3_600, "within an hour"),
    (86_400, "within a day"),
    (7 * 86_400, "within a week"),
    (30 * 86_400, "within 30 days"),
    (u32::MAX, "later"),
];

/// The sources outside of the SSTable that may hold data which a tombstone deletes.
pub trait OtherSources {
    /// The name of each source: "SSTable da-3-bti", "a memtable".
    fn names(&self) -> Vec<String>;

    /// For each source that may hold the partition, its smallest timestamp and its index among the
    /// names.
    fn oldest(&self, key: &DecoratedKey) -> Vec<(i64, usize)>;
}

/// No other sources: the SSTable alone.
pub struct NoOtherSources;

impl OtherSources for NoOtherSources {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn oldest(&self, _: &DecoratedKey) -> Vec<(i64, usize)> {
        Vec::new()
    }
}

type Kinds = [u64; DeadKind::ALL.len()];

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct WorstPartition {
    tombstones: u64,
    key: DecoratedKey,
    rows: u64,
    kinds: Kinds,
}

/// The tombstones of one SSTable.
#[derive(Debug)]
pub struct TombstoneMap {
    grace: GracePeriod,
    top: usize,
    partitions: u64,
    partitions_with: u64,
    rows: u64,
    kinds: Kinds,
    waits: [u64; WAITS.len()],
    since: Option<(u32, u32)>,
    ranges: [u64; RANGES],
    worst: BinaryHeap<Reverse<WorstPartition>>,
    /// Of the tombstones whose gc_grace has ended: how many may go, and how many each other source
    /// keeps.
    purgeable: u64,
    kept_by: Vec<u64>,
    names: Vec<String>,
    /// Whether no tombstone may go before it has been repaired.
    unrepaired: bool,
}

impl TombstoneMap {
    /// Reads a stream to its end. `unrepaired`: the table drops only repaired tombstones, and those
    /// of this SSTable are not.
    pub fn read(
        stream: &mut dyn PartitionStream,
        grace: GracePeriod,
        top: usize,
        others: &dyn OtherSources,
        unrepaired: bool,
    ) -> Result<Self, ReadError> {
        let names = others.names();
        let mut map = Self {
            grace,
            top: top.min(TOP_MAX),
            partitions: 0,
            partitions_with: 0,
            rows: 0,
            kinds: Kinds::default(),
            waits: [0; WAITS.len()],
            since: None,
            ranges: [0; RANGES],
            worst: BinaryHeap::new(),
            purgeable: 0,
            kept_by: vec![0; names.len()],
            names,
            unrepaired,
        };
        while let Some(head) = stream.next_partition()? {
            map.partitions += 1;
            let mut oldest = None;
            let mut kinds = Kinds::default();
            let key = head.key.clone();
            let mut found = |map: &mut Self, dead: DeadItem| {
                kinds[dead.kind as usize] += 1;
                // asked once for a partition, and only if something in it is dead
                let oldest = oldest.get_or_insert_with(|| others.oldest(&key).into_iter().min());
                map.count(&dead, *oldest);
            };
            each_of_head(&head, grace.now, &mut |dead| found(&mut map, dead));
            let mut rows = 0;
            while let Some(unfiltered) = stream.next_unfiltered()? {
                rows += u64::from(matches!(unfiltered, crate::Unfiltered::Row(_)));
                each(&unfiltered, grace.now, &mut |dead| found(&mut map, dead));
            }
            map.rows += rows;
            map.end_partition(WorstPartition { tombstones: kinds.iter().sum(), key: head.key, rows, kinds });
        }
        map.check();
        Ok(map)
    }

    /// Asserts that each count of the tombstones is complete.
    fn check(&self) {
        let total = self.tombstones();
        assert_eq!(self.waits.iter().sum::<u64>(), total, "each tombstone waits for the end of gc_grace, or not");
        assert_eq!(self.ranges.iter().sum::<u64>(), total, "each tombstone has its place on the ring");
        let decided = self.purgeable + self.kept_by.iter().sum::<u64>();
        let over = if self.unrepaired { 0 } else { self.waits[0] };
        assert_eq!(decided, over, "a tombstone whose gc_grace is over may go, or a source keeps it");
    }

    fn count(&mut self, dead: &DeadItem, oldest: Option<(i64, usize)>) {
        self.kinds[dead.kind as usize] += 1;
        let (first, last) = self.since.unwrap_or((dead.since, dead.since));
        self.since = Some((first.min(dead.since), last.max(dead.since)));
        // as `local_deletion_time < now - gc_grace`
        let from = dead.since.saturating_add(self.grace.seconds).saturating_add(1);
        let wait = from.saturating_sub(self.grace.now);
        let at = WAITS.iter().position(|(most, _)| wait <= *most).unwrap_or(WAITS.len() - 1);
        self.waits[at] += 1;
        if wait == 0 && !self.unrepaired {
            match oldest {
                Some((timestamp, number)) if timestamp <= dead.timestamp => self.kept_by[number] += 1,
                _ => self.purgeable += 1,
            }
        }
    }

    fn end_partition(&mut self, found: WorstPartition) {
        if found.tombstones == 0 {
            return;
        }
        self.partitions_with += 1;
        let position = (found.key.token.0 as u64) ^ (1 << 63);
        let range = usize::try_from(position / (u64::MAX / RANGES as u64 + 1)).unwrap_or(RANGES - 1);
        self.ranges[range] += found.tombstones;
        if self.top > 0 {
            self.worst.push(Reverse(found));
            if self.worst.len() > self.top {
                self.worst.pop();
            }
        }
    }

    /// Number of all tombstones.
    pub fn tombstones(&self) -> u64 {
        self.kinds.iter().sum()
    }

    /// Number of tombstones whose gc_grace has ended and that no source keeps.
    pub fn purgeable(&self) -> u64 {
        self.purgeable
    }

    /// The map as lines of text. `name` is that of the SSTable.
    pub fn text(&self, name: &str, table: &TableMetadata) -> String {
        let mut out = String::new();
        self.write(&mut out, name, table).expect("a String takes all");
        out
    }

    fn write(&self, out: &mut String, name: &str, table: &TableMetadata) -> fmt::Result {
        let Self { partitions, partitions_with, rows, .. } = self;
        let total = self.tombstones();
        writeln!(out, "{name}: {total} tombstones in {partitions_with} of {partitions} partitions ({rows} rows)")?;
        if total == 0 {
            return Ok(());
        }
        writeln!(out, "  kinds       {}", kinds_text(&self.kinds))?;
        if let Some((first, last)) = self.since {
            writeln!(out, "  dead since  {} to {}", time(first), time(last))?;
        }
        let waits = WAITS.iter().zip(self.waits).filter(|(_, count)| *count > 0);
        let waits: Vec<String> = waits.map(|((_, name), count)| format!("{name} {count}")).collect();
        writeln!(out, "  gc_grace    of {} s is over: {}", self.grace.seconds, waits.join(", "))?;
        self.write_reasons(out)?;
        for (number, count) in self.ranges.iter().enumerate().filter(|(_, count)| **count > 0) {
            let width = u64::MAX / RANGES as u64 + 1;
            let start = ((number as u64 * width) ^ (1 << 63)) as i64;
            let end = ((number as u64 * width + (width - 1)) ^ (1 << 63)) as i64;
            writeln!(out, "  tokens      {start:>20} to {end:>20}: {count}")?;
        }
        let mut worst: Vec<&WorstPartition> = self.worst.iter().map(|Reverse(worst)| worst).collect();
        worst.sort_by(|a, b| b.tombstones.cmp(&a.tombstones).then(a.key.cmp(&b.key)));
        for WorstPartition { tombstones, key, rows, kinds } in worst {
            let words = types::literal::to_plain_text(&table.partition_key_type, &key.key);
            let kinds = kinds_text(kinds);
            writeln!(out, "  partition   {words} (token {}): {tombstones} in {rows} rows ({kinds})", key.token.0)?;
        }
        Ok(())
    }

    /// Writes how many tombstones may go, and why the others may not yet.
    fn write_reasons(&self, out: &mut String) -> fmt::Result {
        let total = self.tombstones();
        writeln!(out, "  may go      {} of {total}, if this SSTable is compacted alone", self.purgeable)?;
        let over = self.waits[0];
        if self.unrepaired && over > 0 {
            writeln!(
                out,
                "  stay        {over}: only_purge_repaired_tombstones is set and the SSTable is not repaired"
            )?;
        }
        for (name, count) in self.names.iter().zip(&self.kept_by).filter(|(_, count)| **count > 0) {
            writeln!(out, "  stay        {count}: {name} may hold older data of their partitions")?;
        }
        match total - over {
            0 => Ok(()),
            waiting => writeln!(out, "  stay        {waiting}: gc_grace is not over"),
        }
    }
}

fn kinds_text(kinds: &Kinds) -> String {
    let named = DeadKind::ALL.iter().zip(kinds).filter(|(_, count)| **count > 0);
    named.map(|(kind, count)| format!("{} {count}", kind.name())).collect::<Vec<_>>().join(", ")
}

fn time(seconds: u32) -> String {
    let millis = i64::from(seconds) * 1_000;
    let text = types::literal::to_plain_text(&types::CqlType::Timestamp, &millis.to_be_bytes());
    let mut time = String::new();
    // to the second
    let _ = write!(time, "{}Z", text.get(..19).unwrap_or(&text));
    time
}
