//! Keeps verbs that write away from the files of a running node.

use std::path::Path;

use env::{Env, Lock};

use crate::failure::Failure;

/// The file in a data directory whose lock a running node holds.
const LOCK_FILE: &str = "helenus.lock";

/// Takes the lock of the data directory above `directory`, if there is a data directory of Helenus;
/// the lock is held until the result is dropped. Refused while a node holds the lock.
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
