//! The files that an earlier life of the node has left, or another program.
//!
//! A file with a checksum beside it was closed by its writer. A file without one was being
//! written: an incomplete entry at its end is cut off and logged, and the checksum is written. No
//! synced hint is lost by that, because an entry is synced after the entries before it. A file
//! whose head does not fit its name, or has a time that no clock has, is left alone.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use env::Disk;

use crate::descriptor::Descriptor;
use crate::error::HintError;
use crate::files::HintFile;
use crate::reader::{Position, Reader};

/// Bytes that are read at a time for a checksum.
const CHUNK_SIZE: usize = 256 << 10;
/// Most bytes of a file without a head: the head is synced before hints are written.
const EMPTY_SIZE_MAX: u64 = 128 << 10;
/// The begin of a file, milliseconds since 1970, from which on it is no time of any clock. Each
/// new file has a later time than those before it, and none would be left behind the last one.
const BEGUN_MILLIS_END: i64 = i64::MAX / 2;

/// The hint files of a directory, oldest first, after their ends have been mended, and the names
/// of those that are left alone because they cannot be read.
pub fn find_files(disk: &dyn Disk, directory: &Path) -> Result<(Vec<HintFile>, Vec<String>), HintError> {
    let (mut files, mut left_alone) = (Vec::new(), Vec::new());
    for entry in disk.list_dir(directory)? {
        if entry.is_dir || !Descriptor::is_file_name(&entry.name) {
            continue;
        }
        let path = directory.join(&entry.name);
        match find_file(disk, directory, &path) {
            Ok(found) => files.extend(found),
            Err(error @ (HintError::Checksum(_) | HintError::Bytes(_))) => set_aside(disk, &path, &error)?,
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "a hint file is left alone");
                left_alone.push(entry.name);
            }
        }
    }
    files.sort_by_key(|file| file.descriptor.millis);
    Ok((files, left_alone))
}

/// A file of hints, after its end has been mended; None: the file held no whole hint, and has been
/// removed.
fn find_file(disk: &dyn Disk, directory: &Path, path: &Path) -> Result<Option<HintFile>, HintError> {
    let reader = match Reader::open(disk, path) {
        Err(error) if error.is_cut_head() || is_empty(disk, path)? => {
            tracing::warn!(path = %path.display(), %error, "a hint file without a head is removed: it holds no hint");
            disk.remove_file(path)?;
            return Ok(None);
        }
        opened => opened?,
    };
    let descriptor = reader.descriptor.clone();
    // the store finds a file again by its head
    let name = descriptor.file_name();
    if path.file_name() != Some(OsStr::new(&name)) {
        return Err(HintError::Unread(format!("a file whose head says that its name is {name}")));
    }
    if descriptor.millis >= BEGUN_MILLIS_END {
        return Err(HintError::Unread(format!("a file that was begun {} ms after 1970", descriptor.millis)));
    }
    if !disk.exists(&directory.join(descriptor.checksum_name()))
        && !cut_incomplete_entry(disk, directory, path, reader)?
    {
        return Ok(None);
    }
    Ok(Some(HintFile { descriptor, size: disk.file_len(path)?, sent: Position::default(), taken: BTreeSet::new() }))
}

/// Whether a file has only zeros: a crash has kept its length and lost its head.
fn is_empty(disk: &dyn Disk, path: &Path) -> Result<bool, HintError> {
    let length = disk.file_len(path)?;
    Ok(length <= EMPTY_SIZE_MAX && disk.read_all(path, EMPTY_SIZE_MAX)?.iter().all(|byte| *byte == 0))
}

/// Cuts off an incomplete entry at the end of a file, and writes its checksum. False: no hint was
/// left.
fn cut_incomplete_entry(disk: &dyn Disk, directory: &Path, path: &Path, mut reader: Reader) -> Result<bool, HintError> {
    let mut hints = 0;
    let broken = loop {
        match reader.page() {
            Ok(page) => {
                hints += page.hints.len();
                if page.is_last {
                    break None;
                }
            }
            Err(HintError::Io(error)) => return Err(error.into()),
            Err(error) => break Some(error),
        }
    };
    if hints == 0 {
        tracing::warn!(path = %path.display(), "a hint file without a whole hint is removed");
        disk.remove_file(path)?;
        return Ok(false);
    }
    let (sound, length) = (reader.sound_length(), disk.file_len(path)?);
    if sound < length {
        let reason = broken.map_or_else(|| "the last hint is not whole".to_owned(), |error| error.to_string());
        tracing::warn!(path = %path.display(), cut = length - sound, hints, reason, "the torn end of a hint file is cut off");
        let mut file = disk.open_write(path)?;
        file.set_len(sound)?;
        file.sync_data()?;
    }
    let checksum = checksum(disk, path)?;
    write_checksum(disk, directory, &reader.descriptor, checksum)?;
    Ok(true)
}

fn checksum(disk: &dyn Disk, path: &Path) -> Result<u32, HintError> {
    let file = disk.open_read(path)?;
    let (mut crc, mut at) = (crc32fast::Hasher::new(), 0);
    let mut chunk = vec![0; CHUNK_SIZE];
    while at < file.len() {
        let count = usize::try_from(file.len() - at).unwrap_or(CHUNK_SIZE).min(CHUNK_SIZE);
        let part = chunk.get_mut(..count).expect("no more than a chunk");
        file.read_at(part, at)?;
        crc.update(part);
        at += count as u64;
    }
    Ok(crc.finalize())
}

/// Writes the file beside a hint file that says that the hint file is complete.
pub(crate) fn write_checksum(
    disk: &dyn Disk,
    directory: &Path,
    descriptor: &Descriptor,
    checksum: u32,
) -> Result<(), HintError> {
    let mut file = disk.create(&directory.join(descriptor.checksum_name()))?;
    file.write_all(format!("{checksum:x}").as_bytes())?;
    file.sync_data()?;
    disk.sync_dir(directory)?;
    Ok(())
}

/// Gives a file whose head cannot be right another name, so that it is not read as hints.
fn set_aside(disk: &dyn Disk, path: &Path, error: &HintError) -> Result<(), HintError> {
    let aside = path.with_extension("corrupt.hints");
    tracing::error!(path = %path.display(), aside = %aside.display(), %error, "a hint file cannot be read and is renamed");
    disk.rename(path, &aside)?;
    Ok(())
}
