//! Files copied into a store and out of it, piece by piece, with their digests.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use env::Env;
use sha2::{Digest, Sha256};

use crate::Result;
use crate::manifest::Entry;
use crate::store::{PIECE_SIZE, Store};

/// The end of the name of a file that is not complete.
const PART: &str = ".part";

/// A digest as hexadecimal digits.
fn hex(digest: Sha256) -> String {
    let mut text = String::with_capacity(64);
    for byte in digest.finalize() {
        // writing to a string does not fail
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Calls `take` with the pieces of a file, one after the other; gives the file's digest.
fn each_piece(env: &Env, path: &Path, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = env.disk.open_read(path).map_err(wrong)?;
    file.advise_sequential();
    let (mut digest, mut offset) = (Sha256::new(), 0);
    let mut piece = vec![0; PIECE_SIZE];
    while offset < file.len() {
        let count = usize::try_from(file.len() - offset).unwrap_or(usize::MAX).min(PIECE_SIZE);
        file.read_at(&mut piece[..count], offset).map_err(wrong)?;
        digest.update(&piece[..count]);
        take(&piece[..count])?;
        offset += count as u64;
    }
    Ok(hex(digest))
}

/// The digest of a file.
pub fn digest(env: &Env, path: &Path) -> Result<String> {
    each_piece(env, path, |_| Ok(()))
}

/// Uploads a file into a store; gives its digest.
pub fn upload(env: &Env, path: &Path, size: u64, store: &dyn Store, key: &str) -> Result<String> {
    let mut upload = store.begin(key, size)?;
    let digest = each_piece(env, path, |piece| upload.write(piece))?;
    upload.finish()?;
    Ok(digest)
}

/// Why an object does not agree with the manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ObjectProblem {
    /// The object is missing or has other bytes.
    Damaged(String),
    /// The object could not be read, or its bytes could not be written here: whether the object is
    /// complete is not known.
    Unread(String),
}

impl ObjectProblem {
    /// The sentence for the operator.
    pub fn why(self) -> String {
        match self {
            Self::Damaged(why) | Self::Unread(why) => why,
        }
    }
}

/// Reads an object and compares it with the manifest; gives the bytes to `take`.
pub fn check(
    store: &dyn Store,
    entry: &Entry,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> std::result::Result<(), ObjectProblem> {
    let mut download = store.open(&entry.key).map_err(|why| match store.size(&entry.key) {
        Ok(None) => ObjectProblem::Damaged(format!("{} is missing", entry.key)),
        _ => ObjectProblem::Unread(why),
    })?;
    let (mut digest, mut size) = (Sha256::new(), 0);
    loop {
        let piece = download.read().map_err(ObjectProblem::Unread)?;
        if piece.is_empty() {
            break;
        }
        digest.update(&piece);
        size += piece.len() as u64;
        if size > entry.size {
            break;
        }
        take(&piece).map_err(ObjectProblem::Unread)?;
    }
    if size != entry.size {
        return Err(ObjectProblem::Damaged(format!(
            "{} has {size} bytes or more instead of {}",
            entry.key, entry.size
        )));
    }
    match hex(digest) == entry.sha256 {
        true => Ok(()),
        false => {
            Err(ObjectProblem::Damaged(format!("{} is damaged: its digest is another than the manifest's", entry.key)))
        }
    }
}

/// Fetches an object into a file, which appears when it is complete and its digest right. A file
/// that is there already and has the digest stays.
pub fn fetch(env: &Env, store: &dyn Store, entry: &Entry, to: &Path) -> Result<()> {
    if env.disk.file_len(to).is_ok_and(|size| size == entry.size) && digest(env, to)? == entry.sha256 {
        return Ok(());
    }
    let wrong = |error: std::io::Error| format!("{}: {error}", to.display());
    let mut name = to.as_os_str().to_owned();
    name.push(PART);
    let part = PathBuf::from(name);
    let mut file = env.disk.create(&part).map_err(wrong)?;
    check(store, entry, |piece| file.write_all(piece).map_err(wrong)).map_err(ObjectProblem::why)?;
    file.sync_data().map_err(wrong)?;
    env.disk.rename(&part, to).map_err(wrong)
}
