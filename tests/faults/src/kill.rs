//! Kill -9 at random moments, under writers, a changing schema, flushes and compactions; now and
//! then a second time while it starts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use scylla::client::session::Session;
use tokio::time::sleep;

use crate::Outcome;
use crate::builder::Builder;
use crate::node::Node;
use crate::report::Report;
use crate::writer::{self, HarmSignals, Writer};

/// Clients that write rows.
const WRITERS: i32 = 24;
/// A cycle writes at most so long.
const WRITING_MAX_MS: u64 = 1200;
/// A start is killed at the latest after this.
const STARTING_MAX_MS: u64 = 80;
/// A line of progress comes after so many cycles.
const PROGRESS_EVERY: u32 = 20;

/// All who write, and so know what has to be there.
pub struct Observers {
    writers: Vec<Writer>,
    builder: Builder,
}

impl Observers {
    /// New ones for an empty server.
    pub async fn new(session: &Session, seed: u64) -> Outcome<Self> {
        writer::create(session).await?;
        Builder::create(session).await?;
        Ok(Self { writers: (0..WRITERS).map(|id| Writer::new(id, seed)).collect(), builder: Builder::new(seed) })
    }

    /// Statements that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.writers.iter().map(|writer| writer.acknowledged).sum::<u64>() + self.builder.acknowledged
    }

    /// All write while `meanwhile` happens, which says so before it harms the server: an error
    /// before that is an error.
    pub async fn work(
        &mut self,
        session: Session,
        meanwhile: impl Future<Output = Outcome>,
        harm: Arc<HarmSignals>,
    ) -> Outcome {
        let session = Arc::new(session);
        let mut builder = std::mem::replace(&mut self.builder, Builder::new(0));
        let building = {
            let (session, harm) = (session.clone(), harm.clone());
            tokio::spawn(async move {
                let outcome = builder.work(&session, &harm).await;
                (builder, outcome)
            })
        };
        let writing: Vec<_> = std::mem::take(&mut self.writers)
            .into_iter()
            .map(|mut writer| {
                let (session, harm) = (session.clone(), harm.clone());
                tokio::spawn(async move {
                    let outcome = writer.work(&session, &harm).await;
                    (writer, outcome)
                })
            })
            .collect();
        let mut outcome = meanwhile.await;
        harm.ended.store(true, Ordering::Relaxed);
        for task in writing {
            let (writer, done) = task.await?;
            self.writers.push(writer);
            outcome = outcome.and(done);
        }
        let (builder, done) = building.await?;
        self.builder = builder;
        outcome.and(done)
    }

    /// Each answer is what was acknowledged or an error: how many are errors. Nothing may be under
    /// way.
    pub async fn right_or_refused(&self, session: &Session) -> Outcome<u32> {
        let mut refused = 0;
        for writer in &self.writers {
            refused += writer.right_or_refused(session).await?;
        }
        Ok(refused)
    }

    /// Everything acknowledged is there, and nothing else.
    pub async fn verify(&mut self, session: &Session) -> Outcome {
        let mut outcome = Ok(());
        for writer in &mut self.writers {
            outcome = outcome.and(writer.verify(session).await);
        }
        outcome.and(self.builder.verify(session).await)
    }
}

/// Settings that make files, segments and flushes many, and the log as one of its users might have
/// it.
pub fn settings(random: &mut StdRng) -> Vec<String> {
    let mut sets = vec![
        "commitlog_segment_size=1MiB",
        "commitlog_total_space=4MiB",
        "memtable_heap_space=2MiB",
        "memtable_offheap_space=2MiB",
        "row_cache_size=2MiB",
    ];
    sets.extend(match random.random_range(0..3) {
        0 => ["commitlog_sync=batch", "concurrent_compactors=1"],
        1 => ["commitlog_sync=group", "commitlog_sync_group_window=1ms"],
        _ => ["commitlog_sync=group", "commitlog_sync_group_window=10ms"],
    });
    sets.iter().flat_map(|set| ["--set".to_owned(), (*set).to_owned()]).collect()
}

/// Flushes and compactions for so long, at random moments.
pub async fn upkeep(node: &Node, random: &mut StdRng, time: Duration) {
    let end = tokio::time::Instant::now() + time;
    loop {
        let pause = Duration::from_millis(random.random_range(20..400));
        let words = ["flush", "flush", "flush", "compact", "garbagecollect"][random.random_range(0..5)];
        let busy = async {
            sleep(pause).await;
            // two at once may be refused, and a server that dies is seen by others
            let _ = node.nodetool(&[words, "observed"]).await;
        };
        if tokio::time::timeout_at(end, busy).await.is_err() {
            return;
        }
    }
}

/// So many cycles.
pub async fn run(program: &Path, place: &Path, seed: u64, cycles: u32, report: &mut Report) -> Outcome {
    let mut random = StdRng::seed_from_u64(seed);
    let mut node = Node::new(program, &place.join("data"), &place.join("log"))?;
    node.start(&settings(&mut random)).await?;
    let mut observers = Observers::new(&node.session().await?, seed).await?;
    let mut slowest = Duration::ZERO;
    let mut starts_killed = 0;
    for cycle in 1..=cycles {
        let written = write_and_kill(&mut node, &mut observers, &mut random).await;
        report.check(written, || format!("cycle {cycle}, writing"));
        let sets = settings(&mut random);
        while random.random_range(0..5) == 0 {
            node.spawn(&sets)?;
            sleep(Duration::from_millis(random.random_range(0..STARTING_MAX_MS))).await;
            report.check(node.kill().await, || format!("cycle {cycle}, a start that is killed"));
            starts_killed += 1;
        }
        slowest = slowest.max(node.start(&sets).await?);
        let verified = observers.verify(&node.session().await?).await;
        report.check(verified, || format!("cycle {cycle}, what is there after it"));
        if cycle % PROGRESS_EVERY == 0 {
            println!("{cycle} kills, {} statements acknowledged", observers.acknowledged());
        }
    }
    report.check(node.no_panic(), || "the log".to_owned());
    report.check(node.stop().await, || "the last stop".to_owned());
    let acknowledged = observers.acknowledged();
    println!(
        "{cycles} kills while writing, {starts_killed} while starting, {acknowledged} statements acknowledged; slowest start {slowest:?}"
    );
    Ok(())
}

/// Writes and upkeep for a while, then kill -9.
pub async fn write_and_kill(node: &mut Node, observers: &mut Observers, random: &mut StdRng) -> Outcome {
    let session = node.session().await?;
    let harm = Arc::new(HarmSignals::default());
    let time = Duration::from_millis(random.random_range(10..WRITING_MAX_MS));
    let kill = async {
        upkeep(node, random, time).await;
        harm.done.store(true, Ordering::Relaxed);
        node.kill().await
    };
    observers.work(session, kill, harm.clone()).await
}

/// Requests that began then have all had an answer by now.
pub fn in_time(begun: Instant, limit: Duration) -> Outcome {
    let time = begun.elapsed();
    if time > limit { Err(format!("requests had no answer for {time:?}").into()) } else { Ok(()) }
}
