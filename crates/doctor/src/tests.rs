//! A good machine and a bad one, each as a directory of the texts that their kernels show, and this
//! machine.

use std::path::Path;

use crate::{Finding, Level, PlannedNode, as_json, as_text, examine, worst};

const GOOD: &[(&str, &str)] = &[
    (
        "proc/self/limits",
        "Max file size             unlimited            unlimited            bytes\nMax processes             95961                95961                processes\nMax open files            1024                 1048576              files\nMax locked memory         8388608              8388608              bytes\nMax address space         unlimited            unlimited            bytes\n",
    ),
    ("proc/meminfo", "MemTotal:       16384000 kB\nMemAvailable:   15000000 kB\nSwapTotal:             0 kB\n"),
    ("proc/self/cgroup", "0::/system.slice/cassandra.service\n"),
    ("sys/fs/cgroup/system.slice/cassandra.service/memory.max", "8589934592\n"),
    ("sys/fs/cgroup/system.slice/cassandra.service/cpu.max", "max 100000\n"),
    ("proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\n"),
    ("proc/sys/vm/swappiness", "60\n"),
    ("proc/sys/vm/max_map_count", "65530\n"),
    ("proc/sys/vm/overcommit_memory", "0\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("run/systemd/timesync/synchronized", ""),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("proc/sys/net/core/somaxconn", "4096\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    ("proc/self/mountinfo", "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"),
    ("sys/dev/block/8:1/queue/rotational", "0\n"),
];

const BAD: &[(&str, &str)] = &[
    (
        "proc/self/limits",
        "Max file size             1048576              1048576              bytes\nMax processes             1024                 1024                 processes\nMax open files            1024                 4096                 files\nMax locked memory         65536                65536                bytes\nMax address space         1073741824           1073741824           bytes\n",
    ),
    ("proc/meminfo", "MemTotal:       16384000 kB\nMemAvailable:     500000 kB\nSwapTotal:       8388608 kB\n"),
    ("proc/self/cgroup", "0::/docker/abc\n"),
    ("sys/fs/cgroup/docker/memory.max", "536870912\n"),
    ("sys/fs/cgroup/docker/abc/memory.max", "max\n"),
    ("sys/fs/cgroup/docker/abc/cpu.max", "50000 100000\n"),
    ("proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\n"),
    ("proc/sys/vm/swappiness", "60\n"),
    ("proc/sys/vm/max_map_count", "1000\n"),
    ("proc/sys/vm/overcommit_memory", "2\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
    ("proc/sys/net/core/somaxconn", "128\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "1024\t65535\n"),
    (
        "proc/self/mountinfo",
        "22 1 8:1 / / ro,strictatime - ext4 /dev/sda1 rw,nobarrier\n23 22 0:5 / /var rw,sync - nfs4 a:/b rw\n",
    ),
    ("sys/dev/block/8:1/queue/rotational", "1\n"),
];

fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let disk = env::real::env().disk;
    for (path, text) in files {
        let path = root.path().join(path);
        disk.create_dir_all(path.parent().expect("a file lies in a directory")).expect("made");
        disk.replace_file(&path, text.as_bytes()).expect("written");
    }
    root
}

fn asked(root: &Path) -> PlannedNode {
    PlannedNode {
        root: root.to_owned(),
        data: vec!["/srv/data".into()],
        commitlog: "/var/log".into(),
        read_only: false,
        memory: Some(1 << 30),
        shards: None,
        ports: vec![("cql port", ([127, 0, 0, 1], 9042).into())],
    }
}

fn of(findings: &[Finding], level: Level) -> Vec<&'static str> {
    let mut checks: Vec<&str> =
        findings.iter().filter(|finding| finding.level == level).map(|finding| finding.check).collect();
    checks.dedup();
    checks
}

#[test]
fn a_good_machine_has_nothing_to_mend() {
    let root = machine(GOOD);
    let found = examine(&env::real::env(), &asked(root.path()));
    assert_eq!(worst(&found), Level::Ok, "{}", as_text(&found));
    assert!(as_text(&found).ends_with(" checks: 0 to mend, 0 to look at\n"));
}

#[test]
fn a_bad_machine_is_told_everything() {
    let root = machine(BAD);
    let found = examine(&env::real::env(), &PlannedNode { shards: Some(3), ..asked(root.path()) });
    assert_eq!(of(&found, Level::Fail), ["file size", "memory", "shards", "mount options"]);
    assert_eq!(
        of(&found, Level::Warn),
        [
            "open files",
            "processes",
            "address space",
            "swap",
            "large pages",
            "mappings",
            "overcommit",
            "processors",
            "clock",
            "clock source",
            "new connections",
            "cql port",
            "mount options",
            "device",
            "file system",
            "mount options",
        ]
    );
    assert!(found.iter().all(|finding| finding.advice.is_empty() == (finding.level == Level::Ok)));
    let json = as_json(&found);
    assert_eq!((json["level"].as_str(), json["findings"].as_array().map(Vec::len)), (Some("FAIL"), Some(found.len())));
}

/// Directories, ports and syncs are those of this machine.
#[test]
fn this_machine_is_looked_at() {
    let env = env::real::env();
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let table = data.join("ks/t-1b255f4def2540a60000000000000005");
    env.disk.create_dir_all(&table).expect("made");
    env.disk.replace_file(&table.join("zz-1-big-Data.db"), b"").expect("written");
    let lock = env.disk.lock_file(&data.join("helenus.lock")).expect("free");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let look = |ports, read_only| {
        let asked = PlannedNode {
            root: "/".into(),
            data: vec![data.clone()],
            commitlog: directory.path().join("log"),
            read_only,
            memory: None,
            shards: None,
            ports,
        };
        runtime.block_on(async { examine(&env, &asked) })
    };
    let listener = runtime.block_on(async { env.network.bind(([127, 0, 0, 1], 0).into(), false) }).expect("a port");
    let taken = listener.local_address().expect("bound");
    let found = look(vec![("cql port", taken)], false);
    let level = |found: &[Finding], check: &str| {
        found.iter().filter(|finding| finding.check == check).map(|finding| finding.level).max()
    };
    assert_eq!(level(&found, "cql port"), Some(Level::Fail));
    assert_eq!(level(&found, "lock"), Some(Level::Fail));
    assert_eq!(level(&found, "sstables"), Some(Level::Fail));
    assert!(level(&found, "sync").is_some(), "{}", as_text(&found));
    drop((lock, listener));
    let found = look(vec![], false);
    assert_eq!(level(&found, "lock"), Some(Level::Ok));
    assert!(!env.disk.exists(&data.join(".helenus-doctor")));
    // nothing is written for a node that only reads
    assert_eq!(level(&look(vec![], true), "sync"), None);
}
