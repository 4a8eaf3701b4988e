//! Loads a backup into a ring of any topology: its schema by CQL, then the SSTables of each node by
//! streams, each part to the nodes that replicate it ([`bulk`]).
//!
//! SSTables are fetched a batch at a time, so that the disk here needs room for one batch. The
//! SSTables of all replicas are loaded, since no replica is known to have everything: the ring gets
//! each row as often as it was replicated, and compaction merges them. A load that failed can be
//! repeated with the same options.
//!
//! Batches become live one after the other. So that no compaction of the ring forgets a deletion of
//! one batch before the next one brings the rows that are deleted, tables that the load makes have
//! a raised gc_grace_seconds until all is loaded ([`bulk::RAISE`]). A table that the ring had
//! before keeps its own, and the load is refused if that is too short, unless
//! [`GcGracePolicy`] says otherwise. gc_grace_seconds of built-in tables (those of `system_auth`)
//! cannot be changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulk::{GraceChange, Graces, Options, TableName, WantedKeyspace, WantedTable, Watch};
use env::Env;
use sstable::{Component, Descriptor};

use schema::system::is_system_keyspace;

use crate::manifest::{self, Entry, Keyspace, Manifest, Table};
use crate::store::Store;
use crate::verify::absent;
use crate::{Result, copy};

/// Most SSTables of a batch.
const BATCH_SSTABLES_MAX: usize = 256;
/// Bytes of a batch, approximately: a larger SSTable is a batch alone.
const BATCH_SIZE: u64 = 4 << 30;
/// Most tables that a refusal names.
const NAMED_MAX: usize = 10;

/// The way in which a load treats gc_grace_seconds of the tables that the ring had before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GcGracePolicy {
    /// Nothing is loaded if a table may forget a deletion before all of its rows are there.
    #[default]
    Check,
    /// Their gc_grace_seconds is raised until all is loaded. Built-in tables cannot be raised and
    /// are checked.
    Raise,
    /// Their gc_grace_seconds stays, and nothing is checked.
    Keep,
}

/// A backup, and the ring that it is loaded into.
#[derive(Clone)]
pub struct Request {
    /// Name of the backup.
    pub tag: String,
    /// Names of keyspaces; empty: all keyspaces of users.
    pub keyspaces: Vec<String>,
    /// The directory in which batches are kept while they are streamed.
    pub scratch: PathBuf,
    /// How the ring is reached; keyspace and table are those of the backup.
    pub options: Options,
    /// No keyspace and no table is made. If it is false, existing ones stay as they are.
    pub skips_schema: bool,
    /// The treatment of tables that the ring had before.
    pub grace: GcGracePolicy,
}

/// The amount that was loaded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Number of tables, over all nodes.
    pub tables: usize,
    /// Number of SSTables, over all nodes.
    pub sstables: usize,
    /// Host ids of nodes that were in the ring and have no manifest in the backup: rows whose only
    /// copy they had are not loaded.
    pub absent: Vec<String>,
}

/// Loads a backup.
pub fn load(env: &Env, store: &dyn Store, request: &Request, watch: &Arc<dyn Watch>) -> Result<Summary> {
    let manifests = manifest::of_backup(store, &request.tag)?;
    let is_wanted = |keyspace: &str| match request.keyspaces.is_empty() {
        true => !is_system_keyspace(keyspace),
        false => request.keyspaces.iter().any(|wanted| wanted == keyspace),
    };
    let is_there = |wanted: &&String| manifests.iter().any(|manifest| has_keyspace(manifest, wanted));
    if let Some(unknown) = request.keyspaces.iter().find(|wanted| !is_there(wanted)) {
        return Err(format!("backup {} has no keyspace {unknown}", request.tag));
    }
    let wanted = wanted(&manifests, &is_wanted, &request.scratch)?;
    let parts = parts(&wanted);
    let access = &request.options.access;
    if request.grace != GcGracePolicy::Keep {
        let graces = bulk::learn_graces(env, access)?;
        check_graces(&parts, request.grace, &graces, env.clock.now_micros() / 1000)?;
    }
    if !request.skips_schema {
        let (keyspaces, tables) = schema(&manifests, &is_wanted);
        bulk::complete_schema(env, access, keyspaces, tables)?;
    }
    let names: BTreeSet<TableName> = parts.into_keys().collect();
    if request.grace == GcGracePolicy::Raise {
        bulk::change_graces(env, access, names.clone(), GraceChange::Raise)?;
    }
    let mut done = Summary { absent: absent(&manifests), ..Summary::default() };
    for wanted in wanted {
        done.sstables += of_table(env, store, request, wanted, watch)?;
        done.tables += 1;
    }
    let set_back = bulk::change_graces(env, access, names, GraceChange::SetBack);
    set_back.map_err(|why| format!("everything is loaded, but gc_grace_seconds of a table is still raised: {why}"))?;
    Ok(done)
}

