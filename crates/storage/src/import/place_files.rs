//! One SSTable brought into a table's directory under a new id: hard links to its files, or copies
//! where there can be no links. Statistics that have to differ are written anew, so that the
//! source stays as it was until it is removed.
//!
//! Agrees with `SSTableReader.moveAndOpenSSTable` and `SSTableImporter.maybeMutateMetadata` (which
//! change the source in its place).

use std::io;
use std::path::Path;

use env::{Disk, Env};
use sstable::{Component, Descriptor, STATISTICS_SIZE_MAX, Statistics, Stats, print_toc};

use crate::error::StorageError;

/// Bytes copied at once.
const COPY_LENGTH: u64 = 1 << 20;

/// The changes that are made to the statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reset {
    /// True: the level of the SSTable becomes 0.
    pub level: bool,
    /// True: the SSTable does not count as repaired any more.
    pub repaired: bool,
    /// The host id whose commit-log intervals are removed: the SSTable held records of another
    /// table of this node, and none of this table. None: they stay.
    pub log_of: Option<[u8; 16]>,
}

/// Brings the files. The files are durable then, but their names are not yet.
pub fn place_files(env: &Env, source: &Descriptor, target: &Descriptor, reset: Reset) -> Result<(), StorageError> {
    let disk = &*env.disk;
    let mut there: Vec<Component> =
        Component::ALL.into_iter().filter(|component| disk.exists(&source.path(*component))).collect();
    for component in there.iter().filter(|component| **component != Component::Toc) {
        let (from, to) = (source.path(*component), target.path(*component));
        match changed(disk, source, *component, reset)? {
            Some(bytes) => write(disk, &to, &bytes).map_err(|error| StorageError::io(&to, &error))?,
            None => link_or_copy(disk, &from, &to).map_err(|error| StorageError::io(&from, &error))?,
        }
    }
    // last, as in every SSTable: with it the others are complete
    if !there.contains(&Component::Toc) {
        there.push(Component::Toc);
    }
    let toc = target.path(Component::Toc);
    write(disk, &toc, print_toc(&there).as_bytes()).map_err(|error| StorageError::io(&toc, &error))
}

/// The new bytes of a component that has to differ from the source.
fn changed(
    disk: &dyn Disk,
    source: &Descriptor,
    component: Component,
    reset: Reset,
) -> Result<Option<Vec<u8>>, StorageError> {
    if component != Component::Statistics {
        return Ok(None);
    }
    let path = source.path(component);
    let bytes = disk.read_all(&path, STATISTICS_SIZE_MAX).map_err(|error| StorageError::io(&path, &error))?;
    let mut statistics = Statistics::read(&bytes.into(), source.version)
        .map_err(|error| StorageError::Corrupt(Box::new(error.of(&path, 0))))?;
    let stats = &mut statistics.stats;
    let state = |stats: &Stats| {
        (stats.level, stats.repaired_at, stats.pending_repair, stats.is_transient, stats.commit_log_intervals.len())
    };
    let was = state(stats);
    if reset.level {
        stats.level = 0;
    }
    if reset.repaired {
        (stats.repaired_at, stats.pending_repair, stats.is_transient) = (0, None, false);
    }
    if reset.log_of.is_some() && stats.originating_host == reset.log_of {
        stats.commit_log_intervals.clear();
    }
    let is_same = was == state(stats);
    if !is_same && !source.version.has_repair_sessions_and_checksums() {
        let why = format!(
            "{} is of level {} and repaired at {}: statistics of its version are not written; import it with --keep-level and --keep-repaired",
            path.display(),
            was.0,
            was.1
        );
        return Err(StorageError::Refused { why });
    }
    Ok((!is_same).then(|| statistics.write(source.version)))
}

/// Replaces the statistics of an SSTable in its place, so that it does not count as repaired any
/// more.
pub fn reset_statistics(env: &Env, descriptor: &Descriptor) -> Result<(), StorageError> {
    let reset = Reset { level: false, repaired: true, log_of: None };
    let Some(bytes) = changed(&*env.disk, descriptor, Component::Statistics, reset)? else { return Ok(()) };
    let path = descriptor.path(Component::Statistics);
    env.disk.replace_file(&path, &bytes).map_err(|error| StorageError::io(&path, &error))
}

fn link_or_copy(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
    let linked = disk.hard_link(from, to).and_then(|()| disk.open_write(to)?.sync_data());
    linked.or_else(|error| {
        tracing::debug!(from = %from.display(), %error, "no hard link can be made: it is copied");
        if disk.exists(to) {
            disk.remove_file(to)?;
        }
        copy(disk, from, to)
    })
}

fn copy(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
    let source = disk.open_read(from)?;
    let mut target = disk.create(to)?;
    let mut buffer = Vec::new();
    let mut offset = 0;
    while offset < source.len() {
        buffer.resize((source.len() - offset).min(COPY_LENGTH) as usize, 0);
        source.read_at(&mut buffer, offset)?;
        target.write_all(&buffer)?;
        offset += buffer.len() as u64;
    }
    target.sync_data()
}

fn write(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = disk.create(path)?;
    file.write_all(bytes)?;
    file.sync_data()
}

/// Removes an SSTable's files, Data.db first: files that a crash leaves are no SSTable any more.
pub fn remove(env: &Env, descriptor: &Descriptor) -> Result<(), StorageError> {
    let directory = &descriptor.directory;
    let sync = || env.disk.sync_dir(directory).map_err(|error| StorageError::io(directory, &error));
    remove_component(env, descriptor, Component::Data)?;
    sync()?;
    Component::ALL.into_iter().try_for_each(|component| remove_component(env, descriptor, component))?;
    sync()
}

fn remove_component(env: &Env, descriptor: &Descriptor, component: Component) -> Result<(), StorageError> {
    let path = descriptor.path(component);
    match env.disk.exists(&path) {
        true => env.disk.remove_file(&path).map_err(|error| StorageError::io(&path, &error)),
        false => Ok(()),
    }
}
