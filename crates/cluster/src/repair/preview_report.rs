//! The findings of a preview as an operator reads them: what would be streamed, of all tables, of
//! each table, and between each two nodes. Agrees with
//! `org.apache.cassandra.repair.consistent.SyncStatSummary` and `PreviewRepairTask`; tables, ranges
//! and nodes stand in their order here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::SocketAddr;

use internode::payload::repair::{Files, Preview};
use internode::payload::token_ranges::Tokens;
use stdx::memory_text;

use super::job::SyncStat;

/// Most mismatching ranges of a table that the text names.
const NAMED_MAX: usize = 30;

/// Ranges and files that would be streamed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Sum {
    ranges: BTreeSet<Tokens>,
    files: i64,
    bytes: i64,
}

impl Sum {
    fn add(&mut self, ranges: &[Tokens], files: &[Files]) {
        self.ranges.extend(ranges);
        self.files += files.iter().map(|files| i64::from(files.count)).sum::<i64>();
        self.bytes += files.iter().map(|files| files.bytes).sum::<i64>();
    }

    fn of<'a>(sums: impl IntoIterator<Item = &'a Self>) -> Self {
        sums.into_iter().fold(Self::default(), |mut all, sum| {
            all.ranges.extend(&sum.ranges);
            (all.files, all.bytes) = (all.files + sum.files, all.bytes + sum.bytes);
            all
        })
    }

    fn text(&self) -> String {
        let bytes = memory_text(u64::try_from(self.bytes).unwrap_or(0));
        format!("{} ranges, {} sstables, {bytes} bytes", self.ranges.len(), self.files)
    }
}

/// The streams between nodes, by the node that sends and the one that receives.
type StreamsByPair = BTreeMap<(SocketAddr, SocketAddr), Sum>;

/// The findings; `stats` are the exchanges of each table by its name.
pub(super) fn text(preview: Preview, keyspace: &str, stats: &[(String, SyncStat)]) -> String {
    let is_of_repaired = preview == Preview::Repaired;
    let mut tables: BTreeMap<&str, StreamsByPair> = BTreeMap::new();
    for (name, stat) in stats {
        let between = tables.entry(name).or_default();
        for summary in &stat.summaries {
            let (coordinator, peer) = (summary.coordinator, summary.peer);
            between.entry((coordinator, peer)).or_default().add(&stat.ranges, &summary.sent);
            between.entry((peer, coordinator)).or_default().add(&stat.ranges, &summary.received);
        }
    }
    let total = Sum::of(tables.values().flat_map(BTreeMap::values));
    if total == Sum::default() {
        return if is_of_repaired { "Repaired data is in sync" } else { "Previewed data was in sync" }.to_owned();
    }
    let title = if is_of_repaired { "Repaired data is inconsistent" } else { "Preview complete" };
    let mut text = format!("{title}\nTotal estimated streaming: {}\n", total.text());
    for (name, between) in tables {
        let sum = Sum::of(between.values());
        // a String takes everything
        let _ = writeln!(text, "{keyspace}.{name} - {}", sum.text());
        if !sum.ranges.is_empty() {
            text += "    Mismatching ranges: ";
            sum.ranges.iter().take(NAMED_MAX).for_each(|range| text += &format!("{range},"));
            text += if sum.ranges.len() >= NAMED_MAX { "...\n" } else { "\n" };
        }
        for ((from, to), sum) in between {
            let _ = writeln!(text, "    /{from} -> /{to}: {}", sum.text());
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use internode::payload::repair::StreamSummary;
    use schema::TableId;
    use types::Token;

    use super::*;

    fn node(number: u8) -> SocketAddr {
        SocketAddr::from(([127, 30, 0, number], 7000))
    }

    fn files(count: i32, bytes: i64) -> Vec<Files> {
        vec![Files { table: TableId([1; 16]), count, bytes }]
    }

    #[test]
    fn the_form_is_cassandras() {
        let ranges = [(-5, 7), (9, 12)].map(|(start, end)| Tokens { start: Token(start), end: Token(end) }).to_vec();
        let summary =
            StreamSummary { coordinator: node(31), peer: node(32), received: files(1, 4007), sent: files(1, 4576) };
        let stats = [("t".to_owned(), SyncStat { ranges, summaries: vec![summary] })];
        let expected = "\
Preview complete
Total estimated streaming: 2 ranges, 2 sstables, 8.382KiB bytes
ks.t - 2 ranges, 2 sstables, 8.382KiB bytes
    Mismatching ranges: (-5,7],(9,12],
    /127.30.0.31:7000 -> /127.30.0.32:7000: 2 ranges, 1 sstables, 4.469KiB bytes
    /127.30.0.32:7000 -> /127.30.0.31:7000: 2 ranges, 1 sstables, 3.913KiB bytes

";
        assert_eq!(text(Preview::Unrepaired, "ks", &stats), expected);
        assert!(text(Preview::Repaired, "ks", &stats).starts_with("Repaired data is inconsistent\n"));
        assert_eq!(text(Preview::All, "ks", &[]), "Previewed data was in sync");
        assert_eq!(text(Preview::Repaired, "ks", &[]), "Repaired data is in sync");
    }
}
