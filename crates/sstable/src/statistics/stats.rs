//! The stats component: ranges of timestamps, deletion times, TTLs and clusterings, counts,
//! histograms, repair state, commit log positions. Field by field as docs/formats, "STATS"; agrees
//! with `org.apache.cassandra.io.sstable.metadata.StatsMetadata`.

use bytes::Bytes;
use rows::codec::{DeletionTimeForm, get_clustering_values, put_clustering_values, signed_seconds};
use rows::{ClusteringPrefix, ClusteringValues, NO_DELETION_TIME, PrefixKind, Slice};
use stdx::{Cursor, put_f64, put_i32, put_i64, put_short_bytes, put_u16, put_u32, put_u64, put_uvint, put_vbytes};
use types::CqlType;

use super::header::{detached, parse_type};
use super::{Histogram, TombstoneHistogram};
use crate::error::Malformed;
use crate::version::Version;

/// A place in the commit log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommitLogPosition {
    /// Segment id.
    pub segment: i64,
    /// Offset in it.
    pub offset: i32,
}

impl CommitLogPosition {
    /// None.
    pub const NONE: Self = Self { segment: -1, offset: 0 };

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self { segment: cursor.i64()?, offset: cursor.i32()? })
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_i64(out, self.segment);
        put_i32(out, self.offset);
    }
}

/// Statistics of the content.
#[derive(Clone, PartialEq, Debug)]
pub struct Stats {
    /// Bytes of partitions.
    pub partition_sizes: Histogram,
    /// Cells of partitions.
    pub cells_per_partition: Histogram,
    /// Parts of the commit log, of the node `originating_host`, whose mutations are in here.
    pub commit_log_intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
    /// Smallest write timestamp of anything; the least value when there is none.
    pub min_timestamp: i64,
    /// Greatest write timestamp; the greatest value when there is none.
    pub max_timestamp: i64,
    /// Smallest local deletion or expiration time; "none" when nothing ever ends.
    pub min_local_deletion_time: u32,
    /// Greatest; "none" as soon as something never ends.
    pub max_local_deletion_time: u32,
    /// Smallest TTL, 0 where something does not expire.
    pub min_ttl: u32,
    /// Greatest TTL.
    pub max_ttl: u32,
    /// Compressed by uncompressed bytes; -1 without compression.
    pub compression_ratio: f64,
    /// When tombstones may go.
    pub tombstones: TombstoneHistogram,
    /// Level of the leveled strategy.
    pub level: u32,
    /// Milliseconds; 0: not repaired.
    pub repaired_at: i64,
    /// Type expressions of the clustering columns; empty before `oa`.
    pub clustering_types: Vec<String>,
    /// From the first to the last row or range tombstone bound of any partition, in clustering
    /// order.
    pub covered: Slice,
    /// Holds counter shards that are not global.
    pub has_legacy_counter_shards: bool,
    /// Columns set, over all rows.
    pub total_columns_set: u64,
    /// Rows, static ones with content included.
    pub total_rows: u64,
    /// Repair session.
    pub pending_repair: Option<[u8; 16]>,
    /// Transient replication.
    pub is_transient: bool,
    /// Host id of the node that flushed.
    pub originating_host: Option<[u8; 16]>,
    /// Some partition is deleted; before `oa`: may be.
    pub has_partition_deletions: bool,
    /// First key; empty before `oa`.
    pub first_key: Bytes,
    /// Last key.
    pub last_key: Bytes,
    /// Fraction of the ring that is covered; NaN: unknown.
    pub token_space_coverage: f64,
}

fn uuid(cursor: &mut Cursor<'_>) -> Result<Option<[u8; 16]>, Malformed> {
    if cursor.u8()? == 0 {
        return Ok(None);
    }
    Ok(cursor.take(16)?.try_into().ok())
}

fn put_uuid(out: &mut Vec<u8>, uuid: &Option<[u8; 16]>) {
    out.push(u8::from(uuid.is_some()));
    out.extend(uuid.iter().flatten());
}

/// Local deletion times before `oa` are signed, with the greatest value for "none".
fn local_deletion_time(cursor: &mut Cursor<'_>, version: Version) -> Result<u32, Malformed> {
    let seconds = cursor.u32()?;
    let none = !version.has_unsigned_deletion_times() && seconds == i32::MAX as u32;
    Ok(if none { NO_DELETION_TIME } else { seconds })
}

fn put_local_deletion_time(out: &mut Vec<u8>, seconds: u32, version: Version) {
    match version.deletion_times() {
        DeletionTimeForm::Unsigned => put_u32(out, seconds),
        DeletionTimeForm::Signed => put_i32(out, signed_seconds(seconds)),
    }
}

/// Writes the greatest local deletion time. Rows keep a time that is later than a version before
/// `oa` can say here: "none" is written then, or the SSTable would count as expired in 2038.
fn put_greatest_deletion_time(out: &mut Vec<u8>, seconds: u32, version: Version) {
    let is_beyond = version.deletion_times() == DeletionTimeForm::Signed && seconds >= i32::MAX.cast_unsigned();
    put_local_deletion_time(out, if is_beyond { NO_DELETION_TIME } else { seconds }, version);
}

