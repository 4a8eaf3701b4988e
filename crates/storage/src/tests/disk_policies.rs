//! The failures of which the policies for failing disks are told while a node runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use env::sim::{DATA, EIO, EMFILE, ENOSPC, Fault, Op, Sim};
use rows::{Corruption, ReadError};

use super::restart::{mutation, open, options};
use crate::{DiskFailurePolicy, EngineOptions, OnDiskFailure, StorageError};

/// Flushes that fail, reads that the device refuses, and damage, of a node with each policy.
#[test]
fn each_policy_is_told_of_what_it_is_about() {
    use DiskFailurePolicy::{Die, Ignore, Stop, StopParanoid};
    for (policy, of_disk, of_damage) in
        [(Ignore, false, false), (Stop, true, false), (StopParanoid, true, true), (Die, true, true)]
    {
        let sim = Sim::new(77);
        let count = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&count);
        let on_disk_failure: OnDiskFailure = Arc::new(move |of: DiskFailurePolicy, _: &StorageError| {
            assert_eq!(of, policy);
            told.fetch_add(1, Ordering::Relaxed);
        });
        let of_beneath = options(Path::new(DATA), 16 << 20);
        let (engine, _) =
            open(&sim.env(), EngineOptions { disk_failure_policy: policy, on_disk_failure, ..of_beneath });
        let store = engine.table_by_name("restart", "t").expect("open");
        let of_flush = |errno: i32| {
            engine.apply(&[mutation(&engine, 1, errno, 1_000)]).expect("the log is sound");
            sim.disk().inject(Fault { errno, times: u64::MAX, ..Fault::next(Op::Create, "-Data.db") });
            sim.block_on(engine.flush(&store)).expect_err("the disk fails");
            sim.disk().heal();
            count.swap(0, Ordering::Relaxed) > 0
        };
        assert_eq!([ENOSPC, EMFILE, EIO].map(of_flush), [false, false, of_disk], "{policy:?}: flushes");
        let path = |directory: &str| Path::new(DATA).join(directory).join("a file");
        let unread = |directory: &str| ReadError::Io { path: path(directory), message: "an error".to_owned() };
        let damage = Corruption { path: path("data"), offset: 7, what: "a checksum".to_owned() };
        let reads = [unread("data"), damage.into(), unread("commitlog"), ReadError::WouldBlock];
        let of_read = |error: ReadError| {
            engine.inspect_read(&error);
            count.swap(0, Ordering::Relaxed) > 0
        };
        assert_eq!(reads.map(of_read), [of_disk, of_damage, false, false], "{policy:?}: reads");
        store.dropped.store(true, Ordering::Release);
        engine.inspect(&store, &unread("data").into());
        assert_eq!(count.load(Ordering::Relaxed), 0, "{policy:?}: its directory goes");
    }
}
