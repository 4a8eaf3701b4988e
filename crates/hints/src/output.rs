//! A hint file that is being written.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use env::{Disk, WriteFile};

use crate::blocks::BLOCK_SIZE;
use crate::descriptor::Descriptor;
use crate::files::HintFile;
use crate::found_files::write_checksum;
use crate::reader::Position;

pub(crate) struct Output {
    pub descriptor: Descriptor,
    directory: PathBuf,
    file: Box<dyn WriteFile>,
    /// CRC-32 of all written bytes.
    crc: crc32fast::Hasher,
    /// Bytes written.
    pub size: u64,
    /// Bytes that a sync has covered: head and whole entries. 0 before the first hints.
    synced: u64,
}

impl Output {
    /// Begins a file.
    pub fn create(disk: &dyn Disk, directory: &Path, descriptor: Descriptor) -> io::Result<Self> {
        let mut head = Vec::new();
        descriptor.encode(&mut head);
        let file = disk.create(&directory.join(descriptor.file_name()))?;
        let (crc, directory) = (crc32fast::Hasher::new(), directory.to_owned());
        let mut output = Self { descriptor, directory, file, crc, size: 0, synced: 0 };
        // the head is durable before any hint: a file with a broken head has never held one
        match output.put(&head).and_then(|()| output.file.sync_data()) {
            Ok(()) => Ok(output),
            Err(error) => {
                output.give_up(disk);
                Err(error)
            }
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.crc.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Writes entries from the front of `entries` until the file has `size_max` bytes. Gives how
    /// many bytes of them were written: whole entries.
    pub fn append(&mut self, entries: &[u8], size_max: u64) -> io::Result<usize> {
        let mut written = 0;
        let mut block = Vec::new();
        while written < entries.len() && (written == 0 || self.size < size_max) {
            let rest = entries.get(written..).expect("not behind the end");
            let room = usize::try_from(size_max.saturating_sub(self.size)).unwrap_or(usize::MAX);
            let count =
                entries_within(rest, if self.descriptor.compression.is_some() { BLOCK_SIZE.min(room) } else { room });
            let part = rest.get(..count).expect("entries are whole");
            match &self.descriptor.compression {
                None => self.put(part)?,
                Some(compression) => {
                    block.clear();
                    compression.put_block(&mut block, part)?;
                    self.put(&block)?;
                }
            }
            written += count;
        }
        Ok(written)
    }

    /// Makes the written entries durable, and the name of the file when it is new.
    pub fn sync(&mut self, disk: &dyn Disk) -> io::Result<()> {
        self.file.sync_data()?;
        if self.synced == 0 {
            disk.sync_dir(&self.directory)?;
        }
        self.synced = self.size;
        Ok(())
    }

    /// Closes the file, and writes its checksum: nothing is written to it any more.
    pub fn finish(self, disk: &dyn Disk) -> HintFile {
        let file = HintFile {
            descriptor: self.descriptor,
            size: self.size,
            sent: Position::default(),
            taken: BTreeSet::new(),
        };
        if let Err(error) = write_checksum(disk, &self.directory, &file.descriptor, self.crc.finalize()) {
            // the next start writes the checksum
            tracing::warn!(file = file.descriptor.file_name(), %error, "a hint file has no checksum yet");
        }
        file
    }

    /// Gives a file up after an error: bytes that were synced stay, others are cut off. None:
    /// nothing stays.
    pub fn give_up(mut self, disk: &dyn Disk) -> Option<HintFile> {
        let path = self.directory.join(self.descriptor.file_name());
        if self.synced == 0 {
            drop(self.file);
            if let Err(error) = disk.remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "a hint file without hints cannot be removed");
            }
            return None;
        }
        if let Err(error) = self.file.set_len(self.synced).and_then(|()| self.file.sync_data()) {
            tracing::warn!(path = %path.display(), %error, "the end of a hint file cannot be cut off; readers stop there");
        }
        Some(HintFile {
            descriptor: self.descriptor,
            size: self.synced,
            sent: Position::default(),
            taken: BTreeSet::new(),
        })
    }
}

/// Bytes of whole entries at the front of `entries`: of the first, and of those behind it that end
/// within `room` bytes.
fn entries_within(entries: &[u8], room: usize) -> usize {
    let mut end = 0;
    while let Some(size) = entries.get(end..).and_then(|rest| rest.first_chunk::<4>()) {
        let next = end + u32::from_be_bytes(*size) as usize + crate::entry::ENTRY_OVERHEAD;
        assert!(next <= entries.len(), "a buffer holds whole entries");
        if end > 0 && next > room {
            break;
        }
        end = next;
    }
    assert!(end > 0 || entries.is_empty(), "a buffer begins with a whole entry");
    end
}