impl Stats {
    pub(super) fn read(body: &Bytes, version: Version) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(body);
        let c = &mut cursor;
        let partition_sizes = Histogram::read(c)?;
        let cells_per_partition = Histogram::read(c)?;
        let upper = CommitLogPosition::read(c)?;
        let (min_timestamp, max_timestamp) = (c.i64()?, c.i64()?);
        let (min_ldt, max_ldt) = (local_deletion_time(c, version)?, local_deletion_time(c, version)?);
        let (min_ttl, max_ttl) = (c.u32()?, c.u32()?);
        let compression_ratio = c.f64()?;
        let tombstones = TombstoneHistogram::read(c, version.deletion_times())?;
        let (level, repaired_at) = (c.u32()?, c.i64()?);
        let (clustering_types, covered) =
            if version.has_covered_slice() { covered_slice(body, c)? } else { (Vec::new(), covered_values(c)?) };
        let covered = if version.has_accurate_covered_values() { covered } else { Slice::all() };
        let has_legacy_counter_shards = c.bool()?;
        let (total_columns_set, total_rows) = (c.u64()?, c.u64()?);
        let commit_log_intervals = commit_log_intervals(c, version, upper)?;
        let has_sessions = version.has_repair_sessions_and_checksums();
        let pending_repair = if has_sessions { uuid(c)? } else { None };
        let is_transient = has_sessions && c.bool()?;
        let originating_host = if version.has_originating_host() { uuid(c)? } else { None };
        let mut stats = Self {
            partition_sizes,
            cells_per_partition,
            commit_log_intervals,
            min_timestamp,
            max_timestamp,
            min_local_deletion_time: min_ldt,
            max_local_deletion_time: max_ldt,
            min_ttl,
            max_ttl,
            compression_ratio,
            tombstones,
            level,
            repaired_at,
            clustering_types,
            covered,
            has_legacy_counter_shards,
            total_columns_set,
            total_rows,
            pending_repair,
            is_transient,
            originating_host,
            // where it is not said: none, if nothing is deleted at all
            has_partition_deletions: min_ldt != NO_DELETION_TIME,
            first_key: Bytes::new(),
            last_key: Bytes::new(),
            token_space_coverage: f64::NAN,
        };
        if version.has_key_range() {
            stats.has_partition_deletions = c.bool()?;
            stats.first_key = detached(c.vbytes()?);
            stats.last_key = detached(c.vbytes()?);
            stats.token_space_coverage = c.f64()?;
        }
        Ok(stats)
    }

    /// As a version has them; what it has no field for is left out.
    pub(super) fn write(&self, version: Version) -> Vec<u8> {
        let mut out = Vec::with_capacity(6000);
        let out_ref = &mut out;
        self.partition_sizes.write(out_ref);
        self.cells_per_partition.write(out_ref);
        let upper = self.commit_log_intervals.last().map_or(CommitLogPosition::NONE, |interval| interval.1);
        let lower = self.commit_log_intervals.first().map_or(CommitLogPosition::NONE, |interval| interval.0);
        upper.write(out_ref);
        put_i64(out_ref, self.min_timestamp);
        put_i64(out_ref, self.max_timestamp);
        put_local_deletion_time(out_ref, self.min_local_deletion_time, version);
        put_greatest_deletion_time(out_ref, self.max_local_deletion_time, version);
        put_u32(out_ref, self.min_ttl);
        put_u32(out_ref, self.max_ttl);
        put_f64(out_ref, self.compression_ratio);
        // Cassandra reserves more for some fields than it fills, and so do its files: zeros behind
        // the last field
        let mut reserved = self.tombstones.write(out_ref, version.deletion_times());
        put_u32(out_ref, self.level);
        put_i64(out_ref, self.repaired_at);
        if version.has_covered_slice() {
            self.write_covered(out_ref);
        } else {
            reserved += write_values(out_ref, &self.covered.start) + write_values(out_ref, &self.covered.end);
        }
        out_ref.push(u8::from(self.has_legacy_counter_shards));
        put_u64(out_ref, self.total_columns_set);
        put_u64(out_ref, self.total_rows);
        if version.has_commit_log_lower_bound() {
            lower.write(out_ref);
        }
        if version.has_commit_log_intervals() {
            put_u32(out_ref, self.commit_log_intervals.len() as u32);
            for (start, end) in &self.commit_log_intervals {
                start.write(out_ref);
                end.write(out_ref);
            }
        }
        if version.has_repair_sessions_and_checksums() {
            put_uuid(out_ref, &self.pending_repair);
            out_ref.push(u8::from(self.is_transient));
        }
        if version.has_originating_host() {
            put_uuid(out_ref, &self.originating_host);
        }
        if version.has_key_range() {
            out_ref.push(u8::from(self.has_partition_deletions));
            put_vbytes(out_ref, &self.first_key);
            put_vbytes(out_ref, &self.last_key);
            put_f64(out_ref, self.token_space_coverage);
        }
        out.resize(out.len() + reserved, 0);
        out
    }

    fn write_covered(&self, out: &mut Vec<u8>) {
        put_uvint(out, self.clustering_types.len() as u64);
        self.clustering_types.iter().for_each(|ty| put_vbytes(out, ty.as_bytes()));
        let types: Vec<CqlType> =
            self.clustering_types.iter().map(|ty| parse_type(ty).unwrap_or(CqlType::Blob)).collect();
        for bound in [&self.covered.start, &self.covered.end] {
            out.push(bound.kind as u8);
            put_u16(out, bound.values.len() as u16);
            put_clustering_values(out, &bound.values, &types[..bound.values.len().min(types.len())]);
        }
    }
}

