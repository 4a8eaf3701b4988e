//! Loads a backup into a ring of any topology: its schema by CQL, then the SSTables of each node by
//! streams, each part to the nodes that replicate it ([`bulk`]).
//!
//! SSTables are fetched a batch at a time, so that the disk here needs room for one batch. The
//! SSTables of all replicas are loaded, since no replica is known to have everything: the ring gets
//! each row as often as it was replicated, and compaction merges them. A load that failed is
//! repeated as it was.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulk::{Options, WantedKeyspace, WantedTable, Watch};
use env::Env;
use sstable::{Component, Descriptor};

use schema::system::is_system_keyspace;

use crate::manifest::{self, Entry, Keyspace, Manifest, Table};
use crate::store::Store;
use crate::{Result, copy};

/// SSTables of a batch at most.
const BATCH_SSTABLES_MAX: usize = 256;
/// Bytes of a batch, about: a larger SSTable is a batch alone.
const BATCH_SIZE: u64 = 4 << 30;

/// A backup, and the ring that it is loaded into.
#[derive(Clone)]
pub struct Request {
    /// The backup.
    pub tag: String,
    /// Keyspaces; empty: all of users.
    pub keyspaces: Vec<String>,
    /// Where batches are kept while they are streamed.
    pub scratch: PathBuf,
    /// How the ring is reached; keyspace and table are those of the backup.
    pub options: Options,
    /// No keyspace and no table is made. Without it those that are there stay as they are.
    pub skips_schema: bool,
}

/// The amount that was loaded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// Tables of all nodes.
    pub tables: usize,
    /// SSTables of all nodes.
    pub sstables: usize,
}

/// Loads a backup.
pub fn load(env: &Env, store: &dyn Store, request: &Request, watch: &Arc<dyn Watch>) -> Result<Done> {
    let manifests = manifest::of_backup(store, &request.tag)?;
    let is_wanted = |keyspace: &str| match request.keyspaces.is_empty() {
        true => !is_system_keyspace(keyspace),
        false => request.keyspaces.iter().any(|wanted| wanted == keyspace),
    };
    let is_there = |wanted: &&String| manifests.iter().any(|manifest| has_keyspace(manifest, wanted));
    if let Some(unknown) = request.keyspaces.iter().find(|wanted| !is_there(wanted)) {
        return Err(format!("backup {} has no keyspace {unknown}", request.tag));
    }
    if !request.skips_schema {
        let (keyspaces, tables) = schema(&manifests, &is_wanted);
        bulk::complete_schema(env, &request.options.access, keyspaces, tables)?;
    }
    let mut done = Done::default();
    for manifest in &manifests {
        // rows of a view come from the rows of its base
        let is_table =
            |table: &&Table| is_wanted(&table.keyspace) && !table.schema.contains("CREATE MATERIALIZED VIEW");
        for table in manifest.tables.iter().filter(is_table) {
            done.sstables += of_table(env, store, request, table, watch)?;
            done.tables += 1;
        }
    }
    Ok(done)
}

fn has_keyspace(manifest: &Manifest, name: &str) -> bool {
    manifest.tables.iter().any(|table| table.keyspace == name)
        || manifest.keyspaces.iter().any(|keyspace| keyspace.name == name)
}

/// The keyspaces and tables that the ring needs; the ring has those that are built in. Where the
/// nodes had different texts of one table, that of the latest manifest comes first, which has the
/// columns that were added meanwhile.
fn schema(manifests: &[Manifest], is_wanted: &dyn Fn(&str) -> bool) -> (Vec<WantedKeyspace>, Vec<WantedTable>) {
    let mut latest: Vec<&Manifest> = manifests.iter().collect();
    latest.sort_by_key(|manifest| std::cmp::Reverse(manifest.created_at));
    let is_made = |keyspace: &str| is_wanted(keyspace) && !is_system_keyspace(keyspace);
    let (mut keyspaces, mut tables) = (Vec::<WantedKeyspace>::new(), Vec::new());
    for manifest in latest {
        for keyspace in manifest.keyspaces.iter().filter(|keyspace| is_made(&keyspace.name)) {
            if keyspaces.iter().all(|known| known.name != keyspace.name) {
                keyspaces.push(WantedKeyspace { name: keyspace.name.clone(), create: create_keyspace(keyspace) });
            }
        }
        let wanted = manifest.tables.iter().filter(|table| is_made(&table.keyspace));
        tables.extend(wanted.map(|table| WantedTable {
            keyspace: table.keyspace.clone(),
            name: table.name.clone(),
            text: table.schema.clone(),
        }));
    }
    (keyspaces, tables)
}

