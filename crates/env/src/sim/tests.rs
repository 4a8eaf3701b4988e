//! The simulated machine: durability, faults, and equal runs of equal seeds.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::{Disk, Next, accept};

fn write(disk: &dyn Disk, path: &str, content: &[u8], sync: bool) {
    let mut file = disk.create(Path::new(path)).expect("created");
    file.write_all(content).expect("written");
    if sync {
        file.sync_data().expect("synced");
    }
}

fn read(disk: &dyn Disk, path: &str) -> Option<Vec<u8>> {
    disk.read_all(Path::new(path), 1 << 20).ok()
}

/// Which of the possible outcomes of a scenario occur over many seeds.
fn outcomes(scenario: impl Fn(&Sim) -> String) -> Vec<String> {
    let mut seen: Vec<String> = (0..100).map(|seed| scenario(&Sim::new(seed))).collect();
    seen.sort();
    seen.dedup();
    seen
}

#[test]
fn a_synced_file_with_a_synced_name_survives_a_power_cut() {
    let seen = outcomes(|sim| {
        let env = sim.env();
        write(&*env.disk, "/data/a", b"kept", true);
        env.disk.sync_dir(Path::new(DATA)).expect("synced");
        sim.power_cut();
        format!("{:?}", read(&*sim.env().disk, "/data/a").map(|content| content.len()))
    });
    assert_eq!(seen, ["Some(4)"]);
}

#[test]
fn what_was_not_synced_may_be_lost_torn_or_kept() {
    let seen = outcomes(|sim| {
        let env = sim.env();
        write(&*env.disk, "/data/a", &[1; 1024], true);
        env.disk.sync_dir(Path::new(DATA)).expect("synced");
        let mut file = env.disk.open_write(Path::new("/data/a")).expect("opened");
        file.write_at(&[2; 1024], 0).expect("written");
        assert_eq!(read(&*env.disk, "/data/a").expect("there"), [2; 1024]);
        sim.power_cut();
        let content = read(&*sim.env().disk, "/data/a").expect("there");
        format!("{} {}", content[0], content[1023])
    });
    assert_eq!(seen, ["1 1", "1 2", "2 1", "2 2"]);
}

#[test]
fn names_need_a_sync_of_their_directory() {
    let seen = outcomes(|sim| {
        let env = sim.env();
        write(&*env.disk, "/data/tmp", b"x", true);
        env.disk.sync_dir(Path::new(DATA)).expect("synced");
        env.disk.rename(Path::new("/data/tmp"), Path::new("/data/final")).expect("renamed");
        sim.power_cut();
        let names = sim.env().disk.list_dir(Path::new(DATA)).expect("listed");
        names.into_iter().map(|entry| entry.name).collect::<Vec<_>>().join(" ")
    });
    assert_eq!(seen, ["final", "tmp"]);
}

#[test]
fn nothing_of_a_disk_that_was_replaced_comes_back() {
    let seen = outcomes(|sim| {
        let disk = sim.env().disk;
        write(&*disk, "/data/a", b"1", true);
        disk.sync_dir(Path::new("/data")).expect("synced");
        sim.disk().replace();
        sim.power_cut();
        format!("{:?}", read(&*sim.env().disk, "/data/a"))
    });
    assert_eq!(seen, ["None"]);
}

#[test]
fn directories_come_and_go_as_their_names_do() {
    let seen = outcomes(|sim| {
        let env = sim.env();
        env.disk.create_dir_durable(Path::new("/data/ks/t")).expect("created");
        write(&*env.disk, "/data/ks/t/a", b"x", true);
        env.disk.sync_dir(Path::new("/data/ks/t")).expect("synced");
        sim.power_cut();
        let env = sim.env();
        assert_eq!(read(&*env.disk, "/data/ks/t/a").expect("there"), b"x");
        env.disk.remove_dir_all(Path::new("/data/ks")).expect("removed");
        assert!(!env.disk.exists(Path::new("/data/ks/t")));
        env.disk.sync_dir(Path::new(DATA)).expect("synced");
        sim.power_cut();
        format!("{}", sim.env().disk.exists(Path::new("/data/ks/t/a")))
    });
    assert_eq!(seen, ["false"]);
}

