//! Archiving under a simulated disk: whatever was acknowledged is in the archive once the log has
//! ended, or else in a file that stays.

use env::sim::Stall;

use super::super::archive::{ArchiveState, PAUSE, START_TIME_MAX, plain};
use super::super::format;
use super::super::ledger::RETRY;
use super::*;

fn archive() -> PathBuf {
    Path::new(DATA).join("archive")
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn archiving(command: &str) -> Options {
    let archive = ArchiveOptions { command: words(command), ..ArchiveOptions::default() };
    Options { archive: Some(archive), ..small() }
}

fn restoring(directory: &Path, command: &str) -> Options {
    let archive = ArchiveOptions {
        restore_command: words(command),
        restore_directories: vec![directory.to_owned()],
        ..ArchiveOptions::default()
    };
    Options { archive: Some(archive), ..small() }
}

const COPY: &str = "cp %path /data/archive/%name";
const RESTORE: &str = "cp %from %to";
/// The simulated machine has no such program, so that the log copies by itself.
const OWN_COPY: &str = "/bin/cp -f %path /data/archive/%name";
const OWN_RESTORE: &str = "/bin/cp -f %from %to";

fn write(sim: &Sim, log: &CommitLog, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let position = log.append(&record(number, 1000), &[key(1)]).expect("room");
        sim.block_on(log.wait_durable(position)).expect("durable");
    }
}

fn flush_and_end(sim: &Sim, log: &CommitLog) {
    log.mark_flushed(key(1).0, key(1).1, log.position());
    sim.run_until_idle();
    log.end().expect("ended");
}

fn segments(sim: &Sim, directory: &Path) -> Vec<String> {
    let entries = sim.env().disk.list_dir(directory).expect("listed");
    entries.into_iter().map(|entry| entry.name).filter(|name| format::parse_file_name(name).is_some()).collect()
}

#[test]
fn full_segments_are_archived_and_restored() {
    let sim = Sim::new(1);
    sim.env().disk.create_dir_all(&archive()).expect("made");
    let (log, _) = open(&sim, archiving(COPY));
    write(&sim, &log, 0..20);
    sim.run_until_idle();
    assert_eq!(segments(&sim, &archive()).len(), 2, "not the one that is written");
    flush_and_end(&sim, &log);
    assert_eq!(segments(&sim, &archive()).len(), 3);
    assert!(segments(&sim, &directory()).is_empty());
    drop(log);
    let (log, found) = open(&sim, restoring(&archive(), RESTORE));
    assert_eq!(found, (0..20).map(|number| record(number, 1000)).collect::<Vec<_>>());
    flush_and_end(&sim, &log);
    assert_eq!(segments(&sim, &archive()).len(), 3, "the archive stays");
}

/// A restore that is cut off leaves nothing that the next start takes for a segment.
#[test]
fn a_restore_that_was_cut_off_is_made_again() {
    for command in [RESTORE, OWN_RESTORE] {
        let sim = Sim::new(1);
        sim.env().disk.create_dir_all(&archive()).expect("made");
        let (log, _) = open(&sim, archiving(COPY));
        write(&sim, &log, 0..20);
        flush_and_end(&sim, &log);
        drop(log);
        sim.disk().inject(Fault { skip: 1, ..Fault::next(Op::Write, "/commitlog/CommitLog-") });
        let failed = CommitLog::open(&sim.env(), &directory(), restoring(&archive(), command));
        assert!(matches!(failed, Err(LogError::NotRestored { .. })), "{command}");
        let (_, found) = open(&sim, restoring(&archive(), command));
        assert_eq!(found, (0..20).map(|number| record(number, 1000)).collect::<Vec<_>>(), "{command}");
    }
}

