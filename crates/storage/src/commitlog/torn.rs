//! Torn tails that a start cuts off the commit log: they are logged, and kept in files beside the
//! segments.
//!
//! A torn tail was never acknowledged as durable, so no client misses it. But damage of the disk
//! in the last section looks the same, and then these bytes are all that is left of the section.
//! The file `CommitLog-8-<id>.log.torn-<offset>` keeps these bytes as they were from that offset of
//! the segment on, without the zeros behind them. No start reads such a file; an operator may
//! remove it.

use std::path::Path;

use env::Disk;

use super::format;

/// Between the name of the segment and the offset.
const INFIX: &str = ".log.torn-";

/// Most tails that are kept. When one more comes, those of the oldest segments are removed.
const TORN_TAILS_MAX: usize = 8;

/// Logs that `tail`, the bytes of a segment from `offset` on, is cut off, and keeps it. If it
/// cannot be kept the start goes on: a tail that was never acknowledged must not keep a node from
/// starting on a full device.
pub(super) fn keep(disk: &dyn Disk, segment: &Path, offset: u32, reason: &str, tail: &[u8]) {
    let length = tail.len() - tail.iter().rev().take_while(|byte| **byte == 0).count();
    let name = segment.file_stem().unwrap_or_default().to_string_lossy();
    let kept = segment.with_file_name(format!("{name}{INFIX}{offset}"));
    tracing::warn!(
        path = %segment.display(), offset, bytes = length, reason, kept = %kept.display(),
        "cutting the torn tail of the commit log: what was not synced when the node died"
    );
    let written = make_room(disk, segment).and_then(|()| disk.replace_file(&kept, &tail[..length]));
    if let Err(error) = written {
        tracing::warn!(%error, path = %kept.display(), "the torn tail cannot be kept");
    }
}

fn make_room(disk: &dyn Disk, segment: &Path) -> std::io::Result<()> {
    let directory = segment.parent().unwrap_or(segment);
    let names = disk.list_dir(directory)?.into_iter().map(|entry| entry.name);
    // segments' names ascend with their ids, which all have as many digits
    let mut kept: Vec<String> = names.filter(|name| is_torn_tail(name)).collect();
    kept.sort_unstable();
    let surplus = (kept.len() + 1).saturating_sub(TORN_TAILS_MAX);
    kept.iter().take(surplus).try_for_each(|name| disk.remove_file(&directory.join(name)))
}

fn is_torn_tail(name: &str) -> bool {
    name.split_once(INFIX).is_some_and(|(segment, _)| format::parse_file_name(&format!("{segment}.log")).is_some())
}
