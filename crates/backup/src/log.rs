//! Segments of the commit log, brought by the command that the node runs for each full one
//! (`archive_command`), and fetched for a restore to a point in time.

use std::path::Path;

use env::Env;

use crate::manifest::check_name;
use crate::store::{Object, Store};
use crate::{Result, copy};

fn prefix(host_id: &str) -> Result<String> {
    check_name(host_id)?;
    Ok(format!("nodes/{host_id}/commitlog"))
}

/// Brings a segment. One that the store holds in its whole length stays as it is, so that the
/// command can be repeated.
pub fn bring(env: &Env, store: &dyn Store, host_id: &str, segment: &Path) -> Result<()> {
    let name = segment.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    check_name(name)?;
    let size = env.disk.file_len(segment).map_err(|error| format!("{}: {error}", segment.display()))?;
    let key = format!("{}/{name}", prefix(host_id)?);
    if store.size(&key)? == Some(size) {
        return Ok(());
    }
    copy::bring(env, segment, size, store, &key).map(drop)
}

/// The segments of a node that the store holds.
pub fn segments(store: &dyn Store, host_id: &str) -> Result<Vec<Object>> {
    store.list(&prefix(host_id)?)
}

/// Fetches all segments of a node into a directory; gives how many there are.
pub fn fetch(env: &Env, store: &dyn Store, host_id: &str, directory: &Path) -> Result<usize> {
    let segments = segments(store, host_id)?;
    let of_directory = |error: std::io::Error| format!("{}: {error}", directory.display());
    // segments of another node that an interrupted restore has left would be replayed too
    if env.disk.exists(directory) {
        env.disk.remove_dir_all(directory).map_err(of_directory)?;
    }
    env.disk.create_dir_durable(directory).map_err(of_directory)?;
    for Object { key, .. } in &segments {
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
    Ok(segments.len())
}
