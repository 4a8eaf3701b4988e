//! Reads every file of a backup and compares its size and digest with the manifest.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use env::{Env, Part};

use crate::Result;
use crate::copy::{self, Wrong};
use crate::manifest::{self, Entry, Manifest};
use crate::store::Store;

/// Files that are read at one time.
const AT_ONCE: usize = 4;
/// Files that are told of one by one.
const TOLD_MAX: usize = 100;

/// The findings of a verification.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// Nodes of the backup.
    pub nodes: usize,
    /// Files that were read, and their bytes.
    pub files: (usize, u64),
    /// Files that are missing or damaged.
    pub wrong: usize,
    /// Files that could not be read: whether they are whole is not known.
    pub unread: usize,
    /// Host ids of nodes that were in the ring and of which the backup has no manifest.
    pub absent: Vec<String>,
    /// Sentences about files that are wrong or could not be read: the first hundred that were
    /// found.
    pub told: Vec<String>,
}

/// Verifies a backup. `told` hears of bytes that were read.
pub fn verify(env: &Env, store: &dyn Store, tag: &str, told: &(dyn Fn(u64) + Sync)) -> Result<Found> {
    let manifests = manifest::of_backup(store, tag)?;
    let files: VecDeque<&Entry> = manifests.iter().flat_map(Manifest::files).collect();
    let bytes = manifests.iter().map(Manifest::bytes).sum();
    let absent = absent(&manifests);
    let found = Found { nodes: manifests.len(), files: (files.len(), bytes), absent, ..Found::default() };
    let (waiting, found) = (Mutex::new(files), Mutex::new(found));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let part = || -> Part<'_> {
        Box::new(|| {
            while let Some(entry) = next() {
                if let Err(wrong) = copy::check(store, entry, |_| Ok(())) {
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    match &wrong {
                        Wrong::Damaged(_) => found.wrong += 1,
                        Wrong::Unread(_) => found.unread += 1,
                    }
                    if found.told.len() < TOLD_MAX {
                        found.told.push(wrong.why());
                    }
                }
                told(entry.size);
            }
        })
    };
    env.tasks.side_by_side("verify", (0..AT_ONCE).map(|_| part()).collect());
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.told.sort();
    Ok(found)
}

/// The members of the ring, as each node of the backup knew them, of which there is no manifest.
pub(crate) fn absent(manifests: &[Manifest]) -> Vec<String> {
    let members: BTreeSet<&String> = manifests.iter().flat_map(|manifest| &manifest.ring).collect();
    let has_part = |host_id: &str| manifests.iter().any(|manifest| manifest.node.host_id == host_id);
    members.into_iter().filter(|member| !has_part(member)).cloned().collect()
}
