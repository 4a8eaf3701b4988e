//! The disk below a directory: file system, mount options, free room, how long a sync takes.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::finding::{Finding, size};
use crate::machine::Machine;

/// Syncs that are measured, and the bytes of each.
const SYNCS: usize = 15;
const SYNC_BYTES: [u8; 4096] = [7; 4096];
/// The time after which no further sync is measured.
const SYNCS_TIME_MAX: Duration = Duration::from_secs(2);
/// A sync of a solid-state disk ends within this; an acknowledged write waits for one.
const SYNC_WANTED: Duration = Duration::from_millis(10);
/// The name of the file that is written to measure syncs.
const PROBE: &str = ".helenus-doctor";
/// Free bytes below which the node soon stops to take writes.
const FREE_MIN: u64 = 1 << 30;

/// A line of `/proc/self/mountinfo`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mount {
    /// `major:minor` of the device.
    device: String,
    point: PathBuf,
    kind: String,
    /// Options of the mount and of the file system.
    options: Vec<String>,
}

/// Looks at the disk that a directory lies on, or will lie on. `read_only`: the node writes nothing
/// there, and nothing is written to measure the disk.
pub fn examine(machine: &Machine<'_>, directory: &Path, read_only: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    let disk = &machine.env.disk;
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let there = absolute.ancestors().find(|above| disk.exists(above)).filter(|_| machine.is_this());
    // a link leads to another disk than that which its name lies on
    let real = there.and_then(|there| disk.real_path(there).ok());
    let text = machine.read("/proc/self/mountinfo").unwrap_or_default();
    let mount = mount_of(mounts(&text), real.as_deref().unwrap_or(&absolute));
    if let Some(mount) = &mount {
        found.push(file_system(mount));
        found.extend(options(mount, read_only));
        let queue = format!("/sys/dev/block/{}", mount.device);
        let turns = [format!("{queue}/queue/rotational"), format!("{queue}/../queue/rotational")];
        found.extend(turns.iter().find_map(|path| machine.number(path)).map(rotational));
    }
    let Some(there) = there.filter(|_| !read_only) else { return found };
    if let (Ok(free), Ok(total)) = (disk.available_space(there), disk.total_space(there)) {
        found.push(room(free, total));
    }
    found.push(match measure(machine, there) {
        Ok(took) => sync(took),
        Err(error) => unwritable(&absolute, there, &error),
    });
    found
}

/// A directory that cannot be written. `there`: the directory itself, or the lowest one above it
/// that is there, in which the node would make it.
fn unwritable(directory: &Path, there: &Path, error: &Error) -> Finding {
    let advice = match error.kind() {
        ErrorKind::PermissionDenied if there == directory => {
            format!("chown it to the user of the node: {}", there.display())
        }
        // the one above may be one of the system, which has to stay root's
        ErrorKind::PermissionDenied => {
            format!("make {} and chown that to the user of the node", directory.display())
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room, or name another directory".to_owned(),
        _ => "name another directory, or mend this one".to_owned(),
    };
    Finding::fail("writing", format!("{}: {error}", there.display()), advice)
}

/// The mounts in the text, without lines that are none. Spaces in names are written as `\040`.
fn mounts(text: &str) -> impl Iterator<Item = Mount> {
    text.lines().filter_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(2);
        let (device, _, point, options) = (front.next()?, front.next()?, front.next()?, front.next()?);
        let mut back = back.split(' ');
        let (kind, _, of_system) = (back.next()?, back.next()?, back.next().unwrap_or_default());
        let options = options.split(',').chain(of_system.split(',')).map(str::to_owned).collect();
        let point = PathBuf::from(point.replace("\\040", " "));
        Some(Mount { device: device.to_owned(), point, kind: kind.to_owned(), options })
    })
}

/// The mount that a path lies on: the deepest one, and of several at one point the last one.
fn mount_of(mounts: impl Iterator<Item = Mount>, path: &Path) -> Option<Mount> {
    mounts.filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| mount.point.components().count())
}

fn file_system(mount: &Mount) -> Finding {
    let found = format!("{} at {}", mount.kind, mount.point.display());
    match mount.kind.as_str() {
        "ext4" | "xfs" => Finding::ok("file system", found),
        "tmpfs" | "ramfs" => {
            Finding::fail("file system", found, "use a disk: what lies in memory is gone with a restart")
        }
        "overlay" => {
            Finding::warn("file system", found, "mount a volume there: the layers of a container go with the container")
        }
        kind if kind.starts_with("nfs") || kind == "cifs" || kind.starts_with("fuse") || kind == "9p" => {
            Finding::warn("file system", found, "use a local disk: every write waits for a sync of this one")
        }
        _ => Finding::warn("file system", found, "xfs and ext4 are what was tried"),
    }
}

/// Options that lose data or time, or that keep a node which is not read-only from writing.
fn options(mount: &Mount, read_only: bool) -> Vec<Finding> {
    let has = |option: &str| mount.options.iter().any(|known| known == option);
    let mut found = Vec::new();
    if has("ro") && !read_only {
        found.push(Finding::fail("mount options", "ro", "mount it rw, or serve with --read-only"));
    }
    if has("nobarrier") || has("barrier=0") {
        let advice = "mount it without: a power cut would take writes that were acknowledged";
        found.push(Finding::fail("mount options", "nobarrier", advice));
    }
    if has("sync") || has("dirsync") {
        found.push(Finding::warn("mount options", "sync", "mount it without: the node syncs what has to be synced"));
    }
    if has("strictatime") {
        found.push(Finding::warn("mount options", "strictatime", "mount it noatime: each read would write"));
    }
    found
}

fn rotational(turns: u64) -> Finding {
    match turns {
        0 => Finding::ok("device", "solid state"),
        _ => Finding::warn("device", "rotational", "use a solid-state disk, at least for the commit log"),
    }
}

