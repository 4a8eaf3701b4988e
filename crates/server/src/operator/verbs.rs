//! Verbs: flush, compact, snapshots; and finding the tables and partitions that they are for.

use std::sync::Arc;

use admin::AdminError;
use admin::api::Result;
use admin::model::{SnapshotInfo, SnapshotRequest, TableSelection};
use bytes::Bytes;
use storage::TableStore;
use types::DecoratedKey;

use super::{Operator, failed, wait};

impl Operator {
    /// The tables of a selection; what is not there is refused in Cassandra's words.
    fn selected(&self, selection: &TableSelection) -> Result<Vec<Arc<TableStore>>> {
        let schema = self.services.node.schema();
        for keyspace in &selection.keyspaces {
            let Some(known) = schema.keyspace(keyspace).filter(|known| !known.is_virtual) else {
                return Err(AdminError::Invalid(format!("Keyspace [{keyspace}] does not exist.")));
            };
            if let Some(table) = selection.tables.iter().find(|table| !known.tables.contains_key(*table)) {
                return Err(AdminError::Invalid(format!("Unknown keyspace/cf pair ({keyspace}.{table})")));
            }
        }
        let wanted = |store: &Arc<TableStore>| {
            let table = store.table();
            (selection.keyspaces.is_empty() || selection.keyspaces.contains(&table.keyspace))
                && (selection.tables.is_empty() || selection.tables.contains(&table.name))
        };
        Ok(self.engine().tables().into_iter().filter(wanted).collect())
    }

    pub(super) fn flush_tables(&self, selection: &TableSelection) -> Result<()> {
        for store in self.selected(selection)? {
            wait(self.engine().flush(&store))?.map_err(failed)?;
        }
        Ok(())
    }

    pub(super) fn compact_tables(&self, selection: &TableSelection) -> Result<()> {
        for store in self.selected(selection)? {
            wait(self.engine().compact(&store))?.map_err(failed)?;
        }
        Ok(())
    }

    pub(super) fn list_snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        let mut found = Vec::new();
        for store in self.engine().tables() {
            let snapshots = storage::snapshot::list(self.engine(), &store).map_err(failed)?;
            found.extend(snapshots.into_iter().map(|snapshot| SnapshotInfo {
                name: snapshot.tag,
                keyspace: snapshot.keyspace,
                table: snapshot.table,
                true_size: snapshot.true_size,
                size_on_disk: snapshot.size,
                created_at: None,
            }));
        }
        Ok(found)
    }

    pub(super) fn make_snapshot(&self, request: &SnapshotRequest) -> Result<()> {
        let stores = if request.tables.is_empty() {
            let keyspaces = request.keyspaces.clone();
            self.selected(&TableSelection { keyspaces, tables: Vec::new() })?
        } else {
            let of = |(keyspace, table): &(String, String)| {
                let selection = TableSelection { keyspaces: vec![keyspace.clone()], tables: vec![table.clone()] };
                self.selected(&selection)
            };
            request.tables.iter().map(of).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()
        };
        for store in &stores {
            let known = storage::snapshot::list(self.engine(), store).map_err(failed)?;
            if known.iter().any(|snapshot| snapshot.tag == request.name) {
                return Err(AdminError::Failed(format!("Snapshot {} already exists.", request.name)));
            }
        }
        for store in &stores {
            if !request.skip_flush {
                wait(self.engine().flush(store))?.map_err(failed)?;
            }
            storage::snapshot::take(self.engine(), store, &request.name).map_err(failed)?;
        }
        Ok(())
    }

    pub(super) fn remove_snapshots(&self, name: Option<&str>, keyspaces: &[String]) -> Result<()> {
        let selection = TableSelection { keyspaces: keyspaces.to_vec(), tables: Vec::new() };
        for store in self.selected(&selection)? {
            storage::snapshot::clear(self.engine(), &store, name).map_err(failed)?;
        }
        Ok(())
    }

    /// A partition by its key as CQL writes it, components separated by colons.
    pub(super) fn partition(&self, keyspace: &str, table: &str, key: &str) -> Result<(Arc<TableStore>, DecoratedKey)> {
        let selection = TableSelection { keyspaces: vec![keyspace.to_owned()], tables: vec![table.to_owned()] };
        let store = self.selected(&selection)?.pop().ok_or_else(|| failed("the table is gone"))?;
        let metadata = store.table();
        let columns = &metadata.partition_key;
        let parts: Vec<&str> = if columns.len() == 1 { vec![key] } else { key.split(':').collect() };
        if parts.len() != columns.len() {
            return Err(AdminError::Invalid(format!("the key has {} components", columns.len())));
        }
        let parse = |(column, text): (&schema::ColumnMetadata, &str)| types::literal::parse_text(&column.ty, text);
        let values: std::result::Result<Vec<Vec<u8>>, _> = columns.iter().zip(parts).map(parse).collect();
        let values = values.map_err(|error| AdminError::Invalid(error.to_string()))?;
        let borrowed: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let key = match borrowed.as_slice() {
            [single] => single.to_vec(),
            several => types::composite::compose(several).map_err(|error| AdminError::Invalid(error.to_string()))?,
        };
        Ok((store, DecoratedKey::new(Bytes::from(key))))
    }
}
