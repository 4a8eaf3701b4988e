//! The backups that a store holds.

use std::collections::BTreeMap;

use crate::manifest::{self, Manifest};
use crate::store::Store;
use crate::{Result, log};

/// A backup of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupInfo {
    /// The backup's name.
    pub tag: String,
    /// The node's host id.
    pub host_id: String,
    /// The node's address.
    pub address: String,
    /// When it was made, milliseconds since 1970.
    pub created_at: i64,
    /// Number of its tables.
    pub tables: usize,
    /// Bytes of its files.
    pub bytes: u64,
}

/// The content of a store.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// The backups in the order of their times.
    pub backups: Vec<BackupInfo>,
    /// For each node that has a backup the number of its archived segments.
    pub segments: BTreeMap<String, usize>,
    /// A sentence for each manifest that cannot be read: it is damaged, or of a later version.
    pub unread: Vec<String>,
}

/// Lists backups and segments. A manifest that cannot be read does not keep the others from being
/// listed, because one of these may be needed at that moment.
pub fn list(store: &dyn Store) -> Result<Listing> {
    let (mut listed, mut unread) = (Vec::new(), Vec::new());
    for key in manifest::keys(store, None)? {
        let manifest = match Manifest::read(store, &key) {
            Ok(manifest) => manifest,
            Err(why) => {
                unread.push(why);
                continue;
            }
        };
        let bytes = manifest.bytes();
        let Manifest { tag, node, created_at, tables, .. } = manifest;
        listed.push(BackupInfo {
            tag,
            host_id: node.host_id,
            address: node.address,
            created_at,
            tables: tables.len(),
            bytes,
        });
    }
    listed.sort_by(|one, other| {
        (one.created_at, &one.tag, &one.host_id).cmp(&(other.created_at, &other.tag, &other.host_id))
    });
    let mut segments = BTreeMap::new();
    for host_id in listed.iter().map(|listed| &listed.host_id) {
        if !segments.contains_key(host_id) {
            segments.insert(host_id.clone(), log::segments(store, host_id)?.len());
        }
    }
    Ok(Listing { backups: listed, segments, unread })
}
