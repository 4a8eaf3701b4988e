//! Change data capture: which segments stay where their consumer finds them, with which index, and
//! what happens without room.

use super::super::{format, replay};
use super::*;

fn raw() -> PathBuf {
    Path::new(DATA).join("cdc_raw")
}

fn capturing(total_space: u64, block_writes: bool) -> Options {
    let check_interval = Duration::from_millis(250);
    let capture = CaptureOptions { directory: raw(), total_space, check_interval, block_writes };
    Options { capture: Some(capture), ..small() }
}

fn append(log: &CommitLog, record: &[u8], is_captured: bool) -> Result<LogPosition, LogError> {
    let mut entries = Entries::default();
    entries.push(|out| out.extend_from_slice(record));
    Ok(log.append_entries(&mut entries, &[key(1)], is_captured)?.last)
}

fn write(sim: &Sim, log: &CommitLog, number: u64, len: usize, is_captured: bool) -> Result<LogPosition, LogError> {
    let record = record(number, len);
    let position = append(log, &record, is_captured)?;
    sim.block_on(log.wait_durable(position))?;
    Ok(position)
}

fn names(sim: &Sim) -> Vec<String> {
    sim.env().disk.list_dir(&raw()).expect("listed").into_iter().map(|entry| entry.name).collect()
}

fn index(sim: &Sim, segment: u64) -> String {
    let content = sim.env().disk.read_all(&raw().join(format::captured_index_name(segment)), 100).expect("an index");
    String::from_utf8(content).expect("text")
}

/// The records of all segments that a consumer finds.
fn consumed(sim: &Sim) -> Vec<Vec<u8>> {
    let replay = replay::Replay::open_read_only(&sim.env(), &raw(), ReplayPolicy::Stop).expect("opened");
    replay.map(|item| item.expect("no corruption").1.to_vec()).collect()
}

#[test]
fn the_index_says_what_is_durable_and_then_that_it_is_all() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, capturing(1 << 20, true));
    let first = write(&sim, &log, 1, 100, false).expect("room");
    assert_eq!(names(&sim), [format::file_name(first.segment)], "linked, and nothing to tell");
    let at = write(&sim, &log, 2, 100, true).expect("room");
    assert_eq!(index(&sim, at.segment), at.offset.to_string());
    let mut last = at;
    while last.segment == at.segment {
        last = write(&sim, &log, 3, 1000, false).expect("room");
    }
    assert!(index(&sim, at.segment).ends_with("\nCOMPLETED"));
    assert!(
        index(&sim, at.segment).split_once('\n').expect("two lines").0.parse::<u32>().expect("a number") > 8000 - 1012
    );
    assert_eq!(names(&sim).len(), 3, "the second segment is linked: {:?}", names(&sim));
    log.mark_flushed(key(1).0, key(1).1, log.position());
    sim.run_until_idle();
    log.end().expect("ended");
    let left = [format::file_name(at.segment), format::captured_index_name(at.segment)];
    assert_eq!(names(&sim), left, "what has captured writes stays");
    assert_eq!(consumed(&sim)[..2], [record(1, 100), record(2, 100)]);
}

/// A consumer removes a segment that is complete long before the tables are flushed and the log is
/// done with the segment.
#[test]
fn an_index_does_not_come_back_behind_its_consumer() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, capturing(1 << 20, true));
    let at = write(&sim, &log, 1, 100, true).expect("room");
    while write(&sim, &log, 2, 1000, false).expect("room").segment == at.segment {}
    assert!(index(&sim, at.segment).ends_with("\nCOMPLETED"));
    for name in [format::file_name(at.segment), format::captured_index_name(at.segment)] {
        sim.env().disk.remove_file(&raw().join(name)).expect("consumed");
    }
    log.mark_flushed(key(1).0, key(1).1, log.position());
    sim.run_until_idle();
    log.end().expect("ended");
    assert_eq!(names(&sim), [""; 0]);
}

/// A flushed segment that is in no archive yet is not replayed at a start: its link alone tells
/// whether its consumer still wants it. A power cut may have taken the index.
#[test]
fn a_segment_that_waits_for_its_archive_is_linked_until_it_is_consumed() {
    for is_consumed in [false, true] {
        let sim = Sim::new(1);
        let archive = ArchiveOptions { command: vec!["false".to_owned()], ..ArchiveOptions::default() };
        let options = Options { archive: Some(archive), ..capturing(1 << 20, true) };
        let (log, _) = open(&sim, options.clone());
        let at = write(&sim, &log, 1, 100, true).expect("room");
        log.mark_flushed(key(1).0, key(1).1, log.position());
        log.end().expect("ended");
        drop(log);
        let files = [format::file_name(at.segment), format::captured_index_name(at.segment)];
        for name in if is_consumed { &files[..] } else { &files[1..] } {
            sim.env().disk.remove_file(&raw().join(name)).expect("it is there");
        }
        let (_log, found) = open(&sim, options);
        assert!(found.is_empty(), "it was flushed");
        assert_eq!(files.map(|name| names(&sim).contains(&name)), [!is_consumed; 2]);
    }
}

