//! Transaction logs: SSTables that appear and vanish together, whatever happens in between.
//!
//! Before a flush or compaction writes a file, its log says so; when all is written and synced, a
//! COMMIT record makes the new SSTables count and the old ones not. At start, [`recover`] removes
//! what an unfinished transaction added, or what a committed one replaced, and then the log.
//!
//! The log lies in the table's directory, a record a line, synced one by one; only REMOVE records
//! are written together and synced once. Its name is
//! `<version>_txn_<operation>_<time-uuid>.log` for the big format, `bti-<version>_txn_…` for BTI;
//! older ones begin with `txn_`.
//! ```text
//! ADD:[<path of the SSTable's files up to the dash before the component>,0,<files>][<crc>]
//! REMOVE:[<path…>,<last modification of its files but Statistics.db, ms>,<files>][<crc>]
//! COMMIT:[,0,0][<crc>]      ABORT:[,0,0][<crc>]
//! ```
//! The CRC-32 is over path, type name, low and high half of the time, and number of files.
//!
//! Where a table has several directories, each that holds an SSTable of the transaction has a
//! replica of the log, with the same name and the same records. Replicas must agree, but for a last
//! line that is not whole: what one has of it counts. Paths are those of the time of writing; files
//! of a directory that was moved since are looked for beside the replicas. Agrees with
//! `org.apache.cassandra.db.lifecycle.{LogFile,LogRecord,LogReplicaSet,LogTransaction}`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::{Disk, Env, WriteFile};

use crate::descriptor::{Component, Descriptor};
use crate::error::Error;
use crate::version::{Format, Version};

const SUFFIX: &str = ".log";
/// Logs longer than this are refused: they have a line for each SSTable.
const LOG_LENGTH_MAX: u64 = 16 * 1024 * 1024;

/// The purpose of a transaction.
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

    fn names_sstable(self) -> bool {
        matches!(self, Self::Add | Self::Remove)
    }

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
    /// The path of the SSTable's files, up to and with the dash before the component; empty for
    /// COMMIT and ABORT.
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
        let (record, checksum) = Self::parse_unchecked(line)?;
        (record.checksum().to_string() == checksum).then_some(record)
    }

    /// A record and the checksum that is written with it.
    fn parse_unchecked(line: &str) -> Option<(Self, &str)> {
        let (kind, rest) = line.split_once(":[")?;
        let kind = Kind::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(kind))?;
        let (fields, checksum) = rest.strip_suffix(']')?.rsplit_once("][")?;
        let (rest, files) = fields.rsplit_once(',')?;
        let (prefix, modified) = rest.rsplit_once(',')?;
        if kind.names_sstable() != is_prefix(prefix) {
            return None;
        }
        let record =
            Self { kind, prefix: prefix.to_owned(), modified: modified.parse().ok()?, files: files.parse().ok()? };
        Some((record, checksum))
    }
}

/// The path of the files of one SSTable, up to and with the dash: nothing shorter, which other
/// files begin with too.
fn is_prefix(path: &str) -> bool {
    let Some(name) = Path::new(path).file_name().map(|name| name.to_string_lossy()) else { return false };
    Descriptor::parse(Path::new(""), &name).is_some_and(|(found, _)| found.prefix() + "-" == name)
}

fn prefix_of(descriptor: &Descriptor) -> String {
    descriptor.directory.join(format!("{}-", descriptor.prefix())).to_string_lossy().into_owned()
}

/// The names of files in directories; each directory is listed once, when it is first asked for. A
/// table may have thousands of SSTables, so that a listing for each of them takes minutes.
#[derive(Default)]
struct Listing {
    /// By directory; folders are left out.
    names: BTreeMap<PathBuf, BTreeSet<String>>,
}

