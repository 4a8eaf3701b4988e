//! Finds the folders of tables beneath a directory, and says what kind of directory it is.
//!
//! A table's folder holds files of SSTables or a `schema.cql`. Its names come from its path:
//! `<keyspace>/<table>-<id>`, `<keyspace>/<table>-<id>/snapshots/<tag>`, or without the id where a
//! backup tool left it out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use env::Env;
use schema::{Schema, TableId};

/// How deep folders are looked for: `<node>/<…>/<keyspace>/<table>/snapshots/<tag>`.
const DEPTH_MAX: usize = 6;
/// More folders than this are not looked at.
const FOLDERS_MAX: usize = 100_000;

/// The kinds of directories that a node is started on.
pub(super) enum Kind {
    /// The directory is empty, or not there yet.
    Empty,
    /// A directory `data` lies beneath.
    Parent {
        /// Helenus has written there before.
        of_helenus: bool,
    },
    /// The directory is a data directory itself, with `system_schema`.
    Data,
    /// The directory has folders of tables, and no `system_schema`.
    Tables(Vec<Folder>),
}

/// A folder with a table's files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Folder {
    /// Its path.
    pub path: PathBuf,
    /// The keyspace, if its path says so.
    pub keyspace: Option<String>,
    /// The table's name, if its path says so.
    pub table: Option<String>,
    /// The table's id, if its path says so.
    pub id: Option<TableId>,
    /// The tag of the snapshot, if its path says that it is one.
    pub tag: Option<String>,
}

impl Folder {
    fn of(path: &Path) -> Self {
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let above = path.parent();
        let is_snapshot = above.and_then(name).is_some_and(|name| name == "snapshots");
        let (table_path, tag) = match above.and_then(Path::parent) {
            Some(table) if is_snapshot => (table, name(path)),
            _ => (path, None),
        };
        let folder = name(table_path).unwrap_or_default();
        let (table, id) = match folder.rsplit_once('-').map(|(table, id)| (table, TableId::from_hex(id))) {
            Some((table, Some(id))) => (table.to_owned(), Some(id)),
            _ => (folder, None),
        };
        let keyspace = table_path.parent().and_then(name);
        Self { path: path.to_owned(), keyspace, table: Some(table).filter(|name| !name.is_empty()), id, tag }
    }

    /// `<keyspace>/<table>-<id>` right beneath a data directory.
    pub(super) fn is_in_place(&self, data: &Path) -> bool {
        self.id.is_some() && self.tag.is_none() && self.path.parent().and_then(Path::parent) == Some(data)
    }
}

fn directories(env: &Env, path: &Path) -> Result<(Vec<String>, Vec<String>), String> {
    let entries = env.disk.list_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (dirs, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.is_dir);
    Ok((dirs.into_iter().map(|entry| entry.name).collect(), files.into_iter().map(|entry| entry.name).collect()))
}

/// The kind of a directory, by its content.
pub(super) fn look(env: &Env, dir: &Path) -> Result<Kind, String> {
    if !env.disk.exists(dir) {
        return Ok(Kind::Empty);
    }
    let (dirs, files) = directories(env, dir)?;
    if dirs.iter().any(|name| name == "system_schema") {
        return Ok(Kind::Data);
    }
    let has = |name: &str| dirs.iter().any(|dir| dir == name);
    // the commit log and the system tables may lie elsewhere
    let of_helenus = env.disk.exists(&dir.join("data/helenus.lock"));
    if has("data") && (of_helenus || has("commitlog") || env.disk.exists(&dir.join("data/system_schema"))) {
        return Ok(Kind::Parent { of_helenus });
    }
    let folders = tables(env, dir)?;
    if !folders.is_empty() {
        return one_tag_each(folders).map(Kind::Tables);
    }
    if dirs.is_empty() && files.is_empty() {
        return Ok(Kind::Empty);
    }
    // something else is there, such as lost+found or a directory that was only begun
    Ok(Kind::Parent { of_helenus: has("data") })
}