#[test]
fn writes_are_refused_until_what_is_captured_is_consumed() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, capturing(20 << 10, true));
    let mut number = 0;
    let refused = loop {
        number += 1;
        match write(&sim, &log, number, 1000, true) {
            Ok(_) => drop(sim.run_until_idle()),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, LogError::CaptureFull { .. }) && number > 14, "{number}: {refused}");
    write(&sim, &log, 99, 1000, false).expect("others are taken");
    assert!(write(&sim, &log, 100, 1000, true).is_err());
    let first = names(&sim).remove(0);
    let id = format::parse_file_name(&first).expect("a segment").1;
    for name in [first, format::captured_index_name(id)] {
        sim.env().disk.remove_file(&raw().join(name)).expect("consumed");
    }
    let _ = write(&sim, &log, 101, 1000, true);
    sim.block_on(sim.env().sleep(Duration::from_secs(1)));
    let position = write(&sim, &log, 102, 1000, true).expect("there is room again");
    assert!(names(&sim).contains(&format::file_name(position.segment)), "linked though it was forbidden first");
    assert!(consumed(&sim).contains(&record(102, 1000)));
}

#[test]
fn a_start_without_room_leaves_no_link() {
    let sim = Sim::new(1);
    let disk = sim.env().disk;
    disk.create_dir_all(&raw()).expect("made");
    disk.replace_file(&raw().join("not consumed"), &[1; 20 << 10]).expect("written");
    let (log, _) = open(&sim, capturing(20 << 10, true));
    assert!(write(&sim, &log, 1, 100, true).is_err());
    write(&sim, &log, 2, 100, false).expect("others are taken");
    assert_eq!(names(&sim), ["not consumed"]);
}

#[test]
fn without_blocking_the_oldest_go() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, capturing(20 << 10, false));
    for number in 0..60 {
        write(&sim, &log, number, 1000, true).expect("never refused");
        sim.block_on(sim.env().sleep(Duration::from_millis(300)));
    }
    let consumed = consumed(&sim);
    assert!(consumed.last() == Some(&record(59, 1000)) && !consumed.contains(&record(1, 1000)));
    assert!((7..30).contains(&consumed.len()), "{}", consumed.len());
    assert!(
        names(&sim)
            .iter()
            .all(|name| !name.ends_with(".idx") || names(&sim).contains(&name.replace("_cdc.idx", ".log")))
    );
}

/// Whatever is acknowledged and captured is found by the consumer, once the node has started again.
#[test]
fn captured_writes_survive_crashes() {
    let mut checked = 0;
    for seed in 0..200 {
        let sim = Sim::new(seed);
        let dice = sim.dice();
        let compression = dice.chance(50).then(|| Compression::new("LZ4Compressor", &BTreeMap::new()).expect("known"));
        let options = Options { compression, ..capturing(1 << 20, true) };
        let (mut durable, mut number) = (Vec::new(), 0);
        for life in 0..4 {
            let Ok((log, replay)) = CommitLog::open(&sim.env(), &directory(), options.clone()) else {
                sim.power_cut();
                continue;
            };
            let is_captured = |record: &[u8]| record[7].is_multiple_of(3);
            for (position, record) in replay.map(|item| item.expect("no corruption")) {
                log.mark_replayed(position, &[key(1)]);
                if is_captured(&record) {
                    log.mark_captured(position);
                }
            }
            if log.finish_replay().is_ok() {
                sim.run_until_idle();
                let consumed = consumed(&sim);
                let lost = durable.iter().find(|record| !consumed.contains(record));
                assert!(lost.is_none(), "seed {seed}, life {life}: {lost:?}");
                checked += durable.len();
            }
            if life < 3 && dice.chance(70) {
                sim.disk().power_cut_after(dice.below(120));
            }
            for _ in 0..dice.below(40) {
                number += 1;
                let record = record(number, 100 + usize::try_from(dice.below(1500)).expect("small"));
                let Ok(position) = append(&log, &record, is_captured(&record)) else { break };
                if sim.block_on(log.wait_durable(position)).is_ok() && is_captured(&record) {
                    durable.push(record);
                }
                if dice.chance(20) {
                    log.mark_flushed(key(1).0, key(1).1, log.position());
                }
            }
            drop(log);
            if dice.chance(70) {
                sim.power_cut()
            } else {
                sim.kill()
            }
            sim.disk().heal();
        }
    }
    assert!(checked > 1000, "{checked}");
}
