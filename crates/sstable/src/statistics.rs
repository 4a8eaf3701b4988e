//! `Statistics.db`: what is known of an SSTable's content without reading it.
//!
//! ```text
//! i32 count; u32 CRC of it; count × { i32 type, i32 offset }; u32 CRC of all so far
//! per component: body, u32 CRC of the body
//! ```
//! Types: 0 validation, 1 compaction, 2 stats, 3 header. A body may end in zeros behind its last
//! field. Before `na` there are no checksums. Agrees with
//! `org.apache.cassandra.io.sstable.metadata.MetadataSerializer` and its components.

mod cardinality;
mod collector;
mod header;
mod histogram;
mod stats;
mod tombstones;

pub use cardinality::Cardinality;
pub use collector::StatsCollector;
pub(crate) use header::parse_type;
pub use header::{HeaderColumn, HeaderComponent};
pub use histogram::Histogram;
pub use stats::{CommitLogPosition, Stats};
pub use tombstones::TombstoneHistogram;

use bytes::Bytes;
use stdx::{Cursor, put_f64, put_u32, put_utf};

use crate::error::Malformed;
use crate::version::Version;

const VALIDATION: u32 = 0;
const COMPACTION: u32 = 1;
const STATS: u32 = 2;
const HEADER: u32 = 3;
/// More component types than this are a sign of corruption.
const COMPONENTS_MAX: u32 = 32;

/// Most bytes of a Statistics.db that is read as a whole. Larger ones are refused.
pub const STATISTICS_SIZE_MAX: u64 = 256 << 20;

/// Name of the only partitioner of tables that are written.
pub const MURMUR3_PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

/// Name of the partitioner of legacy index tables.
pub const LOCAL_PARTITIONER: &str = "org.apache.cassandra.dht.LocalPartitioner";

/// A read Statistics.db, or one to be written.
#[derive(Clone, PartialEq, Debug)]
pub struct Statistics {
    /// Class name of the partitioner.
    pub partitioner: String,
    /// The table's `bloom_filter_fp_chance` when written.
    pub filter_chance: f64,
    /// Sketch of the partition keys; None where it cannot be read, which nothing depends on.
    pub cardinality: Option<Cardinality>,
    /// Ranges and counts.
    pub stats: Stats,
    /// The header that rows were written against.
    pub header: HeaderComponent,
}

impl Statistics {
    /// Reads the file.
    pub fn read(file: &Bytes, version: Version) -> Result<Self, Malformed> {
        let checksums = version.has_repair_sessions_and_checksums();
        let table = read_table(file, checksums)?;
        let body = |kind: u32, name: &str| -> Result<(Bytes, u64), Malformed> {
            let found = table.iter().find(|entry| entry.0 == kind);
            let (_, start, end) = found.ok_or_else(|| Malformed::at(0, format!("no {name} component")))?;
            checked_body(file, *start, *end, checksums)
        };
        let (validation, _) = body(VALIDATION, "validation")?;
        let mut cursor = Cursor::new(&validation);
        let partitioner = cursor.utf()?.to_owned();
        let filter_chance = cursor.f64()?;
        let cardinality = match body(COMPACTION, "compaction") {
            Ok((compaction, _)) => Cursor::new(&compaction).int_bytes()?.and_then(Cardinality::read),
            Err(_) => None,
        };
        let (stats, at) = body(STATS, "stats")?;
        let stats = Stats::read(&stats, version).map_err(|error| error.behind(at))?;
        let (header, at) = body(HEADER, "header")?;
        let mut header = HeaderComponent::read(&header).map_err(|error| error.behind(at))?;
        header.deletion_times = version.deletion_times();
        Ok(Self { partitioner, filter_chance, cardinality, stats, header })
    }

    /// The file, as a version has it: what it has no field for is left out.
    pub fn write(&self, version: Version) -> Vec<u8> {
        let mut validation = Vec::new();
        put_utf(&mut validation, &self.partitioner);
        put_f64(&mut validation, self.filter_chance);
        let mut compaction = Vec::new();
        let sketch = self.cardinality.clone().unwrap_or_default().write();
        put_u32(&mut compaction, sketch.len() as u32);
        compaction.extend_from_slice(&sketch);
        let bodies = [validation, compaction, self.stats.write(version), self.header.write()];

        let mut out = Vec::new();
        let checksum_len = if version.has_repair_sessions_and_checksums() { 4 } else { 0 };
        let put_checksum = |out: &mut Vec<u8>, checksum: u32| {
            out.extend_from_slice(&checksum.to_be_bytes()[..checksum_len]);
        };
        put_u32(&mut out, bodies.len() as u32);
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&out);
        put_checksum(&mut out, checksum.clone().finalize());
        let mut table = Vec::new();
        let mut offset = out.len() + bodies.len() * 8 + checksum_len;
        for (kind, body) in bodies.iter().enumerate() {
            put_u32(&mut table, kind as u32);
            put_u32(&mut table, offset as u32);
            offset += body.len() + checksum_len;
        }
        checksum.update(&table);
        out.extend_from_slice(&table);
        put_checksum(&mut out, checksum.finalize());
        for body in &bodies {
            out.extend_from_slice(body);
            put_checksum(&mut out, crc32fast::hash(body));
        }
        assert_eq!(out.len(), offset, "the components of Statistics.db lie where its table says");
        out
    }
}

/// Type, start and end (behind the checksum) of each component.
fn read_table(file: &[u8], checksums: bool) -> Result<Vec<(u32, usize, usize)>, Malformed> {
    let mut cursor = Cursor::new(file);
    let count = cursor.u32()?;
    if count > COMPONENTS_MAX {
        return Err(Malformed::at(0, format!("{count} components")));
    }
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&count.to_be_bytes());
    if checksums {
        check(cursor.u32()?, checksum.clone().finalize(), 4)?;
    }
    let bytes = cursor.take(count as usize * 8)?;
    checksum.update(bytes);
    let at = cursor.position();
    if checksums {
        check(cursor.u32()?, checksum.finalize(), at)?;
    }
    let mut entries = Cursor::new(bytes);
    let mut starts = Vec::with_capacity(count as usize);
    for _ in 0..count {
        starts.push((entries.u32()?, entries.u32()? as usize));
    }
    let ends = starts.iter().skip(1).map(|entry| entry.1).chain([file.len()]);
    Ok(starts.iter().zip(ends).map(|((kind, start), end)| (*kind, *start, end)).collect())
}

fn checked_body(file: &Bytes, start: usize, end: usize, checksums: bool) -> Result<(Bytes, u64), Malformed> {
    let body_end =
        end.checked_sub(if checksums { 4 } else { 0 }).filter(|body_end| start <= *body_end && end <= file.len());
    let body_end = body_end.ok_or_else(|| Malformed::at(start as u64, "a component that ends before it starts"))?;
    let body = file.slice(start..body_end);
    if checksums {
        check(Cursor::new(&file[body_end..]).u32()?, crc32fast::hash(&body), body_end)?;
    }
    Ok((body, start as u64))
}

fn check(stored: u32, computed: u32, at: usize) -> Result<(), Malformed> {
    if stored == computed {
        return Ok(());
    }
    Err(Malformed::at(at as u64, format!("checksum {stored:08x} is stored, {computed:08x} computed")))
}
