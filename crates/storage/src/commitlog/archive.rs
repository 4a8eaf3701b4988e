//! Archiving: a command is run for each segment that is full, and a start can bring archived ones
//! back (Cassandra's `CommitLogArchiver`).
//!
//! A segment is handed to the command once it is synced and nothing is written to it any more, and
//! is not removed before the command has ended. When that fails, the segment's file stays until a
//! command succeeds: one that failed is tried once more where that of another segment has
//! succeeded, since the archive is there again, and otherwise now and then; so are those that a
//! start finds. A segment that was archived before it was found may go also where the command fails
//! now (see `ledger`). Archives are often links, so files are not recycled. Commands run on the
//! archiver's own thread, at a start on the starting one, and at the end on that which ends the
//! log: one at a time, each for at most [`COMMAND_TIME_MAX`]. A start and an end run none behind
//! one that failed, and a start begins with none after [`START_TIME_MAX`].
//!
//! A plain `cp` or `ln` is carried out here where the machine has no such program, as a container
//! may have none: the file that asks for it is then one that Cassandra understands as well.
//!
//! Not here: which of the records are replayed (see `recovery`), the file that says all this (see
//! `config::Archiving`).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use env::sync::MutexGuard;
use env::sync::atomic::Ordering;
use env::{Env, Next, Wake};

use super::format::{self, Header};
use super::ledger::Ledger;
use super::replay::Replay;
use super::segments::TEMPORARY;
use super::{LogError, ReplayPolicy, Segment, Shared, compressed};

/// Longest time of a command. One that takes longer is killed, and has failed.
pub const COMMAND_TIME_MAX: Duration = Duration::from_secs(600);

/// Longest time in which a start begins commands for the segments that it has found, since nobody
/// is served meanwhile. Segments that are in no archive then are left to the archiver.
pub(super) const START_TIME_MAX: Duration = Duration::from_secs(10);

/// How long the archiver stays away while the end of the log waits for its turn.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// The reason of a segment for which the command was not run.
const NOT_TRIED: &str = "it was not tried, since the command has just failed for another segment";

/// Bytes of the longest header: version, id, length and up to 64 KiB of parameters, checksum.
const HEADER_LEN_MAX: u64 = 4 + 8 + 2 + (64 << 10) + 4;

/// Bytes that a copy reads and writes at once.
const COPY_STEP: u64 = 1 << 20;

/// The commands and directories by which segments are archived and restored.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ArchiveOptions {
    /// `archive_command` by words, with `%path` and `%name`; empty: nothing is archived.
    pub command: Vec<String>,
    /// `restore_command` by words, with `%from` and `%to`; empty: there is none.
    pub restore_command: Vec<String>,
    /// `restore_directories`: the segments in them are restored at a start.
    pub restore_directories: Vec<PathBuf>,
}

/// The fate of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum ArchiveState {
    /// The segment is not full yet.
    #[default]
    NotYet,
    /// The command is to be run, or runs.
    Waits,
    /// There is nothing to do, or it was done.
    Settled,
    /// The command failed: the file of the segment stays.
    Failed,
}

impl ArchiveOptions {
    fn is_archiving(&self) -> bool {
        !self.command.is_empty()
    }

    fn archive(&self, env: &Env, path: &Path) -> Result<(), String> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        run(env, &self.command, &[("%path", &path.to_string_lossy()), ("%name", &name)])
    }

    /// Whether a plain command (see [`plain`]) has made what it makes of a segment before: `ln`
    /// fails then.
    fn has_made(&self, env: &Env, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let words = substitute_names(&self.command, &[("%path", &path.to_string_lossy()), ("%name", &name)]);
        let made = words.last().filter(|_| plain(&self.command).is_some());
        made.is_some_and(|made| is_equal(env, path, Path::new(made)).unwrap_or(false))
    }
}

/// The words of a command with names put into them.
fn substitute_names(command: &[String], names: &[(&str, &str)]) -> Vec<String> {
    let put = |word: &String| names.iter().fold(word.clone(), |word, (from, to)| word.replace(from, to));
    command.iter().map(put).collect()
}

/// Runs a command after putting names into its words.
fn run(env: &Env, command: &[String], names: &[(&str, &str)]) -> Result<(), String> {
    let words = substitute_names(command, names);
    let Some((program, arguments)) = words.split_first() else { return Err("there is no command".to_owned()) };
    let said = |why: String| format!("{}: {why}", words.join(" "));
    let ended = env.programs.run(program, arguments, COMMAND_TIME_MAX);
    if let (Err(error), Some(plain), [.., from, to]) = (&ended, plain(command), arguments)
        && error.kind() == io::ErrorKind::NotFound
    {
        return plain(env, Path::new(from), Path::new(to)).map_err(|error| said(error.to_string()));
    }
    let ended = ended.map_err(|error| said(error.to_string()))?;
    if ended.is_success { Ok(()) } else { Err(said(format!("{}: {}", ended.status, ended.output))) }
}