/// A second copy replaces what has the name, also where that is the segment itself.
#[test]
fn a_copy_or_link_needs_no_program() {
    for (first, second) in [(OWN_COPY, OWN_COPY), ("/bin/ln %path /data/archive/%name", OWN_COPY)] {
        let sim = Sim::new(1);
        let disk = sim.env().disk;
        disk.create_dir_all(&archive()).expect("made");
        disk.replace_file(&archive().join("CommitLog-8-7.log.tmp"), b"half a copy").expect("written");
        let (log, _) = open(&sim, archiving(first));
        write(&sim, &log, 0..20);
        sim.run_until_idle();
        assert_eq!(segments(&sim, &archive()).len(), 2, "{first}");
        drop(log);
        sim.kill();
        let (log, found) = open(&sim, archiving(second));
        assert_eq!(found.len(), 20, "{first}");
        flush_and_end(&sim, &log);
        drop(log);
        assert!(segments(&sim, &directory()).is_empty(), "{first}");
        let (_, found) = open(&sim, restoring(&archive(), OWN_RESTORE));
        assert_eq!(found, (0..20).map(|number| record(number, 1000)).collect::<Vec<_>>(), "{first}");
    }
    for other in ["/bin/cp %path /data/archive", "/bin/cp -a %path /data/%name", "/bin/ln -f %path /data/%name"] {
        let sim = Sim::new(1);
        let (log, _) = open(&sim, archiving(other));
        write(&sim, &log, 0..1);
        flush_and_end(&sim, &log);
        assert_eq!(segments(&sim, &directory()).len(), 1, "{other}: a program that is not there archives nothing");
    }
}

/// Other commands fail where their program is not there, and their segments stay.
#[test]
fn a_plain_copy_or_link_has_the_names_of_one_purpose() {
    for (command, is_plain) in [
        (OWN_COPY, true),
        (OWN_RESTORE, true),
        ("ln %path /data/archive/%name", true),
        // one file with the name %to would have each segment in turn
        ("cp %path %to", false),
        ("cp %from /data/%name", false),
        ("cp \"%path\" \"/data/%name\"", false),
        ("cp -f -p %path /data/%name", false),
        ("ln -s %path /data/%name", false),
    ] {
        assert_eq!(plain(&words(command)).is_some(), is_plain, "{command}");
    }
}

/// The place of the archive is not there for a while. Segments that the log has forgotten meanwhile
/// are tried again too, while the node runs on.
#[test]
fn what_failed_is_tried_again_once_a_command_succeeds() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, archiving(COPY));
    write(&sim, &log, 0..20);
    log.mark_flushed(key(1).0, key(1).1, log.position());
    sim.run_until_idle();
    sim.env().disk.create_dir_all(&archive()).expect("made");
    let failed = segments(&sim, &directory())[..2].to_vec();
    write(&sim, &log, 20..40);
    sim.run_until_idle();
    let (archived, left) = (segments(&sim, &archive()), segments(&sim, &directory()));
    assert!(failed.iter().all(|name| archived.contains(name) && !left.contains(name)), "{archived:?} {left:?}");
    flush_and_end(&sim, &log);
    drop(log);
    assert!(segments(&sim, &directory()).is_empty());
    let (_, found) = open(&sim, restoring(&archive(), RESTORE));
    assert_eq!(found, (0..40).map(|number| record(number, 1000)).collect::<Vec<_>>());
}

/// A node that writes little has no full segment for a long time.
#[test]
fn what_failed_is_tried_again_after_a_while() {
    let sim = Sim::new(1);
    let (mut log, _) = open(&sim, archiving(COPY));
    write(&sim, &log, 0..20);
    sim.run_until_idle();
    // while the node runs two segments have failed, and at a start the one that was not full
    for archived in [2, 1] {
        sim.env().disk.create_dir_all(&archive()).expect("made");
        sim.run_until_idle();
        assert!(segments(&sim, &archive()).is_empty(), "not at once");
        sim.advance(RETRY);
        sim.run_until_idle();
        assert_eq!(segments(&sim, &archive()).len(), archived);
        sim.env().disk.remove_dir_all(&archive()).expect("removed");
        drop(log);
        sim.kill();
        log = open(&sim, archiving(COPY)).0;
    }
}

