//! Version 5's outer layer: segments with checksums around the envelopes.
//!
//! ```text
//! plain:  3 bytes LE: payload length (17 bits), self-contained (1 bit)                              | CRC24 | payload | CRC32
//! LZ4:    5 bytes LE: stored length (17 bits), uncompressed length (17 bits), self-contained (1 bit) | CRC24 | payload | CRC32
//! ```
//!
//! A self-contained segment holds one or more whole envelopes. An envelope that is too large for that is cut over
//! consecutive segments, not self-contained, that hold nothing else. In LZ4 an uncompressed length of 0 says that the payload
//! is stored as it is. Checksums are written little-endian and cover what is on the wire.
//! [`decode`] takes segments apart, [`encode`] puts them together. Native protocol specification v5 §2.3;
//! `org.apache.cassandra.net.FrameDecoderCrc`, `FrameDecoderLZ4`, `FrameEncoderCrc`, `FrameEncoderLZ4`, `Crc`.

pub mod crc;
pub mod decode;
pub mod encode;

pub use decode::{Segment, SegmentDecoder};
pub use encode::SegmentEncoder;

/// The most bytes that a segment's payload can have.
pub const PAYLOAD_SIZE_MAX: usize = (1 << 17) - 1;

/// Bytes of the payload's checksum.
pub const TRAILER_SIZE: usize = 4;

const CRC24_SIZE: usize = 3;
const LENGTH_BITS: u32 = 17;
const LENGTH_MASK: u64 = (1 << LENGTH_BITS) - 1;

/// The two forms of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentFormat {
    /// Stored payloads.
    Plain,
    /// LZ4 payloads.
    Lz4,
}

impl SegmentFormat {
    /// Bytes of the header before its checksum.
    const fn word_size(self) -> usize {
        match self {
            Self::Plain => 3,
            Self::Lz4 => 5,
        }
    }

    /// Bytes of the header with its checksum.
    pub const fn header_size(self) -> usize {
        self.word_size() + CRC24_SIZE
    }

    /// The header for a payload of these lengths.
    fn header(self, stored: usize, uncompressed: usize, self_contained: bool) -> ([u8; 8], usize) {
        debug_assert!(stored <= PAYLOAD_SIZE_MAX && uncompressed <= PAYLOAD_SIZE_MAX);
        let flag = u64::from(self_contained);
        let word = match self {
            Self::Plain => stored as u64 | flag << LENGTH_BITS,
            Self::Lz4 => stored as u64 | (uncompressed as u64) << LENGTH_BITS | flag << (2 * LENGTH_BITS),
        };
        let size = self.word_size();
        let mut header = word.to_le_bytes();
        let crc = crc::crc24(&header[..size]).to_le_bytes();
        header[size..size + CRC24_SIZE].copy_from_slice(&crc[..CRC24_SIZE]);
        (header, size + CRC24_SIZE)
    }
}

#[cfg(test)]
mod tests;
