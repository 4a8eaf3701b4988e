//! Making the components of attached indexes from the rows of an SSTable, some rows at a time.
//!
//! Every partition of a table with clustering columns, and every row, takes the next number; the
//! terms of its live cells are collected with it (`sstable::attached`). A cell that may have
//! expired counts as live: time does not change the component. The files are written under other
//! names and renamed once they are complete, so that a crash leaves nothing that could be mistaken
//! for one.
//!
//! Memory: one row, and a segment of terms ([`sstable::attached`]) for each index.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use env::Env;
use rows::{Cell, PartitionHead, PartitionStream, Row, Unfiltered};
use schema::index::definition::{IndexDefinition, IndexPart};
use sstable::SSTable;
use sstable::attached::{GraphWriter, RowKeysWriter, TermsWriter, keys_path, unfinished};
use types::DecoratedKey;
use types::similarity::float_dimension;

use super::components::{open_one, path_of};
use crate::caches::Caches;
use crate::error::StorageError;
use crate::files;
use crate::table::attached::fingerprint;
use crate::table::entries;
use crate::table::indexes::IndexStore;

/// Most rows that an SSTable with attached indexes may have: their numbers have 32 bits.
const ROWS_MAX: u32 = u32::MAX - 1;

/// Components that are being made. If this is dropped before they are complete, their files are
/// removed.
pub struct ComponentsBuilder {
    env: Env,
    sstable: Arc<SSTable>,
    stream: Box<dyn PartitionStream>,
    head: Option<PartitionHead>,
    keys: RowKeysWriter,
    terms: Vec<(Arc<IndexDefinition>, Writer)>,
    /// Whether rows have numbers of their own, besides their partitions.
    has_clustering: bool,
    /// The files. Dropped after their writers.
    unfinished: Unfinished,
}

/// Files under the names of components that are not complete. When the value is dropped it removes
/// them, so that a build that is given up, for instance because the disk is full, leaves no files
/// until the next start.
struct Unfinished {
    env: Env,
    paths: Vec<PathBuf>,
}

impl Unfinished {
    /// A name for a new file that becomes the component `path`. A file of that name is removed;
    /// readers that have it open go on reading it.
    fn fresh(&mut self, path: &Path) -> Result<PathBuf, StorageError> {
        let path = unfinished(path);
        if self.env.disk.exists(&path) {
            self.env.disk.remove_file(&path).map_err(|error| StorageError::io(&path, &error))?;
        }
        self.paths.push(path.clone());
        Ok(path)
    }

    /// Gives the complete files the names of the components.
    fn rename(mut self, components: &[PathBuf]) -> Result<(), StorageError> {
        for path in components {
            let from = unfinished(path);
            let renamed = self.env.disk.rename(&from, path);
            renamed.map_err(|error| StorageError::io(path, &error))?;
            self.paths.retain(|path| *path != from);
        }
        assert!(self.paths.is_empty(), "every file that was begun is a component");
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        for path in &self.paths {
            match self.env.disk.remove_file(path) {
                // the file could not be created
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "half a component of an index stays behind");
                }
                Ok(()) => {}
            }
        }
    }
}

/// The writer of an index's component.
enum Writer {
    Terms(TermsWriter),
    Graph(Box<GraphWriter>),
}

impl Writer {
    fn create(env: &Env, path: PathBuf, definition: &IndexDefinition) -> Result<Self, StorageError> {
        Ok(match (definition.vectors, float_dimension(&definition.column.ty)) {
            (Some(similarity), Some(dimension)) => {
                Self::Graph(Box::new(GraphWriter::create(&*env.disk, path, similarity, dimension)?))
            }
            _ => Self::Terms(TermsWriter::create(&*env.disk, path)?),
        })
    }

    fn add(&mut self, term: &DecoratedKey, number: u32) -> Result<(), StorageError> {
        match self {
            Self::Terms(terms) => terms.add(&local(term), number)?,
            Self::Graph(graph) => graph.add(&term.key, number)?,
        }
        Ok(())
    }

    fn finish(self, fingerprint: &[u8], rows: u32, data_length: u64) -> Result<(), StorageError> {
        match self {
            Self::Terms(terms) => terms.finish(fingerprint, rows, data_length)?,
            Self::Graph(graph) => graph.finish(fingerprint, rows, data_length)?,
        }
        Ok(())
    }
}

