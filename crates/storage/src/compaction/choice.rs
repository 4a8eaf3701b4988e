//! Chooses, from a table's state, the SSTables to compact next. A chosen SSTable is marked, so
//! that no other compaction takes it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use env::rare::{Rare, happens};
use env::sync::atomic::Ordering;
use sstable::{Component, Descriptor, SSTable};

use super::purge::{gc_before, is_whole, may_purge, memtable_min_timestamp};
use super::task::Start;
use crate::error::StorageError;
use crate::files::unknown_column;
use crate::inherited::{RepairState, by_repair_state};
use crate::requests::operations::{Item, Operation, Work};
use crate::requests::progress::{Compactions, Running};
use crate::strategy::kind::Kind;
use crate::strategy::leveled::{self, LEVELS};
use crate::strategy::output::Output;
use crate::strategy::{Candidate, Choice, Memory, State, Strategy};
use crate::table::view::View;
use crate::table::{Changes, TableStore};

/// More SSTables in level 0 than these are shown as too many, as in Cassandra's `tablestats`.
const L0_MAX: u64 = 4;

/// Time for which SSTables of a compaction that failed are not chosen again. It doubles with each
/// further failure.
const FAILED_PAUSE_MIN: Duration = Duration::from_secs(5);
/// Longest time for which they are not chosen again.
const FAILED_PAUSE_MAX: Duration = Duration::from_secs(60 * 60);
/// Longest time for which they are not chosen again after a failure for lack of room on the disk
/// or in the commit log, or of descriptors. There may be enough of these at any moment, and
/// compactions themselves make room.
const SHORTAGE_PAUSE_MAX: Duration = Duration::from_secs(60);
/// Doublings after which the longest pause is surely reached.
const FAILED_DOUBLINGS_MAX: u32 = 16;

const _: () = assert!(FAILED_PAUSE_MIN.as_secs() << FAILED_DOUBLINGS_MAX > FAILED_PAUSE_MAX.as_secs());

/// A table as strategies see it: the SSTables of each repair state, one state after the other.
struct Seen {
    groups: Vec<Group>,
    gc_before: u32,
    memtable_min_timestamp: i64,
    now_millis: u64,
    flush_size: f64,
    dice: u64,
}

struct Group {
    repair_state: RepairState,
    sstables: Vec<Arc<SSTable>>,
    candidates: Vec<Candidate>,
    others: Vec<Candidate>,
    may_purge: bool,
}

impl Seen {
    fn new(store: &TableStore, changes: &Changes, view: &View) -> Self {
        let micros = store.env.clock.now_micros();
        let gc_before = gc_before(&view.table, store.env.clock.now_seconds());
        let sound = |sstable: &Arc<SSTable>| {
            !changes.suspect.contains(sstable.descriptor()) && unknown_column(sstable.header(), &view.table).is_none()
        };
        let candidates = |sstables: &[Arc<SSTable>]| -> Vec<Candidate> {
            let numbered = sstables.iter().enumerate();
            numbered.map(|(index, sstable)| candidate(store, changes, index, sstable, gc_before)).collect()
        };
        let mut groups: Vec<Group> = by_repair_state(&view.sstables)
            .into_iter()
            .map(|(repair_state, sstables)| {
                let is_of_group = |other: &Arc<SSTable>| RepairState::of(&other.statistics().stats) == repair_state;
                // of what is damaged it is not known what else it holds, and cells of unknown
                // columns would be lost: such an SSTable is seen by the others, and not chosen
                let (near, suspect): (Vec<_>, Vec<_>) = sstables.into_iter().partition(sound);
                let far = view.sstables.iter().filter(|other| !is_of_group(other)).chain(&suspect);
                let others = candidates(&far.cloned().collect::<Vec<_>>());
                let may_purge = is_whole(store) && may_purge(&view.table, &near);
                Group { repair_state, candidates: candidates(&near), sstables: near, others, may_purge }
            })
            .collect();
        groups.retain(|group| !group.sstables.is_empty());
        Self {
            groups,
            gc_before,
            memtable_min_timestamp: memtable_min_timestamp(view),
            now_millis: u64::try_from(micros / 1000).unwrap_or(0),
            flush_size: store.flush_size.mean(),
            dice: store.env.random.next_u64(),
        }
    }

    /// Takes SSTables whose compaction failed a short time ago out of the choice: they are seen as
    /// if they were being compacted.
    fn without_failed(mut self, store: &TableStore, changes: &Changes) -> Self {
        let now = store.env.clock.monotonic_nanos();
        let waits = |sstable: &Arc<SSTable>| {
            changes.failed.get(sstable.descriptor()).is_some_and(|failures| failures.until > now)
        };
        for group in &mut self.groups {
            for (candidate, sstable) in group.candidates.iter_mut().zip(&group.sstables) {
                candidate.compacting |= waits(sstable);
            }
        }
        self
    }

