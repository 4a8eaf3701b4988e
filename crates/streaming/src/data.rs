//! The data of a file, in one of three forms that the header tells apart.
//!
//! - *Entire*: the components of an SSTable, back to back in the manifest's order.
//! - *Compressed*: chunks as they stand in the sender's Data.db, each with its CRC-32 behind it.
//! - *Plain*: the bytes of the sections in LZ4 blocks, each behind its two lengths.
//!
//! [`DataReader`] gives components, or the content of sections: partitions as in a Data.db without
//! compression, which [`partitions`] decodes. [`outgoing`] says which parts of its files a sender
//! reads.
//! `org.apache.cassandra.db.streaming.{CassandraEntireSSTableStreamReader,CompressedInputStream}`,
//! `streaming.compress.StreamCompressionInputStream`.

pub mod chunks;
pub mod entire;
pub mod outgoing;
pub mod partitions;
pub mod plain;

use bytes::{Bytes, BytesMut};

use crate::error::StreamingError;
use crate::message::content::Content;
use chunks::ChunksReader;
use entire::EntireReader;
use plain::PlainReader;

/// A part of a file's data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// The next bytes of the sections: partitions as in a Data.db without compression.
    Rows {
        /// The bytes.
        bytes: Bytes,
        /// The bytes of [`Content::transfer_bytes`] that have passed with these. If a chunk is
        /// shared by sections, its first part counts all bytes of the chunk.
        counted: u64,
    },
    /// The next bytes of a component of an SSTable that comes whole.
    Component {
        /// Index of the component in the manifest.
        index: usize,
        /// The bytes.
        bytes: Bytes,
    },
}

/// Takes the data of a file apart.
#[derive(Debug)]
pub enum DataReader {
    /// The components of an SSTable that comes whole.
    Entire(EntireReader),
    /// Stored chunks of a compressed Data.db.
    Compressed(ChunksReader),
    /// Sections in LZ4 blocks.
    Plain(PlainReader),
}

impl DataReader {
    /// A reader of the data that follows a header with this content.
    ///
    /// # Errors
    /// Sections and chunks do not fit together.
    pub fn new(content: &Content) -> Result<Self, StreamingError> {
        Ok(match (&content.entire, &content.compression) {
            (Some(manifest), _) => Self::Entire(EntireReader::new(manifest)),
            (None, Some(compression)) => Self::Compressed(ChunksReader::new(&content.sections, compression)?),
            (None, None) => Self::Plain(PlainReader::new(&content.sections)),
        })
    }

    /// Whether all data has been given.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Entire(reader) => reader.is_done(),
            Self::Compressed(reader) => reader.is_done(),
            Self::Plain(reader) => reader.is_done(),
        }
    }

    /// The next part, taken out of `input`; None: more bytes must come, or all parts were given.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Part>, StreamingError> {
        match self {
            Self::Entire(reader) => Ok(reader.next(input).map(|(index, bytes)| Part::Component { index, bytes })),
            Self::Compressed(reader) => Ok(reader.next(input)?.map(|(bytes, counted)| Part::Rows { bytes, counted })),
            Self::Plain(reader) => {
                Ok(reader.next(input)?.map(|bytes| Part::Rows { counted: bytes.len() as u64, bytes }))
            }
        }
    }
}

#[cfg(test)]
mod tests;
