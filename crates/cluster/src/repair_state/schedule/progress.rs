//! How far the schedule of repairs is: for each stretch of tokens of each table the time of its
//! last repair. Kept in a file, so that a node that starts again goes on where it was.
//!
//! A time is the *beginning* of a repair, seconds since 1970 of the wall clock: what was deleted
//! before then is on all replicas. Tokens that no repair has covered count from the time at which
//! the table was made while the schedule looked, or as never repaired ([`NEVER`]). When the
//! replication of a keyspace has changed, its tables get times with which they are due.
//!
//! The file is text: a head, a line for each table and each stretch of tokens, and at the end the
//! CRC-32 of everything before. A file that is damaged counts as none: everything is repaired
//! again, which costs work and loses nothing. Cassandra keeps `system_distributed.auto_repair_*`
//! instead, with one time for a whole node.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use env::Env;
use internode::payload::token_ranges::Tokens;
use schema::TableId;

/// The time of tokens that were never repaired.
pub const NEVER: i64 = 0;

/// Most stretches of a table. Beyond this number two neighbours become one, with the earlier of
/// their times.
const STRETCHES_MAX: usize = 1 << 14;
/// Bytes of a file that is read. A larger one counts as none.
const FILE_SIZE_MAX: u64 = 256 << 20;
const HEAD: &str = "helenus repairs 1";

/// The tokens after `start` up to and including `end`, which is greater, and the time of their
/// last repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretch {
    start: i64,
    end: i64,
    at: i64,
}

/// How far the repairs of a table are.
#[derive(Clone, PartialEq, Eq, Debug)]
struct TableRepairTimes {
    /// The time that counts for tokens without a stretch, seconds since 1970.
    since: i64,
    /// Stretches that do not overlap, in ascending order.
    stretches: Vec<Stretch>,
}

/// How far the repairs of all tables are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    tables: BTreeMap<TableId, TableRepairTimes>,
}

/// A range as one or two pieces of the line of tokens. The least token belongs to no range.
fn pieces(range: Tokens) -> impl Iterator<Item = (i64, i64)> {
    let (start, end) = (range.start.0, range.end.0);
    let [first, second] = match start < end {
        true => [Some((start, end)), None],
        false => [Some((start, i64::MAX)), Some((i64::MIN, end))],
    };
    first.into_iter().chain(second).filter(|(start, end)| start < end)
}

impl TableRepairTimes {
    /// The earliest time among the tokens of a piece.
    fn oldest(&self, start: i64, end: i64) -> i64 {
        let (mut reached, mut oldest) = (start, i64::MAX);
        let first = self.stretches.partition_point(|stretch| stretch.end <= start);
        for stretch in self.stretches.get(first..).unwrap_or_default() {
            if stretch.start >= end {
                break;
            }
            if stretch.start > reached {
                oldest = oldest.min(self.since);
            }
            oldest = oldest.min(stretch.at.max(self.since));
            reached = stretch.end;
        }
        if reached < end { oldest.min(self.since) } else { oldest }
    }

    fn mark(&mut self, start: i64, end: i64, at: i64) {
        let mut stretches = Vec::with_capacity(self.stretches.len() + 2);
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        for stretch in self.stretches.drain(..) {
            if stretch.start < start {
                before.push(Stretch { end: stretch.end.min(start), ..stretch });
            }
            if stretch.end > end {
                behind.push(Stretch { start: stretch.start.max(end), ..stretch });
            }
        }
        for stretch in before.into_iter().chain([Stretch { start, end, at }]).chain(behind) {
            match stretches.last_mut() {
                Some(Stretch { end: last, at, .. }) if *last == stretch.start && *at == stretch.at => {
                    *last = stretch.end;
                }
                _ => stretches.push(stretch),
            }
        }
        while stretches.len() > STRETCHES_MAX {
            stretches = coarser(&stretches);
        }
        assert!(stretches.windows(2).all(|two| two[0].end <= two[1].start), "stretches ascend and stand apart");
        self.stretches = stretches;
    }
}

/// Two neighbours become one where they touch; elsewhere the first of two is forgotten.
fn coarser(stretches: &[Stretch]) -> Vec<Stretch> {
    let both = |two: &[Stretch]| match two {
        [one, next] if one.end == next.start => Stretch { start: one.start, end: next.end, at: one.at.min(next.at) },
        [.., last] => *last,
        [] => unreachable!("chunks are not empty"),
    };
    stretches.chunks(2).map(both).collect()
}

impl Progress {
    /// Takes the tables that exist now. A new one counts as repaired at `now`, seconds since 1970,
    /// because it was empty then; None: it may have been made while the schedule did not look, and
    /// counts as never repaired. True: something has changed.
    pub fn follow(&mut self, tables: &[TableId], now: Option<i64>) -> bool {
        let before = self.tables.len();
        self.tables.retain(|id, _| tables.contains(id));
        let mut has_changed = self.tables.len() != before;
        for id in tables {
            self.tables.entry(*id).or_insert_with(|| {
                has_changed = true;
                TableRepairTimes { since: now.unwrap_or(NEVER), stretches: Vec::new() }
            });
        }
        has_changed
    }

