//! Where a partition lies.

use std::sync::Arc;

use admin::api::Result;
use bytes::Bytes;
use schema::TableMetadata;
use sstable::{Component, KeyHash};
use types::{CqlType, DecoratedKey};

use super::{NodeAdmin, invalid};

/// This node, which has everything.
pub(super) fn endpoints(admin: &NodeAdmin, keyspace: &str, table: &str, key: &str) -> Result<Vec<String>> {
    parse_key(admin, keyspace, table, key)?;
    Ok(vec![admin.services.node.identity.broadcast.ip().to_string()])
}

pub(super) fn sstables(admin: &NodeAdmin, keyspace: &str, table: &str, key: &str) -> Result<Vec<String>> {
    let (table, key) = parse_key(admin, keyspace, table, key)?;
    let Some(store) = admin.engine().table(table.id) else { return Ok(Vec::new()) };
    let hash = KeyHash::of(&key.key);
    let view = store.view();
    let holding = view.sstables.iter().filter(|sstable| sstable.may_contain(&key, hash));
    Ok(holding.map(|sstable| sstable.descriptor().path(Component::Data).display().to_string()).collect())
}

/// A key as it is written in CQL without quotes, the components of a composite one separated by colons.
fn parse_key(admin: &NodeAdmin, keyspace: &str, table: &str, key: &str) -> Result<(Arc<TableMetadata>, DecoratedKey)> {
    let schema = admin.services.node.schema();
    let Some(table) = schema.table(keyspace, table).filter(|table| !table.is_virtual()) else {
        return invalid(format!("Unknown keyspace/table {keyspace}.{table}"));
    };
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
    Ok((Arc::clone(table), DecoratedKey::new(Bytes::from(bytes))))
}
