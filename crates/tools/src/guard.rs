//! Keeps verbs that write away from the files of a running node.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use env::{Env, Lock};

use crate::failure::Failure;

/// The file in a data directory whose lock a running node holds.
const LOCK_FILE: &str = "helenus.lock";

/// Takes the locks of the data directories of Helenus that `directory` lies in; they are held until
/// the result is dropped. Refused while a node holds one of them.
///
/// Where the path goes through a symbolic link, the directory lies in two places: above the link,
/// where a data directory has its tables on another disk, and above what the link names, where
/// somebody keeps a short way to a table.
pub fn lock(env: &Env, directory: &Path) -> Result<Vec<Box<dyn Lock>>, Failure> {
    let named = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let real = env.disk.real_path(directory).unwrap_or_else(|_| named.clone());
    // by its real path, since a process that takes the same lock twice is refused
    let mut held_by: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for path in [&named, &real] {
        let locked = path.ancestors().find(|above| env.disk.exists(&above.join(LOCK_FILE)));
        if let Some(above) = locked {
            let place = env.disk.real_path(above).unwrap_or_else(|_| above.to_owned());
            held_by.entry(place).or_insert_with(|| above.to_owned());
        }
    }
    held_by.values().map(|above| lock_of(env, above)).collect()
}

fn lock_of(env: &Env, directory: &Path) -> Result<Box<dyn Lock>, Failure> {
    let path = directory.join(LOCK_FILE);
    env.disk.lock_file(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Failure::new(format!(
            "{}: a running node holds this data directory; stop it first, or ask it with nodetool",
            directory.display()
        )),
        _ => Failure::new(format!("{}: {error}", path.display())),
    })
}
