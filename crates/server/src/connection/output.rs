//! The write side of a connection: responses are appended, and written once per batch.
//!
//! In version 5 the envelopes of a batch share segments. What the client does not take stays in the buffer; the connection
//! looks at [`Output::pending`] and stops reading beyond its limit.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use env::Stream;
use protocol::segment::{SegmentEncoder, SegmentFormat};
use protocol::{Compression, ProtocolVersion, ResponseEnvelope};

use crate::limits::OUT_SIZE_KEPT;
use crate::stats::WorkerStats;

/// The buffer and its framing.
#[derive(Debug, Default)]
pub(super) struct Output {
    buffer: BytesMut,
    segments: Option<SegmentEncoder>,
    /// Of bodies, in versions 3 and 4.
    compression: Option<Compression>,
    /// The stream holds what it has not sent: counts as a byte.
    is_unflushed: bool,
}

impl Output {
    /// From the next response on there are segments.
    pub fn start_segments(&mut self, format: SegmentFormat) {
        self.segments = Some(SegmentEncoder::new(format));
    }

    /// From the next response on bodies may be compressed.
    pub fn start_compression(&mut self, compression: Compression) {
        self.compression = Some(compression);
    }

    /// What bodies are compressed with.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Bytes not yet written.
    pub fn pending(&self) -> usize {
        let segments = self.segments.as_ref().map_or(0, SegmentEncoder::buffered);
        self.buffer.len() + segments + usize::from(self.is_unflushed)
    }

    /// Appends a response.
    pub fn push(&mut self, response: &ResponseEnvelope, version: ProtocolVersion) {
        match &mut self.segments {
            Some(segments) => segments.append(&mut self.buffer, |out| response.encode(out, version, None)),
            None => response.encode(&mut self.buffer, version, self.compression),
        }
    }

    /// Appends an envelope that is already encoded.
    pub fn push_encoded(&mut self, envelope: &[u8]) {
        match &mut self.segments {
            Some(segments) => segments.append(&mut self.buffer, |out| out.extend_from_slice(envelope)),
            None => self.buffer.extend_from_slice(envelope),
        }
    }

    /// Writes what there is; `Pending` if the client does not take it all. Says how much it took.
    pub fn poll_flush(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut dyn Stream,
        stats: &WorkerStats,
    ) -> (usize, Poll<io::Result<()>>) {
        if let Some(segments) = &mut self.segments {
            segments.finish(&mut self.buffer);
        }
        let mut taken = 0;
        while !self.buffer.is_empty() {
            match Pin::new(&mut *stream).poll_write(context, &self.buffer) {
                Poll::Ready(Ok(0)) => {
                    return (taken, Poll::Ready(Err(io::ErrorKind::WriteZero.into())));
                }
                Poll::Ready(Ok(size)) => {
                    taken += size;
                    stats.writes.add(1);
                    stats.bytes_written.add(size as u64);
                    self.consume(size);
                }
                Poll::Ready(Err(error)) => return (taken, Poll::Ready(Err(error))),
                Poll::Pending => return (taken, Poll::Pending),
            }
        }
        // an encrypted stream may still hold what it took
        let flushed = Pin::new(stream).poll_flush(context);
        self.is_unflushed = flushed.is_pending();
        (taken, flushed)
    }

    fn consume(&mut self, size: usize) {
        if size < self.buffer.len() {
            self.buffer.advance(size);
        } else if self.buffer.capacity() > OUT_SIZE_KEPT {
            self.buffer = BytesMut::new();
        } else {
            self.buffer.clear();
        }
    }

    /// Gives the buffer back if it holds nothing.
    pub fn shrink(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }
}
