//! `nodetool listsnapshots`: snapshots with their sizes.

use crate::nodetool::text::{Table, date_time, file_size};
use crate::nodetool::{Context, Outcome};
use crate::verbs::GetSnapshots;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Skip snapshots with TTL (no snapshot of a node has one)
    #[arg(long)]
    no_ttl: bool,
    /// Show whether snapshots are ephemeral (those of a node are not)
    #[arg(short = 'e', long)]
    ephemeral: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let snapshots = context.api.ask(&GetSnapshots {})?;
        writeln!(context.out, "Snapshot Details: ")?;
        if snapshots.is_empty() {
            return Ok(writeln!(context.out, "There are no snapshots")?);
        }
        let mut table = Table::new();
        let with_ephemeral = |cell| self.ephemeral.then_some(cell);
        let names = [
            "Snapshot name",
            "Keyspace name",
            "Column family name",
            "True size",
            "Size on disk",
            "Creation time",
            "Expiration time",
        ];
        table.add(names.into_iter().chain(with_ephemeral("Ephemeral")));
        for snapshot in &snapshots {
            let created = snapshot.created_at.map_or(String::new(), |at| format!("{}Z", date_time(at)));
            let (true_size, on_disk) = (file_size(snapshot.true_size), file_size(snapshot.size_on_disk));
            let cells = [&snapshot.name, &snapshot.keyspace, &snapshot.table, &true_size, &on_disk, &created, ""];
            table.add(cells.into_iter().chain(with_ephemeral("false")));
        }
        table.print(context.out)?;
        let total: u64 = snapshots.iter().map(|snapshot| snapshot.true_size).sum();
        writeln!(context.out, "\nTotal TrueDiskSpaceUsed: {}\n", file_size(total))?;
        Ok(())
    }
}
