//! A file beside the segments that says which of them were archived, and which an archive has to
//! have.
//!
//! A start archives again what it finds, and a command that does not replace what is there (a
//! script that refuses names it knows) fails then for a segment that was archived before. The file
//! tells that failure from one of a segment that is in no archive: a file of the first kind may go,
//! one of the second kind is all that there is, and has its turn first.
//!
//! A restore to a point in time has to know whether the archive lacks segments in the middle. Their
//! ids tell it of one run of the node, from a start to the next, in which they are consecutive. The
//! next run begins with a greater id, the time of its start. So the file says with which segment a
//! run begins, and which one was the last before it; or that nothing was archived before it for a
//! while. `helenus backup log` brings that with the segments (`backup::log`).
//!
//! The file has these lines; others are passed over. It is replaced as a whole, and Cassandra does
//! not look at it.
//!
//! ```text
//! run FIRST              a run begins with this segment; nothing is known of the time before
//! run FIRST after LAST   the last segment before the run that held something
//! run FIRST gap FROM     from this segment on, up to the run, not all was archived
//! gap FROM               from this segment on not all is archived: there was no command
//! archived NAME          an archived segment that may still be here, and the newest archived one
//! flushed NAME           a segment that is here for the archive alone: all of it is in SSTables
//! ```
//!
//! Runs of which no segment is here are forgotten: their lines were brought with the segments.
//!
//! A start replays nothing of a flushed segment. SSTables tell what they hold of the log only as
//! long as they are there: where all rows of a table were deleted and compactions have removed the
//! deletions too, the replay of an old segment would bring such rows back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use env::Disk;

use super::{LogError, format};

/// The file's name.
const NAME: &str = "archived_segments";
/// Most bytes of the file: it has a line for each segment that is here.
const LEN_MAX: u64 = 16 << 20;

/// After a failure no segment that failed is tried again for so long, unless the command succeeds
/// for another one.
pub(super) const RETRY: Duration = Duration::from_secs(300);

/// The log before a run.
#[derive(Clone, Copy)]
enum LogBeforeRun {
    Unknown,
    /// Its last segment that held something.
    Last(u64),
    /// From this segment on not all was archived.
    Gap(u64),
}

/// The content of the file.
#[derive(Default)]
pub(super) struct Ledger {
    directory: PathBuf,
    /// The first segments of runs.
    runs: BTreeMap<u64, LogBeforeRun>,
    /// From this segment on not all is archived.
    gap: Option<u64>,
    /// The names of archived segments that may still be here, and of the newest one, by id.
    archived: BTreeMap<u64, String>,
    /// The names of segments that are here for the archive alone, by id.
    flushed: BTreeMap<u64, String>,
    /// The segments that this start has found and that hold something.
    found: BTreeSet<u64>,
    /// The first segment that this start has found and that is in no archive, where the start
    /// archives nothing. None: there is none, or the start archives.
    unarchived: Option<u64>,
    /// The files of segments whose command has failed since the start, and of those for which the
    /// start had no time.
    failed: BTreeMap<u64, PathBuf>,
    /// The last command succeeded: one of those that failed may be tried again.
    works: bool,
    /// When the last command that failed ended, in nanoseconds of the monotonic clock.
    failed_at: u64,
    /// The segment that was tried again last.
    tried: u64,
    /// The file does not say all of this, because it could not be written.
    is_unwritten: bool,
}

impl Ledger {
    pub(super) fn read(disk: &dyn Disk, directory: &Path) -> Result<Self, LogError> {
        let mut ledger = Self { directory: directory.to_owned(), ..Self::default() };
        let path = directory.join(NAME);
        if disk.exists(&path) {
            let bytes = disk.read_all(&path, LEN_MAX).map_err(LogError::io(&path))?;
            String::from_utf8_lossy(&bytes).lines().for_each(|line| ledger.take(line));
        }
        Ok(ledger)
    }

