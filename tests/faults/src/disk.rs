//! A disk that fails while the server writes, flushes, compacts and reads. What was acknowledged is
//! there afterwards, nothing else is; reads go on where they can; requests are answered or refused
//! and do not hang; the process ends only where `commit_failure_policy: die` says so, and serves no
//! client only where that or `disk_failure_policy` is `stop`.
//!
//! A sync that fails takes what it should have kept with it: who believes a second one that
//! succeeds has lost what he acknowledged.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;

use crate::Outcome;
use crate::inject::{Injection, Rule, drop_caches};
use crate::kill::{Observers, in_time, settings, upkeep};
use crate::node::Node;
use crate::report::Report;
use crate::space::writes_again;
use crate::writer::HarmSignals;

/// How long writers write before the fault, and how long it lasts.
const BEFORE: Duration = Duration::from_millis(300);
const FAULT: Duration = Duration::from_millis(1500);
/// Clients have their answers so soon after the fault; the server's own timeouts are below.
const ANSWERED: Duration = Duration::from_secs(20);

/// A failure of the disk. `of_log`: it strikes the commit log, which follows
/// `commit_failure_policy`; others follow `disk_failure_policy`.
struct Fault {
    name: &'static str,
    rule: Rule,
    of_log: bool,
}

const fn fault(name: &'static str, call: &'static str, path: &'static str, loses: bool, of_log: bool) -> Fault {
    Fault { name, rule: Rule { call, path, times: None, loses }, of_log }
}

const FAULTS: [Fault; 12] = [
    fault("log-write", "write", "*/CommitLog-*", false, true),
    fault("log-sync", "sync", "*/CommitLog-*", true, true),
    fault("log-open", "open", "*/CommitLog-*", false, true),
    fault("log-directory", "sync", "*/commitlog", false, true),
    fault("flush-write", "write", "*/observed/*", false, false),
    fault("flush-sync", "sync", "*/observed/*.db", true, false),
    fault("flush-open", "open", "*/observed/*-Data.db", false, false),
    fault("flush-directory", "sync", "*/observed/*-????????????????????????????????", false, false),
    fault("flush-transaction", "write", "*_txn_*", false, false),
    fault("remove", "unlink", "*/observed/*", false, false),
    fault("read", "read", "*/observed/*-Data.db", false, false),
    fault("read-any", "read", "*/observed/*", false, false),
];

const LOG_POLICIES: [&str; 4] = ["stop", "stop_commit", "ignore", "die"];
const DISK_POLICIES: [&str; 2] = ["ignore", "stop"];

/// `commit_failure_policy` and `disk_failure_policy` of a start.
#[derive(Clone, Copy, Debug)]
struct Policies {
    log: &'static str,
    disk: &'static str,
}

impl Policies {
    fn draw(random: &mut StdRng) -> Self {
        let log = LOG_POLICIES.choose(random).copied().unwrap_or("stop");
        Self { log, disk: DISK_POLICIES.choose(random).copied().unwrap_or("ignore") }
    }

    /// Whether a fault may end the traffic of clients.
    fn may_close(self, fault: &Fault) -> bool {
        if fault.of_log { self.log == "stop" } else { self.disk == "stop" }
    }
}

/// So many faults.
pub async fn run(program: &Path, place: &Path, seed: u64, rounds: u32, only: &str, report: &mut Report) -> Outcome {
    let injection = Injection::new(place).map_err(|error| format!("no library before libc: {error}"))?;
    let mut random = StdRng::seed_from_u64(seed);
    let mut node = Node::new(program, &place.join("data"), &place.join("log"))?;
    node.set_variables(injection.variables());
    let mut policies = Policies { log: "stop", disk: "ignore" };
    node.start(&with_policies(&mut random, policies)).await?;
    let mut observers = Observers::new(&node.session().await?, seed).await?;
    let faults: Vec<&Fault> = FAULTS.iter().filter(|fault| fault.name.contains(only)).collect();
    let mut hits = vec![0; faults.len()];
    for round in 1..=rounds {
        let which = (round as usize - 1) % faults.len();
        let mut fault = Fault { ..*faults[which] };
        fault.rule.times = [None, Some(1), Some(3)][random.random_range(0..3)];
        let what = format!("round {round}, {} {:?}, {policies:?}", fault.name, fault.rule.times);
        let failed = fail(&mut node, &injection, &mut observers, &mut random, &fault, policies).await;
        injection.clear()?;
        hits[which] += injection.hits()?;
        report.check(failed, || what.clone());
        let is_over = fault.of_log || policies.may_close(&fault) || node.ended()?;
        let restarts = is_over || random.random_range(0..2) == 0;
        if restarts {
            if !node.ended()? {
                report.check(node.kill().await, || format!("{what}, killed"));
            }
            policies = Policies::draw(&mut random);
            node.start(&with_policies(&mut random, policies)).await.map_err(|error| format!("{what}: {error}"))?;
        }
        let session = node.session().await?;
        report.check(observers.verify(&session).await, || format!("{what}, what is there after it"));
        report.check(writes_again(&session).await, || format!("{what}, writes after it"));
    }
    report.check(node.no_panic(), || "the log".to_owned());
    report.check(node.stop().await, || "the last stop".to_owned());
    let hits: Vec<String> = faults.iter().zip(hits).map(|(fault, hits)| format!("{} {hits}", fault.name)).collect();
    println!(
        "{rounds} faults, {} statements acknowledged; calls that failed: {}",
        observers.acknowledged(),
        hits.join(", ")
    );
    Ok(())
}

fn with_policies(random: &mut StdRng, policies: Policies) -> Vec<String> {
    let mut sets = settings(random);
    let keys = [("commit_failure_policy", policies.log), ("disk_failure_policy", policies.disk)];
    sets.extend(keys.into_iter().flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={value}")]));
    sets
}

async fn fail(
    node: &mut Node,
    injection: &Injection,
    observers: &mut Observers,
    random: &mut StdRng,
    fault: &Fault,
    policies: Policies,
) -> Outcome {
    let harm = Arc::new(HarmSignals::default());
    let (session, reader) = (node.session().await?, node.session().await?);
    let begun = Instant::now();
    let meanwhile = async {
        upkeep(node, random, BEFORE).await;
        harm.done.store(true, Ordering::Relaxed);
        if fault.rule.call == "read" {
            drop_caches(node.data())?;
        }
        injection.set(&[fault.rule])?;
        upkeep(node, random, FAULT).await;
        let (may_end, may_close) = (fault.of_log && policies.log == "die", policies.may_close(fault));
        // of what is in memory: the disk has no part in it
        let read = reader.query_unpaged("SELECT key FROM system.local", &[]).await;
        injection.clear()?;
        // a process that ends takes a moment
        sleep(Duration::from_millis(50)).await;
        match (read, node.ended()?) {
            (_, true) if may_end && injection.hits()? > 0 => Ok(()),
            (_, true) => Err("the server ended".into()),
            (Ok(_), false) => Ok(()),
            (Err(_), false) if may_close && injection.hits()? > 0 => Ok(()),
            (Err(error), false) => Err(format!("a read while the disk fails: {error}").into()),
        }
    };
    observers.work(session, meanwhile, harm.clone()).await?;
    in_time(begun, BEFORE + FAULT + ANSWERED)
}
