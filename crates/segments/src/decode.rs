//! Takes segments apart.
//!
//! [`SegmentDecoder::next`] finds the segment at the start of the read buffer, checks it and yields
//! its payload. A payload that is stored shares the buffer. Joining messages that are cut over
//! several segments is left to the protocol above.

use bytes::{Buf, Bytes, BytesMut};

use crate::{LENGTH_BITS, LENGTH_MASK, SegmentError, SegmentFormat, crc};

/// One segment's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The payload, decompressed.
    pub payload: Bytes,
    /// Whether the payload holds whole messages; otherwise it is a part of one message.
    pub self_contained: bool,
}

/// Finds and checks segments in a read buffer.
#[derive(Clone, Copy, Debug)]
pub struct SegmentDecoder {
    format: SegmentFormat,
}

struct Lengths {
    stored: usize,
    /// Bytes of the payload after decompression; 0 says that the payload is stored as it is.
    uncompressed: usize,
    self_contained: bool,
}

impl SegmentDecoder {
    /// A decoder for one direction of a connection.
    pub fn new(format: SegmentFormat) -> Self {
        Self { format }
    }

    /// The segment at the start of `input`, removed from it; `None` asks for more bytes.
    ///
    /// After a [`SegmentError::Payload`] or [`SegmentError::NotLz4`] the segment is removed too and
    /// its successor can be read; after a [`SegmentError::Header`] nobody knows where the next
    /// segment begins.
    pub fn next(&self, input: &mut BytesMut) -> Result<Option<Segment>, SegmentError> {
        let header_size = self.format.header_size();
        let Some(header) = input.get(..header_size) else {
            return Ok(None);
        };
        let lengths = self.lengths(header)?;
        if input.len() < header_size + lengths.stored + self.format.trailer_size() {
            return Ok(None);
        }
        let self_contained = lengths.self_contained;
        let length = if lengths.uncompressed == 0 { lengths.stored } else { lengths.uncompressed };
        input.advance(header_size);
        let payload = input.split_to(lengths.stored).freeze();
        if self.format.trailer_size() > 0 {
            let expected = input.get_u32_le();
            let found = crc::crc32(&payload);
            if expected != found {
                return Err(SegmentError::Payload { self_contained, length, expected, found });
            }
        }
        let payload = match lengths.uncompressed {
            0 => payload,
            size => decompress(&payload, size).ok_or(SegmentError::NotLz4 { self_contained, length })?,
        };
        Ok(Some(Segment { payload, self_contained }))
    }

    fn lengths(&self, header: &[u8]) -> Result<Lengths, SegmentError> {
        let (word_bytes, crc_bytes) = header.split_at(self.format.word_size());
        let expected = little_endian(crc_bytes) as u32;
        let found = crc::crc24(word_bytes);
        if expected != found {
            return Err(SegmentError::Header { expected, found });
        }
        let word = little_endian(word_bytes);
        let stored = (word & LENGTH_MASK) as usize;
        Ok(match self.format {
            SegmentFormat::Plain | SegmentFormat::Unprotected => {
                Lengths { stored, uncompressed: 0, self_contained: word >> LENGTH_BITS & 1 == 1 }
            }
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

/// `size` has 17 bits, so the allocation is bounded. `None`: the payload is not an LZ4 block of
/// that size.
fn decompress(payload: &[u8], size: usize) -> Option<Bytes> {
    let mut out = vec![0; size];
    match lz4::block::decompress_to_buffer(payload, i32::try_from(size).ok(), &mut out) {
        Ok(written) if written == size => Some(Bytes::from(out)),
        _ => None,
    }
}