fn room(free: u64, total: u64) -> Finding {
    let found = format!("{} free of {}", size(free), size(total));
    match free {
        0..FREE_MIN => Finding::fail("free room", found, "make room: a compaction, and then a flush, finds none"),
        free if free < total / 10 => Finding::warn(
            "free room",
            found,
            "a compaction wants as much room as its inputs have: add a disk or a node",
        ),
        _ => Finding::ok("free room", found),
    }
}

/// The median time of a sync of a few KiB in the directory.
fn measure(machine: &Machine<'_>, directory: &Path) -> std::io::Result<Duration> {
    let path = directory.join(PROBE);
    let measured = syncs(machine, &path);
    // a file that could not be made is not there to be removed
    let _ = machine.env.disk.remove_file(&path);
    let mut times = measured?;
    times.sort_unstable();
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

fn syncs(machine: &Machine<'_>, path: &Path) -> std::io::Result<Vec<Duration>> {
    let mut file = machine.env.disk.create_private(path)?;
    let begun = machine.env.now();
    let mut times = Vec::with_capacity(SYNCS);
    while times.len() < SYNCS && machine.env.elapsed(begun) < SYNCS_TIME_MAX {
        let before = machine.env.now();
        file.write_all(&SYNC_BYTES)?;
        file.sync_data()?;
        times.push(machine.env.elapsed(before));
    }
    Ok(times)
}

fn sync(took: Duration) -> Finding {
    let found = format!("{:.2} ms in the median", took.as_secs_f64() * 1000.0);
    if took <= SYNC_WANTED {
        return Finding::ok("sync", found);
    }
    let advice = "a faster disk for the commit log, or commitlog_sync: periodic: each write waits for a sync";
    Finding::warn("sync", found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    const MOUNTS: &str = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                          30 22 0:25 / /run rw,nosuid - tmpfs tmpfs rw,size=1024k\n\
                          nonsense\n\
                          40 22 8:17 / /var/lib/my\\040data rw,noatime shared:2 master:1 - xfs /dev/sdb1 rw,nobarrier\n";

    #[test]
    fn the_deepest_mount_counts() {
        let point = |path: &str| mount_of(mounts(MOUNTS), Path::new(path)).map(|mount| (mount.kind, mount.device));
        assert_eq!(point("/var/lib/my data/x"), Some(("xfs".into(), "8:17".into())));
        assert_eq!(point("/var/lib/my"), Some(("ext4".into(), "8:1".into())));
        assert_eq!(point("/run/x"), Some(("tmpfs".into(), "0:25".into())));
        assert_eq!(mount_of(mounts("1 2 3 - ext4"), Path::new("/")), None);
    }

    /// The end of the link lies on the file system of the kernel's texts, which each machine has.
    #[test]
    fn a_link_is_judged_by_the_disk_that_it_leads_to() {
        let (env, directory) = (env::real::env(), tempfile::tempdir().expect("a directory"));
        let link = directory.path().join("data");
        std::os::unix::fs::symlink("/proc", &link).expect("linked");
        let machine = Machine { env: &env, root: Path::new("/") };
        let found = examine(&machine, &link.join("ks"), true);
        assert_eq!(found.first().map(|finding| finding.found.as_str()), Some("proc at /proc"));
    }

    /// Nobody is told to give away a directory of the system, or one that is full.
    #[test]
    fn the_advice_is_on_the_directory_of_the_node() {
        let advice = |there: &str, kind: ErrorKind| {
            unwritable(Path::new("/var/lib/cassandra/data"), Path::new(there), &Error::from(kind)).advice
        };
        let below = advice("/var/lib", ErrorKind::PermissionDenied);
        assert_eq!(below, "make /var/lib/cassandra/data and chown that to the user of the node");
        let own = advice("/var/lib/cassandra/data", ErrorKind::PermissionDenied);
        assert_eq!(own, "chown it to the user of the node: /var/lib/cassandra/data");
        assert!(!advice("/var/lib/cassandra/data", ErrorKind::StorageFull).contains("chown"));
        assert!(!advice("/var/lib", ErrorKind::ReadOnlyFilesystem).contains("chown"));
    }

    #[test]
    fn disks_are_judged() {
        let mount = |kind: &str, options: &[&str]| Mount {
            device: "8:1".into(),
            point: "/".into(),
            kind: kind.into(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        };
        let level = |kind: &str| file_system(&mount(kind, &[])).level;
        assert_eq!((level("xfs"), level("ext4"), level("tmpfs")), (Level::Ok, Level::Ok, Level::Fail));
        assert!(["overlay", "nfs4", "fuse.sshfs", "btrfs"].iter().all(|kind| level(kind) == Level::Warn));
        assert_eq!(options(&mount("xfs", &["rw", "noatime"]), false), []);
        assert_eq!(options(&mount("xfs", &["ro"]), true), []);
        let levels: Vec<Level> = options(&mount("xfs", &["ro", "barrier=0", "dirsync", "strictatime"]), false)
            .iter()
            .map(|found| found.level)
            .collect();
        assert_eq!(levels, [Level::Fail, Level::Fail, Level::Warn, Level::Warn]);
        assert_eq!((rotational(0).level, rotational(1).level), (Level::Ok, Level::Warn));
        let gib = 1 << 30;
        assert_eq!((room(gib - 1, gib).level, room(9 * gib, 100 * gib).level), (Level::Fail, Level::Warn));
        assert_eq!(room(50 * gib, 100 * gib).level, Level::Ok);
        assert_eq!(sync(Duration::from_millis(1)).level, Level::Ok);
        assert_eq!(sync(Duration::from_millis(11)).level, Level::Warn);
    }
}
