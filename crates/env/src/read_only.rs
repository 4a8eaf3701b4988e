//! A disk that is only read: every operation that would change something is refused, whichever
//! part of the program asks for it.
//!
//! Directories that may not be changed are served with this disk (`--read-only`). Making an
//! existing directory and syncing change nothing, and succeed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{DirEntry, Disk, Env, Lock, ReadFile, WriteFile};

/// The environment `env` with a disk that refuses all changes.
pub fn read_only(env: &Env) -> Env {
    Env { disk: Arc::new(ReadOnly(Arc::clone(&env.disk))), ..env.clone() }
}

struct ReadOnly(Arc<dyn Disk>);

fn refused<T>(path: &Path) -> io::Result<T> {
    let message = format!("{} would be changed, and nothing may be (--read-only)", path.display());
    Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, message))
}

impl Disk for ReadOnly {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.0.open_read(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        refused(path)
    }

    fn open_write(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        refused(path)
    }

    fn rename(&self, from: &Path, _to: &Path) -> io::Result<()> {
        refused(from)
    }

    fn hard_link(&self, _original: &Path, link: &Path) -> io::Result<()> {
        refused(link)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        refused(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        if self.0.exists(path) { Ok(()) } else { refused(path) }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if self.0.exists(path) { Err(io::ErrorKind::AlreadyExists.into()) } else { refused(path) }
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        refused(path)
    }

    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.0.list_dir(path)
    }

    fn exists(&self, path: &Path) -> bool {
        self.0.exists(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.real_path(path)
    }

    fn modified_millis(&self, path: &Path) -> io::Result<u64> {
        self.0.modified_millis(path)
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        self.0.file_len(path)
    }

    fn available_space(&self, path: &Path) -> io::Result<u64> {
        self.0.available_space(path)
    }

    fn total_space(&self, path: &Path) -> io::Result<u64> {
        self.0.total_space(path)
    }

    fn file_system(&self, path: &Path) -> io::Result<u64> {
        self.0.file_system(path)
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        refused(path)
    }

    fn read_all(&self, path: &Path, size_max: u64) -> io::Result<Vec<u8>> {
        self.0.read_all(path, size_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a");
        std::fs::write(&file, b"x").unwrap();
        let disk = read_only(&crate::real::env()).disk;
        assert_eq!(disk.read_all(&file, 9).unwrap(), b"x");
        assert!(disk.create_dir_all(directory.path()).is_ok());
        let other = directory.path().join("b");
        let changes = [
            disk.create(&file).err(),
            disk.open_write(&file).err(),
            disk.rename(&file, &other).err(),
            disk.hard_link(&file, &other).err(),
            disk.remove_file(&file).err(),
            disk.create_dir_all(&other).err(),
            disk.remove_dir_all(directory.path()).err(),
            disk.lock_file(&other).err(),
            disk.replace_file(&file, b"y").err(),
        ];
        let refused = |error: &Option<io::Error>| {
            error.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::ReadOnlyFilesystem)
        };
        assert!(changes.iter().all(refused));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
