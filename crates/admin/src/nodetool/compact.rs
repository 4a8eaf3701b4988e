//! `nodetool compact`: all SSTables of tables, those of a token range or of a partition, or those
//! that are named.

use crate::AdminError;
use crate::nodetool::selection::selection;
use crate::nodetool::{Context, Outcome, VerbError};
use crate::verbs::{Compact, CompactRequest, TableSelection};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Use -s to not create a single big file
    #[arg(short = 's', long)]
    split_output: bool,
    /// Use --user-defined to submit listed files for user-defined compaction
    #[arg(long)]
    user_defined: bool,
    /// Use -st to specify a token at which the compaction range starts (inclusive)
    #[arg(long, default_value = "", allow_hyphen_values = true, hide_default_value = true)]
    start_token: String,
    /// Use -et to specify a token at which compaction range ends (inclusive)
    #[arg(long, default_value = "", allow_hyphen_values = true, hide_default_value = true)]
    end_token: String,
    /// String representation of the partition key
    #[arg(long, default_value = "", allow_hyphen_values = true, hide_default_value = true)]
    partition: String,
    /// The keyspace followed by one or many tables or list of SSTable data files when using
    /// --user-defined
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let in_range = !(self.start_token.is_empty() && self.end_token.is_empty());
        let in_part = in_range || !self.partition.is_empty();
        if self.split_output && (self.user_defined || in_part) {
            return refuse("Can not use split-output here");
        }
        if self.user_defined && in_part {
            return refuse("Can not provide tokens when using user-defined");
        }
        let request = if self.user_defined {
            CompactRequest { tables: TableSelection::default(), what: Compact::Files(self.args) }
        } else {
            let tables = selection(&self.args, context)?;
            let what = match (in_range, in_part) {
                (true, _) => Compact::Tokens { first: self.start_token, last: self.end_token },
                (_, true) => Compact::Partition(self.partition),
                _ => Compact::All { split: self.split_output },
            };
            CompactRequest { tables, what }
        };
        Ok(context.api.ask(&request)?)
    }
}

fn refuse(why: &str) -> Outcome {
    Err(VerbError::Api(AdminError::Failed(format!("Invalid option combination: {why}"))))
}