    /// Forgets repairs with a time after this one, seconds since 1970: the clock was ahead, so
    /// their true time is not known. True: something has changed.
    pub fn forget_after(&mut self, latest: i64) -> bool {
        let mut has_changed = false;
        for of_table in self.tables.values_mut() {
            let count = of_table.stretches.len();
            of_table.stretches.retain(|stretch| stretch.at <= latest);
            has_changed |= of_table.stretches.len() != count;
            if of_table.since > latest {
                (of_table.since, has_changed) = (NEVER, true);
            }
        }
        has_changed
    }

    /// The earliest time among the tokens of ranges of a table.
    pub fn oldest(&self, table: TableId, ranges: &[Tokens]) -> i64 {
        let Some(of_table) = self.tables.get(&table) else { return NEVER };
        let times = ranges.iter().flat_map(|range| pieces(*range)).map(|(start, end)| of_table.oldest(start, end));
        times.min().unwrap_or(of_table.since)
    }

    /// Notes that ranges of a table are repaired as of a time, seconds since 1970.
    pub fn mark(&mut self, table: TableId, ranges: &[Tokens], at: i64) {
        if let Some(of_table) = self.tables.get_mut(&table) {
            ranges.iter().flat_map(|range| pieces(*range)).for_each(|(start, end)| of_table.mark(start, end, at));
        }
    }

    /// Takes a table for one that was repaired no later than at a time, seconds since 1970.
    pub fn make_due(&mut self, table: TableId, at: i64) {
        if let Some(of_table) = self.tables.get_mut(&table) {
            of_table.since = of_table.since.min(at);
            of_table.stretches.iter_mut().for_each(|stretch| stretch.at = stretch.at.min(at));
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut text = format!("{HEAD}\n");
        for (id, of_table) in &self.tables {
            let id = types::literal::print_uuid(&id.0);
            // writing to a string does not fail
            let _ = writeln!(text, "table {id} {}", of_table.since);
            for Stretch { start, end, at } in &of_table.stretches {
                let _ = writeln!(text, "{start} {end} {at}");
            }
        }
        let crc = crc32fast::hash(text.as_bytes());
        let _ = writeln!(text, "crc {crc:08x}");
        text.into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (body, end) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let crc = u32::from_str_radix(end.strip_prefix("crc ")?, 16).ok()?;
        if crc32fast::hash(format!("{body}\n").as_bytes()) != crc {
            return None;
        }
        let mut lines = body.lines();
        if lines.next() != Some(HEAD) {
            return None;
        }
        let mut progress = Self::default();
        let mut last: Option<&mut TableRepairTimes> = None;
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match (words.as_slice(), &mut last) {
                (["table", id, since], _) => {
                    let of_table = TableRepairTimes { since: since.parse().ok()?, stretches: Vec::new() };
                    let id = TableId(types::literal::parse_uuid(id)?);
                    last = Some(progress.tables.entry(id).or_insert(of_table));
                }
                ([start, end, at], Some(of_table)) => {
                    let stretch = Stretch { start: start.parse().ok()?, end: end.parse().ok()?, at: at.parse().ok()? };
                    let is_behind = of_table.stretches.last().is_none_or(|last| last.end <= stretch.start);
                    if !is_behind || stretch.start >= stretch.end {
                        return None;
                    }
                    of_table.stretches.push(stretch);
                }
                _ => return None,
            }
        }
        Some(progress)
    }

