//! Memory and CPU time of the process, from the kernel's files. Zero where these files do not
//! exist.

use std::path::Path;

use env::Env;

/// Bytes that are read of a file at most; the files are shorter.
const PROC_FILE_MAX: u64 = 1 << 20;
/// Units of CPU time in `/proc` a second (USER_HZ, the same on all of Linux).
const TICKS_A_SECOND: u64 = 100;

/// Memory and CPU time of the process.
#[derive(Clone, Copy, Default)]
pub(super) struct Usage {
    /// Bytes of resident memory.
    pub resident: u64,
    /// Milliseconds of CPU time since the start.
    pub cpu_millis: u64,
}

pub(super) fn usage(env: &Env) -> Usage {
    Usage { resident: resident(env).unwrap_or(0), cpu_millis: cpu_millis(env).unwrap_or(0) }
}

fn read(env: &Env, path: &str) -> Option<String> {
    String::from_utf8(env.disk.read_all(Path::new(path), PROC_FILE_MAX).ok()?).ok()
}

fn resident(env: &Env) -> Option<u64> {
    let text = read(env, "/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

fn cpu_millis(env: &Env) -> Option<u64> {
    let text = read(env, "/proc/self/stat")?;
    // the second field is the name in brackets, which may hold anything; utime and stime are the
    // 14th and 15th
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) * 1000 / TICKS_A_SECOND)
}
