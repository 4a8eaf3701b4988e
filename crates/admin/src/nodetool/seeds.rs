//! `nodetool getseeds` and `reloadseeds`. Agrees with
//! `org.apache.cassandra.tools.nodetool.{GetSeeds,ReloadSeeds}`.

use crate::nodetool::{Context, Outcome};
use crate::verbs::{GetSeeds, ReloadSeeds};

#[derive(clap::Args)]
pub(crate) struct Get {}

#[derive(clap::Args)]
pub(crate) struct Reload {}

const NOBODY: &str = "Seed node list does not contain any remote node IPs";

impl Get {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let line = match context.api.ask(&GetSeeds {})? {
            seeds if seeds.is_empty() => NOBODY.to_owned(),
            seeds => {
                format!("Current list of seed node IPs, excluding the current node's IP: {}", seeds.join(" "))
            }
        };
        Ok(writeln!(context.out, "{line}")?)
    }
}

impl Reload {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let line = match context.api.ask(&ReloadSeeds {})? {
            None => "Failed to reload the seed node list.".to_owned(),
            Some(seeds) if seeds.is_empty() => NOBODY.to_owned(),
            Some(seeds) => format!("Updated seed node IP list, excluding the current node's IP: {}", seeds.join(" ")),
        };
        Ok(writeln!(context.out, "{line}")?)
    }
}
