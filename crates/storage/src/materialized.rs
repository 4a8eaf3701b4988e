//! Materialized views of this node's tables: the changes of views that follow from a write.
//!
//! 1. [`changes`] reads the rows that a write concerns as they are, and computes of them and the
//!    write what changes in each view (`rows::views`).
//! 2. [`settle`] corrects, of entries whose liveness timestamps alone do not decide, that liveness
//!    by the entry as it is here.
//! 3. The caller applies base and views as one ([`Engine::apply_with_views`]): one group in the
//!    commit log, one step in memtables.
//!
//! Between 1 and 3 no other write may change these partitions of the base: the caller holds a lock
//! (`cluster::replica::views`). An entry of a view is made of one row of the base alone, so the
//! lock of the base's partition protects it too. [`built`] says which views are complete. Agrees
//! in role with `org.apache.cassandra.db.view.TableViews`.

pub mod built;

use std::sync::Arc;

use rows::views::{self, Entry, View, ViewChangesError};
use rows::{
    Mutation, PartitionRange, PartitionStream, PartitionUpdate, ReadCommand, ReadContext, ReadError, Row, Slice,
    Slices, Unfiltered,
};
use types::DecoratedKey;

use crate::base_views::{BaseViews, FilterMaker};
use crate::engine::Engine;
use crate::error::StorageError;

/// The changes of one view that follow from a change of one partition of its base.
pub struct ViewChange {
    /// The partition of the base.
    pub base: DecoratedKey,
    /// The view.
    pub view: Arc<View>,
    /// The changes of its rows.
    pub entries: Vec<Entry>,
}

impl ViewChange {
    /// The change as mutations, one for each partition of the view.
    pub fn into_mutations(self) -> impl Iterator<Item = Mutation> {
        views::updates(&self.view, self.entries).into_iter().map(Mutation::of)
    }
}

/// Why the changes of views are not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ViewError {
    /// The present rows cannot be read; `ReadError::WouldBlock`: not without waiting.
    Read(ReadError),
    /// A view cannot be maintained.
    Refused(String),
    /// The changes are more than the commit log takes as one group.
    TooLarge {
        /// Bytes of the changes, or fewer.
        size: usize,
        /// The limit, bytes.
        size_max: usize,
    },
}

impl From<ReadError> for ViewError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl Engine {
    /// Sets the function that reads the WHERE of views. From now on tables with views take writes.
    pub fn set_view_filters(&self, maker: FilterMaker) {
        assert!(self.view_filters.set(maker).is_ok(), "the WHERE of views is read by one maker");
        self.note_views(&self.schema());
    }

    /// The views as they are now.
    pub fn views(&self) -> Arc<BaseViews> {
        self.views.load_full()
    }

    /// The views, if one of these updates is of a table with views. None: it is not, and the write
    /// has nothing to do with views as long as their number is the same.
    #[inline]
    pub fn views_over(&self, mutations: &[Mutation]) -> Option<Arc<BaseViews>> {
        let views = self.views.load();
        if views.is_empty() {
            return None;
        }
        let mut updates = mutations.iter().flat_map(|mutation| &mutation.updates);
        updates.any(|update| views.of_base(update.table.id).is_some()).then(|| Arc::clone(&views))
    }

    /// The number of the views: see [`crate::base_views`].
    #[inline]
    pub fn views_number(&self) -> u64 {
        self.views.load().number
    }

    /// Makes the snapshot of the views for a schema that comes into force.
    pub(crate) fn note_views(&self, schema: &Arc<schema::Schema>) {
        let before = self.views.load();
        let mut tables = schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
        let has_left_out = schema.left_out.values().any(|table| table.is_view);
        if before.is_empty() && !has_left_out && !tables.any(|table| table.view.is_some()) {
            return;
        }
        self.views.store(Arc::new(BaseViews::of(schema, self.view_filters.get(), before.number + 1)));
    }
}

