//! The files of `saved_caches`: the names of hot entries, so that a start can read them again. The
//! contents of entries are not saved, only their places.
//!
//! ```text
//! "hlncache" | u8 version 1 | u8 kind: 1 chunks, 2 keys, 3 rows
//! chunks: { table id, 16 bytes; uvint length, name of the SSTable; uvint count;
//!           count × uvint distance from the chunk before }
//! keys:   { table id; uvint length, name; uvint count; count × { uvint length, partition key } }
//! rows:   { table id; uvint 0; uvint count; count × { uvint length, partition key } }
//! u32 CRC-32 of all that
//! ```
//! Their names (`helenus-chunks-1.db`) are none that Cassandra looks for, and Cassandra's
//! (`KeyCache-g.db`) none that are read here: those name the version of a schema, which is another
//! one in every implementation. The places in a file need not be right: one that does not exist,
//! or has other data by now, only costs a read in vain.

use schema::TableId;
use stdx::{Cursor, put_u32, put_uvint};

const MAGIC: &[u8; 8] = b"hlncache";
const VERSION: u8 = 1;

/// Bytes of the longest saved file that is read or written.
pub const SAVED_FILE_MAX: u64 = 256 << 20;

/// The cache that a file is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Chunks.
    Chunks = 1,
    /// Places of partitions.
    Keys = 2,
    /// Heads of partitions.
    Rows = 3,
}

impl Kind {
    /// The name of the cache's file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Chunks => "helenus-chunks-1.db",
            Self::Keys => "helenus-keys-1.db",
            Self::Rows => "helenus-rows-1.db",
        }
    }
}

/// The hot entries of a file or of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HotEntries {
    /// The table.
    pub table: [u8; 16],
    /// The SSTable, as a path beneath its table's directory; empty: the entries are of the table.
    pub sstable: String,
    /// Indexes of the chunks, ascending.
    pub chunks: Vec<u64>,
    /// Partition keys.
    pub keys: Vec<Box<[u8]>>,
}

impl HotEntries {
    /// An empty list for an SSTable of a table, or for the table.
    pub fn of(table: TableId, sstable: String) -> Self {
        Self { table: table.0, sstable, chunks: Vec::new(), keys: Vec::new() }
    }
}

/// The content of a file.
pub fn encode(kind: Kind, hot: &[HotEntries]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[VERSION, kind as u8]);
    for hot in hot {
        out.extend_from_slice(&hot.table);
        put_bytes(&mut out, hot.sstable.as_bytes());
        if kind == Kind::Chunks {
            assert!(hot.chunks.is_sorted(), "chunks are saved in ascending order");
            put_uvint(&mut out, hot.chunks.len() as u64);
            let mut before = 0;
            for chunk in &hot.chunks {
                put_uvint(&mut out, chunk - before);
                before = *chunk;
            }
        } else {
            put_uvint(&mut out, hot.keys.len() as u64);
            hot.keys.iter().for_each(|key| put_bytes(&mut out, key));
        }
    }
    let checksum = crc32fast::hash(&out);
    put_u32(&mut out, checksum);
    out
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_uvint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The entries that a file lists; an error is a sentence.
pub fn decode(kind: Kind, file: &[u8]) -> Result<Vec<HotEntries>, String> {
    let Some((body, checksum)) = file.split_last_chunk::<4>() else { return Err("it is cut off".to_owned()) };
    if crc32fast::hash(body) != u32::from_be_bytes(*checksum) {
        return Err("its checksum does not match".to_owned());
    }
    let content = body.strip_prefix(MAGIC).and_then(|rest| rest.strip_prefix(&[VERSION, kind as u8]));
    let Some(content) = content else { return Err("it is no saved cache of this kind and version".to_owned()) };
    read(kind, &mut Cursor::new(content)).map_err(|_| "it ends in the middle of an entry".to_owned())
}

fn read(kind: Kind, cursor: &mut Cursor<'_>) -> Result<Vec<HotEntries>, stdx::CursorError> {
    let mut all = Vec::new();
    while !cursor.is_empty() {
        let mut hot = HotEntries::default();
        hot.table.copy_from_slice(cursor.take(16)?);
        hot.sstable = String::from_utf8_lossy(bytes(cursor)?).into_owned();
        let mut chunk = 0u64;
        for _ in 0..cursor.uvint()? {
            if kind == Kind::Chunks {
                chunk = chunk.saturating_add(cursor.uvint()?);
                hot.chunks.push(chunk);
            } else {
                hot.keys.push(bytes(cursor)?.into());
            }
        }
        all.push(hot);
    }
    Ok(all)
}

fn bytes<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], stdx::CursorError> {
    let length = cursor.uvint()?;
    cursor.take(usize::try_from(length).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_read_and_nothing_else() {
        let chunks = vec![
            HotEntries {
                chunks: vec![0, 1, 7, 100_000],
                ..HotEntries::of(TableId([1; 16]), "t-01/da-3-bti".to_owned())
            },
            HotEntries { chunks: vec![5], ..HotEntries::of(TableId([2; 16]), ".i/da-4-bti".to_owned()) },
        ];
        let keys = vec![HotEntries {
            keys: vec![Box::from(*b"one"), Box::from(*b""), Box::from(*b"three")],
            ..HotEntries::of(TableId([3; 16]), String::new())
        }];
        for (kind, hot) in
            [(Kind::Chunks, &chunks), (Kind::Keys, &keys), (Kind::Rows, &keys), (Kind::Rows, &Vec::new())]
        {
            let file = encode(kind, hot);
            assert_eq!(decode(kind, &file).as_ref(), Ok(hot));
            let other = if kind == Kind::Keys { Kind::Rows } else { Kind::Keys };
            assert!(decode(other, &file).is_err());
            for at in 0..file.len() {
                assert!(decode(kind, &file[..at]).is_err());
                let mut damaged = file.clone();
                damaged[at] ^= 0x10;
                assert!(decode(kind, &damaged).is_err());
            }
        }
    }
}
