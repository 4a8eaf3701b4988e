//! Choices, drawn as text: SSTables, what the strategy chooses from them, and what is left to do
//! (`testdata/compaction`).
//!
//! A case is options and SSTables, a line of dashes, and the answer. An SSTable is a name, a size
//! in MiB, the thousandths of the ring that it covers, and what is special about it: `L1`,
//! `ts=1h..5h` (timestamps), `ends=90` (seconds when the last of it may go), `droppable=0.3`,
//! `age=60` (seconds), `compacting`, `other` (of another repair state). With `HELENUS_REWRITE=1`
//! the answers are written as they are now.

use std::path::Path;

use super::*;

/// Milliseconds.
const NOW: u64 = 1_000_000_000_000;

struct Case {
    map: BTreeMap<String, String>,
    names: Vec<String>,
    sstables: Vec<Candidate>,
    others: Vec<Candidate>,
    memory: Memory,
    gc_before: u32,
    memtable: i64,
    may_purge: bool,
    flush_size: f64,
    what: String,
}

fn token(thousandth: &str) -> Token {
    let thousandth: i128 = thousandth.parse().expect("a thousandth of the ring");
    let token = (thousandth << 64) / 1000 + i128::from(i64::MIN);
    Token(i64::try_from(token).unwrap_or(i64::MAX))
}

/// "5h" or microseconds.
fn timestamp(text: &str) -> i64 {
    match text.strip_suffix('h') {
        Some(hours) => hours.parse::<i64>().expect("hours") * 3_600_000_000,
        None => text.parse().expect("microseconds"),
    }
}

fn candidate(index: usize, words: &[&str]) -> Candidate {
    let [_, size, range, special @ ..] = words else { panic!("an SSTable has a name, a size and a range: {words:?}") };
    let (first, last) = range.split_once("..").expect("a range");
    let mut candidate = Candidate {
        index,
        size: (size.parse::<f64>().expect("MiB") * 1048576.0) as u64,
        level: 0,
        first: token(first),
        last: token(last),
        min_timestamp: index as i64,
        max_timestamp: index as i64,
        max_local_deletion_time: u32::MAX,
        droppable: 0.0,
        created: NOW - 100_000_000 + index as u64,
        coverage: None,
        compacting: false,
    };
    for word in special {
        match word.split_once('=') {
            Some(("ts", range)) => {
                let (min, max) = range.split_once("..").unwrap_or((range, range));
                (candidate.min_timestamp, candidate.max_timestamp) = (timestamp(min), timestamp(max));
            }
            Some(("ends", at)) => candidate.max_local_deletion_time = at.parse().expect("seconds"),
            Some(("droppable", share)) => candidate.droppable = share.parse().expect("a share"),
            Some(("age", seconds)) => candidate.created = NOW - seconds.parse::<u64>().expect("seconds") * 1000,
            None if *word == "compacting" => candidate.compacting = true,
            None if *word == "other" => {}
            _ => candidate.level = word.trim_start_matches('L').parse().expect("a level"),
        }
    }
    candidate
}

impl Case {
    fn parse(text: &str) -> Self {
        let (map, memory) = (BTreeMap::new(), Memory { expired_checked_at: Some(0), ..Memory::default() });
        let (names, sstables, others) = (Vec::new(), Vec::new(), Vec::new());
        let (gc_before, memtable, may_purge, flush_size) = (1000, i64::MAX, true, f64::NAN);
        let what = "choose".to_owned();
        let mut case = Self { map, names, sstables, others, memory, gc_before, memtable, may_purge, flush_size, what };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["options", pairs @ ..] => {
                    case.map.extend(pairs.iter().filter_map(|pair| {
                        pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
                    }))
                }
                ["state", pairs @ ..] => pairs.iter().for_each(|pair| case.set(pair)),
                [what] => case.what = (*what).to_owned(),
                [.., "other"] => case.others.push(candidate(case.others.len(), &words)),
                [name, ..] => {
                    case.sstables.push(candidate(case.sstables.len(), &words));
                    case.names.push((*name).to_owned());
                }
                [] => {}
            }
        }
        case
    }

    fn set(&mut self, pair: &str) {
        let (name, value) = pair.split_once('=').expect("name=value");
        match name {
            "memtable" => self.memtable = timestamp(value),
            "may_purge" => self.may_purge = value == "true",
            "flush" => self.flush_size = value.parse::<f64>().expect("MiB") * 1048576.0,
            "rounds" => self.memory.rounds_without = [value.parse().expect("a number"); LEVELS],
            "window" => self.memory.highest_window = timestamp(value) / 1000,
            other => panic!("a state has no {other}"),
        }
    }

    fn answer(&mut self) -> String {
        let strategy = Strategy::of(&self.map);
        let state = State {
            sstables: &self.sstables,
            others: &self.others,
            memtable_min_timestamp: self.memtable,
            gc_before: self.gc_before,
            may_purge: self.may_purge,
            now_millis: NOW,
            flush_size: self.flush_size,
            dice: 0,
        };
        let choices = match self.what.as_str() {
            "choose" => strategy.choose(&state, &mut self.memory).into_iter().collect(),
            "major" => strategy.major(&state, false),
            "split" => strategy.major(&state, true),
            other => panic!("a strategy cannot be asked to {other}"),
        };
        let mut lines: Vec<String> = choices.iter().map(|choice| self.print(choice)).collect();
        if choices.is_empty() {
            lines.push("nothing".to_owned());
        }
        if self.what == "choose" {
            lines.push(format!("pending {}", strategy.pending(&state, &self.memory)));
        }
        lines.join("\n")
    }

    fn print(&self, choice: &Choice) -> String {
        let mut inputs = choice.inputs.clone();
        inputs.sort_unstable();
        let names: Vec<&str> = inputs.iter().map(|index| self.names[*index].as_str()).collect();
        let output = match choice.output {
            Output::One { level } => format!("one of L{level}"),
            Output::Sized { level, size_max } => format!("{} MiB each of L{level}", size_max >> 20),
            Output::Levels { size_max, fanout } => format!("{} MiB each, levels by {fanout}", size_max >> 20),
            Output::Halves { total } => format!("halves of {} MiB", total >> 20),
            Output::Shards { count } => format!("{count} shards"),
            Output::LevelOnly { level } => format!("L{level} as it is"),
        };
        format!("{}: {} -> {output}", choice.kind.name(), names.join(" "))
    }
}

/// Answers each case; gives the text with the answers as they are now.
fn answered(text: &str) -> String {
    let mut out = Vec::new();
    for case in text.trim_end().split("\n\n") {
        let question = case.split("\n----").next().unwrap_or_default();
        out.push(format!("{question}\n----\n{}", Case::parse(question).answer()));
    }
    out.join("\n\n") + "\n"
}

fn check(name: &str, text: &str) {
    let answered = answered(text);
    if std::env::var("HELENUS_REWRITE").is_ok() && answered != text {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/compaction").join(name);
        env::real::env().disk.replace_file(&path, answered.as_bytes()).expect("the tree can be written");
        return;
    }
    assert_eq!(answered, text, "{name}");
}

#[test]
fn size_tiered_choices() {
    check("size_tiered.txt", include_str!("../../testdata/compaction/size_tiered.txt"));
}

#[test]
fn leveled_choices() {
    check("leveled.txt", include_str!("../../testdata/compaction/leveled.txt"));
}

#[test]
fn time_window_choices() {
    check("time_window.txt", include_str!("../../testdata/compaction/time_window.txt"));
}

#[test]
fn unified_choices() {
    check("unified.txt", include_str!("../../testdata/compaction/unified.txt"));
}