    /// The progress that a file has. None: there is no file, or it cannot be read.
    pub fn read(env: &Env, path: &Path) -> Option<Self> {
        let bytes = match env.disk.read_all(path, FILE_SIZE_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "the progress of repairs cannot be read");
                return None;
            }
        };
        let progress = Self::decode(&bytes);
        if progress.is_none() {
            tracing::warn!(path = %path.display(), "the progress of repairs is damaged: everything is repaired again");
        }
        progress
    }

    /// Replaces the file.
    pub fn write(&self, env: &Env, path: &Path) -> io::Result<()> {
        if let Some((directory, above)) = path.parent().and_then(|directory| Some((directory, directory.parent()?)))
            && !env.disk.exists(directory)
        {
            // only this directory, so that a disk that is gone stays gone
            env.disk.create_dir_below(above, directory)?;
        }
        let bytes = self.encode();
        debug_assert_eq!(Self::decode(&bytes).as_ref(), Some(self), "the progress is read as it is written");
        env.disk.replace_file(path, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use env::sim::{DATA, Sim};
    use types::Token;

    use super::*;

    const TABLE: TableId = TableId([7; 16]);

    fn range(start: i64, end: i64) -> Tokens {
        Tokens { start: Token(start), end: Token(end) }
    }

    fn watched(since: Option<i64>) -> Progress {
        let mut progress = Progress::default();
        assert!(progress.follow(&[TABLE], since));
        progress
    }

    #[test]
    fn repairs_of_a_time_that_has_not_come_count_as_none() {
        let mut progress = watched(Some(100));
        progress.mark(TABLE, &[range(0, 10)], 200);
        progress.mark(TABLE, &[range(10, 20)], 9_000);
        assert!(!progress.forget_after(9_000));
        assert!(progress.forget_after(1_000));
        let oldest = |progress: &Progress| [range(0, 10), range(10, 20)].map(|of| progress.oldest(TABLE, &[of]));
        assert_eq!(oldest(&progress), [200, 100]);
        assert!(progress.forget_after(150));
        assert_eq!(oldest(&progress), [100, 100]);
        assert!(progress.forget_after(50) && !progress.forget_after(50));
        assert_eq!(oldest(&progress), [NEVER, NEVER]);
    }

    #[test]
    fn tokens_without_a_repair_count_from_the_table() {
        let mut progress = watched(Some(100));
        progress.mark(TABLE, &[range(0, 10)], 200);
        let cases = [(range(0, 10), 200), (range(2, 5), 200), (range(-1, 10), 100), (range(5, 11), 100)];
        for (asked, expected) in cases {
            assert_eq!(progress.oldest(TABLE, &[asked]), expected, "{asked}");
        }
        assert_eq!(watched(None).oldest(TABLE, &[range(0, 10)]), NEVER);
        assert!(!progress.follow(&[TABLE], None), "the table is known");
        assert!(progress.follow(&[], None));
        assert_eq!(progress.oldest(TABLE, &[range(0, 10)]), NEVER, "the table is gone");
    }

    #[test]
    fn ranges_over_the_end_of_the_ring() {
        let mut progress = watched(None);
        progress.mark(TABLE, &[range(90, -90)], 5);
        assert_eq!(progress.oldest(TABLE, &[range(95, -95)]), 5);
        assert_eq!(progress.oldest(TABLE, &[range(80, -95)]), NEVER);
        progress.mark(TABLE, &[range(3, 3)], 6);
        assert_eq!(progress.oldest(TABLE, &[range(4, 4), range(1, 0)]), 6, "the whole ring");
    }

    /// A table with a time for each of some tokens, against [`Progress`].
    #[test]
    fn the_same_as_a_time_for_each_token() {
        const TOKENS: usize = 40;
        let sim = Sim::new(3);
        let random = sim.env().random;
        let draw = |below: usize| random.below(below as u64) as usize;
        let (mut progress, mut twin) = (watched(Some(1)), [1i64; TOKENS]);
        for at in 2..400 {
            let (start, end) = (draw(TOKENS), draw(TOKENS));
            let inside: Vec<usize> = match start < end {
                true => (start + 1..=end).collect(),
                false => (start + 1..TOKENS).chain(0..=end).collect(),
            };
            let asked = range(start as i64, end as i64);
            // tokens of the ring before and behind the twin's count from the table
            let whole = if start < end { i64::MAX } else { 1 };
            let expected = inside.iter().map(|token| twin[*token]).min().unwrap_or(whole).min(whole);
            if start < end {
                assert_eq!(progress.oldest(TABLE, &[asked]), expected, "{asked}");
                progress.mark(TABLE, &[asked], at);
                inside.iter().for_each(|token| twin[*token] = at);
            }
            let again = Progress::decode(&progress.encode());
            assert_eq!(again.as_ref(), Some(&progress), "what was written is read");
        }
    }

    #[test]
    fn too_many_stretches_become_coarser_and_never_younger() {
        let mut progress = watched(Some(9));
        let stretch = |start: i64| Stretch { start, end: start + 1, at: 10 + start % 2 };
        let all = TableRepairTimes { since: 9, stretches: (0..STRETCHES_MAX as i64).map(stretch).collect() };
        progress.tables.insert(TABLE, all);
        progress.mark(TABLE, &[range(i64::MAX - 1, i64::MAX)], 50);
        assert!(progress.tables[&TABLE].stretches.len() <= STRETCHES_MAX);
        assert_eq!(progress.oldest(TABLE, &[range(0, 1000)]), 10);
    }

    #[test]
    fn a_file_comes_back_and_damage_counts_as_none() {
        let sim = Sim::new(1);
        let (env, path) = (sim.env(), Path::new(DATA).join("saved").join("repairs"));
        assert_eq!(Progress::read(&env, &path), None);
        let mut progress = watched(Some(4));
        progress.mark(TABLE, &[range(90, -90)], 5);
        progress.write(&env, &path).expect("a sound disk");
        sim.power_cut();
        let env = sim.env();
        assert_eq!(Progress::read(&env, &path), Some(progress.clone()));
        let bytes = progress.encode();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x11;
            assert_eq!(Progress::decode(&damaged), None, "byte {at}");
            assert!(Progress::decode(&bytes[..at]).is_none(), "{at} bytes");
        }
    }
}
