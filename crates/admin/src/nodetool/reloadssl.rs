//! `nodetool reloadssl`: has the node read keys and certificates again.
//!
//! Agrees with `org.apache.cassandra.tools.ReloadSslCertificates`, which prints nothing. Files that
//! the node cannot use are an error here; Cassandra says so in its log alone.

use crate::nodetool::{Context, Outcome};
use crate::verbs::ReloadCertificates;

#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&ReloadCertificates {})?)
    }
}
