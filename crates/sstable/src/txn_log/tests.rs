//! Transactions that end, that are cut off, and logs that are damaged.

#![allow(clippy::disallowed_methods)]

use env::sim::{DATA, Fault, Op, Sim};

use super::*;
use crate::descriptor::SSTableId;

#[test]
fn records_are_those_of_cassandra() {
    let record = Record { kind: Kind::Commit, prefix: String::new(), modified: 0, files: 0 };
    // as Cassandra writes it
    assert_eq!(record.print(), "COMMIT:[,0,0][2613697770]");
    let record = Record { kind: Kind::Remove, prefix: "/a,b/da-1-bti-".to_owned(), modified: 1 << 40, files: 8 };
    assert_eq!(Record::parse(&record.print()), Some(record.clone()));
    let line = record.print();
    for end in 0..line.len() {
        assert_eq!(Record::parse(&line[..end]), None);
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn make(directory: &Path, id: u64) -> Descriptor {
    let descriptor = Descriptor::new(directory, Version::DA, SSTableId::Sequence(id));
    for component in [Component::Data, Component::Statistics, Component::Toc] {
        std::fs::write(descriptor.path(component), b"x").unwrap();
    }
    descriptor
}

#[test]
fn unfinished_is_undone_and_committed_is_completed() {
    let env = env::real::env();
    for committed in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let old = make(directory, 1);
        make(directory, 11);
        let mut transaction = Transaction::begin(&env, directory, Operation::Compaction, [1; 16], Version::DA).unwrap();
        transaction.add(&Descriptor::new(directory, Version::DA, SSTableId::Sequence(2))).unwrap();
        make(directory, 2);
        transaction.remove_all([&old]).unwrap();
        assert_eq!(obsolete_files(&env, &[directory.to_owned()]).unwrap().len(), 3);
        if committed {
            transaction.commit().unwrap();
        }
        drop(transaction);
        let found = recover(&env, &[directory.to_owned()]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].committed, committed);
        let kept = if committed { "da-2-" } else { "da-1-" };
        let names = names(directory);
        assert_eq!(names.len(), 6, "{names:?}");
        assert!(names.iter().all(|name| name.starts_with(kept) || name.starts_with("da-11-")), "{names:?}");
        assert_eq!(recover(&env, &[directory.to_owned()]).unwrap(), []);
    }
}

#[test]
fn a_torn_last_record_is_tolerated_and_other_damage_is_not() {
    let env = env::real::env();
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let old = make(directory, 1);
    let mut transaction = Transaction::begin(&env, directory, Operation::Flush, [1; 16], Version::DA).unwrap();
    transaction.add(&Descriptor::new(directory, Version::DA, SSTableId::Sequence(2))).unwrap();
    transaction.remove_all([&old]).unwrap();
    let log = transaction.replicas[0].path.clone();
    transaction.commit().unwrap();
    drop(transaction);
    let whole = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, whole.replacen("ADD", "ADE", 1)).unwrap();
    assert!(matches!(recover(&env, &[directory.to_owned()]), Err(Error::Corrupt(_))));
    assert_eq!(names(directory).len(), 4);
    std::fs::write(&log, &whole[..whole.len() - 4]).unwrap();
    assert!(!recover(&env, &[directory.to_owned()]).unwrap()[0].committed);
    assert_eq!(names(directory).len(), 3);
}

/// Removals are written together: after a power cut zeros may stand in the middle of them. Behind
/// a COMMIT they are damage.
#[test]
fn holes_among_removals_are_tolerated_before_the_commit() {
    let env = env::real::env();
    for is_committed in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let olds = [1, 2, 3].map(|id| make(directory, id));
        let mut transaction = Transaction::begin(&env, directory, Operation::Compaction, [1; 16], Version::DA).unwrap();
        transaction.add(&Descriptor::new(directory, Version::DA, SSTableId::Sequence(4))).unwrap();
        make(directory, 4);
        transaction.remove_all(&olds).unwrap();
        if is_committed {
            transaction.commit().unwrap();
        }
        let log = transaction.replicas[0].path.clone();
        drop(transaction);
        let mut bytes = std::fs::read(&log).unwrap();
        let hole = bytes.windows(5).position(|bytes| bytes == b"da-2-").unwrap();
        bytes[hole..hole + 5].fill(0);
        std::fs::write(&log, bytes).unwrap();
        let recovered = recover(&env, &[directory.to_owned()]);
        if is_committed {
            assert!(matches!(recovered, Err(Error::Corrupt(_))), "{recovered:?}");
            assert_eq!(names(directory).len(), 4 * 3 + 1);
        } else {
            assert!(!recovered.unwrap()[0].committed);
            assert_eq!(names(directory).len(), 3 * 3);
        }
    }
}

