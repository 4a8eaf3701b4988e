//! The read buffer of a connection.
//!
//! The buffer holds 16 KiB, or the message that is on its way if that is larger. Bodies are slices
//! of the buffer (`Session::next` splits them off), so reading copies nothing.

use bytes::BytesMut;

use crate::limits::{FIRST_READ_SIZE, IDLE_READ_SIZE, READ_SIZE};

/// The read buffer: see the head of this file.
#[derive(Debug)]
pub(crate) struct Input {
    pub buffer: BytesMut,
    /// Most bytes of the next read, unless a larger message is on its way. Grows with the reads
    /// that fill the buffer, and shrinks when the connection is idle.
    read_size: usize,
}

impl Input {
    pub fn new() -> Self {
        Self { buffer: BytesMut::new(), read_size: FIRST_READ_SIZE }
    }

    /// Makes room for the next read: for the `missing` bytes of the message at the start of the
    /// buffer, or for [`READ_SIZE`]; for fewer bytes if reads have never filled so much or the
    /// connection is `idle`.
    pub fn reserve(&mut self, idle: bool, missing: usize) {
        if idle && self.buffer.is_empty() {
            self.read_size = FIRST_READ_SIZE;
            self.buffer.reserve(IDLE_READ_SIZE);
            return;
        }
        if self.buffer.capacity() - self.buffer.len() < missing.max(self.read_size / 4) {
            self.buffer.reserve(missing.max(self.read_size));
        }
    }

    /// Called when a read has brought bytes.
    pub fn has_read(&mut self) {
        if self.buffer.len() == self.buffer.capacity() {
            self.read_size = (self.read_size * 4).min(READ_SIZE);
        }
        assert!((FIRST_READ_SIZE..=READ_SIZE).contains(&self.read_size), "a read has a bound");
    }

    /// Frees the buffer if it is empty.
    pub fn shrink(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }
}
