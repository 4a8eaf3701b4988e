//! The tables of an engine: one value that never changes, replaced by a change of the schema.
//!
//! Every request looks its table up by id, so that look takes the same few steps however many
//! tables there are. A pass over all tables is in the order of their ids, because the simulator
//! replays a run from its seed and needs the same order each time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;
use schema::TableId;

use crate::table::TableStore;

/// Tables by id.
pub(crate) struct Tables {
    in_order: BTreeMap<TableId, Arc<TableStore>>,
    by_id: HashMap<TableId, Arc<TableStore>, FixedState>,
}

impl Tables {
    pub(crate) fn new(in_order: BTreeMap<TableId, Arc<TableStore>>) -> Self {
        let by_id = in_order.iter().map(|(id, store)| (*id, Arc::clone(store))).collect();
        Self { in_order, by_id }
    }

    /// One table.
    pub(crate) fn get(&self, id: TableId) -> Option<&Arc<TableStore>> {
        self.by_id.get(&id)
    }

    /// All tables in the order of their ids.
    pub(crate) fn in_order(&self) -> &BTreeMap<TableId, Arc<TableStore>> {
        &self.in_order
    }
}
