//! Recognises what lies in the directory that a node is started on: Helenus's own layout, that of a
//! Cassandra node, or a snapshot.
//!
//! | what is there | data | commit log |
//! |---|---|---|
//! | `data_file_directories` is set | those | `commitlog_directory`, else beside the first |
//! | `data/` in it (Helenus, or `/var/lib/cassandra`), or nothing yet | `data/` | `commitlog/` |
//! | `<keyspace>/<table>-<id>/` in it, `system_schema` among them | itself | `../commitlog/` |
//! | the same, and Helenus has begun there without `system_schema` | itself | `commitlog/` |
//! | folders of tables without `system_schema`: a snapshot, backups | those folders | none |
//!
//! Tables without `system_schema` need `schema.cql` files ([`schema_files`]). Where keys of the
//! configuration name directories, those are taken, whatever is found. Nothing is written here.

mod folders;
mod schema_files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::Config;
use env::Env;
use schema::{Schema, TableId};

use folders::Folder;

/// The directories of a node, as they were found.
#[derive(Debug)]
pub struct Directories {
    /// One line on what it is, for the log.
    pub description: String,
    /// `data_file_directories`; never empty.
    pub data: Vec<PathBuf>,
    /// `local_system_data_file_directory`; `None`: system tables lie in the data directories.
    pub system: Option<PathBuf>,
    /// `commitlog_directory`. It need not be there yet.
    pub commitlog: PathBuf,
    /// Directories beside the commit log. Empty until [`locate`] has found the commit log.
    pub auxiliary: AuxiliaryDirectories,
    /// Tables whose folders have other names than `<keyspace>/<table>-<id>` beneath a data
    /// directory, and these folders.
    pub places: BTreeMap<TableId, Vec<PathBuf>>,
    /// The schema of `schema.cql` files, for want of `system_schema`.
    pub schema: Option<Schema>,
}

/// Directories that lie beside the commit log where the configuration does not name others. They
/// need not be there yet.
#[derive(Debug, Default)]
pub struct AuxiliaryDirectories {
    /// `hints_directory`
    pub hints: PathBuf,
    /// `saved_caches_directory`
    pub saved_caches: PathBuf,
    /// `cdc_raw_directory`
    pub cdc_raw: PathBuf,
}

/// The options of the command line on directories.
pub struct DirectoryOptions<'a> {
    /// `--data-dir`
    pub data_dir: &'a Path,
    /// `--schema`
    pub schema_file: Option<&'a Path>,
    /// `--read-only`
    pub read_only: bool,
}

/// Finds the directories of a node; their paths are absolute. Relative names of the configuration
/// are relative to `--data-dir`. Err: a sentence on what is in the way.
pub fn locate(env: &Env, options: &DirectoryOptions<'_>, config: &Config) -> Result<Directories, String> {
    // transaction logs have the paths of files, and Cassandra may read them in another directory
    let data_dir = std::path::absolute(options.data_dir).unwrap_or_else(|_| options.data_dir.to_owned());
    let options =
        &DirectoryOptions { data_dir: &data_dir, schema_file: options.schema_file, read_only: options.read_only };
    let mut found = find(env, options, config)?;
    if let Some(directory) = &config.commitlog_directory {
        found.commitlog = options.data_dir.join(directory);
    }
    found.system = config.local_system_data_file_directory.as_ref().map(|directory| options.data_dir.join(directory));
    found.auxiliary = auxiliary_directories(options, config, &found.commitlog);
    check_apart(&found)?;
    if options.read_only {
        let missing = |directory: &&PathBuf| !env.disk.exists(directory);
        if let Some(directory) = found.data.iter().find(missing) {
            return Err(format!("{}: there is no such directory to read (--read-only)", directory.display()));
        }
    }
    Ok(found)
}

fn auxiliary_directories(options: &DirectoryOptions<'_>, config: &Config, commitlog: &Path) -> AuxiliaryDirectories {
    let place = |named: Option<&String>, name: &str| match named {
        Some(directory) => options.data_dir.join(directory),
        None => commitlog.parent().unwrap_or(Path::new(".")).join(name),
    };
    let cdc_raw = config.commitlog.cdc.as_ref().and_then(|cdc| cdc.raw_directory.as_ref());
    AuxiliaryDirectories {
        hints: place(config.hints_directory.as_ref(), "hints"),
        saved_caches: place(config.saved_caches_directory.as_ref(), "saved_caches"),
        cdc_raw: place(cdc_raw, "cdc_raw"),
    }
}

/// Refuses one directory for two purposes, where Cassandra refuses it and with its sentences
/// (`DatabaseDescriptor`). With one exception: the system tables may lie in a data directory, as
/// after `helenus backup restore`.
fn check_apart(found: &Directories) -> Result<(), String> {
    const ANY_DATA: &str = "any data_file_directories";
    let Directories { data, system, commitlog, auxiliary: AuxiliaryDirectories { hints, saved_caches, .. }, .. } =
        found;
    let of_data = data.iter().flat_map(|data| {
        [
            ("commitlog_directory", commitlog, ANY_DATA, data),
            ("hints_directory", hints, ANY_DATA, data),
            ("saved_caches_directory", saved_caches, ANY_DATA, data),
        ]
    });
    let of_system = system.iter().flat_map(|system| {
        [
            ("local_system_data_file_directory", system, "the commitlog_directory", commitlog),
            ("local_system_data_file_directory", system, "the saved_caches_directory", saved_caches),
            ("local_system_data_file_directory", system, "the hints_directory", hints),
        ]
    });
    let of_log = [
        ("saved_caches_directory", saved_caches, "the commitlog_directory", commitlog),
        ("hints_directory", hints, "the commitlog_directory", commitlog),
        ("saved_caches_directory", saved_caches, "the hints_directory", hints),
    ];
    match of_data.chain(of_system).chain(of_log).find(|(_, one, _, other)| one == other) {
        Some((key, directory, other, _)) => {
            Err(format!("{key} must not be the same as {other}: both are {}", directory.display()))
        }
        None => Ok(()),
    }
}

