//! The two files by which a directory tells of the ring that runs on it. The program that looks
//! after the ring, `helenus ring up`, holds the lock of `ring.lock`, which the kernel releases
//! when the program ends in any way. `ring.pid` has the program's process id in digits. The file
//! of a program that was killed stays, and its id may be another process by now: an id counts only
//! together with the lock and with the command line of the process.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use env::{Env, Lock};

const LOCK_FILE: &str = "ring.lock";
const PROCESS_FILE: &str = "ring.pid";

/// Bytes of a process id with the end of its line, and more than any has.
const PROCESS_FILE_MAX: u64 = 32;

/// Bytes of a command line, at most what the kernel takes by default.
const COMMAND_LINE_MAX: u64 = 2 << 20;

/// Makes the directory of a ring, locks it, and writes down that this process looks after the
/// ring. A second ring on the directory would empty the output of the nodes that run there, before
/// its own nodes find that their directories are taken.
pub fn hold(env: &Env, directory: &Path) -> Result<Box<dyn Lock>, String> {
    let failed = |error: io::Error| format!("{}: {error}", directory.display());
    env.disk.create_dir_durable(directory).map_err(failed)?;
    let lock = env.disk.lock_file(&directory.join(LOCK_FILE)).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => {
            format!("{}: another `ring up` runs on this directory (`ring down` stops it)", directory.display())
        }
        _ => failed(error),
    })?;
    let process = format!("{}\n", std::process::id());
    env.disk.replace_file(&directory.join(PROCESS_FILE), process.as_bytes()).map_err(failed)?;
    Ok(lock)
}

/// Gives the directory back. The process id goes first, while no other ring can write its own.
pub fn release(env: &Env, directory: &Path, lock: Box<dyn Lock>) {
    // an id that stays names no process that holds the lock: nothing is lost
    let _ = env.disk.remove_file(&directory.join(PROCESS_FILE));
    drop(lock);
}

/// Whether a ring runs on the directory.
pub fn is_held(env: &Env, directory: &Path) -> io::Result<bool> {
    let path = directory.join(LOCK_FILE);
    // a look makes no file where there has never been a ring
    if !env.disk.exists(&path) {
        return Ok(false);
    }
    match env.disk.lock_file(&path) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

/// The id of the process that looks after the ring which runs on the directory. None: the process
/// has not written it yet, or the file is left from another one.
pub fn process(env: &Env, directory: &Path) -> Option<u32> {
    let process = process_id(&env.disk.read_all(&directory.join(PROCESS_FILE), PROCESS_FILE_MAX).ok()?)?;
    let command_line = PathBuf::from(format!("/proc/{process}/cmdline"));
    is_ring_up(&env.disk.read_all(&command_line, COMMAND_LINE_MAX).ok()?).then_some(process)
}

fn process_id(content: &[u8]) -> Option<u32> {
    let process: u32 = std::str::from_utf8(content).ok()?.trim_end().parse().ok()?;
    // 0 and negative numbers would signal groups of processes
    (process > 0 && i32::try_from(process).is_ok()).then_some(process)
}

/// `command_line`: the words with a zero behind each, as the kernel shows them.
fn is_ring_up(command_line: &[u8]) -> bool {
    let words: Vec<&[u8]> = command_line.split(|byte| *byte == 0).collect();
    words.windows(2).any(|pair| *pair == [b"ring".as_slice(), b"up".as_slice()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_ring_at_a_time() {
        let (env, directory) = (env::real::env(), tempfile::tempdir().expect("a directory"));
        let path = directory.path().join("ring");
        assert!(!is_held(&env, &path).expect("a look"));
        let held = hold(&env, &path).expect("the first one");
        assert!(is_held(&env, &path).expect("a look"));
        let refused = hold(&env, &path).err().expect("the second one");
        assert!(refused.contains(": another `ring up` runs on this directory"), "{refused}");
        release(&env, &path, held);
        assert!(!is_held(&env, &path).expect("a look"));
        assert!(hold(&env, &path).is_ok());
    }

    #[test]
    fn no_process_but_that_of_a_ring_is_found() {
        let (env, directory) = (env::real::env(), tempfile::tempdir().expect("a directory"));
        // the process of this test is none of `ring up`, as one that was given the id of a ring
        let lock = hold(&env, directory.path()).expect("a ring");
        let content = env.disk.read_all(&directory.path().join(PROCESS_FILE), PROCESS_FILE_MAX).expect("written");
        assert_eq!(process_id(&content), Some(std::process::id()));
        assert_eq!(process(&env, directory.path()), None);
        release(&env, directory.path(), lock);
        assert_eq!(process(&env, directory.path()), None);
        for garbage in ["", "0", "-1", "4294967295", "99999999999", "12 13", "\u{e4}"] {
            assert_eq!(process_id(garbage.as_bytes()), None, "{garbage}");
        }
        assert_eq!(process_id(&[0xff, 0xfe]), None);
        assert!(is_ring_up(b"/usr/bin/helenus\0ring\0up\x003\0"));
        assert!(!is_ring_up(b"/usr/bin/helenus\0ring\0down\0") && !is_ring_up(b"vi\0ring up\0") && !is_ring_up(b""));
    }
}
