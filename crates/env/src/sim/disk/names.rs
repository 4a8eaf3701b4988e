//! The simulated disk's names: creating, renaming, linking, removing, listing, syncing directories.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{Reader, Writer};
use super::{Directory, Entry, File, Op, Shared, State, lock, not_found, split};
use crate::{DirEntry, Disk, Lock, ReadFile, WriteFile};

/// Free space reported when the test set no capacity.
const SPACE_WITHOUT_LIMIT: u64 = 1 << 40;

/// The disk as one life of the machine sees it.
pub(in crate::sim) struct Handle {
    pub(super) life: u64,
    pub(super) shared: Arc<Shared>,
}

impl Handle {
    fn begin(&self, op: Op, path: &Path) -> io::Result<()> {
        self.shared.begin(self.life, op, path, &[])
    }

    fn writer(&self, path: &Path, file: File) -> Box<dyn WriteFile> {
        Box::new(Writer::new(self.shared.clone(), self.life, path.to_owned(), file))
    }

    fn reader(&self, path: &Path) -> io::Result<Reader> {
        let file = lock(&self.shared.state).file(path)?;
        Ok(Reader::new(self.shared.clone(), self.life, path.to_owned(), file))
    }
}

/// Creates a directory in an existing one.
fn create_one(state: &mut State, path: &Path) -> io::Result<()> {
    let (parent, name) = split(path)?;
    let parent = state.directory_mut(parent)?;
    if parent.live.contains_key(&name) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    parent.change(vec![(name, Some(Entry::Directory))]);
    state.directories.entry(path.to_owned()).or_default().exists = true;
    Ok(())
}

impl Disk for Handle {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.begin(Op::Open, path)?;
        Ok(Arc::new(self.reader(path)?))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.begin(Op::Create, path)?;
        let mut state = lock(&self.shared.state);
        if let Ok(file) = state.file(path) {
            lock(&file).set_len(0);
            return Ok(self.writer(path, file));
        }
        let file = File::default();
        let (parent, name) = split(path)?;
        let directory = state.directory_mut(parent)?;
        if directory.live.contains_key(&name) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        directory.change(vec![(name, Some(Entry::File(file.clone())))]);
        Ok(self.writer(path, file))
    }

    fn open_write(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.begin(Op::Open, path)?;
        let file = lock(&self.shared.state).file(path)?;
        Ok(self.writer(path, file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin(Op::Rename, from)?;
        let mut state = lock(&self.shared.state);
        let ((from_parent, from_name), (to_parent, to_name)) = (split(from)?, split(to)?);
        let entry = state.directory(from_parent)?.live.get(&from_name).cloned().ok_or_else(not_found)?;
        state.directory(to_parent)?;
        if matches!(entry, Entry::Directory) {
            let inside: Vec<PathBuf> =
                state.directories.keys().filter(|path| path.starts_with(from)).cloned().collect();
            for path in inside {
                let rest = path.strip_prefix(from).expect("filtered by this prefix").to_owned();
                let directory = state.directories.remove(&path).expect("just listed");
                let target = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
                state.directories.insert(target, directory);
            }
        }
        if from_parent == to_parent {
            state.directory_mut(to_parent)?.change(vec![(from_name, None), (to_name, Some(entry))]);
        } else {
            state.directory_mut(from_parent)?.change(vec![(from_name, None)]);
            state.directory_mut(to_parent)?.change(vec![(to_name, Some(entry))]);
        }
        Ok(())
    }

    fn hard_link(&self, original: &Path, link: &Path) -> io::Result<()> {
        self.begin(Op::Link, original)?;
        let mut state = lock(&self.shared.state);
        let file = state.file(original)?;
        let (parent, name) = split(link)?;
        let directory = state.directory_mut(parent)?;
        if directory.live.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        directory.change(vec![(name, Some(Entry::File(file)))]);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.begin(Op::Remove, path)?;
        let mut state = lock(&self.shared.state);
        state.file(path)?;
        let (parent, name) = split(path)?;
        state.directory_mut(parent)?.change(vec![(name, None)]);
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.begin(Op::CreateDir, path)?;
        let mut state = lock(&self.shared.state);
        let ancestors: Vec<&Path> = path.ancestors().collect();
        for path in ancestors.into_iter().rev() {
            if state.directory(path).is_err() {
                create_one(&mut state, path)?;
            }
        }
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.begin(Op::CreateDir, path)?;
        create_one(&mut lock(&self.shared.state), path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.begin(Op::Remove, path)?;
        let mut state = lock(&self.shared.state);
        state.directory(path)?;
        let inside = state.directories.range_mut(path.to_owned()..).take_while(|(inner, _)| inner.starts_with(path));
        for (_, directory) in inside {
            let names: Vec<String> = directory.live.keys().cloned().collect();
            names.into_iter().for_each(|name| directory.change(vec![(name, None)]));
            directory.exists = false;
        }
        let (parent, name) = split(path)?;
        state.directory_mut(parent)?.change(vec![(name, None)]);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.begin(Op::SyncDir, path)?;
        lock(&self.shared.state).directory_mut(path).map(Directory::sync)
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.begin(Op::List, path)?;
        let state = lock(&self.shared.state);
        let entries = state.directory(path)?.live.iter();
        let is_dir = |entry: &Entry| matches!(entry, Entry::Directory);
        Ok(entries.map(|(name, entry)| DirEntry { name: name.clone(), is_dir: is_dir(entry) }).collect())
    }

    fn exists(&self, path: &Path) -> bool {
        let mut state = lock(&self.shared.state);
        let name = path.to_string_lossy();
        let is_struck = state.faults.iter_mut().any(|fault| fault.count_operation(Op::Exists, &name).is_some());
        !is_struck && (state.directory(path).is_ok() || state.file(path).is_ok())
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        let file = lock(&self.shared.state).file(path)?;
        let length = lock(&file).live().len();
        Ok(length as u64)
    }

    fn available_space(&self, _path: &Path) -> io::Result<u64> {
        Ok(lock(&self.shared.state).room(SPACE_WITHOUT_LIMIT))
    }

    fn total_space(&self, _path: &Path) -> io::Result<u64> {
        Ok(lock(&self.shared.state).capacity.unwrap_or(SPACE_WITHOUT_LIMIT))
    }

    /// The number of the file system: all directories of a simulated machine share one capacity.
    fn file_system(&self, _path: &Path) -> io::Result<u64> {
        Ok(0)
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        if !self.exists(path) {
            drop(self.create(path)?);
        }
        self.begin(Op::Open, path)?;
        let mut state = lock(&self.shared.state);
        if !state.locks.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(HeldLock { shared: self.shared.clone(), life: self.life, path: path.to_owned() }))
    }

    fn read_all(&self, path: &Path, size_max: u64) -> io::Result<Vec<u8>> {
        self.begin(Op::Open, path)?;
        let content = self.reader(path)?.whole()?;
        if content.len() as u64 > size_max {
            let message = format!("{} is larger than {size_max} bytes", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(content)
    }
}

struct HeldLock {
    shared: Arc<Shared>,
    life: u64,
    path: PathBuf,
}

impl Lock for HeldLock {}

impl Drop for HeldLock {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        if state.life == self.life {
            state.locks.remove(&self.path);
        }
    }
}
