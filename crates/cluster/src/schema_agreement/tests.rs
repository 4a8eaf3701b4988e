//! Several nodes of one seed change the schema, on either side of cut networks and while one of
//! them is away. In the end all have one version, and nothing that was answered is lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use env::Random;
use env::sim::{ENOSPC, Fault, Op};
use schema::system_schema::{SchemaRow, rows_of};
use schema::{KeyspaceMetadata, Schema, TableId, TableMetadata};

use crate::schema_agreement::waiting::AGREEMENT_WAIT;
use crate::testing::SimRing;

/// A change that was missed is asked for after a minute; then the others ask for what that made.
const CONVERGENCE_MAX: Duration = Duration::from_secs(300);

/// A change of the schema, as a function.
type Change = Box<dyn Fn(&Schema) -> Option<Schema> + Send>;

/// A keyspace with no tables, or the present one with another table.
fn create(keyspace: String, table: Option<u8>) -> Change {
    Box::new(move |schema| {
        let like = schema.keyspaces["system_traces"].as_ref();
        let present = schema.keyspaces.get(&keyspace).map(Arc::as_ref);
        let mut after = present.cloned().unwrap_or_else(|| {
            let mut new = KeyspaceMetadata { name: keyspace.clone(), ..like.clone() };
            new.tables.clear();
            new
        });
        if let Some(number) = table {
            let (events, name) = (&like.tables["events"], format!("t{number}"));
            let (kind, flags, params) = (events.kind, events.flags, events.params.clone());
            let (id, specs) = (TableId([number; 16]), events.specs());
            let table = TableMetadata::new(id, &keyspace, &name, kind, flags, params, specs, Default::default(), None);
            after.tables.insert(name, Arc::new(table));
        }
        (present != Some(&after)).then(|| schema.with_keyspace(after))
    })
}

fn comment(keyspace: String, table: String, text: String) -> Change {
    Box::new(move |schema| {
        let mut after = schema.keyspaces.get(&keyspace)?.as_ref().clone();
        let mut changed = TableMetadata::clone(after.tables.get(&table)?);
        changed.params.comment.clone_from(&text);
        after.tables.insert(table.clone(), Arc::new(changed));
        Some(schema.with_keyspace(after))
    })
}

fn drop_table(keyspace: String, table: String) -> Change {
    Box::new(move |schema| {
        let mut after = schema.keyspaces.get(&keyspace)?.as_ref().clone();
        after.tables.remove(&table)?;
        Some(schema.with_keyspace(after))
    })
}

impl SimRing {
    /// Changes the schema through a node. False: there is nothing to change.
    fn change(&self, machine: usize, change: Change) -> bool {
        let decide = move |schema: &Schema| change(schema).ok_or(());
        self.world.block_on(self.node(machine).change_schema(decide)).expect("stored").is_ok()
    }

    fn versions(&self) -> BTreeSet<[u8; 16]> {
        self.living().into_iter().map(|machine| self.node(machine).schema().version).collect()
    }

    fn converge(&self) {
        let agreed = self.world.run_until(CONVERGENCE_MAX, || self.versions().len() == 1);
        assert!(agreed, "seed {}: one version", self.world.seed());
        let rows: Vec<Vec<SchemaRow>> = self.living().into_iter().map(|machine| self.schema_rows(machine)).collect();
        assert!(rows.windows(2).all(|pair| pair[0] == pair[1]), "seed {}: one schema in force", self.world.seed());
    }

    fn schema_rows(&self, machine: usize) -> Vec<SchemaRow> {
        let schema = self.node(machine).schema();
        schema
            .keyspaces
            .values()
            .filter(|keyspace| !keyspace.is_virtual)
            .flat_map(|keyspace| rows_of(keyspace))
            .collect()
    }
}

#[test]
fn a_change_is_everywhere_when_its_wait_ends() {
    let mut ring = SimRing::new(3, &["dc1", "dc1", "dc1"]);
    assert_eq!(ring.versions().len(), 1, "new nodes have one schema");
    assert!(ring.change(0, create("ks".to_owned(), Some(1))));
    let lacking = ring.world.block_on(ring.node(0).wait_for_schema_agreement(AGREEMENT_WAIT));
    assert_eq!(lacking, []);
    ring.converge();
    assert!(ring.node(2).schema().table("ks", "t1").is_some());
    // who is down is not waited for, and has it after its start
    ring.kill(2);
    ring.agree();
    assert!(ring.change(1, create("ks".to_owned(), Some(2))));
    assert!(ring.change(0, drop_table("ks".to_owned(), "t1".to_owned())));
    let lacking = ring.world.block_on(ring.node(1).wait_for_schema_agreement(AGREEMENT_WAIT));
    assert_eq!(lacking, []);
    ring.start(2);
    ring.agree();
    ring.converge();
    assert_eq!(ring.node(2).schema().keyspaces["ks"].tables.keys().collect::<Vec<_>>(), ["t2"]);
}

