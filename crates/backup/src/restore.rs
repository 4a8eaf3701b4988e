//! Makes the data directory of a node again, with all its tables as they were in a backup, those of
//! the node itself included: it starts with its host id, its tokens and its schema, in a ring
//! whose topology is as it was.
//!
//! Everything is fetched into a directory beside the data directory; when all files are there and
//! their digests are right, one rename makes it the data directory. If the restore is killed and
//! begun again, it fetches the missing files; files that a restore of another backup has left are
//! removed first.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use env::{Env, Part};

use crate::manifest::{Entry, Manifest, Table, check_name};
use crate::runs::Runs;
use crate::store::Store;
use crate::{Result, copy, log, runs};

/// Most files that are fetched at one time.
const AT_ONCE: usize = 4;
/// Name of the data directory in that of a node.
const DATA: &str = "data";
/// Directories that a node has beside its data by default, with writes of the time that a restore
/// undoes: hints would be delivered after the start, and captured changes and saved keys tell of
/// rows that are not there any more.
const DIRECTORIES_BESIDE_DATA: [&str; 4] = ["commitlog", "hints", "cdc_raw", "saved_caches"];
/// Names that may lie in these: the notes of a node that archives, which say what an archive lacks
/// and nothing of the rows, and what a file system of its own begins with.
const NO_CONTENT: [&str; 2] = [runs::NOTE_FILE, "lost+found"];
/// Name of the directory of fetched files until all of them are there.
const FETCHED: &str = "restoring";
/// Digits of a table's id in the name of its directory.
const TABLE_ID_DIGITS: usize = 32;
/// Most directories within directories of fetched files: keyspace, table, index.
const DEPTH_MAX: usize = 16;
/// Name of the directory of archived segments.
const SEGMENTS: &str = "commitlog-restored";
/// The file that tells a start which segments are replayed, and up to when.
const PROPERTIES: &str = "commitlog_archiving.properties";
/// Its first line, a command that Cassandra can run too; a node copies by itself where there is no
/// `cp`.
const RESTORE_COMMAND: &str = "restore_command=/bin/cp -f %from %to\n";
/// The beginnings of lines of the file, beside its directory.
const UNDONE: &str = "restore_undone=";
const POINT: &str = "restore_point_in_time=";
/// A time so soon after the backup, in microseconds, is that of the backup, rounded up to a second.
const ROUNDED_MICROS: i64 = 1_000_000;
/// Most bytes of the properties file: the restores that it names are counted too.
const PROPERTIES_SIZE_MAX: u64 = 1 << 20;

/// A backup of a node, and the place where the node is made again.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name of the backup.
    pub tag: String,
    /// The node's host id.
    pub host_id: String,
    /// The directory of the node: it must have no data.
    pub directory: PathBuf,
    /// Writes up to this time are replayed from archived segments; None: the backup alone is
    /// restored.
    pub point_in_time: Option<PointInTime>,
    /// Segments are replayed also where the archive has none of the time at which the backup was
    /// taken, or lacks some in the middle: writes after the backup are lacking then.
    pub accepts_gap: bool,
}

/// A time up to which writes are replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PointInTime {
    /// The time in the form of `restore_point_in_time`.
    pub text: String,
    /// The time in microseconds since 1970.
    pub micros: i64,
}

/// The amount that was restored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Number of tables.
    pub tables: usize,
    /// Number of files, and their bytes.
    pub files: (usize, u64),
    /// Number of segments of the commit log that are replayed, and the properties file that says
    /// so; it belongs beside cassandra.yaml for one start.
    pub log: Option<(usize, PathBuf)>,
    /// The first segment with writes that are not in the backup, where a later time was asked for
    /// and the archive has neither this segment nor a later one: the backup alone is restored.
    /// None: the archive has one.
    pub nothing_from: Option<u64>,
    /// The directory of the data, which must be the first of `data_file_directories`, and
    /// `local_system_data_file_directory` where that is set.
    pub data: PathBuf,
}

