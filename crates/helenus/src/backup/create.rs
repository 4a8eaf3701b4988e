//! `helenus backup create`: takes the snapshot that is missing, and brings it into the store.

use std::collections::BTreeSet;
use std::path::PathBuf;

use admin::AdminApi;
use admin::verbs::{ClearSnapshots, GetKeyspaces, GetNode, GetSnapshots, KeyspaceInfo, NodeInfo, SnapshotRequest};
use backup::create::{Done, Request};
use backup::manifest::{Keyspace, NodeIdentity};
use clap::Args;
use env::Env;

use super::say;
use crate::admin_port::AdminPort;

/// Options of `helenus backup create`.
#[derive(Args)]
pub struct Create {
    /// The store: a directory, or s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX.
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// The name of the backup: that of a snapshot which is there (helenus ring snapshot), or of one
    /// that is taken now.
    #[arg(short = 't', long)]
    tag: String,
    /// The node's data directories.
    #[arg(long, required = true, value_name = "DIR")]
    data_dir: Vec<PathBuf>,
    /// Leave the snapshot when it is in the store.
    #[arg(long)]
    keep_snapshot: bool,
    #[command(flatten)]
    node: AdminPort,
}

impl Create {
    pub(super) fn run(&self, env: &Env) -> Result<(), String> {
        let store = backup::open(env, &self.to)?;
        let client = self.node.client()?;
        let api: &dyn AdminApi = &client;
        let failed = |error: admin::AdminError| error.to_string();
        let node = api.ask(&GetNode {}).map_err(failed)?;
        let keyspaces = api.ask(&GetKeyspaces {}).map_err(failed)?;
        self.complete_snapshot(api, &keyspaces).map_err(failed)?;
        let request = Request {
            tag: self.tag.clone(),
            node: identity(node),
            keyspaces: keyspaces.into_iter().map(keyspace).collect(),
            data_directories: self.data_dir.clone(),
        };
        let Done { tables, files, brought } = backup::create::create(env, &*store, &request, &|_| ())?;
        say(&format!(
            "backup {} of {}: {tables} tables, {} files, {} bytes; {} files, {} bytes of them were new",
            self.tag, request.node.host_id, files.0, files.1, brought.0, brought.1
        ))?;
        if !self.keep_snapshot {
            let clear = ClearSnapshots { name: Some(self.tag.clone()), keyspaces: Vec::new() };
            api.ask(&clear).map_err(failed)?;
        }
        Ok(())
    }

    /// Takes the snapshot of the tables that have none of this name.
    fn complete_snapshot(&self, api: &dyn AdminApi, keyspaces: &[KeyspaceInfo]) -> admin::Result<()> {
        let taken = api.ask(&GetSnapshots {})?.into_iter().filter(|snapshot| snapshot.name == self.tag);
        let taken: BTreeSet<_> = taken.map(|snapshot| (snapshot.keyspace, snapshot.table)).collect();
        let all = keyspaces
            .iter()
            .flat_map(|keyspace| keyspace.tables.iter().map(|table| (keyspace.name.clone(), table.clone())));
        let tables: Vec<_> = all.filter(|table| !taken.contains(table)).collect();
        if tables.is_empty() {
            return Ok(());
        }
        api.ask(&SnapshotRequest { name: self.tag.clone(), keyspaces: Vec::new(), tables, skip_flush: false })
    }
}

fn identity(node: NodeInfo) -> NodeIdentity {
    let mut tokens = node.tokens;
    tokens.sort_unstable();
    NodeIdentity {
        cluster: node.cluster_name,
        host_id: node.host_id,
        address: node.address,
        data_center: node.data_center,
        rack: node.rack,
        tokens,
        version: node.helenus_version,
    }
}

fn keyspace(info: KeyspaceInfo) -> Keyspace {
    let class = ("class".to_owned(), info.replication_class);
    Keyspace { name: info.name, replication: std::iter::once(class).chain(info.replication_options).collect() }
}
