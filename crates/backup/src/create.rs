//! Backs a node up: uploads the files of its snapshot that the store does not hold, then
//! the manifest.
//!
//! If it is killed and begun again, it goes on where it was: files that the store holds are not
//! sent again. If the store has locks (`Store::hold`) only one backup of a node is made at a time:
//! otherwise a second one would write into the files of the first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use env::{Env, Part};

use crate::manifest::{self, Entry, FORMAT, Keyspace, Manifest, NodeIdentity, Table, check_name};
use crate::source::{self, File, NodeTable, TableFiles};
use crate::store::Store;
use crate::{Result, copy};

/// Most manifests of earlier backups of the node that are read for the digests of files that the
/// store holds. Without them the files on this machine are read for that.
const EARLIER_MAX: usize = 16;

/// Most files that are uploaded at one time.
const AT_ONCE: usize = 4;

/// A node to be backed up, and the name of the backup.
#[derive(Clone, Debug)]
pub struct Request {
    /// The name of the backup, which is that of the snapshot.
    pub tag: String,
    /// The node.
    pub node: NodeIdentity,
    /// The host ids of the ring's members, this node's among them, as the node knows them.
    pub ring: Vec<String>,
    /// The keyspaces of the node.
    pub keyspaces: Vec<Keyspace>,
    /// The tables of the node. The backup has all of them, and no others.
    pub tables: Vec<NodeTable>,
    /// The node's data directories.
    pub data_directories: Vec<PathBuf>,
}

/// The size of a backup that was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Tables of the backup.
    pub tables: usize,
    /// Number of the files of the backup, and their bytes.
    pub files: (u64, u64),
    /// Number of the files that were uploaded now, and their bytes.
    pub uploaded: (u64, u64),
}

/// Makes the backup. `told` is called with numbers of bytes that were dealt with.
pub fn create(env: &Env, store: &dyn Store, request: &Request, told: &(dyn Fn(u64) + Sync)) -> Result<Summary> {
    check_name(&request.tag)?;
    check_name(&request.node.host_id)?;
    let tables = source::tables(env, &request.data_directories, &request.tag, &request.tables)?;
    if tables.is_empty() {
        return Err("the node has no tables".to_owned());
    }
    let _alone = store.hold(&format!("nodes/{}", request.node.host_id))?;
    let held = StoredObjects::of(store, &request.node.host_id)?;
    let work = Work::of(&tables, &request.node.host_id)?;
    let entries = work.carry_out(env, store, &held, told)?;
    let uploaded = (work.files.load(Ordering::Relaxed), work.bytes.load(Ordering::Relaxed));
    let manifest = Manifest {
        format: FORMAT,
        tag: request.tag.clone(),
        node: request.node.clone(),
        created_at: env.clock.now_micros() / 1000,
        taken_at: source::taken_at(&tables),
        log_segment: source::log_segment(&tables),
        log_from: source::log_from(&tables),
        ring: request.ring.clone(),
        keyspaces: request.keyspaces.clone(),
        tables: tables.into_iter().zip(entries).map(|(table, files)| of_table(table, files)).collect(),
    };
    manifest.write(store)?;
    let files = (manifest.files().count() as u64, manifest.bytes());
    Ok(Summary { tables: manifest.tables.len(), files, uploaded })
}

fn of_table(table: TableFiles, files: Vec<Entry>) -> Table {
    let TableFiles { table: NodeTable { keyspace, name, id }, schema, .. } = table;
    Table { keyspace, name, id, schema, files }
}

/// The objects that the store holds of a node.
struct StoredObjects {
    /// Sizes of the objects in bytes, by key.
    sizes: BTreeMap<String, u64>,
    /// Digests by key and size, where an earlier manifest has them.
    digests: BTreeMap<(String, u64), String>,
}

impl StoredObjects {
    fn of(store: &dyn Store, host_id: &str) -> Result<Self> {
        let objects = store.list(&format!("nodes/{host_id}/sstables"))?;
        let sizes = objects.into_iter().map(|object| (object.key, object.size)).collect();
        let mut digests = BTreeMap::new();
        let end = format!("/{host_id}.json");
        for key in manifest::keys(store, None)?.iter().filter(|key| key.ends_with(&end)).rev().take(EARLIER_MAX) {
            // one that cannot be read costs its digests, and not this backup
            let Ok(earlier) = Manifest::read(store, key) else { continue };
            for entry in earlier.tables.into_iter().flat_map(|table| table.files) {
                digests.insert((entry.key, entry.size), entry.sha256);
            }
        }
        Ok(Self { sizes, digests })
    }