/// Restores a node. `told` is called with numbers of bytes that were fetched.
pub fn restore(env: &Env, store: &dyn Store, request: &Request, told: &(dyn Fn(u64) + Sync)) -> Result<Summary> {
    check_name(&request.tag)?;
    check_name(&request.host_id)?;
    let manifest = Manifest::read(store, &Manifest::key(&request.tag, &request.host_id))?;
    let mut nothing_from = None;
    if let Some(time) = &request.point_in_time {
        check_time(&manifest, time)?;
        segments_directory(&request.directory)?;
        // before hours of fetching
        let segments = log::segments(store, &request.host_id)?;
        check_segments(segments.len(), &request.host_id)?;
        if !is_time_of(&manifest, time) {
            let archived = log::ids(&segments);
            if !request.accepts_gap {
                check_beginning(&manifest, &archived)?;
                check_middle(&manifest, time, &archived, &log::runs(store, &request.host_id)?)?;
            }
            nothing_from = manifest.log_segment.filter(|wanted| archived.range(*wanted..).next().is_none());
        }
    }
    let data = request.directory.join(DATA);
    if let Some(keyspace) = keyspace_in(env, &request.directory) {
        return Err(format!(
            "{} is a data directory: it holds the keyspace {keyspace}. Name the directory of a new node; its data \
             will lie in {DATA} there",
            request.directory.display()
        ));
    }
    check_empty(env, &data, &[])?;
    DIRECTORIES_BESIDE_DATA.iter().try_for_each(|name| check_empty(env, &request.directory.join(name), &NO_CONTENT))?;
    remove_empty_directory(env, &request.directory, &data)?;
    clear_properties(env, request)?;
    let fetched = request.directory.join(FETCHED);
    let named = files_of(&manifest, &fetched);
    if env.disk.exists(&fetched) {
        remove_others(env, &fetched, &named, 0)?;
    }
    fetch(env, store, &manifest, &fetched, told)?;
    let log = match &request.point_in_time {
        Some(time) => Some(restore_log(env, store, request, time, manifest.log_from)?),
        None => None,
    };
    let wrong = |error: std::io::Error| format!("{}: {error}", data.display());
    // takes the place of an empty directory alone: a node may have been started here meanwhile
    env.disk.rename(&fetched, &data).and_then(|()| env.disk.sync_dir(&request.directory)).map_err(wrong)?;
    let files = (manifest.files().count(), manifest.bytes());
    Ok(Summary { tables: manifest.tables.len(), files, log, nothing_from, data })
}

/// Refuses a time that lies before the backup, which has later writes.
fn check_time(manifest: &Manifest, time: &PointInTime) -> Result<()> {
    let Some(taken_at) = manifest.taken_at.filter(|taken_at| time.micros.div_euclid(1000) < *taken_at) else {
        return Ok(());
    };
    let shown = jiff::Timestamp::from_millisecond(taken_at).map_or(String::new(), |time| format!("{time:.3}"));
    Err(format!("backup {} was taken at {shown}, after that time: use an earlier one", manifest.tag))
}

/// Refuses an archive without segments.
fn check_segments(count: usize, host_id: &str) -> Result<()> {
    match count {
        0 => Err(format!("the store has no segment of the commit log of {host_id}")),
        _ => Ok(()),
    }
}

/// Whether a time is that of the backup: no segment is needed.
fn is_time_of(manifest: &Manifest, time: &PointInTime) -> bool {
    let is_soon = |taken_at: i64| time.micros <= taken_at.saturating_mul(1000).saturating_add(ROUNDED_MICROS);
    manifest.taken_at.is_some_and(is_soon)
}