impl Listing {
    /// Files of a prefix that exist: all but those in folders.
    fn files(&mut self, disk: &dyn Disk, prefix: &str) -> Result<Vec<PathBuf>, Error> {
        let path = Path::new(prefix);
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Ok(Vec::new()) };
        let name = name.to_string_lossy();
        let names = match self.names.entry(directory.to_owned()) {
            Entry::Occupied(listed) => listed.into_mut(),
            Entry::Vacant(new) => {
                let entries = disk.list_dir_if_exists(directory).map_err(|error| Error::io(directory, error))?;
                let files = entries.into_iter().flatten().filter(|entry| !entry.is_dir).map(|entry| entry.name);
                new.insert(files.collect())
            }
        };
        let begun = names.range::<str, _>((Bound::Included(&*name), Bound::Unbounded));
        let ours = begun.take_while(|found| found.starts_with(&*name));
        Ok(ours.map(|found| directory.join(found)).collect())
    }
}

fn modified(disk: &dyn Disk, path: &Path) -> u64 {
    disk.modified_millis(path).unwrap_or(0)
}

/// The latest modification of an SSTable's files; Statistics.db may change later and does not
/// count.
fn last_modified(disk: &dyn Disk, files: &[PathBuf]) -> u64 {
    let is_statistics = |path: &Path| path.to_string_lossy().ends_with(Component::Statistics.name());
    last_modified_of(disk, files.iter().filter(|path| !is_statistics(path)))
}

/// The latest modification of files, but for those that were being written.
fn last_modified_of<'a>(disk: &dyn Disk, files: impl Iterator<Item = &'a PathBuf>) -> u64 {
    let is_whole = |path: &&PathBuf| !path.to_string_lossy().ends_with(".tmp");
    files.filter(is_whole).map(|path| modified(disk, path)).max().unwrap_or(0)
}

/// Removes files, oldest first: so the latest modification of what is left stays what the log says.
fn remove_files(disk: &dyn Disk, mut files: Vec<PathBuf>) -> Result<(), Error> {
    files.sort_by_cached_key(|path| modified(disk, path));
    for path in files {
        match disk.remove_file(&path) {
            // two records name the SSTable
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            removed => removed.map_err(|error| Error::io(&path, error))?,
        }
    }
    Ok(())
}

fn sync_dir(disk: &dyn Disk, directory: &Path) -> Result<(), Error> {
    disk.sync_dir(directory).map_err(|error| Error::io(directory, error))
}

/// A log in one directory.
struct Replica {
    directory: PathBuf,
    path: PathBuf,
    file: Box<dyn WriteFile>,
    /// Bytes of the records that were written and synced.
    length: u64,
}

impl Replica {
    fn create(disk: &dyn Disk, directory: &Path, name: &str) -> Result<Self, Error> {
        let path = directory.join(name);
        let file = disk.create(&path).map_err(|error| Error::io(&path, error))?;
        sync_dir(disk, directory)?;
        Ok(Self { directory: directory.to_owned(), path, file, length: 0 })
    }

    /// Appends a line, or several, and syncs.
    fn append(&mut self, lines: &str) -> Result<(), Error> {
        let written = self.file.write_all(lines.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| Error::io(&self.path, error))?;
        self.length += lines.len() as u64;
        Ok(())
    }

    /// Cuts off what was not synced: a COMMIT whose write or sync failed may not come to count
    /// later.
    fn cut(&mut self, disk: &dyn Disk) -> Result<(), Error> {
        if !disk.exists(&self.path) {
            return Ok(());
        }
        let cut = self.file.set_len(self.length).and_then(|()| self.file.sync_data());
        cut.map_err(|error| Error::io(&self.path, error))
    }
}

/// A transaction. Dropping it leaves its log to the next [`recover`]; else [`Transaction::settle`]
/// ends it.
pub struct Transaction {
    disk: Arc<dyn Disk>,
    name: String,
    replicas: Vec<Replica>,
    records: Vec<Record>,
    /// A record failed, for this reason: it may be on disk, in part or whole, and in one replica
    /// and not in another. Nothing is written behind it. None: all records are in all replicas.
    suspect: Option<ErrorKind>,
}

