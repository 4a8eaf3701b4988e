//! Checks an SSTable against its checksums, and its parts against each other.
//!
//! 1. TOC.txt names files that are there.
//! 2. Digest.crc32 is that of Data.db.
//! 3. Each chunk has its CRC-32 and decompresses.
//! 4. Statistics.db and the index footers were read when the SSTable was opened; first and last key
//!    agree.
//! 5. Each entry of Partitions.db or Index.db leads to a partition, keys ascend, the filter admits
//!    them, and their number is right.
//! 6. Extended: each row decodes, and rows and markers ascend; every opened range deletion is
//!    closed; each key is found through the index; read backwards, by way of its row index, a
//!    partition has as many rows; Statistics.db has their number. (That number counts rows as they
//!    were written: where columns were dropped since, some may be empty now, and it is not
//!    compared.)
//!
//! Agrees in purpose with `org.apache.cassandra.io.sstable.format.bti.BtiTableVerifier`.

use std::cmp::Ordering;

use env::Env;
use rows::{
    ClusteringPrefix, DeletionTime, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError, ReadMode,
    Unfiltered,
};
use types::DecoratedKey;

use crate::descriptor::{Component, parse_toc};
use crate::error::Error;
use crate::filter::KeyHash;
use crate::reader::{SMALL_FILE_MAX, SSTable, SSTableStream};

/// Bytes of Data.db that are read at once for the digest.
const READ_LENGTH: u64 = 1024 * 1024;
/// Partitions, rows and markers in one step.
const UNFILTEREDS_A_STEP: usize = 4096;

/// How much is looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Depth {
    /// That all components are there.
    Components,
    /// Also the digest.
    Quick,
    /// Also chunks and keys.
    Normal,
    /// Also every row.
    Extended,
}

/// Counts of what was verified.
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
    let mut verifier = Verifier::new(env, sstable, depth);
    while verifier.step()?.is_some() {}
    Ok(verifier.verified)
}

/// The next step of a verification.
enum Stage {
    Components,
    OpenDigest,
    Digest(Digest),
    Chunks(u64),
    OpenPartitions,
    Partitions(Box<Partitions>),
    Done,
}

/// A check that is carried out in steps.
pub struct Verifier {
    env: Env,
    sstable: SSTable,
    depth: Depth,
    stage: Stage,
    verified: Verified,
}

impl Verifier {
    /// The verification of an SSTable.
    pub fn new(env: &Env, sstable: &SSTable, depth: Depth) -> Self {
        let (env, sstable) = (env.clone(), sstable.clone());
        Self { env, sstable, depth, stage: Stage::Components, verified: Verified::default() }
    }

    /// Counts so far.
    pub fn verified(&self) -> Verified {
        self.verified
    }

    /// Looks at about [`READ_LENGTH`] bytes more; gives how many, None at the end. What is wrong is
    /// the error; another call goes on with what can be looked at after that.
    pub fn step(&mut self) -> Result<Option<u64>, ReadError> {
        let stage = std::mem::replace(&mut self.stage, Stage::Done);
        let (stage, read) = match stage {
            Stage::Components => {
                self.stage = self.after_components();
                check_components(&self.env, &self.sstable)?;
                return Ok(Some(0));
            }
            Stage::OpenDigest => {
                self.stage = self.after_digest();
                match Digest::open(&self.env, &self.sstable)? {
                    Some(digest) => (Stage::Digest(digest), 0),
                    None => return Ok(Some(0)),
                }
            }
            Stage::Digest(mut digest) => {
                self.stage = self.after_digest();
                match digest.step(&self.sstable)? {
                    Some(read) => (Stage::Digest(digest), read),
                    None => return Ok(Some(0)),
                }
            }
            Stage::Chunks(index) => {
                self.stage = Stage::Chunks(index + 1);
                return self.check_chunk(index);
            }
            Stage::OpenPartitions => (Stage::Partitions(Box::new(Partitions::of(&self.sstable)?)), 0),
            Stage::Partitions(mut partitions) => {
                match partitions.step(&self.sstable, self.depth, &mut self.verified)? {
                    Some(read) => (Stage::Partitions(partitions), read),
                    None => (Stage::Done, 0),
                }
            }
            Stage::Done => return Ok(None),
        };
        self.stage = stage;
        Ok(Some(read))
    }

