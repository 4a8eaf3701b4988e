//! The log in files, with the names and the rotation of Cassandra's `logback.xml`: `system.log` has
//! INFO and graver lines, `debug.log` every line that passes the filter.
//!
//! A file of [`FILE_SIZE_MAX`] bytes, or of a day before, becomes `system.log.2026-11-24.0` (then
//! `.1`, `.2` …) and a new one begins. Old files of more than [`DAYS_MAX`] days go, and the oldest
//! when those of a log have more than [`TOTAL_SIZE_MAX`] bytes. Cassandra compresses old files
//! into `.zip`; ours stay plain.
//!
//! Threads that log never wait for the disk: lines wait in a queue of [`LINES_WAITING_MAX`]; when
//! it is full a line is dropped and counted, and the count is written once there is room. A disk
//! that fails loses lines of the files, not of stderr; so may the end of the process.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use env::{Env, Next, Wake, WriteFile};

use super::form::Line;

/// Bytes of a file before the next one begins.
const FILE_SIZE_MAX: u64 = 50 << 20;
/// Bytes of all old files of a log.
const TOTAL_SIZE_MAX: u64 = 5 << 30;
/// Days for which old files are kept.
const DAYS_MAX: usize = 7;
/// Lines that wait to be written. A further line is dropped.
const LINES_WAITING_MAX: usize = 8_192;

/// The files; lines go in at any thread.
pub(super) struct Files {
    waiting: Arc<Mutex<Waiting>>,
    wake: Wake,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<Line>,
    dropped: u64,
}

impl Files {
    /// Opens the files in a directory, which is made if it is not there.
    pub fn open(env: &Env, directory: &Path) -> io::Result<Self> {
        env.disk.create_dir_durable(directory)?;
        let mut logs =
            [RotatedFile::open(env, directory, "system.log")?, RotatedFile::open(env, directory, "debug.log")?];
        let waiting: Arc<Mutex<Waiting>> = Arc::default();
        let of_step = Arc::clone(&waiting);
        let mut failed = false;
        let step = move || {
            let Waiting { lines, dropped } =
                std::mem::take(&mut *of_step.lock().unwrap_or_else(PoisonError::into_inner));
            let result = write(&mut logs, &lines, dropped);
            if let Err(error) = &result
                && !std::mem::replace(&mut failed, true)
            {
                // the log itself cannot be told of it
                eprintln!("helenus: the log cannot be written to its files: {error}");
            }
            failed &= result.is_err();
            Next::Idle
        };
        let wake = env.tasks.try_background("log-files", Box::new(step))?;
        Ok(Self { waiting, wake })
    }

    /// Adds a line.
    pub fn push(&self, line: Line) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.lines.len() >= LINES_WAITING_MAX {
            waiting.dropped += 1;
            return;
        }
        waiting.lines.push_back(line);
        drop(waiting);
        self.wake.wake();
    }
}

/// Writes lines that have waited. The first of the logs has INFO and graver lines.
fn write(logs: &mut [RotatedFile; 2], lines: &VecDeque<Line>, dropped: u64) -> io::Result<()> {
    let [system, debug] = logs;
    for line in lines {
        let (text, day) = (line.cassandras(), line.day());
        if matches!(line.level, "ERROR" | "WARN" | "INFO") {
            system.write(&text, &day)?;
        }
        debug.write(&text, &day)?;
    }
    if let (Some(last), true) = (lines.back(), dropped > 0) {
        let text = format!("WARN  [log-files] {dropped} lines were dropped: the disk is slower than the log\n");
        system.write(&text, &last.day())?;
        debug.write(&text, &last.day())?;
    }
    system.flush()?;
    debug.flush()
}

/// A log that is written to, with its old files beside it.
struct RotatedFile {
    env: Env,
    directory: PathBuf,
    name: &'static str,
    /// The open file; None: the last attempt to open one failed.
    file: Option<Box<dyn WriteFile>>,
    size: u64,
    /// The day of the file's first line; None: it has none yet.
    day: Option<String>,
    /// Lines that are written together.
    buffer: String,
}

impl RotatedFile {
    fn open(env: &Env, directory: &Path, name: &'static str) -> io::Result<Self> {
        let path = directory.join(name);
        let mut log = Self {
            env: env.clone(),
            directory: directory.to_owned(),
            name,
            file: None,
            size: 0,
            day: None,
            buffer: String::new(),
        };
        if env.disk.exists(&path) {
            let millis = env.disk.modified_millis(&path).unwrap_or(0);
            log.day = Some(day_of(millis));
            log.size = env.disk.file_len(&path)?;
        }
        log.reopen()?;
        Ok(log)
    }

    /// Goes on with the file that is there, or begins one.
    fn reopen(&mut self) -> io::Result<()> {
        let path = self.directory.join(self.name);
        self.file = None;
        self.file = Some(match self.env.disk.exists(&path) {
            true => self.env.disk.open_write(&path)?,
            false => {
                (self.size, self.day) = (0, None);
                self.env.disk.create(&path)?
            }
        });
        Ok(())
    }

    fn write(&mut self, line: &str, day: &str) -> io::Result<()> {
        let size = self.size + self.buffer.len() as u64;
        let is_of_other_day = self.day.as_deref().is_some_and(|of_file| of_file != day);
        if size > 0 && (size + line.len() as u64 > FILE_SIZE_MAX || is_of_other_day) {
            self.flush()?;
            self.rotate()?;
        }
        self.day.get_or_insert_with(|| day.to_owned());
        self.buffer.push_str(line);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            self.reopen()?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = file.write_at(buffer.as_bytes(), self.size);
        match written {
            Ok(()) => self.size += buffer.len() as u64,
            // the next lines begin where these ones should have
            Err(_) => self.file = None,
        }
        written
    }