impl Transaction {
    /// Creates the log in a table's directory. `id` is a new time-UUID, `version` that of the
    /// SSTables to be written.
    pub fn begin(
        env: &Env,
        directory: &Path,
        operation: Operation,
        id: [u8; 16],
        version: Version,
    ) -> Result<Self, Error> {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let id = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
        let begins = match version.format() {
            Format::Big => version.name().to_owned(),
            Format::Bti => format!("{}-{}", Format::Bti.name(), version.name()),
        };
        let name = format!("{begins}_txn_{}_{id}{SUFFIX}", operation.name());
        let disk = Arc::clone(&env.disk);
        let replicas = vec![Replica::create(&*disk, directory, &name)?];
        Ok(Self { disk, name, replicas, records: Vec::new(), suspect: None })
    }

    fn append(&mut self, record: Record) -> Result<(), Error> {
        self.append_all(vec![record])
    }

    /// Writes records and syncs once. Several at a time are REMOVE records: a power cut may leave
    /// any part of them, and none is needed before the COMMIT.
    fn append_all(&mut self, records: Vec<Record>) -> Result<(), Error> {
        assert!(!self.is_committed(), "a transaction takes nothing more after its commit");
        let are_removed = records.iter().all(|record| record.kind == Kind::Remove);
        assert!(records.len() == 1 || !records.is_empty() && are_removed, "only REMOVE records are written together");
        self.check_sound()?;
        let lines: String = records.iter().flat_map(|record| [record.print(), "\n".to_owned()]).collect();
        let written = self.replicas.iter_mut().try_for_each(|replica| replica.append(&lines));
        self.noted(written)?;
        self.records.extend(records);
        Ok(())
    }

    /// Refuses what comes behind a record that failed: replicas that differ would stop the next
    /// start.
    fn check_sound(&self) -> Result<(), Error> {
        let (Some(kind), Some(replica)) = (self.suspect, self.replicas.first()) else { return Ok(()) };
        Err(Error::io(&replica.path, std::io::Error::new(kind, "a record could not be written before")))
    }

    /// Remembers that a record failed.
    fn noted(&mut self, written: Result<(), Error>) -> Result<(), Error> {
        if let Err(Error::Io { source, .. }) = &written {
            self.suspect = Some(source.kind());
        }
        written
    }

    fn is_committed(&self) -> bool {
        self.records.last().is_some_and(|record| record.kind == Kind::Commit)
    }

    /// Whether [`Transaction::settle`] removes files of SSTables that the change has replaced.
    pub fn takes_files(&self) -> bool {
        self.is_committed() && self.records.iter().any(|record| record.kind == Kind::Remove)
    }

    /// Makes sure that a directory has its replica of the log.
    fn reach(&mut self, directory: &Path) -> Result<(), Error> {
        self.check_sound()?;
        if self.replicas.iter().any(|replica| replica.directory == directory) {
            return Ok(());
        }
        let mut replica = Replica::create(&*self.disk, directory, &self.name)?;
        let written = self.records.iter().try_for_each(|record| replica.append(&(record.print() + "\n")));
        // one that lacks records goes with the others when the transaction is settled
        self.replicas.push(replica);
        self.noted(written)
    }

    /// An SSTable is going to be written.
    pub fn add(&mut self, descriptor: &Descriptor) -> Result<(), Error> {
        let prefix = prefix_of(descriptor);
        debug_assert!(
            !self.records.iter().any(|record| record.kind == Kind::Add && record.prefix == prefix),
            "a transaction writes an SSTable once"
        );
        self.reach(&descriptor.directory)?;
        let files = Component::ALL.len() as u32;
        self.append(Record { kind: Kind::Add, prefix, modified: 0, files })
    }

