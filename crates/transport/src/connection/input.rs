//! The read side of a connection: a buffer, and the framing that finds envelopes in it.
//!
//! Bodies are slices of the buffer. It holds 16 KiB, or the frame that is on its way if that is larger; what the client
//! claims beyond the limit is not stored but thrown away as it comes.

use bytes::{Buf, Bytes, BytesMut};
use protocol::frame::{HEADER_SIZE, Header, HeaderError, decode_header};
use protocol::segment::decode::{EnvelopeJoiner, Joined};
use protocol::segment::{SegmentDecoder, SegmentFormat};
use protocol::{DecodeError, ProtocolVersion};

use crate::limits::{FIRST_READ_SIZE, IDLE_READ_SIZE, LARGE_BODY, READ_SIZE};

/// What is at the start of the buffer.
#[derive(Debug)]
pub(super) enum Found {
    /// Not enough for anything: read on.
    Nothing,
    /// The beginning of an envelope with a body of so many bytes, which is large: to be read on after [`Input::admit`], or thrown away
    /// with [`Input::refuse`].
    Large(Header),
    /// A whole envelope, its body still compressed if its flag says so.
    Envelope(Header, Bytes),
    /// An envelope over the limit; its body is being thrown away.
    TooLarge(Header),
    /// What cannot be answered but by closing.
    Broken(HeaderError),
}

/// What is taken of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// An envelope without segments, its header included.
    pub frame_max: usize,
    /// The body of one in segments.
    pub message_max: usize,
}

impl Sizes {
    /// Both no more than this.
    pub fn at_most(self, size: usize) -> Self {
        Self { frame_max: self.frame_max.min(size), message_max: self.message_max.min(size) }
    }
}

/// The buffer and its framing.
#[derive(Debug)]
pub(super) struct Input {
    pub buffer: BytesMut,
    sizes: Sizes,
    /// Bytes of a too large body still to be thrown away.
    discard: usize,
    /// The large body at the start of the buffer may be read.
    admitted: bool,
    /// What the next read takes at most, unless a large body is on its way.
    read_size: usize,
    /// After STARTUP of version 5.
    segments: Option<(SegmentDecoder, EnvelopeJoiner)>,
}

impl Input {
    pub fn new(sizes: Sizes) -> Self {
        Self { buffer: BytesMut::new(), sizes, discard: 0, admitted: false, read_size: FIRST_READ_SIZE, segments: None }
    }

    /// The largest body that is taken, decompressed.
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

    /// The client is known: from here on its requests may be of these sizes.
    pub fn allow(&mut self, sizes: Sizes) {
        self.sizes = sizes;
        if let Some((_, joiner)) = &mut self.segments {
            joiner.set_body_size_max(sizes.message_max);
        }
    }

    /// From the next byte on there are segments.
    pub fn start_segments(&mut self, format: SegmentFormat) {
        self.segments = Some((SegmentDecoder::new(format), EnvelopeJoiner::new(self.sizes.message_max)));
    }

    /// The large body that was found may be read.
    pub fn admit(&mut self, header: &Header) {
        self.admitted = true;
        if let Some((_, joiner)) = &mut self.segments {
            joiner.reserve(header);
        }
    }

    /// The large body that was found is thrown away as it comes.
    pub fn refuse(&mut self, header: &Header) {
        match &mut self.segments {
            None => self.discard(header),
            Some((_, joiner)) => joiner.discard(header),
        }
    }

    fn discard(&mut self, header: &Header) {
        let size = HEADER_SIZE + header.body_size as usize;
        let held = self.buffer.len().min(size);
        self.buffer.advance(held);
        self.discard = size - held;
    }

    /// Makes room for the next read: the rest of the frame at the start of the buffer if that is known, else [`READ_SIZE`],
    /// or less if so much never came, or the connection is `idle`.
    pub fn reserve(&mut self, idle: bool) {
        if idle && self.buffer.is_empty() {
            self.read_size = FIRST_READ_SIZE;
            self.buffer.reserve(IDLE_READ_SIZE);
            return;
        }
        let missing = match &self.segments {
            None => match self.buffer.get(5..HEADER_SIZE) {
                Some(length) => {
                    let length = length.iter().fold(0usize, |all, byte| all << 8 | usize::from(*byte));
                    let limit = if self.admitted { self.sizes.frame_max } else { LARGE_BODY };
                    (HEADER_SIZE + length.min(limit)).saturating_sub(self.buffer.len())
                }
                None => 0,
            },
            // a segment ends within 128 KiB; reading in steps of the read size costs little
            Some(_) => 0,
        };
        if self.buffer.capacity() - self.buffer.len() < missing.max(self.read_size / 4) {
            self.buffer.reserve(missing.max(self.read_size));
        }
    }

    /// A read has brought something.
    pub fn has_read(&mut self) {
        if self.buffer.len() == self.buffer.capacity() {
            self.read_size = (self.read_size * 4).min(READ_SIZE);
        }
    }

    /// Gives the buffer back if it holds nothing.
    pub fn shrink(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }

    /// Takes what is at the start of the buffer.
    pub fn next(&mut self) -> Found {
        let found = match self.segments {
            None => self.next_bare(),
            Some(_) => self.next_segmented(),
        };
        if matches!(found, Ok(Found::Envelope(..))) {
            self.admitted = false;
        }
        found.unwrap_or_else(Found::Broken)
    }

    fn next_bare(&mut self) -> Result<Found, HeaderError> {
        if self.discard > 0 {
            let gone = self.discard.min(self.buffer.len());
            self.buffer.advance(gone);
            self.discard -= gone;
        }
        let Some(header) = decode_header(&self.buffer)? else {
            return Ok(Found::Nothing);
        };
        let size = header.body_size as usize;
        if HEADER_SIZE + size > self.sizes.frame_max {
            self.discard(&header);
            return Ok(Found::TooLarge(header));
        }
        if self.buffer.len() < HEADER_SIZE + size {
            return Ok(if size >= LARGE_BODY && !self.admitted { Found::Large(header) } else { Found::Nothing });
        }
        self.buffer.advance(HEADER_SIZE);
        Ok(Found::Envelope(header, self.buffer.split_to(size).freeze()))
    }

    fn next_segmented(&mut self) -> Result<Found, HeaderError> {
        let Some((decoder, joiner)) = &mut self.segments else {
            return Ok(Found::Nothing);
        };
        loop {
            match joiner.next_envelope()? {
                Some(Joined::Envelope(header, body)) => return Ok(Found::Envelope(header, body)),
                Some(Joined::TooLarge(header)) => return Ok(Found::TooLarge(header)),
                None => {}
            }
            if let Some(header) =
                joiner.cut().filter(|header| header.body_size as usize >= LARGE_BODY && !self.admitted)
            {
                return Ok(Found::Large(header));
            }
            match decoder.next(&mut self.buffer).map_err(|error| broken_segment(error.into()))? {
                Some(segment) => joiner.push(segment)?,
                None => return Ok(Found::Nothing),
            }
        }
    }
}

fn broken_segment(error: DecodeError) -> HeaderError {
    HeaderError { stream: 0, answer_version: ProtocolVersion::CURRENT.number(), error }
}
