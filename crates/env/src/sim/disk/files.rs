//! The simulated disk's open files.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::{File, Op, Shared, lock, no_space};
use crate::rare::{Rare, happens};
use crate::{Random, ReadFile, WriteFile};

pub(super) struct Reader {
    shared: Arc<Shared>,
    life: u64,
    path: PathBuf,
    file: File,
    length: u64,
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>, life: u64, path: PathBuf, file: File) -> Self {
        let length = lock(&file).live().len() as u64;
        Reader { shared, life, path, file, length }
    }

    /// The whole content of the file.
    pub(super) fn whole(&self) -> io::Result<Vec<u8>> {
        self.shared.begin(self.life, Op::Read, &self.path, &[])?;
        Ok(lock(&self.file).live().to_vec())
    }
}

impl ReadFile for Reader {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.shared.begin(self.life, Op::Read, &self.path, &[offset, buffer.len() as u64])?;
        let inode = lock(&self.file);
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let content = start.checked_add(buffer.len()).and_then(|end| inode.live().get(start..end));
        buffer.copy_from_slice(content.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn read_at_nowait(&self, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
        let cold_percent = lock(&self.shared.state).cold_percent;
        if (cold_percent > 0 && self.shared.random.chance(cold_percent)) || happens(Rare::ReadWouldBlock) {
            return Ok(false);
        }
        self.read_at(buffer, offset).map(|()| true)
    }

    fn advise_sequential(&self) {}

    fn drop_cache(&self, _offset: u64, _length: u64) {}
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    life: u64,
    path: PathBuf,
    file: File,
    position: u64,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, life: u64, path: PathBuf, file: File) -> Self {
        Writer { shared, life, path, file, position: 0 }
    }

    /// The length up to which a file may grow, `end` at most.
    fn reachable(&self, end: u64) -> u64 {
        let length = lock(&self.file).live().len() as u64;
        let growth = end.saturating_sub(length);
        end - growth + lock(&self.shared.state).room(growth)
    }

    /// Writes a part of the data, whose length the seed draws, for a write that fails.
    fn write_part(&self, data: &[u8], offset: usize) {
        let part = self.shared.random.below(data.len() as u64 + 1);
        let part = usize::try_from(part).expect("not longer than the data");
        lock(&self.file).write(offset, data.get(..part).expect("not longer than the data"));
    }
}

impl WriteFile for Writer {
    fn write_all(&mut self, data: &[u8]) -> io::Result<()> {
        self.write_at(data, self.position)?;
        self.position += data.len() as u64;
        Ok(())
    }

    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let begun = self.shared.begin(self.life, Op::Write, &self.path, &[offset, data.len() as u64]);
        if let Err(error) = begun {
            if error.raw_os_error().is_some() {
                self.write_part(data, start);
            }
            return Err(error);
        }
        let end = offset + data.len() as u64;
        let fits = usize::try_from(self.reachable(end).saturating_sub(offset)).expect("not longer than the data");
        lock(&self.file).write(start, data.get(..fits.min(data.len())).expect("not longer than the data"));
        if fits < data.len() { Err(no_space()) } else { Ok(()) }
    }

    fn sync_data(&mut self) -> io::Result<()> {
        let begun = self.shared.begin(self.life, Op::Sync, &self.path, &[]);
        let delay = lock(&self.shared.state).sync_delay;
        if !delay.is_zero() {
            self.shared.clock.spend(delay);
        }
        match begun {
            Ok(()) => {
                let is_lost = lock(&self.shared.state).loses_sync(&self.path);
                if !is_lost {
                    lock(&self.file).sync();
                }
            }
            Err(error) => {
                if error.raw_os_error().is_some() {
                    // no dice where nothing is kept: the runs of a seed stay as they were
                    let keeps = lock(&self.shared.state).failed_sync_keeps;
                    match keeps {
                        0 => lock(&self.file).fail_sync(),
                        percent => lock(&self.file).fail_sync_in_part(percent, &self.shared.random),
                    }
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        self.shared.begin(self.life, Op::SetLen, &self.path, &[length])?;
        if self.reachable(length) < length {
            return Err(no_space());
        }
        lock(&self.file).set_len(usize::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?);
        Ok(())
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        if lock(&self.file).live().len() as u64 >= length {
            return Ok(());
        }
        self.set_len(length)
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn drop_cache(&mut self) {}
}
