//! The simulated disk: files in memory, each name and each sector either durable or pending.
//!
//! A power cut draws one of three fates: all pending changes are lost, all survive, or each by
//! chance. A pending change is a 512-byte sector of a file, a file's length, or a change of one
//! directory (a rename within a directory is one change). Pending changes survive independently of
//! each other and of their order: changes that ext4 orders by its journal are not ordered here.
//!
//! One mutex guards the whole disk: only one thread runs in a simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::clock::SimClock;
use super::faults::{ENOSPC, Fault, Op, Stall};
use super::inode::{Inode, Loss};
use super::lock;
use super::random::SimRandom;
use super::trace::Trace;
use crate::Random;

mod files;
mod names;

/// The simulated disk's controls.
pub struct SimDisk {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    random: SimRandom,
    clock: Arc<SimClock>,
    trace: Arc<Trace>,
}

struct State {
    life: u64,
    directories: BTreeMap<PathBuf, Directory>,
    locks: BTreeSet<PathBuf>,
    faults: Vec<Fault>,
    stalls: Vec<Stall>,
    capacity: Option<u64>,
    cold_percent: u64,
    sync_delay: Duration,
    /// Percentage of the sectors of a failed sync that are on the platter.
    failed_sync_keeps: u64,
    /// Part of the paths of files whose syncs are lost; None: no sync is lost.
    lost_syncs: Option<String>,
    counts: BTreeMap<Op, u64>,
    /// Operations left until the power is lost; None: it is not going to be.
    power_left: Option<u64>,
}

type File = Arc<Mutex<Inode>>;

#[derive(Clone)]
enum Entry {
    File(File),
    Directory,
}

/// One change of a directory: names set or removed together.
type Change = Vec<(String, Option<Entry>)>;

#[derive(Default)]
struct Directory {
    /// False after the removal. The inode is kept because a power cut may bring the file back.
    exists: bool,
    live: BTreeMap<String, Entry>,
    durable: BTreeMap<String, Entry>,
    pending: Vec<Change>,
}

impl SimDisk {
    pub(super) fn new(random: SimRandom, clock: Arc<SimClock>, trace: Arc<Trace>) -> Self {
        let mut directories = BTreeMap::new();
        let mut root = Directory { exists: true, ..Directory::default() };
        root.change(vec![("data".to_owned(), Some(Entry::Directory))]);
        root.sync();
        directories.insert(PathBuf::from("/"), root);
        directories.insert(PathBuf::from(super::DATA), Directory { exists: true, ..Directory::default() });
        let state = State {
            life: 0,
            directories,
            locks: BTreeSet::new(),
            faults: Vec::new(),
            stalls: Vec::new(),
            capacity: None,
            cold_percent: 0,
            sync_delay: Duration::ZERO,
            failed_sync_keeps: 0,
            lost_syncs: None,
            counts: BTreeMap::new(),
            power_left: None,
        };
        SimDisk { shared: Arc::new(Shared { state: Mutex::new(state), random, clock, trace }) }
    }

    /// Adds a fault; faults are tried in the order of injection.
    pub fn inject(&self, fault: Fault) {
        lock(&self.shared.state).faults.push(fault);
    }

    /// Lets operations take long; stalls are tried in the order in which they were added. On a
    /// machine that is alone they move the time; a machine among others is kept busy by them.
    pub fn stall(&self, stall: Stall) {
        lock(&self.shared.state).stalls.push(stall);
    }

    /// Removes all faults and stalls.
    pub fn heal(&self) {
        let mut state = lock(&self.shared.state);
        state.faults.clear();
        state.stalls.clear();
    }

    /// Replaces the disk by an empty one: no former content comes back, even after a power cut.
    pub fn replace(&self) {
        let mut state = lock(&self.shared.state);
        let data = Path::new(super::DATA);
        state.directories.retain(|path, _| data.starts_with(path));
        state.directories.insert(data.to_owned(), Directory { exists: true, ..Directory::default() });
    }

