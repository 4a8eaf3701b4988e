//! Messages in frames: [`MessageReader`] takes the bytes of an inbound link apart,
//! [`MessageWriter`] puts an outbound one's together.
//!
//! A self-contained frame holds whole messages back to back. A message that is larger than a frame
//! is cut over several frames that hold nothing else; its header lies in the first of them, whole,
//! and says where the message ends.
//!
//! What a damaged frame costs (`org.apache.cassandra.net.AbstractMessageHandler`, `FrameDecoder`):
//! - a header's checksum: the link, since nobody knows where the next frame begins;
//! - a self-contained frame's payload: its messages, of which nobody knows how many there were;
//! - the first frame of a cut message: the link;
//! - a later frame of a cut message: that message.

use std::cmp::Ordering;

use bytes::{Bytes, BytesMut};
use segments::{PAYLOAD_SIZE_MAX, SegmentDecoder, SegmentEncoder, SegmentError};

use crate::envelope::{Envelope, HEADER_SIZE_MAX, Header};
use crate::error::InternodeError;
use crate::handshake::Framing;

const _: () = assert!(HEADER_SIZE_MAX < PAYLOAD_SIZE_MAX, "a header fits in a frame");

/// Takes the frames of one inbound link apart.
#[derive(Debug)]
pub struct MessageReader {
    decoder: SegmentDecoder,
    /// Messages of the last self-contained frame that have not been given yet.
    whole: Bytes,
    /// A message of which the first frames have come.
    cut: Option<PartialMessage>,
    /// `internode_max_message_size`: bytes of a message with its header.
    message_size_max: usize,
    /// Bytes of the last message that was given.
    message_size: usize,
}

#[derive(Debug)]
struct PartialMessage {
    header: Header,
    /// Bytes of the header: the payload begins behind them.
    payload_start: usize,
    /// Bytes of the whole message.
    size: usize,
    /// The bytes that have come. Empty when a frame was damaged: then the message is lost.
    bytes: BytesMut,
    /// Bytes that have come, damaged ones included.
    seen: usize,
}

/// A message that a link brought, or word that messages were lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Received {
    /// A message.
    Message(Envelope),
    /// A frame was damaged; the link goes on without the messages that were in it.
    Lost(SegmentError),
}

impl MessageReader {
    /// A reader of what follows the handshake.
    pub fn new(framing: Framing, message_size_max: usize) -> Self {
        let decoder = SegmentDecoder::new(framing.segments());
        Self { decoder, whole: Bytes::new(), cut: None, message_size_max, message_size: 0 }
    }

    /// The next message of `input`, whose bytes are removed; `None` asks for more. An error ends
    /// the link.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Received>, InternodeError> {
        loop {
            if !self.whole.is_empty() {
                return self.next_whole().map(|envelope| Some(Received::Message(envelope)));
            }
            let segment = match self.decoder.next(input) {
                Ok(None) => return Ok(None),
                Ok(Some(segment)) => segment,
                Err(error) => return self.damaged(error).map(|()| Some(Received::Lost(error))),
            };
            if segment.self_contained {
                if self.cut.is_some() {
                    return Err(InternodeError::Sequence("a self-contained frame comes inside of a cut message"));
                }
                self.whole = segment.payload;
            } else if let Some(envelope) = self.push_part(&segment.payload)? {
                return Ok(Some(Received::Message(envelope)));
            }
        }
    }

    /// Bytes of the message that was given last, with its header, without frames.
    pub fn message_size(&self) -> usize {
        self.message_size
    }

    /// Bytes that wait for the rest of their message.
    pub fn buffered(&self) -> usize {
        self.whole.len() + self.cut.as_ref().map_or(0, |cut| cut.bytes.len())
    }

    fn next_whole(&mut self) -> Result<Envelope, InternodeError> {
        let cut_off = InternodeError::Sequence("a message is cut in a self-contained frame");
        let (header, start, size) = Header::decode(&self.whole)?.ok_or(cut_off.clone())?;
        self.check_size(start, size)?;
        if self.whole.len() < start + size {
            return Err(cut_off);
        }
        self.message_size = start + size;
        let payload = self.whole.split_to(start + size).slice(start..);
        Ok(Envelope { header, payload })
    }

    fn push_part(&mut self, part: &Bytes) -> Result<Option<Envelope>, InternodeError> {
        let cut = match &mut self.cut {
            Some(cut) => {
                // after a damaged frame the bytes are only counted
                if cut.bytes.len() == cut.seen {
                    cut.bytes.extend_from_slice(part);
                }
                cut.seen += part.len();
                cut
            }
            None => {
                let no_header = InternodeError::Sequence("the first frame of a cut message has not its whole header");
                let (header, payload_start, payload) = Header::decode(part)?.ok_or(no_header)?;
                self.check_size(payload_start, payload)?;
                let size = payload_start + payload;
                // the size is below the limit; a buffer that grows would be copied again and again
                let mut bytes = BytesMut::with_capacity(size.max(part.len()));
                bytes.extend_from_slice(part);
                self.cut.insert(PartialMessage { header, payload_start, size, seen: bytes.len(), bytes })
            }
        };
        if cut.seen > cut.size {
            return Err(InternodeError::Sequence("bytes follow a cut message in its last frame"));
        }
        if cut.seen < cut.size {
            return Ok(None);
        }
        let Some(cut) = self.cut.take() else { return Ok(None) };
        assert!(cut.bytes.len() <= cut.seen, "no more bytes are kept of a message than have come");
        self.message_size = cut.size;
        let is_whole = cut.bytes.len() == cut.size;
        Ok(is_whole.then(|| Envelope { header: cut.header, payload: cut.bytes.freeze().slice(cut.payload_start..) }))
    }

    /// Decides whether the link goes on behind a damaged frame.
    fn damaged(&mut self, error: SegmentError) -> Result<(), InternodeError> {
        let (self_contained, length) = match error {
            SegmentError::Header { .. } => return Err(InternodeError::Frame(error)),
            SegmentError::Payload { self_contained, length, .. } => (self_contained, length),
            SegmentError::NotLz4 { self_contained, length } => (self_contained, length),
        };
        match (&mut self.cut, self_contained) {
            (None, true) => Ok(()),
            (Some(cut), false) => {
                cut.bytes = BytesMut::new();
                cut.seen += length;
                match cut.seen.cmp(&cut.size) {
                    Ordering::Less => {}
                    Ordering::Equal => self.cut = None,
                    Ordering::Greater => return Err(InternodeError::Frame(error)),
                }
                Ok(())
            }
            (None, false) | (Some(_), true) => Err(InternodeError::Frame(error)),
        }
    }

    fn check_size(&self, header: usize, payload: usize) -> Result<(), InternodeError> {
        let size = header as u64 + payload as u64;
        match size <= self.message_size_max as u64 {
            true => Ok(()),
            false => Err(InternodeError::TooLarge { size, limit: self.message_size_max }),
        }
    }
}

