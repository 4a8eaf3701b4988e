//! The files that this node sends in a session: its SSTables with something in the wanted ranges,
//! after a flush. A TRUNCATE of this node that is under way ends before its table is looked at,
//! and a table that is truncated before the peer is told of the files is looked at again.
//! Otherwise the peer could have its own TRUNCATE behind it, and would take the rows for later
//! ones. A TRUNCATE that comes here behind that changes nothing of what is sent: the peer drops
//! the rows that its own has removed, and is asked to truncate again where its own may have come
//! before it was told (`crate::coordinator::truncate`). The stream of a repair ends with it. A
//! table or a keyspace that is dropped before the peer is told of it is passed over; what the peer
//! was told of stays open and is sent.
//! `org.apache.cassandra.db.streaming.CassandraStreamManager`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use schema::TableId;
use sending::{ChosenSections, OutgoingFile};
use sstable::SSTable;
use storage::TableStore;
use storage::received::TruncationEffect;
use storage::view::View;
use streaming::data::outgoing;
use streaming::{Operation, Preview, Received, StreamInit, StreamRequest, TokenRange};

use super::plan::RangeTransfer;
use crate::node::Node;
use crate::repair_state::Repairs;

/// Most SSTables of a session that go whole. Their files, up to ten for each, are open from the
/// beginning of the session on. Further SSTables go in sections, which need no files besides those
/// that are open anyway.
const ENTIRE_MAX: usize = 512;

/// How often tables are looked at, if each time one of them is truncated before all were looked
/// at. The files that the last look found are sent.
const LOOKS_MAX: usize = 8;

/// Time between two looks whether a truncation has ended.
const TRUNCATION_PAUSE: Duration = Duration::from_millis(100);

/// Ranges of which a side wants everything.
pub(super) struct Wanted {
    pub keyspace: String,
    /// Names of tables; empty: all tables of the keyspace.
    pub tables: Vec<String>,
    pub ranges: Vec<TokenRange>,
}

impl From<StreamRequest> for Wanted {
    fn from(request: StreamRequest) -> Self {
        let StreamRequest { keyspace, tables, mut full, transient, .. } = request;
        full.extend(transient);
        Self { keyspace, tables, ranges: full }
    }
}

impl From<RangeTransfer> for Wanted {
    fn from(RangeTransfer { keyspace, tables, ranges }: RangeTransfer) -> Self {
        Self { keyspace, tables, ranges }
    }
}

/// The files of all tables for a peer, which is told of them next, numbered in each table. Err: a
/// sentence that says why they cannot be sent.
pub(super) async fn files(
    node: &Arc<Node>,
    init: &StreamInit,
    peer: SocketAddr,
    wanted: Vec<Wanted>,
) -> Result<Vec<OutgoingFile>, String> {
    let tables = tables(node, wanted)?;
    // every flush is asked for before the first is waited for
    let flushes: Vec<_> = tables.values().map(|(store, _)| (store, node.engine.flush(store))).collect();
    for (store, flush) in flushes {
        let flushed = flush.await.map_err(|error| error.to_string());
        flushed.or_else(|why| if store.is_closed() { Ok(()) } else { Err(why) })?;
    }
    let mut looks = 1;
    loop {
        let begun_at = node.engine.truncation_epoch();
        let mut all = look(node, init, &tables).await?;
        let is_truncated =
            tables.values().any(|(store, _)| store.truncation_effect(begun_at) != TruncationEffect::Nothing);
        if !is_truncated || looks == LOOKS_MAX {
            // a peer that has dropped the table too would refuse the session
            all.retain(|file| tables.get(&file.id.table).is_some_and(|(store, _)| !store.is_closed()));
            // a TRUNCATE ends streams of repairs on both sides
            if init.operation != Operation::Repair && init.preview == Preview::None && !all.is_empty() {
                let offered = all.iter().map(|file| file.id.table).collect();
                let time = (node.env.now(), node.truncates_receivers_within());
                node.streaming_state.note_offer(peer, offered, begun_at, time);
            }
            return Ok(all);
        }
        looks += 1;
    }
}

