//! Compressors of Data.db chunks, and their parameters in a table's schema.
//!
//! LZ4: a little-endian `u32` length, then a block. Snappy: raw. Deflate: a zlib stream. Zstd: one
//! frame with checksum. Noop: the bytes. Agrees with `org.apache.cassandra.io.compress` and
//! `org.apache.cassandra.schema.CompressionParams`.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use lz4::block::CompressionMode;

/// Chunk length where the schema names none.
pub const CHUNK_LENGTH_DEFAULT: usize = 16 * 1024;
/// Chunks longer than this are refused, in schemas and in files.
pub const CHUNK_LENGTH_MAX: usize = 1 << 30;

const _: () = assert!(CHUNK_LENGTH_DEFAULT.is_power_of_two() && CHUNK_LENGTH_DEFAULT <= CHUNK_LENGTH_MAX);

/// "Chunks are never stored as they are".
pub const NO_COMPRESSED_LENGTH_MAX: usize = i32::MAX as usize;
const ZSTD_LEVEL_DEFAULT: i32 = 3;
/// Level of `lz4_compressor_type: high` where none is named.
const LZ4_HIGH_LEVEL_DEFAULT: i32 = 9;
/// The meaning of [`Effort::Quick`] for LZ4 (its "acceleration"): rows of 100 hexadecimal digits at
/// three times the speed, 3 % larger. What can be compressed well would lose more.
const LZ4_ACCELERATION: i32 = 4;

/// A method of compression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compressor {
    /// LZ4Compressor.
    Lz4,
    /// SnappyCompressor.
    Snappy,
    /// DeflateCompressor.
    Deflate,
    /// ZstdCompressor.
    Zstd,
    /// NoopCompressor.
    Noop,
}

impl Compressor {
    /// The class without its package.
    pub fn class(self) -> &'static str {
        match self {
            Self::Lz4 => "LZ4Compressor",
            Self::Snappy => "SnappyCompressor",
            Self::Deflate => "DeflateCompressor",
            Self::Zstd => "ZstdCompressor",
            Self::Noop => "NoopCompressor",
        }
    }

    /// From a class name with or without its package.
    pub fn from_class(class: &str) -> Option<Self> {
        let simple = class.rsplit('.').next().unwrap_or_default();
        [Self::Lz4, Self::Snappy, Self::Deflate, Self::Zstd, Self::Noop].into_iter().find(|c| c.class() == simple)
    }

    /// Bytes that one stored byte can give at most.
    fn expansion_max(self) -> usize {
        match self {
            Self::Lz4 => 255,
            Self::Snappy => 64,
            Self::Deflate => 1032,
            // a block of one repeated byte: four bytes give 128 KiB
            Self::Zstd => 32 * 1024,
            Self::Noop => 1,
        }
    }

    /// The length that the stored bytes name themselves.
    fn named_length(self, stored: &[u8]) -> Result<Option<u64>, String> {
        Ok(match self {
            Self::Lz4 => stored.first_chunk().map(|length| u64::from(u32::from_le_bytes(*length))),
            Self::Snappy => Some(snap::raw::decompress_len(stored).map_err(|error| error.to_string())? as u64),
            Self::Zstd => zstd::zstd_safe::get_frame_content_size(stored).map_err(|error| error.to_string())?,
            Self::Noop => Some(stored.len() as u64),
            Self::Deflate => None,
        })
    }

    /// A length that the stored bytes do not name themselves, or cannot give, is refused before
    /// memory is taken for it.
    fn check_length(self, stored: &[u8], length: usize) -> Result<(), String> {
        match self.named_length(stored)? {
            Some(named) if named != length as u64 => Err(format!("{named} bytes instead of {length}")),
            _ if length > stored.len().saturating_mul(self.expansion_max()) => {
                Err(format!("{} stored bytes cannot give {length}", stored.len()))
            }
            _ => Ok(()),
        }
    }

    /// Decompresses a chunk that may give any number of bytes up to `length_max`: the last chunk of
    /// a file whose length is not known. Memory is taken for bytes that are there.
    pub fn decompress_at_most(self, stored: &[u8], length_max: usize) -> Result<Vec<u8>, String> {
        let too_long = |length: u64| format!("{length} bytes or more, a chunk has {length_max}");
        match self.named_length(stored)? {
            Some(named) => match usize::try_from(named).ok().filter(|length| *length <= length_max) {
                Some(length) => self.decompress(stored, length),
                None => Err(too_long(named)),
            },
            None if self == Self::Deflate => {
                let mut out = Vec::new();
                let decoder = ZlibDecoder::new(stored);
                let read = decoder.take(length_max as u64 + 1).read_to_end(&mut out);
                let length = read.map_err(|error| error.to_string())?;
                if length > length_max { Err(too_long(length as u64)) } else { Ok(out) }
            }
            // writers of the other methods name the length
            None => Err(format!("{} stored bytes that do not name their length", stored.len())),
        }
    }

    /// Decompresses a chunk that must give exactly `length` bytes.
    pub fn decompress(self, stored: &[u8], length: usize) -> Result<Vec<u8>, String> {
        self.check_length(stored, length)?;
        let mut out = vec![0; length];
        let written = match self {
            Self::Lz4 => decompress_lz4(stored, &mut out)?,
            Self::Snappy => {
                snap::raw::Decoder::new().decompress(stored, &mut out).map_err(|error| error.to_string())?
            }
            Self::Deflate => decompress_zlib(stored, &mut out)?,
            Self::Zstd => zstd::bulk::decompress_to_buffer(stored, &mut out).map_err(|error| error.to_string())?,
            Self::Noop => {
                out.copy_from_slice(stored);
                length
            }
        };
        if written == length { Ok(out) } else { Err(format!("{written} bytes instead of {length}")) }
    }
}

