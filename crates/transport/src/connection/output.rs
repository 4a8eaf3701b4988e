//! The write side of a connection: responses are appended, and written once per batch.
//!
//! What lies here counts as a large result (`ServerOptions::results`) until the socket has it: pages that came as such, their compressed
//! form, and an out buffer that has grown.
//!
//! In version 5 the envelopes of a batch share segments. What the client does not take stays in the buffer; the connection
//! looks at [`Output::pending`] and stops reading beyond its limit. Pages of many rows are copied and written in slices, and other
//! connections have their turn in between ([`large`]).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use env::Stream;
use protocol::segment::{SegmentEncoder, SegmentFormat};
use protocol::{Compression, ProtocolVersion, ResponseEnvelope};
use stdx::{Share, Taken};

use crate::limits::{
    COMPRESSED_APART, OUT_SIZE_KEPT, OUT_SLICE_SIZE, OUT_SLICE_SIZE_SCARCE, OUT_UNCOUNTED, TURN_WRITE_MAX,
};
use crate::stats::WorkerStats;

mod large;

use large::{LARGE_SIZE, LargeResponses};

/// The buffer and its framing.
#[derive(Debug)]
pub(super) struct Output {
    buffer: BytesMut,
    /// Of what large results may take.
    results: Arc<Share>,
    /// The buffer, once it has grown.
    taken: Option<Taken>,
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

/// Compressed bytes that count until nobody holds a slice of them.
struct Counted {
    bytes: BytesMut,
    _taken: Taken,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Output {
    /// One that is empty; what it holds is counted in `results`.
    pub fn new(results: Arc<Share>) -> Self {
        Self {
            buffer: BytesMut::new(),
            results,
            taken: None,
            segments: None,
            compression: None,
            is_unflushed: false,
            large: LargeResponses::default(),
        }
    }

    /// There is more here than each connection may have, and too much in all of them.
    pub fn is_scarce(&self) -> bool {
        self.pending() > OUT_UNCOUNTED && self.results.is_used_up()
    }

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
        } else if response.response.size_hint() >= COMPRESSED_APART {
            let envelope = self.compressed(response, version);
            return self.large.push_whole(envelope);
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
        self.count();
    }

    /// A page with bytes of its own, which count as long as there are any.
    fn compressed(&self, response: &ResponseEnvelope, version: ProtocolVersion) -> Bytes {
        let mut bytes = BytesMut::new();
        response.encode(&mut bytes, version, self.compression);
        if bytes.len() < bytes.capacity() / 2 {
            bytes = BytesMut::from(&bytes[..]);
        }
        let taken = self.results.take(bytes.len());
        Bytes::from_owner(Counted { bytes, _taken: taken })
    }

    fn count(&mut self) {
        let held = self.buffer.capacity();
        if held > OUT_UNCOUNTED {
            self.taken.get_or_insert_with(|| self.results.take(0)).set(held);
        } else if self.taken.is_some() {
            self.taken = None;
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
            let is_scarce = self.results.used() > self.results.limit() / 2;
            let size = if is_scarce { OUT_SLICE_SIZE_SCARCE } else { OUT_SLICE_SIZE };
            self.large.fill(&mut self.buffer, &mut self.segments, size);
        }
        if let Some(segments) = &mut self.segments {
            segments.finish(&mut self.buffer);
        }
        self.count();
    }

    fn consume(&mut self, size: usize) {
        if size < self.buffer.len() {
            return self.buffer.advance(size);
        }
        let held = self.buffer.capacity();
        let is_much_used = || self.results.used() > self.results.limit() / 2;
        if held > OUT_SIZE_KEPT || (held > OUT_UNCOUNTED && is_much_used()) {
            self.buffer = BytesMut::new();
        } else {
            self.buffer.clear();
        }
        self.taken = None;
    }

    /// Gives the buffer back if it holds nothing.
    pub fn shrink(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }
}