    fn state<'a>(&self, group: &'a Group) -> State<'a> {
        State {
            sstables: &group.candidates,
            others: &group.others,
            memtable_min_timestamp: self.memtable_min_timestamp,
            gc_before: self.gc_before,
            may_purge: group.may_purge,
            now_millis: self.now_millis,
            flush_size: self.flush_size,
            dice: self.dice,
        }
    }
}

/// The facts about an SSTable that strategies see.
pub(super) fn candidate(
    store: &TableStore,
    changes: &Changes,
    index: usize,
    sstable: &SSTable,
    gc_before: u32,
) -> Candidate {
    let stats = &sstable.statistics().stats;
    Candidate {
        index,
        size: sstable.stored_length(),
        level: stats.level,
        first: sstable.first_key().token,
        last: sstable.last_key().token,
        min_timestamp: stats.min_timestamp,
        max_timestamp: stats.max_timestamp,
        max_local_deletion_time: stats.max_local_deletion_time,
        droppable: droppable_tombstones(sstable, gc_before),
        created: written_at(store, changes, sstable),
        coverage: (!stats.token_space_coverage.is_nan()).then_some(stats.token_space_coverage),
        compacting: changes.compacting.contains(sstable.descriptor()),
    }
}

/// When an SSTable was written, milliseconds since 1970: the time that this process noted, else
/// the one on disk.
fn written_at(store: &TableStore, changes: &Changes, sstable: &SSTable) -> u64 {
    let descriptor = sstable.descriptor();
    let noted = changes.written.get(descriptor).copied();
    noted.unwrap_or_else(|| store.env.disk.modified_millis(&descriptor.path(Component::Data)).unwrap_or(0))
}

/// The number of compactions that the strategy would still do for a table.
pub fn pending(store: &TableStore) -> usize {
    let changes = store.changes();
    let view = store.view();
    let strategy = store.thresholds.strategy(&view.table.params.compaction);
    let seen = Seen::new(store, &changes, &view);
    let memory = |group: &Group| changes.remembered.memories.get(&group.repair_state).cloned().unwrap_or_default();
    seen.groups.iter().map(|group| strategy.pending(&seen.state(group), &memory(group))).sum()
}

/// SSTables in each level of the leveled strategy, their bytes, and how many SSTables the level
/// should have at most; empty with other strategies.
pub fn levels(store: &TableStore) -> Vec<(usize, u64, u64)> {
    let changes = store.changes();
    let view = store.view();
    let Strategy::Leveled(options) = Strategy::of(&view.table.params.compaction) else { return Vec::new() };
    let most = |level: u32| if level == 0 { L0_MAX } else { options.fanout.saturating_pow(level) };
    let mut sums: Vec<(usize, u64, u64)> = (0..).take(LEVELS).map(|level| (0, 0, most(level))).collect();
    for group in Seen::new(store, &changes, &view).groups {
        for ((count, bytes, _), level) in sums.iter_mut().zip(leveled::levels(&group.candidates)) {
            *count += level.len();
            *bytes += level.iter().map(|candidate| candidate.size).sum::<u64>();
        }
    }
    sums
}

/// Estimated share of a table's cells in SSTables that are droppable tombstones.
pub fn droppable_share(store: &TableStore, now: u32) -> f64 {
    let view = store.view();
    let gc_before = gc_before(&view.table, now);
    let cells = |sstable: &SSTable| {
        let histogram = &sstable.statistics().stats.cells_per_partition;
        histogram.mean() * histogram.count() as f64
    };
    let all: f64 = view.sstables.iter().map(|sstable| cells(sstable)).sum();
    let droppable: f64 =
        view.sstables.iter().map(|sstable| droppable_tombstones(sstable, gc_before) * cells(sstable)).sum();
    if all > 0.0 { droppable / all } else { 0.0 }
}

/// Estimated share of an SSTable's cells that are tombstones from before `gc_before`.
fn droppable_tombstones(sstable: &SSTable, gc_before: u32) -> f64 {
    let stats = &sstable.statistics().stats;
    let cells = stats.cells_per_partition.mean() * stats.cells_per_partition.count() as f64;
    if cells > 0.0 { stats.tombstones.sum(i64::from(gc_before)) / cells } else { 0.0 }
}

