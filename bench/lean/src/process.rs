//! The use that a process has made of the machine, from `/proc`: CPU time of all its threads, user
//! and system, and resident memory.

use crate::Result;

/// Clock ticks of `/proc/PID/stat` are hundredths of a second on Linux.
const TICK_US: f64 = 10_000.0;

/// CPU time and memory of a process at one moment, or between two.
pub struct Usage {
    /// Microseconds of CPU time, user and system.
    pub cpu_us: f64,
    /// Resident memory in MiB.
    pub rss_mib: f64,
}

impl Usage {
    /// Of this process, now.
    pub fn of(pid: u32) -> Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name of the program may hold blanks: count from the bracket behind it. Fields 14 and
        // 15 are utime and stime.
        let fields: Vec<&str> =
            stat.rsplit_once(')').ok_or("a stat line without a name")?.1.split_whitespace().collect();
        let ticks = |at: usize| -> Result<f64> { Ok(fields.get(at).ok_or("a short stat line")?.parse()?) };
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        let kib: f64 = resident.trim().trim_end_matches(" kB").parse()?;
        Ok(Self { cpu_us: (ticks(11)? + ticks(12)?) * TICK_US, rss_mib: kib / 1024.0 })
    }

    /// CPU time since `before`; memory as it is now.
    pub fn since(&self, before: &Self) -> Self {
        Self { cpu_us: self.cpu_us - before.cpu_us, rss_mib: self.rss_mib }
    }
}
