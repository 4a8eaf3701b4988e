//! The components of storage-attached indexes beside an SSTable: which rows it has, by number
//! ([`RowKeys`]), and for each index the numbers of the rows that have a term ([`TermIndex`]), or
//! for an index on vectors a graph of them ([`VectorGraph`]).
//!
//! Row numbers count what an SSTable holds from its first partition on, so that they ascend with
//! the order of partitions and clusterings: of a table with clustering columns each partition has a
//! number of its own, which stands for its static row and for the whole of it, and behind it one
//! for each row; of any other table each row has one. Rows of which only cells of dropped columns
//! are left have theirs, so that both files follow from Data.db and the index's definition alone,
//! whenever they are made: one that is missing or does not fit is made again.
//!
//! The names are no components of Cassandra's: it passes over them, as it passes over everything
//! that TOC.txt does not name, and makes its own. docs/formats/attached-index.md has the bytes.

mod blocks;
mod graph;
mod keys;
mod row_set;
mod terms;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use crate::descriptor::Descriptor;
use env::sync::Mutex;

pub use blocks::BLOCK_SIZE_MAX;
pub use graph::{GraphWriter, Near, NearRow, VectorGraph};
pub use keys::{BlocksOf, KeysCursor, Place, Position, RowKeys, RowKeysWriter};
pub use row_set::RowSet;
pub use terms::{TermIndex, TermPart, TermRange, TermsWriter};

pub(crate) use keys::any_block as any_keys_block;
pub(crate) use terms::any_block as any_terms_block;

/// The beginning of the components' names.
const COMPONENT: &str = "Attached";

/// The beginning of the names of files that are being written.
const UNFINISHED: &str = "unfinished.";

/// The file with the keys of rows.
pub fn keys_path(descriptor: &Descriptor) -> PathBuf {
    descriptor.directory.join(format!("{}-{COMPONENT}+Keys.db", descriptor.prefix()))
}

/// The file with the terms of an index.
pub fn terms_path(descriptor: &Descriptor, index: &str) -> PathBuf {
    descriptor.directory.join(format!("{}-{COMPONENT}+{index}+Terms.db", descriptor.prefix()))
}

/// The file with the vectors of an index.
pub fn graph_path(descriptor: &Descriptor, index: &str) -> PathBuf {
    descriptor.directory.join(format!("{}-{COMPONENT}+{index}+Graph.db", descriptor.prefix()))
}

/// Whether a file of a table's directory is one of these components, or one that was not completed.
pub fn is_component(file_name: &str) -> bool {
    let is_whole = file_name.splitn(4, '-').nth(3).is_some_and(|name| name.starts_with("Attached+"));
    is_whole && file_name.ends_with(".db")
}

/// Whether a file is a component that was not completed.
pub fn is_unfinished(file_name: &str) -> bool {
    file_name.strip_prefix(UNFINISHED).is_some_and(is_component)
}

/// A file of this name is not complete, and is left over where nobody writes it.
pub fn unfinished(path: &std::path::Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!("{UNFINISHED}{name}"))
}

/// The open components of an SSTable.
#[derive(Debug, Default)]
pub struct Attachments(Mutex<Open>);

#[derive(Clone, Debug, Default)]
struct Open {
    keys: Option<Arc<RowKeys>>,
    terms: BTreeMap<String, Arc<TermIndex>>,
    graphs: BTreeMap<String, Arc<VectorGraph>>,
}

impl Attachments {
    fn open(&self) -> env::sync::MutexGuard<'_, Open> {
        // a panic leaves the map as it was before or after one change
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys of rows; None: not made or not opened.
    pub fn keys(&self) -> Option<Arc<RowKeys>> {
        self.open().keys.clone()
    }

    /// Takes over the components that are open for the same SSTable, opened before: they follow
    /// from its rows, which have not changed.
    pub fn take_over(&self, before: &Self) {
        let open = before.open().clone();
        *self.open() = open;
    }

    /// Whether the components of an index are open, whatever they are.
    pub fn has(&self, index: &str) -> bool {
        let open = self.open();
        open.keys.is_some() && (open.terms.contains_key(index) || open.graphs.contains_key(index))
    }

    /// Keys and vectors for an index; None: one of them is not made or not opened.
    pub fn graph_of(&self, index: &str) -> Option<(Arc<RowKeys>, Arc<VectorGraph>)> {
        let open = self.open();
        Some((Arc::clone(open.keys.as_ref()?), Arc::clone(open.graphs.get(index)?)))
    }

    /// Keys and terms for an index; None: one of them is not made or not opened.
    pub fn of_index(&self, index: &str) -> Option<(Arc<RowKeys>, Arc<TermIndex>)> {
        let open = self.open();
        Some((Arc::clone(open.keys.as_ref()?), Arc::clone(open.terms.get(index)?)))
    }

    /// Puts the keys of rows in place.
    pub fn put_keys(&self, keys: Arc<RowKeys>) {
        self.open().keys = Some(keys);
    }

    /// Puts the terms of an index in place of what was open for the index: no search finds none in
    /// between.
    pub fn put_terms(&self, index: &str, terms: Arc<TermIndex>) {
        let mut open = self.open();
        open.graphs.remove(index);
        open.terms.insert(index.to_owned(), terms);
    }

    /// Puts the vectors of an index in place of what was open for the index.
    pub fn put_graph(&self, index: &str, graph: Arc<VectorGraph>) {
        let mut open = self.open();
        open.terms.remove(index);
        open.graphs.insert(index.to_owned(), graph);
    }

    /// Forgets the terms or vectors of an index; who reads them still does.
    pub fn forget(&self, index: &str) {
        let mut open = self.open();
        open.terms.remove(index);
        open.graphs.remove(index);
    }

    /// Forgets the terms and vectors that were made for definitions of indexes that `is_known` does
    /// not know; it is asked with their fingerprints.
    pub fn retain(&self, is_known: impl Fn(&[u8]) -> bool) {
        let mut open = self.open();
        open.terms.retain(|_, terms| is_known(terms.fingerprint()));
        open.graphs.retain(|_, graph| is_known(graph.fingerprint()));
    }
}

/// An offset or number does not fit where the format has room for it.
fn damaged(what: impl Into<String>) -> crate::error::Malformed {
    crate::error::Malformed::at(0, what)
}