/// Puts the frames of one outbound link together. Small messages share a frame; a large one is cut.
#[derive(Debug)]
pub struct MessageWriter {
    encoder: SegmentEncoder,
    /// A small message, or the first frame of a large one, on its way into frames; kept for its
    /// room.
    scratch: Vec<u8>,
    /// Bytes of the message that was begun last, with its header, without frames.
    message_size: usize,
}

impl MessageWriter {
    /// A writer of what follows the handshake.
    pub fn new(framing: Framing) -> Self {
        Self { encoder: SegmentEncoder::new(framing.segments()), scratch: Vec::new(), message_size: 0 }
    }

    /// Appends a whole message to `out`. Call [`Self::finish`] before `out` is sent.
    pub fn append(&mut self, out: &mut BytesMut, envelope: &Envelope) {
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.append_from(out, envelope, from, usize::MAX);
        }
    }

    /// Appends a message to `out`; of a message that is larger than a frame, the frames from byte
    /// `from` of its payload on, until `out` has `room` bytes. Gives the byte of the payload where
    /// the next call goes on; None: the message ends in `out`. A large message that is sent piece
    /// by piece needs no buffer of its size.
    pub fn append_from(
        &mut self,
        out: &mut BytesMut,
        envelope: &Envelope,
        mut from: usize,
        room: usize,
    ) -> Option<usize> {
        let payload = &envelope.payload;
        if from == 0 {
            self.scratch.clear();
            envelope.header.encode(&mut self.scratch, payload.len());
            assert!(self.scratch.len() <= PAYLOAD_SIZE_MAX, "the first frame of a message has its whole header");
            self.message_size = self.scratch.len() + payload.len();
            from = payload.len().min(PAYLOAD_SIZE_MAX - self.scratch.len());
            self.scratch.extend_from_slice(&payload[..from]);
            if from == payload.len() {
                self.encoder.append(out, |out| out.extend_from_slice(&self.scratch));
                return None;
            }
            self.encoder.append_part(out, &self.scratch);
        }
        while from < payload.len() && out.len() < room {
            let end = payload.len().min(from + PAYLOAD_SIZE_MAX);
            self.encoder.append_part(out, &payload[from..end]);
            from = end;
        }
        (from < payload.len()).then_some(from)
    }

    /// Bytes of the message that was begun last, with its header, without frames.
    pub fn message_size(&self) -> usize {
        self.message_size
    }

    /// Closes the frame that is open.
    pub fn finish(&mut self, out: &mut BytesMut) {
        self.encoder.finish(out);
    }
}

#[cfg(test)]
mod tests;
