//! A log that compresses.

use super::*;

fn compressing(class: &str) -> Options {
    Options { compression: Some(Compression::new(class, &BTreeMap::new()).expect("known")), ..small() }
}

fn segment_lengths(sim: &Sim) -> Vec<u64> {
    let disk = sim.env().disk;
    let names = disk.list_dir(&directory()).expect("listed");
    let segments = names.iter().filter(|entry| entry.name.ends_with(".log"));
    segments.map(|entry| disk.file_len(&directory().join(&entry.name)).expect("there")).collect()
}

#[test]
fn full_segments_are_as_long_as_what_is_in_them() {
    for class in ["LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor", "NoopCompressor"] {
        let sim = Sim::new(1);
        let (log, _) = open(&sim, compressing(class));
        let records: Vec<Vec<u8>> = (0..40).map(|number| record(number, 1000)).collect();
        for record in &records {
            let position = log.append(record, &[key(1)]).expect("room");
            sim.block_on(log.wait_durable(position)).expect("durable");
        }
        sim.run_until_idle();
        let full = segment_lengths(&sim)[0];
        if class == "NoopCompressor" {
            assert_eq!(full, 82 + 7 * (8 + 4 + 1012), "a header, and sections with their plain lengths");
        } else {
            assert!(full < 3000, "{class}: {full}");
            assert!(log.stats().size < 40_000, "{class}: {}", log.stats().size);
        }
        sim.power_cut();
        assert_eq!(open(&sim, compressing(class)).1, records, "{class}");
    }
}

#[test]
fn periodic_mode_writes_and_syncs_within_the_tenth_of_a_second() {
    let sim = Sim::new(1);
    let options = Options { sync: SyncMode::Periodic(Duration::from_secs(10)), ..compressing("LZ4Compressor") };
    let (log, _) = open(&sim, options.clone());
    sim.run_until_idle();
    for number in 1..=3 {
        let position = log.append(&record(number, 20), &[]).expect("room");
        sim.block_on(log.wait_durable(position)).expect("at once");
    }
    assert_eq!(log.stats().syncs, 0);
    sim.block_on(sim.env().sleep(Duration::from_millis(101)));
    assert_eq!((log.stats().syncs, log.stats().pending_bytes), (1, 0));
    sim.power_cut();
    assert_eq!(open(&sim, options).1.len(), 3);
}

#[test]
fn a_torn_end_is_cut_and_damage_before_it_is_named() {
    let write = || {
        let sim = Sim::new(1);
        let (log, _) = open(&sim, compressing("LZ4Compressor"));
        for number in 1..=3 {
            let position = log.append(&record(number, 100), &[key(1)]).expect("room");
            sim.block_on(log.wait_durable(position)).expect("durable");
        }
        sim.kill();
        let names = sim.env().disk.list_dir(&directory()).expect("listed");
        let path = directory().join(&names.first().expect("a segment").name);
        let content = sim.env().disk.read_all(&path, 1 << 20).expect("read");
        let header = super::super::format::read_header(&content).expect("a header");
        let mut markers = vec![header.len];
        while let Some(next) = super::super::format::read_marker(&content, header.id, *markers.last().expect("one")) {
            markers.push(next);
        }
        (sim, path, markers)
    };
    let (_, _, markers) = write();
    for place in markers[0]..markers[3] {
        let (sim, path, _) = write();
        assert!(sim.disk().flip_bit(&path, place as usize * 8 + 3));
        let opened = CommitLog::open(&sim.env(), &directory(), compressing("LZ4Compressor")).expect("opened");
        let items: Vec<_> = opened.1.collect();
        let records: Vec<Vec<u8>> = items.iter().flatten().map(|(_, record)| record.to_vec()).collect();
        if records == [record(1, 100), record(2, 100), record(3, 100)] {
            // a block of LZ4 may say the same in other words
            assert!(items.iter().all(Result::is_ok), "{place}");
            continue;
        }
        if place < markers[2] {
            assert!(matches!(items.last(), Some(Err(LogError::Corrupt { .. }))), "{place}: {items:?}");
            continue;
        }
        // the last section was acknowledged too, but nothing tells that from a torn one
        drop(opened.0);
        sim.power_cut();
        for _ in 0..2 {
            assert_eq!(open(&sim, small()).1, [record(1, 100), record(2, 100)], "{place}");
            sim.kill();
        }
        let kept = torn_tails(&sim);
        assert!(kept.len() == 1 && kept[0].ends_with(&format!(".log.torn-{}", markers[2])), "{place}: {kept:?}");
    }
}
