//! Sections of a Data.db without compression, in LZ4 blocks.
//!
//! ```text
//! i32 compressed length | i32 length | LZ4 block
//! ```
//!
//! Blocks begin anew with each section. Cassandra's blocks hold what lies in one chunk of CRC.db,
//! 64 KiB. Nothing but the decompression checks the bytes.
//! `org.apache.cassandra.streaming.async.StreamCompressionSerializer`.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use stdx::Cursor;

use crate::error::StreamingError;
use crate::message::content::Section;

/// Most bytes of a block before compression. Cassandra's have 64 KiB.
pub const BLOCK_LENGTH_MAX: usize = 1 << 20;
/// Bytes of a block's two lengths.
const HEAD_LENGTH: usize = 8;

/// Gives the content of sections from blocks.
#[derive(Debug)]
pub struct PlainReader {
    /// For each section the bytes that have not come.
    left: VecDeque<u64>,
}

impl PlainReader {
    /// A reader of these sections.
    pub fn new(sections: &[Section]) -> Self {
        Self { left: sections.iter().map(|section| section.length()).collect() }
    }

    /// Whether all sections have been given.
    pub fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    /// The content of the next block; None: not all of its bytes have come.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, StreamingError> {
        let Some(left) = self.left.front_mut() else { return Ok(None) };
        let mut cursor = Cursor::new(input);
        let (Ok(compressed), Ok(length)) = (cursor.i32(), cursor.i32()) else { return Ok(None) };
        let (compressed, length) = lengths(compressed, length)?;
        if length as u64 > *left {
            return Err(StreamingError::Sequence("a block of a stream leads over the end of its section"));
        }
        if input.len() < HEAD_LENGTH + compressed {
            return Ok(None);
        }
        let block = input.split_to(HEAD_LENGTH + compressed);
        let content = decompress(&block[HEAD_LENGTH..], length)?;
        *left -= length as u64;
        if *left == 0 {
            self.left.pop_front();
        }
        Ok(Some(content))
    }
}

/// The two lengths of a block, after a check that they are possible.
fn lengths(compressed: i32, length: i32) -> Result<(usize, usize), StreamingError> {
    let known = usize::try_from(length).ok().filter(|length| (1..=BLOCK_LENGTH_MAX).contains(length));
    let length = known.ok_or(StreamingError::Value { part: "the length of a block", found: i64::from(length) })?;
    let bound = compressed_bound(length);
    let known = usize::try_from(compressed).ok().filter(|compressed| (1..=bound).contains(compressed));
    let wrong = StreamingError::Value { part: "the compressed length of a block", found: i64::from(compressed) };
    Ok((known.ok_or(wrong)?, length))
}

/// Bytes that a block of so many bytes has at most when it is compressed.
const fn compressed_bound(length: usize) -> usize {
    length + length / 255 + 16
}

const _: () = assert!(compressed_bound(BLOCK_LENGTH_MAX) <= i32::MAX as usize, "the lengths of a block fit in i32");

fn decompress(block: &[u8], length: usize) -> Result<Bytes, StreamingError> {
    let mut out = vec![0; length];
    let size = i32::try_from(length).expect("blocks are bounded");
    let written = lz4::block::decompress_to_buffer(block, Some(size), &mut out)
        .map_err(|error| StreamingError::Decompression(error.to_string()))?;
    if written == length {
        return Ok(out.into());
    }
    Err(StreamingError::Decompression(format!("{written} bytes in a block of {length}")))
}

/// Appends a block with this content.
///
/// # Errors
/// The compressor's.
///
/// # Panics
/// When the content is empty or longer than [`BLOCK_LENGTH_MAX`].
pub fn put_block(out: &mut Vec<u8>, content: &[u8]) -> std::io::Result<()> {
    assert!((1..=BLOCK_LENGTH_MAX).contains(&content.len()), "a block has a bounded content");
    let start = out.len();
    out.resize(start + HEAD_LENGTH + lz4::block::compress_bound(content.len())?, 0);
    let compressed = lz4::block::compress_to_buffer(content, None, false, &mut out[start + HEAD_LENGTH..])?;
    assert!((1..=compressed_bound(content.len())).contains(&compressed), "a block is one that receivers take");
    out.truncate(start + HEAD_LENGTH + compressed);
    debug_assert!(
        decompress(&out[start + HEAD_LENGTH..], content.len()).is_ok_and(|read| read == content),
        "a block is read as it is written"
    );
    let lengths = [compressed, content.len()].map(|length| i32::try_from(length).expect("blocks are bounded"));
    out[start..start + 4].copy_from_slice(&lengths[0].to_be_bytes());
    out[start + 4..start + HEAD_LENGTH].copy_from_slice(&lengths[1].to_be_bytes());
    Ok(())
}