/// A table of one node of the backup.
struct Wanted<'a> {
    table: &'a Table,
    /// When the node took its snapshot, milliseconds since 1970.
    taken_at: i64,
    /// The directory into which batches are fetched.
    directory: PathBuf,
    batches: Vec<Batch<'a>>,
}

/// SSTables that are fetched, streamed and become live together: the files of each.
type Batch<'a> = Vec<Vec<&'a Entry>>;

/// The tables of all nodes in the order in which they are loaded.
fn wanted<'a>(manifests: &'a [Manifest], is_wanted: &dyn Fn(&str) -> bool, scratch: &Path) -> Result<Vec<Wanted<'a>>> {
    let mut wanted = Vec::new();
    for manifest in manifests {
        for table in manifest.tables.iter().filter(|table| is_wanted(&table.keyspace)) {
            // rows of a view come from the rows of its base
            if bulk::creates_view(&table.schema, &table.keyspace, &table.name)? {
                continue;
            }
            let directory = scratch.join(&table.keyspace).join(&table.name);
            let taken_at = manifest.taken_at.unwrap_or(manifest.created_at);
            wanted.push(Wanted { table, taken_at, batches: batches(table, &directory), directory });
        }
    }
    Ok(wanted)
}

/// The batches of one table, which become live one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Parts {
    /// Number of batches of all nodes.
    of_ring: usize,
    /// Number of batches of the node that has most.
    of_node: usize,
    /// When the first of the nodes took its snapshot, milliseconds since 1970.
    taken_at: i64,
}

