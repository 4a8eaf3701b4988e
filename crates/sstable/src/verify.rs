//! Checks an SSTable against its checksums, and its parts against each other.
//!
//! 1. TOC.txt names files that are there.
//! 2. Digest.crc32 is that of Data.db.
//! 3. Each chunk has its CRC-32 and decompresses.
//! 4. Statistics.db and the index footers were read when the SSTable was opened; first and last key agree.
//! 5. Each entry of Partitions.db leads to a partition, keys ascend, the filter admits them, and their number is right.
//! 6. Extended: each row decodes, and rows and markers ascend; every opened range deletion is closed.
//!
//! Agrees in purpose with `org.apache.cassandra.io.sstable.format.bti.BtiTableVerifier`.

use std::cmp::Ordering;

use env::Env;
use rows::{ClusteringPrefix, PartitionStream, ReadContext, ReadError, ReadMode, Unfiltered};
use types::DecoratedKey;

use crate::descriptor::{Component, parse_toc};
use crate::error::Error;
use crate::filter::KeyHash;
use crate::reader::{SMALL_FILE_MAX, SSTable};

/// Bytes of Data.db that are read at once for the digest.
const READ_LENGTH: u64 = 1024 * 1024;

/// How much is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Components and the digest.
    Quick,
    /// Also chunks and keys.
    Normal,
    /// Also every row.
    Extended,
}

/// What was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verified {
    /// Chunks.
    pub chunks: u64,
    /// Partitions.
    pub partitions: u64,
    /// Rows and markers.
    pub unfiltereds: u64,
}

/// Checks an SSTable; the first thing that is wrong is the error.
pub fn verify(env: &Env, sstable: &SSTable, depth: Depth) -> Result<Verified, ReadError> {
    let mut verified = Verified::default();
    check_components(env, sstable)?;
    check_digest(env, sstable)?;
    if depth == Depth::Quick {
        return Ok(verified);
    }
    let data = sstable.data();
    verified.chunks = data.length().div_ceil(data.chunk_length() as u64);
    for index in 0..verified.chunks {
        data.read_chunk(index, ReadMode::Background)?;
    }
    check_partitions(sstable, depth, &mut verified)?;
    Ok(verified)
}

fn check_components(env: &Env, sstable: &SSTable) -> Result<(), Error> {
    let path = sstable.descriptor().path(Component::Toc);
    let bytes = env.disk.read_all(&path, SMALL_FILE_MAX).map_err(|error| Error::io(&path, error))?;
    let components = parse_toc(&String::from_utf8_lossy(&bytes));
    if !components.contains(&Component::Data) {
        return Err(Error::corrupt(&path, 0, "Data.db is not listed"));
    }
    match components.iter().find(|component| !env.disk.exists(&sstable.descriptor().path(**component))) {
        Some(missing) => Err(Error::corrupt(&path, 0, format!("{} is listed and not there", missing.name()))),
        None => Ok(()),
    }
}

fn check_digest(env: &Env, sstable: &SSTable) -> Result<(), Error> {
    let path = sstable.descriptor().path(Component::Digest);
    if !env.disk.exists(&path) {
        return Ok(());
    }
    let text = env.disk.read_all(&path, SMALL_FILE_MAX).map_err(|error| Error::io(&path, error))?;
    let stored: Option<u32> = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
    let file = sstable.data().file();
    let data_path = sstable.data().path();
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = Vec::new();
    let mut offset = 0;
    while offset < file.len() {
        buffer.resize((file.len() - offset).min(READ_LENGTH) as usize, 0);
        file.read_at(&mut buffer, offset).map_err(|error| Error::io(data_path, error))?;
        hasher.update(&buffer);
        offset += buffer.len() as u64;
    }
    let found = hasher.finalize();
    if stored == Some(found) {
        return Ok(());
    }
    let stored = String::from_utf8_lossy(&text).into_owned();
    Err(Error::corrupt(data_path, 0, format!("digest {stored} is stored, {found} computed")))
}

fn check_partitions(sstable: &SSTable, depth: Depth, verified: &mut Verified) -> Result<(), ReadError> {
    let wrong = |what: String| -> ReadError {
        Error::corrupt(&sstable.descriptor().path(Component::Partitions), 0, what).into()
    };
    let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background))?;
    let mut last: Option<DecoratedKey> = None;
    while let Some(head) = stream.next_partition()? {
        if last.as_ref().is_some_and(|last| *last >= head.key) {
            return Err(wrong(format!("the partition of key {:02x?} is out of order", &head.key.key[..])));
        }
        if !sstable.may_contain(&head.key, KeyHash::of(&head.key.key)) {
            return Err(wrong(format!("the filter does not admit key {:02x?}", &head.key.key[..])));
        }
        verified.partitions += 1;
        if depth == Depth::Extended {
            verified.unfiltereds += check_rows(sstable, &mut stream, &head.key)?;
        }
        last = Some(head.key);
    }
    if verified.partitions != sstable.partition_count() || last.as_ref() != Some(sstable.last_key()) {
        let what = format!("{} partitions instead of {}", verified.partitions, sstable.partition_count());
        return Err(wrong(what));
    }
    Ok(())
}

fn check_rows(sstable: &SSTable, stream: &mut dyn PartitionStream, key: &DecoratedKey) -> Result<u64, ReadError> {
    let comparator = &sstable.table().comparator;
    let wrong = |what: &str| -> ReadError {
        let what = format!("{what} in the partition of key {:02x?}", &key.key[..]);
        Error::corrupt(sstable.data().path(), 0, what).into()
    };
    let mut count = 0;
    let mut last: Option<ClusteringPrefix> = None;
    let mut open = None;
    while let Some(unfiltered) = stream.next_unfiltered()? {
        count += 1;
        let here = ClusteringPrefix { kind: unfiltered.kind(), values: unfiltered.values().clone() };
        if last.is_some_and(|last| last.compare(&here, comparator) != Ordering::Less) {
            return Err(wrong("rows out of order"));
        }
        last = Some(here);
        if let Unfiltered::Marker(marker) = unfiltered {
            if marker.close != open {
                return Err(wrong("a range deletion that ends otherwise than it began"));
            }
            open = marker.open;
        }
    }
    if open.is_some() { Err(wrong("a range deletion without end")) } else { Ok(count) }
}