fn commit_log_intervals(
    cursor: &mut Cursor<'_>,
    version: Version,
    upper: CommitLogPosition,
) -> Result<Vec<(CommitLogPosition, CommitLogPosition)>, Malformed> {
    let lower =
        if version.has_commit_log_lower_bound() { CommitLogPosition::read(cursor)? } else { CommitLogPosition::NONE };
    if !version.has_commit_log_intervals() {
        return Ok(if upper == CommitLogPosition::NONE { Vec::new() } else { vec![(lower, upper)] });
    }
    let mut intervals = Vec::new();
    for _ in 0..cursor.u32()? {
        intervals.push((CommitLogPosition::read(cursor)?, CommitLogPosition::read(cursor)?));
    }
    Ok(intervals)
}

/// Before `oa`: the values up to the first that is absent. Gives how many bytes the absent ones
/// have reserved.
fn write_values(out: &mut Vec<u8>, bound: &ClusteringPrefix) -> usize {
    let present = bound.values.iter().take_while(|value| value.is_some()).count();
    put_u32(out, present as u32);
    for value in bound.values.iter().take(present).flatten() {
        put_short_bytes(out, value);
    }
    bound.values.iter().skip(present).map(|value| 2 + value.as_ref().map_or(0, Bytes::len)).sum()
}

fn covered_slice(body: &Bytes, cursor: &mut Cursor<'_>) -> Result<(Vec<String>, Slice), Malformed> {
    let count = cursor.uvint()?;
    let mut expressions = Vec::new();
    for _ in 0..count {
        let at = cursor.position() as u64;
        let expression = std::str::from_utf8(cursor.vbytes()?);
        expressions.push(expression.map_err(|_| Malformed::at(at, "a type that is not text"))?.to_owned());
    }
    let types = expressions.iter().map(|ty| parse_type(ty)).collect::<Result<Vec<_>, _>>()?;
    let mut bound = || -> Result<ClusteringPrefix, Malformed> {
        let at = cursor.position() as u64;
        let (ordinal, count) = (cursor.u8()?, usize::from(cursor.u16()?));
        let kind = PrefixKind::from_ordinal(ordinal).filter(|kind| kind.is_start() || kind.is_end());
        let (Some(kind), Some(types)) = (kind, types.get(..count)) else {
            return Err(Malformed::at(at, format!("a bound of kind {ordinal} with {count} values")));
        };
        let (values, next) = get_clustering_values(body, cursor.position(), types)?;
        cursor.skip(next - cursor.position())?;
        let values = values.into_iter().map(|value| value.map(|value| detached(&value))).collect();
        Ok(ClusteringPrefix { kind, values })
    };
    let (start, end) = (bound()?, bound()?);
    Ok((expressions, Slice { start, end }))
}

/// Before `oa`: the least and the greatest value of each column. What they cover is at most this
/// slice.
fn covered_values(cursor: &mut Cursor<'_>) -> Result<Slice, Malformed> {
    let mut values = || -> Result<ClusteringValues, Malformed> {
        let mut values = ClusteringValues::new();
        for _ in 0..cursor.u32()? {
            values.push(Some(detached(cursor.short_bytes()?)));
        }
        Ok(values)
    };
    let (start, end) = (values()?, values()?);
    Ok(Slice { start: ClusteringPrefix::start(start, true), end: ClusteringPrefix::end(end, true) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schema::table::ColumnSpec;
    use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};

    use super::*;
    use crate::statistics::StatsCollector;

    #[test]
    fn an_end_that_a_version_cannot_say_is_never() {
        let (name, kind) = ("k".into(), ColumnKind::PartitionKey);
        let specs = vec![ColumnSpec { name, kind, position: 0, ty: CqlType::Int, reversed: false }];
        let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
        let table = TableMetadata::new(TableId([1; 16]), "ks", "t", kind, flags, params, specs, BTreeMap::new(), None);
        let (mut stats, _) = StatsCollector::new(&table, 0).finish();
        let latest = i32::MAX as u32 - 1;
        for (version, end, expected) in [
            (Version::NB, latest, latest),
            (Version::NB, latest + 1, NO_DELETION_TIME),
            (Version::NB, 2_300_000_000, NO_DELETION_TIME),
            (Version::DA, 2_300_000_000, 2_300_000_000),
        ] {
            stats.max_local_deletion_time = end;
            let read = Stats::read(&stats.write(version).into(), version).expect("it was just written");
            assert_eq!(read.max_local_deletion_time, expected, "{end} in {version:?}");
        }
    }
}