/// Whether the commit log of a data directory lies in it, and not beside it. Helenus puts it there
/// where it is started on folders of tables without `system_schema`. Once `system_schema` is
/// flushed they look like any data directory: to look for the log beside it then would lose what
/// the log within has, and take that of another node.
pub(super) fn has_log_within(env: &Env, dir: &Path) -> Result<bool, String> {
    let within = dir.join("commitlog");
    if !env.disk.exists(&dir.join("helenus.lock")) || !env.disk.exists(&within) {
        return Ok(false);
    }
    // a keyspace may have this name: its directory holds those of tables, and no files
    let (dirs, files) = directories(env, &within)?;
    let is_keyspace = dirs.iter().any(|name| Folder::of(&within.join(name)).id.is_some());
    // the log is empty after a drain; the caches are saved beside it
    Ok(!is_keyspace && (!files.is_empty() || env.disk.exists(&dir.join("saved_caches"))))
}

/// All folders of tables beneath a directory, itself included.
pub(super) fn tables(env: &Env, dir: &Path) -> Result<Vec<Folder>, String> {
    let mut found = Vec::new();
    let mut waiting = vec![(dir.to_owned(), 0)];
    let mut seen = 0;
    while let Some((path, depth)) = waiting.pop() {
        seen += 1;
        if seen > FOLDERS_MAX {
            return Err(format!("{}: more than {FOLDERS_MAX} folders lie beneath it", dir.display()));
        }
        if !env.disk.exists(&path) {
            continue;
        }
        let (dirs, files) = directories(env, &path)?;
        if files.iter().any(|name| name.ends_with("-Data.db") || name == "schema.cql") {
            // a schema beside folders is that of those folders
            let own = files.iter().any(|name| name.ends_with("-Data.db"));
            if own || depth > 0 {
                found.push(Folder::of(&path));
            }
            if own {
                // a live table: its snapshots and backups are older states of it
                continue;
            }
        }
        let wanted =
            dirs.into_iter().filter(|name| !name.starts_with('.') && name != "backups" && name != "lost+found");
        if depth < DEPTH_MAX {
            waiting.extend(wanted.map(|name| (path.join(name), depth + 1)));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Refuses several snapshots of one table: they are several states of it, and the operator has to
/// say which one is meant.
fn one_tag_each(folders: Vec<Folder>) -> Result<Vec<Folder>, String> {
    let mut tags: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for folder in &folders {
        if let (Some(tag), Some(above)) = (&folder.tag, folder.path.parent()) {
            tags.entry(above.to_owned()).or_default().insert(tag.clone());
        }
    }
    match tags.iter().find(|(_, tags)| tags.len() > 1) {
        Some((path, tags)) => {
            let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
            Err(format!("{} holds several snapshots ({}): name one of them", path.display(), tags.join(", ")))
        }
        None => Ok(folders),
    }
}

/// The table that a folder belongs to: by the id in its name, by its names, or because the schema
/// has only one table.
pub(super) fn table_of(folder: &Folder, folders: usize, schema: &Schema) -> Option<TableId> {
    if let Some(table) = folder.id.and_then(|id| schema.table_by_id(id)) {
        return Some(table.id);
    }
    let name = folder.table.as_deref().unwrap_or_default();
    let of_users = schema.tables_by_id.values().filter(|table| !schema::system::is_system_keyspace(&table.keyspace));
    let named: Vec<_> = of_users.clone().filter(|table| table.name == name).collect();
    let in_keyspace = named.iter().find(|table| Some(&table.keyspace) == folder.keyspace.as_ref());
    match (in_keyspace, named.as_slice()) {
        (Some(table), _) => return Some(table.id),
        (None, [table]) => return Some(table.id),
        _ => {}
    }
    let mut bases = of_users.filter(|table| table.view.is_none());
    match (bases.next(), bases.next()) {
        (Some(table), None) if folders == 1 => Some(table.id),
        _ => None,
    }
}
