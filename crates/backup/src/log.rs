//! Segments of the commit log, uploaded by the command that the node runs for each full segment
//! (`archive_command`), and fetched for a restore to a point in time.
//!
//! A node that was restored to a point in time runs on with its host id, so that the store holds
//! segments of two histories: the writes that the restore undid, and the writes after it. The node
//! notes the restore beside its segments, and the note is uploaded with them, as a key whose last
//! name is `POINT-SEGMENT` ([`Restored`]). A later restore leaves out the writes that were undone.

use std::collections::BTreeSet;
use std::path::Path;

use env::Env;

use crate::manifest::check_name;
use crate::runs::Runs;
use crate::store::{Object, Store, upload_bytes};
use crate::{Result, copy, runs};

/// The file beside the segments by which a node notes that a point in time was restored: the two
/// numbers of [`Restored`] with a blank between them (`storage::restore_point` writes the file).
const NOTE_FILE: &str = "restored_to_point_in_time";
/// Most bytes of the note.
const NOTE_SIZE_MAX: u64 = 100;
/// Most restores in the history of a node.
const RESTORES_MAX: usize = 1000;

/// A restore to a point in time, after which the node ran on and archived segments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Restored {
    /// The first segment that was written after the restore. Ids of segments are times,
    /// milliseconds since 1970, so this is also when the node started.
    pub first_segment: u64,
    /// The point in time that was restored, microseconds since 1970.
    pub micros: i64,
}

fn prefix(host_id: &str) -> Result<String> {
    check_name(host_id)?;
    Ok(format!("nodes/{host_id}/commitlog"))
}

fn prefix_of_restores(host_id: &str) -> Result<String> {
    Ok(format!("{}-restores", prefix(host_id)?))
}

fn prefix_of_runs(host_id: &str) -> Result<String> {
    Ok(format!("{}-runs", prefix(host_id)?))
}

/// Uploads a segment, and first the notes of a restore and of runs that lie beside it. A segment
/// that the store holds in its whole length stays as it is, so that the command can be repeated.
pub fn upload(env: &Env, store: &dyn Store, host_id: &str, segment: &Path) -> Result<()> {
    upload_note(env, store, host_id, &segment.with_file_name(NOTE_FILE))?;
    runs::upload(env, store, &prefix_of_runs(host_id)?, segment)?;
    let name = segment.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    check_name(name)?;
    let size = env.disk.file_len(segment).map_err(|error| format!("{}: {error}", segment.display()))?;
    let key = format!("{}/{name}", prefix(host_id)?);
    if store.size(&key)? == Some(size) {
        return Ok(());
    }
    copy::upload(env, segment, size, store, &key).map(drop)
}

/// The segments of a node that the store holds.
pub fn segments(store: &dyn Store, host_id: &str) -> Result<Vec<Object>> {
    store.list(&prefix(host_id)?)
}

/// The runs of a node that the store holds.
pub fn runs(store: &dyn Store, host_id: &str) -> Result<Runs> {
    runs::read(store, &prefix_of_runs(host_id)?)
}

/// The ids of segments.
pub fn ids(segments: &[Object]) -> BTreeSet<u64> {
    segments.iter().filter_map(id).collect()
}

/// The id of a segment; None: the object has no name of a segment.
fn id(segment: &Object) -> Option<u64> {
    let name = segment.key.rsplit('/').next()?.strip_prefix("CommitLog-")?.strip_suffix(".log")?;
    name.split_once('-')?.1.parse().ok()
}

fn upload_note(env: &Env, store: &dyn Store, host_id: &str, note: &Path) -> Result<()> {
    let wrong = |error: std::io::Error| format!("{}: {error}", note.display());
    let text = match env.disk.read_all(note, NOTE_SIZE_MAX) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(wrong(error)),
    };
    let Restored { first_segment, micros } =
        parse(text.trim(), ' ').ok_or_else(|| format!("{}: it is no point in time and a segment", note.display()))?;
    let key = format!("{}/{micros}-{first_segment}", prefix_of_restores(host_id)?);
    match store.size(&key)? {
        Some(_) => Ok(()),
        None => upload_bytes(store, &key, text.as_bytes()),
    }
}

