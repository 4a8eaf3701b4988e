//! The guardrail on how many SSTables a search by attached indexes has to look into
//! (`sai_sstable_indexes_per_query_*_threshold`).
//!
//! A search is judged before anything of it is read, by numbers that are in memory: an SSTable
//! counts for a condition if its keys reach into the range that is read and its terms reach into
//! those that are wanted, both ends included. If there are several conditions, the one with the
//! most SSTables counts. A search for the nearest vectors looks into every SSTable of the range.
//! Memtables count for nothing, and SASI indexes are not guarded. Agrees with
//! `org.apache.cassandra.index.sai.plan.QueryController.maybeTriggerGuardrails` and
//! `QueryViewBuilder`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rows::{ReadCommand, ReadContext, ReadError};
use sstable::SSTable;
use sstable::attached::TermRange;

use super::sources::Wanted;
use crate::table::TableStore;

/// Refuses a search that would look into too many SSTables. If there are more than the threshold
/// of the warning, their number is noted. `nearest`: the search is for the nearest vectors, beside
/// the conditions.
pub fn check(
    base: &TableStore,
    wanted: &[Wanted],
    nearest: bool,
    command: &ReadCommand,
    context: &ReadContext,
) -> Result<(), ReadError> {
    let limits = context.index_limits;
    let view = base.view();
    if view.sstables.len() as u64 <= limits.warn.min(limits.fail) {
        return Ok(());
    }
    let is_in_range = |sstable: &&Arc<SSTable>| {
        !command.range.is_past(sstable.first_key()) && !command.range.is_before(sstable.last_key())
    };
    let in_range: Vec<_> = view.sstables.iter().filter(is_in_range).collect();
    let of_condition = |wanted: &Wanted| in_range.iter().filter(|sstable| reaches_into(sstable, wanted)).count() as u64;
    let guarded = wanted.iter().filter(|wanted| wanted.index.definition.sasi.is_none());
    let numbers = [nearest.then_some(in_range.len() as u64), guarded.map(of_condition).max()];
    for number in numbers.into_iter().flatten() {
        if number > limits.fail {
            return Err(ReadError::TooManyIndexes { number });
        }
        if number > limits.warn {
            context.stats.indexes.store(number, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Whether an SSTable may have one of the wanted terms. An SSTable without its components is
/// reported when it is searched.
fn reaches_into(sstable: &SSTable, wanted: &Wanted) -> bool {
    let Some((_, terms)) = sstable.attached().of_index(wanted.index.name()) else { return false };
    let TermRange { lower, upper, .. } = &wanted.range;
    terms.ends().is_some_and(|(least, greatest)| {
        lower.as_ref().is_none_or(|(lower, _)| &lower[..] <= greatest)
            && upper.as_ref().is_none_or(|(upper, _)| &upper[..] >= least)
    })
}
