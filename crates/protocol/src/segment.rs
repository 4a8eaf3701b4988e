//! The outer layer of version 5: envelopes in checksummed segments (crate `segments`), and
//! envelopes joined from segments.
//!
//! A self-contained segment holds one or more whole envelopes. An envelope that is too large for
//! one segment is cut into consecutive segments that are not self-contained and hold nothing else.
//! Native protocol specification v5 §2.3.

pub mod decode;

pub use segments::{
    PAYLOAD_SIZE_MAX, Segment, SegmentDecoder, SegmentEncoder, SegmentError, SegmentFormat, TRAILER_SIZE, crc,
};

use crate::decode_error::DecodeError;

impl From<SegmentError> for DecodeError {
    fn from(error: SegmentError) -> Self {
        match error {
            SegmentError::Header { expected, found } => Self::Checksum { part: "header", expected, found },
            SegmentError::Payload { expected, found, .. } => Self::Checksum { part: "payload", expected, found },
            SegmentError::NotLz4 { .. } => Self::Compression("Provided segment does not appear to be LZ4 compressed"),
        }
    }
}

#[cfg(test)]
mod tests;
