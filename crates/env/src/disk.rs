//! Disk: files and directories. A caller asks for durability explicitly.
//!
//! What a caller may rely on, here and in the simulator:
//! - a write is durable only after [`WriteFile::sync_data`] returned `Ok`; a failed sync is final,
//!   the data must be written again elsewhere (Linux forgets the dirty pages of a failed sync);
//! - a created, renamed, linked or removed name is durable only after [`Disk::sync_dir`] of its
//!   directory;
//! - rename within one directory is atomic;
//! - a write that was not synced may survive a power cut in any subset of its 512-byte sectors.
//!
//! No file is mapped into memory: a sector that cannot be read would raise SIGBUS, which ends the
//! process, and a page that is not in memory would stop the thread that touches it.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether the process (EMFILE) or the machine (ENFILE) had no file descriptor left. As with a full
/// device, the same call succeeds later, when something has been closed.
pub fn lacks_descriptors(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

/// Alignment for a write without a copy to a file of [`Disk::create_streamed`]: the address of the
/// bytes in memory and their offset in the file must be equal modulo this. No device asks for
/// more.
pub const STREAMED_ALIGNMENT: usize = 4096;

/// A machine's file system.
pub trait Disk: Send + Sync {
    /// Opens an existing file for positioned reads.
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>>;
    /// Creates the file, or truncates an existing one.
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;
    /// Does the work of [`Disk::create`] for a large file that is written from front to back and
    /// will not be read soon: if the file system allows it, its bytes do not pass the kernel's
    /// cache. Only [`WriteFile::sync_data`] brings all of them into the file.
    fn create_streamed(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.create(path)
    }
    /// Opens an existing file for positioned writes; the position of `write_all` starts at 0.
    fn open_write(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;
    /// Renames a file or directory, replacing a file of that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name.
    fn hard_link(&self, original: &Path, link: &Path) -> io::Result<()>;
    /// Removes a file's name.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory and those above it; nothing happens when it exists.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Creates one directory. The directory above must exist, and no file or directory may have
    /// this name.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory with all of its content.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// The entries of a directory, sorted by name.
    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    /// Does the work of [`Disk::list_dir`]. None: there is no such directory. [`Disk::exists`]
    /// cannot tell that, because its answer is also no if the disk fails.
    fn list_dir_if_exists(&self, path: &Path) -> io::Result<Option<Vec<DirEntry>>> {
        match self.list_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            listed => listed.map(Some),
        }
    }

    /// Whether a file or directory of that name exists. The answer is also no if the disk fails.
    fn exists(&self, path: &Path) -> bool;
    /// The path from the root to a file or directory that is there, without symbolic links. (The
    /// simulator has none.)
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        std::path::absolute(path)
    }
    /// When a file was last written, milliseconds since 1970; 0: not known (the simulator keeps no
    /// times).
    fn modified_millis(&self, _path: &Path) -> io::Result<u64> {
        Ok(0)
    }
    /// A file's length in bytes.
    fn file_len(&self, path: &Path) -> io::Result<u64>;
    /// Bytes that this process may still write on the file system that holds `path`.
    fn available_space(&self, path: &Path) -> io::Result<u64>;
    /// Size in bytes of the file system that holds `path`.
    fn total_space(&self, path: &Path) -> io::Result<u64>;
    /// A number of the file system that holds `path`: two paths with the same number share their
    /// free space. The number may change when the machine restarts.
    fn file_system(&self, path: &Path) -> io::Result<u64>;
    /// Takes the exclusive lock of a file, creating it; `WouldBlock`: another process or handle
    /// holds it. Released when it is dropped or the process dies.
    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn Lock>>;
    /// The whole content of a file (also of files in `/proc` and `/sys`, whose lengths are wrong);
    /// `InvalidData` beyond `size_max` bytes.
    fn read_all(&self, path: &Path, size_max: u64) -> io::Result<Vec<u8>>;

    /// Creates a directory and those above it, and makes their names durable, also those that an
    /// earlier call created and failed to sync. Directories above that this process may not open,
    /// because they belong to others, or that cannot be synced, are passed over.
    fn create_dir_durable(&self, path: &Path) -> io::Result<()> {
        self.create_dir_all(path)?;
        self.sync_above(path)
    }

    /// Does the work of `Disk::create_dir_durable` without creating `root`, in which `path` lies.
    /// `NotFound`: `root` does not exist, or is removed at this moment.
    fn create_dir_below(&self, root: &Path, path: &Path) -> io::Result<()> {
        if !path.starts_with(root) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let below: Vec<&Path> = path.ancestors().take_while(|directory| *directory != root).collect();
        for directory in below.into_iter().rev() {
            match self.create_dir(directory) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => created?,
            }
        }
        self.sync_above(path)
    }

    /// Makes the names of a directory and of those above it durable.
    fn sync_above(&self, path: &Path) -> io::Result<()> {
        let above = path.ancestors().skip(1).map(|dir| if dir.as_os_str().is_empty() { Path::new(".") } else { dir });
        for dir in above {
            match self.sync_dir(dir) {
                Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput) => {
                }
                synced => synced?,
            }
        }
        Ok(())
    }

    /// Creates a file that only its owner can read and write. A file of this name is replaced.
    fn create_private(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.create(path)
    }

    /// Replaces a small file as one durable step: a synced `<name>.tmp` renamed over it, then the
    /// directory synced.
    fn replace_file(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".tmp");
        let temporary = Path::new(&temporary);
        let mut file = self.create(temporary)?;
        file.write_all(content)?;
        file.sync_data()?;
        drop(file);
        self.rename(temporary, path)?;
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.sync_dir(parent),
            _ => self.sync_dir(Path::new(".")),
        }
    }
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// File name without its directory.
    pub name: String,
    /// Whether the entry is a directory.
    pub is_dir: bool,
}

