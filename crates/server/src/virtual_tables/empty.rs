//! Tables that exist so that programs which read them work, but never have rows.

use super::VirtualTable;

pub(super) const TABLES: &[VirtualTable] = &[
    // the segments of Lucene's formats, which this node does not write
    empty("sai_sstable_index_segments"),
    // most requests end as soon as they are read, so requests are not kept in a place that other
    // requests could read
    empty("queries"),
];

const fn empty(name: &'static str) -> VirtualTable {
    VirtualTable::of_views(name, |_| Vec::new())
}