/// Refuses an archive that began after the backup was taken: writes between would be in neither.
///
/// The segment that is written while a snapshot is taken is archived when it is full, or when the
/// node stops or starts. Where it is not in the archive and a later one is, nothing was archived at
/// that time. A backup of an earlier version has no note of the segment. Ids of segments are times,
/// milliseconds since 1970, so that an archive that begins after the backup is known even so.
fn check_beginning(manifest: &Manifest, archived: &BTreeSet<u64>) -> Result<()> {
    let taken_at = manifest.taken_at.and_then(|millis| u64::try_from(millis).ok());
    let (wanted, later) = match (manifest.log_segment, taken_at) {
        (Some(wanted), _) if archived.contains(&wanted) => return Ok(()),
        (Some(wanted), _) => (format!("segment {wanted}"), archived.range(wanted..).next()),
        (None, Some(taken_at)) => ("its segment".to_owned(), archived.first().filter(|first| **first > taken_at)),
        (None, None) => return Ok(()),
    };
    let Some(later) = later else { return Ok(()) };
    Err(format!(
        "the archive of the commit log does not reach back to backup {}: {wanted}, the first with writes that are not \
         in the backup, is not in it, and the first later one is {later}. Writes between would be lost: use a later \
         backup, restore without --point-in-time, or go on without these writes (--accept-gap)",
        manifest.tag
    ))
}

/// Refuses an archive that lacks segments behind the backup and in front of others. Writes of the
/// segments that it has may follow ones that it lacks. Of a segment with an id that is a later time
/// than the point nothing is wanted, since it was written afterwards.
fn check_middle(manifest: &Manifest, time: &PointInTime, archived: &BTreeSet<u64>, runs: &Runs) -> Result<()> {
    let taken_at = manifest.taken_at.and_then(|millis| u64::try_from(millis).ok());
    let Some(from) = manifest.log_segment.or(taken_at) else { return Ok(()) };
    let until = u64::try_from(time.micros.div_euclid(1000)).unwrap_or(0);
    let Some((one, next)) = runs::lacking(archived, runs, from, until) else { return Ok(()) };
    Err(format!(
        "the archive of the commit log lacks segments between {one} and {next}, which may have writes from before \
         that time: the node archived nothing for a while, as in the first run after a restore, or they were lost. \
         Bring them where they are still there (helenus backup log), use a later backup, restore without \
         --point-in-time, or go on without these writes (--accept-gap)"
    ))
}

/// Refuses a directory that has more than these names. One that cannot be read is not empty.
fn check_empty(env: &Env, directory: &Path, no_content: &[&str]) -> Result<()> {
    let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
    let entries = env.disk.list_dir_if_exists(directory).map_err(wrong)?.unwrap_or_default();
    match entries.iter().all(|entry| no_content.contains(&entry.name.as_str())) {
        true => Ok(()),
        false => Err(format!("{} is not empty: a node is restored into a new directory", directory.display())),
    }
}

/// Removes an empty directory of data. One that is a symbolic link, or a directory that is mounted
/// there, is refused: the rename that makes fetched files the data would fail behind hours of
/// fetching, or take the place of the link, so that the data would lie on another disk than the
/// operator wants. A mount is known by the removal, which fails for it whatever is mounted.
fn remove_empty_directory(env: &Env, directory: &Path, data: &Path) -> Result<()> {
    let wrong = |error: std::io::Error| format!("{}: {error}", data.display());
    let entries = env.disk.list_dir_if_exists(directory).map_err(wrong)?.unwrap_or_default();
    // a link to a directory that is not there is no name that exists
    if !entries.iter().any(|entry| entry.name == DATA) {
        return Ok(());
    }
    let elsewhere = || {
        format!(
            "{} is a link or a mounted file system, and files are fetched beside it and renamed: name a directory on \
             that disk instead, and the directory {DATA} in it in data_file_directories",
            data.display()
        )
    };
    let above = env.disk.real_path(directory).map_err(wrong)?;
    if env.disk.real_path(data).ok() != Some(above.join(DATA)) {
        return Err(elsewhere());
    }
    env.disk.remove_dir_all(data).map_err(|error| match error.kind() {
        std::io::ErrorKind::ResourceBusy => elsewhere(),
        _ => wrong(error),
    })
}