    /// Gives the file its name of an old one, begins a new one, and removes what is too old.
    fn rotate(&mut self) -> io::Result<()> {
        let day = self.day.take().unwrap_or_default();
        let old = self.old()?;
        let number = old.iter().filter(|one| one.day == day).map(|one| one.number + 1).max().unwrap_or(0);
        self.file = None;
        let name = format!("{}.{day}.{number}", self.name);
        self.env.disk.rename(&self.directory.join(self.name), &self.directory.join(name))?;
        self.reopen()?;
        for one in too_old(self.old()?) {
            self.env.disk.remove_file(&self.directory.join(one.name(self.name)))?;
        }
        Ok(())
    }

    /// The old files, the newest first.
    fn old(&self) -> io::Result<Vec<OldFile>> {
        let prefix = format!("{}.", self.name);
        let mut old = Vec::new();
        for entry in self.env.disk.list_dir(&self.directory)? {
            let name = entry.name;
            let parts = name.strip_prefix(&prefix).and_then(|rest| rest.split_once('.'));
            let Some((day, number)) = parts else { continue };
            let Ok(number) = number.parse() else { continue };
            // a file that is removed meanwhile has no length
            let size = self.env.disk.file_len(&self.directory.join(&name)).unwrap_or(0);
            old.push(OldFile { day: day.to_owned(), number, size });
        }
        old.sort_by(|one, other| (&other.day, other.number).cmp(&(&one.day, one.number)));
        Ok(old)
    }
}

/// A file that is not written to any more.
#[derive(Clone, PartialEq, Eq, Debug)]
struct OldFile {
    day: String,
    number: u64,
    size: u64,
}

impl OldFile {
    fn name(&self, log: &str) -> String {
        format!("{log}.{}.{}", self.day, self.number)
    }
}

/// The old files that go, of all of them, the newest first.
fn too_old(old: Vec<OldFile>) -> Vec<OldFile> {
    let mut days = Vec::new();
    let mut size = 0;
    let mut going = Vec::new();
    for one in old {
        if !days.contains(&one.day) {
            days.push(one.day.clone());
        }
        size += one.size;
        if days.len() > DAYS_MAX || size > TOTAL_SIZE_MAX {
            going.push(one);
        }
    }
    going
}

fn day_of(millis: u64) -> String {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(millis).unwrap_or(0)).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::super::form::line;
    use super::*;

    const DAY: i64 = 86_400_000_000;

    fn names(directory: &Path) -> Vec<String> {
        let entries = env::real::env().disk.list_dir(directory).expect("a directory");
        let mut names: Vec<_> = entries.into_iter().map(|entry| entry.name).collect();
        names.sort();
        names
    }

    #[test]
    fn levels_days_and_restarts() {
        let directory = tempfile::tempdir().expect("a directory");
        let env = env::real::env();
        let today = env.clock.now_micros();
        let open =
            || ["system.log", "debug.log"].map(|name| RotatedFile::open(&env, directory.path(), name).expect("opened"));
        let lines = |days: i64| {
            VecDeque::from([line("INFO", "one", today + days * DAY), line("DEBUG", "two", today + days * DAY)])
        };
        write(&mut open(), &lines(0), 0).expect("written");
        // a restart goes on with the files
        let mut logs = open();
        write(&mut logs, &lines(0), 3).expect("written");
        let read = |name: &str| {
            let bytes = env.disk.read_all(&directory.path().join(name), 1 << 20).expect("a file");
            String::from_utf8(bytes).expect("text")
        };
        assert_eq!((read("system.log").lines().count(), read("debug.log").lines().count()), (3, 5));
        assert!(read("system.log").contains("3 lines were dropped") && !read("system.log").contains("two"));
        assert_eq!(names(directory.path()), ["debug.log", "system.log"]);
        (1..=10).for_each(|days| write(&mut logs, &lines(days), 0).expect("written"));
        let found = names(directory.path());
        assert_eq!(found.len(), 2 * (1 + DAYS_MAX), "{found:?}");
        assert!(found.contains(&format!("system.log.{}.0", line("INFO", "", today + 9 * DAY).day())));
        assert_eq!(read("system.log").lines().count(), 1);
    }

    #[test]
    fn a_full_file_makes_room_and_old_ones_go_by_size() {
        let directory = tempfile::tempdir().expect("a directory");
        let env = env::real::env();
        let mut log = RotatedFile::open(&env, directory.path(), "system.log").expect("opened");
        for _ in 0..2 {
            (log.size, log.day) = (FILE_SIZE_MAX, Some("2026-11-24".to_owned()));
            log.write("x\n", "2026-11-24").expect("written");
            log.flush().expect("written");
        }
        let found = names(directory.path());
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[2].ends_with(".1") && found[1].ends_with(".0"), "{found:?}");
        let old = |number: u64, size: u64| OldFile { day: "2026-11-24".to_owned(), number, size };
        let going = too_old(vec![old(3, 1), old(2, TOTAL_SIZE_MAX - 1), old(1, 1)]);
        assert_eq!(going, [old(1, 1)]);
    }
}
