//! Drawn data in real engines, and drawn reads of it: an answer says what the engine gives, its
//! digest is that of its data, limits are kept, and nodes that took the same writes in another
//! order, with other flushes, answer with the same digest.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use internode::payload::digest;
use internode::payload::read_request::{ClusteringFilter, Partitions, Rows};
use internode::payload::read_response::data_stream;
use rows::live::{LiveRows, TombstoneLimits};
use rows::selection::{Fetching, SelectedFrom, SelectedStream};
use rows::{
    Bound, Cell, ClusteringValues, ColumnData, ColumnSelection, Columns, DeletionTime, Liveness, Mutation,
    PartitionHead, PartitionRange, PartitionStream, PartitionUpdate, ReadCommand, ReadContext, ReadLimits, ReadMode,
    Row, Slice, Slices, Unfiltered,
};
use schema::table::ColumnSpec;
use schema::{
    ColumnId, ColumnKind, KeyspaceMetadata, Replication, Schema, TableFlags, TableId, TableKind, TableMetadata,
    TableParams,
};
use types::{CqlType, DecoratedKey};

use super::*;
use crate::testing::SimNode;

const KEYS: u32 = 3;
const VALUES: u32 = 4;
const GC_GRACE: u32 = 1_000;
/// The time of the reads, seconds: later than the clock of the machine, so that no compaction
/// leaves out what a read must still send.
const NOW: u32 = 2_100_000_000;
const UPDATES: u32 = 60;

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(end)) as u32
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// `(k int, c int, d int, s int static, z set<int> static, a int, b int, m map<int, int>,
/// PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (c ASC, d DESC)`
fn table() -> Arc<TableMetadata> {
    let column =
        |name: &str, kind, position, ty, reversed| ColumnSpec { name: name.to_owned(), kind, position, ty, reversed };
    let int = || Arc::new(CqlType::Int);
    let specs = vec![
        column("k", ColumnKind::PartitionKey, 0, CqlType::Int, false),
        column("c", ColumnKind::Clustering, 0, CqlType::Int, false),
        column("d", ColumnKind::Clustering, 1, CqlType::Int, true),
        column("s", ColumnKind::Static, 0, CqlType::Int, false),
        column("z", ColumnKind::Static, 0, CqlType::Set { element: int(), frozen: false }, false),
        column("a", ColumnKind::Regular, 0, CqlType::Int, false),
        column("b", ColumnKind::Regular, 0, CqlType::Int, false),
        column("m", ColumnKind::Regular, 0, CqlType::Map { key: int(), value: int(), frozen: false }, false),
    ];
    let params = TableParams { gc_grace_seconds: GC_GRACE as i32, ..TableParams::default() };
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    Arc::new(TableMetadata::new(TableId([9; 16]), "ks", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

fn id(table: &TableMetadata, name: &str) -> ColumnId {
    table.column_by_name(name).expect("a column").id
}

fn int(value: u32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn values(values: &[u32]) -> ClusteringValues {
    values.iter().map(|value| Some(int(*value))).collect()
}

fn key(number: u32) -> DecoratedKey {
    DecoratedKey::new(int(number))
}

/// A range of rows by one or both clustering columns.
fn slice(dice: &mut Dice) -> Slice {
    let bound = |dice: &mut Dice| match dice.below(3) {
        0 => values(&[dice.below(VALUES), dice.below(VALUES)]),
        _ => values(&[dice.below(VALUES)]),
    };
    Slice { start: Bound::start(bound(dice), dice.flip()), end: Bound::end(bound(dice), dice.flip()) }
}

/// A change to one partition. Each timestamp stands for one value and one time, as if one client
/// had written it. Some deletions are older than gc_grace, some cells have expired.
fn drawn(table: &Arc<TableMetadata>, dice: &mut Dice) -> PartitionUpdate {
    let mut update = PartitionUpdate::new(Arc::clone(table), key(dice.below(KEYS)));
    let number = dice.below(50) + 1;
    let timestamp = i64::from(number) * 1_000;
    let deletion = DeletionTime::new(timestamp, NOW - 2 * GC_GRACE + 40 * number);
    let cell = |name: &str| Cell::live(id(table, name), timestamp, int(number));
    let mut row = Row::new(values(&[dice.below(VALUES), dice.below(VALUES)]));
    match dice.below(24) {
        0 => update.deletion = deletion,
        1 => {
            let columns = vec![ColumnData::Simple(cell("s"))];
            update.add_static(Row { columns, ..Row::new(ClusteringValues::new()) });
            return update;
        }
        2 => {
            let mut statics = Row::new(ClusteringValues::new());
            statics.add_complex_cell(table, Cell { value: Bytes::new(), ..cell("z") }.at(int(dice.below(3))));
            update.add_static(statics);
            return update;
        }
        3..7 => {
            let slice = slice(dice);
            if !slice.is_empty(&table.comparator) {
                update.range_deletions.push((slice, deletion));
            }
            return update;
        }
        7 => row.deletion = deletion,
        8 => row.add_cell(Cell::tombstone(id(table, "a"), timestamp, deletion.local_deletion_time)),
        9 => row.add_complex_deletion(id(table, "m"), deletion),
        10..12 => row.add_complex_cell(table, cell("m").at(int(dice.below(3)))),
        12..14 => {
            let end = NOW - 2 * GC_GRACE + 60 * number;
            row.add_cell(Cell { ttl: 300, local_deletion_time: end, ..cell("b") });
        }
        14 => {
            let end = NOW - 2 * GC_GRACE + 60 * number;
            row.liveness = Liveness::expiring(timestamp, 300, end);
            row.add_cell(Cell { ttl: 300, local_deletion_time: end, ..cell("a") });
        }
        15..18 => row.add_cell(cell("b")),
        _ => {
            row.liveness = Liveness::new(timestamp);
            row.add_cell(cell("a"));
        }
    }
    if !row.is_empty() {
        update.add_row(row);
    }
    update
}

/// A node with the table.
fn node(table: &Arc<TableMetadata>) -> SimNode {
    let node = SimNode::new(Duration::from_secs(2));
    let keyspace = KeyspaceMetadata {
        name: "ks".to_owned(),
        durable_writes: true,
        replication: Replication {
            class: "org.apache.cassandra.locator.SimpleStrategy".to_owned(),
            options: [("replication_factor".to_owned(), "1".to_owned())].into(),
        },
        tables: [("t".to_owned(), Arc::clone(table))].into(),
        user_types: BTreeMap::new(),
        function_rows: Vec::new(),
        functions: Default::default(),
        aggregates: Default::default(),
        is_virtual: false,
    };
    let decide = move |schema: &Schema| -> Result<Schema, ()> { Ok(schema.with_keyspace(keyspace)) };
    node.sim.block_on(node.node.change_schema(decide)).expect("stored").expect("not refused");
    node
}

/// Writes updates, and flushes now and then: about once in so many.
fn write(node: &SimNode, table: &TableMetadata, updates: &[PartitionUpdate], flush_every: u32, dice: &mut Dice) {
    let engine = &node.node.engine;
    let store = engine.table(table.id).expect("the table is there");
    // equal questions have equal answers while the SSTables are the same
    store.auto_compaction.set(false);
    for update in updates {
        engine.apply(&[Mutation::of(update.clone())]).expect("written");
        if dice.below(flush_every) == 0 {
            node.sim.block_on(engine.flush(&store)).expect("flushed");
        }
    }
}

fn drawn_columns(table: &TableMetadata, dice: &mut Dice) -> Columns {
    let mask = dice.below(1 << 16);
    Columns::of(table, |id| mask >> id.0 & 1 == 1)
}

/// A read: some columns, rows, limits, in some order.
fn question(table: &Arc<TableMetadata>, dice: &mut Dice) -> Question {
    let range = match dice.below(3) {
        0 => PartitionRange::all(),
        _ => PartitionRange::Key(key(dice.below(KEYS))),
    };
    let mut question = Question::of(&ReadCommand { now: NOW, ..ReadCommand::whole(table, range) });
    let reversed = matches!(question.partitions, Partitions::Key(_)) && dice.flip();
    let rows = match dice.below(4) {
        0 => {
            let slices = (0..=dice.below(2)).map(|_| slice(dice)).collect();
            Rows::Slices(Slices::normalized(slices, &table.comparator))
        }
        1 => {
            let mut names: Vec<_> = (0..=dice.below(2)).map(|_| [dice.below(VALUES), dice.below(VALUES)]).collect();
            names.sort_by_key(|[c, d]| (*c, VALUES - *d));
            names.dedup();
            Rows::Names(names.iter().map(|name| values(name)).collect())
        }
        _ => Rows::Slices(Slices::all()),
    };
    question.clustering = ClusteringFilter { reversed, rows };
    if dice.flip() {
        question.columns.fetching = Fetching::AllColumns;
        question.columns.queried = drawn_columns(table, dice);
    } else if dice.below(4) == 0 {
        let queried = drawn_columns(table, dice);
        let (fetching, fetched) = (Fetching::OnlyQueried, queried.clone());
        question.columns = ColumnSelection { fetching, fetched, queried, elements: Vec::new() };
    }
    let limit = |dice: &mut Dice| if dice.flip() { dice.below(6) + 1 } else { rows::limits::NO_LIMIT };
    question.limits = ReadLimits::of_rows(limit(dice), limit(dice));
    question
}

/// Rows as a query sees them: key, clustering (None: the static row), and the queried live cells.
type Seen = Vec<(Bytes, Option<ClusteringValues>, Vec<ColumnData>)>;

/// The rows that a query sees in a stream, up to its limits.
fn seen(stream: &mut dyn PartitionStream, question: &Question) -> Seen {
    let mut live = LiveRows::new(stream, Arc::clone(&question.table), question.now, TombstoneLimits::NONE);
    let queried = |mut row: Row| {
        row.columns.retain(|data| question.columns.queries(data.column()));
        row.columns
    };
    let counts_statics = question.selects_whole_partitions();
    let rows::limits::Counting::Rows { per_partition, .. } = question.limits.counting else { panic!("rows") };
    let (mut seen, mut counted) = (Vec::new(), 0);
    while counted < question.limits.rows {
        let Some(partition) = live.next_partition().expect("readable") else { break };
        let key = partition.key.key;
        let mut rows_here = 0;
        let statics_at = seen.len();
        while rows_here < per_partition && counted < question.limits.rows {
            let Some(row) = live.next_row().expect("readable") else { break };
            (rows_here, counted) = (rows_here + 1, counted + 1);
            seen.push((key.clone(), Some(row.clustering.clone()), queried(row)));
        }
        if let Some(row) = partition.static_row {
            counted += u32::from(counts_statics && rows_here == 0);
            let cells = queried(row);
            if !cells.is_empty() {
                seen.insert(statics_at, (key, None, cells));
            }
        }
    }
    seen
}

/// The rows that the engine itself gives for the commands of a read.
fn of_engine(node: &SimNode, question: &Question) -> Seen {
    let commands = question.commands();
    let [command] = commands.as_slice() else { panic!("one command") };
    let context = ReadContext::new(ReadMode::Background);
    let stream = node.node.engine.read(command, &context).expect("readable");
    // the engine may give columns that were not asked for
    seen(&mut SelectedStream::new(stream, &question.table, &question.columns, SelectedFrom::Merged), question)
}

fn answer(node: &SimNode, question: &Arc<Question>, wanted: AnswerKind) -> Answer {
    let limits = AnswerLimits { tombstones: TombstoneLimits::NONE, size_max: 1 << 20, buffered_size_max: 0 };
    answer_within(node, question, wanted, limits)
}

fn answer_within(node: &SimNode, question: &Arc<Question>, wanted: AnswerKind, limits: AnswerLimits) -> Answer {
    let answer = node.node.replica.answer(question, wanted, limits, Duration::from_secs(5), None, false);
    node.sim.block_on(answer).expect("answered")
}

/// Everything that a stream gives.
fn items(stream: &mut dyn PartitionStream) -> Vec<(PartitionHead, Vec<Unfiltered>)> {
    let mut items = Vec::new();
    while let Some(head) = stream.next_partition().expect("sound") {
        let mut rows = Vec::new();
        while let Some(unfiltered) = stream.next_unfiltered().expect("sound") {
            rows.push(unfiltered);
        }
        items.push((head, rows));
    }
    items
}

/// The digest of an answer, and whether a static row is in the answer.
fn check(node: &SimNode, question: &Arc<Question>) -> ([u8; digest::SIZE], bool) {
    let both = answer(node, question, AnswerKind::Both);
    let (data, digest) = (both.data.expect("wanted"), both.digest.expect("wanted"));
    assert_eq!(answer(node, question, AnswerKind::Data).data.as_ref(), Some(&data), "{question:?}");
    assert_eq!(answer(node, question, AnswerKind::Digest).digest, Some(digest), "{question:?}");
    assert_eq!(digest::of_data(&data, question), Ok(digest), "the digest is that of the data");
    for buffered_size_max in [1, 100, 300, 1_000, usize::MAX] {
        let limits = AnswerLimits { tombstones: TombstoneLimits::NONE, size_max: 1 << 20, buffered_size_max };
        let own = answer_within(node, question, AnswerKind::Both, limits);
        assert_eq!(own.digest, Some(digest), "{question:?}");
        match own.buffered {
            Some(rows) => {
                assert_eq!(own.data, None);
                let (buffered, encoded) = (items(&mut rows.stream()), items(&mut data_stream(data.clone(), question)));
                assert_eq!(buffered, encoded, "{question:?}");
            }
            None => assert_eq!(own.data.as_ref(), Some(&data), "{question:?}, {buffered_size_max}"),
        }
    }
    let payload = Bytes::from(question.encode());
    let table = Arc::clone(&question.table);
    assert_eq!(Question::decode(&payload, &|_| Some(Arc::clone(&table))).as_ref(), Ok(&**question));
    let given = seen(&mut data_stream(data.clone(), question), question);
    assert_eq!(given, of_engine(node, question), "{question:?}");
    let unlimited = Question { limits: ReadLimits::NONE, ..Question::clone(question) };
    assert_eq!(seen(&mut data_stream(data, question), &unlimited), given, "no row is beyond the limits");
    (digest, given.iter().any(|(_, clustering, _)| clustering.is_none()))
}

#[test]
fn answers_say_what_the_engine_gives() {
    let table = table();
    for seed in 0..4 {
        let dice = &mut Dice(seed);
        let updates: Vec<_> = (0..UPDATES).map(|_| drawn(&table, dice)).collect();
        let mut shuffled = updates.clone();
        (1..shuffled.len()).for_each(|at| shuffled.swap(at, dice.below(at as u32 + 1) as usize));
        let (one, other) = (node(&table), node(&table));
        write(&one, &table, &updates, 20, dice);
        write(&other, &table, &shuffled, 7, dice);
        for _ in 0..40 {
            let question = Arc::new(question(&table, dice));
            let digests = [check(&one, &question), check(&other, &question)];
            // a read of rows by name stops at SSTables that cannot have anything newer, and what is
            // left out of cells that are not queried depends on what is in an SSTable with them.
            // Whether the answer of one partition names static columns without a static row depends
            // on whether one SSTable alone has it, as in Cassandra
            let is_of_slices = matches!(question.clustering.rows, Rows::Slices(_));
            let fetches_statics = !question.columns.fetched.statics.is_empty();
            let is_of_one = matches!(question.partitions, Partitions::Key(_));
            let names_statics = is_of_one && fetches_statics && !digests[0].1;
            if is_of_slices && question.columns.is_whole() && !names_statics {
                assert_eq!(digests[0], digests[1], "seed {seed}: {question:?}");
            }
        }
    }
}

/// A cell that is not queried and older than a liveness that another source has: it stays where
/// sources are merged, and goes where rows are read by name. Cassandra's replicas do the same.
#[test]
fn a_cell_older_than_a_liveness_elsewhere() {
    let table = table();
    let node = node(&table);
    let store = node.node.engine.table(table.id).expect("the table is there");
    for (timestamp, columns) in [(1, &["a", "b"][..]), (2, &["a"])] {
        node.sim.block_on(node.node.engine.flush(&store)).expect("flushed");
        let mut update = PartitionUpdate::new(Arc::clone(&table), key(1));
        let mut row = Row::new(values(&[1, 1]));
        row.liveness = Liveness::new(timestamp);
        columns.iter().for_each(|name| row.add_cell(Cell::live(id(&table, name), timestamp, int(7))));
        update.add_row(row);
        node.node.engine.apply(&[Mutation::of(update)]).expect("written");
    }
    let range = PartitionRange::Key(key(1));
    let mut question = Question::of(&ReadCommand { now: NOW, ..ReadCommand::whole(&table, range) });
    question.columns.fetching = Fetching::AllColumns;
    question.columns.queried = Columns::of(&table, |column| column == id(&table, "a"));
    let columns = |question: &Question| {
        let data = answer(&node, &Arc::new(question.clone()), AnswerKind::Data).data.expect("wanted");
        let mut stream = data_stream(data, question);
        stream.next_partition().expect("readable").expect("one partition");
        match stream.next_unfiltered().expect("readable") {
            Some(Unfiltered::Row(row)) => row.columns.iter().map(ColumnData::column).collect::<Vec<_>>(),
            other => panic!("a row, not {other:?}"),
        }
    };
    assert_eq!(columns(&question), [id(&table, "a"), id(&table, "b")]);
    question.clustering.rows = Rows::Names(vec![values(&[1, 1])]);
    assert_eq!(columns(&question), [id(&table, "a")]);
}