/// The changes of views that follow from these mutations, as the rows are now.
pub fn changes(
    engine: &Engine,
    views: &BaseViews,
    mutations: &[Mutation],
    now: u32,
    context: &ReadContext,
) -> Result<Vec<ViewChange>, ViewError> {
    let (mut changes, mut size) = (Vec::new(), 0);
    for update in mutations.iter().flat_map(|mutation| &mutation.updates) {
        let Some(of_base) = views.of_base(update.table.id) else { continue };
        if let Some(why) = &of_base.refusal {
            return Err(ViewError::Refused(why.clone()));
        }
        let Some(mut stored) = present_rows(engine, update, now, context)? else { continue };
        let size_max = size_max(engine, update);
        let entries = views::of_update(&of_base.views, update, &mut *stored, now, &mut size, size_max);
        let entries = entries.map_err(|error| match error {
            ViewChangesError::Read(error) => ViewError::Read(error),
            ViewChangesError::TooLarge => ViewError::TooLarge { size, size_max },
        })?;
        for (view, entries) in of_base.views.iter().zip(entries).filter(|(_, entries)| !entries.is_empty()) {
            changes.push(ViewChange { base: update.key.clone(), view: Arc::clone(view), entries });
        }
    }
    Ok(changes)
}

/// The present rows that have to be known for an update; None: the update changes no view.
fn present_rows(
    engine: &Engine,
    update: &PartitionUpdate,
    now: u32,
    context: &ReadContext,
) -> Result<Option<Box<dyn PartitionStream>>, ReadError> {
    let slices = views::affected_rows(update);
    if slices.0.is_empty() {
        // static columns are in no view
        return Ok(None);
    }
    read(engine, update, slices, now, context).map(Some)
}

/// Bytes that the changes which follow from an update may have: all of them are one group of the
/// commit log, unless the keyspace goes without the log.
fn size_max(engine: &Engine, update: &PartitionUpdate) -> usize {
    let schema = engine.schema();
    match schema.keyspace(&update.table.keyspace).is_none_or(|keyspace| keyspace.durable_writes) {
        true => engine.options.commitlog.segment_size as usize,
        false => usize::MAX,
    }
}

fn read(
    engine: &Engine,
    update: &PartitionUpdate,
    slices: Slices,
    now: u32,
    context: &ReadContext,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    let Some(store) = engine.table(update.table.id) else { return Ok(Box::new(rows::stream::EmptyStream)) };
    let whole = ReadCommand::whole(&store.table(), PartitionRange::Key(update.key.clone()));
    let command = ReadCommand { slices, now, ..whole };
    engine.read(&command, context)
}

/// Gives the entries of a view that is stored here the liveness that they must have.
pub fn settle(engine: &Engine, change: &mut ViewChange, now: u32, context: &ReadContext) -> Result<(), ReadError> {
    let ViewChange { view, entries, .. } = change;
    for entry in entries.iter_mut().filter(|entry| !entry.is_certain) {
        let stored = stored(engine, view, entry, now, context)?;
        views::settle(entry, view, stored, now);
    }
    Ok(())
}

/// An entry as it is stored here, its deletions included. None: nothing of it is stored.
fn stored(
    engine: &Engine,
    view: &View,
    entry: &Entry,
    now: u32,
    context: &ReadContext,
) -> Result<Option<Row>, ReadError> {
    let of_entry = PartitionUpdate::new(Arc::clone(&view.table), entry.key.clone());
    let slices = match view.table.clustering.is_empty() {
        true => Slices::all(),
        false => Slices::from(vec![Slice::of_prefix(entry.row.clustering.clone())]),
    };
    let mut stream = read(engine, &of_entry, slices, now, context)?;
    let mut found = None;
    while stream.next_partition()?.is_some() {
        while let Some(unfiltered) = stream.next_unfiltered()? {
            if let Unfiltered::Row(row) = unfiltered {
                found = Some(row);
            }
        }
    }
    Ok(found)
}

impl Engine {
    /// Applies mutations with the changes of views that follow from them: all of them are there
    /// after a crash, or none. `number` is that of the views for which the changes were computed.
    pub fn apply_with_views(&self, mutations: &[Mutation], number: u64) -> Result<crate::write::Applied, StorageError> {
        self.apply_as(mutations, &[], crate::write::LogAtomicity::AllOrNone, Some(number))
    }
}
