//! Reads of Cassandra's files by key, by slice and backwards, against what a scan of the whole
//! gives: in each version, with large partitions, range tombstones across blocks, and both
//! clustering orders.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rows::codec::{EncodedCell, EncodingStatsCollector, Header, RowVisitor};
use rows::command::RingBound;
use rows::merge::MergeStream;
use rows::{
    ClusteringPrefix, ClusteringValues, DeletionTime, Liveness, MaybeEncoded, PartitionHead, PartitionRange,
    PartitionStream, RangeTombstoneMarker, ReadCommand, ReadContext, ReadMode, Row, Shown, Slice, Slices, Unfiltered,
};
use schema::table::ColumnSpec;
use schema::{ClusteringComparator, ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::{Descriptor, NoCache, SSTable, SSTableId, SSTableWriter, Version, WriterOptions};
use types::byte_comparable::{ByteForm, encode_local_token_in};
use types::collection::build_tuple;
use types::{CqlType, DecoratedKey};

use crate::fixtures::{self, VERSIONS};
use crate::model::Random;

/// A partition as a scan gives it.
struct Whole {
    head: PartitionHead,
    unfiltereds: Vec<Unfiltered>,
}

fn decode(sstable: &SSTable) -> Vec<Whole> {
    let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).unwrap();
    let mut all = Vec::new();
    while let Some(head) = stream.next_partition().unwrap() {
        all.push(Whole { head, unfiltereds: rest(&mut stream) });
    }
    all
}

fn rest(stream: &mut dyn PartitionStream) -> Vec<Unfiltered> {
    std::iter::from_fn(|| stream.next_unfiltered().unwrap()).collect()
}

/// Partitions of a stream, each read as far as `reads` says of its number.
fn partly(mut stream: impl PartitionStream, reads: impl Fn(usize) -> usize) -> Vec<(PartitionHead, Vec<Unfiltered>)> {
    let mut all = Vec::new();
    while let Some(head) = stream.next_partition().unwrap() {
        let mut unfiltereds = Vec::new();
        while unfiltereds.len() < reads(all.len()) {
            let Some(next) = stream.next_maybe_encoded().unwrap() else { break };
            unfiltereds.push(next.decode().unwrap());
        }
        all.push((head, unfiltereds));
    }
    all
}

/// A scan that goes through the data gives what one by the index gives, also where partitions are
/// left in the middle.
#[test]
fn a_scan_through_the_data_passes_the_same_partitions() {
    let context = ReadContext::new(ReadMode::Background);
    let depths: [fn(usize) -> usize; 4] =
        [|_| usize::MAX, |_| 0, |number| number % 3, |number| if number % 2 == 0 { usize::MAX } else { 1 }];
    for fixture in fixtures::all(&VERSIONS) {
        let sstable = fixture.open();
        let (whole, header) = (decode(&sstable), sstable.scan_header().clone());
        let [Some(first), Some(last)] = [whole.first(), whole.last()].map(|one| one.map(|one| one.head.key.token))
        else {
            panic!("a fixture has partitions");
        };
        // without the first and the last
        let bound = |token, inclusive| RingBound::Token { token, inclusive };
        let range = PartitionRange::Range { start: bound(first, false), end: bound(last, false) };
        for reads in depths {
            let expected = |inside: &dyn Fn(&PartitionHead) -> bool| {
                let inside = whole.iter().filter(|one| inside(&one.head)).enumerate();
                let read = |(number, one): (usize, &Whole)| {
                    (one.head.clone(), one.unfiltereds.iter().take(reads(number)).cloned().collect::<Vec<_>>())
                };
                inside.map(read).collect::<Vec<_>>()
            };
            let all = sstable.scan_encoded(&context, &header).unwrap();
            assert_eq!(partly(all, reads), expected(&|_| true), "{}", fixture.table_name);
            let some = sstable.scan_range_encoded(range.clone(), &context, &header).unwrap();
            assert_eq!(partly(some, reads), expected(&|head| range.contains(&head.key)), "{}", fixture.table_name);
        }
    }
}

/// Timestamp, path and value of a cell.
type SeenCell = (i64, Vec<u8>, Vec<u8>);

/// The rows of a partition as their visitor sees them, and what cannot be shown as it is.
#[derive(Default, Debug, PartialEq)]
struct Seen {
    rows: Vec<(ClusteringValues, Liveness, Vec<SeenCell>)>,
    /// Each with the number of rows before it.
    decoded: Vec<(usize, Unfiltered)>,
}

impl RowVisitor for Seen {
    fn begin(&mut self, clustering: &ClusteringValues, liveness: &Liveness) {
        self.rows.push((clustering.clone(), *liveness, Vec::new()));
    }

