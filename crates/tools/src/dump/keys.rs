//! Partition keys as text, and back: `-k` and `-x` name them so.

use bytes::Bytes;
use schema::TableMetadata;
use types::literal::to_plain_text;
use types::{CqlType, DecoratedKey, parse_text};

use super::json::Json;
use crate::failure::Failure;

/// Knows the type of the key.
pub struct KeyText {
    ty: CqlType,
    /// Of a key with several columns.
    columns: Vec<CqlType>,
}

impl KeyText {
    /// Of a table.
    pub fn new(table: &TableMetadata) -> Self {
        let columns = match &table.partition_key[..] {
            [_] => Vec::new(),
            many => many.iter().map(|column| column.ty.clone()).collect(),
        };
        Self { ty: table.partition_key_type.clone(), columns }
    }

    /// As one text, columns with `:` between them.
    pub fn plain(&self, key: &[u8]) -> String {
        to_plain_text(&self.ty, key)
    }

    /// The key of a text.
    pub fn parse(&self, text: &str) -> Result<DecoratedKey, Failure> {
        let key = parse_text(&self.ty, text).map_err(|error| Failure::new(format!("the key '{text}': {error}")))?;
        Ok(DecoratedKey::new(Bytes::from(key)))
    }

    /// As an array of texts.
    pub fn put(&self, json: &mut Json, key: &[u8]) {
        json.compact_objects = true;
        json.compact_arrays = true;
        json.start_array();
        if self.columns.is_empty() {
            json.string(&self.plain(key));
        } else {
            let components = types::composite::components(key).map_while(|component| component);
            for (component, ty) in components.zip(&self.columns) {
                json.string(&to_plain_text(ty, component));
            }
        }
        json.end_array();
        json.compact_objects = false;
        json.compact_arrays = false;
    }
}