fn create_keyspace(keyspace: &Keyspace) -> String {
    let quoted = |text: &str| text.replace('\'', "''");
    let options = keyspace.replication.iter().map(|(key, value)| format!("'{}': '{}'", quoted(key), quoted(value)));
    let name = keyspace.name.replace('"', "\"\"");
    format!(
        "CREATE KEYSPACE IF NOT EXISTS \"{name}\" WITH replication = {{{}}}",
        options.collect::<Vec<_>>().join(", ")
    )
}

/// Loads the SSTables of a table; gives how many there are.
fn of_table(env: &Env, store: &dyn Store, request: &Request, table: &Table, watch: &Arc<dyn Watch>) -> Result<usize> {
    let directory = request.scratch.join(&table.keyspace).join(&table.name);
    let options = Options { keyspace: table.keyspace.clone(), table: table.name.clone(), ..request.options.clone() };
    let (mut batch, mut size, mut count) = (Vec::new(), 0, 0);
    for sstable in sstables(table, &directory) {
        let bytes: u64 = sstable.iter().map(|entry| entry.size).sum();
        if !batch.is_empty() && (size + bytes > BATCH_SIZE || batch.len() == BATCH_SSTABLES_MAX) {
            count += load_batch(env, store, &options, &directory, std::mem::take(&mut batch), watch)?;
            size = 0;
        }
        size += bytes;
        batch.push(sstable);
    }
    count += load_batch(env, store, &options, &directory, batch, watch)?;
    Ok(count)
}

/// The files of a table by SSTable; those of indexes are left out, which the ring builds.
fn sstables<'a>(table: &'a Table, directory: &Path) -> Vec<Vec<&'a Entry>> {
    let mut found: Vec<(String, Vec<&Entry>)> = Vec::new();
    let mut files: Vec<&Entry> = table.files.iter().filter(|entry| !entry.name.contains('/')).collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    for entry in files {
        let Some((descriptor, _)) = Descriptor::parse(directory, &entry.name) else { continue };
        let prefix = descriptor.prefix();
        match found.iter_mut().find(|(known, _)| *known == prefix) {
            Some((_, files)) => files.push(entry),
            None => found.push((prefix, vec![entry])),
        }
    }
    found.into_iter().map(|(_, files)| files).collect()
}

fn load_batch(
    env: &Env,
    store: &dyn Store,
    options: &Options,
    directory: &Path,
    batch: Vec<Vec<&Entry>>,
    watch: &Arc<dyn Watch>,
) -> Result<usize> {
    if batch.is_empty() {
        return Ok(0);
    }
    let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
    env.disk.create_dir_durable(directory).map_err(wrong)?;
    let mut descriptors = Vec::new();
    for entry in batch.into_iter().flatten() {
        copy::fetch(env, store, entry, &directory.join(&entry.name))?;
        if let Some((descriptor, Some(Component::Data))) = Descriptor::parse(directory, &entry.name) {
            descriptors.push(descriptor);
        }
    }
    let count = descriptors.len();
    let loaded = bulk::load(env, options.clone(), descriptors, Arc::clone(watch))?;
    if let Some(failed) = loaded.failures().next() {
        let why = failed.result.as_ref().err().map_or("", String::as_str);
        return Err(format!("{}.{} to {}: {why}", options.keyspace, options.table, failed.planned.peer));
    }
    env.disk.remove_dir_all(directory).map_err(wrong)?;
    Ok(count)
}
