//! Transaction logs: SSTables that appear and vanish together, whatever happens in between.
//!
//! Before a flush or compaction writes a file, its log says so; when all is written and synced, a COMMIT record makes the new
//! SSTables count and the old ones not. At start, [`recover`] removes what an unfinished transaction added, or what a committed
//! one replaced, and then the log.
//!
//! `bti-da_txn_<operation>_<time-uuid>.log` in the table's directory, a record a line, synced one by one:
//! ```text
//! ADD:[<path of the SSTable's files up to the dash before the component>,0,<files>][<crc>]
//! REMOVE:[<path…>,<last modification of its files but Statistics.db, ms>,<files>][<crc>]
//! COMMIT:[,0,0][<crc>]      ABORT:[,0,0][<crc>]
//! ```
//! The CRC-32 is over path, type name, low and high half of the time, and number of files. Agrees with
//! `org.apache.cassandra.db.lifecycle.{LogFile,LogRecord,LogTransaction}`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::{Disk, Env, WriteFile};

use crate::descriptor::{Component, Descriptor};
use crate::error::Error;
use crate::version::Version;

const SUFFIX: &str = ".log";
/// Logs longer than this are refused: they have a line for each SSTable.
const LOG_LENGTH_MAX: u64 = 16 * 1024 * 1024;

/// What a transaction is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A memtable is written.
    Flush,
    /// SSTables are merged.
    Compaction,
    /// SSTables are written by the engine for another reason: streams, imports.
    Write,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Compaction => "compaction",
            Self::Write => "write",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Add,
    Remove,
    Commit,
    Abort,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Add, Self::Remove, Self::Commit, Self::Abort];

    fn name(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Remove => "REMOVE",
            Self::Commit => "COMMIT",
            Self::Abort => "ABORT",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Record {
    kind: Kind,
    /// Of the files, up to and with the dash before the component; empty for COMMIT and ABORT.
    prefix: String,
    modified: u64,
    files: u32,
}

impl Record {
    fn checksum(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(self.prefix.as_bytes());
        hasher.update(self.kind.name().as_bytes());
        hasher.update(&(self.modified as u32).to_be_bytes());
        hasher.update(&((self.modified >> 32) as u32).to_be_bytes());
        hasher.update(&self.files.to_be_bytes());
        hasher.finalize()
    }

    fn print(&self) -> String {
        let Self { kind, prefix, modified, files } = self;
        format!("{}:[{prefix},{modified},{files}][{}]", kind.name(), self.checksum())
    }

    /// None: not a record, or not a whole one.
    fn parse(line: &str) -> Option<Self> {
        let (kind, rest) = line.split_once(":[")?;
        let kind = Kind::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(kind))?;
        let (fields, checksum) = rest.strip_suffix(']')?.rsplit_once("][")?;
        let (rest, files) = fields.rsplit_once(',')?;
        let (prefix, modified) = rest.rsplit_once(',')?;
        let record =
            Self { kind, prefix: prefix.to_owned(), modified: modified.parse().ok()?, files: files.parse().ok()? };
        (record.checksum().to_string() == checksum).then_some(record)
    }
}

fn prefix_of(descriptor: &Descriptor) -> String {
    descriptor.directory.join(format!("{}-", descriptor.prefix())).to_string_lossy().into_owned()
}

/// Files of a prefix that exist: all but those in folders.
fn existing_files(disk: &dyn Disk, prefix: &str) -> Result<Vec<PathBuf>, Error> {
    let path = Path::new(prefix);
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Ok(Vec::new()) };
    let name = name.to_string_lossy();
    if name.is_empty() || !disk.exists(directory) {
        return Ok(Vec::new());
    }
    let entries = disk.list_dir(directory).map_err(|error| Error::io(directory, error))?;
    let ours = entries.into_iter().filter(|entry| !entry.is_dir && entry.name.starts_with(&*name));
    Ok(ours.map(|entry| directory.join(entry.name)).collect())
}

fn modified(disk: &dyn Disk, path: &Path) -> u64 {
    disk.modified_millis(path).unwrap_or(0)
}

/// The latest modification of an SSTable's files; Statistics.db may change later and does not count.
fn last_modified(disk: &dyn Disk, files: &[PathBuf]) -> u64 {
    let counts = |path: &&PathBuf| {
        let name = path.to_string_lossy();
        !name.ends_with(".tmp") && !name.ends_with(Component::Statistics.name())
    };
    files.iter().filter(counts).map(|path| modified(disk, path)).max().unwrap_or(0)
}

