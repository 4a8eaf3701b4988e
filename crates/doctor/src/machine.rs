//! Files of the kernel, beneath the root of this machine or of the copy of another one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use env::Env;

/// The most bytes that are read of a file of the kernel.
const FILE_SIZE_MAX: u64 = 4 << 20;
/// The longest time that another program may take to answer.
const PROGRAM_TIME_MAX: Duration = Duration::from_secs(5);

/// The machine that is looked at.
pub struct Machine<'a> {
    /// Disk, clock, network and programs of the machine on which the doctor runs.
    pub env: &'a Env,
    /// The directory above `/proc`, `/sys` and `/run`.
    pub root: &'a Path,
}

impl Machine<'_> {
    /// Whether the machine is this one, and not the copy of another.
    pub fn is_this(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The place of a file of the machine.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file; None: it is not there, or cannot be read.
    pub fn read(&self, path: &str) -> Option<String> {
        String::from_utf8(self.env.disk.read_all(&self.path(path), FILE_SIZE_MAX).ok()?).ok()
    }

    /// The number that is the whole content of a file.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.trim().parse().ok()
    }

    /// Whether there is such a file.
    pub fn has(&self, path: &str) -> bool {
        self.env.disk.exists(&self.path(path))
    }

    /// The output of a program that ended well; None: there is no such program, or the machine is a
    /// copy.
    pub fn ask(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let ended = self.is_this().then(|| self.env.programs.run(program, &arguments, PROGRAM_TIME_MAX))?.ok()?;
        ended.is_success.then_some(ended.output)
    }
}
