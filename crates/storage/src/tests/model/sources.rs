//! SSTables that come from elsewhere: those of a second table without log, taken aside in
//! snapshots, imported or put into the directory.
//!
//! Checked: what was imported shows and stays; what was not is still where it was, and can be
//! imported later; importing twice, and writing SSTables again, changes no answer.

use env::Disk;
use sstable::{Component, Descriptor, SSTableId};

use super::*;
use crate::compaction::operation::{Ended, Operation, Work};
use crate::strategy::kind::Kind;
use crate::table::TableStore;
use crate::{files, import, snapshot, verify};

/// The table that SSTables come from.
const ELSEWHERE: TableId = TableId([8; 16]);

/// SSTables outside of the table, and the writes that are in them.
#[derive(Clone, Debug)]
pub struct Source {
    pub directory: PathBuf,
    pub ops: Vec<Op>,
}

pub fn keyspace(seed: u64) -> KeyspaceMetadata {
    let tables = BTreeMap::from([("t".to_owned(), table_of(ELSEWHERE, "elsewhere", seed))]);
    KeyspaceMetadata { name: "elsewhere".into(), durable_writes: false, tables, ..super::keyspace(seed) }
}

pub fn options(directory: PathBuf, copy: bool) -> import::Options {
    let (reset_level, clear_repaired, verify, extended_verify) = (true, true, true, true);
    let (directories, require_indexes) = (vec![directory], false);
    import::Options { directories, reset_level, clear_repaired, verify, extended_verify, copy, require_indexes }
}

impl Model {
    pub fn store(&self, engine: &Engine) -> Arc<TableStore> {
        engine.table_by_name("model", "t").expect("the table is open")
    }

    /// Makes SSTables, on a sound disk.
    pub fn prepare_source(&mut self, engine: &Arc<Engine>) {
        let store = engine.table(ELSEWHERE).expect("the table is open");
        let ops: Vec<Op> = (0..1 + self.dice.below(20)).map(|_| self.random_op()).collect();
        let half = self.dice.below(ops.len() as u64 + 1) as usize;
        for part in [&ops[..half], &ops[half..]] {
            for op in part {
                let mutation = self.mutation(&store.table(), op, engine.env.clock.now_seconds());
                engine.apply(&[mutation]).expect("a sound disk takes writes");
            }
            self.sim.block_on(engine.flush(&store)).expect("a sound disk flushes");
        }
        self.tags += 1;
        let directory = snapshot::take(engine, &store, &format!("s{}", self.tags)).expect("a sound disk links");
        files::remove(engine, &store, |_, _| true).expect("a sound disk removes");
        self.sources.push(Source { directory, ops });
    }

    pub fn pick_source(&mut self) -> Option<Source> {
        let count = self.sources.len() as u64;
        (count > 0).then(|| self.sources[self.dice.below(count) as usize].clone())
    }

    /// Notes that an import's rows are in the table.
    pub fn imported(&mut self, source: &Source, copied: bool) {
        self.histories.iter_mut().for_each(|history| history.extend(source.ops.iter().cloned()));
        if !copied {
            self.sources.retain(|other| other.directory != source.directory);
        }
    }

    pub fn import(&mut self, engine: &Arc<Engine>) {
        let Some(source) = self.pick_source() else { return };
        let copy = self.dice.chance(30);
        let store = self.store(engine);
        let failed = import::import(engine, &store, &options(source.directory.clone(), copy), None);
        assert_eq!(failed, Ok(Vec::new()), "seed {}", self.sim.seed());
        assert_eq!(data_files(engine.env.disk.as_ref(), &source.directory).is_empty(), !copy);
        self.imported(&source, copy);
    }

    /// Puts files into the table's directory, under numbers that may be the next ones.
    pub fn refresh(&mut self, engine: &Arc<Engine>) {
        let Some(source) = self.pick_source() else { return };
        let (store, disk) = (self.store(engine), engine.env.disk.as_ref());
        disk.create_dir_durable(&store.directory).expect("a sound disk");
        for file in data_files(disk, &source.directory) {
            let there = |descriptor: &Descriptor| Component::ALL.iter().any(|one| disk.exists(&descriptor.path(*one)));
            let named = |number| Descriptor::new(&store.directory, file.version, SSTableId::Sequence(number));
            let next = store.next_sequence() + self.dice.below(3);
            let target = (next..).map(named).find(|target| !there(target)).expect("numbers do not end");
            for component in Component::ALL.into_iter().filter(|component| disk.exists(&file.path(*component))) {
                disk.hard_link(&file.path(component), &target.path(component)).expect("a sound disk links");
            }
        }
        disk.sync_dir(&store.directory).expect("a sound disk");
        self.finish_refresh(engine);
        self.imported(&source, true);
    }

    fn finish_refresh(&mut self, engine: &Arc<Engine>) {
        import::refresh(engine, &self.store(engine))
            .unwrap_or_else(|error| panic!("seed {}: {error}", self.sim.seed()));
    }

    pub fn operate(&self, engine: &Arc<Engine>, kind: Kind, work: Work) -> Result<Ended, StorageError> {
        let operation = Operation::new(kind, work, self.dice.below(3) as usize);
        self.sim.block_on(engine.operate(&self.store(engine), operation))
    }

    pub fn rewrite(&self, engine: &Arc<Engine>) -> Result<(), StorageError> {
        self.operate(engine, Kind::Upgrade, Work::Rewrite).map(drop)
    }

    pub fn verify(&self, engine: &Arc<Engine>) -> Result<(), StorageError> {
        let options =
            verify::Options { extended: self.dice.chance(50), check_version: true, ..verify::Options::default() };
        self.operate(engine, Kind::Verify, Work::Verify(options)).map(drop)
    }
}

fn data_files(disk: &dyn Disk, directory: &std::path::Path) -> Vec<Descriptor> {
    let entries = disk.list_dir(directory).expect("a sound disk lists");
    let parsed = entries.iter().filter_map(|entry| Descriptor::parse(directory, &entry.name));
    parsed.filter(|(_, component)| *component == Some(Component::Data)).map(|(descriptor, _)| descriptor).collect()
}
