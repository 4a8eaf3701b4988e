//! HINT_REQ: a mutation that its target has not taken when it was written.
//!
//! ```text
//! 16 bytes host id of the target | unsigned vint size of the hint | hint
//! ```
//!
//! The hint is the one of hint files: creation, gc_grace, mutation. Its size lets a receiver that
//! does not know the table answer all the same. `org.apache.cassandra.hints.HintMessage`.

use bytes::Bytes;
use stdx::put_uvint;

use crate::error::InternodeError;
use crate::payload::whole;

/// HINT_REQ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HintMessage {
    /// The node that the hint is for in the end. The receiver may be another, which keeps it.
    pub host_id: [u8; 16],
    /// The hint as it stands in a hint file.
    pub hint: Bytes,
}

impl HintMessage {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.host_id.len() + 9 + self.hint.len());
        out.extend_from_slice(&self.host_id);
        put_uvint(&mut out, self.hint.len() as u64);
        out.extend_from_slice(&self.hint);
        debug_assert!(
            Self::decode(&Bytes::copy_from_slice(&out)).is_ok_and(|read| read == *self),
            "a hint is read as it is written"
        );
        out
    }

    /// From a payload, whose bytes it shares.
    pub fn decode(payload: &Bytes) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            let host_id = *cursor.take(16)?.first_chunk().expect("so many bytes were taken");
            let hint = cursor.vbytes()?;
            Ok(Self { host_id, hint: payload.slice_ref(hint) })
        })
    }
}
