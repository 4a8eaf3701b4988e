//! A row of a virtual table: values by column name, keys included.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bytes::Bytes;

/// A row of a virtual table. Columns that are not set are null.
#[derive(Clone, Debug, Default)]
pub(super) struct VirtualRow {
    values: Vec<(&'static str, Bytes)>,
}

impl VirtualRow {
    /// The value of a column.
    pub fn get(&self, column: &str) -> Option<&Bytes> {
        self.values.iter().find(|(name, _)| *name == column).map(|(_, value)| value)
    }

    /// Sets a serialized value.
    pub fn bytes(mut self, column: &'static str, value: impl Into<Bytes>) -> Self {
        self.values.push((column, value.into()));
        self
    }

    /// text
    pub fn text(self, column: &'static str, value: &str) -> Self {
        self.bytes(column, Bytes::copy_from_slice(value.as_bytes()))
    }

    /// text or null
    pub fn maybe_text(self, column: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(column, value),
            None => self,
        }
    }

    /// int
    pub fn int(self, column: &'static str, value: i32) -> Self {
        self.bytes(column, value.to_be_bytes().to_vec())
    }

    /// bigint, timestamp
    pub fn bigint(self, column: &'static str, value: i64) -> Self {
        self.bytes(column, value.to_be_bytes().to_vec())
    }

    /// bigint, timestamp, or null
    pub fn maybe_bigint(self, column: &'static str, value: Option<i64>) -> Self {
        match value {
            Some(value) => self.bigint(column, value),
            None => self,
        }
    }

    /// bigint of a count
    pub fn count(self, column: &'static str, value: u64) -> Self {
        self.bigint(column, i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// double
    pub fn double(self, column: &'static str, value: f64) -> Self {
        self.bytes(column, value.to_be_bytes().to_vec())
    }

    /// boolean
    pub fn boolean(self, column: &'static str, value: bool) -> Self {
        self.bytes(column, vec![u8::from(value)])
    }

    /// frozen list or set of values that are serialized already
    pub fn collection(self, column: &'static str, values: &[Vec<u8>]) -> Self {
        self.bytes(column, collected(values))
    }

    /// frozen list of text
    pub fn texts(self, column: &'static str, values: impl IntoIterator<Item = String>) -> Self {
        let values: Vec<_> = values.into_iter().map(String::into_bytes).collect();
        self.collection(column, &values)
    }

    /// frozen set of text
    pub fn text_set(self, column: &'static str, values: impl IntoIterator<Item = String>) -> Self {
        let values: BTreeSet<String> = values.into_iter().collect();
        self.texts(column, values)
    }

    /// inet
    pub fn inet(self, column: &'static str, value: IpAddr) -> Self {
        self.bytes(column, cluster::identity::inet(value))
    }
}

/// The serialized form of a frozen list or set: its length, and each value behind its length.
pub(super) fn collected(values: &[Vec<u8>]) -> Vec<u8> {
    let length = |length: usize| i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes();
    let mut out = length(values.len()).to_vec();
    for value in values {
        out.extend(length(value.len()));
        out.extend(value);
    }
    out
}
