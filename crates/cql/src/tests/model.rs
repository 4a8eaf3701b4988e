//! Random histories of statements against a twin that knows nothing of rows and merging: it
//! remembers every write and every deletion by itself, and finds the value of each cell by asking
//! all of them.
//!
//! Checks planning, execution, reconciliation and paging together. The rules of the twin are those
//! of the documentation: the later timestamp wins, at one timestamp deletions over values, expiring
//! values over others, then the greater value.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::memory::Memory;
use super::{run, spell};
use crate::options::QueryOptions;
use crate::result::CqlResult;

/// A generator of numbers (xorshift): the same seed, the same history.
struct Random(u64);

impl Random {
    fn next(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn number(&mut self, end: u64) -> i32 {
        i32::try_from(self.next(end)).expect("small")
    }

    fn one_in(&mut self, chance: u64) -> bool {
        self.next(chance) == 0
    }
}

/// Names a value: a column, or an element of a map.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ValueName {
    /// The row is there.
    Row,
    /// A column.
    Column(&'static str),
    /// An element of the map.
    Entry(i32),
}

/// A write of the history.
#[derive(Clone, Debug)]
enum Event {
    /// A value, for some time or for ever.
    Write { key: i32, row: Option<(i32, i32)>, name: ValueName, value: i32, time: i64, end: Option<u32> },
    /// A deletion of one value.
    Remove { key: i32, row: Option<(i32, i32)>, name: ValueName, time: i64 },
    /// A deletion of the map.
    RemoveMap { key: i32, row: (i32, i32), time: i64 },
    /// A deletion of rows: `(c, d)` from one to another, both in.
    RemoveRows { key: i32, from: (i32, i32), to: (i32, i32), time: i64 },
    /// A deletion of a partition.
    RemoveAll { key: i32, time: i64 },
}

const LEAST: i32 = i32::MIN;
const MOST: i32 = i32::MAX;

#[derive(Default)]
struct Twin {
    events: Vec<Event>,
}

impl Twin {
    /// The latest deletion that reaches a value.
    fn deleted_at(&self, key: i32, row: Option<(i32, i32)>, name: &ValueName) -> i64 {
        let of = |event: &Event| match event {
            Event::RemoveAll { key: k, time } if *k == key => *time,
            Event::RemoveRows { key: k, from, to, time }
                if *k == key && row.is_some_and(|row| *from <= row && row <= *to) =>
            {
                *time
            }
            Event::RemoveMap { key: k, row: r, time }
                if *k == key && Some(*r) == row && matches!(name, ValueName::Entry(_)) =>
            {
                *time
            }
            _ => i64::MIN,
        };
        self.events.iter().map(of).max().unwrap_or(i64::MIN)
    }

    fn value(&self, key: i32, row: Option<(i32, i32)>, name: &ValueName, now: u32) -> Option<i32> {
        let deleted = self.deleted_at(key, row, name);
        // (time, is a deletion, expires, its end, value): the greatest wins
        let mut best: Option<(i64, bool, bool, u32, i32)> = None;
        for event in &self.events {
            let found = match event {
                Event::Write { key: k, row: r, name: p, value, time, end } if *k == key && *r == row && p == name => {
                    (*time, false, end.is_some(), end.unwrap_or(0), *value)
                }
                Event::Remove { key: k, row: r, name: p, time } if *k == key && *r == row && p == name => {
                    (*time, true, true, 0, 0)
                }
                _ => continue,
            };
            if found.0 > deleted && best.is_none_or(|best| found > best) {
                best = Some(found);
            }
        }
        let (_, removed, expires, end, value) = best?;
        (!removed && (!expires || now < end)).then_some(value)
    }

    fn map(&self, key: i32, row: (i32, i32), now: u32) -> BTreeMap<i32, i32> {
        (0..3).filter_map(|at| Some((at, self.value(key, Some(row), &ValueName::Entry(at), now)?))).collect()
    }