    fn after_components(&self) -> Stage {
        if self.depth >= Depth::Quick { Stage::OpenDigest } else { Stage::Done }
    }

    fn after_digest(&self) -> Stage {
        if self.depth >= Depth::Normal { Stage::Chunks(0) } else { Stage::Done }
    }

    fn check_chunk(&mut self, index: u64) -> Result<Option<u64>, ReadError> {
        let data = self.sstable.data();
        if index >= data.length().div_ceil(data.chunk_length() as u64) {
            self.stage = Stage::OpenPartitions;
            return Ok(Some(0));
        }
        data.read_chunk(index, ReadMode::Background)?;
        self.verified.chunks += 1;
        Ok(Some(data.chunk_length() as u64))
    }
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

/// The digest of Data.db, being computed.
struct Digest {
    stored: String,
    hasher: crc32fast::Hasher,
    offset: u64,
}

impl Digest {
    /// None: there is none to compare with.
    fn open(env: &Env, sstable: &SSTable) -> Result<Option<Self>, Error> {
        let path = sstable.descriptor().path(Component::Digest);
        if !env.disk.exists(&path) {
            return Ok(None);
        }
        let text = env.disk.read_all(&path, SMALL_FILE_MAX).map_err(|error| Error::io(&path, error))?;
        let stored = String::from_utf8_lossy(&text).trim().to_owned();
        Ok(Some(Self { stored, hasher: crc32fast::Hasher::new(), offset: 0 }))
    }

    fn step(&mut self, sstable: &SSTable) -> Result<Option<u64>, Error> {
        let (file, path) = (sstable.data().file(), sstable.data().path());
        let length = (file.len() - self.offset).min(READ_LENGTH);
        if length > 0 {
            let mut buffer = vec![0; length as usize];
            file.read_at(&mut buffer, self.offset).map_err(|error| Error::io(path, error))?;
            self.hasher.update(&buffer);
            self.offset += length;
            return Ok(Some(length));
        }
        let found = self.hasher.clone().finalize();
        if self.stored.parse() == Ok(found) {
            return Ok(None);
        }
        Err(Error::corrupt(path, 0, format!("digest {} is stored, {found} computed", self.stored)))
    }
}

/// The partitions, in order.
struct Partitions {
    stream: SSTableStream,
    last: Option<DecoratedKey>,
    /// The rows of the partition that is being looked at.
    rows: Option<Rows>,
    /// Rows so far, static ones included.
    row_count: u64,
}

impl Partitions {
    fn of(sstable: &SSTable) -> Result<Self, ReadError> {
        // under the columns of reads, as the look-up of each partition, with which it is compared
        let stream = sstable.scan_as_read(&ReadContext::new(ReadMode::Background))?;
        Ok(Self { stream, last: None, rows: None, row_count: 0 })
    }

    /// Some partitions or rows; how many bytes they took is not known, and counts nothing: the
    /// chunks were counted.
    fn step(&mut self, sstable: &SSTable, depth: Depth, verified: &mut Verified) -> Result<Option<u64>, ReadError> {
        for _ in 0..UNFILTEREDS_A_STEP {
            if let Some(mut rows) = self.rows.take() {
                if rows.next(sstable, &mut self.stream)? {
                    verified.unfiltereds += 1;
                    self.rows = Some(rows);
                } else {
                    self.row_count += rows.row_count;
                    check_lookup(sstable, &rows)?;
                }
                continue;
            }
            let Some(head) = self.stream.next_partition()? else {
                self.check_end(sstable, verified)?;
                let counted = sstable.statistics().stats.total_rows;
                if depth == Depth::Extended && sstable.header().gives_all() && counted != self.row_count {
                    let what = format!("{counted} rows are counted, and {} are there", self.row_count);
                    return Err(Error::corrupt(&sstable.descriptor().path(Component::Statistics), 0, what).into());
                }
                return Ok(None);
            };
            self.check_key(sstable, &head.key)?;
            verified.partitions += 1;
            self.row_count += u64::from(head.static_row.is_some());
            self.rows = (depth == Depth::Extended).then(|| Rows::of(&head.key));
            self.last = Some(head.key);
        }
        Ok(Some(0))
    }