/// All rows of a table may have been deleted and purged since: no SSTable says any more that its
/// records were flushed.
#[test]
fn a_flushed_segment_that_waits_for_its_archive_is_not_replayed() {
    let sim = Sim::new(1);
    let (log, _) = open(&sim, archiving(COPY));
    write(&sim, &log, 0..20);
    log.mark_flushed(key(1).0, key(1).1, log.position());
    // at once, and not when the archiver comes again
    sim.run_until_idle();
    write(&sim, &log, 20..21);
    drop(log);
    sim.kill();
    let has = |found: &[Vec<u8>], number: u64| found.contains(&record(number, 1000));
    let (log, found) = open(&sim, archiving(COPY));
    assert!(!has(&found, 0) && has(&found, 20), "{}", found.len());
    drop(log);
    sim.kill();
    // a restore begins with older SSTables
    let (_, found) = open(&sim, restoring(&archive(), RESTORE));
    assert!(has(&found, 0) && has(&found, 20), "{}", found.len());
}

/// A command may take its longest time for each segment while the archive cannot be reached.
#[test]
fn a_start_and_an_end_run_no_command_behind_one_that_failed() {
    let sim = Sim::new(1);
    sim.env().disk.create_dir_all(&archive()).expect("made");
    let (log, _) = open(&sim, small());
    write(&sim, &log, 0..20);
    drop(log);
    sim.kill();
    sim.disk().inject(Fault::next(Op::Write, "/archive/"));
    let (log, _) = open(&sim, archiving(OWN_COPY));
    sim.run_until_idle();
    assert!(segments(&sim, &archive()).is_empty(), "the first one failed");
    sim.advance(RETRY);
    sim.run_until_idle();
    assert_eq!(segments(&sim, &archive()).len(), 3, "the archiver tries them later");
    write(&sim, &log, 20..40);
    sim.run_until_idle();
    log.mark_flushed(key(1).0, key(1).1, log.position());
    // as where the node ends before the archiver came to these
    log.shared.lock().segments.values_mut().for_each(|segment| segment.archive = ArchiveState::Waits);
    sim.disk().inject(Fault::next(Op::Write, "/archive/"));
    log.end().expect("ended");
    assert_eq!(segments(&sim, &directory()).len(), 3, "the first one failed");
}

/// The archiver goes on with what a start has no time for.
#[test]
fn a_start_archives_for_a_while_before_it_serves() {
    let sim = Sim::new(1);
    sim.env().disk.create_dir_all(&archive()).expect("made");
    let (log, _) = open(&sim, small());
    write(&sim, &log, 0..20);
    drop(log);
    // the first command of each start takes long
    let start = || {
        sim.kill();
        let (op, path, duration) = (Op::Create, "/archive/".to_owned(), 2 * START_TIME_MAX);
        sim.disk().stall(Stall { op, path, skip: 0, times: 1, duration });
        let (log, replay) = begun(&sim, archiving(COPY));
        replay.for_each(|item| log.mark_replayed(item.expect("no corruption").0, &[key(1)]));
        log.finish_replay().expect("settled");
        log
    };
    let log = start();
    assert_eq!(segments(&sim, &archive()).len(), 1);
    sim.run_until_idle();
    assert_eq!(segments(&sim, &archive()).len(), 3);
    drop(log);
    // what was archived before does not wait for another time
    let log = start();
    assert!(log.shared.lock().segments.values().all(|segment| segment.archive != ArchiveState::Failed));
}

/// The archiver could otherwise take its lock again and again before the end has it.
#[test]
fn the_archiver_begins_with_no_segment_while_the_end_waits() {
    let sim = Sim::new(1);
    sim.env().disk.create_dir_all(&archive()).expect("made");
    let (log, _) = open(&sim, archiving(COPY));
    log.shared.is_ending.store(true, Ordering::Relaxed);
    write(&sim, &log, 0..20);
    sim.run_until_idle();
    assert!(segments(&sim, &archive()).is_empty());
    log.mark_flushed(key(1).0, key(1).1, log.position());
    log.end().expect("ended");
    assert_eq!(segments(&sim, &archive()).len(), 3, "by the end");
    // an end that has nothing to do yet leaves the archiver to go on
    drop(log);
    sim.advance(PAUSE);
    let (log, _) = open(&sim, archiving(COPY));
    log.shared.is_ending.store(true, Ordering::Relaxed);
    write(&sim, &log, 0..20);
    sim.run_until_idle();
    log.end().expect("nothing to do");
    sim.advance(PAUSE);
    sim.run_until_idle();
    assert_eq!(segments(&sim, &archive()).len(), 5);
}

