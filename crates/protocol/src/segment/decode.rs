//! Joins the payloads of segments into envelopes.

use bytes::{Buf, Bytes, BytesMut};

use super::Segment;
use crate::decode_error::DecodeError;
use crate::frame::{HEADER_SIZE, Header, HeaderError, decode_header};

/// Joins the payloads of segments into envelopes.
///
/// Payloads of self-contained segments are used without a copy; the parts of cut envelopes are
/// gathered in a buffer.
#[derive(Debug)]
pub struct EnvelopeJoiner {
    /// Whole envelopes of one self-contained segment that were not returned yet.
    whole: Bytes,
    /// The beginning of an envelope that is cut into several segments.
    partial: BytesMut,
    /// Most bytes of a body.
    body_size_max: usize,
    /// Bytes of an envelope over the limit that are still to be discarded.
    discard: usize,
}

/// The result of [`EnvelopeJoiner::next_envelope`].
#[derive(Debug, PartialEq, Eq)]
pub enum Joined {
    /// A whole envelope.
    Envelope(Header, Bytes),
    /// The header of an envelope over the limit; its body is discarded as it arrives.
    TooLarge(Header),
}

impl EnvelopeJoiner {
    /// Changes the most bytes of a body.
    pub fn set_body_size_max(&mut self, body_size_max: usize) {
        self.body_size_max = body_size_max;
    }

    /// A joiner that refuses bodies of more than `body_size_max` bytes.
    pub fn new(body_size_max: usize) -> Self {
        Self { whole: Bytes::new(), partial: BytesMut::new(), body_size_max, discard: 0 }
    }

    /// Takes the next segment. [`Self::next_envelope`] must have returned `None` before.
    pub fn push(&mut self, segment: Segment) -> Result<(), HeaderError> {
        debug_assert!(self.whole.is_empty(), "a segment is emptied before the next is taken");
        debug_assert!(self.discard == 0 || self.partial.is_empty(), "nothing is kept of an envelope that is discarded");
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

    /// The next envelope; `None`: the next segment is needed.
    pub fn next_envelope(&mut self) -> Result<Option<Joined>, HeaderError> {
        if !self.whole.is_empty() {
            return self.next_whole().map(Some);
        }
        self.next_partial()
    }

    /// The header of an envelope whose body has not arrived completely; None: there is none.
    pub fn cut(&self) -> Option<Header> {
        decode_header(&self.partial).ok().flatten()
    }

    /// Reserves room for the rest of the envelope that is cut: the caller permits its body.
    pub fn reserve(&mut self, header: &Header) {
        let total = HEADER_SIZE + (header.body_size as usize).min(self.body_size_max);
        self.partial.reserve(total.saturating_sub(self.partial.len()));
    }

    /// Discards the envelope that begins with this header: the part that is here, and the rest as
    /// it arrives.
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

    /// Bytes kept of an incomplete envelope.
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
