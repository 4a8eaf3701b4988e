//! The file system, through `std::fs` and `rustix`.
//!
//! New files and directories belong to the node alone: files get [`FILE_MODE`], directories
//! [`DIRECTORY_MODE`] (less what the process's umask takes away). A Cassandra that is to read the
//! files runs as the same user, or as a member of the group.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, IoSliceMut, Read, Write};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, FallocateFlags, FlockOperation};
use rustix::io::ReadWriteFlags;

use super::streamed::Streamed;
use crate::{DirEntry, Disk, Lock, ReadFile, WriteFile};

/// Permissions of files: the owner reads and writes, the group reads, nobody else.
pub(super) const FILE_MODE: u32 = 0o640;

/// Permissions of directories: the owner does everything, the group lists and enters, nobody else.
const DIRECTORY_MODE: u32 = 0o750;

pub(super) struct FileSystem;

impl Disk for FileSystem {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        // Linux opens a directory too, and fails at the first read
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(Arc::new(Reader { file, length: metadata.len() }))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(path)?;
        Ok(Box::new(Writer { file, position: 0 }))
    }

    fn create_streamed(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        Ok(Box::new(Streamed::create(path)?))
    }

    fn create_private(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        // a file that is there keeps its mode and may be a link
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Box::new(Writer { file, position: 0 }))
    }

    fn open_write(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let file = OpenOptions::new().write(true).open(path)?;
        Ok(Box::new(Writer { file, position: 0 }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, original: &Path, link: &Path) -> io::Result<()> {
        fs::hard_link(original, link)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(DIRECTORY_MODE).create(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_dir = match entry.file_type() {
                // the directory says so itself: thousands of files are not asked one by one
                Ok(kind) if !kind.is_symlink() => kind.is_dir(),
                // A link to a directory counts as one: data directories are linked to other disks.
                _ => fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir()),
            };
            entries.push(DirEntry { name, is_dir });
        }
        entries.sort();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn modified_millis(&self, path: &Path) -> io::Result<u64> {
        let modified = fs::metadata(path)?.modified()?;
        let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Ok(since.as_millis() as u64)
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn available_space(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn total_space(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
    }

    fn file_system(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.dev())
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(FILE_MODE).open(path)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Box::new(HeldLock { _file: file }))
    }

    fn read_all(&self, path: &Path, size_max: u64) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        File::open(path)?.take(size_max.saturating_add(1)).read_to_end(&mut content)?;
        if content.len() as u64 > size_max {
            let message = format!("{} is larger than {size_max} bytes", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(content)
    }
}

/// `flock` is tied to the open file: closing it releases.
struct HeldLock {
    _file: File,
}

impl Lock for HeldLock {}

struct Reader {
    file: File,
    length: u64,
}

impl ReadFile for Reader {
    fn len(&self) -> u64 {
        self.length
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn read_at_nowait(&self, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            let rest = buffer.get_mut(filled..).expect("filled never passes the buffer's end");
            match rustix::io::preadv2(
                &self.file,
                &mut [IoSliceMut::new(rest)],
                offset + filled as u64,
                ReadWriteFlags::NOWAIT,
            ) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                // A short count also comes when the next page is cold: the next call tells.
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                // Not in the cache, or a file system that cannot say (tmpfs, overlay): let the
                // caller take the other way.
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::OPNOTSUPP) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    fn advise_sequential(&self) {
        // A hint: a file system that does not take it loses nothing.
        let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::Sequential);
    }

    fn advise_wanted(&self, offset: u64, length: u64) {
        if let Some(length) = NonZeroU64::new(length) {
            let _ = rustix::fs::fadvise(&self.file, offset, Some(length), Advice::WillNeed);
        }
    }

    fn drop_cache(&self, offset: u64, length: u64) {
        let _ = rustix::fs::fadvise(&self.file, offset, NonZeroU64::new(length), Advice::DontNeed);
    }
}

/// Reserves space; without support of the file system only the length changes.
pub(super) fn preallocate(file: &File, length: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
            let now = file.metadata()?.len();
            if now < length { file.set_len(length) } else { Ok(()) }
        }
        Err(error) => Err(error.into()),
    }
}

struct Writer {
    file: File,
    position: u64,
}

impl WriteFile for Writer {
    fn write_all(&mut self, data: &[u8]) -> io::Result<()> {
        self.file.write_all(data)?;
        self.position += data.len() as u64;
        Ok(())
    }

    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        preallocate(&self.file, length)
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn drop_cache(&mut self) {
        let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed);
    }
}
