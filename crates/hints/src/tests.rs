//! Cassandra's own file both ways, files cut and damaged anywhere, and a store on a machine that
//! loses its power, its process and its disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use env::Random;
use env::sim::{DATA, ENOSPC, Fault, Op, Sim};

use super::entry::ENTRY_OVERHEAD;
use super::shared::BUFFER_SIZE_MAX;
use super::*;

/// Written by Cassandra 5.0.8; see testdata/README.md.
const GOLDEN: &[u8] = include_bytes!("../testdata/4799343a-fe41-4c70-bf8e-7815389bcb3c-1795376665385-3.hints");
const GOLDEN_NAME: &str = "4799343a-fe41-4c70-bf8e-7815389bcb3c-1795376665385-3.hints";

/// A file of hints of version 2, compressed.
const GOLDEN_LZ4: &[u8] = include_bytes!("../testdata/0d3af36a-02eb-47cb-a2cc-7bcabcd0ac6c-1795413972244-2.hints");
const GOLDEN_LZ4_NAME: &str = "0d3af36a-02eb-47cb-a2cc-7bcabcd0ac6c-1795413972244-2.hints";

fn directory() -> PathBuf {
    Path::new(DATA).join("hints")
}

fn options(compression: Option<Compression>) -> StoreOptions {
    StoreOptions { directory: directory(), version: Version::V3, compression, settings: Settings::default() }
}

fn put_file(sim: &Sim, name: &str, content: &[u8]) -> PathBuf {
    let env = sim.env();
    env.disk.create_dir_durable(&directory()).unwrap();
    let path = directory().join(name);
    let mut file = env.disk.create(&path).unwrap();
    file.write_all(content).unwrap();
    file.sync_data().unwrap();
    env.disk.sync_dir(&directory()).unwrap();
    path
}

/// All hints of a file, page by page.
fn hints_of(sim: &Sim, path: &Path) -> Result<Vec<Vec<u8>>, HintError> {
    let env = sim.env();
    let mut reader = Reader::open(env.disk.as_ref(), path)?;
    let mut hints = Vec::new();
    loop {
        let page = reader.page()?;
        hints.extend(page.hints.iter().map(|hint| hint.to_vec()));
        if page.is_last {
            return Ok(hints);
        }
    }
}

#[test]
fn a_file_of_cassandra_is_read_and_written_again_byte_for_byte() {
    let sim = Sim::new(1);
    let path = put_file(&sim, GOLDEN_NAME, GOLDEN);
    let (descriptor, head) = Descriptor::decode(GOLDEN).unwrap();
    assert_eq!(descriptor.file_name(), GOLDEN_NAME);
    assert_eq!((descriptor.version, descriptor.millis), (Version::V3, 1_795_376_665_385));
    let hints = hints_of(&sim, &path).unwrap();
    let decoded: Vec<_> = hints.iter().map(|hint| Hint::decode(hint).unwrap()).collect();
    let created: Vec<i64> = decoded.iter().map(|hint| hint.created_millis - 1_795_376_650_000).collect();
    assert_eq!(created, [6587, 6716, 9342, 9586, 9709, 6839, 6839]);
    assert!(decoded.iter().all(|hint| hint.gc_grace == 864_000 && hint.mutation.first() == Some(&1)));
    let mut written = Vec::new();
    descriptor.encode(&mut written);
    assert_eq!(written.len(), head);
    for hint in &decoded {
        let entry = Entry::new(hint.created_millis, hint.gc_grace, |out| out.extend_from_slice(hint.mutation)).unwrap();
        written.extend_from_slice(entry.bytes());
    }
    assert_eq!(written, GOLDEN);
}

