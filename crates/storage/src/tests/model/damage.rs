//! SSTables with flipped bits: verify names them, scrub keeps what can be read and says what is
//! lost.
//!
//! Checked: what shows after a scrub was written; partitions that the damage does not touch are
//! whole; what is new is sound; the snapshot has the old files.

use sstable::Component;

use super::*;
use crate::compaction::operation::{Ended, Work};
use crate::strategy::kind::Kind;
use crate::{scrub, snapshot, verify};

const SCRUB: scrub::Options = scrub::Options { skip_corrupted: false, validate: true };

/// A table with one SSTable, of inserts only: what is lost cannot bring anything back.
fn one_sstable(seed: u64) -> (Model, Arc<Engine>) {
    let mut model = Model::new(seed);
    let engine = model.open().expect("a sound disk opens");
    for _ in 0..200 {
        model.clock += 1;
        let (k, c) = (model.dice.below(PARTITIONS as u64) as i32, model.dice.below(CLUSTERINGS as u64) as i32);
        assert!(model.write(&engine, Op::Insert { k, c, v: 7, at: model.clock }));
    }
    model.sim.block_on(engine.flush(&model.store(&engine))).expect("a sound disk flushes");
    (model, engine)
}

fn scrubbed(model: &Model, engine: &Arc<Engine>) -> Ended {
    scrub::snapshot(engine, &model.store(engine)).expect("a snapshot");
    model.operate(engine, Kind::Scrub, Work::Scrub(SCRUB)).expect("scrub goes on behind damage")
}

#[test]
fn a_flipped_bit_is_found_and_scrubbed_away() {
    for seed in 0..20 {
        let (model, engine) = one_sstable(seed);
        let expected = model.content(&engine);
        let store = model.store(&engine);
        let sstable = Arc::clone(&store.view().sstables[0]);
        let path = sstable.descriptor().path(Component::Data);
        let length = engine.env.disk.file_len(&path).expect("it is there");
        assert!(model.sim.disk().flip_bit(&path, model.dice.below(length * 8) as usize));
        let error = model.verify(&engine).expect_err("the digest is wrong");
        assert!(error.to_string().contains(&*path.to_string_lossy()), "{error}");
        let ended = scrubbed(&model, &engine);
        assert!(ended.lines.iter().any(|line| line.contains("lost bytes")), "seed {seed}: {:?}", ended.lines);
        let content = model.content(&engine);
        for (k, partition) in &content {
            assert!(partition.rows.iter().all(|row| expected[k].rows.get(row.0) == Some(row.1)), "seed {seed}");
        }
        assert!(content != expected, "seed {seed}: a chunk is lost");
        let options = verify::Options { extended: true, ..verify::Options::default() };
        model.operate(&engine, Kind::Verify, Work::Verify(options)).expect("what was written is sound");
        let taken = snapshot::list(&engine, &store).expect("a list");
        assert!(taken.iter().any(|snapshot| snapshot.tag.starts_with("pre-scrub-") && snapshot.true_size > 0));
    }
}

/// A sector that holds another one's bytes, or none: verify names the file, and no partition shows
/// rows that were not written.
#[test]
fn misdirected_and_stale_sectors_are_found_and_scrubbed_away() {
    let mut found = 0;
    for seed in 0..20 {
        let (model, engine) = one_sstable(seed);
        let expected = model.content(&engine);
        let sstable = Arc::clone(&model.store(&engine).view().sstables[0]);
        let path = sstable.descriptor().path(Component::Data);
        let content = || engine.env.disk.read_all(&path, 1 << 20).expect("it is there");
        let before = content();
        let sectors = before.len() as u64 / 512;
        if sectors < 2 {
            continue;
        }
        let (from, to) = (model.dice.below(sectors) as usize, model.dice.below(sectors) as usize);
        let done = match seed % 2 {
            0 => model.sim.disk().misdirect(&path, from, to),
            _ => model.sim.disk().make_stale(&path, to),
        };
        assert!(done, "seed {seed}");
        if content() == before {
            continue;
        }
        found += 1;
        let error = model.verify(&engine).expect_err("the digest is wrong");
        assert!(error.to_string().contains(&*path.to_string_lossy()), "{error}");
        scrubbed(&model, &engine);
        for (k, partition) in &model.content(&engine) {
            assert!(partition.rows.iter().all(|row| expected[k].rows.get(row.0) == Some(row.1)), "seed {seed}");
        }
    }
    assert!(found > 5, "{found} files were damaged");
}

#[test]
fn what_is_sound_stays_as_it_is() {
    for seed in 0..5 {
        let (model, engine) = one_sstable(seed);
        let expected = model.content(&engine);
        let ended = scrubbed(&model, &engine);
        assert_eq!(ended.lines, [""; 0], "seed {seed}");
        assert_eq!(model.content(&engine), expected, "seed {seed}");
    }
}
