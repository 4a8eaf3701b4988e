//! Keeps the process below `--memory`: memory that was freed goes back to the system early when
//! little is left.
//!
//! The budget counts memory in use. The allocator keeps freed memory for a while, since using it
//! again is cheaper than asking for more; where large and small requests take turns, the process
//! then holds memory for both. So a task of its own looks at the resident memory, seldom while
//! there is room, and has the allocator return what is free when most of the limit is taken.

use std::path::Path;
use std::time::Duration;

use env::{Env, Next, Wake};

/// Tenths of the limit from which on freed memory is given back.
const GIVE_BACK_TENTHS: u64 = 8;
/// Tenths of the limit from which on the resident memory is looked at often.
const WATCH_TENTHS: u64 = 6;
/// The time between two looks while there is room.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The time between two looks while the resident memory is looked at often. In so long a load
/// frees a few per cent of the smallest limit.
const POLL_INTERVAL_SHORT: Duration = Duration::from_millis(20);
/// The most bytes that are read of `/proc/self/status`, which is shorter.
const STATUS_SIZE_MAX: u64 = 64 << 10;

/// Starts the task. It ends when the returned value is dropped.
pub fn keep_below(env: &Env, limit: u64) -> Wake {
    let of_task = env.clone();
    let wake = env.tasks.background("heap", Box::new(move || look(&of_task, limit)));
    wake.wake();
    wake
}

fn look(env: &Env, limit: u64) -> Next {
    let Some(resident) = resident(env) else { return Next::Done };
    if resident < limit / 10 * WATCH_TENTHS {
        return Next::After(POLL_INTERVAL);
    }
    if resident >= limit / 10 * GIVE_BACK_TENTHS {
        env::real::give_back_free_memory();
    }
    Next::After(POLL_INTERVAL_SHORT)
}

/// Resident bytes that are no pages of files. None: the kernel does not tell.
fn resident(env: &Env) -> Option<u64> {
    let text = env.disk.read_all(Path::new("/proc/self/status"), STATUS_SIZE_MAX).ok()?;
    anonymous(&String::from_utf8(text).ok()?)
}

fn anonymous(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells() {
        assert_eq!(anonymous("VmRSS:\t  20 kB\nRssAnon:\t      12 kB\nRssFile:\t 8 kB\n"), Some(12 << 10));
        assert_eq!(anonymous("VmRSS:\t  20 kB\n"), None);
        assert!(resident(&env::real::env()).is_some_and(|bytes| bytes > 0));
    }

    #[test]
    fn freed_memory_goes_back() {
        let env = env::real::env();
        // what a page of 64 MiB leaves behind
        let page = vec![1u8; 64 << 20];
        let with = resident(&env).expect("it tells");
        drop(std::hint::black_box(page));
        assert!(matches!(look(&env, 1), Next::After(POLL_INTERVAL_SHORT)));
        assert!(resident(&env).expect("it tells") < with - (32 << 20));
        assert!(matches!(look(&env, u64::MAX), Next::After(POLL_INTERVAL)));
    }
}
