//! The programs of the simulated machine: `cp FROM TO` on its disk, with its faults and durably,
//! and `false`. There are no others.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::Disk;
use crate::programs::{ProgramOutcome, Programs};

/// Most bytes of a file that is copied. No file of a test is larger.
const COPY_MAX: u64 = 64 << 20;

pub(super) struct SimPrograms {
    pub(super) disk: Arc<dyn Disk>,
}

impl SimPrograms {
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        let content = self.disk.read_all(from, COPY_MAX)?;
        let mut copy = self.disk.create(to)?;
        copy.write_all(&content)?;
        copy.sync_data()?;
        self.disk.sync_dir(to.parent().unwrap_or(to))
    }
}

impl Programs for SimPrograms {
    fn run(&self, program: &str, arguments: &[String], _time_max: Duration) -> io::Result<ProgramOutcome> {
        let copied = match (program, arguments) {
            ("cp", [from, to]) => self.copy(Path::new(from), Path::new(to)),
            ("false", _) => Err(io::Error::other("false")),
            _ => return Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let (is_success, output) = (copied.is_ok(), copied.err().map_or(String::new(), |error| error.to_string()));
        let status = format!("exit status: {}", i32::from(!is_success));
        Ok(ProgramOutcome { is_success, status, output })
    }
}