    fn check_key(&self, sstable: &SSTable, key: &DecoratedKey) -> Result<(), ReadError> {
        // the order of legacy index tables is not that of tokens
        if sstable.has_tokens() && self.last.as_ref().is_some_and(|last| last >= key) {
            return Err(wrong(sstable, format!("the partition of key {:02x?} is out of order", &key.key[..])));
        }
        if !sstable.may_contain(key, KeyHash::of(&key.key)) {
            return Err(wrong(sstable, format!("the filter does not admit key {:02x?}", &key.key[..])));
        }
        Ok(())
    }

    fn check_end(&self, sstable: &SSTable, verified: &Verified) -> Result<(), ReadError> {
        if verified.partitions != sstable.partition_count() || self.last.as_ref() != Some(sstable.last_key()) {
            let what = format!("{} partitions instead of {}", verified.partitions, sstable.partition_count());
            return Err(wrong(sstable, what));
        }
        Ok(())
    }
}

fn wrong(sstable: &SSTable, what: String) -> ReadError {
    Error::corrupt(&sstable.descriptor().path(sstable.partitions_component()), 0, what).into()
}

/// The rows and markers of a partition, in order.
struct Rows {
    key: DecoratedKey,
    count: u64,
    row_count: u64,
    last: Option<ClusteringPrefix>,
    open: Option<DeletionTime>,
}

impl Rows {
    fn of(key: &DecoratedKey) -> Self {
        Self { key: key.clone(), count: 0, row_count: 0, last: None, open: None }
    }

    /// False: that was all.
    fn next(&mut self, sstable: &SSTable, stream: &mut SSTableStream) -> Result<bool, ReadError> {
        let at = stream.position();
        let Some(unfiltered) = stream.next_unfiltered()? else {
            return match self.open {
                Some(_) => Err(self.wrong(sstable, at, "a range deletion without end")),
                None => Ok(false),
            };
        };
        let comparator = &sstable.table().comparator;
        let here = ClusteringPrefix { kind: unfiltered.kind(), values: unfiltered.values().clone() };
        if self.last.as_ref().is_some_and(|last| last.compare(&here, comparator) != Ordering::Less) {
            return Err(self.wrong(sstable, at, "rows out of order"));
        }
        self.last = Some(here);
        self.count += 1;
        self.row_count += u64::from(matches!(unfiltered, Unfiltered::Row(_)));
        if let Unfiltered::Marker(marker) = unfiltered {
            if marker.close != self.open {
                return Err(self.wrong(sstable, at, "a range deletion that ends otherwise than it began"));
            }
            self.open = marker.open;
        }
        Ok(true)
    }

    fn wrong(&self, sstable: &SSTable, at: u64, what: &str) -> ReadError {
        let what = format!("{what} in the partition of key {:02x?}", &self.key.key[..]);
        Error::corrupt(sstable.data().path(), at, what).into()
    }
}

/// The key is found, and backwards there is as much as forwards. Keys of legacy index tables have
/// no tokens to be found by.
fn check_lookup(sstable: &SSTable, rows: &Rows) -> Result<(), ReadError> {
    if !sstable.has_tokens() {
        return Ok(());
    }
    let whole = ReadCommand::whole(sstable.table(), PartitionRange::Key(rows.key.clone()));
    let command = ReadCommand { reversed: true, ..whole };
    let mut stream = sstable.read(&command, &ReadContext::new(ReadMode::Background))?;
    if stream.next_partition()?.is_none() {
        return Err(wrong(sstable, format!("key {:02x?} is not found", &rows.key.key[..])));
    }
    let mut count = 0;
    while stream.next_unfiltered()?.is_some() {
        count += 1;
    }
    if count == rows.count {
        return Ok(());
    }
    let what = format!("{count} rows and markers instead of {} backwards", rows.count);
    Err(wrong(sstable, format!("{what} in the partition of key {:02x?}", &rows.key.key[..])))
}
