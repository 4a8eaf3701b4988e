//! The memory budget: how much there is, and who gets which share. See "Memory" in the architecture.
//!
//! Shares of the whole: memtables 25 %, chunk cache 35 %, requests in flight 10 %; the rest is for maps, compaction and the kernel's cache.

use std::path::Path;

use env::Env;

/// Less is not worth starting with.
const TOTAL_MIN: u64 = 64 << 20;
/// Files of the kernel that say how much there is are shorter.
const KERNEL_FILE_MAX: u64 = 1 << 20;
/// The cache of prepared statements is at least this, as in Cassandra.
const PREPARED_MIN: u64 = 10 << 20;

/// Who may use how many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryBudget {
    /// All of it.
    pub total: u64,
    /// Memtables.
    pub memtables: u64,
    /// Decompressed chunks.
    pub chunk_cache: u64,
    /// Bodies of requests that wait for something.
    pub in_flight: u64,
    /// Prepared statements.
    pub prepared: u64,
}

impl MemoryBudget {
    /// The shares of a whole.
    pub fn of(total: u64) -> Self {
        let total = total.max(TOTAL_MIN);
        Self {
            total,
            memtables: total / 4,
            chunk_cache: total / 100 * 35,
            in_flight: total / 10,
            prepared: (total / 256).max(PREPARED_MIN.min(total / 16)),
        }
    }

    /// Of what this process may use: the limit of its control group, or the machine's memory.
    pub fn of_machine(env: &Env) -> Self {
        let limits = [cgroup_limit(env), physical(env)];
        Self::of(limits.into_iter().flatten().min().unwrap_or(4 << 30))
    }
}

fn read(env: &Env, path: &str) -> Option<String> {
    String::from_utf8(env.disk.read_all(Path::new(path), KERNEL_FILE_MAX).ok()?).ok()
}

fn physical(env: &Env) -> Option<u64> {
    let text = read(env, "/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// The lowest limit from the process's group up to the root (version 2), or that of version 1.
fn cgroup_limit(env: &Env) -> Option<u64> {
    let own = read(env, "/proc/self/cgroup").unwrap_or_default();
    let path = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").trim().to_owned();
    let limit = |file: String| read(env, &file)?.trim().parse::<u64>().ok();
    let up = Path::new(&path).ancestors().filter_map(Path::to_str);
    let version_2 = up.filter_map(|group| limit(format!("/sys/fs/cgroup{}/memory.max", group.trim_end_matches('/'))));
    let version_1 = limit("/sys/fs/cgroup/memory/memory.limit_in_bytes".to_owned());
    version_2.chain(version_1).min()
}

/// A size as the command line takes it: `512M`, `4GiB`, `1073741824`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_lowercase().trim() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(format!("'{text}' is not a size, such as 512M or 4G")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("'{text}' is not a size, such as 512M or 4G"))?;
    number.checked_shl(shift).filter(|size| size >> shift == number).ok_or_else(|| format!("'{text}' is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("512M"), Ok(512 << 20));
        assert_eq!(parse_size("4GiB"), Ok(4 << 30));
        assert_eq!(parse_size("1073741824"), Ok(1 << 30));
        assert!(parse_size("four").is_err());
        assert!(parse_size("99999999999G").is_err());
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(MemoryBudget::of_machine(&env::real::env()).total >= TOTAL_MIN);
    }
}
