//! The memory budget: how much memory the node may use, and how it is shared.
//!
//! Of the whole, memtables have 25 %, caches 35 %, requests in flight 10 %, large results 10 % and,
//! among several nodes, writes whose replicas have not all answered 10 %; the rest is for
//! compaction and the kernel's page cache.

use std::path::Path;

use env::Env;

/// The smallest budget. A smaller value is raised to this one.
const TOTAL_MIN: u64 = 64 << 20;
/// Bytes that are read of a file of the kernel at most; the files are shorter.
const KERNEL_FILE_MAX: u64 = 1 << 20;
/// Smallest size of the cache of prepared statements, as in Cassandra.
const PREPARED_MIN: u64 = 10 << 20;

/// The key cache has this fraction of the share of caches where the configuration does not say, and
/// as in Cassandra not more than 100 MiB.
const KEY_CACHE_SHARE: u64 = 16;
const KEY_CACHE_MAX: u64 = 100 << 20;
/// The chunk cache has at least this fraction of the share of caches, whatever sizes the other
/// caches are given.
const CHUNKS_SHARE_MIN: u64 = 8;

/// The capacity of each cache in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheSizes {
    /// The chunk cache.
    pub chunks: u64,
    /// The key cache.
    pub keys: u64,
    /// The row cache.
    pub rows: u64,
}

/// The bytes that each part of the node may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryBudget {
    /// The whole budget.
    pub total: u64,
    /// Memtables.
    pub memtables: u64,
    /// Caches: chunks, keys, rows.
    pub caches: u64,
    /// Bodies of requests that wait for something.
    pub in_flight: u64,
    /// Large results until they are sent.
    pub results: u64,
    /// Writes until all of their replicas have answered; each counts once.
    pub unanswered: u64,
    /// Prepared statements.
    pub prepared: u64,
}

impl MemoryBudget {
    /// The shares of a whole budget.
    pub fn of(total: u64) -> Self {
        let total = total.max(TOTAL_MIN);
        Self {
            total,
            memtables: total / 4,
            caches: total / 100 * 35,
            in_flight: total / 10,
            results: total / 10,
            unanswered: total / 10,
            prepared: (total / 256).max(PREPARED_MIN.min(total / 16)),
        }
    }

    /// The largest request. A value is held up to three times on its way, and once in the memtable
    /// (docs/notes/0011).
    pub fn request_max(&self) -> u64 {
        self.total / 8
    }

    /// The capacity of each cache: what the configuration says, and for caches of which it says
    /// nothing a part of the share of all caches. Err: the sum is more than memtables, requests,
    /// results and unanswered writes leave of the whole.
    pub fn cache_sizes(&self, config: &config::Caches) -> Result<CacheSizes, String> {
        let keys = config.key_size.unwrap_or((self.caches / KEY_CACHE_SHARE).min(KEY_CACHE_MAX));
        let wanted = keys.saturating_add(config.row_size);
        let chunks = config.file_size.unwrap_or(self.caches.saturating_sub(wanted).max(self.caches / CHUNKS_SHARE_MIN));
        let others = self.memtables + self.in_flight + self.results + self.unanswered + self.prepared;
        let most = self.total - others;
        if wanted.saturating_add(chunks) > most {
            return Err(format!(
                "file_cache_size, key_cache_size and row_cache_size are {} bytes together; of the {} that the node may use (--memory), \
                 memtables, requests, results and unanswered writes leave {most}",
                wanted.saturating_add(chunks),
                self.total
            ));
        }
        Ok(CacheSizes { chunks, keys, rows: config.row_size })
    }

    /// The budget of this process: the limit of its control group, or the machine's memory.
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
    fn caches_share_what_is_theirs() {
        let sizes = |total: u64, sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let config = config::Config::load(None, &sets, false).expect("known keys");
            MemoryBudget::of(total).cache_sizes(&config.caches)
        };
        let budget = MemoryBudget::of(1 << 30);
        let plain = sizes(1 << 30, &[]).expect("it fits");
        assert_eq!((plain.chunks + plain.keys, plain.rows), (budget.caches, 0));
        let given = sizes(1 << 30, &["key_cache_size=10MiB", "row_cache_size=100MiB"]).expect("it fits");
        assert_eq!((given.keys, given.rows), (10 << 20, 100 << 20));
        assert_eq!(given.chunks + given.keys + given.rows, budget.caches);
        assert_eq!(sizes(1 << 30, &["file_cache_size=420MiB"]).map(|sizes| sizes.chunks), Ok(420 << 20));
        assert!(sizes(1 << 30, &["row_cache_size=600MiB"]).is_err());
        assert!(sizes(1 << 30, &["file_cache_size=500MiB"]).is_err());
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(MemoryBudget::of_machine(&env::real::env()).total >= TOTAL_MIN);
    }
}
