//! The description of the data behind a STREAM header: parts of one file, and their form.
//!
//! ```text
//! utf version | utf format | i64 estimated keys
//! i32 n, n × section (i64 start, i64 end)
//! i32 −1 | i32 chunks, chunks × (i64 offset, i32 length), utf compressor,
//!          i32 n, n × (utf, utf), i32 chunk length, i32 longest compressed chunk
//! i32 level | serialization header, as in Statistics.db | 16 bytes table id
//! bool entire, [uvint32 n, n × (utf component, uvint length), vbytes first key]
//! ```
//!
//! Sections are places in the uncompressed Data.db and hold whole partitions; they ascend. Chunks
//! are those that the sections touch, each once; lengths are without checksums. An SSTable that
//! goes whole lists sections too, and chunks if a Cassandra sends it.
//! `org.apache.cassandra.db.streaming.{CassandraStreamHeader,CompressionInfo,ComponentManifest}`.

use std::collections::BTreeMap;

use bytes::Bytes;
use internode::integers::{put_uvint32, read_length};
use internode::text::{put_utf, read_utf};
use rows::codec::CodecError;
use schema::TableId;
use sstable::{
    CHUNK_CHECKSUM_LEN, CHUNK_LENGTH_MAX, Component, CompressionParams, Compressor, Format, HeaderComponent, Version,
};
use stdx::{Cursor, CursorError};

use super::{get_count, get_table};
use crate::error::StreamingError;

/// "No compression" in the place of the number of chunks.
const NOT_COMPRESSED: i32 = -1;
/// Most components of an SSTable that goes whole: those of the format and a few of each index.
const COMPONENTS_MAX: usize = 1024;
/// Most options of a compressor.
const OPTIONS_MAX: usize = 64;

/// A run of partitions: a part of the uncompressed Data.db.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section {
    /// The first byte.
    pub start: u64,
    /// The byte behind the last one; larger than `start`.
    pub end: u64,
}

impl Section {
    /// Bytes of the section, uncompressed.
    pub const fn length(self) -> u64 {
        self.end - self.start
    }
}

/// A chunk as it stands in the sender's Data.db.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Offset in the sender's file.
    pub offset: u64,
    /// Stored bytes without the checksum.
    pub length: u32,
}

/// How the sender's Data.db is compressed, and the chunks of it that are sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Compression {
    /// Chunks in the order of their offsets.
    pub chunks: Vec<Chunk>,
    /// The method and the length of chunks.
    pub params: CompressionParams,
}

impl Compression {
    /// Bytes of the chunks with their checksums.
    pub fn transfer_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.length) + CHUNK_CHECKSUM_LEN).sum()
    }
}

/// The components of an SSTable that goes whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// Names and lengths of the components, in the order in which their bytes follow.
    pub components: Vec<(String, u64)>,
    /// The first key of the SSTable, serialized.
    pub first_key: Bytes,
}

/// The description of a file's data.
#[derive(Clone, PartialEq, Debug)]
pub struct Content {
    /// The SSTable's version.
    pub version: Version,
    /// Estimated number of partitions in the sections.
    pub estimated_keys: u64,
    /// The parts of Data.db, ascending.
    pub sections: Vec<Section>,
    /// None: Data.db is not compressed, the sections go without its compression, or the SSTable
    /// goes whole.
    pub compression: Option<Compression>,
    /// The level in the leveled strategy; 0 unless the operation keeps levels.
    pub level: u32,
    /// The header against which the rows were encoded.
    pub rows: HeaderComponent,
    /// The manifest of an SSTable that goes whole: its components follow instead of sections.
    /// None: sections follow.
    pub entire: Option<Manifest>,
}

impl Content {
    /// Bytes of the sections, uncompressed.
    pub fn section_bytes(&self) -> u64 {
        self.sections.iter().map(|section| section.length()).sum()
    }

    /// Bytes that a summary and the progress of a session count for the file.
    pub fn transfer_bytes(&self) -> u64 {
        match (&self.entire, &self.compression) {
            (Some(manifest), _) => manifest.components.iter().map(|(_, length)| length).sum(),
            (None, Some(compression)) => compression.transfer_bytes(),
            (None, None) => self.section_bytes(),
        }
    }

