//! `helenus backup log`: for `archive_command` of commitlog_archiving.properties.

use std::path::PathBuf;

use clap::Args;
use env::Env;

/// Options of `helenus backup log`.
#[derive(Args)]
pub struct Log {
    /// The store.
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// The node's host id.
    #[arg(long, value_name = "ID")]
    host_id: String,
    /// Segments.
    #[arg(required = true)]
    segments: Vec<PathBuf>,
}

impl Log {
    pub(super) fn run(&self, env: &Env) -> Result<(), String> {
        let store = backup::open(env, &self.to)?;
        self.segments.iter().try_for_each(|segment| backup::log::upload(env, &*store, &self.host_id, segment))
    }
}
