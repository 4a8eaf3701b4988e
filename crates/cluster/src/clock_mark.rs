//! How far write timestamps have come, kept across restarts: where the wall clock has gone back meanwhile, writes go on from there. Without it
//! they would stand behind what was written before, acknowledged and not to be seen.
//!
//! A file of 12 bytes, written in place five times a second while there are writes: u64 microseconds since 1970, u32 CRC of them. It is not synced:
//! a power cut may take the last half minute of it, which matters only if the clock jumps with the power; a jump forwards right before a crash is not in it either. Cassandra has nothing of
//! the kind.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use env::{Env, Next, Wake};
use storage::Engine;

use crate::clock::WriteClock;

const FILE_NAME: &str = "helenus-clock-1.db";
/// Between two looks.
const PERIOD: Duration = Duration::from_millis(200);
/// What may have been given since the last look, microseconds, with room for a late one.
const UNMARKED_MICROS: i64 = 5_000_000;
const SIZE: usize = 12;

/// The clock of a node, and the task that marks how far it and the engine's are; none where nothing may be written or kept.
pub(crate) fn open(engine: &Arc<Engine>) -> (Arc<WriteClock>, Option<Wake>) {
    let env = &engine.env;
    let saved = engine.options.saved_caches.as_ref().filter(|_| !engine.options.read_only);
    let Some(saved) = saved else { return (Arc::new(WriteClock::new(env)), None) };
    let path = saved.directory.join(FILE_NAME);
    let marked = read(env, &path);
    let wall = env.clock.now_micros();
    let clock = match marked.filter(|marked| *marked > wall) {
        None => WriteClock::new(env),
        Some(marked) => {
            tracing::warn!(
                seconds = (marked - wall) / 1_000_000,
                "the wall clock is behind the timestamps that writes had before the restart: they go on from those"
            );
            let after = marked.saturating_add(UNMARKED_MICROS);
            engine.keep_timestamps_after(after);
            WriteClock::after(env, after)
        }
    };
    let clock = Arc::new(clock);
    let (of_writes, of_engine, mut written) = (Arc::clone(&clock), Arc::downgrade(engine), marked.unwrap_or(0));
    let step = move || {
        let Some(engine) = of_engine.upgrade() else { return Next::Done };
        let last = of_writes.last_micros().unwrap_or(0).max(engine.last_timestamp());
        if last > written {
            match write(&engine.env, &path, last) {
                Ok(()) => written = last,
                Err(error) => tracing::debug!(%error, path = %path.display(), "the clock cannot be marked"),
            }
        }
        Next::After(PERIOD)
    };
    let wake = env.tasks.background("clock", Box::new(step));
    wake.wake();
    (clock, Some(wake))
}

fn read(env: &Env, path: &Path) -> Option<i64> {
    let bytes: [u8; SIZE] = env.disk.read_all(path, SIZE as u64).ok()?.try_into().ok()?;
    let (micros, crc) = bytes.split_first_chunk::<8>()?;
    (crc == crc32fast::hash(micros).to_be_bytes()).then(|| i64::from_be_bytes(*micros))
}

fn write(env: &Env, path: &Path, micros: i64) -> io::Result<()> {
    let mut bytes = micros.to_be_bytes().to_vec();
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    let mut file = match env.disk.open_write(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // the directory of caches comes with the first that is saved; only it, so that a disk that is gone stays gone
            let above = path.parent().and_then(Path::parent);
            if above.is_some_and(|above| env.disk.exists(above)) {
                path.parent().map_or(Ok(()), |directory| env.disk.create_dir_all(directory))?;
            }
            env.disk.create(path)?
        }
        file => file?,
    };
    file.write_at(&bytes, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_comes_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let (env, path) = (env::real::env(), directory.path().join("saved").join(FILE_NAME));
        assert_eq!(read(&env, &path), None);
        for micros in [1_700_000_000_000_000, 1_800_000_000_000_001] {
            write(&env, &path, micros).expect("written");
            assert_eq!(read(&env, &path), Some(micros));
        }
        let mut file = env.disk.open_write(&path).expect("there");
        file.write_at(&[0xff], 3).expect("written");
        assert_eq!(read(&env, &path), None);
        assert!(write(&env, &directory.path().join("gone").join("saved").join(FILE_NAME), 1).is_err());
    }
}
