//! `helenus backup create`: takes the snapshot that is missing, and brings it into the store.

use std::collections::BTreeMap;
use std::path::PathBuf;

use admin::AdminApi;
use admin::verbs::{
    ClearSnapshots, EndpointState, GetKeyspaces, GetNode, GetRing, GetSnapshots, KeyspaceInfo, NodeInfo, SnapshotInfo,
    SnapshotRequest,
};
use backup::NodeTable;
use backup::create::{Request, Summary};
use backup::manifest::{Keyspace, NodeIdentity};
use clap::Args;
use env::Env;

use super::{check_tag, say};
use crate::admin_port::AdminPort;

/// How often at most snapshots are taken of tables that were created meanwhile.
const ROUNDS_MAX: usize = 10;

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
    /// The node's data directories, every one of them.
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
        check_tag(&self.tag)?;
        // before the node takes the snapshot: otherwise the backup that is made once the slip is
        // mended has the rows of this moment, and not of its own
        backup::check_directories(env, &self.data_dir)?;
        let store = backup::open(env, &self.to)?;
        let client = self.node.client()?;
        let api: &dyn AdminApi = &client;
        let failed = |error: admin::AdminError| error.to_string();
        let node = api.ask(&GetNode {}).map_err(failed)?;
        let ring = api.ask(&GetRing::default()).map_err(failed)?;
        let members = ring.endpoints.into_iter().filter(|endpoint| endpoint.state != EndpointState::Joining);
        let (keyspaces, Chosen { tables, notes }) = complete_snapshot(api, &self.tag)?;
        notes.iter().try_for_each(|note| say(note))?;
        let request = Request {
            tag: self.tag.clone(),
            node: identity(node),
            ring: members.map(|endpoint| endpoint.host_id).collect(),
            tables,
            keyspaces: keyspaces.into_iter().map(keyspace).collect(),
            data_directories: self.data_dir.clone(),
        };
        let Summary { tables, files, uploaded } = backup::create::create(env, &*store, &request, &|_| ())?;
        say(&format!(
            "backup {} of {}: {tables} tables, {} files, {} bytes; {} files, {} bytes of them were new",
            self.tag, request.node.host_id, files.0, files.1, uploaded.0, uploaded.1
        ))?;
        if !self.keep_snapshot {
            let clear = ClearSnapshots { name: Some(self.tag.clone()), keyspaces: Vec::new() };
            api.ask(&clear).map_err(failed)?;
        }
        Ok(())
    }
}

/// Takes the snapshot of the tables that have none of this name, and looks again: a table that was
/// created meanwhile is in the snapshot of the schema, and a restored node would have it without
/// its rows. Gives the keyspaces of the node, and the tables of the backup. Err: a table has half
/// of a snapshot.
fn complete_snapshot(api: &dyn AdminApi, tag: &str) -> Result<(Vec<KeyspaceInfo>, Chosen), String> {
    let failed = |error: admin::AdminError| error.to_string();
    for _ in 0..ROUNDS_MAX {
        let keyspaces = api.ask(&GetKeyspaces {}).map_err(failed)?;
        let taken = api.ask(&GetSnapshots {}).map_err(failed)?;
        let taken: Vec<_> = taken.into_iter().filter(|snapshot| snapshot.name == tag).collect();
        let chosen = chosen(tables(&keyspaces)?, &taken);
        let tables = missing(tag, &taken, &chosen.tables)?;
        if tables.is_empty() {
            return Ok((keyspaces, chosen));
        }
        let request = SnapshotRequest { name: tag.to_owned(), keyspaces: Vec::new(), tables, skip_flush: false };
        api.ask(&request).map_err(failed)?;
    }
    Err(format!("tables are created all the time: the snapshot {tag} has not had all of them {ROUNDS_MAX} times"))
}

/// The tables of the node, with their ids. Err: the node does not tell the ids.
fn tables(keyspaces: &[KeyspaceInfo]) -> Result<Vec<NodeTable>, String> {
    if let Some(keyspace) = keyspaces.iter().find(|of| of.tables.len() != of.table_ids.len()) {
        let name = &keyspace.name;
        return Err(format!("the node does not tell the ids of the tables of {name}: its version is an earlier one"));
    }
    let of_keyspace = |keyspace: &KeyspaceInfo| {
        let named = keyspace.tables.iter().zip(&keyspace.table_ids);
        let table = |(name, id): (&String, &String)| NodeTable {
            keyspace: keyspace.name.clone(),
            name: name.clone(),
            id: id.clone(),
        };
        named.map(table).collect::<Vec<_>>()
    };
    Ok(keyspaces.iter().flat_map(of_keyspace).collect())
}