    fn cell(&mut self, cell: EncodedCell<'_>) {
        let (_, _, cells) = self.rows.last_mut().unwrap();
        cells.push((cell.timestamp, cell.path.unwrap_or_default().to_vec(), cell.value.to_vec()));
    }
}

/// Goes through a stream; `most`: rows that are shown at a time, 0: rows are only given.
fn seen(mut stream: impl PartitionStream, most: usize) -> (Vec<(PartitionHead, Seen)>, (usize, usize)) {
    let (mut all, mut shown, mut ends) = (Vec::new(), 0, 0);
    while let Some(head) = stream.next_partition().unwrap() {
        let mut seen = Seen::default();
        loop {
            let at_once = if most > 0 { stream.show_encoded(&mut seen, most).unwrap() } else { Shown::default() };
            assert!(at_once.rows <= most);
            shown += at_once.rows;
            if at_once.has_ended {
                ends += 1;
                // a caller that asks once more hears the same
                assert_eq!(stream.next_maybe_encoded().unwrap().map(|next| next.decode()), None);
                break;
            }
            if at_once.rows > 0 {
                continue;
            }
            match stream.next_maybe_encoded().unwrap() {
                Some(MaybeEncoded::Encoded(row)) => row.visit(&mut seen).unwrap(),
                Some(MaybeEncoded::Decoded(unfiltered)) => seen.decoded.push((seen.rows.len(), unfiltered)),
                None => break,
            }
        }
        all.push((head, seen));
    }
    (all, (shown, ends))
}

/// Rows are shown as they would be given: by one SSTable, by a merge whose sources have other
/// partitions, and not by one whose sources have the same.
#[test]
fn rows_are_shown_as_they_are_given() {
    let context = ReadContext::new(ReadMode::Background);
    let mut shown = [(0, 0); 3];
    for fixture in fixtures::all(&VERSIONS[..1]) {
        let sstable = fixture.open();
        let header = sstable.scan_header().clone();
        let half = decode(&sstable).iter().map(|one| one.head.key.token).nth(1);
        let Some(half) = half else { continue };
        let bound = |inclusive| RingBound::Token { token: half, inclusive };
        let scan = |start, end| -> Box<dyn PartitionStream> {
            let range = PartitionRange::Range { start, end };
            Box::new(sstable.scan_range_encoded(range, &context, &header).unwrap())
        };
        let whole = || scan(RingBound::Open, RingBound::Open);
        let apart = || vec![scan(bound(false), RingBound::Open), scan(RingBound::Open, bound(true))];
        let merge = |streams| MergeStream::new(Arc::clone(sstable.table()), streams, false).passing();
        for most in [1, 3] {
            let forms = [
                (seen(whole(), 0), seen(whole(), most)),
                (seen(merge(apart()), 0), seen(merge(apart()), most)),
                (seen(merge(vec![whole(), whole()]), 0), seen(merge(vec![whole(), whole()]), most)),
            ];
            for (form, ((given, none), (looked_at, count))) in forms.into_iter().enumerate() {
                assert_eq!((given, none), (looked_at, (0, 0)), "{} {form} {most}", fixture.table_name);
                shown[form] = (shown[form].0 + count.0, shown[form].1 + count.1);
            }
        }
    }
    let is_some = |(rows, ends): (usize, usize)| rows > 100 && ends > 100;
    assert!(is_some(shown[0]) && is_some(shown[1]) && shown[2] == (0, 0), "{shown:?}");
}

fn command(sstable: &SSTable, range: PartitionRange, slices: Slices, reversed: bool) -> ReadCommand {
    ReadCommand { slices, reversed, now: 1_600_000_000, ..ReadCommand::whole(sstable.table(), range) }
}

fn rows(unfiltereds: &[Unfiltered]) -> Vec<&Row> {
    let rows = unfiltereds.iter().filter_map(|one| match one {
        Unfiltered::Row(row) => Some(row),
        Unfiltered::Marker(_) => None,
    });
    rows.collect()
}

