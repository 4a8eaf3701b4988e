//! Reports of panics, a file each in `crash-reports` beneath the directory of the log
//! (`--log-dir`): version, time, thread, place, message and backtrace. Without that directory a
//! panic is told on stderr alone, as always.
//!
//! The program that is shipped has no names of functions; they are in `helenus.debug`. With that
//! file beside the program a backtrace has names and lines. Without it the report has, as its last
//! line, where each frame lies in the program, for `addr2line -fipCe helenus.debug`.
//!
//! A request that panics ends its connection and not the node, so reports of one process have an
//! end ([`REPORTS_MAX`]): otherwise a client that repeats such a request would fill the disk. The
//! log is not written to, because the panic may be in the log itself. Names of clients and values
//! of statements can be in a message; the files are for the owner alone.

use std::backtrace::Backtrace;
use std::fmt::Write as _;
use std::ops::Range;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use env::Env;

/// The directory of the reports beneath that of the log.
const DIRECTORY: &str = "crash-reports";
/// Reports that one process writes at most.
const REPORTS_MAX: usize = 20;
/// Bytes of the kernel's list of what lies in memory that are read at most.
const MAPS_MAX: u64 = 1 << 20;

/// Writes a report of each panic from now on, beside what is told on stderr.
pub fn install_hook(env: &Env, log_directory: &Path) {
    let (env, directory) = (env.clone(), log_directory.join(DIRECTORY));
    let written = AtomicUsize::new(0);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        if written.fetch_add(1, Ordering::Relaxed) < REPORTS_MAX {
            match write(&env, &directory, &text(&env, panic)) {
                Ok(path) => eprintln!("helenus: crash report: {}", path.display()),
                Err(error) => eprintln!("helenus: crash report: {}: {error}", directory.display()),
            }
        }
    }));
}

fn text(env: &Env, panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let message =
        payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let place = panic.location().map_or_else(|| "not known".to_owned(), ToString::to_string);
    let thread = std::thread::current();
    // the alternate form has addresses
    let backtrace = format!("{:#}", Backtrace::force_capture());
    format!(
        "helenus {}\nmicroseconds since 1970: {}\nthread: {}\nplace: {place}\nmessage: {}\n\n{backtrace}\nframes in the program: {}\n",
        env!("CARGO_PKG_VERSION"),
        env.clock.now_micros(),
        thread.name().unwrap_or("without a name"),
        message.unwrap_or("not text"),
        program(env).map_or_else(|| "not known".to_owned(), |program| in_program(&backtrace, &program)),
    )
}

/// The addresses at which the program lies in memory (Linux).
fn program(env: &Env) -> Option<Range<u64>> {
    let maps = env.disk.read_all(Path::new("/proc/self/maps"), MAPS_MAX).ok()?;
    let path = std::env::current_exe().ok()?;
    let path = path.to_str()?;
    let mut pieces = std::str::from_utf8(&maps).ok()?.lines().filter(|line| line.ends_with(path)).map(|line| {
        let (from, to) = line.split_once(' ')?.0.split_once('-')?;
        Some(u64::from_str_radix(from, 16).ok()?..u64::from_str_radix(to, 16).ok()?)
    });
    let first = pieces.next()??;
    Some(first.start..pieces.next_back().flatten().map_or(first.end, |last| last.end))
}

/// Where the call of each frame that is in the program lies, counted from the program's first byte
/// in memory. A frame's address is that behind its call, where the next function may begin.
fn in_program(backtrace: &str, program: &Range<u64>) -> String {
    let mut frames = String::new();
    for line in backtrace.lines() {
        let address = line.split_whitespace().nth(1).and_then(|word| word.strip_prefix("0x"));
        let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        if let Some(address) = address.filter(|address| program.contains(address)) {
            let separator = if frames.is_empty() { "" } else { " " };
            let _ = write!(frames, "{separator}{:#x}", address.saturating_sub(program.start + 1));
        }
    }
    frames
}

/// Writes a report under a name of its own, and makes it durable: the process may be about to end.
fn write(env: &Env, directory: &Path, text: &str) -> std::io::Result<PathBuf> {
    env.disk.create_dir_all(directory)?;
    let path = directory.join(format!("{}-{}.txt", env.clock.now_micros(), std::process::id()));
    let mut file = env.disk.create_private(&path)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    env.disk.sync_dir(directory)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hook is one of the whole process, so one test has all of it.
    #[test]
    fn a_panic_leaves_a_report_and_reports_have_an_end() {
        let directory = tempfile::tempdir().expect("a directory");
        let env = env::real::env();
        install_hook(&env, directory.path());
        for number in 0..REPORTS_MAX + 5 {
            let ended = std::panic::catch_unwind(|| panic!("number {number} is wrong"));
            assert!(ended.is_err());
        }
        drop(std::panic::take_hook());
        let reports = directory.path().join(DIRECTORY);
        let names = env.disk.list_dir(&reports).expect("made");
        assert_eq!(names.len(), REPORTS_MAX);
        let text = env.disk.read_all(&reports.join(&names[0].name), 1 << 20).expect("written");
        let text = String::from_utf8(text).expect("text");
        assert!(text.starts_with("helenus ") && text.contains("message: number 0 is wrong\n"), "{text}");
        let (told, backtrace) = text.split_once("\n\n").expect("two parts");
        assert!(told.contains("place: ") && told.contains("crash_report.rs:"), "{text}");
        assert!(backtrace.contains("a_panic_leaves_a_report"), "{text}");
        let places =
            text.lines().last().and_then(|line| line.strip_prefix("frames in the program: 0x")).expect("the last line");
        assert!(places.split(" 0x").count() > 3, "{text}");
    }

    #[test]
    fn frames_are_counted_from_where_the_program_begins() {
        let backtrace = "   0:     0x55d0001000a0 - first\n             at ./0x1.rs:7:1\n   1:     0x7f0000000000 - of a library\n   \
                         2:     0x55d0001fffff - <unknown>\n   3:     0x55d000200000 - behind it\n";
        let program = 0x55d0_0010_0000..0x55d0_0020_0000;
        assert_eq!(in_program(backtrace, &program), "0x9f 0xffffe");
    }
}
