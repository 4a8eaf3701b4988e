//! A store in a directory: of a disk, or of a file system that machines share.
//!
//! An object is written beside its name, synced and renamed; the file of an upload that was given
//! up stays as `NAME.part` until the next upload of the object. Two uploads of one object at a time
//! would write into one file, so a program that uploads the objects of a node holds a lock
//! ([`HOLD`]).

use std::path::PathBuf;
use std::sync::Arc;

use env::{Env, Lock, ReadFile, WriteFile};

use super::{Download, Object, PIECE_SIZE, Store, Upload, check_key};
use crate::Result;

/// The end of the name of an object that is not complete.
const PART: &str = ".part";
/// Name of the file below a prefix whose lock is held. Its name is no key, so that no listing has
/// it.
const HOLD: &str = ".hold";
/// Most directories within directories: a backup has fewer.
const DEPTH_MAX: usize = 16;

/// A store in a directory.
pub struct Directory {
    env: Env,
    root: PathBuf,
}

impl Directory {
    /// The store at a path. The directory is made by the first upload.
    pub fn new(env: &Env, root: &str) -> Self {
        Self { env: env.clone(), root: PathBuf::from(root) }
    }

    fn path(&self, key: &str) -> Result<PathBuf> {
        check_key(key)?;
        Ok(self.root.join(key))
    }

    fn walk(&self, key: &str, depth: usize, found: &mut Vec<Object>) -> Result<()> {
        let path = self.root.join(key);
        if depth > DEPTH_MAX {
            return Err(format!("{}: too many directories within each other", path.display()));
        }
        let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
        for entry in self.env.disk.list_dir(&path).map_err(wrong)? {
            let key = format!("{key}/{}", entry.name);
            if entry.is_dir {
                self.walk(&key, depth + 1, found)?;
            } else if check_key(&key).is_ok() && !key.ends_with(PART) {
                let size = self.env.disk.file_len(&self.root.join(&key)).map_err(wrong)?;
                found.push(Object { key, size });
            }
        }
        Ok(())
    }
}

impl Store for Directory {
    fn list(&self, prefix: &str) -> Result<Vec<Object>> {
        let path = self.path(prefix)?;
        let mut found = Vec::new();
        // a directory that cannot be read is not one that is not there: a restore would take the
        // archive for one without earlier restores, and a list would have no backups
        let there = self.env.disk.list_dir_if_exists(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if there.is_some() {
            self.walk(prefix, 0, &mut found)?;
        }
        found.sort();
        Ok(found)
    }

    fn size(&self, key: &str) -> Result<Option<u64>> {
        let path = self.path(key)?;
        match self.env.disk.file_len(&path) {
            Ok(size) => Ok(Some(size)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn begin(&self, key: &str, _size: u64) -> Result<Box<dyn Upload>> {
        let path = self.path(key)?;
        let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
        let above = path.parent().ok_or_else(|| format!("{key:?} is no key of a backup"))?;
        self.env.disk.create_dir_durable(above).map_err(wrong)?;
        let part = self.root.join(format!("{key}{PART}"));
        let file = self.env.disk.create(&part).map_err(wrong)?;
        Ok(Box::new(FileUpload { env: self.env.clone(), file, part, path }))
    }

    fn open(&self, key: &str) -> Result<Box<dyn Download>> {
        let path = self.path(key)?;
        let file = self.env.disk.open_read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        file.advise_sequential();
        Ok(Box::new(FileDownload { file, path, offset: 0 }))
    }

    fn hold(&self, prefix: &str) -> Result<Option<Box<dyn Lock>>> {
        let directory = self.path(prefix)?;
        let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
        self.env.disk.create_dir_durable(&directory).map_err(wrong)?;
        match self.env.disk.lock_file(&directory.join(HOLD)) {
            Ok(lock) => Ok(Some(lock)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                Err(format!("{}: a backup is under way already: wait until it has ended", directory.display()))
            }
            // some file systems that machines share have no locks
            Err(_) => Ok(None),
        }
    }
}

struct FileUpload {
    env: Env,
    file: Box<dyn WriteFile>,
    part: PathBuf,
    path: PathBuf,
}

impl Upload for FileUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| format!("{}: {error}", self.part.display()))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let done = self.file.sync_data().and_then(|()| {
            self.env.disk.rename(&self.part, &self.path)?;
            self.env.disk.sync_dir(self.path.parent().unwrap_or(&self.path))
        });
        done.map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

struct FileDownload {
    file: Arc<dyn ReadFile>,
    path: PathBuf,
    offset: u64,
}

impl Download for FileDownload {
    fn read(&mut self) -> Result<Vec<u8>> {
        let left = self.file.len() - self.offset;
        let mut bytes = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_SIZE)];
        let read = self.file.read_at(&mut bytes, self.offset);
        read.map_err(|error| format!("{}: {error}", self.path.display()))?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }
}
