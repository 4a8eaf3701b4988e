//! A directory of a node: whose it is, whether a node runs on it, the versions of its SSTables.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use crate::finding::Finding;
use crate::machine::Machine;

/// The lock that a running node holds. As in `storage::recovery`.
const LOCK_FILE: &str = "helenus.lock";
/// Folders of tables that are looked into.
const TABLES_MAX: usize = 10_000;
/// Versions of SSTables that a node reads.
const VERSIONS: [&str; 9] = ["da", "oa", "nb", "na", "me", "md", "mc", "mb", "ma"];

/// Looks at a directory, which need not be there yet. Nothing is looked at for the copy of another
/// machine.
pub fn examine(machine: &Machine<'_>, directory: &Path) -> Vec<Finding> {
    if !machine.is_this() {
        return Vec::new();
    }
    if !machine.env.disk.exists(directory) {
        return vec![Finding::ok("directory", format!("{} will be made", directory.display()))];
    }
    let name = directory.display().to_string();
    let mut found = Vec::new();
    let status = machine.read("/proc/self/status").unwrap_or_default();
    let stat = machine.ask("stat", &["-L", "-c", "%u %a %U", &name]);
    match stat.as_deref().and_then(owned).zip(user(&status)) {
        Some((owned, user)) => found.push(owner(&name, &owned, user)),
        None => found.push(Finding::ok("directory", name)),
    }
    found.extend(lock(machine, directory));
    found.extend(versions(count_versions(machine, directory)));
    found
}

/// Owner and rights of a directory.
#[derive(PartialEq, Eq, Debug)]
struct Owned {
    uid: u32,
    mode: u32,
    name: String,
}

/// The answer of `stat -c '%u %a %U'`.
fn owned(text: &str) -> Option<Owned> {
    let mut words = text.split_whitespace();
    let (uid, mode) = (words.next()?.parse().ok()?, u32::from_str_radix(words.next()?, 8).ok()?);
    Some(Owned { uid, mode, name: words.next().unwrap_or_default().to_owned() })
}

/// The user as which this process acts, of `/proc/self/status`.
fn user(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)?.parse().ok()
}

fn owner(directory: &str, owned: &Owned, user: u32) -> Finding {
    let found = format!("{directory} of {}, mode {:o}", owned.name, owned.mode);
    if owned.mode & 0o002 != 0 {
        return Finding::warn("directory", found, "chmod o-w: every user of the machine may change data");
    }
    if owned.uid != user && user == 0 {
        let advice = format!("start the node as {}: files that root makes there stop it later", owned.name);
        return Finding::warn("directory", found, advice);
    }
    Finding::ok("directory", found)
}

/// None: no node has run there.
fn lock(machine: &Machine<'_>, directory: &Path) -> Option<Finding> {
    let path = directory.join(LOCK_FILE);
    // taking a lock makes its file
    machine
        .env
        .disk
        .exists(&path)
        .then(|| locked(machine.env.disk.lock_file(&path).map(drop).map_err(|error| error.kind())))
}

fn locked(taken: Result<(), ErrorKind>) -> Finding {
    match taken {
        Ok(()) => Finding::ok("lock", "no node runs on the directory"),
        Err(ErrorKind::WouldBlock) => Finding::fail("lock", "a node runs on the directory", "stop it first"),
        Err(kind) => {
            Finding::fail("lock", format!("{LOCK_FILE}: {kind}"), "give the directory to the user of the node")
        }
    }
}

/// How many SSTables of each version lie in `<keyspace>/<table>/` beneath the directory.
fn count_versions(machine: &Machine<'_>, directory: &Path) -> BTreeMap<String, usize> {
    let disk = &machine.env.disk;
    let below = |directory: &Path| {
        let entries = disk.list_dir(directory).unwrap_or_default();
        let folders = entries.into_iter().filter(|entry| entry.is_dir);
        folders.map(|entry| directory.join(entry.name)).collect::<Vec<_>>()
    };
    let mut counted = BTreeMap::new();
    let tables = below(directory).into_iter().flat_map(|keyspace| below(&keyspace));
    for table in tables.take(TABLES_MAX) {
        for entry in disk.list_dir(&table).unwrap_or_default() {
            if let Some(version) = version_of(&entry.name) {
                *counted.entry(version.to_owned()).or_insert(0) += 1;
            }
        }
    }
    counted
}

/// The version of an SSTable by the name of its data file, such as `da-1-bti-Data.db`.
fn version_of(name: &str) -> Option<&str> {
    let parts: Vec<&str> = name.strip_suffix("-Data.db")?.split('-').collect();
    match parts.as_slice() {
        [version, _, "big" | "bti"] => Some(version),
        [_, _, version, _] | [_, _, version, _, _] => Some(version),
        _ => None,
    }
}

/// None: there are no SSTables.
fn versions(counted: BTreeMap<String, usize>) -> Option<Finding> {
    let shown: Vec<String> = counted.iter().map(|(version, count)| format!("{count} of {version}")).collect();
    let unknown = counted.keys().find(|version| !VERSIONS.contains(&version.as_str()));
    match unknown {
        _ if counted.is_empty() => None,
        None => Some(Finding::ok("sstables", shown.join(", "))),
        Some(version) => {
            let advice = format!("have the Cassandra that wrote {version} upgraded (nodetool upgradesstables) first");
            Some(Finding::fail("sstables", shown.join(", "), advice))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    #[test]
    fn directories_are_judged() {
        let of = |text: &str, user| owner("d", &owned(text).expect("read"), user).level;
        assert_eq!(of("999 750 cassandra\n", 999), Level::Ok);
        assert_eq!(of("999 750 cassandra\n", 0), Level::Warn);
        assert_eq!(of("999 777 cassandra\n", 999), Level::Warn);
        assert_eq!((owned("x 750 c"), owned("")), (None, None));
        assert_eq!(user("Name:\tx\nUid:\t0\t999\t0\t0\n"), Some(999));
        assert_eq!(user("Uid:\t0\n"), None);
        assert_eq!(locked(Ok(())).level, Level::Ok);
        assert_eq!(locked(Err(ErrorKind::WouldBlock)).level, Level::Fail);
        assert_eq!(locked(Err(ErrorKind::PermissionDenied)).level, Level::Fail);
    }

    #[test]
    fn versions_are_judged() {
        assert_eq!(version_of("da-1-bti-Data.db"), Some("da"));
        assert_eq!(version_of("nb-3gtl_0v2q_4ue6i29sp1b4nbrcgd-big-Data.db"), Some("nb"));
        assert_eq!(version_of("ks-t-jb-5-Data.db"), Some("jb"));
        assert_eq!((version_of("da-1-bti-Index.db"), version_of("-Data.db")), (None, None));
        let judged = |version: &str| versions(BTreeMap::from([(version.to_owned(), 2)])).map(|found| found.level);
        assert_eq!((judged("da"), judged("jb")), (Some(Level::Ok), Some(Level::Fail)));
        assert_eq!(versions(BTreeMap::new()), None);
    }
}
