//! `nodetool rebuild`: the node fetches the data of its ranges anew.
//! Agrees with `org.apache.cassandra.tools.nodetool.Rebuild`.

use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::{RangeMovement, RebuildRequest};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name of DC from which to select sources for streaming. By default, pick any DC (except local
    /// DC when --exclude-local-dc is set)
    source_dc: Option<String>,
    /// Use -ks to rebuild specific keyspace
    #[arg(long)]
    keyspace: Option<String>,
    /// Use -ts to rebuild specific token ranges, in the format of
    /// "(start_token_1,end_token_1],(start_token_2,end_token_2]"
    #[arg(long, allow_hyphen_values = true)]
    tokens: Option<String>,
    /// Use -s to specify hosts that this node should stream from when -ts is used. Multiple hosts
    /// should be separated using commas
    #[arg(short = 's', long)]
    sources: Option<String>,
    /// Use --exclude-local-dc to exclude nodes in local data center as source for streaming
    #[arg(long)]
    exclude_local_dc: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        if self.keyspace.is_none() && self.tokens.is_some() {
            return usage("Cannot specify tokens without keyspace.");
        }
        let request = RebuildRequest {
            source_data_center: self.source_dc,
            keyspace: self.keyspace,
            tokens: self.tokens,
            sources: self.sources,
            excludes_local_data_center: self.exclude_local_dc,
        };
        Ok(context.api.ask(&RangeMovement::Rebuild(request))?)
    }
}