impl ComponentsBuilder {
    /// Begins with the components of some indexes.
    pub fn begin(env: &Env, sstable: &Arc<SSTable>, indexes: &[Arc<IndexStore>]) -> Result<Self, StorageError> {
        let descriptor = sstable.descriptor();
        let mut unfinished = Unfinished { env: env.clone(), paths: Vec::new() };
        let keys = RowKeysWriter::create(&*env.disk, unfinished.fresh(&keys_path(descriptor))?)?;
        let mut terms = Vec::new();
        for index in indexes {
            let path = unfinished.fresh(&path_of(descriptor, &index.definition))?;
            terms.push((Arc::clone(&index.definition), Writer::create(env, path, &index.definition)?));
        }
        Ok(Self {
            env: env.clone(),
            stream: files::scan(sstable)?,
            sstable: Arc::clone(sstable),
            head: None,
            keys,
            terms,
            has_clustering: !sstable.table().clustering.is_empty(),
            unfinished,
        })
    }

    /// The SSTable.
    pub fn sstable(&self) -> &Arc<SSTable> {
        &self.sstable
    }

    /// Passes at most `rows` rows. False: there are no more.
    pub fn advance(&mut self, rows: usize) -> Result<bool, StorageError> {
        for _ in 0..rows {
            let Some(head) = &self.head else {
                let Some(head) = self.stream.next_partition()? else { return Ok(false) };
                if self.has_clustering {
                    let number = self.number()?;
                    self.keys.add(&head.key, None)?;
                    self.add_terms(&head.key, head.static_row.as_deref(), true, number)?;
                }
                self.head = Some(head);
                continue;
            };
            let key = head.key.clone();
            match self.stream.next_unfiltered()? {
                None => self.head = None,
                Some(Unfiltered::Marker(_)) => {}
                Some(Unfiltered::Row(row)) => {
                    let number = self.number()?;
                    self.keys.add(&key, Some(&row.clustering))?;
                    self.add_terms(&key, Some(&row), false, number)?;
                }
            }
        }
        Ok(true)
    }

    fn number(&self) -> Result<u32, StorageError> {
        let rows = self.keys.rows();
        if rows >= ROWS_MAX {
            let why = format!("{} has too many rows for an attached index", self.sstable.descriptor().prefix());
            return Err(StorageError::Refused { why });
        }
        Ok(rows)
    }

    /// Adds the terms of a row, or, with `is_head`, of a partition and its static row.
    fn add_terms(
        &mut self,
        key: &DecoratedKey,
        row: Option<&Row>,
        is_head: bool,
        number: u32,
    ) -> Result<(), StorageError> {
        for (definition, writer) in &mut self.terms {
            let by_head = self.has_clustering && definition.is_of_partition();
            if by_head != is_head {
                continue;
            }
            let mut add = |cell: Option<&Cell>| -> Result<(), StorageError> {
                let clustering = row.map(|row| &row.clustering);
                let Some(term) = entries::term(definition, &key.key, clustering, cell) else { return Ok(()) };
                writer.add(&term, number)
            };
            match definition.part {
                IndexPart::PartitionKey(_) => add(None)?,
                IndexPart::Clustering(_) => {
                    if row.is_some_and(has_something) {
                        add(None)?;
                    }
                }
                _ => {
                    let cells = row.map(|row| entries::cells(definition, row)).unwrap_or_default();
                    cells.iter().filter(|cell| !cell.is_tombstone()).try_for_each(|cell| add(Some(cell)))?;
                }
            }
        }
        Ok(())
    }

    /// Completes the files, gives them their names and adds them to the SSTable.
    pub fn finish(self, cache: &Arc<Caches>) -> Result<(), StorageError> {
        let Self { env, sstable, keys, terms, unfinished, .. } = self;
        let (rows, data_length, descriptor) = (keys.rows(), sstable.data_length(), sstable.descriptor());
        keys.finish(data_length)?;
        let mut paths = vec![keys_path(descriptor)];
        let mut definitions = Vec::new();
        for (definition, writer) in terms {
            writer.finish(&fingerprint(&definition), rows, data_length)?;
            paths.push(path_of(descriptor, &definition));
            definitions.push(definition);
        }
        unfinished.rename(&paths)?;
        let directory = &descriptor.directory;
        env.disk.sync_dir(directory).map_err(|error| StorageError::io(directory, &error))?;
        // of an index that is made again the former component stays open until then: queries go on
        for definition in definitions {
            open_one(&env, cache, &sstable, &definition).map_err(|why| StorageError::Refused {
                why: format!("an index component of {} that was just made: {why}", descriptor.prefix()),
            })?;
        }
        Ok(())
    }
}

/// The byte-comparable form of a term.
pub fn local(term: &DecoratedKey) -> Bytes {
    term.local.as_deref().map_or_else(|| term.key.clone(), Bytes::copy_from_slice)
}

/// Whether a row has anything besides its deletion.
fn has_something(row: &Row) -> bool {
    !row.liveness.is_empty() || !row.columns.is_empty()
}