#[test]
fn a_directory_that_is_gone_is_not_made_with_those_below_it() {
    let scratch = tempfile::tempdir().expect("a directory");
    let sim = Sim::new(1);
    for (disk, above) in [(sim.env().disk, Path::new(DATA)), (crate::real::env().disk, scratch.path())] {
        let root = above.join("root");
        let below = root.join("ks").join("t");
        let made = disk.create_dir_below(&root, &below);
        assert_eq!(made.expect_err("nothing is there").kind(), std::io::ErrorKind::NotFound);
        assert!(!disk.exists(&root));
        disk.create_dir(&root).expect("created");
        for _ in 0..2 {
            disk.create_dir_below(&root, &below).expect("created, or there");
            assert!(disk.exists(&below));
        }
        assert_eq!(disk.create_dir(&root).expect_err("there").kind(), std::io::ErrorKind::AlreadyExists);
        assert_eq!(disk.create_dir(&root.join("a/b")).expect_err("gone").kind(), std::io::ErrorKind::NotFound);
        let beside = disk.create_dir_below(&below, &root.join("other"));
        assert_eq!(beside.expect_err("not below").kind(), std::io::ErrorKind::InvalidInput);
    }
    // and the names stay
    sim.power_cut();
    assert!(sim.env().disk.exists(&Path::new(DATA).join("root/ks/t")));
}

#[test]
fn a_killed_process_loses_locks_and_handles_but_no_bytes() {
    let sim = Sim::new(1);
    let env = sim.env();
    let lock = env.disk.lock_file(Path::new("/data/lock")).expect("free");
    assert!(env.disk.lock_file(Path::new("/data/lock")).is_err());
    let mut file = env.disk.create(Path::new("/data/a")).expect("created");
    file.write_all(b"unsynced").expect("written");
    sim.kill();
    assert!(file.write_all(b"late").is_err() && env.disk.open_read(Path::new("/data/a")).is_err());
    let env = sim.env();
    assert_eq!(read(&*env.disk, "/data/a").expect("there"), b"unsynced");
    let _held = env.disk.lock_file(Path::new("/data/lock")).expect("free again");
    drop(lock);
    assert!(env.disk.lock_file(Path::new("/data/lock")).is_err(), "a stale lock releases nothing");
}

#[test]
fn faults_strike_where_and_when_they_were_told() {
    let sim = Sim::new(1);
    let env = sim.env();
    sim.disk().inject(Fault { skip: 1, ..Fault::next(Op::Write, "log") });
    let mut log = env.disk.create(Path::new("/data/log")).expect("created");
    write(&*env.disk, "/data/other", b"x", true);
    log.write_all(b"first").expect("spared");
    assert_eq!(log.write_all(b"second").expect_err("struck").raw_os_error(), Some(EIO));
    log.write_all(b"third").expect("spent");
    sim.disk().set_capacity(Some(10));
    assert_eq!(log.write_at(&[0; 100], 0).expect_err("full").raw_os_error(), Some(ENOSPC));
    assert!(sim.disk().flip_bit(Path::new("/data/other"), 0));
    assert_eq!(read(&*env.disk, "/data/other").expect("there"), b"y");
    assert_eq!(sim.disk().count(Op::Write), 5);
}

#[test]
fn a_failed_sync_forgets_its_sectors_for_good() {
    let seen = outcomes(|sim| {
        let env = sim.env();
        write(&*env.disk, "/data/a", &[1; 512], true);
        env.disk.sync_dir(Path::new(DATA)).expect("synced");
        let mut file = env.disk.open_write(Path::new("/data/a")).expect("opened");
        file.write_at(&[2; 512], 0).expect("written");
        sim.disk().inject(Fault::next(Op::Sync, ""));
        file.sync_data().expect_err("struck");
        file.sync_data().expect("a second sync claims success");
        sim.power_cut();
        format!("{}", read(&*sim.env().disk, "/data/a").expect("there")[0])
    });
    assert_eq!(seen, ["1"]);
}

/// Some sectors of a failed sync are there after a power cut, and some are not.
#[test]
fn a_failed_sync_may_keep_some_sectors() {
    const SECTORS: usize = 16;
    let seen = outcomes(|sim| {
        let env = sim.env();
        write(&*env.disk, "/data/a", &[1; 512 * SECTORS], true);
        env.disk.sync_dir(Path::new(DATA)).expect("synced");
        let mut file = env.disk.open_write(Path::new("/data/a")).expect("opened");
        file.write_at(&[2; 512 * SECTORS], 0).expect("written");
        sim.disk().set_failed_sync_keeps(50);
        sim.disk().inject(Fault::next(Op::Sync, ""));
        file.sync_data().expect_err("struck");
        sim.power_cut();
        let content = read(&*sim.env().disk, "/data/a").expect("there");
        let kept = content.chunks(512).filter(|sector| sector[0] == 2).count();
        assert!(content.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])), "sectors are whole");
        format!("{}", usize::from(kept > 0) + usize::from(kept == SECTORS))
    });
    assert!(seen.contains(&"1".to_owned()), "{seen:?}");
}