/// The point and the first segment, with a letter between them.
fn parse(text: &str, between: char) -> Option<Restored> {
    let (micros, first_segment) = text.rsplit_once(between)?;
    Some(Restored { first_segment: first_segment.parse().ok()?, micros: micros.parse().ok()? })
}

/// The restores that are part of the node's history up to a point in time, microseconds since
/// 1970. The writes that they undid are not part of it.
pub fn restores_before(store: &dyn Store, host_id: &str, micros: i64) -> Result<Vec<Restored>> {
    let objects = store.list(&prefix_of_restores(host_id)?)?;
    let read = |object: &Object| {
        let name = object.key.rsplit('/').next().unwrap_or_default();
        parse(name, '-').ok_or_else(|| format!("{} is no name of a restore", object.key))
    };
    let restores = objects.iter().map(read).collect::<Result<Vec<_>>>()?;
    let history = history(restores, micros);
    match history.len() <= RESTORES_MAX {
        true => Ok(history),
        false => Err(format!("{host_id} was restored {} times, the limit is {RESTORES_MAX}", history.len())),
    }
}

/// The history up to a point contains the last restore before it. Before that restore it is the
/// history up to the restore's own point, and so on; restores in between are no part of it.
fn history(mut restores: Vec<Restored>, micros: i64) -> Vec<Restored> {
    restores.sort_unstable();
    let (mut until, mut found) = (micros, Vec::new());
    for restored in restores.into_iter().rev() {
        let at = i64::try_from(restored.first_segment).unwrap_or(i64::MAX).saturating_mul(1000);
        if at <= until {
            until = restored.micros;
            found.push(restored);
        }
    }
    found
}

/// Fetches segments into a directory; gives how many there are. `from`: segments with smaller ids
/// are not wanted; None: all are.
pub fn fetch(env: &Env, store: &dyn Store, segments: &[Object], from: Option<u64>, directory: &Path) -> Result<usize> {
    let is_wanted = |object: &&Object| id(object).is_none_or(|id| from.is_none_or(|from| id >= from));
    let wanted: Vec<&Object> = segments.iter().filter(is_wanted).collect();
    let of_directory = |error: std::io::Error| format!("{}: {error}", directory.display());
    // segments of another node that an interrupted restore has left would be replayed too
    if env.disk.exists(directory) {
        env.disk.remove_dir_all(directory).map_err(of_directory)?;
    }
    env.disk.create_dir_durable(directory).map_err(of_directory)?;
    for Object { key, .. } in &wanted {
        let path = directory.join(key.rsplit('/').next().unwrap_or_default());
        let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
        let (mut download, mut file) = (store.open(key)?, env.disk.create(&path).map_err(wrong)?);
        loop {
            let piece = download.read()?;
            if piece.is_empty() {
                break;
            }
            file.write_all(&piece).map_err(wrong)?;
        }
        file.sync_data().map_err(wrong)?;
    }
    Ok(wanted.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times in milliseconds: the start of a node after a restore, and the point of the restore.
    #[test]
    fn the_history_up_to_a_point_has_the_restores_that_led_there() {
        let restored = |at: u64, point: i64| Restored { first_segment: at, micros: point * 1000 };
        // the second one gave up the history of the first
        let restores = [restored(100, 50), restored(200, 80), restored(300, 250)];
        let at = |point: i64| {
            let history = history(restores.to_vec(), point * 1000);
            history.iter().map(|restored| restored.first_segment).collect::<Vec<_>>()
        };
        assert_eq!((at(99), at(100), at(199)), (vec![], vec![100], vec![100]));
        assert_eq!((at(200), at(299)), (vec![200], vec![200]));
        assert_eq!((at(300), at(1000)), (vec![300, 200], vec![300, 200]));
    }
}