/// A client that goes away while its change is under way stops nothing: the ring has the keyspace,
/// the other node has the tables, and of a table that is dropped the files go.
#[test]
fn a_change_is_concluded_without_its_client() {
    let mut ring = SimRing::new(6, &["dc1", "dc1"]);
    ring.world.disk(0).set_sync_delay(Duration::from_millis(20));
    // before the change is in force, and before it is durable
    let give_up = |ring: &SimRing, patience: u64, change: Change| {
        let node = Arc::clone(ring.node(0));
        let decide = move |schema: &Schema| change(schema).ok_or(());
        let asked = node.change_schema(decide);
        let given_up = ring.world.block_on(node.env.timeout(Duration::from_millis(patience), asked));
        assert!(given_up.is_err(), "nothing is durable so soon");
        ring.world.run_for(Duration::from_secs(5));
    };
    let versions = |ring: &SimRing| [0, 1].map(|machine| ring.node(machine).schema().version);
    let before = versions(&ring);
    give_up(&ring, 0, create("ks".to_owned(), Some(1)));
    assert!(ring.node(0).ring().placement("ks").is_some());
    assert!(ring.node(1).schema().table("ks", "t1").is_some(), "it was told");
    assert!(versions(&ring)[0] == versions(&ring)[1] && versions(&ring) != before);
    let store = ring.node(0).engine.table_by_name("ks", "t1").expect("open");
    give_up(&ring, 10, drop_table("ks".to_owned(), "t1".to_owned()));
    assert!(ring.node(1).schema().table("ks", "t1").is_none(), "it was told");
    assert_eq!(ring.node(0).engine.dropper.pending(), 0);
    assert!(store.dropped.load(std::sync::atomic::Ordering::Relaxed), "its memory and log are free");
    drop(store);
    ring.kill(0);
    ring.start(0);
    ring.converge();
}

/// The section of the log that has a DROP meets a full disk. When there is room again the ring
/// follows the change, and so do the files of the table.
#[test]
fn a_change_is_concluded_after_a_shortage_of_the_log() {
    let ring = SimRing::new(7, &["dc1", "dc1"]);
    assert!(ring.change(0, create("ks".to_owned(), Some(1))));
    ring.converge();
    let store = ring.node(0).engine.table_by_name("ks", "t1").expect("open");
    let full = Fault { times: u64::MAX, errno: ENOSPC, ..Fault::next(Op::Write, "CommitLog") };
    ring.world.disk(0).inject(full);
    let node = Arc::clone(ring.node(0));
    let change = drop_table("ks".to_owned(), "t1".to_owned());
    let asked = node.change_schema(move |schema: &Schema| change(schema).ok_or(()));
    let given_up = ring.world.block_on(node.env.timeout(Duration::from_secs(5), asked));
    assert!(given_up.is_err(), "it cannot be durable");
    assert!(ring.node(0).schema().table("ks", "t1").is_none(), "it is in force");
    ring.world.disk(0).heal();
    ring.world.run_for(Duration::from_secs(20));
    assert!(ring.node(1).schema().table("ks", "t1").is_none(), "it was told");
    assert_eq!(ring.versions().len(), 1);
    assert_eq!(ring.node(0).engine.dropper.pending(), 0);
    assert!(store.dropped.load(std::sync::atomic::Ordering::Relaxed), "its memory and log are free");
}