    /// Limits the bytes that all files may hold; beyond, writes fail with `ENOSPC`.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        lock(&self.shared.state).capacity = bytes;
    }

    /// Percentage of the reads without waiting that find nothing in the cache.
    pub fn set_cold_percent(&self, percent: u64) {
        lock(&self.shared.state).cold_percent = percent;
    }

    /// Virtual time that each sync takes.
    pub fn set_sync_delay(&self, delay: Duration) {
        lock(&self.shared.state).sync_delay = delay;
    }

    /// Sets the percentage of the sectors of a failed sync that are on the platter. At the start
    /// it is 0: none are.
    pub fn set_failed_sync_keeps(&self, percent: u64) {
        lock(&self.shared.state).failed_sync_keeps = percent;
    }

    /// Syncs of files whose path contains `path` claim success and make nothing durable, like a
    /// disk that never writes its cache back; None: no sync is lost.
    pub fn lose_syncs(&self, path: Option<&str>) {
        lock(&self.shared.state).lost_syncs = path.map(str::to_owned);
    }

    /// Writes a sector of a file over another one too, on the platter and in the cache. False: the
    /// file does not have both.
    pub fn misdirect(&self, path: &Path, from: usize, to: usize) -> bool {
        let state = lock(&self.shared.state);
        state.file(path).is_ok_and(|file| lock(&file).misdirect(from, to))
    }

    /// Makes a sector of a file as if it was never written, on the platter and in the cache.
    /// False: the file has no such sector.
    pub fn make_stale(&self, path: &Path, sector: usize) -> bool {
        let state = lock(&self.shared.state);
        state.file(path).is_ok_and(|file| lock(&file).make_stale(sector))
    }

    /// Flips one bit of a file, counted from its start; false when there is no such file.
    pub fn flip_bit(&self, path: &Path, bit: usize) -> bool {
        let state = lock(&self.shared.state);
        let file = state.file(path);
        file.is_ok_and(|file| {
            lock(&file).flip_bit(bit);
            true
        })
    }

    /// Has the machine lose its power in the middle of a step: after `operations` further
    /// operations of the disk. From then on everything fails, until the test starts a new life
    /// with [`super::Sim::power_cut`].
    pub fn power_cut_after(&self, operations: u64) {
        lock(&self.shared.state).power_left = Some(operations);
    }

    /// How often an operation was asked for.
    pub fn count(&self, op: Op) -> u64 {
        lock(&self.shared.state).counts.get(&op).copied().unwrap_or(0)
    }

    /// The disk as the present life of the machine sees it.
    pub(super) fn handle(&self) -> names::Handle {
        names::Handle { life: lock(&self.shared.state).life, shared: self.shared.clone() }
    }

    /// Invalidates all handles, releases locks, and with `power_cut` draws the fate of the pending
    /// changes.
    pub(super) fn end_life(&self, power_cut: bool) {
        let mut state = lock(&self.shared.state);
        state.power_left = None;
        state.end_life(power_cut, &self.shared.random);
    }
}

