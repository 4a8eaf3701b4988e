//! Runs this program under valgrind and reads what it counted.
//!
//! Callgrind counts only inside of one function and writes a file of counts each time that
//! function returns, so one run gives the count of every case, and start-up is in none.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// The function that is counted, as the symbol table names it, for the option that turns counting
/// on. The two options must not have the same text: callgrind keeps one setting for each.
const MEASURED: &str = "*measured_requests*";
/// The function that is counted, for the option that writes the counts, which takes no `*` at the
/// start.
const WRITTEN_AFTER: &str = "bench_instructions::drive::measured_requests*";

/// A case's name and its instructions for each request.
pub type Counts = Vec<(String, u64)>;

/// Whether valgrind is installed.
pub fn has_valgrind() -> bool {
    let asked = Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// The version of the compiler on the path, with which this program was most likely built.
pub fn compiler() -> Result<String> {
    let told = Command::new("rustc").arg("--version").output()?;
    let text = String::from_utf8(told.stdout)?;
    Ok(text.split_whitespace().nth(1).ok_or("rustc tells no version")?.to_owned())
}

/// Counts every case.
pub fn count() -> Result<Counts> {
    let scratch = tempfile::tempdir()?;
    let out = scratch.path().join("counts");
    let told = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", "--combine-dumps=no"])
        .arg(format!("--toggle-collect={MEASURED}"))
        .arg(format!("--dump-after={WRITTEN_AFTER}"))
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe()?)
        .arg("drive")
        .arg(scratch.path().join("data"))
        .stderr(Stdio::inherit())
        .output()?;
    if !told.status.success() {
        return Err(format!("the run under valgrind ended with {}", told.status).into());
    }
    let lines = String::from_utf8(told.stdout)?;
    let rounds = lines.lines().enumerate().map(|(place, line)| read(line, &dump(&out, place + 1)));
    Ok(least(rounds.collect::<Result<Counts>>()?))
}

/// The smallest count of each case. Rounds differ where memory is taken from the system, or where
/// a lock happens to be held by another thread; both only add.
pub fn least(rounds: Counts) -> Counts {
    let mut least = Counts::new();
    for (name, count) in rounds {
        match least.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = count.min(*known),
            None => least.push((name, count)),
        }
    }
    least
}

/// Where callgrind writes its `number`th file of counts, from 1 on.
fn dump(out: &Path, number: usize) -> PathBuf {
    PathBuf::from(format!("{}.{number}", out.display()))
}

/// The count of a case in one round: its line, and the file of counts that belongs to it.
fn read(line: &str, dump: &Path) -> Result<(String, u64)> {
    let (requests, name) = line.split_once(' ').ok_or("a line is cut off")?;
    let text = std::fs::read_to_string(dump).map_err(|error| format!("{}: {error}", dump.display()))?;
    let instructions = instructions(&text).ok_or_else(|| format!("{}: nothing was counted", dump.display()))?;
    Ok((name.to_owned(), instructions / requests.parse::<u64>()?.max(1)))
}

/// The sum of a file of counts: its line `summary: N` or `totals: N`. None if nothing was counted.
fn instructions(dump: &str) -> Option<u64> {
    let sums = dump.lines().filter_map(|line| line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")));
    let mut counts = sums.filter_map(|sum| sum.split_whitespace().next()?.parse().ok());
    counts.next().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_round_counts() {
        let counts = |pairs: &[(&str, u64)]| pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let rounds: Counts = counts(&[("read", 9), ("read", 7), ("read", 8), ("write", 5)]);
        assert_eq!(least(rounds), counts(&[("read", 7), ("write", 5)]));
    }

    #[test]
    fn the_sum_of_a_file_of_counts() {
        assert_eq!(
            instructions("version: 1\nevents: Ir\nsummary: 4711\n\nfn=(1)\n12 4711\ntotals: 4711\n"),
            Some(4711)
        );
        assert_eq!(instructions("events: Ir\ntotals: 12\n"), Some(12));
        assert_eq!(instructions("events: Ir\nsummary: 0\n"), None);
        assert_eq!(instructions(""), None);
    }
}