/// Removes files, oldest first: so the latest modification of what is left stays what the log says.
fn remove_files(disk: &dyn Disk, prefix: &str) -> Result<(), Error> {
    let mut files = existing_files(disk, prefix)?;
    files.sort_by_key(|path| modified(disk, path));
    for path in files {
        disk.remove_file(&path).map_err(|error| Error::io(&path, error))?;
    }
    Ok(())
}

fn sync_dir(disk: &dyn Disk, directory: &Path) -> Result<(), Error> {
    disk.sync_dir(directory).map_err(|error| Error::io(directory, error))
}

/// A transaction. Dropping it leaves its log to the next [`recover`]; else [`Transaction::settle`] ends it.
pub struct Transaction {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    path: PathBuf,
    file: Box<dyn WriteFile>,
    records: Vec<Record>,
    /// Bytes of the records that were written and synced.
    length: u64,
    /// A record failed: it may be on disk, in part or whole.
    suspect: bool,
}

impl Transaction {
    /// Creates the log. `id` is a new time-UUID.
    pub fn begin(env: &Env, directory: &Path, operation: Operation, id: [u8; 16]) -> Result<Self, Error> {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let id = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
        let name = format!("bti-{}_txn_{}_{id}{SUFFIX}", Version::DA.name(), operation.name());
        let path = directory.join(name);
        let disk = Arc::clone(&env.disk);
        let file = disk.create(&path).map_err(|error| Error::io(&path, error))?;
        sync_dir(&*disk, directory)?;
        let directory = directory.to_owned();
        Ok(Self { disk, directory, path, file, records: Vec::new(), length: 0, suspect: false })
    }

    fn append(&mut self, record: Record) -> Result<(), Error> {
        let line = record.print() + "\n";
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        self.suspect |= written.is_err();
        written.map_err(|error| Error::io(&self.path, error))?;
        self.length += line.len() as u64;
        self.records.push(record);
        Ok(())
    }

    /// An SSTable is going to be written.
    pub fn add(&mut self, descriptor: &Descriptor) -> Result<(), Error> {
        let files = Component::ALL.len() as u32;
        self.append(Record { kind: Kind::Add, prefix: prefix_of(descriptor), modified: 0, files })
    }

    /// An SSTable is to go when this commits.
    pub fn remove(&mut self, descriptor: &Descriptor) -> Result<(), Error> {
        let prefix = prefix_of(descriptor);
        let files = existing_files(&*self.disk, &prefix)?;
        let modified = last_modified(&*self.disk, &files);
        self.append(Record { kind: Kind::Remove, prefix, modified, files: files.len() as u32 })
    }

    /// From now on the new SSTables count and the old ones do not. After an error they may, should the machine die now: the
    /// transaction must be settled before anything else is done to these SSTables.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.append(Record { kind: Kind::Commit, prefix: String::new(), modified: 0, files: 0 })
    }

    /// Ends it: removes what it replaced (nobody may use that any more) when it is committed, else what it added; then its log. After an
    /// error it can be tried again.
    pub fn settle(&mut self) -> Result<(), Error> {
        let disk = &*self.disk;
        let committed = self.records.last().is_some_and(|record| record.kind == Kind::Commit);
        if self.suspect && disk.exists(&self.path) {
            // a COMMIT whose write or sync failed may not come to count later
            let cut = self.file.set_len(self.length).and_then(|()| self.file.sync_data());
            cut.map_err(|error| Error::io(&self.path, error))?;
            self.suspect = false;
        }
        let kind = if committed { Kind::Remove } else { Kind::Add };
        clean(disk, &self.directory, &self.path, &self.records, kind)
    }
}

fn clean(disk: &dyn Disk, directory: &Path, log: &Path, records: &[Record], kind: Kind) -> Result<(), Error> {
    for record in records.iter().filter(|record| record.kind == kind) {
        remove_files(disk, &record.prefix)?;
    }
    // the files are gone for good before the log is
    sync_dir(disk, directory)?;
    if disk.exists(log) {
        disk.remove_file(log).map_err(|error| Error::io(log, error))?;
    }
    sync_dir(disk, directory)
}

/// What was found of a transaction at start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    /// The log's name.
    pub log: String,
    /// Its SSTables count; those that it replaced are gone. False: what it had added is gone.
    pub committed: bool,
}

fn is_log(name: &str) -> bool {
    name.ends_with(SUFFIX) && (name.starts_with("txn_") || name.contains("_txn_"))
}

