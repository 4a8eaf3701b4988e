//! `nodetool statusbinary`, `statusgossip`, `statusbackup`: whether a part of the node runs;
//! `disablebinary`, `enablebinary`, `disablegossip` and `enablegossip`, which print nothing.

use crate::nodetool::{Context, Outcome};
use crate::verbs::{GetNode, GossipChange, TransportChange};

#[derive(clap::Args)]
pub(crate) struct Binary {}

#[derive(clap::Args)]
pub(crate) struct Gossip {}

#[derive(clap::Args)]
pub(crate) struct DisableBinary {
    /// Interrupt client requests that have already started
    #[arg(short, long)]
    force: bool,
}

#[derive(clap::Args)]
pub(crate) struct EnableBinary {}

#[derive(clap::Args)]
pub(crate) struct DisableGossip {}

#[derive(clap::Args)]
pub(crate) struct EnableGossip {}

/// Incremental backups are not done.
#[derive(clap::Args)]
pub(crate) struct Backup {}

fn word(runs: bool) -> &'static str {
    if runs { "running" } else { "not running" }
}

impl Binary {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(writeln!(context.out, "{}", word(context.api.ask(&GetNode {})?.native_transport_active))?)
    }
}

impl DisableBinary {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&TransportChange::Close { force: self.force })?)
    }
}

impl EnableBinary {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&TransportChange::Open)?)
    }
}

impl Gossip {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(writeln!(context.out, "{}", word(context.api.ask(&GetNode {})?.gossip_active))?)
    }
}

impl DisableGossip {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&GossipChange::Stop)?)
    }
}

impl EnableGossip {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&GossipChange::Start)?)
    }
}

impl Backup {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(writeln!(context.out, "{}", word(false))?)
    }
}