/// A keyspace of a directory that is a data directory: one with a directory of a table.
fn keyspace_in(env: &Env, directory: &Path) -> Option<String> {
    let entries = |directory: &Path| env.disk.list_dir(directory).unwrap_or_default().into_iter();
    let is_table = |name: &str| {
        let id = name.rsplit_once('-').map(|(_, id)| id);
        id.is_some_and(|id| id.len() == TABLE_ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    entries(directory).filter(|entry| entry.is_dir && entry.name != DATA && entry.name != FETCHED).find_map(
        |keyspace| {
            let mut tables = entries(&directory.join(&keyspace.name));
            tables.any(|table| table.is_dir && is_table(&table.name)).then_some(keyspace.name)
        },
    )
}

/// The paths to which the files of a backup are fetched.
fn files_of(manifest: &Manifest, fetched: &Path) -> BTreeSet<PathBuf> {
    let of_table = |table: &Table| {
        let directory = fetched.join(&table.keyspace).join(table.directory());
        table.files.iter().map(move |entry| directory.join(&entry.name)).collect::<Vec<_>>()
    };
    manifest.tables.iter().flat_map(of_table).collect()
}

/// Removes what a restore of another backup has left below a directory: all but the named files and
/// the directories above them. Otherwise the SSTables of that backup would become live too.
fn remove_others(env: &Env, directory: &Path, named: &BTreeSet<PathBuf>, depth: usize) -> Result<()> {
    let wrong = |path: &Path| {
        let shown = path.display().to_string();
        move |error: std::io::Error| format!("{shown}: {error}")
    };
    if depth > DEPTH_MAX {
        return Err(format!("{}: too many directories within each other", directory.display()));
    }
    for entry in env.disk.list_dir(directory).map_err(wrong(directory))? {
        let path = directory.join(&entry.name);
        // paths are ordered by their parts: those below a directory follow it
        let has_named = || named.range(path.clone()..).next().is_some_and(|next| next.starts_with(&path));
        match (entry.is_dir, has_named()) {
            (true, true) => remove_others(env, &path, named, depth + 1)?,
            (true, false) => env.disk.remove_dir_all(&path).map_err(wrong(&path))?,
            (false, _) if named.contains(&path) => {}
            (false, _) => env.disk.remove_file(&path).map_err(wrong(&path))?,
        }
    }
    Ok(())
}

fn fetch(env: &Env, store: &dyn Store, manifest: &Manifest, fetched: &Path, told: &(dyn Fn(u64) + Sync)) -> Result<()> {
    let mut waiting: VecDeque<(&Entry, PathBuf)> = VecDeque::new();
    let mut directories = Vec::new();
    for table in &manifest.tables {
        let directory = fetched.join(&table.keyspace).join(table.directory());
        directories.push(directory.clone());
        waiting.extend(table.files.iter().map(|entry| (entry, directory.join(&entry.name))));
    }
    directories.extend(waiting.iter().filter_map(|(_, path)| path.parent().map(Path::to_owned)));
    directories.sort();
    directories.dedup();
    let wrong = |directory: &Path| {
        let shown = directory.display().to_string();
        move |error: std::io::Error| format!("{shown}: {error}")
    };
    for directory in &directories {
        env.disk.create_dir_durable(directory).map_err(wrong(directory))?;
    }
    let (waiting, failure) = (Mutex::new(waiting), Mutex::new(None::<String>));
    let next = || match failure.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
        true => waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front(),
        false => None,
    };
    let part = || -> Part<'_> {
        Box::new(|| {
            while let Some((entry, path)) = next() {
                if let Err(why) = copy::fetch(env, store, entry, &path) {
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
                }
                told(entry.size);
            }
        })
    };
    env.tasks.run_in_parallel("restore", (0..AT_ONCE).map(|_| part()).collect());
    if let Some(why) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(why);
    }
    directories.iter().try_for_each(|directory| env.disk.sync_dir(directory).map_err(wrong(directory)))
}

