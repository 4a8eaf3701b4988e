//! Takes segments apart.
//!
//! [`SegmentDecoder::next`] finds the segment at the start of the read buffer, checks it and yields its payload, sharing the
//! buffer when it is stored. Joining envelopes that are cut over several segments is [`EnvelopeJoiner`]'s: it yields the bytes of whole envelopes.

use bytes::{Buf, Bytes, BytesMut};

use super::{LENGTH_BITS, LENGTH_MASK, SegmentFormat, TRAILER_SIZE, crc};
use crate::decode_error::DecodeError;
use crate::frame::{HEADER_SIZE, Header, HeaderError, decode_header};

/// One segment's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The payload, decompressed.
    pub payload: Bytes,
    /// Whether it holds whole envelopes.
    pub self_contained: bool,
}

/// Finds and checks segments in a read buffer.
#[derive(Clone, Copy, Debug)]
pub struct SegmentDecoder {
    format: SegmentFormat,
}

struct Lengths {
    stored: usize,
    /// 0 if the payload is stored as it is
    uncompressed: usize,
    self_contained: bool,
}

impl SegmentDecoder {
    /// A decoder for one direction of a connection.
    pub fn new(format: SegmentFormat) -> Self {
        Self { format }
    }

    /// The segment at the start of `input`, removed from it; `None` asks for more bytes. Every error is fatal.
    pub fn next(&self, input: &mut BytesMut) -> Result<Option<Segment>, DecodeError> {
        let header_size = self.format.header_size();
        let Some(header) = input.get(..header_size) else {
            return Ok(None);
        };
        let lengths = self.lengths(header)?;
        if input.len() < header_size + lengths.stored + TRAILER_SIZE {
            return Ok(None);
        }
        input.advance(header_size);
        let payload = input.split_to(lengths.stored).freeze();
        let expected = input.get_u32_le();
        let found = crc::crc32(&payload);
        if expected != found {
            return Err(DecodeError::Checksum { part: "payload", expected, found });
        }
        let payload = if lengths.uncompressed == 0 { payload } else { decompress(&payload, lengths.uncompressed)? };
        Ok(Some(Segment { payload, self_contained: lengths.self_contained }))
    }

    fn lengths(&self, header: &[u8]) -> Result<Lengths, DecodeError> {
        let (word_bytes, crc_bytes) = header.split_at(self.format.word_size());
        let expected = little_endian(crc_bytes) as u32;
        let found = crc::crc24(word_bytes);
        if expected != found {
            return Err(DecodeError::Checksum { part: "header", expected, found });
        }
        let word = little_endian(word_bytes);
        let stored = (word & LENGTH_MASK) as usize;
        Ok(match self.format {
            SegmentFormat::Plain => Lengths { stored, uncompressed: 0, self_contained: word >> LENGTH_BITS & 1 == 1 },
            SegmentFormat::Lz4 => Lengths {
                stored,
                uncompressed: (word >> LENGTH_BITS & LENGTH_MASK) as usize,
                self_contained: word >> (2 * LENGTH_BITS) & 1 == 1,
            },
        })
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// `size` has 17 bits, so the allocation is bounded.
fn decompress(payload: &[u8], size: usize) -> Result<Bytes, DecodeError> {
    let mut out = vec![0; size];
    match lz4::block::decompress_to_buffer(payload, i32::try_from(size).ok(), &mut out) {
        Ok(written) if written == size => Ok(Bytes::from(out)),
        _ => Err(DecodeError::Compression("Provided segment does not appear to be LZ4 compressed")),
    }
}

/// Joins what segments carry into envelopes.
///
/// Payloads of self-contained segments are taken as they are, without a copy; those of cut envelopes are gathered.
#[derive(Debug)]
pub struct EnvelopeJoiner {
    /// Whole envelopes still to be handed out, of one self-contained segment.
    whole: Bytes,
    /// The beginning of an envelope that is cut over several segments.
    partial: BytesMut,
    /// The most bytes that a body may have.
    body_size_max: usize,
    /// Bytes of a too large envelope still to be thrown away.
    discard: usize,
}

/// What [`EnvelopeJoiner::next_envelope`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Joined {
    /// A whole envelope.
    Envelope(Header, Bytes),
    /// An envelope over the limit: its header; the body is thrown away as it comes.
    TooLarge(Header),
}

impl EnvelopeJoiner {
    /// From here on bodies of this size are taken.
    pub fn set_body_size_max(&mut self, body_size_max: usize) {
        self.body_size_max = body_size_max;
    }

