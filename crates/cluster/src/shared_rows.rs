//! Rows of built-in tables that the ring has copies of (`system_auth`), read at a level from the
//! nodes that have them. [`crate::system_rows`] reads what this node has by itself.

use std::sync::Arc;

use rows::{PartitionStream, ReadError, Row};
use schema::TableMetadata;
use types::{Consistency, DecoratedKey};

use crate::coordinator::error::FailedRead;
use crate::node::Node;
use crate::replica::read::{ReadFigures, ReadRequest};
use crate::system_rows::{command, each_of};

impl Node {
    /// The live rows of a table of which the ring has copies, or of one of its partitions, as its
    /// replicas have them at a level. Small tables only: all at once.
    pub async fn read_rows_at<E>(
        &self,
        table: &Arc<TableMetadata>,
        key: Option<DecoratedKey>,
        level: Consistency,
        is_blocked: fn(&E) -> bool,
    ) -> Result<Vec<(DecoratedKey, Row)>, FailedRead<E>>
    where
        E: From<ReadError> + Send + 'static,
    {
        let now = self.env.clock.now_seconds();
        let commands = vec![command(table, key, now)];
        let request = ReadRequest { commands, trace: None, sought: None, open: None, results: None };
        let table = Arc::clone(table);
        let build = move |stream: &mut dyn PartitionStream| -> Result<_, E> {
            let mut found = Vec::new();
            each_of(stream, &table, now, &mut |key, row| {
                found.push((key.clone(), row));
                true
            })?;
            Ok(found)
        };
        self.read(request, level, &ReadFigures::default(), is_blocked, build).await
    }
}
