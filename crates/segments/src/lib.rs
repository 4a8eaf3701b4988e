//! Segments: the checksummed outer layer of version 5 of the native protocol and of links between
//! nodes.
//!
//! ```text
//! plain:       3 bytes LE: payload length (17 bits), self-contained (1 bit)
//!              | CRC24 | payload | CRC32
//! unprotected: as plain, without the CRC32
//! LZ4:         5 bytes LE: stored length (17 bits), uncompressed length (17 bits),
//!              self-contained (1 bit) | CRC24 | payload | CRC32
//! ```
//!
//! A self-contained segment holds one or more whole messages. A message that is too large for one
//! segment is cut over consecutive segments, not self-contained, that hold nothing else. In LZ4 an
//! uncompressed length of 0 says that the payload is stored as it is. Checksums are written
//! little-endian and cover the bytes as they are sent. [`decode`] takes segments apart, [`encode`]
//! puts them together. This crate knows nothing of what a message is; both protocols stand on it.
//! Native protocol specification v5 §2.3; `org.apache.cassandra.net.FrameDecoderCrc`,
//! `FrameDecoderLZ4`, `FrameDecoderUnprotected`, `FrameEncoderCrc`, `FrameEncoderLZ4`,
//! `FrameEncoderUnprotected`, `Crc`.

use std::fmt;

pub mod crc;
pub mod decode;
pub mod encode;

pub use decode::{Segment, SegmentDecoder};
pub use encode::SegmentEncoder;

/// The most bytes that a segment's payload can have.
pub const PAYLOAD_SIZE_MAX: usize = (1 << 17) - 1;

/// Bytes of the payload's checksum, in the formats that have one.
pub const TRAILER_SIZE: usize = 4;

const CRC24_SIZE: usize = 3;
const LENGTH_BITS: u32 = 17;
const LENGTH_MASK: u64 = (1 << LENGTH_BITS) - 1;

// the greatest payload has a length, and lengths and flag have room in the header of each form
const _: () = assert!(PAYLOAD_SIZE_MAX as u64 == LENGTH_MASK);
const _: () = assert!(LENGTH_BITS < 8 * SegmentFormat::Plain.word_size() as u32);
const _: () = assert!(2 * LENGTH_BITS < 8 * SegmentFormat::Lz4.word_size() as u32);
const _: () = assert!(SegmentFormat::Lz4.header_size() <= size_of::<u64>());

/// The forms of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentFormat {
    /// Stored payloads with a checksum.
    Plain,
    /// Stored payloads without a checksum: links that carry a stream, and neighbours that ask for
    /// it.
    Unprotected,
    /// LZ4 payloads.
    Lz4,
}

impl SegmentFormat {
    /// Bytes of the header before its checksum.
    const fn word_size(self) -> usize {
        match self {
            Self::Plain | Self::Unprotected => 3,
            Self::Lz4 => 5,
        }
    }

    /// Bytes of the header with its checksum.
    pub const fn header_size(self) -> usize {
        self.word_size() + CRC24_SIZE
    }

    /// Bytes behind the payload.
    pub const fn trailer_size(self) -> usize {
        match self {
            Self::Unprotected => 0,
            Self::Plain | Self::Lz4 => TRAILER_SIZE,
        }
    }

    /// The header for a payload of these lengths, and how many of its bytes count.
    pub fn header(self, stored: usize, uncompressed: usize, self_contained: bool) -> ([u8; 8], usize) {
        assert!(stored <= PAYLOAD_SIZE_MAX && uncompressed <= PAYLOAD_SIZE_MAX, "a segment's lengths fit in 17 bits");
        assert!(uncompressed == 0 || self == Self::Lz4, "a segment is compressed only where its form has the length");
        let flag = u64::from(self_contained);
        let word = match self {
            Self::Plain | Self::Unprotected => stored as u64 | flag << LENGTH_BITS,
            Self::Lz4 => stored as u64 | (uncompressed as u64) << LENGTH_BITS | flag << (2 * LENGTH_BITS),
        };
        let size = self.word_size();
        let mut header = word.to_le_bytes();
        let crc = crc::crc24(&header[..size]).to_le_bytes();
        header[size..size + CRC24_SIZE].copy_from_slice(&crc[..CRC24_SIZE]);
        (header, size + CRC24_SIZE)
    }
}

/// Why a segment could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// The header's CRC-24 does not match. Where the segment ends is unknown.
    Header {
        /// The checksum in the segment.
        expected: u32,
        /// The checksum of the bytes that came.
        found: u32,
    },
    /// The payload's CRC-32 does not match.
    Payload {
        /// Whether the segment held whole messages.
        self_contained: bool,
        /// Bytes that the payload has when it is decompressed, as its header says.
        length: usize,
        /// The checksum in the segment.
        expected: u32,
        /// The checksum of the bytes that came.
        found: u32,
    },
    /// The payload is not an LZ4 block of the length in the header.
    NotLz4 {
        /// Whether the segment held whole messages.
        self_contained: bool,
        /// Bytes that the payload has when it is decompressed, as its header says.
        length: usize,
    },
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (part, expected, found) = match self {
            Self::Header { expected, found } => ("header", expected, found),
            Self::Payload { expected, found, .. } => ("payload", expected, found),
            Self::NotLz4 { .. } => return f.write_str("a segment's payload is not LZ4"),
        };
        write!(f, "a segment's {part} has checksum {found:08x} where {expected:08x} was expected")
    }
}

impl std::error::Error for SegmentError {}
