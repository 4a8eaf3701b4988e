//! The arena of a memtable: bytes that live as long as it does, in chunks, handed out as shared
//! slices.

use bytes::{Bytes, BytesMut};

/// Bytes of the first chunk. Each next one is twice as large, up to `CHUNK_SIZE_MAX`, so that
/// small tables stay small.
const CHUNK_SIZE_MIN: usize = 4 << 10;
/// Bytes of the largest chunk.
const CHUNK_SIZE_MAX: usize = 1 << 20;
/// Bytes from which on a value has its own allocation instead of arena space.
const OWN_ALLOCATION: usize = 64 << 10;

// what has no allocation of its own fits a chunk
const _: () = assert!(CHUNK_SIZE_MIN <= CHUNK_SIZE_MAX && OWN_ALLOCATION <= CHUNK_SIZE_MAX);

/// Chunks of bytes and what they, and the structures around them, take.
#[derive(Default)]
pub struct Arena {
    chunk: BytesMut,
    next_chunk_size: usize,
    size: usize,
    scratch: Vec<u8>,
}

impl Arena {
    /// A copy of `bytes`.
    pub fn copy(&mut self, bytes: &[u8]) -> Bytes {
        if bytes.is_empty() {
            return Bytes::new();
        }
        if bytes.len() >= OWN_ALLOCATION {
            self.size += bytes.len();
            return Bytes::copy_from_slice(bytes);
        }
        if self.chunk.capacity() - self.chunk.len() < bytes.len() {
            let size = self.next_chunk_size.clamp(CHUNK_SIZE_MIN, CHUNK_SIZE_MAX).max(bytes.len());
            self.next_chunk_size = size * 2;
            self.chunk = BytesMut::with_capacity(size);
            self.size += size;
        }
        self.chunk.extend_from_slice(bytes);
        self.chunk.split().freeze()
    }

    /// A copy of the bytes that `write` appends to an empty buffer; `room`: about how many these
    /// are.
    pub fn copy_with(&mut self, room: usize, write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.reserve(room);
        write(&mut scratch);
        if scratch.len() >= OWN_ALLOCATION {
            // large values are moved, not copied
            self.size += scratch.capacity();
            return Bytes::from(scratch);
        }
        let copy = self.copy(&scratch);
        self.scratch = scratch;
        copy
    }

    /// Counts bytes held elsewhere on behalf of the memtable.
    pub fn account(&mut self, bytes: usize) {
        self.size += bytes;
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        self.size
    }
}
