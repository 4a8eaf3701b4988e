//! Rows of built-in tables that the ring has copies of (`system_auth`), read at a level from the
//! nodes that have them. [`crate::system_rows`] reads what this node has by itself.

use std::sync::Arc;

use rows::{BuildError, PartitionStream, Row};
use schema::TableMetadata;
use types::{Consistency, DecoratedKey};

use crate::coordinator::error::FailedRead;
use crate::node::Node;
use crate::replica::read::{ReadFigures, ReadRequest};
use crate::system_rows::{command, each_of};

impl Node {
    /// The live rows of a table of which the ring has copies, or of one of its partitions, as its
    /// replicas have them at a level: all at once, at most `most` of them.
    pub async fn read_rows_at<E: BuildError>(
        &self,
        table: &Arc<TableMetadata>,
        key: Option<DecoratedKey>,
        level: Consistency,
        most: u32,
    ) -> Result<Vec<(DecoratedKey, Row)>, FailedRead<E>> {
        let now = self.env.clock.now_seconds();
        let mut command = command(table, key, now);
        command.limits.rows = most;
        let request = ReadRequest::of(vec![command]);
        let table = Arc::clone(table);
        let build = move |stream: &mut dyn PartitionStream| -> Result<_, E> {
            let mut found = Vec::new();
            each_of(stream, &table, now, &mut |key, row| {
                found.push((key.clone(), row));
                found.len() < most as usize
            })?;
            Ok(found)
        };
        self.read(request, level, &ReadFigures::default(), build).await
    }
}