/// The files that tables have now.
async fn look(node: &Arc<Node>, init: &StreamInit, tables: &Tables) -> Result<Vec<OutgoingFile>, String> {
    let mut all = Vec::new();
    let mut entire_left = if node.streaming_state.settings.load().entire { ENTIRE_MAX } else { 0 };
    for (store, ranges) in tables.values() {
        let left_out = store.left_out();
        if let Some(first) = left_out.first() {
            tracing::warn!(
                table = store.name(),
                count = left_out.len(),
                why = first.why,
                "SSTables that cannot be read are not sent: the peer lacks their rows"
            );
        }
        let view = settled(node, store).await;
        let (of_node, init, of_job, ranges) = (Arc::clone(node), init.clone(), Arc::clone(store), ranges.clone());
        let job = move || of_table(&of_node, &init, &of_job, &view, &ranges, entire_left);
        let found = node.env.blocking_long("stream", job).await.map_err(|full| full.to_string())?;
        let files = match found {
            Err(_) if store.is_closed() => continue,
            found => found?,
        };
        entire_left -= files.iter().filter(|file| file.entire.is_some()).count();
        all.extend(files);
    }
    Ok(all)
}

/// The view of a table while no truncation of it is under way. Otherwise the view would have
/// SSTables that the truncation is about to remove; they cannot be left out either, because the
/// truncation may fail.
async fn settled(node: &Node, store: &TableStore) -> Arc<View> {
    loop {
        if let Some(view) = store.view_beside_no_truncation() {
            return view;
        }
        node.env.sleep(TRUNCATION_PAUSE).await;
    }
}

type Tables = BTreeMap<TableId, (Arc<TableStore>, Vec<TokenRange>)>;

/// The tables that are meant, each with its ranges.
fn tables(node: &Node, wanted: Vec<Wanted>) -> Result<Tables, String> {
    let schema = node.schema();
    let mut tables = Tables::new();
    for Wanted { keyspace, tables: names, ranges } in wanted {
        let Some(known) = schema.keyspace(&keyspace) else {
            // the peer has not heard of the drop yet; a repair, which names its tables, ends
            match names.is_empty() && node.streaming_state.was_dropped(&keyspace) {
                true => continue,
                false => return Err(format!("there is no keyspace {keyspace} here")),
            }
        };
        if let Some(name) = names.iter().find(|name| !known.tables.contains_key(*name)) {
            return Err(format!("there is no table {keyspace}.{name} here"));
        }
        let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
        for table in known.tables.values().filter(|table| is_wanted(&table.name)) {
            if let Some(store) = node.engine.table(table.id) {
                tables.entry(table.id).or_insert_with(|| (store, Vec::new())).1.extend(&ranges);
            }
        }
    }
    Ok(tables)
}

/// The files of one table. Waits for the disk.
fn of_table(
    node: &Node,
    init: &StreamInit,
    store: &TableStore,
    view: &View,
    ranges: &[TokenRange],
    entire_max: usize,
) -> Result<Vec<OutgoingFile>, String> {
    let ranges = outgoing::normalized(ranges);
    let (mut files, mut entire_count) = (Vec::new(), 0);
    for sstable in &view.sstables {
        if !is_meant(&node.repairs, init, sstable)? {
            continue;
        }
        let sections = ChosenSections::of(&node.env, sstable, &ranges, entire_count < entire_max);
        let Some(sections) = sections.map_err(|error| error.to_string())? else { continue };
        entire_count += usize::from(sections.entire.is_some());
        let sequence = i32::try_from(files.len()).map_err(|_| "a table has too many SSTables".to_owned())?;
        let id = Received { table: store.id, sequence };
        let file = sections.named(id, sstable, init.operation.keeps_level());
        files.push(file.map_err(|error| error.to_string())?);
    }
    Ok(files)
}

/// Whether an SSTable has the repair state that the session is for. Err: why a preview cannot be
/// made now.
fn is_meant(repairs: &Repairs, init: &StreamInit, sstable: &SSTable) -> Result<bool, String> {
    let stats = &sstable.statistics().stats;
    match (init.preview, init.pending_repair) {
        (Preview::Unrepaired, _) => Ok(stats.repaired_at == 0),
        (Preview::Repaired, _) => repairs.counts_as_repaired(stats.repaired_at, stats.pending_repair),
        (Preview::All, _) | (Preview::None, None) => Ok(true),
        (Preview::None, Some(repair)) => Ok(stats.pending_repair == Some(repair)),
    }
}
