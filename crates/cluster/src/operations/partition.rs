//! One partition: its key in an operator's words, and the SSTables that hold it.

use std::sync::Arc;

use bytes::Bytes;
use rows::{PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError, ReadMode};
use schema::TableMetadata;
use sstable::{Component, KeyHash, SSTable};
use types::{CqlType, DecoratedKey};

use super::{Result, failed, invalid, tables};
use crate::node::Node;

/// The SSTables that hold a partition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SSTablesOfKey {
    /// Whether the table is compacted by LeveledCompactionStrategy.
    pub is_leveled: bool,
    /// The level and the path of the data file of each SSTable.
    pub files: Vec<(u32, String)>,
}

/// The SSTables that hold a partition. The key is written as [`parse_key`] reads it, or with
/// `is_hex` in hexadecimal digits.
pub fn sstables(node: &Node, keyspace: &str, table: &str, key: &str, is_hex: bool) -> Result<SSTablesOfKey> {
    let metadata = tables::metadata(node, keyspace, table)?;
    let key = if is_hex { metadata.decorate(hex_key(key)?) } else { parse_key(&metadata, key)? };
    let strategy = metadata.params.compaction.get("class");
    let is_leveled = strategy.is_some_and(|class| class.ends_with("LeveledCompactionStrategy"));
    let mut files = Vec::new();
    if let Some(store) = tables::of_id(node, metadata.id) {
        for sstable in &store.view().sstables {
            if holds(sstable, &key).map_err(failed)? {
                let path = sstable.descriptor().path(Component::Data);
                files.push((sstable.statistics().stats.level, path.display().to_string()));
            }
        }
    }
    Ok(SSTablesOfKey { is_leveled, files })
}

/// For each SSTable of a table a text: where its tombstones are, when they may go and why not yet,
/// with the `top` partitions that have most.
pub fn tombstones(node: &Node, keyspace: &str, table: &str, top: usize) -> Result<Vec<String>> {
    let metadata = tables::metadata(node, keyspace, table)?;
    match tables::of_id(node, metadata.id) {
        Some(store) => storage::tombstones::tombstones(&store, top).map_err(failed),
        None => Ok(Vec::new()),
    }
}

/// Whether an SSTable holds a partition. The bloom filter answers "perhaps", the index answers for
/// certain.
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

/// A partition key as CQL writes its values but without quotes, the components of a composite key
/// separated by colons.
pub fn parse_key(table: &Arc<TableMetadata>, key: &str) -> Result<DecoratedKey> {
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
    Ok(table.decorate(Bytes::from(bytes)))
}