fn find(env: &Env, options: &DirectoryOptions<'_>, config: &Config) -> Result<Directories, String> {
    let dir = options.data_dir;
    if !config.data_file_directories.is_empty() {
        let data: Vec<PathBuf> = config.data_file_directories.iter().map(|name| dir.join(name)).collect();
        let sibling = data.first().and_then(|first| first.parent()).map(|above| above.join("commitlog"));
        let commitlog = sibling.filter(|sibling| env.disk.exists(sibling)).unwrap_or_else(|| dir.join("commitlog"));
        return of_data(env, options, "data_file_directories of the configuration".to_owned(), data, commitlog);
    }
    let kind = folders::look(env, dir)?;
    match kind {
        folders::Kind::Empty | folders::Kind::Parent { .. } => {
            let data = dir.join("data");
            let description = match kind {
                folders::Kind::Parent { of_helenus: true } => "a directory of Helenus",
                folders::Kind::Parent { .. } => "a directory of Cassandra, with data and commitlog beneath",
                _ => "a new directory",
            };
            of_data(env, options, description.to_owned(), vec![data], dir.join("commitlog"))
        }
        folders::Kind::Data => {
            let (description, above) = match folders::has_log_within(env, dir)? {
                true => ("folders of tables that Helenus has written to", dir.to_owned()),
                false => ("a data directory of Cassandra", dir.canonical_parent()),
            };
            of_data(env, options, description.to_owned(), vec![dir.to_owned()], above.join("commitlog"))
        }
        folders::Kind::Tables(found) => of_tables(env, options, &found),
    }
}

/// The directories of a whole node. A schema file is read where there is no `system_schema`.
fn of_data(
    env: &Env,
    options: &DirectoryOptions<'_>,
    description: String,
    data: Vec<PathBuf>,
    commitlog: PathBuf,
) -> Result<Directories, String> {
    let (auxiliary, places) = (AuxiliaryDirectories::default(), BTreeMap::new());
    let mut found = Directories { description, data, system: None, commitlog, auxiliary, places, schema: None };
    if let Some(file) = options.schema_file {
        let folders = found.data.iter().map(|data| folders::tables(env, data)).collect::<Result<Vec<_>, _>>()?;
        let folders: Vec<Folder> = folders.into_iter().flatten().collect();
        found.schema = Some(schema_files::read(env, &[file.to_owned()], &folders)?);
    }
    Ok(found)
}

/// The directories of snapshots, backups or copies: folders of tables without a node around them.
fn of_tables(env: &Env, options: &DirectoryOptions<'_>, folders: &[Folder]) -> Result<Directories, String> {
    let dir = options.data_dir;
    let regular = folders.iter().all(|folder| folder.is_in_place(dir));
    if !options.read_only && !regular {
        return Err(format!(
            "{} holds folders of tables (a snapshot or a copy), not a node's data: open it with --read-only",
            dir.display()
        ));
    }
    let mut files: Vec<PathBuf> = options.schema_file.map(Path::to_owned).into_iter().collect();
    files.extend([dir.join("schema.cql")].into_iter().filter(|file| env.disk.exists(file)));
    files.extend(folders.iter().map(|folder| folder.path.join("schema.cql")).filter(|file| env.disk.exists(file)));
    files.dedup();
    if files.is_empty() {
        return Err(format!(
            "{} holds folders of tables, but neither system_schema nor a schema.cql: name one with --schema FILE",
            dir.display()
        ));
    }
    let schema = schema_files::read(env, &files, folders)?;
    let mut places: BTreeMap<TableId, Vec<PathBuf>> = BTreeMap::new();
    for folder in folders {
        match folders::table_of(folder, folders.len(), &schema) {
            Some(table) => places.entry(table).or_default().push(folder.path.clone()),
            None => tracing::warn!(folder = %folder.path.display(), "no schema.cql says which table this is: left out"),
        }
    }
    let description = format!("{} folders of tables (snapshots or copies), schema from schema.cql", folders.len());
    let places = if regular { BTreeMap::new() } else { places };
    let (data, commitlog, auxiliary) = (vec![dir.to_owned()], dir.join("commitlog"), AuxiliaryDirectories::default());
    Ok(Directories { description, data, system: None, commitlog, auxiliary, places, schema: Some(schema) })
}

/// The parent directory of a path, also of a relative one such as `.`.
trait CanonicalParent {
    fn canonical_parent(&self) -> PathBuf;
}

impl CanonicalParent for Path {
    fn canonical_parent(&self) -> PathBuf {
        match self.parent() {
            Some(parent) if self.file_name().is_some() => match parent.as_os_str().is_empty() {
                true => PathBuf::from("."),
                false => parent.to_owned(),
            },
            _ => self.join(".."),
        }
    }
}

#[cfg(test)]
mod tests;