    fn take(&mut self, line: &str) {
        let number = |text: &str| text.parse::<u64>().ok();
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["run", first] => self.runs.extend(number(first).zip(Some(LogBeforeRun::Unknown))),
            ["run", first, "after", last] => self.runs.extend(number(first).zip(number(last).map(LogBeforeRun::Last))),
            ["run", first, "gap", from] => self.runs.extend(number(first).zip(number(from).map(LogBeforeRun::Gap))),
            ["archived", name] => self.archived.extend(named(Path::new(name))),
            ["flushed", name] => self.flushed.extend(named(Path::new(name))),
            ["gap", from] => self.gap = number(from),
            _ => {}
        }
    }

    /// Whether there is something to say.
    pub(super) fn is_kept(&self) -> bool {
        !self.runs.is_empty() || !self.archived.is_empty() || self.gap.is_some()
    }

    /// A start has found a segment that holds something, and archives it.
    pub(super) fn find(&mut self, id: u64) {
        self.found.insert(id);
    }

    /// A run of the node begins with a segment, and archives.
    pub(super) fn begin_run(&mut self, disk: &dyn Disk, first: u64) -> Result<(), LogError> {
        let before = self.before();
        let ends: Vec<u64> = self.runs.keys().skip(1).copied().chain([u64::MAX]).collect();
        let (mut ends, found) = (ends.into_iter(), &self.found);
        self.runs.retain(|first, _| {
            let end = ends.next().unwrap_or(u64::MAX);
            found.range(*first..end).next().is_some()
        });
        self.runs.insert(first, before);
        self.gap = None;
        self.write(disk)
    }

    /// A start that does not archive has found these segments, which hold something. Their files
    /// go once they are flushed, also that of the one that was not full when the node died.
    pub(super) fn leave_unarchived(&mut self, mut segments: impl Iterator<Item = u64>) {
        self.unarchived = segments.find(|id| !self.archived.contains_key(id));
    }

    /// A run of the node begins with a segment, and does not archive.
    pub(super) fn begin_gap(&mut self, disk: &dyn Disk, first: u64) -> Result<(), LogError> {
        self.gap.get_or_insert(self.unarchived.unwrap_or(first));
        self.write(disk)
    }

    /// The log before the run that begins.
    fn before(&self) -> LogBeforeRun {
        if let Some(from) = self.gap {
            return LogBeforeRun::Gap(from);
        }
        let last = self.archived.keys().next_back().max(self.found.last()).copied();
        match (self.runs.last_key_value(), last) {
            // the run before this one held nothing
            (Some((first, before)), last) if last.is_none_or(|last| last < *first) => *before,
            (_, Some(last)) => LogBeforeRun::Last(last),
            (_, None) => LogBeforeRun::Unknown,
        }
    }

    /// Whether a segment was archived.
    pub(super) fn has(&self, segment: &Path) -> bool {
        named(segment).is_some_and(|(id, _)| self.archived.contains_key(&id))
    }

    /// Notes that a segment was archived. Where that cannot be written, the segment's file may stay
    /// longer than it has to.
    pub(super) fn add(&mut self, disk: &dyn Disk, segment: &Path) {
        let Some((id, name)) = named(segment) else { return };
        self.works = true;
        self.failed.remove(&id);
        if self.archived.insert(id, name).is_some() {
            return;
        }
        let (directory, newest) = (&self.directory, self.archived.keys().next_back().copied());
        let is_here = |name: &String| disk.exists(&directory.join(name.as_str()));
        self.archived.retain(|id, name| Some(*id) == newest || is_here(name));
        self.flushed.retain(|_, name| is_here(name));
        self.note(disk, "cannot note that a segment of the commit log was archived");
    }

    /// The command of a segment has failed, at a time in nanoseconds of the monotonic clock. A file
    /// that somebody has removed meanwhile is not tried again.
    pub(super) fn fail(&mut self, disk: &dyn Disk, segment: &Path, now: u64) {
        (self.works, self.failed_at) = (false, now);
        let Some((id, _)) = named(segment) else { return };
        if disk.exists(segment) {
            self.failed.insert(id, segment.to_owned());
        } else {
            self.failed.remove(&id);
        }
    }

    /// A start has no time for a segment that it has found. If the segment is in no archive, the
    /// archiver has its time for it: as soon as it runs, unless the command has failed for another
    /// one.
    pub(super) fn put_off(&mut self, segment: &Path) {
        let Some((id, _)) = named(segment).filter(|(id, _)| !self.archived.contains_key(id)) else { return };
        self.works |= self.failed.is_empty();
        self.failed.insert(id, segment.to_owned());
    }

    /// The log forgets segments: all that they hold is flushed. Of those whose command has failed
    /// it is noted; others are archived by now, and their files go. Where the note cannot be
    /// written it is tried again later, and a start before may replay them.
    pub(super) fn forget<'a>(&mut self, disk: &dyn Disk, segments: impl IntoIterator<Item = &'a Path>) {
        let before = self.flushed.len();
        let kept = segments.into_iter().filter_map(named).filter(|(id, _)| self.failed.contains_key(id));
        self.flushed.extend(kept);
        if self.flushed.len() > before {
            self.note(disk, "cannot note that a segment of the commit log is kept for its archive alone");
        }
    }

    /// Writes what could not be written before.
    pub(super) fn write_again(&mut self, disk: &dyn Disk) {
        if self.is_unwritten {
            self.note(disk, "cannot note which segments of the commit log are archived, and which are flushed");
        }
    }

    /// Writes the file where nothing depends on it at once.
    fn note(&mut self, disk: &dyn Disk, failure: &str) {
        if let Err(error) = self.write(disk) {
            tracing::warn!(%error, "{failure}");
        }
    }

    /// The flushed segments that count, of which a start replays nothing. The others are forgotten.
    pub(super) fn flushed(&mut self, counts: impl Fn(u64) -> bool) -> BTreeSet<u64> {
        self.flushed.retain(|id, _| counts(*id));
        self.flushed.keys().copied().collect()
    }

    /// The segments whose command has failed since the start, or was put off.
    pub(super) fn failed(&self) -> impl Iterator<Item = u64> {
        self.failed.keys().copied()
    }

    /// How long no segment that failed is tried again; None: there is none.
    pub(super) fn wait(&self, now: u64) -> Option<Duration> {
        let since = Duration::from_nanos(now.saturating_sub(self.failed_at));
        let rest = if self.works { Duration::ZERO } else { RETRY.saturating_sub(since) };
        (!self.failed.is_empty()).then_some(rest)
    }

    /// A segment that is to be tried again, and its file. Each in turn, so that one that always
    /// fails holds up no other. None: there is none, or the last command failed a while ago.
    pub(super) fn next_failed(&mut self, now: u64) -> Option<(u64, PathBuf)> {
        self.wait(now).filter(Duration::is_zero)?;
        let behind = self.failed.range(self.tried.saturating_add(1)..).next();
        let (id, path) = behind.or_else(|| self.failed.first_key_value())?;
        self.tried = *id;
        Some((*id, path.clone()))
    }

    fn write(&mut self, disk: &dyn Disk) -> Result<(), LogError> {
        let mut text = String::new();
        // writing to a string does not fail
        for (first, before) in &self.runs {
            let _ = match before {
                LogBeforeRun::Unknown => writeln!(text, "run {first}"),
                LogBeforeRun::Last(last) => writeln!(text, "run {first} after {last}"),
                LogBeforeRun::Gap(from) => writeln!(text, "run {first} gap {from}"),
            };
        }
        if let Some(from) = self.gap {
            let _ = writeln!(text, "gap {from}");
        }
        for name in self.archived.values() {
            let _ = writeln!(text, "archived {name}");
        }
        for name in self.flushed.values() {
            let _ = writeln!(text, "flushed {name}");
        }
        let path = self.directory.join(NAME);
        let written = disk.replace_file(&path, text.as_bytes()).map_err(LogError::io(&path));
        self.is_unwritten = written.is_err();
        written
    }
}

/// The id and the name of a segment.
fn named(segment: &Path) -> Option<(u64, String)> {
    let name = segment.file_name()?.to_str()?;
    let (_, id) = format::parse_file_name(name)?;
    Some((id, name.to_owned()))
}
