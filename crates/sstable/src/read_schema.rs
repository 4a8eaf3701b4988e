//! A table's schema as the files of one SSTable need it: the columns of its header under the
//! table's columns, and positions in their byte-comparable form.

use std::sync::Arc;

use bytes::Bytes;
use rows::PrefixKind;
use rows::codec::{CodecColumn, Header};
use schema::{ClusteringComparator, TableMetadata};
use types::byte_comparable::{
    ByteForm, TERMINATOR_AFTER, TERMINATOR_BEFORE, TERMINATOR_CLUSTERING, encode_clustering_in, has_two_forms,
};

use crate::error::Malformed;
use crate::statistics::Statistics;

/// The schema under which an SSTable is read.
#[derive(Debug)]
pub(crate) struct ReadSchema {
    pub table: Arc<TableMetadata>,
    /// The header that reads decode rows against: they do not see dropped columns.
    pub header: Header,
    /// The columns against which a compaction, which writes rows again, decodes them: cells of
    /// dropped columns that are newer than the drop stay, for the column may be added again. None:
    /// as reads do, there are no such cells.
    pub rewriting: Option<Arc<ReadSchema>>,
    /// Where partitions are is kept: the table's `caching = {'keys': 'ALL'}`.
    pub caches_keys: bool,
}

impl ReadSchema {
    /// The header's columns under those of the table.
    pub(crate) fn new(statistics: &Statistics, table: &Arc<TableMetadata>) -> Result<Self, Malformed> {
        let caches_keys = table.params.caching.get("keys").is_none_or(|keys| keys != "NONE");
        let resolved = |header, rewriting| Self { table: Arc::clone(table), header, rewriting, caches_keys };
        let whole = statistics.header.resolve(table)?;
        let Some(header) = whole.passing_over(|_, id| table.column(id).is_some()) else {
            return Ok(resolved(whole, None));
        };
        let max_timestamp = statistics.stats.max_timestamp;
        let outlives = |column: &CodecColumn| column.dropped_time < max_timestamp;
        let whole = whole.passing_over(|column, id| table.column(id).is_some() || outlives(column)).unwrap_or(whole);
        let rewriting = (whole != header).then(|| Arc::new(resolved(whole, None)));
        Ok(resolved(header, rewriting))
    }
}

/// The byte-comparable form of a position in a partition.
pub(crate) fn values_comparable(
    comparator: &ClusteringComparator,
    values: &[Option<Bytes>],
    kind: PrefixKind,
) -> Vec<u8> {
    encode(ByteForm::Ordered, comparator, values, kind)
}

/// The form that Cassandra gives a position, where that may be another than the form of
/// [`values_comparable`].
pub(crate) fn values_of_cassandra(
    comparator: &ClusteringComparator,
    values: &[Option<Bytes>],
    kind: PrefixKind,
) -> Option<Vec<u8>> {
    let may_differ = comparator.columns.iter().zip(values).any(|((ty, _), _)| has_two_forms(ty));
    may_differ.then(|| encode(ByteForm::Cassandra, comparator, values, kind))
}

fn encode(form: ByteForm, comparator: &ClusteringComparator, values: &[Option<Bytes>], kind: PrefixKind) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    let terminator = match kind.side() {
        0 => TERMINATOR_CLUSTERING,
        side if side < 0 => TERMINATOR_BEFORE,
        _ => TERMINATOR_AFTER,
    };
    encode_clustering_in(form, &comparator.columns, values, terminator, &mut out);
    out
}
