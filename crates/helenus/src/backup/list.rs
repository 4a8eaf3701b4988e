//! `helenus backup list`.

use backup::listing::Listing;
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
            say(&format!(
                "{}  {}  {}  created at {} ms, {} tables, {} bytes",
                backup.tag, backup.host_id, backup.address, backup.created_at, backup.tables, backup.bytes
            ))?;
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