/// Completes or takes back the transactions of a table's directory. A log that does not fit what is on disk is an error, and
/// nothing of it is touched.
pub fn recover(env: &Env, directory: &Path) -> Result<Vec<Recovered>, Error> {
    let disk = &*env.disk;
    let entries = disk.list_dir(directory).map_err(|error| Error::io(directory, error))?;
    let mut recovered = Vec::new();
    for entry in entries.into_iter().filter(|entry| !entry.is_dir && is_log(&entry.name)) {
        let path = directory.join(&entry.name);
        let records = read(disk, directory, &path)?;
        let committed = records.last().is_some_and(|record| record.kind == Kind::Commit);
        clean(disk, directory, &path, &records, if committed { Kind::Remove } else { Kind::Add })?;
        recovered.push(Recovered { log: entry.name, committed });
    }
    Ok(recovered)
}

/// The SSTables of a directory that do not count: those of unfinished transactions, and those that committed ones replaced.
/// For those who look at a directory while it is in use.
pub fn hidden(env: &Env, directory: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    let disk = &*env.disk;
    let entries = disk.list_dir(directory).map_err(|error| Error::io(directory, error))?;
    let mut hidden = BTreeSet::new();
    for entry in entries.into_iter().filter(|entry| !entry.is_dir && is_log(&entry.name)) {
        let records = read(disk, directory, &directory.join(&entry.name))?;
        let committed = records.last().is_some_and(|record| record.kind == Kind::Commit);
        let kind = if committed { Kind::Remove } else { Kind::Add };
        for record in records.into_iter().filter(|record| record.kind == kind) {
            hidden.extend(existing_files(disk, &record.prefix)?);
        }
    }
    Ok(hidden)
}

/// A transaction that was not settled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsettled {
    /// Its log.
    pub log: PathBuf,
    /// What it added counts, and what it removes does not; else the other way round.
    pub committed: bool,
    /// Files of SSTables that it adds.
    pub added: Vec<PathBuf>,
    /// Files of SSTables that it removes.
    pub removed: Vec<PathBuf>,
}

/// The transactions whose logs are in a directory.
pub fn unsettled(env: &Env, directory: &Path) -> Result<Vec<Unsettled>, Error> {
    let disk = &*env.disk;
    let entries = disk.list_dir(directory).map_err(|error| Error::io(directory, error))?;
    let mut found = Vec::new();
    for entry in entries.into_iter().filter(|entry| !entry.is_dir && is_log(&entry.name)) {
        let log = directory.join(&entry.name);
        let records = read(disk, directory, &log)?;
        let committed = records.last().is_some_and(|record| record.kind == Kind::Commit);
        let files = |kind: Kind| -> Result<Vec<PathBuf>, Error> {
            let mut files = Vec::new();
            for record in records.iter().filter(|record| record.kind == kind) {
                files.extend(existing_files(disk, &record.prefix)?);
            }
            Ok(files)
        };
        let (added, removed) = (files(Kind::Add)?, files(Kind::Remove)?);
        found.push(Unsettled { log, committed, added, removed });
    }
    Ok(found)
}

/// The records of a log. A last line that is not whole is left out, if all files of the REMOVE records before are there.
fn read(disk: &dyn Disk, directory: &Path, path: &Path) -> Result<Vec<Record>, Error> {
    let bytes = disk.read_all(path, LOG_LENGTH_MAX).map_err(|error| Error::io(path, error))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let mut records = Vec::with_capacity(lines.len());
    let mut torn = false;
    for (number, line) in lines.iter().enumerate() {
        match Record::parse(line) {
            Some(mut record) => {
                relocate(&mut record, directory);
                records.push(record);
            }
            None if number + 1 == lines.len() => torn = true,
            None => return Err(Error::corrupt(path, 0, format!("record {}: {line}", number + 1))),
        }
    }
    for record in records.iter().filter(|record| record.kind == Kind::Remove) {
        let files = existing_files(disk, &record.prefix)?;
        let found = last_modified(disk, &files);
        // seconds: what file systems keep differs
        if found > 0 && record.modified > 0 && found / 1000 != record.modified / 1000 {
            let what = format!("{} was changed at {found}, not at {}", record.prefix, record.modified);
            return Err(Error::corrupt(path, 0, what));
        }
        if torn && (files.len() as u32) < record.files {
            let what = format!("{} has {} of {} files", record.prefix, files.len(), record.files);
            return Err(Error::corrupt(path, 0, what));
        }
    }
    Ok(records)
}

