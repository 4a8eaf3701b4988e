//! The first bytes of a link: [`Initiate`] from the node that opens it, [`Accept`] from the other.
//! There is no third message.
//!
//! ```text
//! Initiate:  u32 magic CA552DFA | u32 flags | addr broadcast address of the opener
//!            | u32 CRC-32 of all before
//! Accept:    i32 highest version of the acceptor | i32 version to use
//!            | u32 CRC-32 of all before
//! flags:     bits 0-1 link type | 2 low bit of the framing | 3 streaming
//!            | 4 high bit of the framing | 8-15 and 16-23 lowest accepted version
//!            | 24-31 highest accepted version
//! ```
//!
//! The checksum is that of frames ([`segments::crc::crc32`]) but big-endian.
//! `org.apache.cassandra.net.HandshakeProtocol`.

use std::net::SocketAddr;

use segments::SegmentFormat;
use segments::crc::crc32;
use stdx::{Cursor, CursorError};

use crate::address::{put_address, read_address};
use crate::error::InternodeError;
use crate::version::VersionRange;

const MAGIC: u32 = 0xCA55_2DFA;
const STREAMING_BIT: u32 = 1 << 3;

/// The messages that a link carries. The sender sorts messages among the links of a peer by size
/// and priority.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinkType {
    /// Messages of the highest priority: gossip, truncation, failures.
    Urgent,
    /// Other messages of at most [`LARGE_MESSAGE_SIZE`] bytes.
    Small,
    /// Larger messages.
    Large,
    /// A stream of SSTables, both ways.
    Streaming,
}

/// A serialized message of more bytes goes on the LARGE link
/// (`OutboundConnections.LARGE_MESSAGE_THRESHOLD`).
pub const LARGE_MESSAGE_SIZE: usize = 65_536 - 12;

impl LinkType {
    /// The three types that carry messages, in the order of their numbers.
    pub const MESSAGING: [Self; 3] = [Self::Urgent, Self::Small, Self::Large];

    /// The number in PING_REQ, and in the flags of a messaging link.
    pub const fn number(self) -> u8 {
        match self {
            Self::Urgent => 1,
            Self::Small => 2,
            Self::Large => 3,
            Self::Streaming => 4,
        }
    }

    /// The type of messages with this number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Urgent),
            2 => Some(Self::Small),
            3 => Some(Self::Large),
            4 => Some(Self::Streaming),
            _ => None,
        }
    }
}

/// How the opener protects what follows the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// No checksum of payloads; the only one for streams.
    Unprotected,
    /// LZ4 with checksums (`internode_compression`).
    Lz4,
    /// Checksums.
    Crc,
}

impl Framing {
    /// The form of the segments that follow.
    pub const fn segments(self) -> SegmentFormat {
        match self {
            Self::Unprotected => SegmentFormat::Unprotected,
            Self::Lz4 => SegmentFormat::Lz4,
            Self::Crc => SegmentFormat::Plain,
        }
    }

    const fn number(self) -> u32 {
        match self {
            Self::Unprotected => 0,
            Self::Lz4 => 1,
            Self::Crc => 2,
        }
    }
}

/// The opener's message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Initiate {
    /// The messages that the link will carry.
    pub link: LinkType,
    /// How frames are protected.
    pub framing: Framing,
    /// The versions that the opener accepts.
    pub versions: VersionRange,
    /// The opener's broadcast address: who the peer is from now on, wherever the connection came
    /// from.
    pub from: SocketAddr,
}

impl Initiate {
    /// The bytes to send.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, streaming) = match self.link {
            LinkType::Streaming => (0, STREAMING_BIT),
            link => (u32::from(link.number()), 0),
        };
        let framing = self.framing.number();
        let VersionRange { min, max } = self.versions;
        let flags = kind | (framing & 1) << 2 | streaming | (framing >> 1) << 4;
        let versions = u32::from(min) << 8 | u32::from(min) << 16 | u32::from(max) << 24;
        let mut out = Vec::with_capacity(31);
        stdx::put_u32(&mut out, MAGIC);
        stdx::put_u32(&mut out, flags | versions);
        put_address(&mut out, self.from);
        put_checksum(&mut out);
        let is_same = |(read, size): (Self, usize)| {
            let of = |initiate: &Self| (initiate.link, initiate.framing, initiate.versions);
            of(&read) == of(self) && size == out.len()
        };
        assert!(Self::decode(&out).is_ok_and(|read| read.is_some_and(is_same)), "a handshake is read as it is written");
        out
    }

    /// The message at the start of `bytes` and its length; `None` asks for more bytes.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, InternodeError> {
        whole(bytes, |cursor| {
            let magic = cursor.u32()?;
            if magic != MAGIC {
                return Err(InternodeError::Magic(magic));
            }
            let flags = cursor.u32()?;
            let from = read_address(cursor)?;
            read_checksum(cursor, bytes)?;
            let versions = VersionRange { min: (flags >> 16) as u8, max: (flags >> 24) as u8 };
            Ok(Self { link: link_of(flags)?, framing: framing_of(flags)?, versions, from })
        })
    }
}

