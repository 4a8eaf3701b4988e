//! The SSTables that a verb works on: Data.db files (any component names its SSTable), directories
//! of tables, or `keyspace/table` beneath a data directory. Of directories, files that a
//! transaction log marks as temporary or obsolete are left out; where such a file is named itself,
//! verbs that read take it, and verbs that replace it refuse it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args;
use env::{Disk, Env};
use sstable::{Component, Descriptor, txn_log};

use crate::failure::Failure;

/// The arguments that name SSTables.
#[derive(Args, Clone, Debug, Default)]
pub struct Targets {
    /// Data.db files, directories of a table, or KEYSPACE/TABLE with --data-dir.
    #[arg(required = true, value_name = "FILE|DIRECTORY|KEYSPACE/TABLE")]
    pub paths: Vec<PathBuf>,
    /// The directory that keyspaces lie in, or the one that holds it as `data`.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

impl Targets {
    /// The SSTables that the arguments name, each once, in the order of directory and id.
    pub fn sstables(&self, env: &Env) -> Result<Vec<Descriptor>, Failure> {
        let mut found = BTreeMap::new();
        for path in &self.paths {
            let before = found.len();
            for descriptor in self.resolve(env, path)? {
                found.insert((descriptor.directory.clone(), descriptor.id, descriptor.prefix()), descriptor);
            }
            if found.len() == before {
                return Err(Failure::new(format!("{}: no SSTable here", path.display())));
            }
        }
        Ok(found.into_values().collect())
    }

    /// As [`Targets::sstables`], for verbs whose new SSTables count in the place of the old ones.
    /// Err: a file is named itself that a transaction log marks as temporary or obsolete, as a
    /// shell names all that end with `-Data.db`. Written anew it would count, and rows would be
    /// alive again whose deletions the compaction that replaced it has forgotten.
    pub fn live_sstables(&self, env: &Env) -> Result<Vec<Descriptor>, Failure> {
        let named = self.sstables(env)?;
        let directories: BTreeSet<&PathBuf> = named.iter().map(|descriptor| &descriptor.directory).collect();
        for directory in directories {
            let hidden = txn_log::obsolete_files(env, std::slice::from_ref(directory))?;
            let in_it = named.iter().filter(|descriptor| descriptor.directory == *directory);
            let mut data = in_it.map(|descriptor| descriptor.path(Component::Data));
            if let Some(path) = data.find(|path| hidden.contains(path)) {
                return Err(Failure::new(format!(
                    "{}: a transaction log marks it as temporary or obsolete; name the directory, of which the \
                     SSTables that count are taken",
                    path.display()
                )));
            }
        }
        Ok(named)
    }

    /// The directories that the arguments name.
    pub fn directories(&self, env: &Env) -> Result<Vec<PathBuf>, Failure> {
        let mut directories = BTreeSet::new();
        for path in &self.paths {
            if is_directory(&*env.disk, path) {
                directories.insert(path.clone());
            } else if env.disk.exists(path) {
                directories.insert(directory_of(path));
            } else {
                directories.extend(self.of_table(&*env.disk, path)?);
            }
        }
        Ok(directories.into_iter().collect())
    }

    fn resolve(&self, env: &Env, path: &Path) -> Result<Vec<Descriptor>, Failure> {
        if is_directory(&*env.disk, path) {
            return in_directory(env, path);
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some((descriptor, component)) = Descriptor::parse(&directory_of(path), &name) {
            // the verb itself complains about a missing Data.db; a path that names no SSTable is
            // refused here
            if env.disk.exists(path) {
                return Ok(vec![descriptor]);
            }
            let what = component.map_or("file", Component::name);
            return Err(Failure::new(format!("{}: no such {what}", path.display())));
        }
        if env.disk.exists(path) {
            return Err(Failure::new(format!("{}: not the name of an SSTable's file", path.display())));
        }
        let mut found = Vec::new();
        for directory in self.of_table(&*env.disk, path)? {
            found.extend(in_directory(env, &directory)?);
        }
        Ok(found)
    }

    /// The directories of `keyspace/table`: one for each time that the table was created.
    fn of_table(&self, disk: &dyn Disk, path: &Path) -> Result<Vec<PathBuf>, Failure> {
        let missing = || Failure::new(format!("{}: no such file or directory", path.display()));
        let Some(data_dir) = &self.data_dir else { return Err(missing()) };
        let text = path.to_string_lossy();
        let Some((keyspace, table)) = text.split_once('/') else {
            return Err(Failure::usage(format!("{text}: KEYSPACE/TABLE, a file or a directory is wanted")));
        };
        let roots = [data_dir.join("data").join(keyspace), data_dir.join(keyspace)];
        let Some(root) = roots.iter().find(|root| disk.exists(root)) else { return Err(missing()) };
        let entries = disk.list_dir(root).map_err(|error| Failure::new(format!("{}: {error}", root.display())))?;
        let is_table = |name: &str| name.rsplit_once('-').is_some_and(|(before, _)| before == table) || name == table;
        let found: Vec<_> =
            entries.iter().filter(|entry| entry.is_dir && is_table(&entry.name)).map(|e| root.join(&e.name)).collect();
        if found.is_empty() { Err(missing()) } else { Ok(found) }
    }
}

/// A path's directory, `.` where none is named.
fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn is_directory(disk: &dyn Disk, path: &Path) -> bool {
    disk.exists(path) && disk.list_dir(path).is_ok()
}

/// The paths of the Data.db files of a directory's live SSTables.
pub fn in_directory(env: &Env, directory: &Path) -> Result<Vec<Descriptor>, Failure> {
    let hidden = txn_log::obsolete_files(env, &[directory.to_owned()])?;
    let entries = env.disk.list_dir(directory);
    let entries = entries.map_err(|error| Failure::new(format!("{}: {error}", directory.display())))?;
    let names = entries.into_iter().filter(|entry| !entry.is_dir && !hidden.contains(&directory.join(&entry.name)));
    Ok(names
        .filter_map(|entry| match Descriptor::parse(directory, &entry.name) {
            Some((descriptor, Some(Component::Data))) => Some(descriptor),
            _ => None,
        })
        .collect())
}

/// All files of SSTables and of transaction logs in a directory.
pub fn files(env: &Env, directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = env.disk.list_dir(directory);
    let entries = entries.map_err(|error| Failure::new(format!("{}: {error}", directory.display())))?;
    let ours = |name: &str| Descriptor::parse(directory, name).is_some() || name.ends_with(".log");
    Ok(entries
        .into_iter()
        .filter(|entry| !entry.is_dir && ours(&entry.name))
        .map(|entry| directory.join(entry.name))
        .collect())
}
