//! Calls of the server that fail as the observer says: a library before libc (`preload.c`, built
//! here with `cc`), and the file with the rules that both have open. What the server calls without
//! libc (fallocate, preadv2 of cached pages) does not fail.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;

/// Rules that there may be at once.
const RULES: usize = 8;
/// `struct rules` of `preload.c`: the clock, whether writes are followed, rules.
const HEAD_SIZE: usize = 64;
const TRACKS_AT: u64 = 8;
/// `struct rule`: call, path, errno, left, hits, lose.
const RULE_SIZE: usize = 208;
const PATH_AT: usize = 16;
const ERROR_AT: usize = 192;
const LEFT_AT: usize = 196;
const HITS_AT: usize = 200;
const LOSE_AT: usize = 204;

/// Input/output error.
pub const EIO: i32 = 5;

/// A rule for calls that fail.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The kind of call: open, read, write, sync, rename, unlink, mkdir.
    pub call: &'static str,
    /// Of which paths, as a shell's pattern; `*` also stands for `/`.
    pub path: &'static str,
    /// How often; None: always.
    pub times: Option<u32>,
    /// A sync that fails loses what it should have kept.
    pub loses: bool,
}

/// The library and the file.
pub struct Injection {
    library: PathBuf,
    path: PathBuf,
    file: File,
}

impl Injection {
    /// Builds the library in `place`.
    pub fn new(place: &Path) -> Outcome<Self> {
        let (source, library, path) = (place.join("preload.c"), place.join("preload.so"), place.join("rules"));
        std::fs::write(&source, include_str!("preload.c"))?;
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).args(["-ldl", "-lpthread"]);
        let done = command.output().map_err(|error| format!("cc: {error}"))?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned().into());
        }
        let file = OpenOptions::new().create(true).truncate(true).write(true).read(true).open(&path)?;
        file.write_all_at(&[0; HEAD_SIZE + RULES * RULE_SIZE], 0)?;
        file.write_all_at(&1u32.to_ne_bytes(), TRACKS_AT)?;
        Ok(Self { library, path, file })
    }

    /// The environment variables that the server is started with.
    pub fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        vec![("LD_PRELOAD", self.library.clone()), ("FAULTS_RULES", self.path.clone())]
    }

    /// From now on these and no others.
    pub fn set(&self, rules: &[Rule]) -> Outcome {
        self.clear()?;
        self.file.write_all_at(&[0; RULES * RULE_SIZE], at(0))?;
        assert!(rules.len() <= RULES);
        for (number, rule) in rules.iter().enumerate() {
            let mut slot = [0; RULE_SIZE];
            slot[..rule.call.len()].copy_from_slice(rule.call.as_bytes());
            slot[PATH_AT..PATH_AT + rule.path.len()].copy_from_slice(rule.path.as_bytes());
            slot[ERROR_AT..LEFT_AT].copy_from_slice(&EIO.to_ne_bytes());
            slot[LOSE_AT..].copy_from_slice(&u32::from(rule.loses).to_ne_bytes());
            self.file.write_all_at(&slot, at(number))?;
            // last of all: from here on it holds
            let left = rule.times.map_or(-1, |times| times as i32);
            self.file.write_all_at(&left.to_ne_bytes(), at(number) + LEFT_AT as u64)?;
        }
        Ok(())
    }

    /// Nothing fails any more; how often something did is kept until the next rules.
    pub fn clear(&self) -> Outcome {
        for number in 0..RULES {
            self.file.write_all_at(&0i32.to_ne_bytes(), at(number) + LEFT_AT as u64)?;
        }
        Ok(())
    }

    /// How many calls have failed since the rules were set.
    pub fn hits(&self) -> Outcome<u32> {
        let mut hits = 0;
        for number in 0..RULES {
            let mut bytes = [0; 4];
            self.file.read_exact_at(&mut bytes, at(number) + HITS_AT as u64)?;
            hits += u32::from_ne_bytes(bytes);
        }
        Ok(hits)
    }

    /// The wall clock is ahead by so many seconds.
    pub fn set_clock(&self, seconds: i64) -> Outcome {
        Ok(self.file.write_all_at(&(seconds * 1_000_000).to_ne_bytes(), 0)?)
    }
}

fn at(number: usize) -> u64 {
    (HEAD_SIZE + number * RULE_SIZE) as u64
}

/// Takes SSTables out of the kernel's cache, so that they are read from the disk again. Files may
/// go meanwhile.
pub fn drop_caches(directory: &Path) -> Outcome {
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            drop_caches(&path)?;
        } else if path.to_string_lossy().ends_with("-Data.db") {
            // dd asks the kernel for it and reads nothing
            let input = format!("if={}", path.display());
            Command::new("dd")
                .args([&input, "iflag=nocache", "count=0", "status=none"])
                .stderr(Stdio::null())
                .status()?;
        }
    }
    Ok(())
}