fn decompress_lz4(stored: &[u8], out: &mut [u8]) -> Result<usize, String> {
    let Some((_, block)) = stored.split_first_chunk::<4>() else {
        return Err("an LZ4 chunk without length".to_owned());
    };
    let length = i32::try_from(out.len()).map_err(|error| error.to_string())?;
    lz4::block::decompress_to_buffer(block, Some(length), out).map_err(|error| error.to_string())
}

fn decompress_zlib(stored: &[u8], out: &mut [u8]) -> Result<usize, String> {
    let mut decoder = ZlibDecoder::new(stored);
    let mut filled = 0;
    while filled < out.len() {
        match decoder.read(&mut out[filled..]).map_err(|error| error.to_string())? {
            0 => return Ok(filled),
            count => filled += count,
        }
    }
    let more = decoder.read(&mut [0]).map_err(|error| error.to_string())?;
    Ok(filled + more)
}

/// The CPU time that compression may take, where the method leaves a choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// As the parameters say.
    #[default]
    Table,
    /// Little, for what can hardly be compressed.
    Quick,
}

/// A compressor with its parameters, as in the `compression` map of a schema and in
/// CompressionInfo.db.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompressionParams {
    /// Method.
    pub compressor: Compressor,
    /// Its own options: `compression_level`, `lz4_compressor_type`, `lz4_high_compressor_level`.
    pub options: BTreeMap<String, String>,
    /// Bytes of a chunk before compression, a power of two.
    pub chunk_length: usize,
    /// From this stored length on chunks are stored as they are.
    pub compressed_length_max: usize,
}

impl CompressionParams {
    /// Plain LZ4 in chunks of 16 KiB: the default of tables, and what flushes use with
    /// `flush_compression: fast`.
    pub fn lz4() -> Self {
        Self {
            compressor: Compressor::Lz4,
            options: BTreeMap::new(),
            chunk_length: CHUNK_LENGTH_DEFAULT,
            compressed_length_max: NO_COMPRESSED_LENGTH_MAX,
        }
    }

    /// From a schema's map; None: not compressed. The text of an error is for clients.
    pub fn from_schema(map: &BTreeMap<String, String>) -> Result<Option<Self>, String> {
        let mut options = map.clone();
        let enabled = options.remove("enabled").is_none_or(|text| text.eq_ignore_ascii_case("true"));
        let class = options.remove("class").or_else(|| options.remove("sstable_compression"));
        let class = class.filter(|class| enabled && !class.is_empty());
        let Some(class) = class else { return Ok(None) };
        let compressor =
            Compressor::from_class(&class).ok_or_else(|| format!("Could not create Compression for type {class}"))?;
        let chunk_length = match options.remove("chunk_length_in_kb") {
            None => CHUNK_LENGTH_DEFAULT,
            Some(text) => parse_chunk_length(&text)?,
        };
        let ratio = match options.remove("min_compress_ratio") {
            None => 0.0,
            Some(text) => text.parse::<f64>().map_err(|_| format!("Invalid value for min_compress_ratio: {text}"))?,
        };
        if ratio != 0.0 && (ratio.is_nan() || ratio < 1.0) {
            return Err("min_compress_ratio can either be 0 or greater than or equal to 1".to_owned());
        }
        options.remove("crc_check_chance");
        let compressed_length_max = if ratio == 0.0 {
            NO_COMPRESSED_LENGTH_MAX
        } else {
            ((chunk_length as f64 / ratio).ceil() as usize).min(NO_COMPRESSED_LENGTH_MAX)
        };
        Ok(Some(Self { compressor, options, chunk_length, compressed_length_max }))
    }

    /// Fast enough for flushes under `flush_compression: fast`; what is not is replaced by
    /// [`CompressionParams::lz4`].
    pub fn is_fast(&self) -> bool {
        match self.compressor {
            Compressor::Deflate | Compressor::Zstd => false,
            Compressor::Lz4 => self.options.get("lz4_compressor_type").is_none_or(|text| text != "high"),
            Compressor::Snappy | Compressor::Noop => true,
        }
    }

