//! A twin of the server's directory on a simulated disk, and what a power cut leaves of it.
//!
//! The library before libc (`recorder.c`, built here with `cc`) writes a journal of every change.
//! [`Twin::replay`] repeats the journal on the disk of `env::sim`, whose rules are those that the
//! engine relies on (`env::Disk`): a write is durable behind a sync of its file, a name behind a
//! sync of its directory, and what is not durable survives in any subset of sectors and names.
//! [`Twin::cut`] lets that disk lose its power and writes the directory anew from what is left.
//!
//! Not here: a sync that the device itself loses, sectors that go elsewhere (`env::sim` has both),
//! and bytes of a file that is mapped into memory: the server maps none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use env::WriteFile;
use env::sim::{DATA, Sim};

use crate::Outcome;

/// `struct record` of `recorder.c`: kind, lengths of two names, file, place, size.
const RECORD_SIZE: usize = 40;
/// No file of the server is longer.
const FILE_MAX: u64 = 256 << 20;

/// The library.
pub struct Recorder {
    library: PathBuf,
    journal: PathBuf,
}

impl Recorder {
    /// Builds the library in `place`, where the journals will lie too.
    pub fn new(place: &Path) -> Outcome<Self> {
        let (source, library) = (place.join("recorder.c"), place.join("recorder.so"));
        std::fs::write(&source, include_str!("recorder.c"))?;
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).args(["-ldl", "-lpthread"]);
        let done = command.output().map_err(|error| format!("cc: {error}"))?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned().into());
        }
        Ok(Self { library, journal: place.join("journal") })
    }

    /// The environment variables of a start over `root`, whose journal is empty. `lies`: a pattern
    /// of paths whose syncs claim success and do nothing.
    pub fn variables(&self, root: &Path, lies: Option<&str>) -> Outcome<Vec<(&'static str, PathBuf)>> {
        std::fs::write(&self.journal, [])?;
        let mut variables = vec![
            ("LD_PRELOAD", self.library.clone()),
            ("FAULTS_ROOT", root.to_owned()),
            ("FAULTS_JOURNAL", self.journal.clone()),
        ];
        variables.extend(lies.map(|lies| ("FAULTS_LIES", PathBuf::from(lies))));
        Ok(variables)
    }
}

/// A record of the journal.
struct Record<'a> {
    kind: u32,
    name: &'a str,
    second: &'a str,
    file: u64,
    at: u64,
    size: u64,
    bytes: &'a [u8],
}

/// The records of a journal. A kill may have torn the last one.
fn records(journal: &[u8]) -> Vec<Record<'_>> {
    let mut records = Vec::new();
    let mut rest = journal;
    while let Some((head, behind)) = rest.split_at_checked(RECORD_SIZE) {
        let four = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let eight = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let (kind, size) = (four(0), eight(32));
        let length = if kind == WRITTEN { size as usize } else { 0 };
        let Some((name, behind)) = behind.split_at_checked(four(4) as usize) else { break };
        let Some((second, behind)) = behind.split_at_checked(four(8) as usize) else { break };
        let Some((bytes, behind)) = behind.split_at_checked(length) else { break };
        let (name, second) = (text(name), text(second));
        records.push(Record { kind, name, second, file: eight(16), at: eight(24), size, bytes });
        rest = behind;
    }
    records
}

fn text(name: &[u8]) -> &str {
    std::str::from_utf8(name).expect("paths of the server are ASCII")
}

const OPENED: u32 = 1;
const WRITTEN: u32 = 2;
const SYNC_BEGINS: u32 = 3;
const SYNC_ENDS: u32 = 4;
const CUT: u32 = 5;
const CLOSED: u32 = 6;
const RENAMED: u32 = 7;
const LINKED: u32 = 8;
const REMOVED: u32 = 9;
const DIRECTORY_REMOVED: u32 = 10;
const DIRECTORY_MADE: u32 = 11;
const DIRECTORY_SYNC_BEGINS: u32 = 12;

/// Open files, by their numbers in the journal.
type Files = BTreeMap<u64, (PathBuf, Box<dyn WriteFile>)>;

fn opened<'f>(files: &'f mut Files, record: &Record<'_>) -> Result<&'f mut Box<dyn WriteFile>, &'static str> {
    files.get_mut(&record.file).map(|(_, file)| file).ok_or("the file is not open")
}

/// See the head of the file.
pub struct Twin {
    root: PathBuf,
    sim: Sim,
    /// When files were written last, nanoseconds since 1970, by their paths on the simulated disk.
    /// Transaction logs of SSTables know these times. A name that goes keeps its time here, because
    /// a power cut may bring the name back.
    modified: BTreeMap<PathBuf, u64>,
}

impl Twin {
    /// Of an empty directory.
    pub fn new(root: &Path, seed: u64) -> Self {
        Self { root: root.to_owned(), sim: Sim::new(seed), modified: BTreeMap::new() }
    }