fn parts(wanted: &[Wanted<'_>]) -> BTreeMap<TableName, Parts> {
    let mut found = BTreeMap::new();
    for Wanted { table, taken_at, batches, .. } in wanted {
        let name = (table.keyspace.clone(), table.name.clone());
        let parts = found.entry(name).or_insert(Parts { of_ring: 0, of_node: 0, taken_at: *taken_at });
        parts.of_ring += batches.len();
        parts.of_node = parts.of_node.max(batches.len());
        parts.taken_at = parts.taken_at.min(*taken_at);
    }
    found
}

impl Parts {
    /// Whether a compaction could forget a deletion of an early batch that a later batch needs,
    /// if the table forgets deletions after `grace` seconds.
    ///
    /// 1. Batches of one node: a deletion that was old already when the snapshot was taken may
    ///    stand in another batch than the rows that it deletes.
    /// 2. Batches of several nodes: repairs bring each deletion to all replicas before it may be
    ///    forgotten, but the last deletions before the snapshot had not come to all of them yet.
    ///    They can be forgotten now if the snapshot itself is older than `grace`.
    fn may_purge_too_early(&self, grace: i32, now_millis: i64) -> bool {
        let is_old = now_millis.saturating_sub(self.taken_at) > i64::from(grace).saturating_mul(1000);
        grace < bulk::RAISE && (self.of_node > 1 || self.of_ring > 1 && is_old)
    }
}

/// Refuses tables of the ring that may forget a deletion before all of their rows are there, and
/// that are not raised.
fn check_graces(
    parts: &BTreeMap<TableName, Parts>,
    treatment: GcGracePolicy,
    graces: &Graces,
    now_millis: i64,
) -> Result<()> {
    let forgets = |(name, parts): &(&TableName, &Parts)| {
        let is_checked = match treatment {
            GcGracePolicy::Check => true,
            GcGracePolicy::Raise => is_built_in(name),
            GcGracePolicy::Keep => false,
        };
        is_checked && graces.get(*name).is_some_and(|grace| parts.may_purge_too_early(*grace, now_millis))
    };
    let forgetful: Vec<&TableName> = parts.iter().filter(forgets).map(|(name, _)| name).collect();
    if forgetful.is_empty() {
        return Ok(());
    }
    let mut named: Vec<String> =
        forgetful.iter().take(NAMED_MAX).map(|(keyspace, name)| format!("{keyspace}.{name}")).collect();
    if forgetful.len() > NAMED_MAX {
        named.push(format!("{} more", forgetful.len() - NAMED_MAX));
    }
    let mut ways = Vec::new();
    if forgetful.iter().any(|name| !is_built_in(name)) {
        ways.push(
            "With --gc-grace raise its gc_grace_seconds is raised until all is loaded; with --gc-grace keep it is \
             loaded nevertheless",
        );
    }
    if forgetful.iter().any(|name| is_built_in(name)) {
        ways.push(
            "gc_grace_seconds of a built-in table cannot be raised: load its keyspace with a command of its own, and \
             --gc-grace keep",
        );
    }
    Err(format!(
        "{}: the ring has this already, and rows come in several parts: with its gc_grace_seconds a compaction may \
         forget a deletion of one part before the next part brings the rows that were deleted, which would be alive \
         again. {}",
        named.join(", "),
        ways.join(". ")
    ))
}

/// Whether the table is built in. Such a table cannot be altered.
fn is_built_in((keyspace, _): &TableName) -> bool {
    is_system_keyspace(keyspace)
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

/// Loads the SSTables of a table of one node; gives how many there are.
fn of_table(
    env: &Env,
    store: &dyn Store,
    request: &Request,
    wanted: Wanted<'_>,
    watch: &Arc<dyn Watch>,
) -> Result<usize> {
    let Wanted { table, directory, batches, .. } = wanted;
    let options = Options { keyspace: table.keyspace.clone(), table: table.name.clone(), ..request.options.clone() };
    let mut count = 0;
    for batch in batches {
        count += load_batch(env, store, &options, &directory, &batch, watch)?;
    }
    Ok(count)
}

/// The SSTables of a table in batches, none of which is empty.
fn batches<'a>(table: &'a Table, directory: &Path) -> Vec<Batch<'a>> {
    let (mut batches, mut size) = (Vec::<Batch<'_>>::new(), 0_u64);
    for sstable in sstables(table, directory) {
        let bytes = sstable.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.size));
        size = size.saturating_add(bytes);
        match batches.last_mut() {
            Some(batch) if size <= BATCH_SIZE && batch.len() < BATCH_SSTABLES_MAX => batch.push(sstable),
            _ => {
                size = bytes;
                batches.push(vec![sstable]);
            }
        }
    }
    batches
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
    batch: &[Vec<&Entry>],
    watch: &Arc<dyn Watch>,
) -> Result<usize> {
    let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
    let descriptors = fetch_batch(env, store, directory, batch)?;
    let count = descriptors.len();
    let loaded = bulk::load(env, options.clone(), descriptors, Arc::clone(watch))?;
    if let Some(failed) = loaded.failures().next() {
        let why = failed.result.as_ref().err().map_or("", String::as_str);
        return Err(format!("{}.{} to {}: {why}", options.keyspace, options.table, failed.planned.peer));
    }
    env.disk.remove_dir_all(directory).map_err(wrong)?;
    Ok(count)
}