/// A table is made again with its id while another node cannot remove the files of the dropped one:
/// that node follows soon after it can, and not when it would ask for a push that was lost.
#[test]
fn a_table_made_again_waits_for_its_files_alone() {
    let ring = SimRing::new(8, &["dc1", "dc1"]);
    assert!(ring.change(0, create("ks".to_owned(), Some(1))));
    ring.converge();
    // a node that has just joined asks at once
    ring.world.run_for(Duration::from_secs(70));
    let refused = Fault { times: 2, ..Fault::next(Op::List, "t1-01010101") };
    ring.world.disk(1).inject(refused);
    assert!(ring.change(0, drop_table("ks".to_owned(), "t1".to_owned())));
    ring.world.run_for(Duration::from_secs(1));
    assert_eq!(ring.node(1).engine.dropper.pending(), 1, "the files are there");
    assert!(ring.change(0, create("ks".to_owned(), Some(1))));
    let has_it = || ring.node(1).schema().table("ks", "t1").is_some();
    assert!(ring.world.run_until(Duration::from_secs(30), has_it));
    assert_eq!(ring.versions().len(), 1);
}

/// The other node is up, but nothing reaches it any more: the wait ends, and names it.
#[test]
fn who_does_not_have_a_change_is_named() {
    let ring = SimRing::new(4, &["dc1", "dc1"]);
    ring.world.network().block(0, 1);
    assert!(ring.change(0, create("ks".to_owned(), None)));
    let lacking = ring.world.block_on(ring.node(0).wait_for_schema_agreement(Duration::from_secs(3)));
    assert_eq!(lacking, [ring.address(1)]);
    ring.world.network().heal();
    ring.converge();
}

/// One node drops a table while another, which it does not reach, alters it: what is left of both
/// is a table without columns. All agree on that, and start with it.
#[test]
fn a_drop_beside_an_alter_stops_nobody() {
    let mut ring = SimRing::new(5, &["dc1", "dc1"]);
    let names = || ("ks".to_owned(), "t1".to_owned());
    assert!(ring.change(0, create("ks".to_owned(), Some(1))));
    assert!(ring.change(0, create("ks".to_owned(), Some(2))));
    ring.converge();
    ring.world.network().block(0, 1);
    ring.world.network().block(1, 0);
    assert!(ring.change(0, drop_table(names().0, names().1)));
    ring.world.run_for(Duration::from_millis(5));
    assert!(ring.change(1, comment(names().0, names().1, "later".to_owned())));
    assert_eq!(ring.versions().len(), 2);
    ring.world.network().heal();
    assert!(ring.world.run_until(CONVERGENCE_MAX, || ring.versions().len() == 1));
    ring.world.run_for(Duration::from_secs(1));
    for machine in [1, 0] {
        ring.kill(machine);
        ring.start(machine);
        let schema = ring.node(machine).schema();
        assert_eq!(schema.keyspaces["ks"].tables.keys().collect::<Vec<_>>(), ["t2"]);
    }
    ring.agree();
    ring.converge();
    // and the name can be used again
    assert!(ring.change(1, create("ks".to_owned(), Some(1))));
    ring.converge();
    assert!(ring.node(0).schema().table("ks", "t1").is_some_and(|table| table.columns_in_select_order().len() > 1));
}

#[test]
fn schemas_agree_after_bad_days() {
    for seed in 1..=2 {
        let mut ring = SimRing::new(seed, &["dc1", "dc1", "dc2"]);
        let dice = ring.world.dice();
        // (keyspace, table) that were created and that nobody has dropped
        let mut kept: BTreeSet<(String, u8)> = BTreeSet::new();
        for number in 1..=24_u8 {
            match dice.below(8) {
                0 => ring.world.network().block(dice.below(3) as usize, dice.below(3) as usize),
                1 => ring.world.network().heal(),
                2 if ring.living().len() == 3 => ring.kill(1 + dice.below(2) as usize),
                3 => {
                    ring.world.network().heal();
                    (0..3)
                        .filter(|machine| !ring.living().contains(machine))
                        .collect::<Vec<_>>()
                        .into_iter()
                        .for_each(|machine| ring.start(machine));
                }
                _ => {}
            }
            ring.world.run_for(Duration::from_millis(dice.below(20_000)));
            let living = ring.living();
            let through = living[dice.below(living.len() as u64) as usize];
            let keyspace = format!("ks{}", dice.below(2));
            let known: Vec<String> = ring
                .node(through)
                .schema()
                .keyspace(&keyspace)
                .map_or_else(Vec::new, |keyspace| keyspace.tables.keys().cloned().collect());
            let table = known.get(dice.below(known.len().max(1) as u64) as usize).cloned();
            match (dice.below(4), table) {
                // one node that drops what another alters leaves a table without columns: not here
                (0, Some(table)) if keyspace == "ks0" => {
                    ring.change(through, comment(keyspace, table, format!("by {number}")));
                }
                (1, Some(table)) if keyspace == "ks1" => {
                    kept.remove(&(keyspace.clone(), table[1..].parse().expect("a number")));
                    ring.change(through, drop_table(keyspace, table));
                }
                _ => {
                    assert!(ring.change(through, create(keyspace.clone(), Some(number))));
                    kept.insert((keyspace, number));
                }
            }
        }
        ring.world.network().heal();
        for machine in 0..3 {
            if !ring.living().contains(&machine) {
                ring.start(machine);
            }
        }
        ring.agree();
        ring.converge();
        for (keyspace, number) in kept {
            let table = format!("t{number}");
            assert!(
                ring.node(0).schema().table(&keyspace, &table).is_some(),
                "seed {seed}: {keyspace}.{table} is lost"
            );
        }
        // a restart reads the same from the disk, once the log has it
        ring.world.run_for(Duration::from_secs(1));
        let before = ring.versions();
        ring.kill(2);
        ring.start(2);
        assert_eq!(BTreeSet::from([ring.node(2).schema().version]), before, "seed {seed}");
    }
}

