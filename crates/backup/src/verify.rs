//! Reads every file of a backup and compares its size and digest with the manifest.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use env::{Env, Part};

use crate::Result;
use crate::copy::{self, ObjectProblem};
use crate::manifest::{self, Entry, Manifest};
use crate::store::Store;

/// Most files that are read at one time.
const AT_ONCE: usize = 4;
/// Most files that are reported one by one.
const TOLD_MAX: usize = 100;

/// The findings of a verification.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VerifyReport {
    /// Number of nodes of the backup.
    pub nodes: usize,
    /// Number of files that were read, and their bytes.
    pub files: (usize, u64),
    /// Number of files that are missing or damaged.
    pub wrong: usize,
    /// Number of files and manifests that could not be read, so that it is not known whether they
    /// are complete.
    pub unread: usize,
    /// Host ids of nodes that were in the ring and have no manifest in the backup.
    pub absent: Vec<String>,
    /// Sentences about files that are wrong or could not be read: the first hundred that were
    /// found.
    pub told: Vec<String>,
}

impl VerifyReport {
    /// Adds a file, or a manifest, that is not what it should be.
    fn add(&mut self, wrong: ObjectProblem) {
        match &wrong {
            ObjectProblem::Damaged(_) => self.wrong += 1,
            ObjectProblem::Unread(_) => self.unread += 1,
        }
        if self.told.len() < TOLD_MAX {
            self.told.push(wrong.why());
        }
    }
}

/// Verifies a backup, node by node: the manifest of one node is in memory at a time. A manifest
/// that cannot be read is reported, and the files of the other nodes are verified. `told` is
/// called with numbers of bytes that were read.
pub fn verify(env: &Env, store: &dyn Store, tag: &str, told: &(dyn Fn(u64) + Sync)) -> Result<VerifyReport> {
    let mut found = VerifyReport::default();
    let (mut members, mut parts) = (BTreeSet::new(), BTreeSet::new());
    for key in manifest::keys_of_backup(store, tag)? {
        parts.insert(key.rsplit('/').next().unwrap_or_default().trim_end_matches(".json").to_owned());
        match Manifest::read(store, &key) {
            Ok(manifest) => {
                found = verify_node(env, store, &manifest, found, told);
                members.extend(manifest.ring);
            }
            Err(why) => found.add(ObjectProblem::Unread(why)),
        }
    }
    found.absent = members.difference(&parts).cloned().collect();
    found.told.sort();
    Ok(found)
}

/// Verifies the files of one node, and adds what was found.
fn verify_node(
    env: &Env,
    store: &dyn Store,
    manifest: &Manifest,
    mut found: VerifyReport,
    told: &(dyn Fn(u64) + Sync),
) -> VerifyReport {
    let files: VecDeque<&Entry> = manifest.files().collect();
    found.nodes += 1;
    found.files = (found.files.0 + files.len(), found.files.1.saturating_add(manifest.bytes()));
    let (waiting, found) = (Mutex::new(files), Mutex::new(found));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let part = || -> Part<'_> {
        Box::new(|| {
            while let Some(entry) = next() {
                if let Err(wrong) = copy::check(store, entry, |_| Ok(())) {
                    found.lock().unwrap_or_else(PoisonError::into_inner).add(wrong);
                }
                told(entry.size);
            }
        })
    };
    env.tasks.run_in_parallel("verify", (0..AT_ONCE).map(|_| part()).collect());
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The members of the ring, as each node of the backup knew them, that have no manifest.
pub(crate) fn absent(manifests: &[Manifest]) -> Vec<String> {
    let members: BTreeSet<&String> = manifests.iter().flat_map(|manifest| &manifest.ring).collect();
    let has_part = |host_id: &str| manifests.iter().any(|manifest| manifest.node.host_id == host_id);
    members.into_iter().filter(|member| !has_part(member)).cloned().collect()
}