#[test]
fn lost_syncs_misdirected_and_stale_sectors() {
    let seen = outcomes(|sim| {
        let env = sim.env();
        let content: Vec<u8> = (0..4u8).flat_map(|sector| [sector + 1; 512]).collect();
        write(&*env.disk, "/data/a", &content, true);
        let path = Path::new("/data/a");
        assert!(sim.disk().misdirect(path, 0, 2) && sim.disk().make_stale(path, 3));
        assert!(!sim.disk().misdirect(path, 0, 4) && !sim.disk().make_stale(path, 4), "there are four sectors");
        sim.disk().lose_syncs(Some("/data/b"));
        write(&*env.disk, "/data/b", &[9; 512], true);
        env.disk.sync_dir(Path::new(DATA)).expect("synced");
        sim.power_cut();
        let content = read(&*sim.env().disk, "/data/a").expect("there");
        assert_eq!(content.chunks(512).map(|sector| sector[0]).collect::<Vec<_>>(), [1, 2, 1, 0]);
        let other = read(&*sim.env().disk, "/data/b").expect("its name was synced");
        format!("{}", other.first().copied().unwrap_or(0))
    });
    assert_eq!(seen, ["0", "9"], "a lost sync lets the bytes be lost, as without a sync");
}

/// A small program with tasks, jobs, timers, files and a crash.
fn program(seed: u64) -> ((u64, u64), u32) {
    let sim = Sim::new(seed);
    let env = sim.env();
    let steps = Arc::new(AtomicU32::new(0));
    let wakes: Vec<_> = (0..3)
        .map(|number| {
            let (env, steps) = (env.clone(), steps.clone());
            let step = move || {
                let path = format!("/data/{number}");
                write(&*env.disk, &path, &env.random.next_u64().to_le_bytes(), number == 0);
                if steps.fetch_add(1, Ordering::Relaxed) < 20 {
                    Next::After(Duration::from_millis(3))
                } else {
                    Next::Idle
                }
            };
            env.tasks.background("writer", Box::new(step))
        })
        .collect();
    wakes.iter().for_each(crate::Wake::wake);
    let sum = sim.block_on(async {
        env.sleep(Duration::from_millis(50)).await;
        env.blocking("sum", || 40 + 2).await.expect("room")
    });
    assert_eq!(sum, 42);
    sim.power_cut();
    assert!(!sim.step(), "a dead machine runs nothing");
    let content = (0..3).filter_map(|number| read(&*sim.env().disk, &format!("/data/{number}"))).flatten();
    let digest = content.fold(0u32, |sum, byte| sum.rotate_left(5) ^ u32::from(byte));
    (sim.trace(), digest)
}

#[test]
fn equal_seeds_give_equal_runs() {
    let runs: Vec<_> = (0..50).map(program).collect();
    assert_eq!(runs, (0..50).map(program).collect::<Vec<_>>());
    assert_ne!(runs[0], runs[1]);
}

#[test]
fn connections_are_pipes() {
    let sim = Sim::new(1);
    sim.block_on(async {
        let env = sim.env();
        let mut listener = env.network.bind("127.0.0.1:9042".parse().expect("an address"), false).expect("bound");
        assert!(env.network.bind("127.0.0.1:9042".parse().expect("an address"), true).is_err());
        let mut client = env.network.connect(listener.local_address().expect("bound")).await.expect("connected");
        let (mut server, _peer) = accept(listener.as_mut()).await.expect("accepted");
        client.write_all(b"ping").await.expect("written");
        let mut buffer = [0; 4];
        server.read_exact(&mut buffer).await.expect("read");
        assert_eq!(&buffer, b"ping");
        assert!(env.timeout(Duration::from_secs(3600), server.read_exact(&mut buffer)).await.is_err());
        assert_eq!(env.clock.now_seconds(), 1_767_229_200);
    });
}
