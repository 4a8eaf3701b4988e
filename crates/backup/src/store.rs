//! The places of backups: a directory, or an object store. A key is a path of plain names.
//!
//! An object appears completely or not at all, under its own name, and is not changed afterwards,
//! except that a manifest or a segment may be written again.

#[cfg(feature = "cloud")]
mod cloud;
mod directory;

use env::{Env, Lock};

use crate::Result;

/// Most bytes that are read or written at once.
pub const PIECE_SIZE: usize = 1 << 20;
/// Most bytes of a key.
const KEY_SIZE_MAX: usize = 900;

/// An object of a listing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Object {
    /// Key of the object.
    pub key: String,
    /// Size of the object, bytes.
    pub size: u64,
}

/// A place of backups. Calls wait for the disk or the network.
pub trait Store: Send + Sync {
    /// All objects whose keys begin with `prefix` and a `/`, in the order of their keys.
    fn list(&self, prefix: &str) -> Result<Vec<Object>>;

    /// The size of an object in bytes; None: there is no such object.
    fn size(&self, key: &str) -> Result<Option<u64>>;

    /// Begins an object of `size` bytes.
    fn begin(&self, key: &str, size: u64) -> Result<Box<dyn Upload>>;

    /// Opens an object to be read from front to back.
    fn open(&self, key: &str) -> Result<Box<dyn Download>>;

    /// Keeps other programs from holding the same prefix until the result is dropped. Err: another
    /// program holds it. None: uploads of one object do not disturb each other in this store, or
    /// the store has no locks.
    fn hold(&self, _prefix: &str) -> Result<Option<Box<dyn Lock>>> {
        Ok(None)
    }
}

/// An object that is being written. Dropping it gives it up.
pub trait Upload: Send {
    /// Takes the next bytes of the object.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Completes the object. It is durable when this returns.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// An object that is being read.
pub trait Download: Send {
    /// The next bytes. Empty: the object has ended.
    fn read(&mut self) -> Result<Vec<u8>>;
}

/// The store at a place: a path, or `file://PATH`; `s3://BUCKET/PREFIX`, `gs://…`, `az://…`.
/// An empty place, as from a script whose variable is not set, and `s3:/…` are refused: both would
/// be directories of this machine.
pub fn open(env: &Env, place: &str) -> Result<Box<dyn Store>> {
    let is_slip = |scheme: &str| scheme == "file" || CLOUDS.contains(&scheme);
    match place.split_once("://") {
        _ if matches!(place, "" | "file://") => Err("the place of the backups is empty".to_owned()),
        None if place.split_once(':').is_some_and(|(scheme, _)| is_slip(scheme)) => {
            Err(format!("{place}: two slashes stand behind the colon, as in s3://BUCKET/PREFIX"))
        }
        None => Ok(Box::new(directory::Directory::new(env, place))),
        Some(("file", path)) => Ok(Box::new(directory::Directory::new(env, path))),
        Some((scheme, _)) if CLOUDS.contains(&scheme) => open_cloud(place),
        Some((scheme, _)) => Err(format!("{scheme}:// is no kind of store that is known")),
    }
}

/// Uploads some bytes into a store.
pub fn upload_bytes(store: &dyn Store, key: &str, bytes: &[u8]) -> Result<()> {
    let mut upload = store.begin(key, bytes.len() as u64)?;
    bytes.chunks(PIECE_SIZE).try_for_each(|piece| upload.write(piece))?;
    upload.finish()
}

/// Reads a small object.
pub fn fetch_bytes(store: &dyn Store, key: &str, size_max: usize) -> Result<Vec<u8>> {
    let mut download = store.open(key)?;
    let mut all = Vec::new();
    loop {
        let piece = download.read()?;
        if piece.is_empty() {
            return Ok(all);
        }
        if all.len() + piece.len() > size_max {
            return Err(format!("{key} is longer than {size_max} bytes"));
        }
        all.extend_from_slice(&piece);
    }
}

/// The kinds of stores in the cloud.
const CLOUDS: [&str; 5] = ["s3", "s3a", "gs", "az", "abfs"];

#[cfg(feature = "cloud")]
fn open_cloud(place: &str) -> Result<Box<dyn Store>> {
    Ok(Box::new(cloud::Cloud::new(place)?))
}

#[cfg(not(feature = "cloud"))]
fn open_cloud(place: &str) -> Result<Box<dyn Store>> {
    Err(format!("{place}: this program was built without stores in the cloud (feature `cloud`)"))
}

/// Refuses keys that would lead out of the store, and those that a store could not hold. Names of
/// backups are often times (`2026-11-29T10:00:00+01:00`).
pub(crate) fn check_key(key: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '@' | ':');
    let is_name = |name: &str| !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain);
    match key.len() <= KEY_SIZE_MAX && key.split('/').all(is_name) {
        true => Ok(()),
        false => Err(format!("{key:?} is no key of a backup")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A backup that lies on the disk of its own node is none.
    #[test]
    fn slips_are_no_directories() {
        let env = env::real::env();
        let refused = |place: &str| open(&env, place).err().unwrap_or_default();
        for (place, why) in [
            ("", "is empty"),
            ("file://", "is empty"),
            ("s3:/bucket/prefix", "two slashes"),
            ("gs:bucket", "two slashes"),
            ("file:/srv/backups", "two slashes"),
            ("ftp://host/x", "no kind of store"),
        ] {
            assert!(refused(place).contains(why), "{place}: {}", refused(place));
        }
        for place in ["backups", "/srv/backups", "./s3:x", "monday:backups", "file:///srv/backups"] {
            assert_eq!(refused(place), "", "{place}");
        }
    }

    #[test]
    fn keys_do_not_lead_out_of_the_store() {
        for good in ["nodes/5f-7/sstables/ks/t-1/da-1-bti-Data.db@0a1b2c3d", "m/2026-11-29T10:00:00+01:00/h.json"] {
            assert!(check_key(good).is_ok(), "{good}");
        }
        for bad in ["", "/etc", "a//b", "../x", "a/../b", "a/.b", "a b", "a\\b", "a/b/"] {
            assert!(check_key(bad).is_err(), "{bad}");
        }
    }
}
