//! `helenus ring down`: stops the ring that `helenus ring up` runs on a directory, as the signal
//! of its terminal does, and waits for its end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use env::Env;
use env::real::terminate_program;

use super::{DATA_DIR, POLL_INTERVAL, directory};

/// A ring that has just begun names its process within this time.
const PROCESS_MAX: Duration = Duration::from_secs(5);

/// A ring has ended within this time. Each node drains, and all do so at one time.
const END_MAX: Duration = Duration::from_secs(120);

/// Between two sentences that say that the ring still runs.
const TELL_INTERVAL: Duration = Duration::from_secs(5);

/// Options of `helenus ring down`.
#[derive(Args)]
pub struct Down {
    /// The directory of the ring, as `ring up` was given it.
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    data_dir: PathBuf,
}

/// Carries out `helenus ring down`.
pub async fn run(env: &Env, down: &Down) -> Result<(), String> {
    let directory = down.data_dir.as_path();
    let process = await_process(env, directory).await?;
    if let Err(error) = terminate_program(process)
        && error.kind() == std::io::ErrorKind::PermissionDenied
    {
        return Err(format!(
            "{}: the ring is process {process} of another user, which this user may not stop",
            directory.display()
        ));
    }
    // any other error means that the process has ended since it was found
    await_end(env, directory, process).await?;
    // an error means that nobody reads stdout: the ring has ended all the same
    let _ = writeln!(std::io::stdout(), "helenus ring down: the ring in {} has ended", directory.display());
    Ok(())
}

/// The process that looks after the ring. Its lock is there before its id.
async fn await_process(env: &Env, directory: &Path) -> Result<u32, String> {
    let begun = env.now();
    while is_held(env, directory)? {
        if let Some(process) = directory::process(env, directory) {
            return Ok(process);
        }
        if env.elapsed(begun) > PROCESS_MAX {
            let directory = directory.display();
            return Err(format!("{directory}: a ring runs, and its process is not known here: stop its `ring up`"));
        }
        env.sleep(POLL_INTERVAL).await;
    }
    let directory = directory.display();
    Err(format!("{directory}: no `ring up` runs on this directory (--data-dir names the directory of a ring)"))
}

async fn await_end(env: &Env, directory: &Path, process: u32) -> Result<(), String> {
    let begun = env.now();
    let mut told = Duration::ZERO;
    while is_held(env, directory)? {
        let waited = env.elapsed(begun);
        if waited > END_MAX {
            return Err(format!(
                "{}: process {process} has not ended after {} s; another `ring down` ends its nodes without a drain",
                directory.display(),
                END_MAX.as_secs()
            ));
        }
        if waited > told + TELL_INTERVAL {
            told = waited;
            eprintln!("helenus: {}: the nodes drain, for {} s now", directory.display(), waited.as_secs());
        }
        env.sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

fn is_held(env: &Env, directory: &Path) -> Result<bool, String> {
    directory::is_held(env, directory).map_err(|error| format!("{}: {error}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::block_on;

    #[test]
    fn a_directory_without_a_ring_is_left_as_it_is() {
        let (env, directory) = (env::real::env(), tempfile::tempdir().expect("a directory"));
        for data_dir in [directory.path().to_owned(), directory.path().join("absent")] {
            let refused = block_on(run(&env, &Down { data_dir: data_dir.clone() })).expect_err("no ring");
            assert!(refused.starts_with(&format!("{}: no `ring up` runs", data_dir.display())), "{refused}");
        }
        assert_eq!(env.disk.list_dir(directory.path()).expect("names").len(), 0);
    }
}
