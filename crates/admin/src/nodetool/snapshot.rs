//! `nodetool snapshot`: hard links of all SSTables of some tables.

use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verbs::SnapshotRequest;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The table name (you must specify one and only one keyspace for using this option)
    #[arg(long, alias = "column-family")]
    table: Option<String>,
    /// The name of the snapshot
    #[arg(short = 't', long)]
    tag: Option<String>,
    /// The list of Keyspace.table to take snapshot (you must not specify only keyspace)
    #[arg(long, alias = "kc.list")]
    kt_list: Option<String>,
    /// Do not flush memtables before snapshotting (snapshot will not contain unflushed data)
    #[arg(long)]
    skip_flush: bool,
    /// Refused: snapshots do not expire
    #[arg(long)]
    ttl: Option<String>,
    /// List of keyspaces, or of tables as keyspace.table. By default, all keyspaces
    keyspaces: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let name = self.tag.clone().unwrap_or_else(|| context.now_millis.to_string());
        if name.contains('/') {
            return usage("Snapshot name cannot contain /");
        }
        if self.ttl.is_some() {
            return usage(
                "--ttl is not supported, because snapshots do not expire: take the snapshot without --ttl, and remove \
                 old ones with nodetool clearsnapshot --all --older-than DURATION",
            );
        }
        let request = SnapshotRequest {
            name,
            keyspaces: self.keyspaces.clone(),
            tables: self.tables()?,
            skip_flush: self.skip_flush,
        };
        let of = match (&self.kt_list, self.keyspaces.as_slice()) {
            (Some(list), _) => list.replace(' ', ""),
            (None, []) => "all keyspaces".to_owned(),
            (None, keyspaces) => keyspaces.join(", "),
        };
        writeln!(
            context.out,
            "Requested creating snapshot(s) for [{of}] with snapshot name [{}] and options {{skipFlush={}}}",
            request.name, request.skip_flush
        )?;
        context.api.ask(&request)?;
        Ok(writeln!(context.out, "Snapshot directory: {}", request.name)?)
    }

    fn tables(&self) -> Result<Vec<(String, String)>, VerbError> {
        match (&self.kt_list, &self.table, self.keyspaces.as_slice()) {
            // the first name says for all of them what they are
            (None, None, names @ [first, ..]) if first.contains('.') => names.iter().map(|name| pair(name)).collect(),
            (None, None, _) => Ok(Vec::new()),
            (Some(list), None, []) => list.replace(' ', "").split(',').map(pair).collect(),
            (Some(_), _, _) => usage(
                "When specifying the Keyspace table list (using -kt,--kt-list,-kc,--kc.list), you must not also specify \
                 keyspaces to snapshot",
            ),
            (None, Some(table), [keyspace]) => Ok(vec![(keyspace.clone(), table.clone())]),
            (None, Some(_), _) => {
                usage("When specifying the table for a snapshot, you must specify one and only one keyspace")
            }
        }
    }
}

fn pair(name: &str) -> Result<(String, String), VerbError> {
    match name.split_once('.') {
        Some((keyspace, table)) => Ok((keyspace.to_owned(), table.to_owned())),
        None => usage(format!("{name} is not of the form keyspace.table")),
    }
}
