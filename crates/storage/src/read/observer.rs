//! Observers of the choice and the opening of a read's sources. Usually there is none, and
//! [`NoObserver`] compiles to nothing.

use std::sync::Arc;

use rows::{PartitionStream, ReadCommand, ReadContext, ReadError};
use sstable::SSTable;

use crate::table::memtable::Memtable;
use crate::table::view::View;

/// An observer of a read.
pub(super) trait ReadObserver {
    /// The identity of a source from its opening to its stream.
    type Source;

    /// Whether the observer wants to be told.
    const LOOKS: bool;

    /// Called when memtables (in token order) are going to be read.
    fn memtables(&mut self, memtables: &[Arc<Memtable>], view: &View) -> Self::Source;

    /// Called when the row cache is going to be read: an entry of so many bytes, found there, or
    /// made by this read.
    fn row_cache(&mut self, bytes: u64, found: bool) -> Self::Source;

    /// Takes the stream of such a source; may wrap it.
    fn wrap_stream(&mut self, source: Self::Source, stream: Box<dyn PartitionStream>) -> Box<dyn PartitionStream>;

    /// Called when an SSTable was left out.
    fn skipped(&mut self, sstable: &Arc<SSTable>, reason: &'static str);

    /// Opens an SSTable.
    fn sstable(
        &mut self,
        sstable: &Arc<SSTable>,
        command: &ReadCommand,
        context: &ReadContext,
    ) -> Result<Box<dyn PartitionStream>, ReadError>;
}

/// The observer of reads that are not observed.
pub(super) struct NoObserver;

impl ReadObserver for NoObserver {
    type Source = ();

    const LOOKS: bool = false;

    #[inline]
    fn row_cache(&mut self, _: u64, _: bool) {}

    #[inline]
    fn memtables(&mut self, _: &[Arc<Memtable>], _: &View) {}

    #[inline]
    fn wrap_stream(&mut self, (): (), stream: Box<dyn PartitionStream>) -> Box<dyn PartitionStream> {
        stream
    }

    #[inline]
    fn skipped(&mut self, _: &Arc<SSTable>, _: &'static str) {}

    #[inline]
    fn sstable(
        &mut self,
        sstable: &Arc<SSTable>,
        command: &ReadCommand,
        context: &ReadContext,
    ) -> Result<Box<dyn PartitionStream>, ReadError> {
        Ok(Box::new(sstable.read(command, context)?))
    }
}
