//! Limits of the process: `/proc/self/limits`.

use crate::finding::Finding;
use crate::machine::Machine;

/// Open files that a node of usual size needs: SSTables, connections, segments. As Cassandra's
/// packages set it.
const FILES_WANTED: u64 = 100_000;
/// Fewer open files than this leave no room for data beside the connections.
const FILES_MIN: u64 = 1024;
/// Processes and threads that a user may have. As Cassandra's documents ask.
const PROCESSES_WANTED: u64 = 32_768;
/// A node has some tens of threads.
const PROCESSES_MIN: u64 = 256;

/// Looks at the limits. The hard limit of open files counts, because a node raises its soft one.
pub fn examine(machine: &Machine<'_>) -> Vec<Finding> {
    let Some(text) = machine.read("/proc/self/limits") else {
        return vec![Finding::warn("limits", "/proc/self/limits cannot be read", "run the doctor on Linux")];
    };
    let mut found = Vec::new();
    found.extend(limit(&text, "Max open files").map(|(_, hard)| files(hard)));
    found.extend(limit(&text, "Max processes").map(|(soft, _)| processes(soft)));
    found.extend(
        limit(&text, "Max locked memory").map(|_| Finding::ok("locked memory", "not needed: a node locks no memory")),
    );
    found.extend(limit(&text, "Max address space").and_then(|(soft, _)| address_space(soft)));
    found.extend(limit(&text, "Max file size").and_then(|(soft, _)| file_size(soft)));
    found
}

/// The soft and the hard limit of a row; None as a limit: unlimited.
fn limit(text: &str, row: &str) -> Option<(Option<u64>, Option<u64>)> {
    let rest = text.lines().find_map(|line| line.strip_prefix(row))?;
    let mut words = rest.split_whitespace();
    let mut next = || match words.next()? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    };
    Some((next()?, next()?))
}

fn files(hard: Option<u64>) -> Finding {
    const ADVICE: &str =
        "raise it: LimitNOFILE=1048576 in the unit, or `cassandra - nofile 1048576` in /etc/security/limits.d";
    match hard {
        Some(limit) if limit < FILES_MIN => Finding::fail("open files", format!("at most {limit}"), ADVICE),
        Some(limit) if limit < FILES_WANTED => Finding::warn("open files", format!("at most {limit}"), ADVICE),
        Some(limit) => Finding::ok("open files", format!("at most {limit}")),
        None => Finding::ok("open files", "unlimited"),
    }
}

fn processes(soft: Option<u64>) -> Finding {
    const ADVICE: &str =
        "raise it: LimitNPROC=32768 in the unit, or `cassandra - nproc 32768` in /etc/security/limits.d";
    match soft {
        Some(limit) if limit < PROCESSES_MIN => Finding::fail("processes", format!("at most {limit}"), ADVICE),
        Some(limit) if limit < PROCESSES_WANTED => Finding::warn("processes", format!("at most {limit}"), ADVICE),
        Some(limit) => Finding::ok("processes", format!("at most {limit}")),
        None => Finding::ok("processes", "unlimited"),
    }
}

/// None: as it should be, and not worth a line.
fn address_space(soft: Option<u64>) -> Option<Finding> {
    let found = format!("at most {}", crate::finding::size(soft?));
    Some(Finding::warn("address space", found, "lift it (ulimit -v unlimited): memory is limited by --memory"))
}

/// None: as it should be, and not worth a line.
fn file_size(soft: Option<u64>) -> Option<Finding> {
    let found = format!("at most {}", crate::finding::size(soft?));
    Some(Finding::fail("file size", found, "lift it (ulimit -f unlimited): a compaction writes large files"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    const TEXT: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
                        Max file size             unlimited            unlimited            bytes     \n\
                        Max processes             95961                95961                processes \n\
                        Max open files            1024                 524288               files     \n";

    #[test]
    fn rows_are_read() {
        assert_eq!(limit(TEXT, "Max open files"), Some((Some(1024), Some(524_288))));
        assert_eq!(limit(TEXT, "Max file size"), Some((None, None)));
        assert_eq!(limit(TEXT, "Max locked memory"), None);
        assert_eq!(limit("Max open files  many  more", "Max open files"), None);
    }

    #[test]
    fn limits_are_judged() {
        let levels = |judge: fn(Option<u64>) -> Finding, limits: [u64; 3]| limits.map(|limit| judge(Some(limit)).level);
        let all = [Level::Fail, Level::Warn, Level::Ok];
        assert_eq!(levels(files, [1023, 99_999, 100_000]), all);
        assert_eq!(levels(processes, [255, 32_767, 32_768]), all);
        assert_eq!((files(None).level, processes(None).level), (Level::Ok, Level::Ok));
        assert_eq!((address_space(None), file_size(None)), (None, None));
        assert_eq!(address_space(Some(1 << 30)).map(|found| found.level), Some(Level::Warn));
        assert_eq!(file_size(Some(1 << 30)).map(|found| found.level), Some(Level::Fail));
    }
}