/// A function that makes the second file from the first.
type Plain = fn(&Env, &Path, &Path) -> io::Result<()>;

/// The work of a command that copies or links a segment to a file of a name in which nothing is
/// left to the program; None: the command is another one.
pub(super) fn plain(command: &[String]) -> Option<Plain> {
    let (program, arguments) = command.split_first()?;
    let (is_forced, from, to) = match arguments {
        [from, to] => (false, from, to),
        [flag, from, to] if flag == "-f" => (true, from, to),
        _ => return None,
    };
    let is_named = match from.as_str() {
        // with another end the name could be that of a directory, in which the file is to lie; and
        // %to stays as it is when a segment is archived: each would replace the one before
        "%path" => to.ends_with("/%name"),
        "%from" => to == "%to",
        _ => false,
    };
    match (program.as_str(), is_forced) {
        ("cp" | "/bin/cp" | "/usr/bin/cp", _) if is_named => Some(copy),
        ("ln" | "/bin/ln" | "/usr/bin/ln", false) if is_named => Some(link),
        _ => None,
    }
}

/// Makes a copy, which has its name once it is whole and durable. It replaces a file of that name,
/// and does not write into it: the file may be another name of the original.
fn copy(env: &Env, from: &Path, to: &Path) -> io::Result<()> {
    let temporary = temporary_of(to);
    let copied = copy_bytes(env, from, &temporary).and_then(|()| env.disk.rename(&temporary, to));
    if copied.is_err() {
        // half a copy takes room; the error that is told is the first one
        let _ = env.disk.remove_file(&temporary);
    }
    copied.and_then(|()| env.disk.sync_dir(parent_directory(to)))
}

/// The name that a segment has until it is whole.
fn temporary_of(path: &Path) -> PathBuf {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(TEMPORARY);
    temporary.into()
}

fn copy_bytes(env: &Env, from: &Path, to: &Path) -> io::Result<()> {
    let (source, mut copy) = (env.disk.open_read(from)?, env.disk.create(to)?);
    let mut at = 0;
    while at < source.len() {
        let mut piece = vec![0; (source.len() - at).min(COPY_STEP) as usize];
        source.read_at(&mut piece, at)?;
        copy.write_all(&piece)?;
        at += piece.len() as u64;
    }
    copy.sync_data()
}

/// Whether two files have the same bytes.
fn is_equal(env: &Env, one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (env.disk.open_read(one)?, env.disk.open_read(other)?);
    let (mut at, mut is_equal) = (0, one.len() == other.len());
    while is_equal && at < one.len() {
        let mut piece = vec![0; (one.len() - at).min(COPY_STEP) as usize];
        let mut beside = piece.clone();
        one.read_at(&mut piece, at)?;
        other.read_at(&mut beside, at)?;
        is_equal = piece == beside;
        at += piece.len() as u64;
    }
    Ok(is_equal)
}

fn link(env: &Env, from: &Path, to: &Path) -> io::Result<()> {
    env.disk.hard_link(from, to)?;
    env.disk.sync_dir(parent_directory(to))
}

/// The directory in which a file is.
fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Prepares a replay: archives the segments that were found, and then brings back those in the
/// restore directories.
pub(super) fn before_replay(
    env: &Env,
    directory: &Path,
    options: &ArchiveOptions,
    policy: ReplayPolicy,
) -> Result<Ledger, LogError> {
    let mut ledger = Ledger::read(&*env.disk, directory)?;
    if options.is_archiving() {
        // a torn end is cut first: in an archive nobody would know it for one
        let replay = Replay::open(env, directory, policy)?;
        let found: Vec<(u64, PathBuf)> = replay.used().map(|(id, path)| (id, path.to_owned())).collect();
        found.iter().for_each(|(id, _)| ledger.find(*id));
        // segments that were archived before are archived again, the newest first: a power cut may
        // have taken what a command had made, and not synced
        let (archived, others): (Vec<_>, Vec<_>) = found.iter().partition(|(_, path)| ledger.has(path));
        let begun = env.clock.monotonic_nanos();
        for (_, path) in others.into_iter().chain(archived.into_iter().rev()) {
            let since = Duration::from_nanos(env.clock.monotonic_nanos().saturating_sub(begun));
            match since < START_TIME_MAX {
                true => archive_found(env, options, &mut ledger, path),
                false => ledger.put_off(path),
            }
        }
    }
    options.restore_directories.iter().try_for_each(|from| restore(env, directory, options, from))?;
    Ok(ledger)
}