fn link_of(flags: u32) -> Result<LinkType, InternodeError> {
    let number = (flags & 3) as u8;
    match flags & STREAMING_BIT {
        0 => LinkType::from_number(number)
            .ok_or(InternodeError::Value { part: "the type of a link", found: i64::from(number) }),
        _ => Ok(LinkType::Streaming),
    }
}

fn framing_of(flags: u32) -> Result<Framing, InternodeError> {
    match flags >> 2 & 1 | (flags >> 4 & 1) << 1 {
        0 => Ok(Framing::Unprotected),
        1 => Ok(Framing::Lz4),
        2 => Ok(Framing::Crc),
        other => Err(InternodeError::Value { part: "the framing of a link", found: i64::from(other) }),
    }
}

/// The acceptor's message. An acceptor that is about to refuse sends it too, and closes the link
/// then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accept {
    /// The highest version that the acceptor accepts.
    pub max: i32,
    /// The version of the messages that follow.
    pub version: i32,
}

impl Accept {
    /// Bytes of the message.
    pub const SIZE: usize = 12;

    /// The bytes to send.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::SIZE);
        stdx::put_i32(&mut out, self.max);
        stdx::put_i32(&mut out, self.version);
        put_checksum(&mut out);
        assert_eq!(out.len(), Self::SIZE, "the answer of a handshake has one size");
        out
    }

    /// The message at the start of `bytes` and its length; `None` asks for more bytes.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, InternodeError> {
        whole(bytes, |cursor| {
            let (max, version) = (cursor.i32()?, cursor.i32()?);
            read_checksum(cursor, bytes)?;
            Ok(Self { max, version })
        })
    }
}

fn put_checksum(out: &mut Vec<u8>) {
    let checksum = crc32(out);
    stdx::put_u32(out, checksum);
}

fn read_checksum(cursor: &mut Cursor<'_>, bytes: &[u8]) -> Result<(), InternodeError> {
    let found = crc32(&bytes[..cursor.position()]);
    let expected = cursor.u32()?;
    if expected == found { Ok(()) } else { Err(InternodeError::Checksum { expected, found }) }
}

/// Reads a message of a handshake; bytes that are missing have not come yet.
fn whole<T>(
    bytes: &[u8],
    read: impl FnOnce(&mut Cursor<'_>) -> Result<T, InternodeError>,
) -> Result<Option<(T, usize)>, InternodeError> {
    let mut cursor = Cursor::new(bytes);
    match read(&mut cursor) {
        Ok(message) => Ok(Some((message, cursor.position()))),
        Err(InternodeError::Bytes(CursorError::Truncated { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// Vectors computed apart from this code, by the rule as Cassandra has it.
    #[test]
    fn golden_bytes() {
        let from = "127.0.0.2:7000".parse().unwrap();
        let urgent = Initiate {
            link: LinkType::Urgent,
            framing: Framing::Crc,
            versions: VersionRange { min: 12, max: 13 },
            from,
        };
        let stream = Initiate {
            link: LinkType::Streaming,
            framing: Framing::Unprotected,
            versions: VersionRange { min: 13, max: 13 },
            from,
        };
        for (message, hex) in [
            (urgent, "CA552DFA 0D0C0C11 06 7F000002 1B58 18BE306B"),
            (stream, "CA552DFA 0D0D0D08 06 7F000002 1B58 83F36516"),
        ] {
            let golden = bytes(hex);
            assert_eq!(message.encode(), golden);
            assert_eq!(Initiate::decode(&golden), Ok(Some((message, golden.len()))));
            for end in 0..golden.len() {
                assert_eq!(Initiate::decode(&golden[..end]), Ok(None), "{end}");
            }
        }
        for (version, hex) in [(13, "0000000D 0000000D 6C927E1C"), (12, "0000000C 0000000C 26F5673A")] {
            let message = Accept { max: version, version };
            assert_eq!(message.encode(), bytes(hex));
            assert_eq!(Accept::decode(&bytes(hex)), Ok(Some((message, Accept::SIZE))));
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let good = bytes("CA552DFA 0D0C0C11 06 7F000002 1B58 18BE306B");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            // a longer address than there are bytes asks for more
            assert!(!matches!(Initiate::decode(&bad), Ok(Some(_))), "bit {bit}");
        }
    }
}