/// Marks the SSTables that the table's strategy chooses: those of the repair state in which most
/// is to be done.
pub fn choose_and_mark(store: &Arc<TableStore>) -> Option<Start> {
    let mut changes = store.changes();
    if !changes.truncations.is_empty() || is_dropped(store, &changes) {
        return None;
    }
    let view = store.view();
    let options = &view.table.params.compaction;
    let strategy = store.thresholds.strategy(options);
    if changes.remembered.options != *options {
        changes.remembered.memories.clear();
        changes.remembered.options.clone_from(options);
    }
    let seen = Seen::new(store, &changes, &view).without_failed(store, &changes);
    let mut groups: Vec<(usize, &Group)> = Vec::new();
    for group in &seen.groups {
        let memory: &mut Memory = changes.remembered.memories.entry(group.repair_state).or_default();
        groups.push((strategy.pending(&seen.state(group), memory), group));
    }
    groups.sort_by_key(|(pending, _)| std::cmp::Reverse(*pending));
    for (_, group) in groups {
        let memory: &mut Memory = changes.remembered.memories.entry(group.repair_state).or_default();
        let state = seen.state(group);
        let odd = if happens(Rare::OddCompaction) { any_two(&state) } else { None };
        let Some(choice) = odd.or_else(|| strategy.choose(&state, memory)) else { continue };
        let chosen: Vec<_> = choice.inputs.iter().filter_map(|index| group.sstables.get(*index).cloned()).collect();
        assert_eq!(chosen.len(), choice.inputs.len(), "a strategy chooses from the SSTables that it was shown");
        if !chosen.is_empty() {
            mark(&mut changes, &chosen);
            let item = Item { output: Some(choice.output), ..Item::of(chosen) };
            let store = Arc::clone(store);
            return Some(Start { store, operation: None, kind: choice.kind, work: Work::Chosen, item });
        }
    }
    None
}

/// Two SSTables that no strategy chose; None: there are not two.
fn any_two(state: &State<'_>) -> Option<Choice> {
    let inputs: Vec<usize> = state.free().iter().take(2).map(|candidate| candidate.index).collect();
    (inputs.len() == 2).then_some(Choice { inputs, output: Output::One { level: 0 }, kind: Kind::Compaction })
}

/// Whether a table, or the index whose table it is, was dropped: nothing of it may be marked any
/// more. `_changes` shows that nothing else is being marked: the task that removes the files looks
/// for marks under the same lock, and finds each that was made before.
fn is_dropped(store: &TableStore, _changes: &Changes) -> bool {
    store.dropped.load(Ordering::Acquire)
}

fn mark(changes: &mut Changes, inputs: &[Arc<SSTable>]) {
    for sstable in inputs {
        let is_free = changes.compacting.insert(sstable.descriptor().clone());
        assert!(is_free, "an SSTable is in one compaction: {}", sstable.descriptor().prefix());
    }
}

/// The result of asking for the SSTables of an operation.
pub(crate) enum TakenInputs {
    /// The operation has them now, in parts that are worked on together.
    Items(Vec<Item>),
    /// A truncation is under way, or compactions that a strategy chose were asked to end.
    Wait,
    /// Another operation, which does not give way, has some of the SSTables.
    Refused,
}

/// Marks the SSTables that an operation is for, unless their table was dropped.
pub(crate) fn take_inputs(store: &TableStore, operation: &Operation, compactions: &Compactions) -> TakenInputs {
    let mut changes = store.changes();
    if is_dropped(store, &changes) {
        return TakenInputs::Items(Vec::new());
    }
    let view = store.view();
    if !changes.compacting.is_empty() {
        // validations and builds have no SSTables for themselves: they are in nobody's way
        let has_none = |kind: Kind| matches!(kind, Kind::Validation | Kind::IndexBuild | Kind::ViewBuild);
        let is_in_the_way = |running: &Running| running.table_id == store.id && !has_none(running.kind);
        if compactions.running().iter().any(|running| is_in_the_way(running) && !running.automatic) {
            return TakenInputs::Refused;
        }
        compactions.stop(is_in_the_way);
        return TakenInputs::Wait;
    }
    if !changes.truncations.is_empty() {
        return TakenInputs::Wait;
    }
    let mut chosen: Vec<_> = view.sstables.iter().filter(|sstable| (operation.select)(sstable)).cloned().collect();
    match operation.kind {
        Kind::GarbageCollect => chosen.sort_by_key(|sstable| sstable.statistics().stats.max_timestamp),
        _ => chosen.sort_by_key(|sstable| std::cmp::Reverse(sstable.stored_length())),
    }
    let strategy = store.thresholds.strategy(&view.table.params.compaction);
    let mut items: Vec<Item> = match operation.work {
        Work::Major { split } => {
            let seen = Seen::new(store, &changes, &view);
            let of_group = |group: &Group| {
                let item = |choice: Choice| {
                    let inputs = choice.inputs.iter().filter_map(|index| group.sstables.get(*index).cloned());
                    Item { output: Some(choice.output), ..Item::of(inputs.collect()) }
                };
                strategy.major(&seen.state(group), split).into_iter().map(item).collect::<Vec<_>>()
            };
            seen.groups.iter().flat_map(of_group).collect()
        }
        Work::Named => {
            let named = |sstables: Vec<Arc<SSTable>>| {
                let numbered = sstables.iter().enumerate();
                let seen: Vec<_> = numbered.map(|(at, sstable)| candidate(store, &changes, at, sstable, 0)).collect();
                Item { output: Some(strategy.named_output(&seen)), ..Item::of(sstables) }
            };
            by_repair_state(&chosen).into_values().map(named).collect()
        }
        _ => chosen.into_iter().map(|sstable| Item::of(vec![sstable])).collect(),
    };
    for item in &mut items {
        mark(&mut changes, &item.sstables);
        item.graceless = Arc::clone(&operation.graceless);
        item.kept.clone_from(&operation.kept);
        item.anticompacted.clone_from(&operation.anticompacted);
    }
    if operation.work.takes_left_out() {
        let left_out = store.left_out().into_iter();
        items.extend(left_out.map(|left_out| Item { left_out: Some(left_out), ..Item::default() }));
    }
    TakenInputs::Items(items)
}

