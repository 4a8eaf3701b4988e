//! Damaged SSTables: with any bit of any component flipped, opening and scanning ends with an error
//! or an answer, never with a panic.

use sstable::{Component, SSTable};

use super::*;
use crate::caches::Caches;

fn scan(sim: &Sim, sstable: &SSTable) {
    let descriptor = sstable.descriptor().clone();
    let cache = Arc::new(Caches::new(&EngineOptions::with_small_budgets(Path::new(DATA))));
    let Ok(damaged) = SSTable::open(&sim.env(), descriptor, sstable.table(), cache) else { return };
    let context = ReadContext::new(ReadMode::Background);
    for (range, reversed) in [(PartitionRange::all(), false), (PartitionRange::Key(key(1)), true)] {
        let slices = Slices::all();
        let (columns, limits, table) = (ColumnFilter::All, DataLimits::NONE, Arc::clone(sstable.table()));
        let command = ReadCommand { table, range, slices, reversed, columns, now: 0, limits, indexes: Vec::new() };
        let Ok(mut stream) = damaged.read(&command, &context) else { continue };
        while let Ok(Some(_)) = rows::PartitionStream::next_partition(&mut stream) {
            while let Ok(Some(_)) = rows::PartitionStream::next_unfiltered(&mut stream) {}
        }
    }
}

fn damage(seed: u64, trials: usize) {
    let sim = Sim::new(seed);
    let dice = sim.dice();
    let columns = REGULARS.into_iter().collect();
    let mut wide =
        Wide { sim, dice, history: History::default(), columns, used: BTreeSet::new(), tables: 1, row_cache: 0 };
    let engine = wide.open();
    for _ in 0..150 {
        wide.write(&engine);
    }
    let store = wide.store(&engine);
    wide.sim.block_on(engine.flush(&store)).expect("a sound disk flushes");
    let sstable = Arc::clone(store.view().sstables.first().expect("there was something to flush"));
    for _ in 0..trials {
        let component = wide.pick(&Component::ALL);
        let path = sstable.descriptor().path(component);
        let Ok(length) = engine.env.disk.file_len(&path) else { continue };
        if length == 0 {
            continue;
        }
        let bits: Vec<usize> = (0..1 + wide.dice.below(3)).map(|_| wide.dice.below(length * 8) as usize).collect();
        bits.iter().for_each(|bit| assert!(wide.sim.disk().flip_bit(&path, *bit)));
        scan(&wide.sim, &sstable);
        bits.iter().for_each(|bit| assert!(wide.sim.disk().flip_bit(&path, *bit)));
    }
}

#[test]
fn damaged_sstables_do_not_panic() {
    each(3, |seed| damage(seed, 500));
}