    /// A joiner that refuses larger bodies.
    pub fn new(body_size_max: usize) -> Self {
        Self { whole: Bytes::new(), partial: BytesMut::new(), body_size_max, discard: 0 }
    }

    /// Takes the next segment. [`Self::next_envelope`] must have returned `None` before.
    pub fn push(&mut self, segment: Segment) -> Result<(), HeaderError> {
        debug_assert!(self.whole.is_empty(), "a segment is emptied before the next is taken");
        let mut payload = segment.payload;
        if self.discard > 0 {
            let gone = self.discard.min(payload.len());
            payload.advance(gone);
            self.discard -= gone;
        }
        if segment.self_contained {
            if !self.partial.is_empty() {
                return Err(fatal("a self-contained one within a cut envelope"));
            }
            self.whole = payload;
        } else {
            self.partial.extend_from_slice(&payload);
        }
        Ok(())
    }

    /// The next envelope; `None` asks for the next segment.
    pub fn next_envelope(&mut self) -> Result<Option<Joined>, HeaderError> {
        if !self.whole.is_empty() {
            return self.next_whole().map(Some);
        }
        self.next_partial()
    }

    /// The header of an envelope whose body is not all there yet.
    pub fn cut(&self) -> Option<Header> {
        decode_header(&self.partial).ok().flatten()
    }

    /// Makes room for the rest of the envelope that is cut: its body may be read.
    pub fn reserve(&mut self, header: &Header) {
        let total = HEADER_SIZE + (header.body_size as usize).min(self.body_size_max);
        self.partial.reserve(total.saturating_sub(self.partial.len()));
    }

    /// Throws away the envelope that begins with this header: what is here and what will come of it.
    pub fn discard(&mut self, header: &Header) {
        let total = HEADER_SIZE + header.body_size as usize;
        self.discard = total.saturating_sub(self.partial.len());
        self.partial.clear();
    }

    fn next_whole(&mut self) -> Result<Joined, HeaderError> {
        let header = decode_header(&self.whole)?.ok_or_else(|| fatal("an envelope's header is cut"))?;
        let size = header.body_size as usize;
        if self.whole.len() - HEADER_SIZE < size {
            return Err(HeaderError { stream: header.stream, ..fatal("an envelope's body is cut") });
        }
        self.whole.advance(HEADER_SIZE);
        let body = self.whole.split_to(size);
        if size > self.body_size_max {
            return Ok(Joined::TooLarge(header));
        }
        Ok(Joined::Envelope(header, body))
    }

    fn next_partial(&mut self) -> Result<Option<Joined>, HeaderError> {
        let Some(header) = decode_header(&self.partial)? else {
            return Ok(None);
        };
        let total = HEADER_SIZE + header.body_size as usize;
        if header.body_size as usize > self.body_size_max {
            self.discard(&header);
            return Ok(Some(Joined::TooLarge(header)));
        }
        if self.partial.len() < total {
            return Ok(None);
        }
        if self.partial.len() > total {
            return Err(HeaderError { stream: header.stream, ..fatal("more than the rest of a cut envelope") });
        }
        let mut body = std::mem::take(&mut self.partial).freeze();
        body.advance(HEADER_SIZE);
        Ok(Some(Joined::Envelope(header, body)))
    }

    /// Bytes held of an unfinished envelope.
    pub fn buffered(&self) -> usize {
        self.partial.len()
    }
}

fn fatal(why: &'static str) -> HeaderError {
    HeaderError {
        stream: 0,
        answer_version: crate::version::ProtocolVersion::CURRENT.number(),
        error: DecodeError::Segment(why),
    }
}