/// Its compressed bytes are another compressor's than ours, so the head and the entries are
/// compared.
#[test]
fn a_compressed_file_of_cassandra_is_read() {
    let sim = Sim::new(1);
    let path = put_file(&sim, GOLDEN_LZ4_NAME, GOLDEN_LZ4);
    let (descriptor, head) = Descriptor::decode(GOLDEN_LZ4).unwrap();
    assert_eq!(descriptor.file_name(), GOLDEN_LZ4_NAME);
    assert_eq!((descriptor.version, descriptor.millis), (Version::V2, 1_795_413_972_244));
    assert_eq!(descriptor.compression, Some(Compression::new("LZ4Compressor", None).unwrap()));
    let mut written = Vec::new();
    descriptor.encode(&mut written);
    assert_eq!(written, GOLDEN_LZ4[..head]);
    let hints = hints_of(&sim, &path).unwrap();
    assert_eq!(hints.len(), 200);
    for (number, hint) in hints.iter().enumerate() {
        let hint = Hint::decode(hint).unwrap();
        let value = format!("from cassandra {number}").into_bytes();
        assert!(hint.gc_grace == 864_000 && hint.mutation.windows(value.len()).any(|part| part == value), "{number}");
    }
    // the store that finds it closes it: nothing of it is cut
    let files = found_files::find_files(sim.env().disk.as_ref(), &directory()).unwrap().0;
    assert_eq!((files.len(), files[0].size), (1, GOLDEN_LZ4.len() as u64));
}

#[test]
fn names_are_those_of_hint_files() {
    for (name, expected) in [
        (GOLDEN_NAME, true),
        ("4799343a-fe41-4c70-bf8e-7815389bcb3c-1-2.hints", true),
        ("4799343a-fe41-4c70-bf8e-7815389bcb3c-1.hints", false),
        ("4799343a-fe41-4c70-bf8e-7815389bcb3c-1-2.crc32", false),
        ("4799343a-fe41-4c70-bf8e-7815389bcb3c-1-2.corrupt.hints", false),
        ("4799343afe41-4c70-bf8e-7815389bcb3c0000-1-2.hints", false),
    ] {
        assert_eq!(Descriptor::is_file_name(name), expected, "{name}");
    }
}

/// A file that ends anywhere has the whole hints before that place, and gets its checksum.
#[test]
fn a_torn_end_is_cut_off() {
    let (_, head) = Descriptor::decode(GOLDEN).unwrap();
    let mut ends = vec![head];
    while let entry::Found::Hint(_, whole) = entry::find(&GOLDEN[ends[ends.len() - 1]..]) {
        ends.push(ends[ends.len() - 1] + whole);
    }
    assert_eq!((ends.len(), ends.last()), (8, Some(&GOLDEN.len())));
    for cut in 0..GOLDEN.len() {
        let sim = Sim::new(1);
        let path = put_file(&sim, GOLDEN_NAME, &GOLDEN[..cut]);
        let files = found_files::find_files(sim.env().disk.as_ref(), &directory()).unwrap().0;
        let whole = ends.iter().filter(|end| **end <= cut).count().saturating_sub(1);
        if whole == 0 {
            assert!(files.is_empty() && !sim.env().disk.exists(&path), "cut at {cut}");
            continue;
        }
        assert_eq!(files.len(), 1, "cut at {cut}");
        assert_eq!((files[0].size, hints_of(&sim, &path).unwrap().len()), (ends[whole] as u64, whole), "cut at {cut}");
        let checksum = sim.env().disk.read_all(&directory().join(files[0].descriptor.checksum_name()), 100).unwrap();
        assert_eq!(checksum, format!("{:x}", crc32fast::hash(&GOLDEN[..ends[whole]])).into_bytes());
    }
}

/// One wrong byte: the hint around it is lost, or all from there on; nothing that was not written
/// is ever given.
#[test]
fn a_damaged_byte_invents_nothing() {
    let sim = Sim::new(1);
    let sound = hints_of(&sim, &put_file(&sim, GOLDEN_NAME, GOLDEN)).unwrap();
    for at in 0..GOLDEN.len() {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] ^= 0x10;
        let path = put_file(&sim, GOLDEN_NAME, &bytes);
        let mut reader = match Reader::open(sim.env().disk.as_ref(), &path) {
            Ok(reader) => reader,
            Err(_) => continue,
        };
        let Ok(page) = reader.page() else { continue };
        assert!(page.hints.iter().all(|hint| sound.contains(&hint.to_vec())), "byte {at}");
        assert!(page.hints.len() < sound.len(), "byte {at}");
    }
}