/// Each start tries again, until the segments are in the archive.
#[test]
fn what_cannot_be_archived_stays_and_is_tried_again() {
    let sim = Sim::new(1);
    sim.env().disk.create_dir_all(&archive()).expect("made");
    for (command, left) in [("false %path", 3), ("nobody %path", 6)] {
        let (log, _) = open(&sim, archiving(command));
        write(&sim, &log, 0..20);
        flush_and_end(&sim, &log);
        drop(log);
        assert_eq!(segments(&sim, &directory()).len(), left, "{command}");
    }
    let (log, found) = open(&sim, archiving(COPY));
    assert!(found.is_empty(), "everything was flushed");
    assert_eq!(segments(&sim, &archive()).len(), 6);
    flush_and_end(&sim, &log);
    assert!(segments(&sim, &directory()).is_empty());
}

/// The node dies, and its next start cannot archive: of the segments that it finds, the one that
/// was not full is in no archive.
#[test]
fn a_segment_that_was_archived_goes_where_the_start_cannot_archive_it_again() {
    const LINK: &str = "/bin/ln %path /data/archive/%name";
    // a link is not made over one that is there; an earlier version has noted nothing
    for (first, second, is_noted, left, archived) in [(COPY, "false %path", true, 1, 2), (LINK, LINK, false, 0, 3)] {
        let sim = Sim::new(1);
        sim.env().disk.create_dir_all(&archive()).expect("made");
        let (log, _) = open(&sim, archiving(first));
        write(&sim, &log, 0..20);
        sim.run_until_idle();
        assert_eq!(segments(&sim, &archive()).len(), 2, "{first}");
        drop(log);
        sim.kill();
        if !is_noted {
            sim.env().disk.remove_file(&directory().join("archived_segments")).expect("it is there");
        }
        let (log, found) = open(&sim, archiving(second));
        assert_eq!(found.len(), 20, "{second}");
        flush_and_end(&sim, &log);
        drop(log);
        assert_eq!(segments(&sim, &directory()).len(), left, "{second}");
        assert_eq!(segments(&sim, &archive()).len(), archived, "{second}");
    }
}

/// By these lines a restore to a point in time knows what an archive lacks.
#[test]
fn runs_and_what_was_not_archived_are_noted() {
    let sim = Sim::new(1);
    sim.env().disk.create_dir_all(&archive()).expect("made");
    let run = |options: Options, numbers: std::ops::Range<u64>| {
        let (log, _) = open(&sim, options);
        write(&sim, &log, numbers);
        sim.run_until_idle();
        let noted = sim.env().disk.read_all(&directory().join("archived_segments"), 1 << 20);
        let noted = String::from_utf8(noted.unwrap_or_default()).expect("text");
        let noted: Vec<String> =
            noted.lines().filter(|line| !line.starts_with("archived ")).map(str::to_owned).collect();
        let (first, last) = (log.first_new_segment(), log.position().segment);
        drop(log);
        sim.kill();
        (noted, first, last)
    };
    let (noted, _, last) = run(small(), 0..20);
    assert!(noted.is_empty(), "{noted:?}: a node that does not archive");
    let (noted, first, of_first) = run(archiving(COPY), 0..20);
    let begun = format!("run {first} after {last}");
    assert_eq!(noted, std::slice::from_ref(&begun));
    let (noted, second, _) = run(archiving(COPY), 0..0);
    assert_eq!(noted, [begun, format!("run {second} after {of_first}")]);
    // a run that held nothing is passed over
    let (noted, third, _) = run(archiving(COPY), 0..0);
    let begun = format!("run {third} after {of_first}");
    assert_eq!(noted, std::slice::from_ref(&begun));
    let (noted, gap, _) = run(small(), 0..20);
    assert_eq!(noted, [begun.clone(), format!("gap {gap}")]);
    let (noted, _, _) = run(small(), 0..20);
    assert_eq!(noted, [begun.clone(), format!("gap {gap}")]);
    let (noted, fourth, _) = run(archiving(COPY), 0..20);
    assert_eq!(noted, [begun, format!("run {fourth} gap {gap}")]);
    // a restored node has a log of its own
    sim.env().disk.remove_dir_all(&directory()).expect("removed");
    let (noted, restored, _) = run(restoring(&archive(), RESTORE), 0..20);
    assert_eq!(noted, [format!("gap {restored}")]);
    // the segment that was not full when the node died goes without having been archived
    let (_, _, last) = run(archiving(COPY), 0..20);
    let (noted, _, _) = run(small(), 0..0);
    assert!(noted.contains(&format!("gap {last}")), "{noted:?}");
}