    /// Lines as `SELECT k, c, d, s, v, w, m` shows a partition.
    fn partition(&self, key: i32, now: u32) -> Vec<String> {
        let show = |value: Option<i32>| value.map_or("null".to_owned(), |value| value.to_string());
        let fixed = self.value(key, None, &ValueName::Column("s"), now);
        let mut lines = Vec::new();
        for c in 0..3 {
            // d is clustered in descending order
            for d in (0..3).rev() {
                let row = Some((c, d));
                let v = self.value(key, row, &ValueName::Column("v"), now);
                let w = self.value(key, row, &ValueName::Column("w"), now);
                let map = self.map(key, (c, d), now);
                let there = self.value(key, row, &ValueName::Row, now).is_some();
                if !there && v.is_none() && w.is_none() && map.is_empty() {
                    continue;
                }
                let entries: Vec<_> = map.iter().map(|(at, value)| format!("{at}: {value}")).collect();
                let map = if map.is_empty() { "null".to_owned() } else { format!("{{{}}}", entries.join(", ")) };
                lines.push(format!("{key} | {c} | {d} | {} | {} | {} | {map}", show(fixed), show(v), show(w)));
            }
        }
        if lines.is_empty() && fixed.is_some() {
            lines.push(format!("{key} | null | null | {} | null | null | null", show(fixed)));
        }
        lines
    }
}

/// One random statement, and what the twin makes of it.
fn statement(random: &mut Random, twin: &mut Twin, now: u32) -> String {
    let (key, c, d) = (random.number(3), random.number(3), random.number(3));
    let time = i64::from(random.number(12));
    let row = Some((c, d));
    let whole = format!("k = {key} AND c = {c} AND d = {d}");
    let ttl = random.one_in(4).then(|| random.number(6) + 1);
    let end = ttl.map(|ttl| now + u32::try_from(ttl).expect("positive"));
    let using = ttl.map_or(String::new(), |ttl| format!(" AND TTL {ttl}"));
    let value = random.number(5);
    let mut write = |row, name, value| twin.events.push(Event::Write { key, row, name, value, time, end });
    match random.next(13) {
        0 | 1 => {
            write(row, ValueName::Row, 1);
            write(row, ValueName::Column("v"), value);
            format!("INSERT INTO t (k, c, d, v) VALUES ({key}, {c}, {d}, {value}) USING TIMESTAMP {time}{using}")
        }
        2 => {
            write(row, ValueName::Row, 1);
            twin.events.push(Event::Remove { key, row, name: ValueName::Column("w"), time });
            format!("INSERT INTO t (k, c, d, w) VALUES ({key}, {c}, {d}, null) USING TIMESTAMP {time}{using}")
        }
        3 => {
            write(row, ValueName::Column("v"), value);
            write(row, ValueName::Column("w"), value + 1);
            format!("UPDATE t USING TIMESTAMP {time}{using} SET v = {value}, w = {} WHERE {whole}", value + 1)
        }
        4 => {
            write(None, ValueName::Column("s"), value);
            format!("UPDATE t USING TIMESTAMP {time}{using} SET s = {value} WHERE k = {key}")
        }
        5 => {
            let at = random.number(3);
            write(row, ValueName::Entry(at), value);
            format!("UPDATE t USING TIMESTAMP {time}{using} SET m[{at}] = {value} WHERE {whole}")
        }
        6 => {
            write(row, ValueName::Entry(0), value);
            write(row, ValueName::Entry(2), value);
            // an assignment deletes what was before it: up to one microsecond earlier
            twin.events.push(Event::RemoveMap { key, row: (c, d), time: time - 1 });
            format!("UPDATE t USING TIMESTAMP {time}{using} SET m = {{0: {value}, 2: {value}}} WHERE {whole}")
        }
        7 => {
            let at = random.number(3);
            twin.events.push(Event::Remove { key, row, name: ValueName::Entry(at), time });
            twin.events.push(Event::Remove { key, row, name: ValueName::Column("v"), time });
            format!("DELETE m[{at}], v FROM t USING TIMESTAMP {time} WHERE {whole}")
        }
        8 => {
            twin.events.push(Event::RemoveMap { key, row: (c, d), time });
            format!("DELETE m FROM t USING TIMESTAMP {time} WHERE {whole}")
        }
        9 => {
            twin.events.push(Event::RemoveRows { key, from: (c, d), to: (c, d), time });
            format!("DELETE FROM t USING TIMESTAMP {time} WHERE {whole}")
        }
        10 => range_deletion(random, twin, key, time),
        11 if random.one_in(3) => {
            twin.events.push(Event::RemoveAll { key, time });
            format!("DELETE FROM t USING TIMESTAMP {time} WHERE k = {key}")
        }
        _ => {
            let also = (key + 1) % 3;
            for key in [key, also] {
                for d in [0, d] {
                    let row = Some((c, d));
                    twin.events.push(Event::Write { key, row, name: ValueName::Column("w"), value, time, end });
                }
            }
            format!(
                "BEGIN BATCH UPDATE t USING TIMESTAMP {time}{using} SET w = {value} WHERE k IN ({key}, {also}) AND c = {c} AND d = 0; \
                 UPDATE t USING TIMESTAMP {time}{using} SET w = {value} WHERE k IN ({also}, {key}) AND c = {c} AND d IN ({d}, 0); \
                 APPLY BATCH"
            )
        }
    }
}

fn range_deletion(random: &mut Random, twin: &mut Twin, key: i32, time: i64) -> String {
    let (c, d) = (random.number(3), random.number(3));
    let delete = format!("DELETE FROM t USING TIMESTAMP {time} WHERE k = {key} AND");
    let (condition, from, to) = match random.next(5) {
        0 => (format!("c = {c}"), (c, LEAST), (c, MOST)),
        1 => (format!("c > {c}"), (c, MOST), (MOST, MOST)),
        2 => (format!("c <= {c}"), (LEAST, LEAST), (c, MOST)),
        3 => (format!("c = {c} AND d >= {d}"), (c, d), (c, MOST)),
        _ => (format!("(c, d) > ({c}, {d}) AND (c) < (2)"), (c, d + 1), (1, MOST)),
    };
    twin.events.push(Event::RemoveRows { key, from, to, time });
    format!("{delete} {condition}")
}

fn read(node: &Memory, statement: &str, now: u32, page_size: Option<u32>) -> Vec<String> {
    let mut options = QueryOptions { now_in_seconds: Some(now), page_size, ..QueryOptions::default() };
    let mut lines = Vec::new();
    loop {
        let answer = run(node, statement, &[], &options).unwrap_or_else(|error| panic!("{statement}: {error}"));
        let CqlResult::Rows(rows) = &answer.result else { panic!("{statement} gives rows") };
        options.paging_state = rows.paging_state.clone().map(Bytes::from);
        lines.extend(spell::answer(&Ok(answer)).lines().skip(1).map(ToOwned::to_owned));
        if options.paging_state.is_none() {
            return lines;
        }
    }
}

fn check(node: &Memory, twin: &Twin, random: &mut Random, now: u32, history: &[String]) {
    const SELECT: &str = "SELECT k, c, d, s, v, w, m FROM t";
    let page = Some(u32::try_from(random.next(6) + 1).expect("small"));
    let told = || format!("after\n{}", history.join(";\n"));
    let mut all = BTreeSet::new();
    for key in 0..3 {
        let expected = twin.partition(key, now);
        assert_eq!(read(node, &format!("{SELECT} WHERE k = {key}"), now, page), expected, "{}", told());
        let mut backwards = read(node, &format!("{SELECT} WHERE k = {key} ORDER BY c DESC, d ASC"), now, page);
        backwards.reverse();
        assert_eq!(backwards, expected, "{}", told());
        let c = random.number(3);
        let slice = read(node, &format!("{SELECT} WHERE k = {key} AND c >= {c} AND c <= 1"), now, page);
        let within = |line: &&String| {
            line.split(" | ").nth(1).and_then(|c| c.parse().ok()).is_some_and(|found: i32| c <= found && found <= 1)
        };
        assert_eq!(slice, expected.iter().filter(within).cloned().collect::<Vec<_>>(), "{}", told());
        let filtered = read(node, &format!("{SELECT} WHERE k = {key} AND v >= 2 ALLOW FILTERING"), now, page);
        let large =
            |line: &&String| line.split(" | ").nth(4).and_then(|v| v.parse::<i32>().ok()).is_some_and(|v| v >= 2);
        assert_eq!(filtered, expected.iter().filter(large).cloned().collect::<Vec<_>>(), "{}", told());
        all.extend(expected);
    }
    assert_eq!(read(node, SELECT, now, page).into_iter().collect::<BTreeSet<_>>(), all, "{}", told());
    let rows = u64::try_from(all.len()).expect("few");
    assert_eq!(read(node, "SELECT count(*) FROM t", now, None), [rows.to_string()], "{}", told());
}

#[test]
fn histories_end_as_their_twins() {
    for seed in 1..=60 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (seed << 32) ^ seed);
        let node = Memory::new();
        let table = "CREATE TABLE t (k int, c int, d int, s int static, v int, w int, m map<int, int>, PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (c ASC, d DESC)";
        run(&node, table, &[], &QueryOptions::default()).expect("the table is made");
        let mut twin = Twin::default();
        let mut history = vec![format!("seed {seed}")];
        let mut now = 1_000;
        for step in 0..60 {
            let text = statement(&mut random, &mut twin, now);
            history.push(format!("{text} -- at {now}"));
            let options = QueryOptions { now_in_seconds: Some(now), ..QueryOptions::default() };
            run(&node, &text, &[], &options).unwrap_or_else(|error| panic!("{text}: {error}"));
            if step % 6 == 5 {
                check(&node, &twin, &mut random, now, &history);
            }
            if random.one_in(3) {
                now += 1;
            }
        }
    }
}