/// Removes the properties file of an earlier restore, whose time is another one. A file that was
/// not written by a restore, beside a cassandra.yaml in the same directory, stays. Err: this
/// restore would write over such a file.
fn clear_properties(env: &Env, request: &Request) -> Result<()> {
    let path = request.directory.join(PROPERTIES);
    let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
    let is_ours = match env.disk.read_all(&path, PROPERTIES_SIZE_MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        // no restore writes a file as long as that
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => false,
        read => std::str::from_utf8(&read.map_err(wrong)?).is_ok_and(is_of_restore),
    };
    if is_ours {
        return env.disk.remove_file(&path).map_err(wrong);
    }
    match request.point_in_time {
        None => Ok(()),
        Some(_) => Err(format!(
            "{} is there, and the restore writes a file of this name: move it away, and back after the first start",
            path.display()
        )),
    }
}

/// Whether a restore has written a properties file: it has the lines of [`restore_log`] and nothing
/// else. With a line of the operator (an `archive_command`, a comment) it is the operator's own,
/// also where it began as a copy of ours.
fn is_of_restore(text: &str) -> bool {
    let Some(lines) = text.strip_prefix(RESTORE_COMMAND).and_then(|rest| rest.strip_suffix('\n')) else {
        return false;
    };
    let end_of_directory = format!("/{SEGMENTS}");
    let is_directory = |line: &str| {
        let named = line.strip_prefix("restore_directories=");
        named.is_some_and(|named| named.ends_with(&end_of_directory) && !named.contains(','))
    };
    match lines.split('\n').collect::<Vec<_>>()[..] {
        [directory, point] => is_directory(directory) && point.starts_with(POINT),
        [directory, undone, point] => is_directory(directory) && undone.starts_with(UNDONE) && point.starts_with(POINT),
        _ => false,
    }
}

/// The directory of archived segments, and its text in the properties file. Err: the file cannot
/// hold the text. A start would look elsewhere, find nothing to replay, and serve without the
/// writes.
fn segments_directory(directory: &Path) -> Result<(PathBuf, String)> {
    let directory = std::path::absolute(directory.join(SEGMENTS)).map_err(|error| error.to_string())?;
    let is_held = |text: &&str| !text.contains(|letter: char| matches!(letter, ',' | '\\') || letter.is_control());
    match directory.to_str().filter(is_held).map(str::to_owned) {
        Some(text) => Ok((directory, text)),
        None => Err(format!(
            "{}: restore_directories of {PROPERTIES} cannot hold this name: name a directory without comma, backslash \
             and line break",
            directory.display()
        )),
    }
}

/// Fetches the archived segments, and writes the properties file by which a start replays them.
/// `from`: of earlier segments the backup has all.
fn restore_log(
    env: &Env,
    store: &dyn Store,
    request: &Request,
    time: &PointInTime,
    from: Option<u64>,
) -> Result<(usize, PathBuf)> {
    let (directory, shown) = segments_directory(&request.directory)?;
    let segments = log::segments(store, &request.host_id)?;
    check_segments(segments.len(), &request.host_id)?;
    let count = log::fetch(env, store, &segments, from, &directory)?;
    let undone: Vec<String> = log::restores_before(store, &request.host_id, time.micros)?
        .iter()
        .map(|restored| format!("{},{}", restored.micros, restored.first_segment))
        .collect();
    let undone = match undone.is_empty() {
        true => String::new(),
        false => format!("{UNDONE}{}\n", undone.join(";")),
    };
    let text = format!("{RESTORE_COMMAND}restore_directories={shown}\n{undone}{POINT}{}\n", time.text);
    let path = request.directory.join(PROPERTIES);
    let written = env.disk.replace_file(&path, text.as_bytes());
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((count, path))
}