/// The ranges that markers, in clustering order, delete; neighbours of one deletion are one.
fn ranges(unfiltereds: &[Unfiltered], comparator: &ClusteringComparator) -> Vec<(Slice, DeletionTime)> {
    let mut ranges: Vec<(Slice, DeletionTime)> = Vec::new();
    let mut open: Option<(ClusteringPrefix, DeletionTime)> = None;
    for unfiltered in unfiltereds {
        let Unfiltered::Marker(marker) = unfiltered else { continue };
        assert_eq!(marker.close, open.as_ref().map(|open| open.1));
        if let Some((start, deletion)) = open.take() {
            ranges.push((Slice { start, end: marker.position.clone() }, deletion));
        }
        open = marker.open.map(|deletion| (marker.position.clone(), deletion));
    }
    assert_eq!(open, None);
    ranges.retain(|(slice, _)| slice.start.compare(&slice.end, comparator).is_lt());
    ranges.dedup_by(|next, before| {
        let joined = before.1 == next.1 && before.0.end.compare(&next.0.start, comparator).is_eq();
        if joined {
            before.0.end = next.0.end.clone();
        }
        joined
    });
    ranges
}

/// The parts of ranges that lie in slices; positions by where they sort.
fn cut(
    ranges: &[(Slice, DeletionTime)],
    slices: &Slices,
    comparator: &ClusteringComparator,
) -> Vec<(Slice, DeletionTime)> {
    let mut cut = Vec::new();
    for slice in slices.0.iter() {
        for (range, deletion) in ranges {
            let later = |a: &ClusteringPrefix, b: &ClusteringPrefix| {
                if a.compare(b, comparator).is_lt() { b.clone() } else { a.clone() }
            };
            let earlier = |a: &ClusteringPrefix, b: &ClusteringPrefix| {
                if a.compare(b, comparator).is_gt() { b.clone() } else { a.clone() }
            };
            let both = Slice { start: later(&range.start, &slice.start), end: earlier(&range.end, &slice.end) };
            if both.start.compare(&both.end, comparator).is_lt() {
                cut.push((both, *deletion));
            }
        }
    }
    cut
}

fn same(a: &[(Slice, DeletionTime)], b: &[(Slice, DeletionTime)], comparator: &ClusteringComparator) -> bool {
    let equal = |a: &ClusteringPrefix, b: &ClusteringPrefix| a.compare(b, comparator).is_eq();
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| a.1 == b.1 && equal(&a.0.start, &b.0.start) && equal(&a.0.end, &b.0.end))
}

fn check(sstable: &SSTable, whole: &Whole, slices: &Slices, reversed: bool) {
    let comparator = &sstable.table().comparator;
    let range = PartitionRange::Key(whole.head.key.clone());
    let command = command(sstable, range, slices.clone(), reversed);
    let mut stream = sstable.read(&command, &ReadContext::new(ReadMode::Background)).unwrap();
    let head = stream.next_partition().unwrap().expect("the partition is there");
    assert_eq!(head, whole.head);
    let mut found = rest(&mut stream);
    assert_eq!(stream.next_partition().unwrap(), None);
    if reversed {
        found.reverse();
    }
    let wanted = rows(&whole.unfiltereds);
    let wanted: Vec<&Row> = wanted
        .into_iter()
        .filter(|row| slices.0.iter().any(|slice| slice.contains(&row.clustering, comparator)))
        .collect();
    assert_eq!(rows(&found), wanted, "{:?} reversed {reversed} {slices:#?}", sstable.descriptor());
    let (found, wanted) =
        (ranges(&found, comparator), cut(&ranges(&whole.unfiltereds, comparator), slices, comparator));
    let merged = |list: Vec<(Slice, DeletionTime)>| cut(&list, &Slices::all(), comparator);
    assert!(same(&found, &merged(wanted.clone()), comparator), "{slices:#?} {found:#?} {wanted:#?}");
}

fn random_bound(whole: &Whole, random: &mut Random, starts: bool) -> ClusteringPrefix {
    let place = &whole.unfiltereds[random.below(whole.unfiltereds.len() as u64) as usize];
    let mut values = place.values().clone();
    values.truncate(random.below(values.len() as u64 + 3) as usize);
    let inclusive = values.is_empty() || random.below(2) == 0;
    if starts { ClusteringPrefix::start(values, inclusive) } else { ClusteringPrefix::end(values, inclusive) }
}

#[test]
fn slices_of_large_partitions_and_deletions() {
    let mut random = Random::new(11);
    for fixture in fixtures::all(&VERSIONS) {
        let rounds = match fixture.table_name.as_str() {
            "wide50k" => 8,
            "wide_ci" => 30,
            "dels" | "dels_desc" | "st_basic" | "cs_dense2" => 40,
            _ => continue,
        };
        let sstable = fixture.open();
        for whole in decode(&sstable) {
            if whole.unfiltereds.is_empty() {
                continue;
            }
            let comparator = &sstable.table().comparator;
            for reversed in [false, true] {
                check(&sstable, &whole, &Slices::all(), reversed);
                for round in 0..rounds {
                    let count = 1 + round % 3;
                    let slices = (0..count).map(|number| match (round + number) % 4 {
                        0 => Slice::of_prefix(random_bound(&whole, &mut random, true).values),
                        _ => Slice {
                            start: random_bound(&whole, &mut random, true),
                            end: random_bound(&whole, &mut random, false),
                        },
                    });
                    let slices = Slices::normalized(slices.collect(), comparator);
                    check(&sstable, &whole, &slices, reversed);
                }
            }
        }
    }
}

