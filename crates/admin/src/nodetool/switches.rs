//! `nodetool statusbinary`, `statusgossip`, `statusbackup`, `statushandoff`: whether a part of the node runs.

use crate::nodetool::{Context, Outcome};

#[derive(clap::Args)]
pub struct Binary {}

#[derive(clap::Args)]
pub struct Gossip {}

/// Incremental backups are not done.
#[derive(clap::Args)]
pub struct Backup {}

/// One node has nobody to keep hints for.
#[derive(clap::Args)]
pub struct Handoff {}

fn word(runs: bool) -> &'static str {
    if runs { "running" } else { "not running" }
}

impl Binary {
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(writeln!(context.out, "{}", word(context.api.node()?.native_transport_active))?)
    }
}

impl Gossip {
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(writeln!(context.out, "{}", word(context.api.node()?.gossip_active))?)
    }
}

impl Backup {
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(writeln!(context.out, "{}", word(false))?)
    }
}

impl Handoff {
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(writeln!(context.out, "Hinted handoff is {}", word(false))?)
    }
}