#[test]
fn compressed_files_are_read_from_any_page() {
    for class in ["LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor"] {
        let sim = Sim::new(3);
        let store = HintStore::open(&sim.env(), options(Some(Compression::new(class, None).unwrap()))).unwrap();
        let hints: Vec<Vec<u8>> = (0..900u32).map(|n| n.to_be_bytes().repeat(500)).collect();
        for hint in &hints {
            assert!(store.add([1; 16], &Entry::of_hint(hint).unwrap()));
        }
        let file = store.take_file(&[1; 16]).unwrap();
        assert!(file.size < 900 * 2000 / 2, "{class}");
        let path = store.path(&file);
        assert_eq!(hints_of(&sim, &path).unwrap(), hints, "{class}");
        let env = sim.env();
        let mut reader = Reader::open(env.disk.as_ref(), &path).unwrap();
        let mut starts = Vec::new();
        loop {
            let page = reader.page().unwrap();
            starts.push((page.start, page.hints.clone()));
            if page.is_last {
                break;
            }
        }
        assert!(starts.len() >= 3, "{class}");
        for (start, hints) in starts.into_iter().rev() {
            reader.seek(start).unwrap();
            assert_eq!(reader.page().unwrap().hints, hints, "{class}");
        }
    }
}

/// Files of Cassandra 3 have another number, and the same bytes.
#[test]
fn files_of_every_version_are_read() {
    for version in [Version::V1, Version::V2, Version::V3] {
        let descriptor = Descriptor { host_id: [1; 16], millis: 1, version, compression: None };
        let mut bytes = Vec::new();
        descriptor.encode(&mut bytes);
        assert!(Descriptor::is_file_name(&descriptor.file_name()));
        assert_eq!(Descriptor::decode(&bytes).unwrap(), (descriptor, bytes.len()));
    }
}

