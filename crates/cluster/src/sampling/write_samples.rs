//! The samples of a write.

use rows::{ColumnData, DeletionTime, Mutation, PartitionUpdate, Row};

use super::{Sampler, Sampling};

/// Bytes for which a timestamp counts, and also the two times of a deletion.
const TIMESTAMP: u64 = 8;
const DELETION: u64 = 12;

/// Gives the samples of mutations that were applied to the sessions.
pub(crate) fn sample_write(sampling: &Sampling, mutations: &[Mutation]) {
    for update in mutations.iter().flat_map(|mutation| &mutation.updates) {
        sampling.add(Sampler::Writes, &update.table, &update.key.key, 1);
        if sampling.wants(Sampler::WriteSize) {
            sampling.add(Sampler::WriteSize, &update.table, &update.key.key, size(update));
        }
    }
}

/// Bytes of an update, about as `PartitionUpdate.dataSize` counts them: clusterings, values,
/// timestamps and deletions.
fn size(update: &PartitionUpdate) -> u64 {
    let rows: u64 = update.static_row.iter().chain(&update.rows).map(size_of_row).sum();
    rows + of_deletion(&update.deletion) + update.range_deletions.len() as u64 * DELETION
}

fn of_deletion(deletion: &DeletionTime) -> u64 {
    if deletion.is_live() { 0 } else { DELETION }
}

fn size_of_row(row: &Row) -> u64 {
    let clustering: usize = row.clustering.iter().map(|value| value.as_ref().map_or(0, |value| value.len())).sum();
    let liveness = if row.liveness.is_empty() { 0 } else { TIMESTAMP };
    let columns = row.columns.iter().map(|data| match data {
        ColumnData::Simple(cell) => cell.value.len() as u64 + TIMESTAMP,
        ColumnData::Complex(complex) => {
            let cells: u64 = complex.cells.iter().map(|cell| cell.value.len() as u64 + TIMESTAMP).sum();
            cells + of_deletion(&complex.deletion)
        }
    });
    clustering as u64 + liveness + of_deletion(&row.deletion) + columns.sum::<u64>()
}