/// SSTables that were taken, and SSTables that another operation or compaction has.
type TakenAndBusy = (Vec<Arc<SSTable>>, Vec<Arc<SSTable>>);

/// Takes those of the wanted SSTables that are in the view and free, and gives them and the
/// others. None are taken while a truncation is under way, or if the table was dropped.
pub(crate) fn take_free(store: &TableStore, wanted: impl Fn(&SSTable) -> bool) -> TakenAndBusy {
    let mut changes = store.changes();
    let view = store.view();
    let all: Vec<_> = view.sstables.iter().filter(|sstable| wanted(sstable)).cloned().collect();
    if !changes.truncations.is_empty() || is_dropped(store, &changes) {
        return (Vec::new(), all);
    }
    let (busy, free): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|sstable| changes.compacting.contains(sstable.descriptor()));
    mark(&mut changes, &free);
    (free, busy)
}

/// Gives SSTables back.
pub fn unmark(store: &TableStore, inputs: &[Arc<SSTable>]) {
    let mut changes = store.changes();
    for sstable in inputs {
        let was_marked = changes.compacting.remove(sstable.descriptor());
        assert!(was_marked, "an SSTable is given back once: {}", sstable.descriptor().prefix());
    }
}

/// Notes that an SSTable of the table, one of whose files is `damaged`, cannot be read: no
/// strategy chooses it again. Scrub and restart remove the note. False: no SSTable of the table
/// has the file.
pub(crate) fn suspect(store: &TableStore, damaged: &Path) -> bool {
    let named = damaged.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_damaged = |descriptor: &&Descriptor| {
        damaged.parent() == Some(descriptor.directory.as_path())
            && named.starts_with(&format!("{}-", descriptor.prefix()))
    };
    let mut changes = store.changes();
    let view = store.view();
    let Some(found) = view.sstables.iter().map(|sstable| sstable.descriptor()).find(is_damaged) else { return false };
    if changes.suspect.insert(found.clone()) {
        tracing::warn!(
            table = store.name(),
            sstable = found.prefix(),
            "no compaction chooses an SSTable that cannot be read, until it is scrubbed or the node starts again"
        );
    }
    true
}

/// Notes that a compaction of SSTables that a strategy chose has failed, and not because one of
/// them cannot be read: other SSTables of the table have their turn before they are chosen again.
pub(crate) fn note_failure(store: &TableStore, inputs: &[Arc<SSTable>], error: &StorageError) {
    let pause_max = if is_shortage(error) { SHORTAGE_PAUSE_MAX } else { FAILED_PAUSE_MAX };
    let now = store.env.clock.monotonic_nanos();
    let mut changes = store.changes();
    let view = store.view();
    let is_there = |input: &&Arc<SSTable>| view.sstables.iter().any(|other| other.descriptor() == input.descriptor());
    for input in inputs.iter().filter(is_there) {
        let failures = changes.failed.entry(input.descriptor().clone()).or_default();
        let pause = FAILED_PAUSE_MIN * (1u32 << failures.times.min(FAILED_DOUBLINGS_MAX));
        let nanos = u64::try_from(pause.min(pause_max).as_nanos()).unwrap_or(u64::MAX);
        failures.times = failures.times.saturating_add(1);
        failures.until = now.saturating_add(nanos);
    }
}

/// Whether the error is a shortage, after which the same work may succeed at any moment. The
/// commit log may also be short: a compaction that leaves nothing of its inputs writes a record
/// there.
fn is_shortage(error: &StorageError) -> bool {
    let of_disk = matches!(error, StorageError::NoSpace { .. } | StorageError::NoDescriptors { .. });
    of_disk || matches!(error, StorageError::WritesStopped { .. } | StorageError::Busy)
}
