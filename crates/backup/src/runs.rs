//! Runs of a node, from a start to the next: by them a restore to a point in time knows whether the
//! archive of the commit log lacks segments in the middle.
//!
//! Ids of segments are consecutive within a run, and each run begins with a greater id. The node
//! notes beside the segments with which one a run begins and which was the last before it, or that
//! not all was archived before it (`commitlog::ledger` of `storage` writes the file). The notes are
//! uploaded with the segments, each as a key whose last name is `FIRST`, `FIRST-after-LAST` or
//! `FIRST-gap-FROM`. Segments without such a note before them are those of an earlier version, or
//! of Cassandra: of these nothing is known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use env::Env;

use crate::Result;
use crate::store::{Store, upload_bytes};

/// The file beside the segments in which the node notes its runs, in lines that begin with `run`.
pub(crate) const NOTE_FILE: &str = "archived_segments";
/// Most bytes of the file.
const NOTE_SIZE_MAX: u64 = 16 << 20;

/// The log before a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LogBeforeRun {
    /// Nothing is known.
    Unknown,
    /// This segment was its last one.
    Last(u64),
    /// From this segment on not all was archived.
    Gap(u64),
}

/// The runs of a node by their first segments.
pub type Runs = BTreeMap<u64, LogBeforeRun>;

/// Uploads the runs that are noted beside a segment. `prefix`: where the runs of the node lie.
pub(crate) fn upload(env: &Env, store: &dyn Store, prefix: &str, segment: &Path) -> Result<()> {
    let note = segment.with_file_name(NOTE_FILE);
    let text = match env.disk.read_all(&note, NOTE_SIZE_MAX) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("{}: {error}", note.display())),
    };
    for run in text.lines().filter_map(|line| line.strip_prefix("run ")) {
        let name = run.replace(' ', "-");
        let key = format!("{prefix}/{name}");
        if parse(&name).is_some() && store.size(&key)?.is_none() {
            upload_bytes(store, &key, run.as_bytes())?;
        }
    }
    Ok(())
}

/// The runs that a store holds of a node.
pub(crate) fn read(store: &dyn Store, prefix: &str) -> Result<Runs> {
    let mut runs = Runs::new();
    for object in store.list(prefix)? {
        let name = object.key.rsplit('/').next().unwrap_or_default();
        let (first, before) = parse(name).ok_or_else(|| format!("{} is no name of a run", object.key))?;
        let known = runs.entry(first).or_insert(before);
        *known = before.max(*known);
    }
    Ok(runs)
}

fn parse(name: &str) -> Option<(u64, LogBeforeRun)> {
    let number = |text: &str| text.parse::<u64>().ok();
    match name.split('-').collect::<Vec<_>>()[..] {
        [first] => Some((number(first)?, LogBeforeRun::Unknown)),
        [first, "after", last] => Some((number(first)?, LogBeforeRun::Last(number(last)?))),
        [first, "gap", from] => Some((number(first)?, LogBeforeRun::Gap(number(from)?))),
        _ => None,
    }
}

/// Two archived segments between which the archive lacks some. `from`: the first segment that is
/// wanted; `until`: segments with greater ids are not wanted.
pub(crate) fn lacking(archived: &BTreeSet<u64>, runs: &Runs, from: u64, until: u64) -> Option<(u64, u64)> {
    let neighbours = archived.range(from..).zip(archived.range(from..).skip(1));
    let is_lacking = |one: u64, next: u64| lacking_from(runs, one, next).is_some_and(|first| first <= until);
    neighbours.map(|(one, next)| (*one, *next)).find(|(one, next)| is_lacking(*one, *next))
}

/// The first id that may be lacking between a segment and the next one in the archive; None:
/// nothing is lacking, or nothing is known.
fn lacking_from(runs: &Runs, one: u64, next: u64) -> Option<u64> {
    let following = one.checked_add(1).filter(|following| *following < next)?;
    match runs.range(following..=next).next_back() {
        Some((first, before)) if *first == next => match before {
            LogBeforeRun::Unknown => None,
            LogBeforeRun::Last(last) => (*last > one).then_some(following),
            LogBeforeRun::Gap(from) => Some((*from).max(following)),
        },
        // the run of the next one begins between them
        Some(_) => Some(following),
        // they are of one run, if runs are known there
        None => runs.range(..=one).next().map(|_| following),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_lack_in_the_middle_are_known_by_the_runs() {
        let runs = [(100, LogBeforeRun::Unknown), (200, LogBeforeRun::Last(102)), (300, LogBeforeRun::Gap(250))];
        let runs: Runs = runs.into_iter().collect();
        let lacking =
            |archived: &[u64], from: u64, until: u64| lacking(&archived.iter().copied().collect(), &runs, from, until);
        assert_eq!(lacking(&[100, 101, 102, 200, 201], 100, 999), None, "nothing lacks");
        assert_eq!(lacking(&[100, 102, 200], 100, 999), Some((100, 102)), "in a run");
        assert_eq!(lacking(&[100, 101, 200], 100, 999), Some((101, 200)), "at the end of a run");
        assert_eq!(lacking(&[100, 101, 102, 201], 100, 999), Some((102, 201)), "at the beginning of a run");
        assert_eq!(lacking(&[200, 201, 300], 200, 999), Some((201, 300)), "a time without archiving");
        assert_eq!(lacking(&[200, 201, 300], 200, 249), None, "before that time");
        assert_eq!(lacking(&[100, 102, 200], 102, 999), None, "before the backup");
        assert_eq!(lacking(&[200, 202], 200, 200), None, "after the point in time");
        assert_eq!(lacking(&[50, 60, 100], 50, 999), None, "an earlier version has noted no run");
    }
}
