//! Partition keys as text, and text as keys: the form of the arguments of `-k` and `-x`.

use bytes::Bytes;
use schema::TableMetadata;
use types::literal::to_plain_text;
use types::{CqlType, DecoratedKey, parse_text};

use super::json::Json;
use crate::failure::Failure;

/// Converts keys of one table.
pub struct KeyText {
    ty: CqlType,
    /// The types of the columns, if the key has several.
    columns: Vec<CqlType>,
}

impl KeyText {
    /// Converts keys of this table.
    pub fn new(table: &TableMetadata) -> Self {
        let columns = match &table.partition_key[..] {
            [_] => Vec::new(),
            many => many.iter().map(|column| column.ty.clone()).collect(),
        };
        Self { ty: table.partition_key_type.clone(), columns }
    }

    /// A key as one text, its columns with `:` between them.
    pub fn plain(&self, key: &[u8]) -> String {
        to_plain_text(&self.ty, key)
    }

    /// The key of a text.
    pub fn parse(&self, text: &str) -> Result<DecoratedKey, Failure> {
        let key = parse_text(&self.ty, text).map_err(|error| Failure::new(format!("the key '{text}': {error}")))?;
        Ok(DecoratedKey::new(Bytes::from(key)))
    }

    /// A key as an array of texts.
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