    /// The number of files that a summary counts for the file.
    pub fn transfer_files(&self) -> usize {
        self.entire.as_ref().map_or(1, |manifest| manifest.components.len())
    }

    pub(super) fn put(&self, out: &mut Vec<u8>, table: TableId) -> Result<(), StreamingError> {
        put_utf(out, self.version.name())?;
        put_utf(out, self.version.format().name())?;
        stdx::put_u64(out, self.estimated_keys);
        put_count(out, self.sections.len());
        for section in &self.sections {
            stdx::put_u64(out, section.start);
            stdx::put_u64(out, section.end);
        }
        match &self.compression {
            None => stdx::put_i32(out, NOT_COMPRESSED),
            Some(compression) => put_compression(out, compression)?,
        }
        stdx::put_u32(out, self.level);
        self.rows.put(out);
        out.extend_from_slice(&table.0);
        out.push(u8::from(self.entire.is_some()));
        self.entire.as_ref().map_or(Ok(()), |manifest| put_manifest(out, manifest))
    }

    pub(super) fn get(cursor: &mut Cursor<'_>, table: TableId) -> Result<Self, StreamingError> {
        let version = get_version(cursor)?;
        let estimated_keys = get_u63(cursor, "the estimated keys of a stream")?;
        let sections = get_sections(cursor)?;
        let compression = get_compression(cursor)?;
        let level = cursor.i32()?;
        let level = u32::try_from(level)
            .map_err(|_| StreamingError::Value { part: "the level of an SSTable", found: i64::from(level) })?;
        let rows = get_rows(cursor, version)?;
        if get_table(cursor)? != table {
            return Err(StreamingError::Sequence("the header of a stream names two tables"));
        }
        let entire = if cursor.bool()? { Some(get_manifest(cursor)?) } else { None };
        Ok(Self { version, estimated_keys, sections, compression, level, rows, entire })
    }
}

/// # Panics
/// When there are 2^31 elements: headers are bounded far below.
fn put_count(out: &mut Vec<u8>, count: usize) {
    stdx::put_i32(out, i32::try_from(count).expect("a stream header has fewer elements"));
}

/// Reads an `i64` that is not negative.
fn get_u63(cursor: &mut Cursor<'_>, part: &'static str) -> Result<u64, StreamingError> {
    let found = cursor.i64()?;
    u64::try_from(found).map_err(|_| StreamingError::Value { part, found })
}

fn get_version(cursor: &mut Cursor<'_>) -> Result<Version, StreamingError> {
    let (name, format) = (read_utf(cursor)?, read_utf(cursor)?);
    let version = Version::from_name(&name).filter(Version::is_readable);
    let version = version.filter(|version| Format::from_name(&format) == Some(version.format()));
    version.ok_or(StreamingError::Text { part: "the version of a streamed SSTable", found: format!("{name} {format}") })
}

fn get_sections(cursor: &mut Cursor<'_>) -> Result<Vec<Section>, StreamingError> {
    let part = "a section of a streamed SSTable";
    let count = get_count(cursor, 16, "the number of sections of a stream")?;
    let mut sections: Vec<Section> = Vec::with_capacity(count);
    for _ in 0..count {
        let (start, end) = (get_u63(cursor, part)?, get_u63(cursor, part)?);
        if end <= start || sections.last().is_some_and(|last| start < last.end) {
            return Err(StreamingError::Value { part, found: i64::try_from(start).unwrap_or(i64::MAX) });
        }
        sections.push(Section { start, end });
    }
    Ok(sections)
}

fn put_compression(out: &mut Vec<u8>, compression: &Compression) -> Result<(), StreamingError> {
    put_count(out, compression.chunks.len());
    for chunk in &compression.chunks {
        stdx::put_u64(out, chunk.offset);
        stdx::put_u32(out, chunk.length);
    }
    let params = &compression.params;
    put_utf(out, params.compressor.class())?;
    put_count(out, params.options.len());
    for text in params.options.iter().flat_map(|(key, value)| [key, value]) {
        put_utf(out, text)?;
    }
    put_count(out, params.chunk_length);
    put_count(out, params.compressed_length_max);
    Ok(())
}

