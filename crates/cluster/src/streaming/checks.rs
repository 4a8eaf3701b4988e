//! The checks before bytes flow: whether this node has the tables and the room for the files that a
//! peer announces, whether the repair that they are for goes on, whether a peer asks for ranges
//! that this node has, and whether this node can read all tables that it is to hand on.
//!
//! A session of a full repair does not say which one it belongs to. Its follower takes files of
//! tables of which it takes part in some repair. A replica that has not heard of a TRUNCATE yet
//! would otherwise bring the rows back to one whose TRUNCATE has ended the repair.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use gossip::Gossip;
use internode::payload::repair::consistent::SessionState;
use storage::DiskFailurePolicy;
use storage::received::{IfTruncated, TruncationEffect};
use streaming::{Operation, Summary};

use super::collect::Wanted;
use crate::clock::uuid_text;
use crate::node::Node;
use crate::repair_state::schedule::turns::{STATE, ScheduleStatus};
use crate::streaming_state::LiveSession;

/// Whether this node can take the files that the peer announces. Err: a sentence that says why
/// not.
pub(super) async fn check_announced(node: &Arc<Node>, live: &LiveSession, summaries: &[Summary]) -> Result<(), String> {
    let mut wanted = Vec::new();
    for summary in summaries {
        let store = node.engine.table(summary.table);
        let store = store.ok_or_else(|| format!("there is no table with the id {} here", summary.table))?;
        if live.if_truncated() == IfTruncated::Fail
            && store.truncation_effect(live.begun_at) != TruncationEffect::Nothing
        {
            return Err(format!("{} was truncated meanwhile", store.name()));
        }
        wanted.push((store, u64::try_from(summary.bytes).unwrap_or(0)));
    }
    live.expect_files_of(wanted.iter().map(|(store, _)| store));
    if !wanted.is_empty()
        && let Some(id) = live.init.pending_repair
        && node.repairs.sessions().get(&id).is_some_and(|session| session.state == SessionState::Failed)
    {
        return Err(format!("the incremental repair {} has failed here", uuid_text(&id)));
    }
    let is_preview = live.init.preview != streaming::Preview::None;
    // a TRUNCATE that ends the repair behind this look has its cut behind the begin of the session
    let needs_repair = live.key.follows && live.init.operation == Operation::Repair && !is_preview;
    if needs_repair && let Some((store, _)) = wanted.iter().find(|(store, _)| !node.repairs.is_repaired(store.id)) {
        return Err(format!("this node takes part in no repair of {}", store.name()));
    }
    if wanted.is_empty() || is_preview || node.streaming_state.settings.load().skips_space_check {
        return Ok(());
    }
    let on_their_way: u64 = node.streaming_state.all().iter().map(|live| live.progress.left_to_receive()).sum();
    let of_node = Arc::clone(node);
    let job = move || {
        let disk = &of_node.env.disk;
        let needed = wanted.iter().map(|(_, bytes)| bytes).fold(on_their_way, |sum, bytes| sum.saturating_add(*bytes));
        let mut directories: Vec<_> = wanted.iter().flat_map(|(store, _)| &store.directories).collect();
        directories.sort();
        directories.dedup();
        let room = room_of(directories.into_iter().map(|directory| {
            let above = directory.ancestors().find(|above| disk.exists(above)).unwrap_or(directory);
            let free = of_node.engine.options.disk_room.of(disk.available_space(above).unwrap_or(u64::MAX));
            (disk.file_system(above).ok(), free)
        }));
        (needed, room)
    };
    let (needed, room) = node.env.blocking("stream", job).await.map_err(|full| full.to_string())?;
    match needed <= room {
        true => Ok(()),
        false => Err(format!("{needed} bytes would come, and the disk has room for {room}")),
    }
}

/// The bytes that directories have room for together: each is given with the number of its file
/// system (None: not known) and the bytes that may be taken there. Files that come are spread over
/// the directories, so that the rooms are added; directories of one file system share its room,
/// which counts once. Without directories there is no limit.
fn room_of(directories: impl Iterator<Item = (Option<u64>, u64)>) -> u64 {
    let (mut seen, mut sum) = (BTreeSet::new(), None::<u64>);
    for (file_system, room) in directories {
        if file_system.is_none_or(|number| seen.insert(number)) {
            sum = Some(sum.unwrap_or(0).saturating_add(room));
        }
    }
    sum.unwrap_or(u64::MAX)
}

