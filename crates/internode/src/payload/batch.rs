//! BATCH_STORE_REQ: a logged batch that a node keeps for its coordinator.
//!
//! ```text
//! 16 bytes id (a time UUID), i64 creation in microseconds since 1970
//! uvint32 n, n × (uvint32 size, mutation)
//! ```
//!
//! A mutation's own layout is that of MUTATION_REQ and belongs to the data model; here it stays
//! bytes. `org.apache.cassandra.batchlog.Batch.Serializer`.

use bytes::Bytes;
use stdx::Cursor;

use crate::error::InternodeError;
use crate::integers::{put_uvint32, read_length};

/// A logged batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredBatch {
    /// The batch's id, a time UUID.
    pub id: [u8; 16],
    /// When the batch was made, microseconds since 1970. The row that keeps the batch has this
    /// timestamp.
    pub created_micros: i64,
    /// The mutations, each in the layout of MUTATION_REQ.
    pub mutations: Vec<Bytes>,
}

impl StoredBatch {
    /// The payload.
    ///
    /// # Panics
    /// When there are 2^31 mutations or one of them has 2 GiB: batches are far smaller.
    pub fn encode(&self) -> Vec<u8> {
        let size: usize = self.mutations.iter().map(|mutation| mutation.len() + 5).sum();
        let mut out = Vec::with_capacity(32 + size);
        out.extend_from_slice(&self.id);
        stdx::put_i64(&mut out, self.created_micros);
        put_uvint32(&mut out, i32::try_from(self.mutations.len()).expect("a batch has fewer mutations"));
        for mutation in &self.mutations {
            put_uvint32(&mut out, i32::try_from(mutation.len()).expect("a mutation is below 2 GiB"));
            out.extend_from_slice(mutation);
        }
        debug_assert!(
            Self::decode(&Bytes::copy_from_slice(&out)).is_ok_and(|read| read == *self),
            "a batch is read as it is written"
        );
        out
    }

    /// From a payload. The mutations are slices of it.
    pub fn decode(payload: &Bytes) -> Result<Self, InternodeError> {
        let mut cursor = Cursor::new(payload);
        let id = *cursor.take(16)?.first_chunk().expect("sixteen bytes were taken");
        let created_micros = cursor.i64()?;
        let count = read_length(&mut cursor, "the number of mutations of a batch")?;
        // a mutation takes at least a size and a count of updates
        if count.saturating_mul(2) > cursor.remaining() {
            let found = i64::try_from(count).unwrap_or(i64::MAX);
            return Err(InternodeError::Value { part: "the number of mutations of a batch", found });
        }
        let mut mutations = Vec::with_capacity(count);
        for _ in 0..count {
            let size = read_length(&mut cursor, "the size of a mutation")?;
            let start = cursor.position();
            cursor.skip(size)?;
            mutations.push(payload.slice(start..start + size));
        }
        match cursor.remaining() {
            0 => Ok(Self { id, created_micros, mutations }),
            left => Err(InternodeError::Trailing { left }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_read_again_and_a_broken_one_is_refused() {
        let mutations = vec![Bytes::from_static(&[1, 2, 3]), Bytes::from_static(&[4])];
        let batch = StoredBatch { id: [7; 16], created_micros: -5, mutations };
        let bytes = Bytes::from(batch.encode());
        assert_eq!(StoredBatch::decode(&bytes), Ok(batch));
        for end in 0..bytes.len() {
            assert!(StoredBatch::decode(&bytes.slice(..end)).is_err(), "{end} bytes");
        }
        let longer = Bytes::from([&bytes[..], &[0]].concat());
        assert_eq!(StoredBatch::decode(&longer), Err(InternodeError::Trailing { left: 1 }));
        let mut many = bytes[..24].to_vec();
        put_uvint32(&mut many, i32::MAX);
        assert!(matches!(StoredBatch::decode(&Bytes::from(many)), Err(InternodeError::Value { .. })));
    }
}
