//! Where a partition lies.

use std::sync::Arc;

use admin::AdminError;
use admin::api::Result;
use admin::model::SSTablesOfKey;
use bytes::Bytes;
use rows::{PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError, ReadMode};
use schema::TableMetadata;
use sstable::{Component, KeyHash, SSTable};
use storage::TableStore;
use types::{CqlType, DecoratedKey};

use super::{NodeAdmin, failed, invalid};

/// This node, which has everything.
pub(super) fn endpoints(admin: &NodeAdmin, keyspace: &str, table: &str, key: &str) -> Result<Vec<String>> {
    parse_key(admin, keyspace, table, key)?;
    Ok(vec![admin.services.node.identity.broadcast.ip().to_string()])
}

pub(super) fn sstables(admin: &NodeAdmin, keyspace: &str, table: &str, key: &str, hex: bool) -> Result<SSTablesOfKey> {
    let (table, key) = match hex {
        true => {
            let table = known_table(admin, keyspace, table)?;
            let key = table.decorate(hex_key(key)?);
            (table, key)
        }
        false => parse_key(admin, keyspace, table, key)?,
    };
    let is_leveled =
        table.params.compaction.get("class").is_some_and(|class| class.ends_with("LeveledCompactionStrategy"));
    let mut files = Vec::new();
    if let Some(store) = admin.engine().table(table.id) {
        for sstable in &store.view().sstables {
            if holds(sstable, &key).map_err(failed)? {
                let level = sstable.statistics().stats.level;
                files.push((level, sstable.descriptor().path(Component::Data).display().to_string()));
            }
        }
    }
    Ok(SSTablesOfKey { is_leveled, files })
}

pub(super) fn tombstones(admin: &NodeAdmin, keyspace: &str, table: &str, top: u32) -> Result<Vec<String>> {
    let table = known_table(admin, keyspace, table)?;
    let Some(store) = admin.engine().table(table.id) else { return Ok(Vec::new()) };
    storage::tombstones::tombstones(&store, usize::try_from(top).unwrap_or(usize::MAX)).map_err(failed)
}

/// The filter may be wrong, the index is not.
pub(super) fn holds(sstable: &SSTable, key: &DecoratedKey) -> std::result::Result<bool, ReadError> {
    if !sstable.may_contain(key, KeyHash::of(&key.key)) {
        return Ok(false);
    }
    let command = ReadCommand::whole(sstable.table(), PartitionRange::Key(key.clone()));
    let mut stream = sstable.read(&command, &ReadContext::new(ReadMode::Background))?;
    Ok(stream.next_partition()?.is_some())
}

fn hex_key(text: &str) -> Result<Bytes> {
    match types::literal::parse_text(&CqlType::Blob, &format!("0x{text}")) {
        Ok(bytes) => Ok(Bytes::from(bytes)),
        Err(error) => invalid(format!("'{text}' is no key in hexadecimal digits: {error}")),
    }
}

fn known_table(admin: &NodeAdmin, keyspace: &str, table: &str) -> Result<Arc<TableMetadata>> {
    match admin.services.node.schema().table(keyspace, table).filter(|table| !table.is_virtual()) {
        Some(table) => Ok(Arc::clone(table)),
        None => invalid(format!("Unknown keyspace/table {keyspace}.{table}")),
    }
}

/// A table's state.
pub(super) fn store(admin: &NodeAdmin, keyspace: &str, table: &str) -> Result<Arc<TableStore>> {
    let id = known_table(admin, keyspace, table)?.id;
    admin.engine().table(id).ok_or_else(|| AdminError::Failed(format!("{keyspace}.{table} was dropped")))
}

/// A key as it is written in CQL without quotes, the components of a composite one separated by colons.
pub(super) fn parse_key(
    admin: &NodeAdmin,
    keyspace: &str,
    table: &str,
    key: &str,
) -> Result<(Arc<TableMetadata>, DecoratedKey)> {
    let table = known_table(admin, keyspace, table)?;
    let types: Vec<&CqlType> = table.partition_key.iter().map(|column| &column.ty).collect();
    let parse = |ty: &CqlType, text: &str| match types::literal::parse_text(ty, text) {
        Ok(value) => Ok(value),
        Err(error) => invalid(format!("'{text}' is no value of the partition key: {error}")),
    };
    let bytes = match types.as_slice() {
        [single] => parse(single, key)?,
        several => {
            let texts: Vec<&str> = key.split(':').collect();
            if texts.len() != several.len() {
                return invalid(format!("the partition key has {} components, not {}", several.len(), texts.len()));
            }
            let values = several.iter().zip(texts).map(|(ty, text)| parse(ty, text)).collect::<Result<Vec<_>>>()?;
            let parts: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            match types::composite::compose(&parts) {
                Ok(key) => key,
                Err(error) => return invalid(error.to_string()),
            }
        }
    };
    let key = table.decorate(Bytes::from(bytes));
    Ok((table, key))
}
