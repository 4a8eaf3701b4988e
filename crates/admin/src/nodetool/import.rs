//! `nodetool import`: SSTables from other directories become SSTables of a table.

use crate::nodetool::{Context, EXIT_USAGE, Outcome, VerbError, usage};
use crate::verbs::ImportRequest;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Keep the level on the new sstables
    #[arg(short = 'l', long)]
    keep_level: bool,
    /// Keep any repaired information from the sstables
    #[arg(short = 'r', long)]
    keep_repaired: bool,
    /// Don't verify new sstables
    #[arg(short = 'v', long)]
    no_verify: bool,
    /// Don't verify that all tokens in the new sstable are owned by the current node
    #[arg(short = 't', long)]
    no_tokens: bool,
    /// Don't invalidate the row cache when importing (an entry of the row cache is never used with
    /// other SSTables than those that it was read from)
    #[arg(short = 'c', long)]
    no_invalidate_caches: bool,
    /// Do a quick import without verifying sstables
    #[arg(short = 'q', long)]
    quick: bool,
    /// Run an extended verify, verifying all values in the new sstables
    #[arg(short = 'e', long)]
    extended_verify: bool,
    /// Copy data from source directories instead of moving them (-p behind the verb)
    #[arg(long)]
    copy_data: bool,
    /// Require existing index components for SSTables with attached indexes (those that Helenus
    /// writes; without the option components that are not there are made)
    #[arg(long)]
    require_index_components: bool,
    /// Skip SSTable-attached index checksum validation (without effect: components are checked as
    /// they are opened, and those that do not fit are made again)
    #[arg(long)]
    no_index_validation: bool,
    /// The keyspace, table name and directories to import sstables from
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let [keyspace, table, directories @ ..] = self.args.as_slice() else {
            return usage("import requires keyspace, table name and directories");
        };
        if directories.is_empty() {
            return usage("import requires keyspace, table name and directories");
        }
        if self.quick {
            let line = "Doing a quick import - skipping sstable verification and row cache invalidation";
            writeln!(context.out, "{line}")?;
        }
        let request = ImportRequest {
            keyspace: keyspace.clone(),
            table: table.clone(),
            directories: directories.to_vec(),
            reset_level: !self.keep_level,
            clear_repaired: !self.keep_repaired,
            verify: !self.no_verify && !self.quick,
            extended_verify: self.extended_verify && !self.quick,
            copy: self.copy_data,
            verify_tokens: !self.no_tokens && !self.quick,
            require_indexes: self.require_index_components,
        };
        let failed = context.api.ask(&request)?;
        if failed.is_empty() {
            return Ok(());
        }
        let mut text = "Some directories failed to import, check server logs for details:\n".to_owned();
        failed.iter().for_each(|directory| text += &format!("{directory}\n"));
        Err(VerbError::Failed { text, code: EXIT_USAGE })
    }
}