#[test]
fn every_key_is_found_and_none_else() {
    for fixture in fixtures::all(&VERSIONS) {
        let sstable = fixture.open();
        let all = decode(&sstable);
        assert_eq!(all.len() as u64, sstable.partition_count(), "{:?}", fixture.descriptor);
        assert_eq!((&all[0].head.key, &all[all.len() - 1].head.key), (sstable.first_key(), sstable.last_key()));
        assert!(sstable.notes().is_empty(), "{:?}", sstable.notes());
        let open = |range: PartitionRange| {
            let command = command(&sstable, range, Slices::none(), false);
            sstable.read(&command, &ReadContext::new(ReadMode::Background)).unwrap()
        };
        for (number, whole) in all.iter().enumerate().step_by(1 + all.len() / 500) {
            let key = &whole.head.key;
            let head = open(PartitionRange::Key(key.clone())).next_partition().unwrap();
            assert_eq!(head.as_ref(), Some(&whole.head), "{:?}", fixture.descriptor);
            let mut other = key.key.to_vec();
            other.push(7);
            let other = DecoratedKey::new(other.into());
            assert_eq!(open(PartitionRange::Key(other)).next_partition().unwrap(), None);
            // the scan from there
            for inclusive in [true, false] {
                let start = RingBound::Key { key: key.clone(), inclusive };
                let next = open(PartitionRange::Range { start, end: RingBound::Open }).next_partition().unwrap();
                let expected = all.get(number + usize::from(!inclusive));
                assert_eq!(next.as_ref(), expected.map(|whole| &whole.head));
                let start = RingBound::Token { token: key.token, inclusive };
                let next = open(PartitionRange::Range { start, end: RingBound::Open }).next_partition().unwrap();
                assert_eq!(next.as_ref(), expected.map(|whole| &whole.head));
            }
        }
    }
}

/// The keys of a legacy index are found by either form of NaNs and of empty fields: that which is
/// written here, and Cassandra's.
#[test]
fn keys_of_legacy_indexes_are_found_whoever_wrote() {
    /// With this many NaNs several have the same byte of hash in the trie, which cannot tell them
    /// apart.
    const NANS: u64 = 1_500;
    const FIRST_NAN: u64 = 0x7ff8_0000_0000_0000;
    let double = |bits: u64| Bytes::copy_from_slice(&bits.to_be_bytes());
    let doubles = [1_f64.to_bits()].into_iter().chain(FIRST_NAN..FIRST_NAN + NANS).map(double).collect::<Vec<_>>();
    let tuple =
        |first: i32, second: &[u8]| Bytes::from(build_tuple(&[Some(first.to_be_bytes().as_slice()), Some(second)]));
    let tuples = (1..4).flat_map(|first| [tuple(first, &[]), tuple(first, &5_i32.to_be_bytes())]).collect();
    let pairs = CqlType::Tuple(vec![CqlType::Int, CqlType::Int].into());
    for (ty, keys) in [(CqlType::Double, doubles), (pairs, tuples)] {
        let spec = |name: &str, kind, ty| ColumnSpec { name: name.to_owned(), kind, position: 0, ty, reversed: false };
        let indexed = spec("k", ColumnKind::PartitionKey, ty.clone());
        let specs = vec![indexed, spec("c", ColumnKind::Clustering, CqlType::Int)];
        let (id, kind, flags) = (TableId([9; 16]), TableKind::Index, TableFlags::COMPOUND);
        let none = BTreeMap::new();
        let mut table = TableMetadata::new(id, "ks", "t.i", kind, flags, TableParams::default(), specs, none, None);
        table.local_order = Some(ty.clone());
        let table = Arc::new(table);
        let (missing, written) = keys.split_last().unwrap();
        for forms in [ByteForm::Ordered, ByteForm::Cassandra] {
            let directory = fixtures::output("legacy-index");
            let env = env::real::env();
            let descriptor = Descriptor::new(directory.path(), Version::DA, SSTableId::Sequence(1));
            let options = WriterOptions::for_table(&table, written.len() as u64).unwrap();
            let header = Header::for_table(&table, EncodingStatsCollector::default().finish());
            let mut writer = SSTableWriter::new(&env, descriptor.clone(), Arc::clone(&table), options, header).unwrap();
            for key in written {
                let mut form = Vec::new();
                encode_local_token_in(forms, &ty, key, &mut form);
                let key = DecoratedKey { local: Some(form.into()), ..table.decorate(key.clone()) };
                writer.start_partition(&key, DeletionTime::new(10, 1_600_000_000));
                writer.end_partition().unwrap();
            }
            writer.finish().unwrap();
            let sstable = SSTable::open(&env, descriptor, &table, Arc::new(NoCache)).unwrap();
            let find = |key: &Bytes| {
                let command = ReadCommand::whole(&table, PartitionRange::Key(table.decorate(key.clone())));
                let mut stream = sstable.read(&command, &ReadContext::new(ReadMode::Background)).unwrap();
                stream.next_partition().unwrap().map(|head| head.key.key)
            };
            written.iter().for_each(|key| assert_eq!(find(key).as_ref(), Some(key), "{ty:?}, {forms:?}"));
            assert_eq!(find(missing), None, "{ty:?}, {forms:?}");
        }
    }
}