fn get_compression(cursor: &mut Cursor<'_>) -> Result<Option<Compression>, StreamingError> {
    if cursor.clone().i32()? == NOT_COMPRESSED {
        cursor.i32()?;
        return Ok(None);
    }
    let count = get_count(cursor, 12, "the number of chunks of a stream")?;
    let mut chunks = Vec::with_capacity(count);
    for _ in 0..count {
        let (offset, length) = (get_u63(cursor, "the offset of a streamed chunk")?, cursor.u32()?);
        chunks.push(Chunk { offset, length });
    }
    let params = get_params(cursor)?;
    // no compressor makes a chunk twice as long
    let longest = params.chunk_length * 2 + 1024;
    match chunks.iter().find(|chunk| chunk.length as usize > longest) {
        None => Ok(Some(Compression { chunks, params })),
        Some(chunk) => {
            Err(StreamingError::Value { part: "the length of a streamed chunk", found: i64::from(chunk.length) })
        }
    }
}

fn get_params(cursor: &mut Cursor<'_>) -> Result<CompressionParams, StreamingError> {
    let class = read_utf(cursor)?;
    let compressor = Compressor::from_class(&class)
        .ok_or(StreamingError::Text { part: "the compressor of a streamed SSTable", found: class })?;
    let count = get_count(cursor, 4, "the number of options of a compressor")?;
    if count > OPTIONS_MAX {
        return Err(StreamingError::Value { part: "the number of options of a compressor", found: count as i64 });
    }
    let mut options = BTreeMap::new();
    for _ in 0..count {
        let key = read_utf(cursor)?;
        options.insert(key, read_utf(cursor)?);
    }
    let (length, longest) = (cursor.i32()?, cursor.i32()?);
    let chunk_length = usize::try_from(length).ok();
    let chunk_length = chunk_length.filter(|length| length.is_power_of_two() && *length <= CHUNK_LENGTH_MAX);
    let (Some(chunk_length), Ok(compressed_length_max)) = (chunk_length, usize::try_from(longest)) else {
        let found = i64::from(length.min(longest));
        return Err(StreamingError::Value { part: "the chunk length of a streamed SSTable", found });
    };
    Ok(CompressionParams { compressor, options, chunk_length, compressed_length_max })
}

fn get_rows(cursor: &mut Cursor<'_>, version: Version) -> Result<HeaderComponent, StreamingError> {
    match HeaderComponent::get(cursor) {
        Ok(rows) => Ok(HeaderComponent { deletion_times: version.deletion_times(), ..rows }),
        // one byte more than are there: how many are missing is not known
        Err(CodecError::Truncated) => {
            Err(CursorError::Truncated { offset: cursor.position(), needed: cursor.remaining() + 1 }.into())
        }
        Err(error) => Err(error.into()),
    }
}

fn put_manifest(out: &mut Vec<u8>, manifest: &Manifest) -> Result<(), StreamingError> {
    put_uvint32(out, i32::try_from(manifest.components.len()).expect("an SSTable has few components"));
    for (name, length) in &manifest.components {
        put_utf(out, name)?;
        stdx::put_uvint(out, *length);
    }
    stdx::put_vbytes(out, &manifest.first_key);
    Ok(())
}

fn get_manifest(cursor: &mut Cursor<'_>) -> Result<Manifest, StreamingError> {
    let part = "the components of a streamed SSTable";
    let count = read_length(cursor, part)?;
    if count > COMPONENTS_MAX {
        return Err(StreamingError::Value { part, found: i64::try_from(count).unwrap_or(i64::MAX) });
    }
    let mut components: Vec<(String, u64)> = Vec::new();
    for _ in 0..count {
        let (name, length) = (read_utf(cursor)?, cursor.uvint()?);
        if i64::try_from(length).is_err() || !is_component_name(&name) || components.iter().any(|(n, _)| *n == name) {
            return Err(StreamingError::Text { part, found: format!("{name}, {length} bytes") });
        }
        components.push((name, length));
    }
    if !components.iter().any(|(name, _)| name == Component::Data.name()) {
        return Err(StreamingError::Text { part, found: "none is Data.db".to_owned() });
    }
    Ok(Manifest { components, first_key: Bytes::copy_from_slice(cursor.vbytes()?) })
}

/// Whether a name may become the end of a file's name: it must not lead to another directory.
fn is_component_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-');
    !name.is_empty() && name.len() <= 255 && name.chars().all(is_plain) && !name.contains("..")
}