    /// SSTables are to go when this commits.
    pub fn remove_all<'a>(&mut self, descriptors: impl IntoIterator<Item = &'a Descriptor>) -> Result<(), Error> {
        let (mut listing, mut records) = (Listing::default(), Vec::new());
        for descriptor in descriptors {
            self.reach(&descriptor.directory)?;
            let prefix = prefix_of(descriptor);
            let files = listing.files(&*self.disk, &prefix)?;
            let modified = last_modified(&*self.disk, &files);
            records.push(Record { kind: Kind::Remove, prefix, modified, files: files.len() as u32 });
        }
        if records.is_empty() { Ok(()) } else { self.append_all(records) }
    }

    /// From now on the new SSTables count and the old ones do not. After an error they may, should
    /// the machine die now: the transaction must be settled before anything else is done to these
    /// SSTables.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.append(Record { kind: Kind::Commit, prefix: String::new(), modified: 0, files: 0 })
    }

    /// Ends it: removes what it replaced (nobody may use that any more) when it is committed, else
    /// what it added; then its log. After an error it can be tried again.
    pub fn settle(&mut self) -> Result<(), Error> {
        let disk = &*self.disk;
        let committed = self.is_committed();
        if self.suspect.is_some() {
            self.replicas.iter_mut().try_for_each(|replica| replica.cut(disk))?;
            self.suspect = None;
        }
        let kind = if committed { Kind::Remove } else { Kind::Add };
        let records = self.records.iter().filter(|record| record.kind == kind);
        let directories: Vec<&Path> = self.replicas.iter().map(|replica| replica.directory.as_path()).collect();
        clean(disk, &directories, &self.name, records.map(|record| record.prefix.clone()))
    }
}

/// Removes the files of prefixes, then the log in its directories, in their order.
fn clean(
    disk: &dyn Disk,
    directories: &[&Path],
    name: &str,
    prefixes: impl Iterator<Item = String>,
) -> Result<(), Error> {
    let mut listing = Listing::default();
    for prefix in prefixes {
        remove_files(disk, listing.files(disk, &prefix)?)?;
    }
    // the files are gone for good before the log is
    directories.iter().try_for_each(|directory| sync_dir(disk, directory))?;
    for directory in directories {
        let log = directory.join(name);
        if disk.exists(&log) {
            disk.remove_file(&log).map_err(|error| Error::io(&log, error))?;
        }
        // a replica is gone for good before the next one is
        sync_dir(disk, directory)?;
    }
    Ok(())
}

/// A transaction that a start found.
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

/// A log as it was found: its replicas' directories and records.
struct FoundLog {
    name: String,
    /// Directories whose replica has no COMMIT come first. A power cut in the middle of a commit
    /// leaves such ones. Where they were alone, the change would count as not committed, though it
    /// may have been completed: so their logs are the first to go.
    directories: Vec<PathBuf>,
    records: Vec<Record>,
}

impl FoundLog {
    fn is_committed(&self) -> bool {
        self.records.last().is_some_and(|record| record.kind == Kind::Commit)
    }

    /// The beginnings of the names of files that do not count.
    fn obsolete(&self, all: &[PathBuf]) -> Vec<String> {
        let kind = if self.is_committed() { Kind::Remove } else { Kind::Add };
        let records = self.records.iter().filter(|record| record.kind == kind);
        records.flat_map(|record| places(record, all)).collect()
    }
}

/// Where the files of a record may be: in its directory, or, if that is none of the table's, in all
/// of them.
fn places(record: &Record, directories: &[PathBuf]) -> Vec<String> {
    let path = Path::new(&record.prefix);
    let Some(name) = path.file_name() else { return Vec::new() };
    let own = directories.iter().filter(|directory| path.parent() == Some(directory));
    let own: Vec<String> = own.map(|directory| directory.join(name).to_string_lossy().into_owned()).collect();
    if own.is_empty() {
        return directories.iter().map(|directory| directory.join(name).to_string_lossy().into_owned()).collect();
    }
    own
}

/// The logs of a table's directories.
fn find(disk: &dyn Disk, directories: &[PathBuf]) -> Result<Vec<FoundLog>, Error> {
    let mut logs: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for directory in directories {
        let entries = disk.list_dir_if_exists(directory).map_err(|error| Error::io(directory, error))?;
        let entries = entries.unwrap_or_default();
        for entry in entries.into_iter().filter(|entry| !entry.is_dir && is_log(&entry.name)) {
            logs.entry(entry.name).or_default().push(directory.clone());
        }
    }
    let mut listing = Listing::default();
    let read = |(name, replicas): (String, Vec<PathBuf>)| {
        let replicas = replicas.into_iter().map(|directory| FoundReplica::read(disk, directory, &name));
        let mut replicas = replicas.collect::<Result<Vec<_>, Error>>()?;
        replicas.sort_by_key(FoundReplica::is_committed);
        let records = read(disk, &mut listing, directories, &replicas, &name)?;
        Ok(FoundLog { name, directories: replicas.into_iter().map(|replica| replica.directory).collect(), records })
    };
    logs.into_iter().map(read).collect()
}

