//! The write side of a connection: responses are appended, and written once per batch.
//!
//! In version 5 the envelopes of a batch share segments. What the client does not take stays in the buffer; the connection
//! looks at [`Output::pending`] and stops reading beyond its limit. Pages of many rows are copied and written in slices, and other
//! connections have their turn in between ([`large`]).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use env::Stream;
use protocol::segment::{SegmentEncoder, SegmentFormat};
use protocol::{Compression, ProtocolVersion, ResponseEnvelope};

use crate::limits::{OUT_SIZE_KEPT, OUT_SLICE_SIZE, TURN_WRITE_MAX};
use crate::stats::WorkerStats;

mod large;

use large::{LARGE_SIZE, LargeResponses};

/// The buffer and its framing.
#[derive(Debug, Default)]
pub(super) struct Output {
    buffer: BytesMut,
    segments: Option<SegmentEncoder>,
    /// Of bodies, in versions 3 and 4.
    compression: Option<Compression>,
    /// The stream holds what it has not sent: counts as a byte.
    is_unflushed: bool,
    large: LargeResponses,
}

/// What became of a flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flushed {
    /// Everything is written.
    All,
    /// The client does not take more now. It took so many bytes.
    Blocked(usize),
    /// There is more, and others have waited long enough.
    Yielded,
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
        self.buffer.len() + segments + self.large.bytes() + usize::from(self.is_unflushed)
    }

    /// Appends a response.
    pub fn push(&mut self, response: &ResponseEnvelope, version: ProtocolVersion) {
        if self.compression.is_none() {
            let mut head = BytesMut::new();
            if let Some(rows) = response.encode_without_rows(&mut head, version, LARGE_SIZE) {
                return self.large.push(head, rows);
            }
        }
        if !self.large.is_empty() {
            let mut envelope = BytesMut::new();
            response.encode(&mut envelope, version, self.compression);
            return self.large.push_behind(envelope);
        }
        match &mut self.segments {
            Some(segments) => segments.append(&mut self.buffer, |out| response.encode(out, version, None)),
            None => response.encode(&mut self.buffer, version, self.compression),
        }
    }

    /// Appends an envelope that is already encoded.
    pub fn push_encoded(&mut self, envelope: &[u8]) {
        if !self.large.is_empty() {
            return self.large.push_behind(BytesMut::from(envelope));
        }
        match &mut self.segments {
            Some(segments) => segments.append(&mut self.buffer, |out| out.extend_from_slice(envelope)),
            None => self.buffer.extend_from_slice(envelope),
        }
    }

    /// Writes what there is, as far as the client takes it and others need not wait.
    pub fn poll_flush(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut dyn Stream,
        stats: &WorkerStats,
    ) -> io::Result<Flushed> {
        let mut taken = 0;
        loop {
            self.fill();
            if self.buffer.is_empty() {
                break;
            }
            if taken >= TURN_WRITE_MAX {
                context.waker().wake_by_ref();
                return Ok(Flushed::Yielded);
            }
            match Pin::new(&mut *stream).poll_write(context, &self.buffer) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(size)) => {
                    taken += size;
                    stats.writes.add(1);
                    stats.bytes_written.add(size as u64);
                    self.consume(size);
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(Flushed::Blocked(taken)),
            }
        }
        // an encrypted stream may still hold what it took
        match Pin::new(stream).poll_flush(context) {
            Poll::Ready(flushed) => {
                self.is_unflushed = false;
                flushed.map(|()| Flushed::All)
            }
            Poll::Pending => {
                self.is_unflushed = true;
                Ok(Flushed::Blocked(taken))
            }
        }
    }

    /// The next slice of large responses, and the end of the open segment.
    fn fill(&mut self) {
        if !self.large.is_empty() {
            self.large.fill(&mut self.buffer, &mut self.segments, OUT_SLICE_SIZE);
        }
        if let Some(segments) = &mut self.segments {
            segments.finish(&mut self.buffer);
        }
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
