//! Sections of a compressed Data.db: stored chunks with their checksums.
//!
//! Chunk number `k` of the sender's file holds the uncompressed bytes from `k · chunk length` on.
//! The header lists the chunks that the sections touch; a chunk that the end of one section and
//! the start of the next share is listed and sent once. A chunk that is stored in at least the
//! "longest compressed" bytes is stored as it is. The length of the file's last chunk is not known
//! here: it is what decompression gives.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use sstable::{CHUNK_CHECKSUM_LEN, CompressionParams};

use crate::error::StreamingError;
use crate::message::content::{Chunk, Compression, Section};

const CHECKSUM_LENGTH: usize = CHUNK_CHECKSUM_LEN as usize;

/// Gives the content of sections from chunks.
#[derive(Debug)]
pub struct ChunksReader {
    params: CompressionParams,
    /// Sections that are not read to their ends. The start of the first one moves forward as it is
    /// read.
    sections: VecDeque<Section>,
    /// Chunks that have not come.
    chunks: VecDeque<Chunk>,
    /// The chunk that came last: its number in the sender's file, and its content.
    last: Option<(u64, Bytes)>,
}

impl ChunksReader {
    /// A reader of these sections.
    ///
    /// # Errors
    /// The listed chunks are not as many as the sections touch.
    pub fn new(sections: &[Section], compression: &Compression) -> Result<Self, StreamingError> {
        let params = compression.params.clone();
        let touched = touched(sections, params.chunk_length as u64);
        if touched != compression.chunks.len() as u64 {
            let found = i64::try_from(touched).unwrap_or(i64::MAX);
            return Err(StreamingError::Value { part: "the number of chunks that sections touch", found });
        }
        let chunks = compression.chunks.iter().copied().collect();
        Ok(Self { params, sections: sections.iter().copied().collect(), chunks, last: None })
    }

    /// Whether all sections have been given.
    pub fn is_done(&self) -> bool {
        self.sections.is_empty()
    }

    /// The next content of a section, at most one chunk of it; and the number of stored bytes,
    /// with the checksum, of the chunk that was read for it; 0: that chunk was read before.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<(Bytes, u64)>, StreamingError> {
        let Some(section) = self.sections.front().copied() else { return Ok(None) };
        let chunk_length = self.params.chunk_length as u64;
        let number = section.start / chunk_length;
        let before = input.len();
        let content = match &self.last {
            Some((last, content)) if *last == number => content.clone(),
            _ => match self.chunk(input)? {
                Some(content) => content,
                None => return Ok(None),
            },
        };
        let stored = (before - input.len()) as u64;
        let base = number * chunk_length;
        let end = section.end.min(base.saturating_add(chunk_length));
        let bytes = (section.start - base) as usize..(end - base) as usize;
        if bytes.end > content.len() {
            let why = format!("{} bytes in a chunk of which {} belong to a section", content.len(), bytes.end);
            return Err(StreamingError::Decompression(why));
        }
        let given = content.slice(bytes);
        self.last = Some((number, content));
        self.pass(end);
        Ok(Some((given, stored)))
    }

    /// Notes that the first section is read up to `end`.
    fn pass(&mut self, end: u64) {
        match self.sections.front_mut() {
            Some(section) if end < section.end => section.start = end,
            _ => drop(self.sections.pop_front()),
        }
    }

    /// The content of the next chunk; None: not all of its bytes have come.
    fn chunk(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, StreamingError> {
        let Some(chunk) = self.chunks.front().copied() else {
            return Err(StreamingError::Sequence("sections of a stream touch more chunks than it lists"));
        };
        let length = chunk.length as usize;
        if input.len() < length + CHECKSUM_LENGTH {
            return Ok(None);
        }
        let stored = input.split_to(length).freeze();
        let checksum = input.split_to(CHECKSUM_LENGTH);
        if crc32fast::hash(&stored).to_be_bytes() != checksum[..] {
            return Err(StreamingError::Checksum { chunk: chunk.offset });
        }
        self.chunks.pop_front();
        if stored.len() >= self.params.compressed_length_max {
            return Ok(Some(stored));
        }
        let content = self.params.compressor.decompress_at_most(&stored, self.params.chunk_length);
        content.map(|content| Some(content.into())).map_err(StreamingError::Decompression)
    }
}

/// Number of chunks that ascending sections touch.
pub(crate) fn touched(sections: &[Section], chunk_length: u64) -> u64 {
    let (mut count, mut last) = (0, None);
    for section in sections {
        let (first, end) = (section.start / chunk_length, (section.end - 1) / chunk_length);
        count += end - first + u64::from(last != Some(first));
        last = Some(end);
    }
    count
}
