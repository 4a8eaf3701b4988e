//! Where streams end by limits, and how range tombstones are closed there.

use std::collections::BTreeMap;

use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableParams};
use types::{CqlType, DecoratedKey};

use super::*;
use crate::{ClusteringPrefix, Liveness, PrefixKind};

const NOW: u32 = 1_000;

/// `(k text, c int, d int, PRIMARY KEY (k, c, d))`
fn table() -> Arc<TableMetadata> {
    let column = |name: &str, kind, position| ColumnSpec {
        name: name.to_owned(),
        kind,
        position,
        ty: CqlType::Int,
        reversed: false,
    };
    let specs = vec![
        column("k", ColumnKind::PartitionKey, 0),
        column("c", ColumnKind::Clustering, 0),
        column("d", ColumnKind::Clustering, 1),
    ];
    let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
    Arc::new(TableMetadata::new(TableId([1; 16]), "k", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

fn values(values: &[i32]) -> ClusteringValues {
    values.iter().map(|value| Some(Bytes::copy_from_slice(&value.to_be_bytes()))).collect()
}

fn row(c: i32, d: i32) -> Unfiltered {
    Unfiltered::Row(Row { liveness: Liveness::new(9), ..Row::new(values(&[c, d])) })
}

fn dead(c: i32, d: i32) -> Unfiltered {
    Unfiltered::Row(Row { deletion: DeletionTime::new(9, 900), ..Row::new(values(&[c, d])) })
}

fn marker(kind: PrefixKind, c: i32) -> Unfiltered {
    let deletion = Some(DeletionTime::new(5, 900));
    let (close, open) = if kind.is_start() { (None, deletion) } else { (deletion, None) };
    let position = ClusteringPrefix { kind, values: values(&[c]) };
    Unfiltered::Marker(RangeTombstoneMarker { position, close, open })
}

/// A partition: its key, whether it has a live static row, and its items.
type Partition = (&'static str, bool, Vec<Unfiltered>);

struct Given(std::vec::IntoIter<Partition>, std::vec::IntoIter<Unfiltered>);

impl PartitionStream for Given {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some((key, has_static, items)) = self.0.next() else { return Ok(None) };
        self.1 = items.into_iter();
        let key = DecoratedKey::new(Bytes::from_static(key.as_bytes()));
        let static_row = has_static.then(|| Row { liveness: Liveness::new(9), ..Row::new(ClusteringValues::new()) });
        Ok(Some(PartitionHead::new(key, DeletionTime::LIVE, static_row)))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.1.next())
    }
}

/// Reads a stream under limits and shows it: `a[1:2 (3`.
fn limited(partitions: Vec<Partition>, limits: &ReadLimits, reversed: bool) -> String {
    let given = Given(partitions.into_iter(), Vec::new().into_iter());
    let mut stream = LimitedStream::new(given, &table(), limits, NOW, reversed, true);
    let mut shown = Vec::new();
    while let Some(head) = stream.next_partition().expect("readable") {
        let mut items = Vec::new();
        while let Some(item) = stream.next_unfiltered().expect("readable") {
            let number = |value: &Option<Bytes>| {
                i32::from_be_bytes(value.as_deref().expect("a value").try_into().expect("an int")).to_string()
            };
            let values = item.values().iter().map(number).collect::<Vec<_>>().join(":");
            items.push(match &item {
                Unfiltered::Row(row) if row.is_live(NOW) => values,
                Unfiltered::Row(_) => format!("-{values}"),
                Unfiltered::Marker(_) => format!("{}@{values}", item.kind().name()),
            });
        }
        let key = String::from_utf8_lossy(&head.key.key).into_owned();
        let with_static = if head.static_row.is_some() { "+" } else { "" };
        shown.push(format!("{key}{with_static}[{}]", items.join(" ")));
    }
    shown.join(" ")
}

/// The tens of a number: `1` for what is from 10 to 19.
struct Tens;

impl GroupValues for Tens {
    fn value(&self, of: Option<&Bytes>) -> Result<Option<Bytes>, ReadError> {
        let wrong = || ReadError::Function { why: "not an int".to_owned() };
        let number = of.map(|bytes| bytes[..].try_into().map(i32::from_be_bytes).map_err(|_| wrong())).transpose()?;
        Ok(number.map(|number| Bytes::copy_from_slice(&(number / 10).to_be_bytes())))
    }

    fn is_same(&self, one: Option<&Bytes>, other: Option<&Bytes>) -> bool {
        one == other
    }
}

/// Groups by the tens of `d` within `c`.
fn tens(groups: u32, per_partition: u32, state: Option<GroupState>) -> ReadLimits {
    let function = GroupFunction { values: Some(Arc::new(Tens)), ..GroupFunction::new(GroupSelector::Column) };
    let grouping = Grouping::ByFunction { columns: 2, function };
    let counting = Counting::Groups { groups, per_partition, grouping, state };
    ReadLimits { rows: NO_LIMIT, counting, last: None }
}

#[test]
fn groups_of_a_function_end_where_its_value_changes() {
    let partitions = || {
        let rows = [(1, 1), (1, 9), (1, 10), (1, 12), (2, 12), (2, 13)];
        let rows = rows.into_iter().map(|(c, d)| row(c, d)).collect();
        vec![("a", false, rows), ("b", false, vec![row(2, 13), row(2, 20)])]
    };
    let of = |groups, per_partition, state| limited(partitions(), &tens(groups, per_partition, state), false);
    assert_eq!(of(1, NO_LIMIT, None), "a[1:1 1:9]");
    assert_eq!(of(2, NO_LIMIT, None), "a[1:1 1:9 1:10 1:12]");
    assert_eq!(of(3, NO_LIMIT, None), "a[1:1 1:9 1:10 1:12 2:12 2:13] b[]");
    assert_eq!(of(NO_LIMIT, 1, None), "a[1:1 1:9] b[2:13]");
    // the page before ended within the first group
    let state = |d| Some(GroupState { key: Bytes::from_static(b"a"), clustering: Some(values(&[1, d])) });
    let later = |d, groups| {
        let rows = vec![row(1, 9), row(1, 10), row(1, 12), row(2, 12)];
        limited(vec![("a", false, rows)], &tens(groups, NO_LIMIT, state(d)), false)
    };
    assert_eq!(later(1, 1), "a[1:9]");
    assert_eq!(later(1, 2), "a[1:9 1:10 1:12]");
    // a function that nobody looked up counts nothing
    let mut limits = tens(1, 1, None);
    if let Counting::Groups { grouping: Grouping::ByFunction { function, .. }, .. } = &mut limits.counting {
        function.values = None;
    }
    let given = Given(partitions().into_iter(), Vec::new().into_iter());
    let mut stream = LimitedStream::new(given, &table(), &limits, NOW, false, true);
    stream.next_partition().expect("readable");
    assert!(matches!(stream.next_unfiltered(), Err(ReadError::Function { .. })));
}

fn groups(groups: u32, per_partition: u32, state: Option<GroupState>) -> ReadLimits {
    let counting = Counting::Groups { groups, per_partition, grouping: Grouping::ByPrefix(1), state };
    ReadLimits { rows: NO_LIMIT, counting, last: None }
}

#[test]
fn live_rows_count_and_dead_ones_between_them_are_given() {
    let partitions = || {
        vec![
            ("a", false, vec![dead(0, 0), row(1, 1), dead(1, 2), row(2, 1), dead(2, 2), row(3, 1)]),
            ("b", true, vec![dead(1, 1)]),
            ("c", true, vec![row(1, 1)]),
        ]
    };
    let of = |rows, per_partition| limited(partitions(), &ReadLimits::of_rows(rows, per_partition), false);
    assert_eq!(of(2, NO_LIMIT), "a[-0:0 1:1 -1:2 2:1]");
    assert_eq!(of(NO_LIMIT, 1), "a[-0:0 1:1] b+[-1:1] c+[1:1]");
    // a static row without live rows is one
    assert_eq!(of(4, NO_LIMIT), "a[-0:0 1:1 -1:2 2:1 -2:2 3:1] b+[-1:1]");
    assert_eq!(of(0, NO_LIMIT), "");
}

#[test]
fn a_range_tombstone_that_the_limit_cuts_ends_at_the_last_row() {
    let (open, close) = (PrefixKind::InclStartBound, PrefixKind::InclEndBound);
    let forward = vec![("a", false, vec![marker(open, 1), row(2, 1), row(2, 2), marker(close, 5)])];
    let limits = ReadLimits::of_rows(1, NO_LIMIT);
    assert_eq!(limited(forward, &limits, false), "a[INCL_START_BOUND@1 2:1 INCL_END_BOUND@2:1]");
    let back = vec![("a", false, vec![marker(close, 5), row(2, 2), row(2, 1), marker(open, 1)])];
    assert_eq!(limited(back, &limits, true), "a[INCL_END_BOUND@5 2:2 INCL_START_BOUND@2:2]");
    let ended = vec![("a", false, vec![marker(open, 1), marker(close, 1), row(2, 1), row(2, 2)])];
    assert_eq!(limited(ended, &limits, false), "a[INCL_START_BOUND@1 INCL_END_BOUND@1 2:1]");
}

#[test]
fn a_later_page_counts_what_the_page_before_gave() {
    let partitions = || vec![("a", true, vec![row(3, 1), row(4, 1)]), ("b", false, vec![row(1, 1), row(2, 1)])];
    let last = |remaining| Some(LastPartition { key: Bytes::from_static(b"a"), remaining });
    let of = |remaining| {
        limited(partitions(), &ReadLimits { last: last(remaining), ..ReadLimits::of_rows(NO_LIMIT, 2) }, false)
    };
    assert_eq!(of(1), "a+[3:1] b[1:1 2:1]");
    assert_eq!(of(0), "a+[] b[1:1 2:1]");
    // the static row was counted by the page before
    let without_rows = vec![("a", true, vec![]), ("b", false, vec![row(1, 1), row(2, 1)])];
    let limits = ReadLimits { last: last(5), ..ReadLimits::of_rows(1, 6) };
    assert_eq!(limited(without_rows, &limits, false), "a+[] b[1:1]");
}

#[test]
fn groups_end_where_the_next_one_begins() {
    let partitions = || {
        vec![("a", false, vec![row(1, 1), row(1, 2), row(2, 1), row(3, 1)]), ("b", false, vec![row(1, 1), row(2, 1)])]
    };
    assert_eq!(limited(partitions(), &groups(1, NO_LIMIT, None), false), "a[1:1 1:2]");
    assert_eq!(limited(partitions(), &groups(NO_LIMIT, 2, None), false), "a[1:1 1:2 2:1] b[1:1 2:1]");
    // the last group of a partition is complete when the next partition begins
    assert_eq!(limited(partitions(), &groups(3, NO_LIMIT, None), false), "a[1:1 1:2 2:1 3:1] b[]");
    // the page before ended within the group 1 of a
    let state = GroupState { key: Bytes::from_static(b"a"), clustering: Some(values(&[1, 0])) };
    assert_eq!(limited(partitions(), &groups(1, NO_LIMIT, Some(state)), false), "a[1:1 1:2]");
    // a range tombstone that opens before a row of a group too many ends before that row
    let open = vec![("a", false, vec![row(1, 1), marker(PrefixKind::InclStartBound, 2), row(2, 1)])];
    let expected = "a[1:1 INCL_START_BOUND@2 EXCL_END_BOUND@2:1]";
    assert_eq!(limited(open, &groups(1, NO_LIMIT, None), false), expected);
}
