//! Reading: the rows that a command asks for, by the table itself or by an index; and the cost of
//! such a read.

use std::sync::Arc;

use rows::report::CommandReport;
use rows::{PartitionStream, ReadCommand, ReadContext, ReadError};

use crate::engine::Engine;
use crate::read::explain::Observation;
use crate::table::TableStore;

impl Engine {
    /// The stream of the rows that a command asks for.
    pub fn read(&self, command: &ReadCommand, context: &ReadContext) -> Result<Box<dyn PartitionStream>, ReadError> {
        match self.table(command.table.id) {
            Some(store) if command.indexes.is_empty() => crate::read::read(&store, command, context),
            Some(store) => crate::index::search::search(&store, command, context, !self.options.read_only, None),
            // dropped since the statement was planned: there is nothing
            None => Ok(Box::new(rows::stream::EmptyStream)),
        }
    }

    /// The cost of a read command: which sources it reads, and why. Reads filters and indexes,
    /// which may wait for the disk, and no data. For a read by an index it is the cost of reading
    /// the entries. None: the table does not exist any more.
    pub fn explain(&self, command: &ReadCommand) -> Result<Option<CommandReport>, ReadError> {
        let plan = |store: Arc<TableStore>| match command.indexes.is_empty() {
            true => crate::read::explain::plan(&store, command),
            false => crate::index::search::plan(&store, command),
        };
        self.table(command.table.id).map(plan).transpose()
    }

    /// Does the work of [`Engine::read`] under observation.
    pub fn read_observed(
        &self,
        command: &ReadCommand,
        context: &ReadContext,
        observation: &Observation,
    ) -> Result<Box<dyn PartitionStream>, ReadError> {
        match self.table(command.table.id) {
            Some(store) if command.indexes.is_empty() => observation.open(&store, command, context),
            Some(store) => {
                let (removes, observation) = (!self.options.read_only, Some(observation.clone()));
                crate::index::search::search(&store, command, context, removes, observation)
            }
            None => Ok(Box::new(rows::stream::EmptyStream)),
        }
    }
}