/// Each node says its own version; one that is down, or is cut off and not known to be down, says
/// none.
#[test]
fn each_node_tells_its_version() {
    let mut ring = SimRing::new(63, &["dc1", "dc1", "dc1", "dc1"]);
    let told = |ring: &SimRing| {
        let node = Arc::clone(ring.node(0));
        ring.world.block_on(async move { node.schema_versions().await })
    };
    let version = ring.node(0).schema().version;
    assert_eq!(told(&ring), (0..4).map(|machine| (ring.address(machine), Some(version))).collect::<Vec<_>>());
    ring.kill(1);
    ring.agree();
    ring.world.network().partition(&[2]);
    let expected = [Some(version), None, None, Some(version)];
    assert_eq!(told(&ring), (0..4).map(|machine| ring.address(machine)).zip(expected).collect::<Vec<_>>());
}

/// A node that is new in its ring tells that it is a member after it has told the ring's schema as
/// its own.
#[test]
fn a_new_node_has_the_schema_before_it_is_a_member() {
    let mut ring = SimRing::begun(62, &["dc1", "dc1", "dc1"], 2);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    ring.start(2);
    let node = ring.node(2);
    assert!(node.schema().keyspaces.contains_key("ks"));
    let versions = node.membership().expect("it has joined").with_gossip(|gossip| {
        use internode::payload::gossip::ApplicationState::{Schema, StatusWithPort};
        let told = &gossip.local.state().values;
        [Schema, StatusWithPort].map(|of| told.iter().find(|(name, _)| *name == of).map(|(_, value)| value.version))
    });
    assert!(versions[0].is_some() && versions[0] < versions[1], "{versions:?}");
}

/// A schema with a type that this node does not know is not taken over: not in part, and not at the
/// next start either.
#[test]
fn a_type_of_the_future_changes_nothing() {
    let mut ring = SimRing::new(72, &["dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    let before = ring.schema_rows(1);
    let rows = storage::schema_change::all_rows(&ring.node(0).engine).expect("readable");
    let int = bytes::Bytes::from_static(b"int");
    let mut changed = 0;
    let rows: Vec<rows::Mutation> = rows
        .into_iter()
        .map(|mut mutation| {
            for update in mutation.updates.iter_mut().filter(|update| update.table.name == "columns") {
                for cell in update.rows.iter_mut().flat_map(|row| &mut row.columns).filter_map(|data| match data {
                    rows::ColumnData::Simple(cell) if cell.value == int => Some(cell),
                    _ => None,
                }) {
                    (cell.value, cell.timestamp) = (bytes::Bytes::from_static(b"hologram"), cell.timestamp + 1);
                    changed += 1;
                }
            }
            mutation
        })
        .collect();
    assert!(changed > 0, "columns of the type int are there");
    ring.node(0).push_schema(&rows);
    ring.world.run_until(Duration::from_secs(5), || false);
    assert!(ring.schema_rows(1) == before, "the schema in force is as it was");
    ring.kill(1);
    ring.start(1);
    assert!(ring.schema_rows(1) == before, "also behind a start");
    ring.write(1, vec![ring.row("ks", 1, 1, 7, 10)], types::Consistency::One).expect("it serves");
    assert_eq!(ring.stored(1, "ks", 1), [(1, 7)]);
}
