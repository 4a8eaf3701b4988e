//! The clock: whether something keeps it right, how far it is off, and what it is read from.
//!
//! The last write wins by its timestamp, so a clock that is wrong loses writes to those of a clock
//! that is ahead.

use crate::finding::Finding;
use crate::machine::Machine;

/// Seconds that a clock may be off.
const SKEW_MAX: f64 = 0.1;
/// Seconds since 1970 before which a clock was never set: the year 2025.
const NOW_MIN: u64 = 1_735_689_600;
/// Sources that are read without asking the kernel.
const FAST_SOURCES: [&str; 5] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "xen"];

/// The state of the clock, as a time service tells it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Sync {
    /// The clock follows other clocks; seconds by which it is wrong, None where nobody knows them.
    Kept(Option<f64>),
    /// A time service runs and has not reached another clock.
    Lost,
    /// Nobody tells.
    Unknown,
}

/// Looks at the clock.
pub fn examine(machine: &Machine<'_>) -> Vec<Finding> {
    let seconds = u64::try_from(machine.env.clock.now_micros() / 1_000_000).unwrap_or(0);
    let mut found = vec![judge(state(machine), seconds)];
    let source = machine.read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    found.extend(source.map(|source| source_of(source.trim())));
    found
}

fn state(machine: &Machine<'_>) -> Sync {
    if let Some(text) = machine.ask("chronyc", &["-n", "tracking"]) {
        return of_chrony(&text);
    }
    if machine.has("/run/systemd/timesync/synchronized") {
        return Sync::Kept(None);
    }
    match machine.ask("timedatectl", &["show", "-p", "NTPSynchronized"]) {
        Some(text) => of_timedate(&text),
        None => Sync::Unknown,
    }
}

/// The answer of `chronyc tracking`.
fn of_chrony(text: &str) -> Sync {
    let field = |name: &str| {
        let (_, value) = text.lines().find(|line| line.starts_with(name))?.split_once(':')?;
        Some(value.trim())
    };
    if field("Leap status").is_none_or(|status| status == "Not synchronised") {
        return Sync::Lost;
    }
    let off = field("System time").and_then(|value| value.split_whitespace().next()?.parse::<f64>().ok());
    Sync::Kept(off)
}

/// The answer of `timedatectl show`.
fn of_timedate(text: &str) -> Sync {
    match text.trim() {
        "NTPSynchronized=yes" => Sync::Kept(None),
        "NTPSynchronized=no" => Sync::Lost,
        _ => Sync::Unknown,
    }
}

fn judge(state: Sync, seconds: u64) -> Finding {
    const ADVICE: &str = "run chrony or systemd-timesyncd: of two writes the one with the later timestamp stays";
    if seconds < NOW_MIN {
        return Finding::fail("clock", format!("{seconds} seconds since 1970: it was never set"), ADVICE);
    }
    match state {
        Sync::Kept(Some(off)) if off.abs() > SKEW_MAX => {
            Finding::warn("clock", format!("{off:.3} s off the time of its servers"), ADVICE)
        }
        Sync::Kept(Some(off)) => Finding::ok("clock", format!("synchronised, {:.3} ms off", off * 1000.0)),
        Sync::Kept(None) => Finding::ok("clock", "synchronised"),
        Sync::Lost => Finding::warn("clock", "a time service runs, and the clock is not synchronised", ADVICE),
        Sync::Unknown => Finding::warn("clock", "no time service was found", ADVICE),
    }
}

fn source_of(source: &str) -> Finding {
    match source {
        source if FAST_SOURCES.contains(&source) => Finding::ok("clock source", source),
        source => Finding::warn(
            "clock source",
            source,
            "boot with clocksource=tsc if the machine allows it: each reading of this one is a call of the kernel",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    #[test]
    fn answers_are_read() {
        let tracking = "Reference ID    : C0A80001\nSystem time     : 0.000012 seconds slow of NTP time\nLeap status     : Normal\n";
        assert_eq!(of_chrony(tracking), Sync::Kept(Some(0.000_012)));
        assert_eq!(of_chrony("Leap status     : Not synchronised\n"), Sync::Lost);
        assert_eq!(of_chrony(""), Sync::Lost);
        assert_eq!(of_timedate("NTPSynchronized=yes\n"), Sync::Kept(None));
        assert_eq!(of_timedate("NTPSynchronized=no\n"), Sync::Lost);
        assert_eq!(of_timedate("System has not been booted"), Sync::Unknown);
    }

    #[test]
    fn clocks_are_judged() {
        let level = |state| judge(state, NOW_MIN).level;
        assert_eq!((level(Sync::Kept(None)), level(Sync::Kept(Some(0.05)))), (Level::Ok, Level::Ok));
        assert_eq!(level(Sync::Kept(Some(-0.5))), Level::Warn);
        assert_eq!((level(Sync::Lost), level(Sync::Unknown)), (Level::Warn, Level::Warn));
        assert_eq!(judge(Sync::Kept(None), 0).level, Level::Fail);
        assert_eq!((source_of("tsc").level, source_of("hpet").level), (Level::Ok, Level::Warn));
    }
}
