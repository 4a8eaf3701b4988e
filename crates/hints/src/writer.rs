//! The writer, which moves hints from the hosts' buffers into their files.
//!
//! A round takes all buffers, appends each to its host's file, and syncs. A file that fails is
//! given up (its synced bytes stay); entries that could not be written go back to the front of
//! their buffer, and into a new file in the next round.

use std::collections::BTreeMap;
use std::io;
use std::sync::PoisonError;

use env::Next;

use crate::descriptor::{Descriptor, HostId};
use crate::files::HintFile;
use crate::output::Output;
use crate::shared::{BUFFER_SIZE_EAGER, RETRY_PAUSE_MIN, Shared};

/// A step of the background task.
pub(crate) fn step(shared: &Shared) -> Next {
    let state = shared.state();
    let Some(since) = state.buffered_since else { return Next::Idle };
    let age = shared.env.elapsed(since);
    if !state.is_urgent && state.buffered < BUFFER_SIZE_EAGER && age < shared.settings.flush_period {
        return Next::After(shared.settings.flush_period - age);
    }
    drop(state);
    let mut outputs = shared.outputs.lock().unwrap_or_else(PoisonError::into_inner);
    if flush(shared, &mut outputs) {
        return Next::Idle;
    }
    Next::After(shared.settings.flush_period.max(RETRY_PAUSE_MIN))
}

/// Writes the hints of a host in memory, and closes its file.
pub(crate) fn close_file(shared: &Shared, host_id: &HostId) {
    let mut outputs = shared.outputs.lock().unwrap_or_else(PoisonError::into_inner);
    flush(shared, &mut outputs);
    if let Some(output) = outputs.remove(host_id) {
        let file = output.finish(shared.env.disk.as_ref());
        let mut state = shared.state();
        let host = state.hosts.entry(*host_id).or_default();
        host.open = None;
        host.files.push_back(file);
    }
}

/// Writes the hints of all buffers. False: not everything could be written.
fn flush(shared: &Shared, outputs: &mut BTreeMap<HostId, Output>) -> bool {
    let mut state = shared.state();
    let upto = state.added;
    state.is_urgent = false;
    state.buffered_since = None;
    let buffers = state.hosts.iter_mut().filter(|(_, host)| !host.buffer.is_empty());
    let buffers: Vec<(HostId, Vec<u8>)> = buffers.map(|(id, host)| (*id, std::mem::take(&mut host.buffer))).collect();
    drop(state);
    let mut is_whole = true;
    for (host_id, buffer) in buffers {
        let mut closed = Vec::new();
        let (written, result) = write(shared, outputs, host_id, &buffer, &mut closed);
        if let Err(error) = result {
            is_whole = false;
            shared.figures.failed_writes.add(1);
            tracing::warn!(directory = %shared.directory.display(), %error, "hints cannot be written; they wait in memory");
        }
        note_written(shared, outputs, host_id, &buffer, written, closed);
    }
    let mut state = shared.state();
    let in_buffers: usize = state.hosts.values().map(|host| host.buffer.len()).sum();
    assert_eq!(in_buffers, state.buffered, "the bytes in the buffers are charged, and no others");
    if is_whole {
        state.durable = state.durable.max(upto);
    } else {
        state.failed = state.failed.max(upto);
        state.buffered_since.get_or_insert_with(|| shared.env.now());
    }
    let woken = state.wake_all();
    drop(state);
    woken.into_iter().for_each(std::task::Waker::wake);
    is_whole
}

/// Writes entries of a host into as many files as they need. Gives the number of bytes that are on
/// the disk.
fn write(
    shared: &Shared,
    outputs: &mut BTreeMap<HostId, Output>,
    host_id: HostId,
    entries: &[u8],
    closed: &mut Vec<HintFile>,
) -> (usize, io::Result<()>) {
    let disk = shared.env.disk.as_ref();
    let (mut written, size_max) = (0, shared.settings.file_size_max);
    while let Some(rest) = entries.get(written..).filter(|rest| !rest.is_empty()) {
        let output = match outputs.remove(&host_id) {
            Some(output) => Ok(output),
            None => create(shared, host_id),
        };
        let mut output = match output {
            Ok(output) => output,
            Err(error) => return (written, Err(error)),
        };
        match output.append(rest, size_max).and_then(|count| output.sync(disk).map(|()| count)) {
            Ok(count) => {
                assert!(count > 0, "a file takes one entry at least");
                written += count;
                if output.size >= size_max {
                    closed.push(output.finish(disk));
                } else {
                    outputs.insert(host_id, output);
                }
            }
            Err(error) => {
                closed.extend(output.give_up(disk));
                return (written, Err(error));
            }
        }
    }
    (written, Ok(()))
}

/// Begins a file of a host.
fn create(shared: &Shared, host_id: HostId) -> io::Result<Output> {
    let mut state = shared.state();
    let millis = (shared.env.clock.now_micros() / 1000).max(state.last_millis + 1);
    state.last_millis = millis;
    drop(state);
    let (version, compression) = (shared.version, shared.compression.clone());
    Output::create(shared.env.disk.as_ref(), &shared.directory, Descriptor { host_id, millis, version, compression })
}

/// Updates the lists after a write.
fn note_written(
    shared: &Shared,
    outputs: &BTreeMap<HostId, Output>,
    host_id: HostId,
    entries: &[u8],
    written: usize,
    closed: Vec<HintFile>,
) {
    let mut state = shared.state();
    assert!(written <= entries.len(), "no more is written than there is");
    assert!(state.buffered >= entries.len(), "bytes that are written were charged");
    state.buffered -= written;
    let host = state.hosts.entry(host_id).or_default();
    host.files.extend(closed);
    host.open = outputs.get(&host_id).map(|output| (output.descriptor.millis, output.size));
    if let Some(left) = entries.get(written..).filter(|left| !left.is_empty()) {
        host.buffer.splice(..0, left.iter().copied());
    }
}
