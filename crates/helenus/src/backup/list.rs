//! `helenus backup list`.

use backup::listing::{BackupInfo, Listing};
use clap::Args;
use env::Env;

use super::say;

/// Options of `helenus backup list`.
#[derive(Args)]
pub struct List {
    /// The store.
    #[arg(long, value_name = "PLACE")]
    from: String,
}

impl List {
    pub(super) fn run(&self, env: &Env) -> Result<(), String> {
        let store = backup::open(env, &self.from)?;
        let Listing { backups, segments, unread } = backup::listing::list(&*store)?;
        for backup in &backups {
            say(&line(backup))?;
        }
        for (host_id, count) in segments.iter().filter(|(_, count)| **count > 0) {
            say(&format!("{host_id}: {count} segments of the commit log"))?;
        }
        for why in &unread {
            say(&format!("not listed: {why}"))?;
        }
        if !unread.is_empty() {
            return Err(format!("{} manifests cannot be read", unread.len()));
        }
        if backups.is_empty() { say("no backups") } else { Ok(()) }
    }
}

/// The line of a backup. The time is in UTC, as a restore tells times.
fn line(BackupInfo { tag, host_id, address, created_at, tables, bytes }: &BackupInfo) -> String {
    let created = match jiff::Timestamp::from_millisecond(*created_at) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => format!("{created_at} ms"),
    };
    format!("{tag}  {host_id}  {address}  created at {created}, {tables} tables, {bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_for_people() {
        let of = |created_at: i64| {
            let (tag, host_id, address) = ("monday".to_owned(), "5f".to_owned(), "10.0.0.1".to_owned());
            line(&BackupInfo { tag, host_id, address, created_at, tables: 3, bytes: 7 })
        };
        assert_eq!(
            of(1_795_248_662_123),
            "monday  5f  10.0.0.1  created at 2026-11-21T08:11:02.123Z, 3 tables, 7 bytes"
        );
        // a manifest is not trusted
        assert!(of(i64::MAX).contains("created at 9223372036854775807 ms"));
    }
}