/// Whether a peer may have the ranges that it asks for. Ranges that this node does not replicate
/// may be refused ([`crate::out_of_range`]). Err: the reason, in Cassandra's words.
pub(super) fn check_requested(node: &Node, live: &LiveSession, wanted: &[Wanted]) -> Result<(), String> {
    let id = format!("Stream #{}", uuid_text(&live.key.plan));
    let mut refused = Vec::new();
    for Wanted { keyspace, ranges, .. } in wanted {
        let ranges: Vec<_> = ranges.iter().map(|range| (range.left, range.right)).collect();
        if node.refuses_ranges(keyspace, &ranges, (&id, "stream request", live.key.peer)) {
            refused.push(keyspace.as_str());
        }
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "Received stream requests containing ranges outside of owned ranges: of {}",
            refused.join(", ")
        )),
    }
}

/// Whether this node can read all that a peer gets of it. Err: a sentence.
pub(super) async fn can_hand_on(node: &Arc<Node>, peer: SocketAddr, wanted: &[Wanted]) -> Result<(), String> {
    let whole: Vec<&str> = wanted.iter().filter(|one| one.tables.is_empty()).map(|one| one.keyspace.as_str()).collect();
    match whole.is_empty() {
        true => Ok(()),
        false => refuse_left_out(node, &[peer], |keyspace| whole.contains(&keyspace)).await,
    }
}

/// Refuses to hand on keyspaces with tables that are left out of the schema of this node because
/// they cannot be read. Otherwise a peer that can read them, and a ring that this node leaves,
/// would count their data as handed on. Peers that are a Helenus leave the tables out, too.
/// `is_meant`: whether a keyspace is handed on.
pub(crate) async fn refuse_left_out(
    node: &Arc<Node>,
    peers: &[SocketAddr],
    is_meant: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let of_node = Arc::clone(node);
    let job = move || storage::schema_change::left_out(&of_node.engine);
    let left_out = node.env.blocking_long("stream", job).await.map_err(|full| full.to_string())?;
    let left_out = left_out.map_err(|error| error.to_string())?;
    let Some((keyspace, table)) = left_out.into_iter().find(|(keyspace, _)| is_meant(keyspace)) else { return Ok(()) };
    let is_wanted = node.engine.options.disk_failure_policy != DiskFailurePolicy::Ignore;
    match peers.iter().find(|peer| is_wanted && !is_helenus(node, **peer)) {
        Some(peer) => Err(format!(
            "{keyspace}.{table} is left out of the schema of this node because it cannot be read, and its data cannot \
             be handed on to {peer}: the log of the start says why. With disk_failure_policy: ignore it is passed \
             over; copies are missing then"
        )),
        None => {
            tracing::warn!(keyspace, table, "the data of a table that is left out is not handed on");
            Ok(())
        }
    }
}

/// Whether a node tells that it is a Helenus.
fn is_helenus(node: &Node, address: SocketAddr) -> bool {
    let told = |gossip: &mut Gossip| ScheduleStatus::parse(gossip.state(address)?.value(STATE)?);
    node.messenger().and_then(|members| members.with_gossip(told)).is_some()
}

#[cfg(test)]
mod tests {
    use super::room_of;

    #[test]
    fn rooms_of_file_systems_are_added_and_each_counts_once() {
        /// The file system and the room of each directory.
        type Rooms = &'static [(Option<u64>, u64)];
        let cases: [(Rooms, u64); 6] = [
            (&[], u64::MAX),
            (&[(Some(1), 7)], 7),
            (&[(Some(1), 7), (Some(1), 7)], 7),
            (&[(Some(1), 7), (Some(2), 5), (Some(1), 7), (Some(3), 1)], 13),
            (&[(None, 7), (None, 5), (Some(1), 1)], 13),
            (&[(Some(1), u64::MAX), (Some(2), 5)], u64::MAX),
        ];
        for (directories, room) in cases {
            assert_eq!(room_of(directories.iter().copied()), room, "{directories:?}");
        }
    }
}