    fn path(&self, name: &str) -> Outcome<PathBuf> {
        Ok(Path::new(DATA).join(Path::new(name).strip_prefix(&self.root)?))
    }

    /// Repeats what a process has done, which has ended. Gives how many changes that were.
    pub fn replay(&mut self, recorder: &Recorder) -> Outcome<usize> {
        let journal = std::fs::read(&recorder.journal)?;
        let records = records(&journal);
        let ended: BTreeSet<u64> = records.iter().filter(|record| record.kind == SYNC_ENDS).map(|r| r.size).collect();
        let mut files = Files::new();
        for record in &records {
            let is_ended = ended.contains(&record.size);
            self.repeat(record, is_ended, &mut files)
                .map_err(|error| format!("journal, {} {} {}: {error}", record.kind, record.name, record.second))?;
        }
        Ok(records.len())
    }

    /// `is_ended`: a sync that begins here came to its end.
    fn repeat(&mut self, record: &Record<'_>, is_ended: bool, files: &mut Files) -> Outcome {
        let disk = self.sim.env().disk;
        let path = || self.path(record.name);
        match record.kind {
            OPENED => {
                let path = path()?;
                let truncates = record.at == 1 || !disk.exists(&path);
                let file = if truncates { disk.create(&path)? } else { disk.open_write(&path)? };
                files.insert(record.file, (path, file));
            }
            WRITTEN => opened(files, record)?.write_at(record.bytes, record.at)?,
            SYNC_BEGINS if is_ended => {
                let file = opened(files, record)?;
                file.preallocate(record.at)?;
                file.sync_data()?;
            }
            CUT => opened(files, record)?.set_len(record.at)?,
            CLOSED => {
                let closed = files.remove(&record.file);
                self.modified.extend(closed.map(|(path, _)| (path, record.at)));
            }
            RENAMED | LINKED => {
                let (from, to) = (path()?, self.path(record.second)?);
                let change = if record.kind == RENAMED { disk.rename(&from, &to) } else { disk.hard_link(&from, &to) };
                change?;
                let modified = self.modified.get(&from).copied();
                self.modified.extend(modified.map(|modified| (to, modified)));
            }
            REMOVED => disk.remove_file(&path()?)?,
            DIRECTORY_REMOVED => disk.remove_dir_all(&path()?)?,
            DIRECTORY_MADE => disk.create_dir(&path()?)?,
            DIRECTORY_SYNC_BEGINS if is_ended => disk.sync_dir(&path()?)?,
            SYNC_BEGINS | SYNC_ENDS | DIRECTORY_SYNC_BEGINS => {}
            other => return Err(format!("no kind of change: {other}").into()),
        }
        Ok(())
    }

    /// The power goes; the directory holds what is left afterwards.
    pub fn cut(&self) -> Outcome {
        self.sim.power_cut();
        std::fs::remove_dir_all(&self.root)?;
        self.write(Path::new(DATA), &self.root)
    }

    fn write(&self, from: &Path, to: &Path) -> Outcome {
        let disk = self.sim.env().disk;
        std::fs::create_dir_all(to)?;
        for entry in disk.list_dir(from)? {
            let (from, to) = (from.join(&entry.name), to.join(&entry.name));
            if entry.is_dir {
                self.write(&from, &to)?;
            } else {
                std::fs::write(&to, disk.read_all(&from, FILE_MAX)?)?;
                if let Some(nanos) = self.modified.get(&from) {
                    let file = std::fs::File::options().write(true).open(&to)?;
                    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_nanos(*nanos))?;
                }
            }
        }
        Ok(())
    }

    /// Whether the directory is what the journals say: nothing was changed by a call that the
    /// library does not see. Reserved space at the end of a file counts for nothing.
    pub fn check(&self) -> Outcome {
        self.check_directory(Path::new(DATA), &self.root)
    }

    fn check_directory(&self, twin: &Path, real: &Path) -> Outcome {
        let disk = self.sim.env().disk;
        let mut names: Vec<String> = Vec::new();
        for entry in std::fs::read_dir(real)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        let entries = disk.list_dir(twin)?;
        let in_twin: Vec<&String> = entries.iter().map(|entry| &entry.name).collect();
        if names.iter().collect::<Vec<_>>() != in_twin {
            return Err(format!("{}: {names:?}, in the journal {in_twin:?}", real.display()).into());
        }
        for entry in &entries {
            let (twin, real) = (twin.join(&entry.name), real.join(&entry.name));
            if entry.is_dir {
                self.check_directory(&twin, &real)?;
            } else if content(std::fs::read(&real)?) != content(disk.read_all(&twin, FILE_MAX)?) {
                return Err(format!("{} differs from the journal", real.display()).into());
            }
        }
        Ok(())
    }
}

/// Without zeros at the end.
fn content(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(length);
    bytes
}