/// Cassandra wrote down the time of Statistics.db once.
#[test]
fn a_record_may_have_the_time_of_the_statistics() {
    let env = env::real::env();
    for is_sound in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let old = make(directory, 1);
        let [data, statistics] = [Component::Data, Component::Statistics].map(|component| old.path(component));
        let content = std::fs::read(&statistics).unwrap();
        let time = |path: &Path| modified(&*env.disk, path);
        // records are compared by seconds
        while time(&statistics) / 1000 == time(&data) / 1000 {
            std::fs::write(&statistics, &content).unwrap();
        }
        let mut transaction = Transaction::begin(&env, directory, Operation::Compaction, [1; 16], Version::DA).unwrap();
        let modified = time(&statistics) + if is_sound { 0 } else { 2_000 };
        transaction.append(Record { kind: Kind::Remove, prefix: prefix_of(&old), modified, files: 3 }).unwrap();
        transaction.commit().unwrap();
        drop(transaction);
        assert_eq!(recover(&env, &[directory.to_owned()]).is_ok(), is_sound);
        assert_eq!(names(directory).is_empty(), is_sound);
    }
}

#[test]
fn settled_leaves_no_log() {
    let env = env::real::env();
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut transaction = Transaction::begin(&env, directory, Operation::Flush, [1; 16], Version::DA).unwrap();
    let one = Descriptor::new(directory, Version::DA, SSTableId::Sequence(1));
    transaction.add(&one).unwrap();
    make(directory, 1);
    transaction.settle().unwrap();
    assert_eq!(names(directory), [""; 0]);
    make(directory, 1);
    let mut transaction = Transaction::begin(&env, directory, Operation::Compaction, [1; 16], Version::DA).unwrap();
    transaction.add(&Descriptor::new(directory, Version::DA, SSTableId::Sequence(2))).unwrap();
    make(directory, 2);
    transaction.remove_all([&one]).unwrap();
    transaction.commit().unwrap();
    transaction.settle().unwrap();
    assert!(names(directory).iter().all(|name| name.starts_with("da-2-")));
}

#[test]
fn replicas_in_several_directories_are_one_log() {
    let env = env::real::env();
    for (version, begins) in [(Version::NB, "nb_txn_compaction_"), (Version::DA, "bti-da_txn_compaction_")] {
        for torn in [0, 1, 4] {
            let roots = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
            let directories: Vec<PathBuf> = roots.iter().map(|root| root.path().to_owned()).collect();
            let olds = [make(&directories[0], 1), make(&directories[1], 2)];
            let operation = Operation::Compaction;
            let mut transaction = Transaction::begin(&env, &directories[0], operation, [1; 16], version).unwrap();
            transaction.add(&Descriptor::new(&directories[0], Version::DA, SSTableId::Sequence(3))).unwrap();
            make(&directories[0], 3);
            transaction.remove_all(&olds).unwrap();
            transaction.commit().unwrap();
            let log = transaction.replicas[1].path.clone();
            drop(transaction);
            assert!(log.file_name().unwrap().to_string_lossy().starts_with(begins), "{log:?}");
            // the second replica lacks some of its end: the first has it all
            let whole = std::fs::read_to_string(&log).unwrap();
            std::fs::write(&log, &whole[..whole.len() - torn]).unwrap();
            let found = recover(&env, &directories).unwrap();
            assert_eq!((found.len(), found[0].committed), (1, true));
            assert_eq!(names(&directories[0]).len(), 3);
            assert_eq!(names(&directories[1]), [""; 0]);
        }
    }
}

