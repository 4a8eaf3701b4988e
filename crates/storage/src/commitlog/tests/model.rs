//! Random histories over many lives, against a list. Every record that was acknowledged as durable
//! and not flushed is replayed after any crash, in order; nothing is replayed that was not
//! appended.
//!
//! `HELENUS_SEEDS=first..end cargo test -p storage commitlog` runs other seeds than the everyday
//! ones.

use super::*;

struct Written {
    position: LogPosition,
    record: Vec<u8>,
    keys: Vec<DirtyKey>,
    /// Acknowledged as durable, or survived a power cut.
    durable: bool,
    flushed: bool,
}

struct Model {
    sim: Sim,
    dice: SimRandom,
    options: Options,
    written: Vec<Written>,
    appended: u64,
}

impl Model {
    fn new(seed: u64, options: Options) -> Self {
        let sim = Sim::new(seed);
        let dice = sim.dice();
        let sync = match dice.below(4) {
            0 => SyncMode::Group(Duration::from_millis(2)),
            1 => SyncMode::Periodic(Duration::from_millis(500)),
            _ => SyncMode::Batch,
        };
        let class = ["LZ4Compressor", "ZstdCompressor", "DeflateCompressor"].into_iter().nth(dice.below(6) as usize);
        let compression = class.map(|class| Compression::new(class, &BTreeMap::new()).expect("known"));
        Model { sim, dice, options: Options { sync, compression, ..options }, written: Vec::new(), appended: 0 }
    }

    fn is_periodic(&self) -> bool {
        matches!(self.options.sync, SyncMode::Periodic(_))
    }

    /// Opens the log, checks what it replays, and claims it for its memtables. `None` when the disk
    /// failed.
    fn open(&mut self, is_after_power_cut: bool) -> Option<CommitLog> {
        let is_sound = |error: &LogError| {
            let is_of_the_disk =
                matches!(error, LogError::Io { .. } | LogError::NoSpace { .. } | LogError::NoDescriptors { .. });
            assert!(is_of_the_disk, "seed {}: {error}", self.sim.seed());
        };
        let opened = CommitLog::open(&self.sim.env(), &directory(), self.options.clone());
        let (log, replay) = opened.inspect_err(is_sound).ok()?;
        let replay: Vec<_> = replay.collect::<Result<_, _>>().inspect_err(is_sound).ok()?;
        let mut written = self.written.iter_mut();
        let mut kept = Vec::new();
        for (position, record) in replay {
            let known = loop {
                let known = written.next().unwrap_or_else(|| panic!("seed {}: invented {position:?}", self.sim.seed()));
                if known.position == position {
                    break known;
                }
                assert!(!known.durable || known.flushed, "seed {}: lost {:?}", self.sim.seed(), known.position);
            };
            assert_eq!(known.record, record, "seed {}: {position:?}", self.sim.seed());
            known.durable |= is_after_power_cut;
            let keys = if known.flushed { Vec::new() } else { known.keys.clone() };
            log.mark_replayed(position, &keys);
            kept.push(position);
        }
        let lost = written.find(|known| known.durable && !known.flushed);
        assert!(lost.is_none(), "seed {}: lost {:?}", self.sim.seed(), lost.map(|known| known.position));
        self.written.retain(|known| kept.binary_search(&known.position).is_ok());
        log.finish_replay().expect("settled");
        Some(log)
    }

    fn live(&mut self, log: &CommitLog) {
        for _ in 0..self.dice.below(60) {
            match self.dice.below(10) {
                0..=3 => self.append(log),
                4 => self.sync(log),
                5 => self.flush(log),
                6 => self.sim.advance(Duration::from_millis(self.dice.below(300))),
                _ => drop(self.sim.step()),
            }
        }
    }

    fn append(&mut self, log: &CommitLog) {
        let count = if self.dice.chance(80) { 1 } else { self.dice.below(4) + 1 };
        let size = |dice: &SimRandom| {
            10 + usize::try_from(dice.below(if dice.chance(10) { 1900 } else { 100 })).expect("small")
        };
        let records: Vec<Vec<u8>> = (0..count).map(|number| record(self.appended + number, size(&self.dice))).collect();
        let keys = vec![key(u8::try_from(self.dice.below(4)).expect("small"))];
        let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        let Ok(last) = log.append_group(&slices, &keys) else {
            return;
        };
        self.appended += count;
        let mut end = last.offset;
        let at = self.written.len();
        for record in records.into_iter().rev() {
            let position = LogPosition { segment: last.segment, offset: end };
            end -= u32::try_from(record.len()).expect("small") + 12;
            self.written.insert(at, Written { position, record, keys: keys.clone(), durable: false, flushed: false });
        }
    }

    fn sync(&mut self, log: &CommitLog) {
        let Some(last) = self.written.last().map(|known| known.position) else {
            return;
        };
        let is_forced = self.is_periodic() || self.dice.chance(20);
        let wait = if is_forced { log.sync() } else { log.wait_durable(last) };
        if self.sim.block_on(wait).is_ok() {
            self.written.iter_mut().for_each(|known| known.durable = true);
        }
    }

    fn flush(&mut self, log: &CommitLog) {
        let key = key(u8::try_from(self.dice.below(4)).expect("small"));
        log.mark_flushed(key.0, key.1, log.position());
        self.written.iter_mut().filter(|known| known.keys == [key]).for_each(|known| known.flushed = true);
    }

    fn run(mut self, lives: u64) -> (u64, u64) {
        let mut after_power_cut = false;
        for _ in 0..lives {
            if self.dice.chance(50) {
                self.sim.disk().power_cut_after(self.dice.below(80));
            }
            if let Some(log) = self.open(after_power_cut) {
                self.live(&log);
            }
            // After a cut in the middle of a step the disk is already dead.
            after_power_cut = self.dice.chance(70);
            if after_power_cut { self.sim.power_cut() } else { self.sim.kill() }
        }
        self.sim.disk().heal();
        self.open(after_power_cut).expect("the disk is sound");
        self.sim.trace()
    }
}

/// The everyday seeds, or those asked for.
fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("HELENUS_SEEDS").ok();
    let range = asked.as_deref().and_then(|range| range.split_once(".."));
    match range.map(|(first, end)| (first.parse(), end.parse())) {
        Some((Ok(first), Ok(end))) => first..end,
        _ => 0..500,
    }
}

#[test]
fn acknowledged_records_survive_crashes() {
    for seed in seeds() {
        Model::new(seed, small()).run(6);
    }
}

#[test]
fn acknowledged_records_survive_disk_errors() {
    for seed in seeds() {
        let model = Model::new(seed, small());
        let op = [Op::Write, Op::Sync, Op::Create, Op::Rename, Op::SyncDir, Op::SetLen, Op::Remove, Op::Open];
        let op = op[usize::try_from(model.dice.below(8)).expect("small")];
        let errno = if model.dice.chance(50) { EIO } else { ENOSPC };
        let times = model.dice.below(3) + 1;
        model.sim.disk().inject(Fault { op, path: String::new(), skip: model.dice.below(60), times, errno });
        model.run(5);
    }
}

#[test]
fn equal_seeds_write_equal_logs() {
    let run = |seed| Model::new(seed, small()).run(3);
    assert_eq!((0..20).map(run).collect::<Vec<_>>(), (0..20).map(run).collect::<Vec<_>>());
}
