//! RESULT Prepared: the id of a statement, its bind markers and the columns of its result. Agrees
//! with `ResultMessage.Prepared` and `ResultSet.PreparedMetadata`.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::metadata::{ColumnSpec, GLOBAL_TABLES_SPEC, MetadataFlags, ResultMetadata, put_columns, same_table};
use crate::version::ProtocolVersion;
use crate::wire::put_short_bytes;

/// A prepared statement as the client receives it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The id that EXECUTE repeats.
    pub id: Bytes,
    /// The bind markers in their order.
    pub markers: Arc<[ColumnSpec]>,
    /// For each component of the partition key, the index of the marker that binds it; empty if not
    /// all are bound. Sent from version 4 on.
    pub partition_key_markers: Arc<[u16]>,
    /// The columns of the result; empty for statements without rows.
    pub result: Arc<ResultMetadata>,
}

impl Prepared {
    pub(super) fn encode(&self, out: &mut BytesMut, version: ProtocolVersion) {
        let count = self.markers.len();
        assert!(
            self.partition_key_markers.iter().all(|marker| usize::from(*marker) < count),
            "the markers of a partition key are among those of the statement"
        );
        put_short_bytes(out, &self.id);
        if version >= ProtocolVersion::V5 {
            put_short_bytes(out, self.result.id());
        }
        let global = !self.markers.is_empty() && same_table(&self.markers);
        out.put_i32(if global { GLOBAL_TABLES_SPEC } else { 0 });
        out.put_i32(self.markers.len() as i32);
        if version >= ProtocolVersion::V4 {
            out.put_i32(self.partition_key_markers.len() as i32);
            for marker in self.partition_key_markers.iter() {
                out.put_u16(*marker);
            }
        }
        put_columns(out, &self.markers, version);
        self.result.encode(out, version, MetadataFlags::default());
    }
}