/// A replica that was being made, or written to, when the power went lacks more than one record.
#[test]
fn a_replica_may_lack_several_records() {
    let env = env::real::env();
    for short in [0, 1] {
        let roots = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let directories: Vec<PathBuf> = roots.iter().map(|root| root.path().to_owned()).collect();
        let olds = [make(&directories[0], 1), make(&directories[1], 2), make(&directories[1], 4)];
        let operation = Operation::Compaction;
        let mut transaction = Transaction::begin(&env, &directories[0], operation, [1; 16], Version::DA).unwrap();
        transaction.add(&Descriptor::new(&directories[0], Version::DA, SSTableId::Sequence(3))).unwrap();
        make(&directories[0], 3);
        transaction.remove_all(&olds).unwrap();
        let log = transaction.replicas[short].path.clone();
        drop(transaction);
        let whole = std::fs::read_to_string(&log).unwrap();
        // the first record and the beginning of the second of four
        std::fs::write(&log, &whole[..whole.find('\n').unwrap() + 20]).unwrap();
        assert!(!recover(&env, &directories).unwrap()[0].committed);
        assert_eq!(directories.iter().map(|directory| names(directory).len()).collect::<Vec<_>>(), [3, 6]);
    }
}

#[test]
fn replicas_that_differ_are_refused() {
    let env = env::real::env();
    let roots = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let directories: Vec<PathBuf> = roots.iter().map(|root| root.path().to_owned()).collect();
    let olds = [make(&directories[0], 1), make(&directories[1], 2)];
    let operation = Operation::Compaction;
    let mut transaction = Transaction::begin(&env, &directories[0], operation, [1; 16], Version::OA).unwrap();
    transaction.remove_all(&olds).unwrap();
    transaction.commit().unwrap();
    let log = transaction.replicas[1].path.clone();
    drop(transaction);
    let whole = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, whole.replacen("da-1-", "da-7-", 1)).unwrap();
    assert!(matches!(recover(&env, &directories), Err(Error::Corrupt(_))));
    assert_eq!(names(&directories[0]).len(), 4);
}

#[test]
fn a_directory_that_was_moved_is_recovered() {
    let env = env::real::env();
    let root = tempfile::tempdir().unwrap();
    let (before, after) = (root.path().join("a"), root.path().join("b"));
    std::fs::create_dir(&before).unwrap();
    make(&before, 1);
    let mut transaction = Transaction::begin(&env, &before, Operation::Flush, [1; 16], Version::DA).unwrap();
    transaction.add(&Descriptor::new(&before, Version::DA, SSTableId::Sequence(2))).unwrap();
    make(&before, 2);
    drop(transaction);
    std::fs::rename(&before, &after).unwrap();
    let directories = [after.clone()];
    assert_eq!(obsolete_files(&env, &directories).unwrap().len(), 3);
    assert!(!recover(&env, &directories).unwrap()[0].committed);
    assert!(names(&after).iter().all(|name| name.starts_with("da-1-")));
}

/// The number of the SSTable that the changes of the simulated machine add.
const NEW: u64 = 100;

fn simulated_directories() -> [PathBuf; 2] {
    ["a", "b"].map(|name| Path::new(DATA).join(name))
}

fn make_durable(disk: &dyn Disk, directory: &Path, id: u64) -> Descriptor {
    let descriptor = Descriptor::new(directory, Version::DA, SSTableId::Sequence(id));
    for component in [Component::Data, Component::Statistics, Component::Toc] {
        let mut file = disk.create(&descriptor.path(component)).unwrap();
        file.write_all(b"x").and_then(|()| file.sync_data()).unwrap();
    }
    disk.sync_dir(directory).unwrap();
    descriptor
}

/// Replaces `count` SSTables of two directories. The power goes before the disk's next operation
/// but so many; the machine has been started again when this returns. Gives whether the change was
/// committed.
fn replace_until_the_power_goes(sim: &Sim, count: u64, operations: u64) -> bool {
    let (env, directories) = (sim.env(), simulated_directories());
    directories.iter().for_each(|directory| env.disk.create_dir_durable(directory).unwrap());
    let old = |id: u64| make_durable(&*env.disk, &directories[(id % 2) as usize], id);
    let olds: Vec<Descriptor> = (0..count).map(old).collect();
    let mut transaction =
        Transaction::begin(&env, &directories[0], Operation::Compaction, [1; 16], Version::DA).unwrap();
    transaction.add(&Descriptor::new(&directories[0], Version::DA, SSTableId::Sequence(NEW))).unwrap();
    make_durable(&*env.disk, &directories[0], NEW);
    sim.disk().power_cut_after(operations);
    let is_committed = transaction.remove_all(&olds).and_then(|()| transaction.commit()).is_ok();
    drop(transaction);
    sim.power_cut();
    is_committed
}

