//! `nodetool getsstables`: the data files that hold a partition.

use crate::nodetool::getendpoints::check_table;
use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::GetSSTables;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Specify the key in hexadecimal string format
    #[arg(long)]
    hex_format: bool,
    /// If the table is using leveled compaction the level of each sstable will be included in the
    /// output (Default: false)
    #[arg(short = 'l', long)]
    show_levels: bool,
    /// The keyspace, the table, and the key
    #[arg(allow_negative_numbers = true)]
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let [keyspace, table, key] = self.args.as_slice() else {
            return usage("getsstables requires ks, cf and key args");
        };
        check_table(context, keyspace, table)?;
        let (keyspace, table, key) = (keyspace.clone(), table.clone(), key.clone());
        let request = GetSSTables { keyspace, table, key, hex: self.hex_format };
        let mut found = context.api.ask(&request)?;
        let levels = self.show_levels && found.is_leveled;
        if levels {
            found.files.sort_by_key(|(level, _)| *level);
        }
        for (level, file) in found.files {
            match levels {
                true => writeln!(context.out, "{level}: {file}")?,
                false => writeln!(context.out, "{file}")?,
            }
        }
        Ok(())
    }
}