/// Paths are those of the time of writing; the data directory may have been moved since. Its files are beside their log.
fn relocate(record: &mut Record, directory: &Path) {
    let name = Path::new(&record.prefix).file_name().map(|name| name.to_string_lossy().into_owned());
    if let Some(name) = name {
        record.prefix = directory.join(name).to_string_lossy().into_owned();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]

    use super::*;
    use crate::descriptor::SSTableId;

    #[test]
    fn records_are_those_of_cassandra() {
        let record = Record { kind: Kind::Commit, prefix: String::new(), modified: 0, files: 0 };
        // as Cassandra writes it
        assert_eq!(record.print(), "COMMIT:[,0,0][2613697770]");
        let record = Record { kind: Kind::Remove, prefix: "/a,b/da-1-bti-".to_owned(), modified: 1 << 40, files: 8 };
        assert_eq!(Record::parse(&record.print()), Some(record.clone()));
        let line = record.print();
        for end in 0..line.len() {
            assert_eq!(Record::parse(&line[..end]), None);
        }
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn make(directory: &Path, id: u64) -> Descriptor {
        let descriptor = Descriptor::new(directory, Version::DA, SSTableId::Sequence(id));
        for component in [Component::Data, Component::Statistics, Component::Toc] {
            std::fs::write(descriptor.path(component), b"x").unwrap();
        }
        descriptor
    }

    #[test]
    fn unfinished_is_undone_and_committed_is_completed() {
        let env = env::real::env();
        for committed in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let directory = directory.path();
            let old = make(directory, 1);
            make(directory, 11);
            let mut transaction = Transaction::begin(&env, directory, Operation::Compaction, [1; 16]).unwrap();
            transaction.add(&Descriptor::new(directory, Version::DA, SSTableId::Sequence(2))).unwrap();
            make(directory, 2);
            transaction.remove(&old).unwrap();
            assert_eq!(hidden(&env, directory).unwrap().len(), 3);
            if committed {
                transaction.commit().unwrap();
            }
            drop(transaction);
            let found = recover(&env, directory).unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].committed, committed);
            let kept = if committed { "da-2-" } else { "da-1-" };
            let names = names(directory);
            assert_eq!(names.len(), 6, "{names:?}");
            assert!(names.iter().all(|name| name.starts_with(kept) || name.starts_with("da-11-")), "{names:?}");
            assert_eq!(recover(&env, directory).unwrap(), []);
        }
    }

    #[test]
    fn a_torn_last_record_is_tolerated_and_other_damage_is_not() {
        let env = env::real::env();
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let old = make(directory, 1);
        let mut transaction = Transaction::begin(&env, directory, Operation::Flush, [1; 16]).unwrap();
        transaction.add(&Descriptor::new(directory, Version::DA, SSTableId::Sequence(2))).unwrap();
        transaction.remove(&old).unwrap();
        let log = transaction.path.clone();
        transaction.commit().unwrap();
        drop(transaction);
        let whole = std::fs::read_to_string(&log).unwrap();
        std::fs::write(&log, whole.replacen("ADD", "ADE", 1)).unwrap();
        assert!(matches!(recover(&env, directory), Err(Error::Corrupt(_))));
        assert_eq!(names(directory).len(), 4);
        std::fs::write(&log, &whole[..whole.len() - 4]).unwrap();
        assert!(!recover(&env, directory).unwrap()[0].committed);
        assert_eq!(names(directory).len(), 3);
    }

    #[test]
    fn settled_leaves_no_log() {
        let env = env::real::env();
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let mut transaction = Transaction::begin(&env, directory, Operation::Flush, [1; 16]).unwrap();
        let one = Descriptor::new(directory, Version::DA, SSTableId::Sequence(1));
        transaction.add(&one).unwrap();
        make(directory, 1);
        transaction.settle().unwrap();
        assert_eq!(names(directory), [""; 0]);
        make(directory, 1);
        let mut transaction = Transaction::begin(&env, directory, Operation::Compaction, [1; 16]).unwrap();
        transaction.add(&Descriptor::new(directory, Version::DA, SSTableId::Sequence(2))).unwrap();
        make(directory, 2);
        transaction.remove(&one).unwrap();
        transaction.commit().unwrap();
        transaction.settle().unwrap();
        assert!(names(directory).iter().all(|name| name.starts_with("da-2-")));
    }
}