/// Archives a segment that a start has found. Where that fails its file stays, unless the segment
/// was archived before. Behind one that failed no other is tried: while the archive cannot be
/// reached a command may take its longest time for each, and the node would not start for hours.
fn archive_found(env: &Env, options: &ArchiveOptions, ledger: &mut Ledger, path: &Path) {
    let is_tried = ledger.failed().next().is_none();
    let archived = if is_tried { options.archive(env, path) } else { Err(NOT_TRIED.to_owned()) };
    let Err(why) = archived else { return ledger.add(&*env.disk, path) };
    if ledger.has(path) || options.has_made(env, path) {
        tracing::info!(%why, "a segment found at the start was not archived again");
        return;
    }
    tracing::error!(
        %why, path = %path.display(),
        "archiving a segment of the commit log that was found at the start failed: its file stays"
    );
    ledger.fail(&*env.disk, path, env.clock.monotonic_nanos());
}

/// Marks segments that a start has found and that are in no archive yet: their files stay.
pub(super) fn mark_failed(ledger: &Ledger, segments: &mut BTreeMap<u64, Segment>) {
    for id in ledger.failed() {
        if let Some(segment) = segments.get_mut(&id) {
            segment.archive = ArchiveState::Failed;
        }
    }
}

fn restore(env: &Env, directory: &Path, options: &ArchiveOptions, from: &Path) -> Result<(), LogError> {
    let disk = &*env.disk;
    disk.create_dir_all(from).map_err(LogError::io(from))?;
    for entry in disk.list_dir(from).map_err(LogError::io(from))? {
        let source = from.join(&entry.name);
        let half = entry.name.strip_suffix(TEMPORARY).and_then(format::parse_file_name);
        if half.is_some() {
            tracing::warn!(path = %source.display(), "a copy of a segment was not ended, and is not restored");
            continue;
        }
        let refused = |why: String| LogError::NotRestored { path: source.clone(), why };
        let header = archived_header(env, &source).map_err(refused)?;
        let target = directory.join(format::versioned_file_name(header.version, header.id));
        if disk.exists(&target) {
            continue;
        }
        // under another name until it is whole: half a segment that a command which was cut off has
        // left would be taken for one that was restored before
        let temporary = temporary_of(&target);
        if disk.exists(&temporary) {
            disk.remove_file(&temporary).map_err(LogError::io(&temporary))?;
        }
        let names = [("%from", &*source.to_string_lossy()), ("%to", &*temporary.to_string_lossy())];
        run(env, &options.restore_command, &names).map_err(refused)?;
        let synced = disk.open_write(&temporary).and_then(|mut file| file.sync_data());
        synced.and_then(|()| disk.rename(&temporary, &target)).map_err(LogError::io(&temporary))?;
        tracing::info!(segment = header.id, from = %source.display(), "restored a segment of the commit log");
    }
    disk.sync_dir(directory).map_err(LogError::io(directory))
}

/// The header of a file in a restore directory, which must be what its name says.
fn archived_header(env: &Env, path: &Path) -> Result<Header, String> {
    let file = env.disk.open_read(path).map_err(|error| error.to_string())?;
    let mut start = vec![0; file.len().min(HEADER_LEN_MAX) as usize];
    file.read_at(&mut start, 0).map_err(|error| error.to_string())?;
    let header = format::read_header(&start).ok_or("it has no readable header of a commit log segment")?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if format::parse_file_name(&name).is_some_and(|named| named != (header.version, header.id)) {
        return Err(format!("it is segment {} of version {} by its header", header.id, header.version));
    }
    if !format::VERSIONS_READ.contains(&header.version) {
        return Err(format!("version {} of commit log segments is not read", header.version));
    }
    if !header.is_plain() {
        compressed::compressor(&header).map_err(|what| format!("segments with {what} are not read"))?;
    }
    Ok(header)
}

/// Starts the archiver, if there is something for it to do.
pub(super) fn start(shared: &Arc<Shared>, allocator: Wake) -> Option<Wake> {
    shared.archiving()?;
    let (tasks, shared) = (shared.env.tasks.clone(), Arc::clone(shared));
    Some(tasks.background("commitlog-archiver", Box::new(move || shared.archive_next(&allocator))))
}

impl Shared {
    fn archiving(&self) -> Option<&ArchiveOptions> {
        self.options.archive.as_ref().filter(|options| options.is_archiving())
    }

