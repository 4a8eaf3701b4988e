//! The profile of the node: two looks at the kernel's files of its threads, some time apart.
//!
//! `/proc/self/task/ID/schedstat` has the nanoseconds on a core, the nanoseconds in the queue for
//! one, and the turns. Where a kernel has no such file, or a thread ends meanwhile, the thread is
//! left out. One profile is taken at a time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use admin::verbs::{GetMetrics, GetProfile, Profile, ThreadUse};
use admin::{Functions, Result};
use cluster::operations::commit_log;
use env::Env;

use super::{NodeAdmin, failed, invalid, monitoring, runtime};

/// Threads that are looked at.
const THREADS_MAX: usize = 4_096;
/// Bytes that are read of a file of the kernel; the files are shorter.
const FILE_SIZE_MAX: u64 = 64 << 10;
/// Shortest and longest time that a node is watched, milliseconds.
const DURATION: std::ops::RangeInclusive<u64> = 100..=60_000;

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(profile);
}

fn profile(admin: &NodeAdmin, request: &GetProfile) -> Result<Profile> {
    static RUNS: AtomicBool = AtomicBool::new(false);
    if !DURATION.contains(&request.duration_millis) {
        return invalid("a profile takes 100 to 60000 milliseconds");
    }
    if RUNS.swap(true, Ordering::AcqRel) {
        return Err(failed("a profile is being taken already"));
    }
    let profile = watch(admin, Duration::from_millis(request.duration_millis));
    RUNS.store(false, Ordering::Release);
    profile
}

fn watch(admin: &NodeAdmin, duration: Duration) -> Result<Profile> {
    let env = &admin.services.node.env;
    let log = || commit_log::waiting_on_commit(admin.cluster()).snapshot();
    let (begun, waits, before, disks) = (env.now(), log(), threads(env), disks(env));
    runtime()?.block_on(async { env.sleep(duration).await });
    let (after, disks_after) = (threads(env), self::disks(env));
    let mut threads: Vec<ThreadUse> = after
        .into_iter()
        .filter_map(|(id, now)| {
            let then = before.get(&id)?;
            Some(ThreadUse {
                id,
                cpu_micros: now.cpu_micros.saturating_sub(then.cpu_micros),
                queued_micros: now.queued_micros.saturating_sub(then.queued_micros),
                turns: now.turns.saturating_sub(then.turns),
                name: now.name,
            })
        })
        .collect();
    threads.sort_by_key(|thread| std::cmp::Reverse((thread.cpu_micros, thread.queued_micros)));
    let mut memory = resident(env);
    memory.extend(monitoring::metrics(admin, &GetMetrics {})?.memory);
    Ok(Profile {
        micros: u64::try_from(env.elapsed(begun).as_micros()).unwrap_or(u64::MAX),
        threads,
        memory,
        disk_read: disks_after.0.saturating_sub(disks.0),
        disk_written: disks_after.1.saturating_sub(disks.1),
        waiting_on_commit: log().since(&waits).into(),
    })
}

fn read(env: &Env, path: &str) -> Option<String> {
    String::from_utf8(env.disk.read_all(Path::new(path), FILE_SIZE_MAX).ok()?).ok()
}

/// The threads by their ids, since their start.
fn threads(env: &Env) -> BTreeMap<u64, ThreadUse> {
    let entries = env.disk.list_dir(Path::new("/proc/self/task")).unwrap_or_default();
    let ids = entries.iter().filter_map(|entry| entry.name.parse::<u64>().ok()).take(THREADS_MAX);
    ids.filter_map(|id| Some((id, thread(env, id)?))).collect()
}

fn thread(env: &Env, id: u64) -> Option<ThreadUse> {
    let name = read(env, &format!("/proc/self/task/{id}/comm"))?.trim().to_owned();
    let text = read(env, &format!("/proc/self/task/{id}/schedstat"))?;
    let mut fields = text.split_whitespace().map(|field| field.parse::<u64>().ok());
    let (cpu, queued, turns) = (fields.next()??, fields.next()??, fields.next()??);
    Some(ThreadUse { name, id, cpu_micros: cpu / 1_000, queued_micros: queued / 1_000, turns })
}

/// Bytes read from and written to disks since the start.
fn disks(env: &Env) -> (u64, u64) {
    let text = read(env, "/proc/self/io").unwrap_or_default();
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    (of("read_bytes:").unwrap_or(0), of("write_bytes:").unwrap_or(0))
}

/// Resident memory as the kernel counts it.
fn resident(env: &Env) -> Vec<(String, u64)> {
    let text = read(env, "/proc/self/status").unwrap_or_default();
    let of = |field: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(field))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
    };
    let kinds = [("most_resident", "VmHWM:"), ("anonymous", "RssAnon:"), ("of_files", "RssFile:")];
    kinds.into_iter().filter_map(|(name, field)| Some((name.to_owned(), of(field)?))).collect()
}
