//! A directory that disappears while the server works, as a disk does that is unmounted, and comes
//! back. Nothing is made anew in its place; what was acknowledged is there afterwards. A server
//! whose commit log, a flush or a read has failed by it serves no client until it is started again,
//! and says so (`commit_failure_policy: stop`, `disk_failure_policy: stop`); any other answers what
//! it has in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::Outcome;
use crate::kill::{Observers, in_time, settings, upkeep};
use crate::node::Node;
use crate::report::Report;
use crate::space::writes_again;
use crate::writer::HarmSignals;

/// How long writers write before, and how long it is away.
const BEFORE: Duration = Duration::from_millis(300);
const AWAY: Duration = Duration::from_millis(1500);
/// Clients have their answers so soon after it is back.
const ANSWERED: Duration = Duration::from_secs(20);

/// The words of the server's log when it serves no client any more.
const CLOSED: &str = "clients are no longer served";

/// Directories in the server's: everything, SSTables, those of one keyspace, the log.
const DIRECTORIES: [&str; 4] = ["", "data", "data/observed", "commitlog"];

/// So many times.
pub async fn run(program: &Path, place: &Path, seed: u64, rounds: u32, report: &mut Report) -> Outcome {
    let mut random = StdRng::seed_from_u64(seed);
    let mut node = Node::new(program, &place.join("data"), &place.join("log"))?;
    node.start(&settings(&mut random)).await?;
    let mut observers = Observers::new(&node.session().await?, seed).await?;
    for round in 1..=rounds {
        let name = DIRECTORIES.choose(&mut random).copied().unwrap_or_default();
        let what = format!("round {round}, {:?} away", if name.is_empty() { "everything" } else { name });
        let away = MovedDirectory { at: node.data().join(name), hidden: place.join("hidden") };
        let outcome = vanish(&mut node, &away, &mut observers, &mut random).await;
        report.check(outcome, || what.clone());
        report.check(away.put_back(), || format!("{what}, put back"));
        report.check(node.kill().await, || format!("{what}, killed"));
        node.start(&settings(&mut random)).await.map_err(|error| format!("{what}: {error}"))?;
        let session = node.session().await?;
        report.check(observers.verify(&session).await, || format!("{what}, what is there after it"));
        report.check(writes_again(&session).await, || format!("{what}, writes after it"));
    }
    report.check(node.no_panic(), || "the log".to_owned());
    report.check(node.stop().await, || "the last stop".to_owned());
    println!("{rounds} times away, {} statements acknowledged", observers.acknowledged());
    Ok(())
}

/// A directory, and where it is meanwhile.
struct MovedDirectory {
    at: PathBuf,
    hidden: PathBuf,
}

impl MovedDirectory {
    fn take(&self) -> Outcome {
        Ok(std::fs::rename(&self.at, &self.hidden)?)
    }

    /// An error if there is another in its place; that goes.
    fn put_back(&self) -> Outcome {
        let mut made = Vec::new();
        if self.at.exists() {
            list(&self.at, &mut made)?;
            std::fs::remove_dir_all(&self.at)?;
        }
        std::fs::rename(&self.hidden, &self.at)?;
        if made.is_empty() { Ok(()) } else { Err(format!("it was made anew: {made:?}").into()) }
    }
}

fn list(directory: &Path, found: &mut Vec<PathBuf>) -> Outcome {
    found.push(directory.to_owned());
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

async fn vanish(node: &mut Node, away: &MovedDirectory, observers: &mut Observers, random: &mut StdRng) -> Outcome {
    let harm = Arc::new(HarmSignals::default());
    let (session, reader) = (node.session().await?, node.session().await?);
    let begun = Instant::now();
    let meanwhile = async {
        upkeep(node, random, BEFORE).await;
        harm.done.store(true, Ordering::Relaxed);
        let closed = node.log().matches(CLOSED).count();
        away.take()?;
        upkeep(node, random, AWAY).await;
        let read = reader.query_unpaged("SELECT key FROM system.local", &[]).await;
        if node.ended()? {
            return Err("the server ended".into());
        }
        match read {
            Err(error) if node.log().matches(CLOSED).count() == closed => {
                Err(format!("a read while it is away: {error}").into())
            }
            _ => Ok(()),
        }
    };
    observers.work(session, meanwhile, harm.clone()).await?;
    in_time(begun, BEFORE + AWAY + ANSWERED)
}
