//! Random partitions, written with small blocks and chunks, are read back whole, in slices,
//! forwards and backwards, and over ranges of tokens; a naive filter of what was written says what
//! must come out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use rows::codec::{EncodingStatsCollector, Header};
use rows::command::RingBound;
use rows::range_tombstones::markers;
use rows::{
    Cell, ClusteringPrefix, ClusteringValues, ColumnData, ComplexColumn, DeletionTime, Liveness, PartitionRange,
    PartitionStream, RangeTombstoneList, ReadCommand, ReadContext, ReadMode, Row, Slice, Slices, Unfiltered,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::{
    CompressionParams, Compressor, Descriptor, NoCache, SSTable, SSTableId, SSTableWriter, Version, WriterOptions,
};
use types::{CqlType, DecoratedKey};

/// Repeatable randomness.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

fn table(random: &mut Random) -> Arc<TableMetadata> {
    let params = TableParams { min_index_interval: [1, 3, 128][random.below(3) as usize], ..TableParams::default() };
    let mut specs = Vec::new();
    let mut add = |name: &str, kind, position, ty, reversed| {
        specs.push(ColumnSpec { name: name.to_owned(), kind, position, ty, reversed });
    };
    add("k", ColumnKind::PartitionKey, 0, CqlType::Int, false);
    add("a", ColumnKind::Clustering, 0, CqlType::Int, random.chance(2));
    if random.chance(2) {
        add("b", ColumnKind::Clustering, 1, CqlType::Text, random.chance(2));
    }
    if random.chance(2) {
        add("s", ColumnKind::Static, 0, CqlType::Text, false);
    }
    add("v", ColumnKind::Regular, 0, CqlType::Text, false);
    add("w", ColumnKind::Regular, 0, CqlType::BigInt, false);
    add("z", ColumnKind::Regular, 0, CqlType::Set { element: Arc::new(CqlType::Int), frozen: false }, false);
    Arc::new(TableMetadata::new(
        TableId([7; 16]),
        "ks",
        "t",
        TableKind::Regular,
        TableFlags::COMPOUND,
        params,
        specs,
        BTreeMap::new(),
        None,
    ))
}

struct Partition {
    key: DecoratedKey,
    deletion: DeletionTime,
    static_row: Option<Row>,
    rows: Vec<Row>,
    deletions: RangeTombstoneList,
}

fn int(value: i64) -> Bytes {
    Bytes::copy_from_slice(&(value as i32).to_be_bytes())
}

fn text(random: &mut Random, length_max: u64) -> Bytes {
    let length = random.below(length_max);
    (0..length).map(|_| b'a' + random.below(3) as u8).collect()
}

fn clustering(table: &TableMetadata, random: &mut Random, spread: u64) -> ClusteringValues {
    let mut values = ClusteringValues::new();
    values.push(Some(int(random.below(spread) as i64 - spread as i64 / 2)));
    if table.clustering.len() == 2 {
        values.push(Some(text(random, 4)));
    }
    values
}

/// A bound of random length, kind and place.
fn bound(table: &TableMetadata, random: &mut Random, spread: u64, starts: bool) -> ClusteringPrefix {
    let mut values = clustering(table, random, spread);
    let length = random.below(values.len() as u64 + 2).min(values.len() as u64);
    values.truncate(length as usize);
    let inclusive = length == 0 || random.chance(2);
    if starts { ClusteringPrefix::start(values, inclusive) } else { ClusteringPrefix::end(values, inclusive) }
}

fn deletion(random: &mut Random) -> DeletionTime {
    let timestamp = if random.chance(10) { -1500 } else { 1_600_000_000_000_000 } + random.below(1000) as i64 * 2;
    DeletionTime::new(timestamp, 1_600_000_000 + random.below(1000) as u32)
}

fn row(table: &TableMetadata, random: &mut Random, clustering: ClusteringValues, value_max: u64) -> Row {
    let mut row = Row::new(clustering);
    let timestamp = 1_600_000_000_000_000 + random.below(1000) as i64;
    row.liveness = match random.below(3) {
        0 => Liveness::EMPTY,
        1 => Liveness::new(timestamp),
        _ => Liveness::expiring(timestamp, 100, 1_600_000_100),
    };
    if random.chance(8) {
        row.deletion = deletion(random);
    }
    for column in &table.regulars {
        if random.chance(4) {
            continue;
        }
        let id = column.id;
        row.columns.push(match column.name.as_str() {
            "z" => {
                let mut elements: Vec<i64> = (0..random.below(5)).map(|_| random.below(50) as i64).collect();
                elements.sort_unstable();
                elements.dedup();
                let live = elements.is_empty() || random.chance(2);
                let cells = elements.iter().map(|e| Cell::live(id, timestamp, Bytes::new()).at(int(*e))).collect();
                let deletion = if live { deletion(random) } else { DeletionTime::LIVE };
                ColumnData::Complex(Box::new(ComplexColumn { column: id, deletion, cells }))
            }
            "w" if random.chance(3) => ColumnData::Simple(Cell::tombstone(id, timestamp + 1, 1_600_000_009)),
            "w" => ColumnData::Simple(Cell::live(id, timestamp, Bytes::copy_from_slice(&timestamp.to_be_bytes()))),
            _ => ColumnData::Simple(Cell::live(id, timestamp, text(random, value_max))),
        });
    }
    if row.is_empty() {
        row.liveness = Liveness::new(timestamp);
    }
    row
}

fn partitions(table: &TableMetadata, random: &mut Random) -> Vec<Partition> {
    let ids: BTreeSet<u64> = (0..1 + random.below(30)).map(|_| random.below(1000)).collect();
    let mut partitions: Vec<Partition> = ids
        .into_iter()
        .map(|id| {
            let spread = [1, 4, 40, 400][random.below(4) as usize];
            let value_max = [2, 30, 3000][random.below(3) as usize];
            let mut rows: Vec<Row> = (0..random.below(spread * 2))
                .map(|_| clustering(table, random, spread))
                .collect::<Vec<_>>()
                .into_iter()
                .map(|values| row(table, random, values, value_max))
                .collect();
            rows.sort_by(|a, b| table.comparator.compare_values(&a.clustering, &b.clustering));
            rows.dedup_by(|a, b| a.clustering == b.clustering);
            let mut deletions = RangeTombstoneList::new();
            for _ in 0..random.below(1 + spread / 4) {
                let (start, end) = (bound(table, random, spread, true), bound(table, random, spread, false));
                deletions.insert(&table.comparator, Slice { start, end }, deletion(random));
            }
            let static_row = table.statics.first().filter(|_| random.chance(2)).map(|column| {
                let mut row = Row::new(ClusteringValues::new());
                row.columns.push(ColumnData::Simple(Cell::live(column.id, 5, text(random, value_max))));
                row
            });
            Partition {
                key: DecoratedKey::new(int(id as i64)),
                deletion: if random.chance(3) { deletion(random) } else { DeletionTime::LIVE },
                static_row,
                rows,
                deletions,
            }
        })
        .collect();
    partitions.sort_by(|a, b| a.key.cmp(&b.key));
    partitions
}

impl Partition {
    /// The unfiltereds that a slice must give.
    fn within(&self, table: &TableMetadata, slice: &Slice) -> Vec<Unfiltered> {
        let comparator = &table.comparator;
        let rows = self.rows.iter().filter(|row| slice.contains(&row.clustering, comparator)).cloned();
        let tombstones = self.deletions.within(comparator, slice);
        let mut all: Vec<Unfiltered> =
            rows.map(Unfiltered::Row).chain(markers(&tombstones).into_iter().map(Unfiltered::Marker)).collect();
        all.sort_by(|a, b| a.compare(b, comparator));
        all
    }

    fn expected(&self, table: &TableMetadata, slices: &Slices, reversed: bool) -> Vec<Unfiltered> {
        let mut all: Vec<Unfiltered> = slices.0.iter().flat_map(|slice| self.within(table, slice)).collect();
        if reversed {
            all.reverse();
        }
        all
    }
}

fn write(
    table: &Arc<TableMetadata>,
    partitions: &[Partition],
    random: &mut Random,
    directory: &std::path::Path,
    version: Version,
) -> SSTable {
    let mut stats = EncodingStatsCollector::default();
    for partition in partitions {
        partition.rows.iter().chain(&partition.static_row).for_each(|row| stats.row(row));
    }
    let header = Header::for_table(table, stats.finish());
    let mut options = WriterOptions::for_table(table, partitions.len() as u64).unwrap();
    options.row_index_block = Some([50, 500, 5000][random.below(3) as usize]);
    options.compression = match random.below(4) {
        0 => None,
        _ => Some(CompressionParams {
            compressor: if random.chance(2) { Compressor::Lz4 } else { Compressor::Noop },
            chunk_length: [256, 1024, 16384][random.below(3) as usize],
            compressed_length_max: if random.chance(2) { 200 } else { i32::MAX as usize },
            ..CompressionParams::lz4()
        }),
    };
    let descriptor = Descriptor::new(directory, version, SSTableId::Sequence(1));
    let env = env::real::env();
    let mut writer = SSTableWriter::new(&env, descriptor.clone(), Arc::clone(table), options, header).unwrap();
    for partition in partitions {
        writer.start_partition(&partition.key, partition.deletion);
        partition.static_row.iter().for_each(|row| writer.static_row(row));
        for unfiltered in partition.within(table, &Slice::all()) {
            writer.append(&unfiltered).unwrap();
        }
        writer.end_partition().unwrap();
    }
    assert_eq!(writer.finish().unwrap().partitions, partitions.len() as u64);
    SSTable::open(&env, descriptor, table, Arc::new(NoCache)).unwrap()
}

fn command(table: &Arc<TableMetadata>, range: PartitionRange, slices: Slices, reversed: bool) -> ReadCommand {
    ReadCommand { slices, reversed, now: 1_600_000_000, ..ReadCommand::whole(table, range) }
}

fn check(sstable: &SSTable, partitions: &[Partition], command: &ReadCommand, seed: u64) {
    let mut stream = sstable.read(command, &ReadContext::new(ReadMode::Background)).unwrap();
    for partition in partitions.iter().filter(|partition| command.range.contains(&partition.key)) {
        let head = stream.next_partition().unwrap().expect("a partition is missing");
        let deletion = representable(partition.deletion, sstable.descriptor().version);
        assert_eq!((&head.key, head.deletion), (&partition.key, deletion));
        assert_eq!(head.static_row.as_deref(), partition.static_row.as_ref(), "seed {seed}");
        for (number, expected) in
            partition.expected(&command.table, &command.slices, command.reversed).iter().enumerate()
        {
            let found = stream.next_unfiltered().unwrap();
            assert_eq!(found.as_ref(), Some(expected), "seed {seed} number {number} {:#?}", command.slices);
        }
        assert_eq!(stream.next_unfiltered().unwrap(), None, "seed {seed} {:#?}", command.slices);
        if seed.is_multiple_of(3) {
            assert_eq!(stream.next_unfiltered().unwrap(), None);
        }
    }
    assert_eq!(stream.next_partition().unwrap(), None);
}

/// Partition deletions with a negative timestamp have no form from `oa` on.
fn representable(mut deletion: DeletionTime, version: Version) -> DeletionTime {
    if !deletion.is_live() && version != Version::NB {
        deletion.marked_for_delete_at = deletion.marked_for_delete_at.max(0);
    }
    deletion
}

fn random_slices(table: &TableMetadata, random: &mut Random, partition: &Partition) -> Slices {
    let spread = [4, 40, 400][random.below(3) as usize];
    let count = random.below(5);
    let slices = (0..count).map(|_| match (random.below(3), partition.rows.len() as u64) {
        (0, rows) if rows > 0 => Slice::of_prefix(partition.rows[random.below(rows) as usize].clustering.clone()),
        (1, _) => Slice::of_prefix(bound(table, random, spread, true).values),
        _ => Slice { start: bound(table, random, spread, true), end: bound(table, random, spread, false) },
    });
    Slices::normalized(slices.collect(), &table.comparator)
}

fn run(seed: u64, version: Version) {
    let mut random = Random::new(seed);
    let table = table(&mut random);
    let partitions = partitions(&table, &mut random);
    let directory = crate::fixtures::output(&format!("model-{}-{seed}", version.name()));
    let sstable = write(&table, &partitions, &mut random, directory.path(), version);
    for reversed in [false, true] {
        check(&sstable, &partitions, &command(&table, PartitionRange::all(), Slices::all(), reversed), seed);
        check(&sstable, &partitions, &command(&table, PartitionRange::all(), Slices::none(), reversed), seed);
        for _ in 0..30 {
            let partition = &partitions[random.below(partitions.len() as u64) as usize];
            let slices = random_slices(&table, &mut random, partition);
            let range = match random.below(3) {
                0 => PartitionRange::Range {
                    start: RingBound::Token { token: partition.key.token, inclusive: random.chance(2) },
                    end: RingBound::Open,
                },
                1 => PartitionRange::Range {
                    start: RingBound::Open,
                    end: RingBound::Key { key: partition.key.clone(), inclusive: random.chance(2) },
                },
                _ => PartitionRange::Key(partition.key.clone()),
            };
            check(&sstable, &partitions, &command(&table, range, slices, reversed), seed);
        }
    }
    for id in 1000..1300 {
        let missing = PartitionRange::Key(DecoratedKey::new(int(id)));
        check(&sstable, &partitions, &command(&table, missing, Slices::all(), false), seed);
    }
}

#[test]
fn reads_equal_a_naive_filter() {
    let count = std::env::var("HELENUS_SEEDS").map_or(60, |text| text.parse().unwrap());
    for seed in 1..=count {
        run(seed, Version::WRITABLE[seed as usize % Version::WRITABLE.len()]);
    }
}
