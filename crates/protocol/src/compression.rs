//! Compressed bodies of versions 3 and 4: LZ4 behind a big-endian length, or Snappy.
//!
//! The claimed length is believed only as far as the format can expand and the frame limit allows.
//! Version 5 compresses segments instead ([`crate::segment`]). Native protocol specification §5;
//! `org.apache.cassandra.transport.Compressor`.

use bytes::{BufMut, Bytes, BytesMut};

use lz4::block::CompressionMode;

use crate::decode_error::DecodeError;

/// The compression that a client chose in STARTUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `lz4`: every version.
    Lz4,
    /// `snappy`: versions 3 and 4.
    Snappy,
}

/// Smaller bodies are sent uncompressed, because compressing them costs more than it saves. Bytes.
pub const COMPRESS_SIZE_MIN: usize = 512;

/// LZ4 expands one byte to at most 255.
const LZ4_EXPANSION_MAX: usize = 255;

/// Snappy's longest copy expands two bytes to 64.
const SNAPPY_EXPANSION_MAX: usize = 64;

const NOT_LZ4: DecodeError = DecodeError::Compression("Provided frame does not appear to be LZ4 compressed");
const NOT_SNAPPY: DecodeError = DecodeError::Compression("Provided frame does not appear to be Snappy compressed");
const TOO_LARGE: DecodeError = DecodeError::Compression("Compressed frame exceeds the maximum frame size");

impl Compression {
    /// Reads the name in STARTUP, in any case. None: there is no such compression.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            _ if name.eq_ignore_ascii_case("lz4") => Some(Self::Lz4),
            _ if name.eq_ignore_ascii_case("snappy") => Some(Self::Snappy),
            _ => None,
        }
    }

    /// Decompresses a body to at most `size_max` bytes.
    pub fn decompress(self, body: &[u8], size_max: usize) -> Result<Bytes, DecodeError> {
        match self {
            Self::Lz4 => decompress_lz4(body, size_max),
            Self::Snappy => decompress_snappy(body, size_max),
        }
    }

    /// Number of bytes that the body claims to have when it is decompressed, at most as many as its
    /// format can give; 0: the claim cannot be read.
    pub fn decompressed_size(self, body: &[u8]) -> usize {
        match self {
            Self::Lz4 => {
                let Some((length, block)) = body.split_first_chunk::<4>() else { return 0 };
                let claimed = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
                claimed.min(block.len().saturating_mul(LZ4_EXPANSION_MAX))
            }
            Self::Snappy => {
                let claimed = snap::raw::decompress_len(body).unwrap_or(0);
                claimed.min(body.len().saturating_mul(SNAPPY_EXPANSION_MAX))
            }
        }
    }

    /// Replaces the body from `start` to the end of `out` by its compressed form, if that is
    /// smaller. Returns whether it did.
    pub fn compress_tail(self, out: &mut BytesMut, start: usize) -> bool {
        let body = &out[start..];
        if body.len() < COMPRESS_SIZE_MIN {
            return false;
        }
        let compressed = match self {
            Self::Lz4 => compress_lz4(body),
            Self::Snappy => snap::raw::Encoder::new().compress_vec(body).expect("bodies are below Snappy's 4 GiB"),
        };
        if compressed.len() >= body.len() {
            return false;
        }
        out.truncate(start);
        out.put_slice(&compressed);
        true
    }
}

/// Twice as fast as the tightest mode, and 2 % larger.
const LZ4_MODE: Option<CompressionMode> = Some(CompressionMode::FAST(2));

fn compress_lz4(body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len()).expect("bodies are below 2 GiB");
    let mut compressed = vec![0; 4 + lz4::block::compress_bound(body.len()).expect("bodies are below 2 GiB")];
    compressed[..4].copy_from_slice(&length.to_be_bytes());
    let size = lz4::block::compress_to_buffer(body, LZ4_MODE, false, &mut compressed[4..]);
    let size = size.expect("room for the worst case");
    compressed.truncate(4 + size);
    compressed
}

fn decompress_lz4(body: &[u8], size_max: usize) -> Result<Bytes, DecodeError> {
    let (length, block) = body.split_first_chunk::<4>().ok_or(NOT_LZ4)?;
    let size = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| NOT_LZ4)?;
    if size == 0 {
        return Ok(Bytes::new());
    }
    if size > size_max {
        return Err(TOO_LARGE);
    }
    if size > block.len().saturating_mul(LZ4_EXPANSION_MAX) {
        return Err(NOT_LZ4);
    }
    let mut out = vec![0; size];
    match lz4::block::decompress_to_buffer(block, i32::try_from(size).ok(), &mut out) {
        Ok(written) if written == size => Ok(Bytes::from(out)),
        _ => Err(NOT_LZ4),
    }
}

fn decompress_snappy(body: &[u8], size_max: usize) -> Result<Bytes, DecodeError> {
    let size = snap::raw::decompress_len(body).map_err(|_| NOT_SNAPPY)?;
    if size > size_max {
        return Err(TOO_LARGE);
    }
    if size > body.len().saturating_mul(SNAPPY_EXPANSION_MAX) {
        return Err(NOT_SNAPPY);
    }
    let mut out = vec![0; size];
    match snap::raw::Decoder::new().decompress(body, &mut out) {
        Ok(written) if written == size => Ok(Bytes::from(out)),
        _ => Err(NOT_SNAPPY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Compression; 2] = [Compression::Lz4, Compression::Snappy];

    #[test]
    fn round_trip() {
        for compression in BOTH {
            let body: Vec<u8> = (0..10_000u32).map(|n| (n / 100) as u8).collect();
            let mut out = BytesMut::from(&b"header"[..]);
            out.put_slice(&body);
            assert!(compression.compress_tail(&mut out, 6));
            assert!(out.len() < 2000);
            assert_eq!(compression.decompressed_size(&out[6..]), 10_000);
            assert_eq!(compression.decompress(&out[6..], 10_000).unwrap(), body);
            assert_eq!(compression.decompress(&out[6..], 9_999), Err(TOO_LARGE));
        }
    }

    #[test]
    fn small_or_random_bodies_stay() {
        let mut state = 1u32;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        };
        let random: Vec<u8> = (0..4096).map(|_| next()).collect();
        for compression in BOTH {
            for body in [&random[..], &[0; 100][..]] {
                let mut out = BytesMut::from(body);
                assert!(!compression.compress_tail(&mut out, 0));
                assert_eq!(out, body);
            }
        }
    }

    #[test]
    fn lz4_length_is_big_endian() {
        let mut out = BytesMut::from(&[b'a'; 1000][..]);
        Compression::Lz4.compress_tail(&mut out, 0);
        assert_eq!(&out[..4], [0, 0, 3, 0xE8]);
    }

    #[test]
    fn lies_are_refused() {
        for compression in BOTH {
            for body in [&b""[..], &[0x7f, 0xff, 0xff, 0xff, 1], &[0xff; 20], &[0, 0, 1, 0, 0x10]] {
                assert!(compression.decompress(body, 1 << 24).is_err(), "{compression:?} {body:?}");
                assert!(
                    compression.decompressed_size(body) <= body.len() * LZ4_EXPANSION_MAX,
                    "{compression:?} {body:?}"
                );
            }
        }
    }
}
