//! RESULT Rows: metadata, a row count, and rows that are already in wire form.
//!
//! Agrees with `ResultSet.Codec`: the paging state precedes the new metadata id.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::metadata::{MetadataFlags, ResultMetadata};
use crate::version::ProtocolVersion;

/// A page of rows.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The columns.
    pub metadata: Arc<ResultMetadata>,
    /// The client asked for no columns (or knows them).
    pub skip_metadata: bool,
    /// The client's metadata id is out of date: send id and columns whatever it asked for. Ignored below version 5.
    pub metadata_changed: bool,
    /// Where the next page begins; `None` if this is the last.
    pub paging_state: Option<Bytes>,
    /// How many rows `body` holds.
    pub row_count: u32,
    /// The rows: for each column of each row `[bytes]`.
    pub body: Bytes,
}

impl Rows {
    /// A last page, with its columns.
    pub fn new(metadata: Arc<ResultMetadata>, row_count: u32, body: impl Into<Bytes>) -> Self {
        Self {
            metadata,
            skip_metadata: false,
            metadata_changed: false,
            paging_state: None,
            row_count,
            body: body.into(),
        }
    }

    pub(super) fn encode(&self, out: &mut BytesMut, version: ProtocolVersion) {
        out.reserve(self.body.len() + 64);
        self.encode_head(out, version);
        out.put_slice(&self.body);
    }

    /// All that stands before the rows.
    pub(super) fn encode_head(&self, out: &mut BytesMut, version: ProtocolVersion) {
        let flags = MetadataFlags {
            skip: self.skip_metadata,
            paging_state: self.paging_state.as_deref(),
            changed: self.metadata_changed,
        };
        self.metadata.encode(out, version, flags);
        out.put_u32(self.row_count);
    }
}