/// The tables of a backup.
struct Chosen {
    tables: Vec<NodeTable>,
    /// Sentences for the operator about tables that were dropped since the snapshot was taken.
    notes: Vec<String>,
}

/// The tables of the node, and those that it had when the snapshots of the backup's name were
/// taken. A table that was dropped since is what a backup is for. Where it was made again under its
/// name, the new table is left out unless it has a snapshot of its own: its rows would be mixed
/// with the old ones when the backup is loaded.
fn chosen(of_node: Vec<NodeTable>, taken: &[SnapshotInfo]) -> Chosen {
    let is_of = |snapshot: &SnapshotInfo, table: &NodeTable| {
        (&snapshot.keyspace, &snapshot.table_id) == (&table.keyspace, &table.id)
    };
    let has_taken = |table: &NodeTable| taken.iter().any(|snapshot| is_of(snapshot, table));
    let is_named = |snapshot: &SnapshotInfo, table: &NodeTable| {
        (&snapshot.keyspace, &snapshot.table) == (&table.keyspace, &table.name)
    };
    let (mut dropped, mut notes) = (Vec::new(), Vec::new());
    for snapshot in taken {
        if of_node.iter().any(|table| is_of(snapshot, table) || is_named(snapshot, table) && has_taken(table)) {
            continue;
        }
        let SnapshotInfo { keyspace, table: name, table_id: id, .. } = snapshot;
        let (shown, is_made_again) =
            (format!("{keyspace}.{name}"), of_node.iter().any(|table| is_named(snapshot, table)));
        notes.push(match is_made_again {
            true => {
                format!("{shown} was dropped and made again: the backup has the old table's rows, not the new one's")
            }
            false => format!("{shown} was dropped since the snapshot was taken: the backup has its rows"),
        });
        dropped.push(NodeTable { keyspace: keyspace.clone(), name: name.clone(), id: id.clone() });
    }
    let is_replaced =
        |table: &NodeTable| dropped.iter().any(|old| (&old.keyspace, &old.name) == (&table.keyspace, &table.name));
    let mut tables: Vec<_> = of_node.into_iter().filter(|table| !is_replaced(table)).collect();
    tables.append(&mut dropped);
    Chosen { tables, notes }
}