#[test]
fn what_is_no_segment_is_not_restored() {
    let sim = Sim::new(1);
    let disk = sim.env().disk;
    disk.create_dir_all(&archive()).expect("made");
    let refused = |name: &str, content: &[u8], command: &str| {
        let path = archive().join(name);
        disk.replace_file(&path, content).expect("written");
        let opened = CommitLog::open(&sim.env(), &directory(), restoring(&archive(), command));
        let why = opened.err().expect("refused").to_string();
        disk.remove_file(&path).expect("removed");
        why
    };
    let header = format::header(7, format::PARAMETERS);
    let mut newer = header.clone();
    newer[..4].copy_from_slice(&9_i32.to_be_bytes());
    newer[16..].copy_from_slice(&format::header_crc(9, 7, format::PARAMETERS).to_be_bytes());
    assert!(refused("README", b"text", RESTORE).contains("no readable header"));
    assert!(refused(&format::file_name(8), &header, RESTORE).contains("segment 7 of version 8"));
    assert!(refused("CommitLog-9-7.log", &newer, RESTORE).contains("version 9"));
    assert!(refused(&format::file_name(7), &header, "false").contains("exit status: 1"));
    assert!(refused(&format::file_name(7), &header, "cp %from /data/elsewhere").contains("CommitLog-8-7.log"));
}

/// The machine dies anywhere, in commands too, and its disk fails now and then; at last the log
/// ends. Then the archive and what is left beside it hold every record that was acknowledged.
#[test]
fn the_archive_has_what_was_acknowledged() {
    let mut checked = 0;
    for seed in 0..200 {
        let sim = Sim::new(seed);
        let dice = sim.dice();
        sim.env().disk.create_dir_durable(&archive()).expect("made");
        let compression = dice.chance(50).then(|| Compression::new("LZ4Compressor", &BTreeMap::new()).expect("known"));
        let options = Options { compression, ..archiving(if seed % 2 == 0 { COPY } else { OWN_COPY }) };
        let (mut durable, mut number) = (Vec::new(), 0);
        for life in 0..4 {
            let is_last = life == 3;
            let opened = CommitLog::open(&sim.env(), &directory(), options.clone());
            let opened = opened.and_then(|(log, replay)| log.begin(0).map(|()| (log, replay)));
            let Ok((log, replay)) = opened else {
                assert!(!is_last, "seed {seed}: a sound disk opens");
                sim.kill();
                sim.disk().heal();
                continue;
            };
            for (position, _) in replay.map(|item| item.expect("no corruption")) {
                log.mark_replayed(position, &[key(1)]);
            }
            log.finish_replay().expect("settled");
            if !is_last && dice.chance(40) {
                sim.disk().power_cut_after(dice.below(150));
            }
            for _ in 0..dice.below(40) {
                number += 1;
                let record = record(number, 100 + usize::try_from(dice.below(1500)).expect("small"));
                let Ok(position) = log.append(&record, &[key(1)]) else { break };
                if sim.block_on(log.wait_durable(position)).is_ok() {
                    durable.push(record);
                }
                if dice.chance(20) {
                    log.mark_flushed(key(1).0, key(1).1, log.position());
                }
            }
            if is_last {
                flush_and_end(&sim, &log);
            }
            drop(log);
            sim.kill();
            sim.disk().heal();
        }
        let (_, found) = open(&sim, restoring(&archive(), if seed % 4 < 2 { RESTORE } else { OWN_RESTORE }));
        let lost = durable.iter().find(|record| !found.contains(record));
        assert!(lost.is_none(), "seed {seed}: {:?}", lost.map(|record| &record[..8]));
        checked += durable.len();
    }
    assert!(checked > 5000, "{checked}");
}