    fn lz4_mode(&self, effort: Effort) -> CompressionMode {
        match self.options.get("lz4_compressor_type").map(String::as_str) {
            Some("high") => {
                let level = self.options.get("lz4_high_compressor_level").and_then(|text| text.parse().ok());
                CompressionMode::HIGHCOMPRESSION(level.unwrap_or(LZ4_HIGH_LEVEL_DEFAULT))
            }
            _ if effort == Effort::Quick => CompressionMode::FAST(LZ4_ACCELERATION),
            _ => CompressionMode::FAST(1),
        }
    }

    /// Appends the compressed form of a chunk.
    pub fn compress(&self, chunk: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        self.compress_with(Effort::Table, chunk, out)
    }

    /// Appends the compressed form of a chunk, made with more or less effort.
    pub fn compress_with(&self, effort: Effort, chunk: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        let start = out.len();
        match self.compressor {
            Compressor::Lz4 => {
                out.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
                out.resize(start + 4 + lz4::block::compress_bound(chunk.len())?, 0);
                let mode = Some(self.lz4_mode(effort));
                let length = lz4::block::compress_to_buffer(chunk, mode, false, &mut out[start + 4..])?;
                out.truncate(start + 4 + length);
            }
            Compressor::Snappy => {
                out.resize(start + snap::raw::max_compress_len(chunk.len()), 0);
                let length = snap::raw::Encoder::new().compress(chunk, &mut out[start..])?;
                out.truncate(start + length);
            }
            Compressor::Deflate => {
                let mut encoder = ZlibEncoder::new(&mut *out, Compression::default());
                encoder.write_all(chunk)?;
                encoder.finish()?;
            }
            Compressor::Zstd => {
                let level = self.options.get("compression_level").and_then(|text| text.parse().ok());
                let mut compressor = zstd::bulk::Compressor::new(level.unwrap_or(ZSTD_LEVEL_DEFAULT))?;
                compressor.set_parameter(zstd::zstd_safe::CParameter::ChecksumFlag(true))?;
                out.extend_from_slice(&compressor.compress(chunk)?);
            }
            Compressor::Noop => out.extend_from_slice(chunk),
        }
        // of chunks that are written together the first is looked at
        debug_assert!(
            start > 0 || self.compressor.decompress(out, chunk.len()).is_ok_and(|read| read == chunk),
            "a chunk is decompressed to what it was"
        );
        Ok(())
    }
}

fn parse_chunk_length(text: &str) -> Result<usize, String> {
    let refused = || format!("Invalid value for chunk_length_in_kb: {text}");
    let kilobytes: usize = text.parse().map_err(|_| refused())?;
    match kilobytes.checked_mul(1024) {
        Some(length) if length.is_power_of_two() && length <= CHUNK_LENGTH_MAX => Ok(length),
        Some(length) if length > 0 => Err("chunk_length_in_kb must be a power of 2".to_owned()),
        _ => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&str, &str)]) -> Result<Option<CompressionParams>, String> {
        let map = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        CompressionParams::from_schema(&map)
    }

    #[test]
    fn schemas_give_parameters() {
        assert_eq!(params(&[("enabled", "false")]), Ok(None));
        let lz4 = "org.apache.cassandra.io.compress.LZ4Compressor";
        assert_eq!(params(&[("class", lz4), ("chunk_length_in_kb", "16")]), Ok(Some(CompressionParams::lz4())));
        let with_ratio = params(&[("class", lz4), ("chunk_length_in_kb", "4"), ("min_compress_ratio", "1.3")]);
        assert_eq!(with_ratio.unwrap().unwrap().compressed_length_max, 3151);
        let zstd = params(&[("class", "ZstdCompressor"), ("compression_level", "5")]).unwrap().unwrap();
        assert_eq!(zstd.options["compression_level"], "5");
        assert!(params(&[("class", lz4), ("chunk_length_in_kb", "3")]).is_err());
        assert!(params(&[("class", "RotThirteen")]).is_err());
    }

    #[test]
    fn chunks_read_back() {
        let text: Vec<u8> = (0..20_000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        for class in ["LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor", "NoopCompressor"] {
            let params = params(&[("class", class)]).unwrap().unwrap();
            for length in [0, 1, 100, text.len()] {
                let mut stored = Vec::new();
                params.compress(&text[..length], &mut stored).unwrap();
                let compressor = params.compressor;
                assert_eq!(compressor.decompress(&stored, length).as_deref(), Ok(&text[..length]), "{class}");
                for room in [length, length + 1, text.len() * 2] {
                    let given = compressor.decompress_at_most(&stored, room);
                    assert_eq!(given.as_deref(), Ok(&text[..length]), "{class} {room}");
                }
                assert!(compressor.decompress(&stored, length + 1).is_err(), "{class}");
                if length > 1 {
                    assert!(compressor.decompress(&stored, length - 1).is_err(), "{class}");
                    assert!(compressor.decompress_at_most(&stored, length - 1).is_err(), "{class}");
                    assert!(compressor.decompress(&stored[..stored.len() / 2], length).is_err(), "{class}");
                }
            }
        }
    }
}
