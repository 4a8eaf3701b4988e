//! `system.size_estimates` and `system.table_estimates`: how many partitions each table has in each
//! range of the ring, and how large they are. Connectors such as Spark's cut their scans by these
//! tables.
//!
//! For each table the ranges count of which this node is the first replica: in the ring of the
//! keyspace (size_estimates, and `primary` of table_estimates), and in the ring of its own data
//! center (`local_primary`).
//!
//! Recorded 30 s after a start and then every 5 minutes, from the statistics of the SSTables: what
//! is only in memtables does not count, and no data is read. The rows of a table are written again
//! only when they have changed, so that a node at rest stays at rest. The rows of dropped tables
//! are removed.
//!
//! Agrees with `org.apache.cassandra.db.SizeEstimatesRecorder`, with one difference: Cassandra
//! looks up in the index which part of an SSTable's bytes lies in a range; here the partitions of
//! an SSTable are taken to be spread evenly between its first and its last token, which a hash
//! makes true enough.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use env::Next;
use ring::Ring;
use ring::primary::Ranges;
use rows::{Cell, ClusteringValues, DeletionTime, Liveness, Mutation, PartitionUpdate, ReadError, Row, Slice};
use schema::{TableKind, TableMetadata};
use sstable::SSTable;
use storage::{Engine, flushed_table};
use types::Token;

use crate::clock::WriteClock;
use crate::node::Node;
use crate::system_rows;

/// Time between the start and the first record.
const FIRST_AFTER: Duration = Duration::from_secs(30);
/// Time between one record and the next.
const PERIOD: Duration = Duration::from_secs(5 * 60);

/// `range_type` of `table_estimates`: ranges of which this node is the primary replica, and those
/// that its tokens cut out of its own data center.
const RANGE_TYPES: [&str; 2] = ["primary", "local_primary"];

/// Partitions in a range, and the mean of their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Estimate {
    partitions: i64,
    mean_bytes: i64,
}

/// The estimates of a table by the clustering behind its name: the range type where there is one,
/// start and end of the range.
type Estimates = BTreeMap<Vec<String>, Estimate>;

impl Node {
    /// Starts the task, unless nothing may be written. The task ends with the node.
    pub(crate) fn start_size_estimates(self: &Arc<Self>) {
        if self.engine.options.read_only {
            return;
        }
        let weak: Weak<Self> = Arc::downgrade(self);
        let mut has_waited = false;
        let step = move || {
            if !std::mem::replace(&mut has_waited, true) {
                return Next::After(FIRST_AFTER);
            }
            let Some(node) = weak.upgrade().filter(|node| !node.engine.is_draining()) else { return Next::Done };
            record(&node.engine, &node.ring(), &node.clock);
            Next::After(PERIOD)
        };
        let wake = self.env.tasks.background("estimates", Box::new(step));
        wake.wake();
        let _ = self.size_estimates.set(wake);
    }
}

/// The ranges of this node for a keyspace, by [`RANGE_TYPES`]; none if the keyspace cannot be
/// placed.
fn ranges(ring: &Ring, keyspace: &str) -> [Ranges; 2] {
    let primary = ring.placement(keyspace).map(|placement| placement.primary_ranges(ring.local_id()));
    [primary.unwrap_or_default(), ring.local_primary_ranges()].map(|ranges| unwrapped(&ranges))
}

/// Ranges in the order of their starts, the one over the end of the ring cut there: the least token
/// stands for both ends.
fn unwrapped(ranges: &[(Token, Token)]) -> Ranges {
    let least = Token(i64::MIN);
    let halves = ranges.iter().flat_map(|(start, end)| match start < end {
        true => vec![(*start, *end)],
        false => vec![(*start, least), (least, *end)],
    });
    let mut unwrapped: Ranges = halves.filter(|(start, end)| start != end).collect();
    unwrapped.sort_unstable();
    unwrapped
}

/// Writes what has changed since the last record.
fn record(engine: &Engine, ring: &Ring, clock: &WriteClock) {
    for (name, types) in [("size_estimates", &[][..]), ("table_estimates", &RANGE_TYPES[..])] {
        let schema = engine.schema();
        let Some(target) = schema.table("system", name) else { continue };
        let written = changes(engine, target, ring, types, clock).map(|mutations| engine.apply(&mutations));
        match written {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, table = name, "estimates cannot be written"),
            Err(error) => tracing::warn!(%error, table = name, "estimates cannot be read"),
        }
    }
}

fn changes(
    engine: &Engine,
    target: &Arc<TableMetadata>,
    ring: &Ring,
    types: &[&str],
    clock: &WriteClock,
) -> Result<Vec<Mutation>, ReadError> {
    let mut old = recorded(engine, target)?;
    let mut mutations = Vec::new();
    for store in engine.tables() {
        let table = store.table();
        let is_counted = matches!(table.kind, TableKind::Regular | TableKind::View)
            && !schema::system::is_local_keyspace(&table.keyspace);
        if !is_counted {
            continue;
        }
        let name = (table.keyspace.clone(), table.name.clone());
        let now = estimates(&store.view().sstables, &ranges(ring, &table.keyspace), types);
        // a table without ranges here has no rows
        if old.remove(&name).unwrap_or_default() != now {
            mutations.push(replacement(engine, target, &name, &now, clock));
        }
    }
    // what is left is of tables that are gone
    let none = Estimates::new();
    mutations.extend(old.keys().map(|name| replacement(engine, target, name, &none, clock)));
    Ok(mutations)
}