/// The numbers of the SSTables that are there. Each is whole, and no log is left.
fn numbers(sim: &Sim) -> Vec<u64> {
    let mut files: BTreeMap<u64, usize> = BTreeMap::new();
    for directory in simulated_directories() {
        for entry in sim.env().disk.list_dir(&directory).unwrap() {
            let (descriptor, _) = Descriptor::parse(&directory, &entry.name).expect("no log is left");
            let SSTableId::Sequence(number) = descriptor.id else { panic!("{} has a number", entry.name) };
            *files.entry(number).or_default() += 1;
        }
    }
    assert!(files.values().all(|count| *count == 3), "{files:?}");
    files.into_keys().collect()
}

/// A replica that lacks a record takes no others: they would stand in other lines than in the first
/// replica, and the next start would refuse the log.
#[test]
fn nothing_is_written_behind_a_record_that_failed() {
    let sim = Sim::new(1);
    let (env, directories) = (sim.env(), simulated_directories());
    directories.iter().for_each(|directory| env.disk.create_dir_durable(directory).unwrap());
    let mut transaction =
        Transaction::begin(&env, &directories[0], Operation::Compaction, [1; 16], Version::DA).unwrap();
    for id in [NEW, NEW + 1] {
        transaction.add(&Descriptor::new(&directories[0], Version::DA, SSTableId::Sequence(id))).unwrap();
        make_durable(&*env.disk, &directories[0], id);
    }
    make_durable(&*env.disk, &directories[1], 1);
    // the second of the two records that the other directory is to have
    sim.disk().inject(Fault { skip: 1, ..Fault::next(Op::Write, "/b/") });
    let in_other = |id| Descriptor::new(&directories[1], Version::DA, SSTableId::Sequence(id));
    assert!(transaction.add(&in_other(NEW + 2)).is_err());
    assert!(transaction.add(&in_other(NEW + 3)).is_err() && transaction.commit().is_err());
    drop(transaction);
    sim.kill();
    assert!(!recover(&sim.env(), &directories).expect("the replicas agree")[0].committed);
    assert_eq!(numbers(&sim), [1]);
}

/// Many removals take several sectors of the log, any of which may be lost.
#[test]
fn removals_that_are_cut_off_are_taken_back() {
    for seed in 0..8 {
        for operations in 0.. {
            let sim = Sim::new(seed);
            let is_committed = replace_until_the_power_goes(&sim, 40, operations);
            let recovered = recover(&sim.env(), &simulated_directories()).expect("a log that is cut off is no damage");
            let there = numbers(&sim);
            let found = (recovered.first().is_some_and(|one| one.committed), there == [NEW]);
            assert!(found == (true, true) || (!found.0 && there.len() == 40), "seed {seed}, {operations}: {there:?}");
            if is_committed {
                assert_eq!(there, [NEW], "seed {seed}, {operations}");
                break;
            }
        }
    }
}

/// The power goes at any moment of a commit in two directories, and again at any moment of the
/// recovery: the change is made as a whole or not at all.
#[test]
fn a_commit_that_a_recovery_has_begun_to_complete_stays_one() {
    for seed in 0..6 {
        for operations in 0.. {
            let mut is_committed = false;
            for of_recovery in 0.. {
                let sim = Sim::new(seed);
                is_committed = replace_until_the_power_goes(&sim, 2, operations);
                let env = sim.env();
                sim.disk().power_cut_after(of_recovery);
                let is_recovered = recover(&env, &simulated_directories()).is_ok();
                sim.power_cut();
                recover(&sim.env(), &simulated_directories()).expect("a recovery that is cut off is no damage");
                let there = numbers(&sim);
                let is_old = there == [0, 1] && !is_committed;
                assert!(is_old || there == [NEW], "seed {seed}, {operations}, then {of_recovery}: {there:?}");
                if is_recovered {
                    break;
                }
            }
            if is_committed {
                break;
            }
        }
    }
}