    /// Whether the store holds a file. Err: a file of another size has its key. It is of an
    /// earlier backup, which would be damaged if this file took its place.
    fn has(&self, key: &str, size: u64) -> Result<bool> {
        match self.sizes.get(key) {
            None => Ok(false),
            Some(held) if *held == size => Ok(true),
            Some(held) => Err(format!(
                "{key}: the store holds {held} bytes under this name, and the file here has {size}; it is not \
                 replaced, since earlier backups may need it. If `helenus backup verify` calls it damaged, delete it \
                 from the store and repeat"
            )),
        }
    }
}

/// The files of all tables, as they are dealt with by several threads.
struct Work<'a> {
    /// Index of the table, index in the table, the file and its key.
    waiting: Mutex<VecDeque<(usize, usize, &'a File, String)>>,
    entries: Mutex<Vec<Vec<Option<Entry>>>>,
    failure: Mutex<Option<String>>,
    /// Number of files that were uploaded.
    files: AtomicU64,
    /// Bytes of these files.
    bytes: AtomicU64,
}

impl<'a> Work<'a> {
    fn of(tables: &'a [TableFiles], host_id: &str) -> Result<Self> {
        let (mut waiting, mut keys) = (VecDeque::new(), BTreeSet::new());
        for (place, table) in tables.iter().enumerate() {
            let NodeTable { keyspace, name, id } = &table.table;
            for (number, file) in table.files.iter().enumerate() {
                // the directory of an index begins with a dot, which a key does not
                let plain = file.name.trim_start_matches('.');
                let key = format!("nodes/{host_id}/sstables/{keyspace}/{name}-{id}/{plain}@{}", file.stamp);
                if !keys.insert(key.clone()) {
                    return Err(format!("two files have the name {key}"));
                }
                waiting.push_back((place, number, file, key));
            }
        }
        Ok(Self {
            waiting: Mutex::new(waiting),
            entries: Mutex::new(tables.iter().map(|table| vec![None; table.files.len()]).collect()),
            failure: Mutex::default(),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// Uploads all files that the store does not hold; gives their entries by table.
    fn carry_out(
        &self,
        env: &Env,
        store: &dyn Store,
        held: &StoredObjects,
        told: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<Vec<Entry>>> {
        let part = || -> Part<'_> {
            Box::new(|| {
                while let Some(next) = self.next() {
                    let size = next.2.size;
                    if let Err(why) = self.back_up_file(env, store, held, next) {
                        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
                        return;
                    }
                    told(size);
                }
            })
        };
        env.tasks.run_in_parallel("backup", (0..AT_ONCE).map(|_| part()).collect());
        if let Some(why) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(why);
        }
        let entries = std::mem::take(&mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner));
        let whole = |table: Vec<Option<Entry>>| table.into_iter().map(|entry| entry.expect("each file was dealt with"));
        Ok(entries.into_iter().map(|table| whole(table).collect()).collect())
    }

    /// The next file; None: all have begun, or one has failed.
    fn next(&self) -> Option<(usize, usize, &'a File, String)> {
        if self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return None;
        }
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn back_up_file(
        &self,
        env: &Env,
        store: &dyn Store,
        held: &StoredObjects,
        (table, place, file, key): (usize, usize, &File, String),
    ) -> Result<()> {
        let sha256 = match held.has(&key, file.size)? {
            true => match held.digests.get(&(key.clone(), file.size)) {
                Some(known) => known.clone(),
                None => copy::digest(env, &file.path)?,
            },
            false => {
                let digest = copy::upload(env, &file.path, file.size, store, &key)?;
                self.files.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add(file.size, Ordering::Relaxed);
                digest
            }
        };
        let entry = Entry { name: file.name.clone(), key, size: file.size, sha256 };
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)[table][place] = Some(entry);
        Ok(())
    }
}