/// The estimates of the last record, by keyspace and table.
fn recorded(engine: &Engine, target: &Arc<TableMetadata>) -> Result<BTreeMap<(String, String), Estimates>, ReadError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut recorded: BTreeMap<(String, String), Estimates> = BTreeMap::new();
    for (key, row) in system_rows::read(engine, target, None)? {
        let number = |name: &str| {
            let value = system_rows::value(target, &row, name)?;
            Some(i64::from_be_bytes(value.as_ref().try_into().ok()?))
        };
        let estimate = Estimate {
            partitions: number("partitions_count").unwrap_or(-1),
            mean_bytes: number("mean_partition_size").unwrap_or(-1),
        };
        let mut clustering = row.clustering.iter().map(|value| text(value.as_deref().unwrap_or_default()));
        let table = clustering.next().unwrap_or_default();
        recorded.entry((text(&key.key), table)).or_default().insert(clustering.collect(), estimate);
    }
    Ok(recorded)
}

/// The estimates by `types`; without types those of the primary ranges.
fn estimates(sstables: &[Arc<SSTable>], ranges: &[Ranges; 2], types: &[&str]) -> Estimates {
    let mut estimates = Estimates::new();
    let by_type = types.iter().map(Some).chain(types.is_empty().then_some(None)).zip(ranges);
    for (range_type, (start, end)) in by_type.flat_map(|(of, ranges)| ranges.iter().map(move |range| (of, range))) {
        let bounds = [start.0.to_string(), end.0.to_string()];
        let clustering = range_type.map(|name| (*name).to_owned()).into_iter().chain(bounds).collect();
        estimates.insert(clustering, estimate(sstables, *start, *end));
    }
    estimates
}

/// The estimate for the range `(start, end]`. The least token as an end is behind all tokens.
fn estimate(sstables: &[Arc<SSTable>], start: Token, end: Token) -> Estimate {
    let (mut partitions, mut sizes, mut bytes) = (0.0_f64, 0, 0.0_f64);
    for sstable in sstables {
        let between = flushed_table::partitions_between(sstable, start, end);
        if between == 0.0 {
            continue;
        }
        partitions += between;
        let of_sizes = &sstable.statistics().stats.partition_sizes;
        sizes += of_sizes.count();
        bytes += of_sizes.mean() * of_sizes.count() as f64;
    }
    let mean_bytes = if sizes == 0 { 0 } else { (bytes / sizes as f64) as i64 };
    Estimate { partitions: partitions.round() as i64, mean_bytes }
}

