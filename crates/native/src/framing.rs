//! Finds envelopes in the read buffer.
//!
//! Bodies are slices of the buffer. Bytes of a message over the limit are not stored but thrown
//! away as they come.

use bytes::{Buf, BytesMut};
use protocol::frame::{HEADER_SIZE, Header, HeaderError, decode_header};
use protocol::segment::decode::{EnvelopeJoiner, Joined};
use protocol::segment::{SegmentDecoder, SegmentFormat};
use protocol::{DecodeError, ProtocolVersion};
use transport::NextMessage;
use transport::limits::LARGE_BODY;

/// An envelope that is not decoded.
#[derive(Debug)]
pub(crate) enum UnusableFrame {
    /// The envelope is over the limit; its body is being thrown away.
    TooLarge(Header),
    /// Bytes after which no message can be found any more: the connection has to be closed.
    Broken(HeaderError),
}

impl From<HeaderError> for UnusableFrame {
    fn from(error: HeaderError) -> Self {
        Self::Broken(error)
    }
}

/// Bytes of the largest requests that are taken of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestSizes {
    /// Most bytes of an envelope without segments, its header included.
    pub frame_max: usize,
    /// Most bytes of the body of an envelope in segments.
    pub message_max: usize,
}

impl RequestSizes {
    /// Lowers both sizes to `size` bytes at most.
    pub fn at_most(self, size: usize) -> Self {
        Self { frame_max: self.frame_max.min(size), message_max: self.message_max.min(size) }
    }
}

/// The framing of a connection: see the head of this file.
#[derive(Debug)]
pub(crate) struct Framing {
    sizes: RequestSizes,
    /// Bytes of a too large body still to be thrown away.
    discard: usize,
    /// True: the large body at the start of the buffer may be read.
    admitted: bool,
    /// The decoder of segments; None: before STARTUP, and in versions below 5.
    segments: Option<(SegmentDecoder, EnvelopeJoiner)>,
}

impl Framing {
    pub fn new(sizes: RequestSizes) -> Self {
        Self { sizes, discard: 0, admitted: false, segments: None }
    }

    /// Bytes of the largest body that is taken, decompressed.
    pub fn body_size_max(&self) -> usize {
        if self.segments.is_some() { self.sizes.message_max } else { self.sizes.frame_max }
    }

    /// Why a request is refused whose size is over the limit, in Cassandra's words.
    pub fn too_large(&self, header: &Header) -> String {
        let size = header.body_size as usize;
        if self.segments.is_some() {
            let limit = self.sizes.message_max;
            return format!("CQL Message of size {size} bytes exceeds allowed maximum of {limit} bytes");
        }
        let (length, limit) = (HEADER_SIZE + size, self.sizes.frame_max);
        format!("Request is too big: length {length} exceeds maximum allowed length {limit}.")
    }

    /// Allows requests of these sizes from here on. Called when the client is known.
    pub fn allow(&mut self, sizes: RequestSizes) {
        self.sizes = sizes;
        if let Some((_, joiner)) = &mut self.segments {
            joiner.set_body_size_max(sizes.message_max);
        }
    }

    /// Expects segments from the next byte on.
    pub fn start_segments(&mut self, format: SegmentFormat) {
        assert!(self.segments.is_none(), "segments begin once");
        self.segments = Some((SegmentDecoder::new(format), EnvelopeJoiner::new(self.sizes.message_max)));
    }

    /// Allows the large body that was found to be read.
    pub fn admit(&mut self, header: &Header) {
        self.admitted = true;
        if let Some((_, joiner)) = &mut self.segments {
            joiner.reserve(header);
        }
    }

    /// Has the large body that was found thrown away as it comes.
    pub fn discard_body(&mut self, header: &Header, buffer: &mut BytesMut) {
        match &mut self.segments {
            None => self.discard(header, buffer),
            Some((_, joiner)) => joiner.discard(header),
        }
    }

    fn discard(&mut self, header: &Header, buffer: &mut BytesMut) {
        let size = HEADER_SIZE + header.body_size as usize;
        let held = buffer.len().min(size);
        buffer.advance(held);
        self.discard = size - held;
    }

    /// Bytes that are missing of the frame at the start of the buffer; 0: unknown. A segment ends
    /// within 128 KiB, so reading it in steps of the read size costs little.
    pub fn missing(&self, buffer: &BytesMut) -> usize {
        let Some(length) = buffer.get(5..HEADER_SIZE).filter(|_| self.segments.is_none()) else {
            return 0;
        };
        let length = length.iter().fold(0usize, |all, byte| all << 8 | usize::from(*byte));
        let limit = if self.admitted { self.sizes.frame_max } else { LARGE_BODY };
        (HEADER_SIZE + length.min(limit)).saturating_sub(buffer.len())
    }

    /// Takes the envelope at the start of the buffer. Its body is still compressed if its flag
    /// says so.
    #[inline]
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<NextMessage<Header>, UnusableFrame> {
        match self.segments {
            None => self.next_bare(buffer),
            Some(_) => self.next_segmented(buffer),
        }
    }

    fn next_bare(&mut self, buffer: &mut BytesMut) -> Result<NextMessage<Header>, UnusableFrame> {
        if self.discard > 0 {
            let gone = self.discard.min(buffer.len());
            buffer.advance(gone);
            self.discard -= gone;
        }
        let Some(header) = decode_header(buffer)? else {
            return Ok(NextMessage::Nothing);
        };
        let size = header.body_size as usize;
        if HEADER_SIZE + size > self.sizes.frame_max {
            self.discard(&header, buffer);
            return Err(UnusableFrame::TooLarge(header));
        }
        if buffer.len() < HEADER_SIZE + size {
            let is_large = size >= LARGE_BODY && !self.admitted;
            return Ok(if is_large { NextMessage::Large(header) } else { NextMessage::Nothing });
        }
        self.admitted = false;
        buffer.advance(HEADER_SIZE);
        Ok(NextMessage::Message(header, buffer.split_to(size).freeze()))
    }

    fn next_segmented(&mut self, buffer: &mut BytesMut) -> Result<NextMessage<Header>, UnusableFrame> {
        let Some((decoder, joiner)) = &mut self.segments else {
            return Ok(NextMessage::Nothing);
        };
        loop {
            match joiner.next_envelope()? {
                Some(Joined::Envelope(header, body)) => {
                    self.admitted = false;
                    return Ok(NextMessage::Message(header, body));
                }
                Some(Joined::TooLarge(header)) => return Err(UnusableFrame::TooLarge(header)),
                None => {}
            }
            let cut = joiner.cut().filter(|header| header.body_size as usize >= LARGE_BODY && !self.admitted);
            if let Some(header) = cut {
                return Ok(NextMessage::Large(header));
            }
            match decoder.next(buffer).map_err(|error| broken_segment(error.into()))? {
                Some(segment) => joiner.push(segment)?,
                None => return Ok(NextMessage::Nothing),
            }
        }
    }
}

fn broken_segment(error: DecodeError) -> HeaderError {
    HeaderError { stream: 0, answer_version: ProtocolVersion::CURRENT.number(), error }
}