impl Shared {
    /// Begins an operation, as every one does: it is counted and traced, and refused for handles
    /// of earlier lives and by faults.
    fn begin(&self, life: u64, op: Op, path: &Path, numbers: &[u64]) -> io::Result<()> {
        let name = path.to_string_lossy();
        let stalled = lock(&self.state).stalls.iter_mut().find_map(|stall| stall.count_operation(op, &name));
        if let Some(duration) = stalled {
            self.clock.spend(duration);
        }
        self.trace.record(&name, &[op as u64]);
        self.trace.record("", numbers);
        let mut state = lock(&self.state);
        if state.life != life {
            return Err(io::Error::other("this handle belongs to a process that is gone"));
        }
        *state.counts.entry(op).or_default() += 1;
        match &mut state.power_left {
            Some(0) => {
                state.end_life(true, &self.random);
                return Err(io::Error::other("the power is gone"));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        match state.faults.iter_mut().find_map(|fault| fault.count_operation(op, &name)) {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Ok(()),
        }
    }
}

impl State {
    fn directory(&self, path: &Path) -> io::Result<&Directory> {
        self.directories.get(path).filter(|directory| directory.exists).ok_or_else(not_found)
    }

    fn directory_mut(&mut self, path: &Path) -> io::Result<&mut Directory> {
        self.directories.get_mut(path).filter(|directory| directory.exists).ok_or_else(not_found)
    }

    fn file(&self, path: &Path) -> io::Result<File> {
        let (parent, name) = split(path)?;
        match self.directory(parent)?.live.get(&name) {
            Some(Entry::File(file)) => Ok(file.clone()),
            Some(Entry::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(not_found()),
        }
    }

    /// Bytes of all files that have a name.
    fn used(&self) -> u64 {
        let entries = self.directories.values().filter(|directory| directory.exists).flat_map(|d| d.live.values());
        let files: BTreeMap<usize, u64> = entries
            .filter_map(|entry| match entry {
                Entry::File(file) => Some((Arc::as_ptr(file).addr(), lock(file).live().len() as u64)),
                Entry::Directory => None,
            })
            .collect();
        files.values().sum()
    }

    /// Whether a sync of a file claims success and does nothing.
    fn loses_sync(&self, path: &Path) -> bool {
        self.lost_syncs.as_ref().is_some_and(|part| path.to_string_lossy().contains(part))
    }

    /// Number of bytes, of `wanted` ones, by which a file may still grow.
    fn room(&self, wanted: u64) -> u64 {
        self.capacity.map_or(wanted, |capacity| capacity.saturating_sub(self.used()).min(wanted))
    }

    fn end_life(&mut self, power_cut: bool, random: &SimRandom) {
        self.life += 1;
        self.locks.clear();
        if power_cut {
            let loss = match random.below(4) {
                0 => Loss::All,
                1 => Loss::Nothing,
                _ => Loss::ByChance,
            };
            self.power_cut(loss, random);
        }
    }

    fn power_cut(&mut self, loss: Loss, random: &SimRandom) {
        for directory in self.directories.values_mut() {
            directory.power_cut(loss, random);
        }
        // A directory is there when the names leading to it are; parents sort before their
        // children.
        let mut reachable = BTreeSet::from([PathBuf::from("/")]);
        for (path, directory) in &self.directories {
            if reachable.contains(path) {
                let children = directory.durable.iter().filter(|(_, entry)| matches!(entry, Entry::Directory));
                reachable.extend(children.map(|(name, _)| path.join(name)));
            }
        }
        self.directories.retain(|path, _| reachable.contains(path));
        for path in reachable {
            self.directories.entry(path).or_default().exists = true;
        }
        let entries: Vec<Entry> = self.directories.values().flat_map(|d| d.live.values().cloned()).collect();
        for entry in entries {
            if let Entry::File(file) = entry {
                lock(&file).power_cut(loss, random);
            }
        }
    }
}

impl Directory {
    fn change(&mut self, change: Change) {
        apply(&mut self.live, &change);
        self.pending.push(change);
    }

    fn sync(&mut self) {
        self.pending.clear();
        self.durable = self.live.clone();
    }

    fn power_cut(&mut self, loss: Loss, random: &SimRandom) {
        for change in std::mem::take(&mut self.pending) {
            if loss.keeps(random) {
                apply(&mut self.durable, &change);
            }
        }
        self.live = self.durable.clone();
    }
}

fn apply(names: &mut BTreeMap<String, Entry>, change: &Change) {
    for (name, entry) in change {
        match entry {
            Some(entry) => drop(names.insert(name.clone(), entry.clone())),
            None => drop(names.remove(name)),
        }
    }
}

/// A path's directory and name.
fn split(path: &Path) -> io::Result<(&Path, String)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name.to_string_lossy().into_owned())),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

fn no_space() -> io::Error {
    io::Error::from_raw_os_error(ENOSPC)
}