/// Deletes what was recorded of a table and writes its estimates anew.
fn replacement(
    engine: &Engine,
    target: &Arc<TableMetadata>,
    (keyspace, table): &(String, String),
    estimates: &Estimates,
    clock: &WriteClock,
) -> Mutation {
    let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let deleted_at = clock.next_micros();
    let written_at = clock.next_micros();
    let key = system_rows::partition_key(target, &[keyspace.as_bytes()]);
    let mut update = PartitionUpdate::new(Arc::clone(target), key);
    let of_table: ClusteringValues = [Some(text(table))].into_iter().collect();
    let deletion = DeletionTime::new(deleted_at, engine.env.clock.now_seconds());
    update.range_deletions.push((Slice::of_prefix(of_table.clone()), deletion));
    for (clustering, estimate) in estimates {
        let mut values = of_table.clone();
        values.extend(clustering.iter().map(|value| Some(text(value))));
        let mut row = Row::new(values);
        row.liveness = Liveness::new(written_at);
        let columns = [("partitions_count", estimate.partitions), ("mean_partition_size", estimate.mean_bytes)];
        for (name, value) in columns {
            let Some(column) = target.column_by_name(name) else { continue };
            row.add_cell(Cell::live(column.id, written_at, Bytes::copy_from_slice(&value.to_be_bytes())));
        }
        update.add_row(row);
    }
    Mutation::of(update)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use env::sim::{DATA, Sim};
    use ring::{EndpointId, Replication};
    use storage::EngineOptions;

    use super::*;
    use crate::system_rows::SystemRow;
    use crate::testing::SimNode;
    use crate::topology::tests::endpoint;

    const LEAST: Token = Token(i64::MIN);

    /// This node with these tokens, and another one with others.
    fn ring_of(own: &[i64], others: &[i64]) -> Ring {
        let keyspaces = [("system_auth".to_owned(), Ok(Replication::Simple { factor: 2 }))];
        Ring::new(vec![endpoint(1, own), endpoint(2, others)], EndpointId(0)).with_keyspaces(keyspaces)
    }

    #[test]
    fn ranges_are_those_of_this_node() {
        let of = |own: &[i64], others: &[i64]| {
            let [primary, local] = ranges(&ring_of(own, others), "system_auth");
            assert_eq!(primary, local, "one data center");
            primary
        };
        let least = LEAST.0;
        let tokens =
            |pairs: &[(i64, i64)]| pairs.iter().map(|(start, end)| (Token(*start), Token(*end))).collect::<Ranges>();
        assert_eq!(of(&[5], &[]), tokens(&[(least, 5), (5, least)]));
        assert_eq!(of(&[7, -3], &[]), tokens(&[(least, -3), (-3, 7), (7, least)]));
        assert_eq!(of(&[7, -3], &[0]), tokens(&[(least, -3), (0, 7), (7, least)]));
        assert_eq!(of(&[least, 4], &[0]), tokens(&[(least, least), (0, 4), (4, least)])[1..]);
        assert_eq!(ranges(&ring_of(&[5], &[]), "nowhere")[0], []);
    }

    struct Fixture {
        sim: Sim,
        engine: Arc<Engine>,
        clock: Arc<WriteClock>,
        ring: Ring,
    }

    impl Fixture {
        fn new() -> Self {
            let sim = Sim::new(1);
            let engine =
                storage::open(&sim.env(), EngineOptions::with_small_budgets(Path::new(DATA))).expect("a disk").0;
            let clock = Arc::new(WriteClock::after(&engine.env, 0));
            let ring = ring_of(&[-(1 << 62), 0, 1 << 62], &[]);
            Self { sim, engine, clock, ring }
        }

        /// So many roles, in SSTables.
        fn write_roles(&self, from: u32, count: u32) {
            let schema = self.engine.schema();
            let table = schema.table("system_auth", "roles").expect("a built-in table");
            for role in from..from + count {
                let row = SystemRow::new(table, &[role.to_string().as_bytes()], &[], self.clock.next_micros(), None);
                self.engine.apply(&[row.set("can_login", vec![1]).finish()]).expect("written");
            }
            let store = self.engine.table(table.id).expect("open");
            self.sim.block_on(self.engine.flush(&store)).expect("flushed");
        }

        fn of_roles(&self, target: &str) -> Estimates {
            let schema = self.engine.schema();
            let mut recorded =
                recorded(&self.engine, schema.table("system", target).expect("built in")).expect("readable");
            recorded.remove(&("system_auth".to_owned(), "roles".to_owned())).unwrap_or_default()
        }
    }

    #[test]
    fn partitions_are_counted_by_range() {
        let fixture = Fixture::new();
        for from in [0, 400] {
            fixture.write_roles(from, 400);
            record(&fixture.engine, &fixture.ring, &fixture.clock);
        }
        let estimates = fixture.of_roles("size_estimates");
        assert_eq!(estimates.len(), 4);
        let least = i64::MIN.to_string();
        assert!(estimates.contains_key(&vec![least.clone(), (-(1_i64 << 62)).to_string()]));
        assert!(estimates.contains_key(&vec![(1_i64 << 62).to_string(), least]));
        // a quarter of the ring each
        assert!(estimates.values().all(|one| (150..250).contains(&one.partitions)), "{estimates:?}");
        assert!(estimates.values().all(|one| (10..500).contains(&one.mean_bytes)), "{estimates:?}");
        let by_type = fixture.of_roles("table_estimates");
        assert_eq!(by_type.len(), 8);
        for (clustering, estimate) in &by_type {
            assert!(RANGE_TYPES.contains(&clustering[0].as_str()));
            assert_eq!(estimates.get(&clustering[1..]), Some(estimate));
        }
    }

    #[test]
    fn a_node_at_rest_writes_nothing_and_tables_that_are_gone_are_removed() {
        let fixture = Fixture::new();
        fixture.write_roles(0, 10);
        record(&fixture.engine, &fixture.ring, &fixture.clock);
        let position = fixture.engine.log.position();
        record(&fixture.engine, &fixture.ring, &fixture.clock);
        assert_eq!(fixture.engine.log.position(), position);
        let schema = fixture.engine.schema();
        let target = schema.table("system", "size_estimates").expect("built in");
        let gone = ("gone".to_owned(), "t".to_owned());
        let one = [(vec!["1".to_owned(), "2".to_owned()], Estimate { partitions: 1, mean_bytes: 1 })].into();
        let written = replacement(&fixture.engine, target, &gone, &one, &fixture.clock);
        fixture.engine.apply(&[written]).expect("written");
        assert_eq!(recorded(&fixture.engine, target).expect("readable").get(&gone), Some(&one));
        record(&fixture.engine, &fixture.ring, &fixture.clock);
        assert_eq!(recorded(&fixture.engine, target).expect("readable").get(&gone), None);
    }

    #[test]
    fn the_task_records_half_a_minute_after_a_start() {
        let machine = SimNode::new(Duration::from_secs(2));
        machine.sim.block_on(async { machine.node.engine.apply(&[machine.role(1, 10)]) }).expect("written");
        machine.sim.run_until_idle();
        assert_eq!(machine.count("system", "size_estimates"), 0);
        machine.sim.advance(FIRST_AFTER);
        machine.sim.run_until_idle();
        assert!(machine.count("system", "size_estimates") > 4, "five ranges of each table");
    }
}
