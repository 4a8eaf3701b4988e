//! The interface between EXPLAIN and the node. It stands beside [`Coordinator`], so that executing
//! statements knows nothing of it.

use std::future::Future;

use rows::report::ReadReport;
use rows::{Mutation, PartitionStream, ReadCommand};
use types::DecoratedKey;

use crate::coordinator::{Coordinator, ReadOptions};
use crate::error::CqlError;

/// A node that can say how it would carry out reads and writes, and what they took. The defaults
/// say nothing.
pub trait ExplainCoordinator: Coordinator {
    /// The sources that [`Coordinator::read`] would read, for EXPLAIN: no data is read.
    fn explain_read(
        &self,
        _commands: Vec<ReadCommand>,
        _options: &ReadOptions,
    ) -> impl Future<Output = Result<ReadReport, CqlError>> {
        std::future::ready(Ok(ReadReport::default()))
    }

    /// [`Coordinator::read`], and what it took.
    fn analyze_read<T, F>(
        &self,
        commands: Vec<ReadCommand>,
        options: &ReadOptions,
        build: F,
    ) -> impl Future<Output = Result<(T, ReadReport), CqlError>>
    where
        T: Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, CqlError> + Send + Sync + 'static,
    {
        let read = self.read(commands, options, build);
        async { Ok((read.await?, ReadReport::default())) }
    }

    /// The sources that adding increments would read, for EXPLAIN: no data is read.
    fn explain_increments(&self, _mutations: &[Mutation]) -> impl Future<Output = Result<ReadReport, CqlError>> {
        std::future::ready(Ok(ReadReport::default()))
    }

    /// From now on reads that conditions and increments do are watched.
    fn observe_reads(&self) {}

    /// The report on the reads that were watched.
    fn observed_reads(&self) -> ReadReport {
        ReadReport::default()
    }

    /// A clock that only grows, microseconds from anywhere: for telling how long something took.
    fn monotonic_micros(&self) -> u64 {
        0
    }

    /// The shard of a partition on this node, of how many. None: it has no shards.
    fn shard_of(&self, _key: &DecoratedKey) -> Option<(usize, usize)> {
        None
    }
}