/// Completes or takes back the transactions of a table's directories. A log that does not fit what
/// is on disk is an error, and nothing of it is touched.
pub fn recover(env: &Env, directories: &[PathBuf]) -> Result<Vec<Recovered>, Error> {
    let disk = &*env.disk;
    let mut recovered = Vec::new();
    for found in find(disk, directories)? {
        let replicas: Vec<&Path> = found.directories.iter().map(PathBuf::as_path).collect();
        clean(disk, &replicas, &found.name, found.obsolete(directories).into_iter())?;
        recovered.push(Recovered { committed: found.is_committed(), log: found.name });
    }
    Ok(recovered)
}

/// The files of a table that do not count: those of unfinished transactions, and those that
/// committed ones replaced. For those who look at directories while they are in use, or may not
/// change them.
pub fn obsolete_files(env: &Env, directories: &[PathBuf]) -> Result<BTreeSet<PathBuf>, Error> {
    let disk = &*env.disk;
    let (mut hidden, mut listing) = (BTreeSet::new(), Listing::default());
    for found in find(disk, directories)? {
        for prefix in found.obsolete(directories) {
            hidden.extend(listing.files(disk, &prefix)?);
        }
    }
    Ok(hidden)
}

/// A transaction that was not settled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsettled {
    /// Its log.
    pub log: PathBuf,
    /// The files that it added count, and those that it removes do not; else the other way round.
    pub committed: bool,
    /// Files of SSTables that it adds.
    pub added: Vec<PathBuf>,
    /// Files of SSTables that it removes.
    pub removed: Vec<PathBuf>,
}

/// The transactions whose logs are in a directory.
pub fn unsettled(env: &Env, directory: &Path) -> Result<Vec<Unsettled>, Error> {
    let disk = &*env.disk;
    let directories = [directory.to_owned()];
    let (mut unsettled, mut listing) = (Vec::new(), Listing::default());
    for found in find(disk, &directories)? {
        let mut files = |kind: Kind| -> Result<Vec<PathBuf>, Error> {
            let mut files = Vec::new();
            for record in found.records.iter().filter(|record| record.kind == kind) {
                for place in places(record, &directories) {
                    files.extend(listing.files(disk, &place)?);
                }
            }
            Ok(files)
        };
        let (added, removed) = (files(Kind::Add)?, files(Kind::Remove)?);
        unsettled.push(Unsettled { log: directory.join(&found.name), committed: found.is_committed(), added, removed });
    }
    Ok(unsettled)
}

/// The lines of a replica. REMOVE records are written together, so a power cut may leave zeros in
/// the middle of them. The line with the first zero is cut there, and is the last that counts:
/// records behind the zeros were never synced, and a COMMIT would have been written after that.
fn lines_of_replica<'a>(path: &Path, text: &'a str) -> Result<Vec<&'a str>, Error> {
    let (before, behind) = text.split_once('\0').unwrap_or((text, ""));
    let mut others: Vec<&str> = behind.lines().skip(1).collect();
    if !text.ends_with('\n') {
        others.pop();
    }
    let is_removal = |line: &&str| Record::parse(line).is_some_and(|record| record.kind == Kind::Remove);
    let is_of_batch = |line: &&str| line.is_empty() || line.contains('\0') || is_removal(line);
    if let Some(line) = others.into_iter().find(|line| !is_of_batch(line)) {
        return Err(Error::corrupt(path, 0, format!("behind a hole in the log: {line}")));
    }
    Ok(before.lines().filter(|line| !line.is_empty()).collect())
}