/// Keyspace and name of the tables that have no snapshot of this name. Err: the node stopped while
/// it took one: the snapshot has no manifest, which says when it was taken.
fn missing(tag: &str, taken: &[SnapshotInfo], tables: &[NodeTable]) -> Result<Vec<(String, String)>, String> {
    let taken: BTreeMap<_, _> = taken
        .iter()
        .filter(|snapshot| snapshot.name == tag)
        .map(|snapshot| ((&snapshot.keyspace, &snapshot.table_id), snapshot.created_at))
        .collect();
    let mut missing = Vec::new();
    for NodeTable { keyspace, name, id } in tables {
        match taken.get(&(keyspace, id)) {
            None => missing.push((keyspace.clone(), name.clone())),
            Some(Some(_)) => {}
            Some(None) => {
                return Err(format!(
                    "the snapshot {tag} of {keyspace}.{name} is not whole: it has no manifest.json that says when it was \
                     taken. Clear it (nodetool clearsnapshot -t {tag}), and take it again"
                ));
            }
        }
    }
    Ok(missing)
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use admin::{Functions, LocalAdminApi};
    use clap::Parser;

    use super::*;
    use crate::arguments::{Command, Program};
    use crate::backup::Backup;

    /// Nothing listens on the port: a node that is asked is told apart from a refusal.
    #[test]
    fn a_name_that_no_backup_can_have_is_refused_before_the_node_is_asked() {
        for tag in ["mon day", "a/b", ".a", ""] {
            let words =
                ["helenus", "backup", "create", "--tag", tag, "--data-dir", "data", "--to", "store", "--port", "1"];
            let program = Program::try_parse_from(words).expect("known options");
            let Some(Command::Backup(Backup::Create(create))) = program.command else { panic!("a backup was asked") };
            let refused = create.run(&env::real::env()).expect_err(tag);
            assert!(refused.starts_with("--tag: "), "{refused}");
        }
    }

    #[test]
    fn a_data_directory_that_is_not_there_is_refused_before_the_node_is_asked() {
        let missing = "/no/such/directory";
        let words =
            ["helenus", "backup", "create", "--tag", "a", "--data-dir", missing, "--to", "store", "--port", "1"];
        let program = Program::try_parse_from(words).expect("known options");
        let Some(Command::Backup(Backup::Create(create))) = program.command else { panic!("a backup was asked") };
        let refused = create.run(&env::real::env()).expect_err(missing);
        assert_eq!(refused, "there is no directory /no/such/directory");
    }

    fn snapshot(name: &str, table_id: &str, created_at: Option<i64>) -> SnapshotInfo {
        let (name, keyspace, table) = (name.to_owned(), "ks".to_owned(), "t".to_owned());
        SnapshotInfo { name, keyspace, table, table_id: table_id.to_owned(), true_size: 0, size_on_disk: 0, created_at }
    }

    /// A node on which a table is created while its first snapshot is taken: the names of its
    /// tables, which are their ids too, and the snapshots.
    type Node = Mutex<(Vec<String>, Vec<SnapshotInfo>)>;

    fn keyspaces_of(node: &Node) -> Vec<KeyspaceInfo> {
        let tables = node.lock().expect("no panic inside").0.clone();
        vec![KeyspaceInfo {
            name: "ks".to_owned(),
            replication_class: "SimpleStrategy".to_owned(),
            replication_options: Vec::new(),
            table_ids: tables.clone(),
            tables,
        }]
    }

    fn take(node: &Node, request: &SnapshotRequest) {
        let (tables, taken) = &mut *node.lock().expect("no panic inside");
        if taken.is_empty() {
            tables.push("new".to_owned());
        }
        taken.extend(request.tables.iter().map(|(_, table)| snapshot(&request.name, table, Some(1))));
    }

    #[test]
    fn a_table_that_is_created_meanwhile_is_part_of_the_backup() {
        let mut functions = Functions::<Node>::default();
        functions
            .add(|node: &Node, _: &GetKeyspaces| Ok(keyspaces_of(node)))
            .add(|node: &Node, _: &GetSnapshots| Ok(node.lock().expect("no panic inside").1.clone()))
            .add(|node: &Node, request: &SnapshotRequest| {
                take(node, request);
                Ok(())
            });
        let node = LocalAdminApi::new(Mutex::new((vec!["old".to_owned()], Vec::new())), functions);
        let (_, Chosen { tables, notes }) = complete_snapshot(&node, "monday").expect("taken");
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!((names, notes.len()), (vec!["old", "new"], 0));
        let taken = node.node().lock().expect("no panic inside").1.len();
        assert_eq!(taken, 2, "each table once");
    }

    #[test]
    fn tables_that_were_dropped_since_the_snapshot_are_part_of_the_backup() {
        let table = |name: &str, id: &str| {
            let (keyspace, name, id) = ("ks".to_owned(), name.to_owned(), id.to_owned());
            NodeTable { keyspace, name, id }
        };
        let ids = |of_node: &[NodeTable], taken: &[SnapshotInfo]| {
            let Chosen { tables, notes } = chosen(of_node.to_vec(), taken);
            (tables.into_iter().map(|table| table.id).collect::<Vec<_>>().join(" "), notes.len())
        };
        let of_t = |id: &str| snapshot("monday", id, Some(1));
        // nothing was dropped; dropped; dropped and made again; the new one has a snapshot too
        assert_eq!(ids(&[table("t", "1"), table("u", "9")], &[of_t("1")]), ("1 9".to_owned(), 0));
        assert_eq!(ids(&[table("u", "9")], &[of_t("1")]), ("9 1".to_owned(), 1));
        assert_eq!(ids(&[table("t", "2"), table("u", "9")], &[of_t("1")]), ("9 1".to_owned(), 1));
        assert_eq!(ids(&[table("t", "2"), table("u", "9")], &[of_t("1"), of_t("2")]), ("2 9".to_owned(), 0));
        // half a snapshot of a dropped table is refused, as of any other
        let half = [snapshot("monday", "1", None)];
        let Chosen { tables, .. } = chosen(vec![table("u", "9")], &half);
        assert!(missing("monday", &half, &tables).expect_err("half made").contains("clearsnapshot"));
    }

    #[test]
    fn tables_without_a_whole_snapshot_are_found_by_their_ids() {
        let tables = [NodeTable { keyspace: "ks".to_owned(), name: "t".to_owned(), id: "2".to_owned() }];
        let missing = |taken: &[SnapshotInfo]| missing("monday", taken, &tables).map(|tables| tables.len());
        assert_eq!(missing(&[snapshot("monday", "2", Some(1))]), Ok(0));
        assert_eq!(missing(&[snapshot("sunday", "2", Some(1))]), Ok(1));
        // a table of the same name that was dropped
        assert_eq!(missing(&[snapshot("monday", "1", Some(1))]), Ok(1));
        assert!(missing(&[snapshot("monday", "2", None)]).expect_err("half made").contains("clearsnapshot"));
    }
}