/// A walk backwards that passes blocks of tombstones whole knows which range is open where each of
/// them begins. Otherwise it would end its slice with the marker of a range that is not there, and
/// count it.
#[test]
fn blocks_that_are_passed_backwards_leave_no_range_open() {
    let spec =
        |name: &str, kind| ColumnSpec { name: name.to_owned(), kind, position: 0, ty: CqlType::Int, reversed: false };
    let specs = vec![spec("k", ColumnKind::PartitionKey), spec("c", ColumnKind::Clustering)];
    let (id, kind, flags, params) =
        (TableId([9; 16]), TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    let table = Arc::new(TableMetadata::new(id, "ks", "t", kind, flags, params, specs, BTreeMap::new(), None));
    let int = |value: i32| Bytes::copy_from_slice(&value.to_be_bytes());
    let values = |c: i32| [Some(int(c))].into_iter().collect::<ClusteringValues>();
    let (of_range, of_rows) = (DeletionTime::new(5, 1_600_000_000), DeletionTime::new(9, 1_600_000_000));
    let marker = |position, close, open| Unfiltered::Marker(RangeTombstoneMarker { position, close, open });
    let key = DecoratedKey::new(int(1));
    let slice = Slice { start: ClusteringPrefix::start(values(2), true), end: ClusteringPrefix::end(values(28), true) };
    // two, three and four rows: the range opens behind the first row of a block
    for (version, block) in
        [Version::DA, Version::NB].into_iter().flat_map(|version| [40, 60, 80].map(|block| (version, block)))
    {
        let directory = fixtures::output("passed-backwards");
        let env = env::real::env();
        let descriptor = Descriptor::new(directory.path(), version, SSTableId::Sequence(1));
        let options = WriterOptions { row_index_block: Some(block), ..WriterOptions::for_table(&table, 1).unwrap() };
        let header = Header::for_table(&table, EncodingStatsCollector::default().finish());
        let mut writer = SSTableWriter::new(&env, descriptor.clone(), Arc::clone(&table), options, header).unwrap();
        writer.start_partition(&key, DeletionTime::LIVE);
        for c in 0..40 {
            if c == 25 {
                writer.append(&marker(ClusteringPrefix::start(values(c), true), None, Some(of_range))).unwrap();
            }
            writer.append(&Unfiltered::Row(Row { deletion: of_rows, ..Row::new(values(c)) })).unwrap();
            if c == 30 {
                writer.append(&marker(ClusteringPrefix::end(values(c), true), Some(of_range), None)).unwrap();
            }
        }
        writer.end_partition().unwrap();
        writer.finish().unwrap();
        let sstable = SSTable::open(&env, descriptor, &table, Arc::new(NoCache)).unwrap();
        let slices = Slices::from(vec![slice.clone()]);
        let command = command(&sstable, PartitionRange::Key(key.clone()), slices, true);
        let mut stream = sstable.read(&command, &ReadContext::new(ReadMode::Background)).unwrap();
        stream.next_partition().unwrap().expect("the partition is there");
        let mut count = 0;
        while stream.next_unfiltered().unwrap().is_some() {
            let pass = || Some(stream.pass_tombstones(u64::MAX).unwrap()).filter(|passed| *passed > 0);
            count += 1 + std::iter::from_fn(pass).sum::<u64>();
        }
        // 27 rows, and the two ends of the range
        assert_eq!(count, 29, "blocks of {block} bytes in {version:?}");
    }
}