/// Fetches the files of a batch into a directory, and removes the other files there; gives the
/// SSTables.
///
/// A load that was interrupted, of another backup or of another node, may have left files there.
/// Its SSTables have the same names. A component that the SSTable of this batch lacks (a filter,
/// offsets of chunks) would be taken for a part of it, and be streamed with it.
fn fetch_batch(env: &Env, store: &dyn Store, directory: &Path, batch: &[Vec<&Entry>]) -> Result<Vec<Descriptor>> {
    let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
    env.disk.create_dir_durable(directory).map_err(wrong)?;
    let named: BTreeSet<&str> = batch.iter().flatten().map(|entry| entry.name.as_str()).collect();
    for left in env.disk.list_dir(directory).map_err(wrong)? {
        if !left.is_dir && !named.contains(left.name.as_str()) {
            env.disk.remove_file(&directory.join(&left.name)).map_err(wrong)?;
        }
    }
    let mut descriptors = Vec::new();
    for entry in batch.iter().flatten() {
        copy::fetch(env, store, entry, &directory.join(&entry.name))?;
        if let Some((descriptor, Some(Component::Data))) = Descriptor::parse(directory, &entry.name) {
            descriptors.push(descriptor);
        }
    }
    Ok(descriptors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeIdentity;

    const DAY: i64 = 24 * 60 * 60 * 1000;
    /// gc_grace_seconds of a table that says nothing: ten days.
    const TEN_DAYS: i32 = 864_000;

    /// A node's backup of the tables `few` and `many` of a keyspace, with so many SSTables.
    fn manifest(host: &str, taken_at: i64, few: usize, many: usize) -> Manifest {
        let text = |text: &str| text.to_owned();
        let file = |id: usize| Entry {
            name: format!("da-{id}-bti-Data.db"),
            key: format!("nodes/{host}/{id}"),
            size: 1,
            sha256: String::new(),
        };
        let table = |name: &str, count: usize| Table {
            keyspace: text("ks"),
            name: text(name),
            id: text("00000000000000000000000000000001"),
            schema: format!("CREATE TABLE ks.{name} (k int PRIMARY KEY);"),
            files: (1..=count).map(file).collect(),
        };
        Manifest {
            format: manifest::FORMAT,
            tag: text("monday"),
            node: NodeIdentity {
                cluster: text("test"),
                host_id: text(host),
                address: text("127.0.0.1"),
                data_center: text("dc1"),
                rack: text("rack1"),
                tokens: vec![0],
                version: text("0.1.0"),
            },
            created_at: taken_at + DAY,
            taken_at: Some(taken_at),
            log_segment: None,
            log_from: None,
            ring: Vec::new(),
            keyspaces: Vec::new(),
            tables: vec![table("few", few), table("many", many)],
        }
    }

    fn of(name: &str) -> TableName {
        ("ks".to_owned(), name.to_owned())
    }

    /// A load of another backup was interrupted: its SSTable of the same name had a filter.
    #[test]
    fn files_that_an_interrupted_load_has_left_are_no_components_of_a_batch() {
        let (env, directory) = (env::real::env(), tempfile::tempdir().expect("a directory"));
        let place = directory.path().join("store");
        let store = crate::open(&env, place.to_str().expect("a path")).expect("a store");
        let put = |component: &str| {
            let (key, path) = (format!("nodes/a/da-1-bti-{component}"), directory.path().join(component));
            env.disk.replace_file(&path, component.as_bytes()).expect("written");
            let sha256 = copy::upload(&env, &path, component.len() as u64, &*store, &key).expect("brought");
            Entry { name: format!("da-1-bti-{component}"), key, size: component.len() as u64, sha256 }
        };
        let (data, filter) = (put("Data.db"), put("Filter.db"));
        let scratch = directory.path().join("scratch");
        let fetched = |batch: &[Vec<&Entry>]| {
            let found = fetch_batch(&env, &*store, &scratch, batch).expect("all is there").len();
            let names = env.disk.list_dir(&scratch).expect("a directory").into_iter().map(|entry| entry.name);
            (found, names.collect::<Vec<_>>())
        };
        let whole = (1, vec!["da-1-bti-Data.db".to_owned(), "da-1-bti-Filter.db".to_owned()]);
        assert_eq!(fetched(&[vec![&data, &filter]]), whole);
        assert_eq!(fetched(&[vec![&data]]), (1, vec!["da-1-bti-Data.db".to_owned()]));
    }

    #[test]
    fn every_sstable_is_in_one_batch() {
        let mut second = manifest("b", 0, 0, 2);
        second.tables[1].files[0].size = BATCH_SIZE;
        let manifests = [manifest("a", 0, 1, 2 * BATCH_SSTABLES_MAX + 1), second];
        let wanted = wanted(&manifests, &|_| true, Path::new("scratch")).expect("the schemas are sound");
        let sizes: Vec<Vec<usize>> =
            wanted.iter().map(|wanted| wanted.batches.iter().map(Vec::len).collect()).collect();
        let full = BATCH_SSTABLES_MAX;
        assert_eq!(sizes, [vec![1], vec![full, full, 1], vec![], vec![1, 1]]);
    }

    #[test]
    fn a_table_whose_comment_speaks_of_a_view_is_loaded_and_a_view_is_not() {
        let mut manifest = manifest("a", 0, 1, 1);
        let [few, many] = &mut manifest.tables[..] else { panic!("two tables") };
        few.schema =
            "CREATE TABLE ks.few (k int PRIMARY KEY) WITH comment = 'CREATE MATERIALIZED VIEW many';".to_owned();
        many.schema =
            "CREATE MATERIALIZED VIEW ks.many AS SELECT * FROM ks.few WHERE k IS NOT NULL PRIMARY KEY (k);".to_owned();
        let manifests = [manifest];
        let wanted = wanted(&manifests, &|_| true, Path::new("scratch")).expect("the schemas are sound");
        let names: Vec<&str> = wanted.iter().map(|wanted| wanted.table.name.as_str()).collect();
        assert_eq!(names, ["few"]);
    }

    /// A table that the ring has is refused where its deletions could be forgotten between two
    /// batches; a table that the load makes, or that a load before this one has made, is not.
    #[test]
    fn a_table_that_may_forget_a_deletion_meanwhile_is_refused() {
        let manifests = [manifest("a", 0, 1, 300), manifest("b", DAY, 1, 1)];
        let wanted = wanted(&manifests, &|_| true, Path::new("scratch")).expect("the schemas are sound");
        let parts = parts(&wanted);
        assert_eq!(parts[&of("few")], Parts { of_ring: 2, of_node: 1, taken_at: 0 });
        let refused = |days: i64, graces: &[(&str, i32)]| {
            let graces: Graces = graces.iter().map(|(name, grace)| (of(name), *grace)).collect();
            check_graces(&parts, GcGracePolicy::Check, &graces, days * DAY).err().unwrap_or_default()
        };
        let raised = TEN_DAYS + bulk::RAISE;
        for (days, graces, named) in [
            (9, vec![("few", TEN_DAYS)], ""),
            (11, vec![("few", TEN_DAYS)], "ks.few:"),
            (11, vec![("few", raised)], ""),
            (9, vec![("few", TEN_DAYS), ("many", TEN_DAYS)], "ks.many:"),
            (11, vec![("few", TEN_DAYS), ("many", TEN_DAYS)], "ks.few, ks.many:"),
            (9, vec![("many", raised)], ""),
            (11, vec![("many", i32::MAX)], ""),
            (11, vec![("other", TEN_DAYS)], ""),
            (11, vec![], ""),
        ] {
            let why = refused(days, &graces);
            assert!(why.starts_with(named) && why.is_empty() == named.is_empty(), "{days} {graces:?}: {why}");
        }
    }

    /// No load can raise tables of `system_auth`: the refusal proposes what helps.
    #[test]
    fn a_built_in_table_that_may_forget_a_deletion_is_not_to_be_raised() {
        let mut manifests = [manifest("a", 0, 1, 1), manifest("b", 0, 1, 1)];
        for manifest in &mut manifests {
            manifest.tables[0].keyspace = "system_auth".to_owned();
        }
        let wanted = wanted(&manifests, &|_| true, Path::new("scratch")).expect("the schemas are sound");
        let parts = parts(&wanted);
        let built_in = ("system_auth".to_owned(), "few".to_owned());
        let graces = Graces::from([(of("many"), TEN_DAYS), (built_in, 9 * TEN_DAYS)]);
        for (treatment, days, named, proposes_raise, proposes_keep) in [
            (GcGracePolicy::Check, 11, "ks.many:", true, false),
            (GcGracePolicy::Check, 91, "ks.many, system_auth.few:", true, true),
            (GcGracePolicy::Raise, 11, "", false, false),
            (GcGracePolicy::Raise, 91, "system_auth.few:", false, true),
            (GcGracePolicy::Keep, 91, "", false, false),
        ] {
            let why = check_graces(&parts, treatment, &graces, days * DAY).err().unwrap_or_default();
            let proposes = (why.contains("--gc-grace raise"), why.contains("command of its own"));
            assert!(why.starts_with(named) && why.is_empty() == named.is_empty(), "{treatment:?} {days}: {why}");
            assert_eq!(proposes, (proposes_raise, proposes_keep), "{treatment:?} {days}: {why}");
        }
    }
}
