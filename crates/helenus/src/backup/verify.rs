//! `helenus backup verify`.

use clap::Args;
use env::Env;

use super::say;

/// Options of `helenus backup verify`.
#[derive(Args)]
pub struct Verify {
    /// The store.
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// The name of the backup.
    #[arg(short = 't', long)]
    tag: String,
}

impl Verify {
    pub(super) fn run(&self, env: &Env) -> Result<(), String> {
        let store = backup::open(env, &self.from)?;
        let found = backup::verify::verify(env, &*store, &self.tag, &|_| ())?;
        for wrong in &found.told {
            say(wrong)?;
        }
        for host_id in &found.absent {
            say(&format!("the node {host_id} was in the ring, and the backup has no part of it"))?;
        }
        let (files, bytes) = found.files;
        match (found.wrong, found.unread) {
            (0, 0) if !found.absent.is_empty() => Err(format!(
                "the parts of {} nodes are whole, and {} nodes of the ring have no part in the backup",
                found.nodes,
                found.absent.len()
            )),
            (0, 0) => {
                say(&format!("backup {} is whole: {} nodes, {files} files, {bytes} bytes", self.tag, found.nodes))
            }
            (wrong, 0) => Err(format!("{wrong} of {files} files are missing or damaged")),
            (wrong, unread) => Err(format!(
                "{wrong} of {files} files are missing or damaged, and {unread} could not be read: verify again"
            )),
        }
    }
}