/// A file open for reading; shared, positioned reads.
pub trait ReadFile: Send + Sync {
    /// Length of the file when it was opened, bytes.
    fn len(&self) -> u64;

    /// Whether the file was empty when opened.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kernel's descriptor of the file; None: the machine is simulated.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Fills `buffer` from `offset`; `UnexpectedEof` when the file ends before. May block on the
    /// device.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Does the work of `read_at` without ever waiting for the device. `false`: it would have to
    /// wait; the buffer's content is then undefined.
    fn read_at_nowait(&self, buffer: &mut [u8], offset: u64) -> io::Result<bool>;
    /// Tells the kernel that the file is going to be read from front to back, once.
    fn advise_sequential(&self);
    /// Tells the kernel that a range will be wanted soon, so that it may fetch it meanwhile. Only
    /// a hint; never waits.
    fn advise_wanted(&self, _offset: u64, _length: u64) {}
    /// Drops a range that will not be wanted again soon from the kernel's cache (length 0: to the
    /// end of the file).
    fn drop_cache(&self, offset: u64, length: u64);
}

/// A file open for writing, by one owner.
pub trait WriteFile: Send {
    /// Writes at the position and moves it.
    fn write_all(&mut self, data: &[u8]) -> io::Result<()>;
    /// Writes at `offset`; the position stays.
    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()>;
    /// Makes all written data (and the length) durable. After an error nothing written since the
    /// last success may be relied on, not even when a later call succeeds.
    fn sync_data(&mut self) -> io::Result<()>;
    /// Cuts or extends (with zeros) the file.
    fn set_len(&mut self, length: u64) -> io::Result<()>;
    /// Reserves space up to `length`; the file is extended with zeros. Without support of the file
    /// system only the length changes.
    fn preallocate(&mut self, length: u64) -> io::Result<()>;
    /// The offset at which the next `write_all` writes.
    fn position(&self) -> u64;
    /// Drops the written bytes from the kernel's cache, because they will not be read soon. Called
    /// after a sync.
    fn drop_cache(&mut self);
}

/// A held file lock. Dropping it releases the lock.
pub trait Lock: Send + Sync {}