    /// Whether files of segments may have other names, under which nothing may be written.
    pub(super) fn has_archive(&self) -> bool {
        self.options.archive.is_some()
    }

    /// Called when a segment is full and synced, or given up: it is archived.
    pub(super) fn note_full(&self, id: u64) {
        if self.archiving().is_some()
            && let Some(segment) = self.lock().segments.get_mut(&id)
        {
            segment.archive = ArchiveState::Waits;
        }
    }

    /// Notes with which segment this run of the node begins, for restores to a point in time. A
    /// node that never archives notes nothing.
    pub(super) fn note_run(&self, ledger: &mut Ledger, first: u64) -> Result<(), LogError> {
        let disk = &*self.env.disk;
        if self.archiving().is_some() {
            return ledger.begin_run(disk, first);
        }
        let is_restored = self.options.archive.as_ref().is_some_and(|archive| !archive.restore_directories.is_empty());
        if is_restored || ledger.is_kept() { ledger.begin_gap(disk, first) } else { Ok(()) }
    }

    fn archive_next(&self, allocator: &Wake) -> Next {
        if self.is_ending.load(Ordering::Relaxed) {
            return Next::After(PAUSE);
        }
        let _turn = self.archiver.lock().expect("no step of the archiver panics");
        let waits = {
            let state = self.lock();
            let waits = state.segments.iter().find(|(_, segment)| segment.archive == ArchiveState::Waits);
            waits.map(|(id, segment)| (*id, segment.path().to_owned()))
        };
        let (now, is_stopped) = (self.env.clock.monotonic_nanos(), self.durability.is_stopped());
        let mut ledger = self.ledger();
        ledger.write_again(&*self.env.disk);
        let failed = || if is_stopped { None } else { ledger.next_failed(now) };
        let Some((id, path)) = waits.or_else(failed) else {
            return ledger.wait(now).filter(|_| !is_stopped).map_or(Next::Idle, Next::After);
        };
        drop(ledger);
        let state = self.archive(&path);
        self.note_archived(id, &path, state);
        allocator.wake();
        Next::Again
    }

    /// A command has ended. Where it failed before, and nobody needed the segment any more, the log
    /// has forgotten the segment: its file goes now.
    fn note_archived(&self, id: u64, path: &Path, state: ArchiveState) {
        // a step of the allocator may have taken the segment out, and may put it back
        let _between_steps = self.allocator();
        if let Some(segment) = self.lock().segments.get_mut(&id) {
            segment.archive = state;
            return;
        }
        if state != ArchiveState::Settled {
            return;
        }
        let disk = &*self.env.disk;
        let removed = disk.remove_file(path).and_then(|()| disk.sync_dir(&self.directory));
        if let Err(error) = removed {
            tracing::warn!(%error, path = %path.display(), "an archived segment of the commit log cannot be removed");
        }
    }

    /// Runs the command for a segment, which may take long: only `archiver` is held.
    fn archive(&self, path: &Path) -> ArchiveState {
        let Some(options) = self.archiving() else { return ArchiveState::Settled };
        match options.archive(&self.env, path) {
            Ok(()) => {
                self.ledger().add(&*self.env.disk, path);
                ArchiveState::Settled
            }
            Err(why) => self.note_failed(path, &why),
        }
    }

    fn note_failed(&self, path: &Path, why: &str) -> ArchiveState {
        tracing::error!(%why, path = %path.display(), "archiving a segment of the commit log failed: its file stays");
        self.ledger().fail(&*self.env.disk, path, self.env.clock.monotonic_nanos());
        ArchiveState::Failed
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no step under the ledger's mutex panics")
    }

    /// At the end, when everything is flushed: what was not archived yet is, up to the first
    /// segment for which the command fails (see [`archive_found`]). Gives the segments whose files
    /// may go.
    pub(super) fn archive_rest(&self, mut segments: BTreeMap<u64, Segment>) -> BTreeMap<u64, Segment> {
        let mut has_failed = false;
        for segment in segments.values_mut() {
            let is_new = segment.archive == ArchiveState::NotYet && segment.is_used;
            if segment.archive == ArchiveState::Waits || is_new {
                segment.archive = match has_failed {
                    true => self.note_failed(segment.path(), NOT_TRIED),
                    false => self.archive(segment.path()),
                };
                has_failed = segment.archive == ArchiveState::Failed;
            }
        }
        let kept = segments.values().filter(|segment| segment.archive == ArchiveState::Failed);
        self.ledger().forget(&*self.env.disk, kept.map(Segment::path));
        segments.retain(|_, segment| segment.archive != ArchiveState::Failed);
        segments
    }
}
