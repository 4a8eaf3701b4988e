//! A file beside the segments that says which of them were archived.
//!
//! A start archives again what it finds, and a command that does not replace what is there (a
//! script that refuses names it knows) fails then for a segment that was archived before. The file
//! tells that failure from one of a segment that is in no archive: a file of the first kind may go,
//! one of the second kind is all that there is.
//!
//! The file has a line `archived NAME` for each archived segment that may still be here. Other
//! lines are passed over. It is replaced as a whole, and Cassandra does not look at it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use env::Disk;

use super::{LogError, format};

/// The file's name.
const NAME: &str = "archived_segments";
/// Most bytes of the file: it has a line for each segment that is here.
const LEN_MAX: u64 = 16 << 20;
/// The beginning of a line of an archived segment.
const ARCHIVED: &str = "archived ";

/// The content of the file.
#[derive(Default)]
pub(super) struct Ledger {
    directory: PathBuf,
    /// The names of archived segments that may still be here, by id.
    archived: BTreeMap<u64, String>,
}

impl Ledger {
    pub(super) fn read(disk: &dyn Disk, directory: &Path) -> Result<Self, LogError> {
        let path = directory.join(NAME);
        let bytes = match disk.read_all(&path, LEN_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(LogError::io(&path))?,
        };
        let mut ledger = Self { directory: directory.to_owned(), ..Self::default() };
        String::from_utf8_lossy(&bytes).lines().for_each(|line| ledger.take(line));
        Ok(ledger)
    }

    fn take(&mut self, line: &str) {
        if let Some((id, name)) = line.strip_prefix(ARCHIVED).and_then(|name| named(Path::new(name))) {
            self.archived.insert(id, name);
        }
    }

    /// Whether a segment was archived.
    pub(super) fn has(&self, segment: &Path) -> bool {
        named(segment).is_some_and(|(id, _)| self.archived.contains_key(&id))
    }

    /// Notes that a segment was archived. Where that cannot be written, the segment's file may stay
    /// longer than it has to.
    pub(super) fn add(&mut self, disk: &dyn Disk, segment: &Path) {
        let Some((id, name)) = named(segment) else { return };
        if self.archived.insert(id, name).is_some() {
            return;
        }
        let directory = &self.directory;
        self.archived.retain(|_, name| disk.exists(&directory.join(name.as_str())));
        if let Err(error) = self.write(disk) {
            tracing::warn!(%error, "cannot note that a segment of the commit log was archived");
        }
    }

    fn write(&self, disk: &dyn Disk) -> Result<(), LogError> {
        let mut text = String::new();
        for name in self.archived.values() {
            // writing to a string does not fail
            let _ = writeln!(text, "{ARCHIVED}{name}");
        }
        let path = self.directory.join(NAME);
        disk.replace_file(&path, text.as_bytes()).map_err(LogError::io(&path))
    }
}

/// The id and the name of a segment.
fn named(segment: &Path) -> Option<(u64, String)> {
    let name = segment.file_name()?.to_str()?;
    let (_, id) = format::parse_file_name(name)?;
    Some((id, name.to_owned()))
}
