//! Memory: what the machine and the control group have beside what the node is to use, swap, large
//! pages.

use crate::finding::{Finding, size};
use crate::machine::Machine;
use crate::processor::groups;

/// A node of less memory than this runs, and serves little.
const MEMORY_MIN: u64 = 256 << 20;
/// The usual number of mappings of a process.
const MAPPINGS_MIN: u64 = 65_530;
/// `vm.swappiness` from which on a node beside swap is swapped out under load.
const SWAPPINESS_MAX: u64 = 1;

/// Looks at memory. `asked`: bytes of `--memory`.
pub fn examine(machine: &Machine<'_>, asked: Option<u64>) -> Vec<Finding> {
    let mut found = Vec::new();
    let info = machine.read("/proc/meminfo").unwrap_or_default();
    let limit = groups(machine)
        .filter_map(|group| machine.number(&format!("{group}/memory.max")))
        .chain(machine.number("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
        .min();
    match field(&info, "MemTotal") {
        Some(total) => found.push(room(total, field(&info, "MemAvailable"), limit, asked)),
        None => found.push(Finding::warn("memory", "/proc/meminfo cannot be read", "give --memory")),
    }
    let swappiness = machine.number("/proc/sys/vm/swappiness");
    found.extend(field(&info, "SwapTotal").map(|total| swap(total, swappiness)));
    found.extend(machine.read("/sys/kernel/mm/transparent_hugepage/enabled").map(|text| large_pages(&text)));
    found.extend(machine.number("/proc/sys/vm/max_map_count").map(mappings));
    found.extend(machine.number("/proc/sys/vm/overcommit_memory").and_then(overcommit));
    found
}

/// A field of `/proc/meminfo` in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn room(total: u64, available: Option<u64>, group: Option<u64>, asked: Option<u64>) -> Finding {
    let most = group.map_or(total, |limit| limit.min(total));
    let whose = if most < total { "the control group" } else { "the machine" };
    let wanted = asked.unwrap_or(most);
    let found = format!("{} for the node, {whose} has {}", size(wanted), size(most));
    if wanted > most {
        let advice = format!("--memory at most {}, or the kernel kills the node", size(most));
        return Finding::fail("memory", found, advice);
    }
    if wanted < MEMORY_MIN {
        return Finding::warn("memory", found, "a node that serves more than a test wants 1 GiB and more");
    }
    match available.filter(|available| asked.is_some_and(|asked| asked > *available)) {
        Some(available) => {
            let advice = format!("other programs leave {}: stop them, or give less --memory", size(available));
            Finding::warn("memory", found, advice)
        }
        None => Finding::ok("memory", found),
    }
}

fn swap(total: u64, swappiness: Option<u64>) -> Finding {
    if total == 0 {
        return Finding::ok("swap", "none");
    }
    match swappiness {
        Some(value) if value <= SWAPPINESS_MAX => {
            Finding::ok("swap", format!("{}, hardly used (vm.swappiness {value})", size(total)))
        }
        value => Finding::warn(
            "swap",
            format!(
                "{}, vm.swappiness {}",
                size(total),
                value.map_or("not known".to_owned(), |value| value.to_string())
            ),
            "swapoff -a, or sysctl vm.swappiness=1: memory that was swapped out makes requests wait for the disk",
        ),
    }
}

fn large_pages(text: &str) -> Finding {
    let chosen = text.split(['[', ']']).nth(1).unwrap_or("not known");
    match chosen {
        "always" => Finding::warn(
            "large pages",
            "transparent_hugepage is always",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: the node would hold more memory than it uses",
        ),
        chosen => Finding::ok("large pages", format!("transparent_hugepage is {chosen}")),
    }
}

fn mappings(most: u64) -> Finding {
    let found = format!("vm.max_map_count {most}");
    match most {
        0..MAPPINGS_MIN => Finding::warn("mappings", found, format!("sysctl vm.max_map_count={MAPPINGS_MIN}")),
        _ => Finding::ok("mappings", format!("{found}: files are not mapped, the usual is enough")),
    }
}

/// None: as it should be, and not worth a line.
fn overcommit(mode: u64) -> Option<Finding> {
    let advice = "sysctl vm.overcommit_memory=0: with 2 an allocation fails long before memory is used up";
    (mode == 2).then(|| Finding::warn("overcommit", "vm.overcommit_memory 2", advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    #[test]
    fn memory_is_judged() {
        let gib = 1 << 30;
        let level = |available, group, asked| room(8 * gib, available, group, asked).level;
        assert_eq!(level(None, None, None), Level::Ok);
        assert_eq!(level(None, None, Some(9 * gib)), Level::Fail);
        assert_eq!(level(None, Some(2 * gib), Some(3 * gib)), Level::Fail);
        assert_eq!(level(Some(gib), None, Some(2 * gib)), Level::Warn);
        assert_eq!(level(None, Some(64 << 20), None), Level::Warn);
        assert!(room(8 * gib, None, Some(2 * gib), None).found.contains("the control group has 2.0 GiB"));
    }

    #[test]
    fn the_rest_is_judged() {
        assert_eq!(field("MemTotal:       24 kB\nSwapTotal: 1 kB\n", "MemTotal"), Some(24 << 10));
        assert_eq!(field("MemTotal: many kB\n", "MemTotal"), None);
        assert_eq!(field("MemTotal: 18446744073709551615 kB\n", "MemTotal"), None);
        assert_eq!(swap(0, Some(60)).level, Level::Ok);
        assert_eq!(swap(1, Some(1)).level, Level::Ok);
        assert_eq!((swap(1, Some(60)).level, swap(1, None).level), (Level::Warn, Level::Warn));
        assert_eq!(large_pages("[always] madvise never\n").level, Level::Warn);
        assert_eq!(large_pages("always [madvise] never\n").level, Level::Ok);
        assert_eq!((mappings(1).level, mappings(65_530).level), (Level::Warn, Level::Ok));
        assert_eq!((overcommit(0), overcommit(2).map(|found| found.level)), (None, Some(Level::Warn)));
    }
}
