//! Histograms as bars, as sstablemetadata draws them. Agrees with
//! `org.apache.cassandra.tools.Util.TermHistogram`.

use std::fmt::Write;

/// Characters of the longest bar.
const WIDTH: f64 = 30.0;
/// Number of limits of the histogram that percentiles are taken from.
const LIMITS: usize = 165;

/// Values with their counts, ascending.
pub struct Bars {
    entries: Vec<(i64, u64)>,
}

impl Bars {
    /// A histogram of these values and counts.
    pub fn new(entries: Vec<(i64, u64)>) -> Self {
        Self { entries }
    }

    /// Appends title, bars and percentiles. `name`: how a value is written.
    pub fn put(&self, out: &mut String, title: &str, name: &dyn Fn(i64) -> String, unicode: bool) {
        let sum: f64 = self.entries.iter().map(|(_, count)| *count as f64).sum();
        let max = self.entries.iter().map(|(_, count)| *count).max().unwrap_or_default();
        let counts = self.entries.iter().map(|(_, count)| count.to_string().len());
        let count_width = counts.max().unwrap_or_default().max(5);
        let names = self.entries.iter().map(|(value, _)| name(*value).chars().count());
        let name_width = names.max().unwrap_or_default().max(title.len());
        writeln!(out, "   {title:<name_width$} | {:<count_width$}  (%)  Histogram ", "Count")
            .expect("a String takes all");
        for (value, count) in &self.entries {
            let percent = (100.0 * (*count as f64 / sum)) as i64;
            let bar = bar(*count as f64 / max as f64 * WIDTH, unicode);
            writeln!(out, "   {:<name_width$} | {count:>count_width$} ({percent:>3}) {bar}", name(*value))
                .expect("a String takes all");
        }
        self.put_percentiles(out, name);
    }

    fn put_percentiles(&self, out: &mut String, name: &dyn Fn(i64) -> String) {
        let histogram = Percentiles::new(&self.entries);
        out.push_str("   Percentiles\n");
        for (title, part) in [("50th", 0.5), ("75th", 0.75), ("95th", 0.95), ("98th", 0.98), ("99th", 0.99)] {
            writeln!(out, "   {title:<10}{}", name(histogram.percentile(part))).expect("a String takes all");
        }
        writeln!(out, "   {:<10}{}", "Min", name(histogram.min())).expect("a String takes all");
        writeln!(out, "   {:<10}{}", "Max", name(histogram.max())).expect("a String takes all");
    }
}

fn bar(length: f64, unicode: bool) -> String {
    const ASCII: [(f64, &str); 3] = [(0.3, "."), (0.75, "o"), (1.0, "O")];
    const BLOCKS: [(f64, &str); 6] = [
        (0.125, "\u{258f}"),
        (0.25, "\u{258e}"),
        (0.375, "\u{258d}"),
        (0.625, "\u{258b}"),
        (0.75, "\u{258a}"),
        (0.875, "\u{2589}"),
    ];
    let (full, parts) = if unicode { ("\u{2589}", &BLOCKS[..]) } else { ("O", &ASCII[..]) };
    let whole = length as usize;
    let rest = length - whole as f64;
    let part = parts.iter().rev().find(|(from, _)| *from <= rest).map_or("", |(_, part)| part);
    full.repeat(whole) + part
}

/// `EstimatedHistogram` with 165 limits that grow by a fifth.
struct Percentiles {
    limits: Vec<i64>,
    counts: Vec<u64>,
}

impl Percentiles {
    fn new(entries: &[(i64, u64)]) -> Self {
        let mut limits = vec![1i64];
        while let Some(last) = limits.last().filter(|_| limits.len() < LIMITS) {
            limits.push(((*last as f64 * 1.2).round() as i64).max(last + 1));
        }
        let mut counts = vec![0; limits.len() + 1];
        for (value, count) in entries {
            counts[limits.partition_point(|limit| limit < value)] += count;
        }
        Self { limits, counts }
    }

    fn limit(&self, bucket: usize) -> i64 {
        self.limits.get(bucket).copied().unwrap_or(i64::MAX)
    }

    fn percentile(&self, part: f64) -> i64 {
        let wanted = (self.counts.iter().sum::<u64>() as f64 * part).ceil() as u64;
        let mut passed = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            passed += count;
            if wanted > 0 && passed >= wanted {
                return self.limit(bucket);
            }
        }
        0
    }

    fn min(&self) -> i64 {
        match self.counts.iter().position(|count| *count > 0) {
            None | Some(0) => 0,
            Some(bucket) => 1 + self.limit(bucket - 1),
        }
    }

    fn max(&self) -> i64 {
        self.counts.iter().rposition(|count| *count > 0).map_or(0, |bucket| self.limit(bucket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_those_of_the_original() {
        assert_eq!(bar(8.0 / 48.0 * 30.0, false), "OOOOO");
        assert_eq!(bar(27.0 / 48.0 * 30.0, false), "OOOOOOOOOOOOOOOOo");
        assert_eq!(bar(31.0 / 48.0 * 30.0, false), "OOOOOOOOOOOOOOOOOOO.");
        assert_eq!(bar(0.2, false), "");
        assert_eq!(bar(1.2, true), "\u{2589}\u{258f}");
    }
}