#[test]
fn kinds_that_are_not_read_are_refused_by_name() {
    let with = |parameters: &str| {
        let descriptor = Descriptor { host_id: [1; 16], millis: 1, version: Version::V3, compression: None };
        let mut bytes = Vec::new();
        descriptor.encode(&mut bytes);
        let mut crc = crc32fast::Hasher::new();
        crc.update(&3u32.to_be_bytes());
        for half in [1u32, 0, 0x0101_0101, 0x0101_0101, 0x0101_0101, 0x0101_0101] {
            crc.update(&half.to_be_bytes());
        }
        crc.update(&(parameters.len() as u32).to_be_bytes());
        bytes.truncate(28);
        bytes.extend_from_slice(&(parameters.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&crc.clone().finalize().to_be_bytes());
        bytes.extend_from_slice(parameters.as_bytes());
        crc.update(parameters.as_bytes());
        bytes.extend_from_slice(&crc.finalize().to_be_bytes());
        Descriptor::decode(&bytes).map(|(descriptor, _)| descriptor.compression.is_some()).map_err(|e| e.to_string())
    };
    assert_eq!(with("{}"), Ok(false));
    assert_eq!(with(r#"{"compression":{"class_name":"LZ4Compressor"}}"#), Ok(true));
    assert_eq!(with(r#"{"encryption":{"cipher":"x"}}"#), Err("an encrypted file cannot be read".to_owned()));
    assert_eq!(
        with(r#"{"compression":{"class_name":"XCompressor"}}"#),
        Err("there is no compressor XCompressor cannot be read".to_owned())
    );
}

/// The next file has a later time than those that are there.
#[test]
fn a_file_of_the_end_of_time_is_left_alone() {
    let sim = Sim::new(7);
    let descriptor = Descriptor { host_id: [1; 16], millis: i64::MAX, version: Version::V3, compression: None };
    let mut bytes = Vec::new();
    descriptor.encode(&mut bytes);
    bytes.extend_from_slice(Entry::of_hint(&[1; 100]).unwrap().bytes());
    let path = put_file(&sim, &descriptor.file_name(), &bytes);
    let store = HintStore::open(&sim.env(), options(None)).unwrap();
    assert!(store.pending().is_empty());
    assert!(store.add([1; 16], &Entry::of_hint(&[2; 100]).unwrap()));
    assert_eq!(sim.block_on(store.durable()), Ok(()));
    let file = store.take_file(&[1; 16]).unwrap();
    assert_eq!(hints_of(&sim, &store.path(&file)).unwrap(), [vec![2; 100]]);
    assert_eq!(sim.env().disk.read_all(&path, 1000).unwrap(), bytes);
}

/// An operator may have copied a file under another name.
#[test]
fn a_file_under_another_name_holds_up_no_others() {
    let sim = Sim::new(8);
    let path = put_file(&sim, &GOLDEN_NAME.replace("-1795376665385-", "-1795376665386-"), GOLDEN);
    let store = HintStore::open(&sim.env(), options(None)).unwrap();
    let host_id = Descriptor::decode(GOLDEN).unwrap().0.host_id;
    assert!(store.add(host_id, &Entry::of_hint(&[1; 100]).unwrap()));
    let file = store.take_file(&host_id).unwrap();
    assert_eq!(hints_of(&sim, &store.path(&file)).unwrap(), [vec![1; 100]]);
    assert_eq!(store.left_alone(), [path.file_name().unwrap().to_str().unwrap()]);
    sim.env().disk.remove_file(&path).unwrap();
    assert!(store.left_alone().is_empty(), "it was taken away");
}

#[test]
fn memory_is_bounded_and_a_refusal_is_counted() {
    let sim = Sim::new(4);
    let store = HintStore::open(&sim.env(), options(None)).unwrap();
    let entry = Entry::of_hint(&vec![7; 1 << 20]).unwrap();
    let fit = BUFFER_SIZE_MAX / ((1 << 20) + ENTRY_OVERHEAD);
    let taken = (0..fit + 5).filter(|_| store.add([1; 16], &entry)).count();
    assert_eq!((taken, store.figures().refused.get()), (fit, 5));
    assert!(!store.add([1; 16], &Entry::of_hint(&vec![0; BUFFER_SIZE_MAX / 2]).unwrap()));
    sim.run_until_idle();
    assert!(store.add([1; 16], &entry), "the writer has made room without a wait");
}

#[test]
fn a_full_disk_keeps_hints_in_memory_until_it_has_room() {
    let sim = Sim::new(5);
    let store = HintStore::open(&sim.env(), options(None)).unwrap();
    let entry = |n: u8| Entry::of_hint(&[n; 100]).unwrap();
    assert!(store.add([1; 16], &entry(1)));
    assert_eq!(sim.block_on(store.durable()), Ok(()));
    sim.disk().inject(Fault { op: Op::Write, path: "hints".to_owned(), skip: 0, times: u64::MAX, errno: ENOSPC });
    assert!(store.add([1; 16], &entry(2)));
    assert!(sim.block_on(store.durable()).is_err());
    assert!(store.add([1; 16], &entry(3)));
    sim.disk().heal();
    sim.advance(Duration::from_secs(10));
    sim.run_until_idle();
    assert_eq!(sim.block_on(store.durable()), Ok(()));
    let mut found = Vec::new();
    while let Some(file) = store.take_file(&[1; 16]) {
        found.extend(hints_of(&sim, &store.path(&file)).unwrap());
        store.remove_sent(file);
    }
    assert_eq!(found, [vec![1; 100], vec![2; 100], vec![3; 100]]);
    assert!(sim.env().disk.list_dir(&directory()).unwrap().is_empty());
    assert_eq!(store.size(&[1; 16]), 0);
}

/// However short the time is after which hints are written.
#[test]
fn a_full_disk_is_not_tried_again_without_a_pause() {
    let sim = Sim::new(11);
    let settings = Settings { flush_period: Duration::ZERO, ..Settings::default() };
    let store = HintStore::open(&sim.env(), StoreOptions { settings, ..options(None) }).unwrap();
    sim.disk().inject(Fault { op: Op::Write, path: "hints".to_owned(), skip: 0, times: u64::MAX, errno: ENOSPC });
    assert!(store.add([1; 16], &Entry::of_hint(&[1; 100]).unwrap()));
    let steps = (0..100).filter(|_| sim.step()).count();
    assert!(steps < 100 && store.figures().failed_writes.get() == 1, "{steps} steps");
    sim.disk().heal();
    sim.advance(Duration::from_secs(1));
    sim.run_until_idle();
    assert_eq!(store.pending().len(), 1, "it is tried again");
}

#[test]
fn a_file_is_closed_when_it_has_its_size() {
    let sim = Sim::new(6);
    let settings = Settings { file_size_max: 10_000, ..Settings::default() };
    let store = HintStore::open(&sim.env(), StoreOptions { settings, ..options(None) }).unwrap();
    for n in 0..50u8 {
        assert!(store.add([1; 16], &Entry::of_hint(&[n; 1000]).unwrap()));
    }
    let pending = store.pending();
    assert!(pending.is_empty(), "nothing is on the disk");
    store.put_back(store.take_file(&[1; 16]).unwrap());
    let pending = store.pending();
    assert_eq!((pending.len(), pending[0].files), (1, 5));
    assert!(pending[0].oldest_millis < pending[0].newest_millis);
    // a file that is being sent goes when it comes back
    let file = store.take_file(&[1; 16]).unwrap();
    assert_eq!(store.take_file(&[1; 16]), None, "one at a time");
    store.truncate(Some(&[1; 16]));
    store.put_back(file);
    assert!(sim.env().disk.list_dir(&directory()).unwrap().is_empty());
}

/// A store on a machine on bad days: what was durable is there after every crash, and nothing that
/// was not given.
#[test]
fn no_durable_hint_is_lost() {
    for seed in 1..=60 {
        bad_days(seed);
    }
}

fn bad_days(seed: u64) {
    let sim = Sim::new(seed);
    let dice = sim.dice();
    let compression = dice.chance(40).then(|| Compression::new("LZ4Compressor", None).unwrap());
    let settings = Settings { file_size_max: 2000 + dice.below(20_000), ..Settings::default() };
    let options = StoreOptions { settings, ..options(compression) };
    let (mut next, mut durable, mut given) = (0u64, BTreeSet::new(), BTreeMap::new());
    for _ in 0..6 {
        let opened = HintStore::open(&sim.env(), options.clone());
        let Ok(store) = opened else {
            sim.disk().heal();
            continue;
        };
        let life = next;
        for _ in 0..dice.below(12) {
            for _ in 0..dice.below(20) {
                let (host, length) = (1 + dice.below(3) as u8, dice.below(3000) as usize);
                let mut hint = next.to_be_bytes().to_vec();
                hint.resize(8 + length, next as u8);
                if store.add([host; 16], &Entry::of_hint(&hint).unwrap()) {
                    given.insert(next, (host, hint));
                }
                next += 1;
            }
            match dice.below(6) {
                0 => {
                    let op = [Op::Write, Op::Sync, Op::Create, Op::SyncDir, Op::SetLen][dice.below(5) as usize];
                    let (skip, times) = (dice.below(4), 1 + dice.below(3));
                    sim.disk().inject(Fault { op, path: "hints".to_owned(), skip, times, errno: ENOSPC });
                }
                1 => sim.disk().power_cut_after(dice.below(30)),
                2 => sim.advance(Duration::from_secs(dice.below(30))),
                _ => {
                    let wait = store.durable();
                    let mut waited = std::pin::pin!(wait);
                    for _ in 0..200 {
                        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                        match std::future::Future::poll(waited.as_mut(), &mut context) {
                            std::task::Poll::Ready(Ok(())) => {
                                durable.extend(given.range(life..).map(|(number, _)| *number));
                                break;
                            }
                            std::task::Poll::Ready(Err(_)) => break,
                            std::task::Poll::Pending => drop(sim.step()),
                        }
                    }
                }
            }
        }
        if dice.chance(50) {
            sim.power_cut();
        } else {
            sim.kill();
        }
        drop(store);
        sim.disk().heal();
    }
    let store = HintStore::open(&sim.env(), options).unwrap();
    let mut found = BTreeSet::new();
    for host in 1..=3u8 {
        while let Some(file) = store.take_file(&[host; 16]) {
            for hint in hints_of(&sim, &store.path(&file)).unwrap() {
                let number = u64::from_be_bytes(*hint.first_chunk().unwrap());
                assert_eq!(given.get(&number), Some(&(host, hint)), "seed {seed}: hint {number}");
                found.insert(number);
            }
            store.remove_sent(file);
        }
    }
    let lost: Vec<_> = durable.difference(&found).collect();
    assert!(lost.is_empty(), "seed {seed}: durable hints are lost: {lost:?}");
}
