//! An SSTable that comes as its components: the bytes go into files of a new name as they come.

use std::io;
use std::sync::Arc;

use env::{Disk, Env, WriteFile};
use sstable::{Component, Descriptor, STATISTICS_SIZE_MAX, Statistics, Stats, print_toc};

use super::Origin;
use crate::error::StorageError;

/// Bytes below which files are written through the kernel's cache, because opening the SSTable
/// reads them.
const STREAMED_MIN: u64 = 16 << 20;

/// An SSTable that comes.
pub struct WholeSSTable {
    disk: Arc<dyn Disk>,
    target: Descriptor,
    /// The component that is being written. Bytes of components that are not known here, those of
    /// storage-attached indexes, are passed over: their index is made by the receiver.
    current: Option<(Component, Box<dyn WriteFile>)>,
    there: Vec<Component>,
}

impl WholeSSTable {
    pub(super) fn new(env: &Env, target: Descriptor) -> Self {
        Self { disk: Arc::clone(&env.disk), target, current: None, there: Vec::new() }
    }

    /// Begins the component of this name, of `length` bytes. The one before is complete.
    pub fn component(&mut self, name: &str, length: u64) -> Result<(), StorageError> {
        self.end_component()?;
        let known = Component::from_name(name).filter(|component| *component != Component::Toc);
        let Some(component) = known else { return Ok(()) };
        if self.there.contains(&component) {
            return Err(StorageError::Refused { why: format!("{name} of a streamed SSTable came twice") });
        }
        let path = self.target.path(component);
        let made = if length < STREAMED_MIN { self.disk.create(&path) } else { self.disk.create_streamed(&path) };
        let file = made.map_err(|error| StorageError::io(&path, &error))?;
        self.current = Some((component, file));
        self.there.push(component);
        Ok(())
    }

    /// Takes the next bytes of the component.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        let Some((component, file)) = &mut self.current else { return Ok(()) };
        file.write_all(bytes).map_err(|error| StorageError::io(&self.target.path(*component), &error))
    }

    /// The place of the next bytes in the file of the component; None: they are not written.
    pub fn position(&self) -> Option<u64> {
        self.current.as_ref().map(|(_, file)| file.position())
    }

    /// Gives up: removes what was written.
    pub fn abort(mut self) {
        self.current = None;
        for component in self.there {
            let path = self.target.path(component);
            if let Err(error) = self.disk.remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "a part of a streamed SSTable stays behind");
            }
        }
    }

    fn end_component(&mut self) -> Result<(), StorageError> {
        let Some((component, mut file)) = self.current.take() else { return Ok(()) };
        file.sync_data().map_err(|error| StorageError::io(&self.target.path(component), &error))
    }

    /// Called when the last component is complete. Statistics and the table of contents are
    /// written by this node.
    pub(super) fn finish(mut self, origin: Origin, host: Option<[u8; 16]>) -> Result<Descriptor, StorageError> {
        self.end_component()?;
        if let Some(bytes) = self.changed_statistics(origin, host)? {
            let path = self.target.path(Component::Statistics);
            let replaced = self.disk.replace_file(&path, &bytes);
            replaced.map_err(|error| StorageError::io(&path, &error))?;
        }
        // last, as in every SSTable: with it the others are complete
        self.there.push(Component::Toc);
        let toc = self.target.path(Component::Toc);
        let written = self.write_toc(print_toc(&self.there).as_bytes());
        written.map_err(|error| StorageError::io(&toc, &error))?;
        Ok(self.target)
    }

    fn write_toc(&self, content: &[u8]) -> io::Result<()> {
        let mut file = self.disk.create(&self.target.path(Component::Toc))?;
        file.write_all(content)?;
        file.sync_data()
    }

    /// Statistics.db with level and repair state of the stream; None: it has these already.
    fn changed_statistics(&self, origin: Origin, host: Option<[u8; 16]>) -> Result<Option<Vec<u8>>, StorageError> {
        // mistakes of the sender, of which the disk of this node is not to be suspected
        let refused = |why: &str| StorageError::Refused { why: format!("a streamed SSTable {why}") };
        if !self.there.contains(&Component::Statistics) {
            return Err(refused("came without its statistics"));
        }
        let path = self.target.path(Component::Statistics);
        let bytes = self.disk.read_all(&path, STATISTICS_SIZE_MAX).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => refused("has statistics that are too large"),
            _ => StorageError::io(&path, &error),
        })?;
        let mut statistics = Statistics::read(&bytes.into(), self.target.version)
            .map_err(|error| StorageError::Corrupt(Box::new(error.of(&path, 0))))?;
        let stats = &mut statistics.stats;
        let state =
            |stats: &Stats| (stats.level, stats.repaired_at, stats.pending_repair, stats.commit_log_intervals.len());
        let before = state(stats);
        stats.level = origin.level;
        (stats.repaired_at, stats.pending_repair) = (origin.repaired_at, origin.pending_repair);
        // a node that has lost its data gets it back: its log of then is not its log of now
        if host.is_some() && stats.originating_host == host {
            stats.commit_log_intervals.clear();
        }
        let is_same = before == state(stats);
        Ok((!is_same).then(|| statistics.write(self.target.version)))
    }
}
