//! How far write timestamps have come, kept across restarts: where the wall clock has gone back
//! meanwhile, writes go on from there. Otherwise new writes would have earlier timestamps than the
//! data that they replace: they would be acknowledged, and never seen.
//!
//! A file of 12 bytes, written in place five times a second while there are writes: u64
//! microseconds since 1970, u32 CRC of them. It is not synced: a power cut may take the last half
//! minute of it, which matters only if the clock jumps with the power; a jump forwards right before
//! a crash is not in it either. Cassandra has nothing of the kind.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use env::{Env, Next, Wake};
use storage::Engine;

use crate::clock::WriteClock;

const FILE_NAME: &str = "helenus-clock-1.db";
/// Time between two looks at the clock.
const PERIOD: Duration = Duration::from_millis(200);
/// How far timestamps may be ahead of the last mark, microseconds: more than the time between two
/// looks, because a look may come late. A start adds this to the mark.
const UNMARKED_MICROS: i64 = 5_000_000;
const SIZE: usize = 12;

/// The clock of a node, and the task that marks how far it is; none where nothing may be written or
/// kept.
///
/// Both clocks start at the mark or at the time of the wall clock now, whichever is later. The
/// wall clock is read now because it may be set back before the first timestamp is asked for.
pub(crate) fn open(engine: &Arc<Engine>) -> (Arc<WriteClock>, Option<Wake>) {
    let env = &engine.env;
    let saved = engine.options.saved_caches.as_ref().filter(|_| !engine.options.read_only);
    let path = saved.map(|saved| saved.directory.join(FILE_NAME));
    let marked = path.as_ref().and_then(|path| read(env, path));
    let wall = env.clock.now_micros();
    let after = match marked.filter(|marked| *marked > wall) {
        None => wall,
        Some(marked) => {
            tracing::warn!(
                seconds = (marked - wall) / 1_000_000,
                "the wall clock is behind the timestamps that writes had before the restart: they go on from those"
            );
            marked.saturating_add(UNMARKED_MICROS)
        }
    };
    engine.keep_timestamps_after(after);
    let clock = Arc::new(WriteClock::after(env, after));
    let Some(path) = path else { return (clock, None) };
    let (of_writes, of_engine, mut written) = (Arc::clone(&clock), Arc::downgrade(engine), marked.unwrap_or(0));
    let step = move || {
        let Some(engine) = of_engine.upgrade() else { return Next::Done };
        // the engine finds the last timestamp of its own rows in these rows
        let last = of_writes.last_micros();
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
            // the directory of caches comes with the first that is saved; only it, so that a disk
            // that is gone stays gone
            if let Some((directory, above)) = path.parent().and_then(|directory| Some((directory, directory.parent()?)))
            {
                env.disk.create_dir_below(above, directory)?;
            }
            env.disk.create(path)?
        }
        file => file?,
    };
    file.write_at(&bytes, 0)
}

#[cfg(test)]
mod tests {
    use env::sim::{DATA, Sim};
    use storage::EngineOptions;
    use storage::options::SavedCaches;

    use super::*;

    fn opened(sim: &Sim) -> Arc<Engine> {
        let saved = SavedCaches {
            directory: Path::new(DATA).join("saved"),
            keys_period: None,
            rows_period: None,
            keys_to_save: 0,
            rows_to_save: 0,
            load_timeout: PERIOD,
        };
        let options = EngineOptions { saved_caches: Some(saved), ..EngineOptions::with_small_budgets(Path::new(DATA)) };
        storage::open(&sim.env(), options).expect("a sound disk opens").0
    }

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn timestamps_of_both_clocks_are_after_those_of_the_process_before() {
        let sim = Sim::new(1);
        let mut last = i64::MIN;
        // between two processes the clock goes forwards or back; in each it goes back before the
        // first timestamp is asked for
        for between in [0, HOUR, -3 * HOUR, 5 * HOUR, 0] {
            sim.shift_wall_clock(between);
            let engine = opened(&sim);
            let (clock, marking) = open(&engine);
            sim.shift_wall_clock(-2 * HOUR);
            assert!(clock.next_micros() > last && engine.last_timestamp() > last, "{between}");
            sim.shift_wall_clock(3 * HOUR);
            last = clock.next_micros().max(engine.last_timestamp());
            sim.advance(PERIOD);
            sim.run_until_idle();
            drop((clock, marking, engine));
            sim.kill();
        }
    }

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