/// A replica as it was found.
struct FoundReplica {
    directory: PathBuf,
    lines: Vec<String>,
}

impl FoundReplica {
    fn read(disk: &dyn Disk, directory: PathBuf, name: &str) -> Result<Self, Error> {
        let path = directory.join(name);
        let bytes = disk.read_all(&path, LOG_LENGTH_MAX).map_err(|error| Error::io(&path, error))?;
        let text = String::from_utf8_lossy(&bytes);
        let lines = lines_of_replica(&path, &text)?.into_iter().map(str::to_owned).collect();
        Ok(Self { directory, lines })
    }

    fn is_committed(&self) -> bool {
        let last = self.lines.last().and_then(|line| Record::parse(line));
        last.is_some_and(|record| record.kind == Kind::Commit)
    }
}

/// The lines of all replicas together: the longest of each, where the others have it too or only a
/// part of it at their end.
fn lines_of(replicas: &[FoundReplica], name: &str) -> Result<Vec<String>, Error> {
    let mut lines: Vec<String> = Vec::new();
    for FoundReplica { directory, lines: own } in replicas {
        let known_count = lines.len();
        for (index, line) in own.iter().enumerate() {
            // only the last line of a replica may be torn
            let (is_last_known, is_last_own) = (index + 1 == known_count, index + 1 == own.len());
            match lines.get_mut(index) {
                None => lines.push(line.clone()),
                Some(known) if known == line => {}
                Some(known) if is_last_known && line.starts_with(known.as_str()) => *known = line.clone(),
                Some(known) if is_last_own && known.starts_with(line.as_str()) => {}
                Some(_) => {
                    let what = format!("record {}: not that of other replicas", index + 1);
                    return Err(Error::corrupt(&directory.join(name), 0, what));
                }
            }
        }
    }
    Ok(lines)
}

/// The records of a log. A last line that is not whole is left out, if all files of the REMOVE
/// records before are there.
fn read(
    disk: &dyn Disk,
    listing: &mut Listing,
    directories: &[PathBuf],
    replicas: &[FoundReplica],
    name: &str,
) -> Result<Vec<Record>, Error> {
    let lines = lines_of(replicas, name)?;
    let path = replicas.first().map(|replica| replica.directory.join(name)).unwrap_or_default();
    let mut records = Vec::with_capacity(lines.len());
    let mut torn = false;
    for (number, line) in lines.iter().enumerate() {
        match Record::parse(line) {
            Some(record) => records.push(record),
            None if number + 1 == lines.len() => torn = true,
            None => return Err(Error::corrupt(&path, 0, format!("record {}: {line}", number + 1))),
        }
    }
    for record in records.iter().filter(|record| record.kind == Kind::Remove) {
        let mut files = Vec::new();
        for place in places(record, directories) {
            files.extend(listing.files(disk, &place)?);
        }
        check_removed(disk, &path, record, &files, torn)?;
    }
    Ok(records)
}

/// A log with the right checksum in each line that is a record otherwise: for fuzz targets.
#[doc(hidden)]
pub fn sealed(log: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(log);
    let lines = text.split('\n').map(|line| match Record::parse_unchecked(line) {
        Some((record, _)) => record.print(),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n").into_bytes()
}

/// Checks that an SSTable's files are as the record says.
fn check_removed(disk: &dyn Disk, log: &Path, record: &Record, files: &[PathBuf], torn: bool) -> Result<(), Error> {
    let found = last_modified(disk, files);
    // seconds: what file systems keep differs
    let differs = |found: u64| found / 1000 != record.modified / 1000;
    // Cassandra 3 and early 4.0 wrote down the time of Statistics.db where that was the latest
    if found > 0 && record.modified > 0 && differs(found) && differs(last_modified_of(disk, files.iter())) {
        let what = format!("{} was changed at {found}, not at {}", record.prefix, record.modified);
        return Err(Error::corrupt(log, 0, what));
    }
    if torn && (files.len() as u32) < record.files {
        let what = format!("{} has {} of {} files", record.prefix, files.len(), record.files);
        return Err(Error::corrupt(log, 0, what));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
