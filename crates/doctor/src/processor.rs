//! Processors: cores, and what the control group gives of them.

use crate::finding::Finding;
use crate::machine::Machine;

/// Shards of a table for each core, where `--shards` does not say. As `server::running` has it.
const SHARDS_A_CORE: usize = 4;
/// More shards of a table than this for each core cost memory and gain nothing.
const SHARDS_A_CORE_MAX: usize = 64;

/// Looks at processors. `shards`: `--shards`.
pub fn examine(machine: &Machine<'_>, shards: Option<usize>) -> Vec<Finding> {
    let cores = if machine.is_this() {
        machine.env.tasks.cores()
    } else {
        machine
            .read("/proc/cpuinfo")
            .map_or(1, |text| text.lines().filter(|line| line.starts_with("processor")).count())
    };
    let quota =
        groups(machine).filter_map(|group| share(&machine.read(&format!("{group}/cpu.max"))?)).min_by(f64::total_cmp);
    vec![processors(cores, quota), shards_of(cores, shards)]
}

/// The directories of the process's control group (version 2), from its own to the root.
pub fn groups(machine: &Machine<'_>) -> impl Iterator<Item = String> + use<> {
    let own = machine.read("/proc/self/cgroup").unwrap_or_default();
    let path = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").trim().to_owned();
    let mut next = Some(path);
    std::iter::from_fn(move || {
        let path = next.take()?;
        let path = path.trim_end_matches('/');
        next = path.rfind('/').map(|end| path[..end].to_owned());
        Some(format!("/sys/fs/cgroup{path}"))
    })
}

/// The cores that `cpu.max` allows; None: any number.
fn share(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let (quota, period) = (words.next()?.parse::<f64>().ok()?, words.next()?.parse::<f64>().ok()?);
    (period > 0.0).then(|| quota / period)
}

fn processors(cores: usize, quota: Option<f64>) -> Finding {
    match quota {
        Some(quota) if quota < 1.0 => Finding::warn(
            "processors",
            format!("{cores} cores, of which the control group gives {quota:.2}"),
            "give at least 1 (cpu.max, CPUQuota=, --cpus): else every request waits for its turn",
        ),
        Some(quota) if quota + 0.5 < cores as f64 => Finding::warn(
            "processors",
            format!("{cores} cores, of which the control group gives {quota:.2}"),
            "the node starts a worker for each core: bind it to as many (cpuset, AllowedCPUs=) for even latencies",
        ),
        _ => Finding::ok("processors", format!("{cores} cores")),
    }
}

fn shards_of(cores: usize, asked: Option<usize>) -> Finding {
    let shards = asked.unwrap_or(SHARDS_A_CORE * cores).max(1);
    let found = format!("{shards} a table");
    if asked.is_some_and(|asked| !asked.is_power_of_two()) {
        return Finding::fail("shards", found, "--shards is a power of two");
    }
    match shards / cores.max(1) {
        0 => {
            Finding::warn("shards", found, format!("writers of {cores} cores wait for each other: leave --shards out"))
        }
        each if each > SHARDS_A_CORE_MAX => Finding::warn("shards", found, "leave --shards out: each one costs memory"),
        _ => Finding::ok("shards", found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    #[test]
    fn processors_are_judged() {
        assert_eq!(share("max 100000\n"), None);
        assert_eq!(share("50000 100000\n"), Some(0.5));
        assert_eq!(share("50000 0\n"), None);
        assert_eq!(processors(4, None).level, Level::Ok);
        assert_eq!(processors(4, Some(4.0)).level, Level::Ok);
        assert_eq!(processors(4, Some(2.0)).level, Level::Warn);
        assert!(processors(1, Some(0.5)).advice.contains("at least 1"));
        assert_eq!(shards_of(4, None).level, Level::Ok);
        assert_eq!(shards_of(4, Some(3)).level, Level::Fail);
        assert_eq!(shards_of(4, Some(2)).level, Level::Warn);
        assert_eq!(shards_of(1, Some(128)).level, Level::Warn);
    }
}
