//! Keeps writing verbs away from the files of a running node.

use std::path::Path;

use env::{Env, Lock};

use crate::failure::Failure;

/// The file in a data directory whose lock a running node holds.
const LOCK_FILE: &str = "helenus.lock";

/// Takes the lock of the data directory that holds a directory, if it is one of Helenus, until what is given is dropped.
pub fn lock(env: &Env, directory: &Path) -> Result<Option<Box<dyn Lock>>, Failure> {
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    for above in directory.ancestors() {
        let path = above.join(LOCK_FILE);
        if !env.disk.exists(&path) {
            continue;
        }
        return match env.disk.lock_file(&path) {
            Ok(lock) => Ok(Some(lock)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Err(Failure::new(format!(
                "{}: a running node holds this data directory; stop it first, or ask it with nodetool",
                above.display()
            ))),
            Err(error) => Err(Failure::new(format!("{}: {error}", path.display()))),
        };
    }
    Ok(None)
}
