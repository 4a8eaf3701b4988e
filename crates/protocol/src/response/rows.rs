//! RESULT Rows: metadata, the number of rows, and rows in the form of the wire. Agrees with
//! `ResultSet.Codec`: the paging state precedes the new metadata id.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::metadata::{MetadataFlags, ResultMetadata};
use crate::version::ProtocolVersion;

/// A page of rows.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The metadata of the columns.
    pub metadata: Arc<ResultMetadata>,
    /// Whether the metadata is left out, because the client asked for none or knows it.
    pub skip_metadata: bool,
    /// Whether the client's metadata id is out of date. Id and columns are then sent, whatever it
    /// asked for. Ignored below version 5.
    pub metadata_changed: bool,
    /// The position behind this page; `None`: it is the last page.
    pub paging_state: Option<Bytes>,
    /// Number of rows in `body`.
    pub row_count: u32,
    /// The rows: a `[bytes]` for each column of each row.
    pub body: Bytes,
}

impl Rows {
    /// A last page with its metadata.
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

    /// Appends everything before the rows.
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
