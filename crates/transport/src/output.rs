//! The write side of a connection: responses are appended, and written once per turn.
//!
//! The bytes here count as a large result (`ServerOptions::results`) until the socket has it: an
//! out buffer that has grown, and responses that stand apart ([`Output::append_counted`]).
//!
//! Once a session has started segments, messages share them. Bytes that the client does not take
//! stay in the buffer; the connection looks at [`Output::pending`] and stops reading beyond its
//! limit. Large responses are copied and written in slices, and other connections have their turn
//! in between ([`large`]).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use env::Stream;
use segments::{SegmentEncoder, SegmentFormat};
use stdx::{ByteBudget, ByteReservation};

use crate::limits::{OUT_SIZE_KEPT, OUT_SLICE_SIZE, OUT_SLICE_SIZE_SCARCE, OUT_UNCOUNTED, TURN_WRITE_MAX};
use crate::stats::WorkerStats;

mod large;

use large::LargeResponses;

/// The buffer and its framing.
#[derive(Debug)]
pub struct Output {
    buffer: BytesMut,
    /// The memory that all large results may take together.
    results: Arc<ByteBudget>,
    /// The share of this buffer, once it has grown beyond [`OUT_UNCOUNTED`].
    taken: Option<ByteReservation>,
    /// The encoder of segments; None: there are none yet.
    segments: Option<SegmentEncoder>,
    /// True: the stream itself holds bytes that it has not sent, as an encrypted one may; they
    /// count as one byte.
    is_unflushed: bool,
    /// Large responses that stand behind the buffer, and are copied into it slice by slice.
    large: LargeResponses,
}

/// The result of a flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flushed {
    /// Everything is written.
    All,
    /// The client does not take more now. It took so many bytes in this flush.
    Blocked(usize),
    /// There is more to write, but other connections have waited long enough.
    Yielded,
}

/// The bytes of a message, which count as long as a slice of them is held.
struct Counted {
    bytes: BytesMut,
    _taken: ByteReservation,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Output {
    /// An empty buffer, whose content is counted in `results`.
    pub(crate) fn new(results: Arc<ByteBudget>) -> Self {
        Self {
            buffer: BytesMut::new(),
            results,
            taken: None,
            segments: None,
            is_unflushed: false,
            large: LargeResponses::default(),
        }
    }

    /// Whether this buffer has more than each connection may have uncounted, while results have
    /// taken too much memory.
    pub(crate) fn is_scarce(&self) -> bool {
        self.pending() > OUT_UNCOUNTED && self.results.is_used_up()
    }

    /// Puts messages into segments from the next one on.
    pub fn start_segments(&mut self, format: SegmentFormat) {
        self.segments = Some(SegmentEncoder::new(format));
    }

    /// Bytes not yet written.
    pub fn pending(&self) -> usize {
        let segments = self.segments.as_ref().map_or(0, SegmentEncoder::buffered);
        self.buffer.len() + segments + self.large.bytes() + usize::from(self.is_unflushed)
    }

    /// Appends a message.
    pub fn append(&mut self, write: impl FnOnce(&mut BytesMut)) {
        if !self.large.is_empty() {
            let mut message = BytesMut::new();
            write(&mut message);
            return self.large.push_behind(message);
        }
        match &mut self.segments {
            Some(segments) => segments.append(&mut self.buffer, write),
            None => write(&mut self.buffer),
        }
        self.count();
    }

    /// Appends a large message in two parts, the second of which is copied slice by slice.
    pub fn append_in_slices(&mut self, head: BytesMut, rest: Bytes) {
        self.large.push(head, rest);
    }

    /// Appends a message with bytes of its own, which count as a large result as long as there are
    /// any.
    pub fn append_counted(&mut self, mut message: BytesMut) {
        if message.len() < message.capacity() / 2 {
            message = BytesMut::from(&message[..]);
        }
        let taken = self.results.take(message.len());
        self.large.push_whole(Bytes::from_owner(Counted { bytes: message, _taken: taken }));
    }

    fn count(&mut self) {
        let held = self.buffer.capacity();
        if held > OUT_UNCOUNTED {
            self.taken.get_or_insert_with(|| self.results.take(0)).set(held);
        } else if self.taken.is_some() {
            self.taken = None;
        }
    }

    /// Writes the buffered bytes, as far as the client takes them and other connections need not
    /// wait.
    pub(crate) fn poll_flush(
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

    /// Brings the next slice of large responses into the buffer, or ends the open segment.
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
        assert!(size <= self.buffer.len(), "a socket takes no more than it was given");
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

    /// Frees the buffer if it is empty.
    pub(crate) fn shrink(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }
}
