//! How many records a second the commit log takes: `cargo run --release -p bench-parts --example
//! commitlog_bench [directory]`.
//!
//! First appends alone (the mutex and the copy, with the writer at work beside), then writers who
//! each wait for durability before their next record, from 1 to 1024 at a time: group commit.

use std::path::PathBuf;
use std::time::Duration;

use env::Env;
use futures_util::future::join_all;
use storage::commitlog::{CommitLog, Options, SyncMode};

const RECORD: [u8; 200] = [7; 200];

fn main() {
    let directory = std::env::args().nth(1).map_or_else(|| std::env::temp_dir().join("commitlog-bench"), PathBuf::from);
    let env = env::real::env();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let log = open(&env, &directory, SyncMode::Periodic(Duration::from_secs(10)));
        report("append, periodic", 2_000_000, &env, append(&log, 2_000_000)).await;
        drop(log);
        for writers in [1, 16, 128, 1024] {
            let log = open(&env, &directory, SyncMode::Batch);
            let each = 2000;
            let all = join_all((0..writers).map(|_| write_durably(&log, each)));
            let before = log.stats().syncs;
            report(&format!("durable, {writers} writers"), writers * each, &env, async { drop(all.await) }).await;
            println!("    {} syncs", log.stats().syncs - before);
        }
    });
    env.disk.remove_dir_all(&directory).expect("removed");
}

fn open(env: &Env, directory: &std::path::Path, sync: SyncMode) -> CommitLog {
    if env.disk.exists(directory) {
        env.disk.remove_dir_all(directory).expect("removed");
    }
    CommitLog::open(env, directory, Options { sync, ..Options::default() }).expect("opened").0
}

async fn append(log: &CommitLog, count: usize) {
    for _ in 0..count {
        while log.append(&RECORD, &[]).is_err() {
            log.wait_for_room().await;
        }
    }
}

async fn write_durably(log: &CommitLog, count: usize) {
    for _ in 0..count {
        let position = log.append(&RECORD, &[]).expect("room");
        log.wait_durable(position).await.expect("durable");
    }
}

async fn report(what: &str, count: usize, env: &Env, work: impl Future<Output = ()>) {
    let start = env.now();
    work.await;
    let seconds = env.elapsed(start).as_secs_f64();
    println!("{what}: {:.0} records/s", count as f64 / seconds);
}
