//! Tables that exist so that programs which read them work, but never have rows: this node has no
//! repairs, streams or storage-attached indexes.

use super::VirtualTable;

pub(super) const TABLES: &[VirtualTable] = &[
    // nothing is streamed
    empty("streaming"),
    // no repair
    empty("repair_jobs"),
    empty("repair_participates"),
    empty("repair_sessions"),
    empty("repair_validations"),
    empty("repairs"),
    // no storage-attached index
    empty("sai_column_indexes"),
    empty("sai_sstable_index_segments"),
    empty("sai_sstable_indexes"),
    // most requests end as soon as they are read, so requests are not kept in a place that other
    // requests could read
    empty("queries"),
];

const fn empty(name: &'static str) -> VirtualTable {
    VirtualTable::of_views(name, |_| Vec::new())
}
