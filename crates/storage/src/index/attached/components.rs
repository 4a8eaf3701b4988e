//! The components of attached indexes that SSTables have: opened if they fit, made if they are
//! missing or do not fit, removed with their index.
//!
//! A component fits if it was made for the index as it is defined now (its fingerprint) and for
//! this SSTable (number of rows, length of the data). A component that does not fit is passed over
//! with a line in the log, and made again.

use std::path::PathBuf;
use std::sync::Arc;

use env::Env;
use schema::index::definition::IndexDefinition;
use sstable::attached::{RowKeys, TermIndex, VectorGraph, graph_path, is_unfinished, keys_path, terms_path};
use sstable::{Descriptor, FileCache, FinishedSSTable, SSTable};

use super::components_builder::ComponentsBuilder;
use crate::caches::Caches;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::table::TableStore;
use crate::table::attached::{fingerprint, is_of, of};
use crate::table::indexes::IndexStore;
use crate::table::view::View;

/// Rows that are passed at a time when no other work waits for a turn.
const ROWS_AT_ONCE: usize = 1 << 16;

/// The component of an index beside an SSTable: its terms, or its vectors.
pub fn path_of(descriptor: &Descriptor, definition: &IndexDefinition) -> PathBuf {
    match definition.vectors {
        None => terms_path(descriptor, &definition.name),
        Some(_) => graph_path(descriptor, &definition.name),
    }
}

/// The indexes whose components an SSTable lacks.
pub fn indexes_without_components(sstable: &SSTable, indexes: &[Arc<IndexStore>]) -> Vec<Arc<IndexStore>> {
    of(indexes).filter(|index| !sstable.attached().has(index.name())).cloned().collect()
}

/// Opens the components that an SSTable has on disk and that fit.
pub fn open(env: &Env, cache: &Arc<Caches>, sstable: &SSTable, indexes: &[Arc<IndexStore>]) {
    for index in indexes_without_components(sstable, indexes) {
        let path = path_of(sstable.descriptor(), &index.definition);
        if !env.disk.exists(&path) {
            continue;
        }
        if let Err(why) = open_one(env, cache, sstable, &index.definition) {
            tracing::warn!(path = %path.display(), why, "a component of an index is made again");
        }
    }
}

/// Removes files of components that a crash has left unfinished. Files that cannot be removed stay
/// until the next start.
pub fn remove_unfinished(env: &Env, directories: &[PathBuf]) {
    for directory in directories {
        for entry in env.disk.list_dir(directory).unwrap_or_default() {
            if is_unfinished(&entry.name)
                && let Err(error) = env.disk.remove_file(&directory.join(&entry.name))
            {
                tracing::warn!(file = entry.name, %error, "half a component of an index stays behind");
            }
        }
    }
}

/// Opens keys and terms of one index.
pub fn open_one(env: &Env, cache: &Arc<Caches>, sstable: &SSTable, definition: &IndexDefinition) -> Result<(), String> {
    let cache = || Arc::clone(cache) as Arc<dyn FileCache>;
    let descriptor = sstable.descriptor();
    let path = path_of(descriptor, definition);
    let component = match definition.vectors {
        None => TermIndex::open(&*env.disk, &path, cache()).map(|terms| Component::Terms(Arc::new(terms))),
        Some(_) => VectorGraph::open(&*env.disk, &path, cache()).map(|graph| Component::Graph(Arc::new(graph))),
    };
    let component = component.map_err(|error| error.to_string())?;
    let (of_definition, of_data) = match &component {
        Component::Terms(terms) => (terms.fingerprint(), terms.of_data()),
        Component::Graph(graph) => (graph.fingerprint(), graph.of_data()),
    };
    if of_definition != fingerprint(definition) {
        return Err("the component is of another definition of the index".into());
    }
    let keys = match sstable.attached().keys() {
        Some(keys) => keys,
        None => {
            let keys = RowKeys::open(&*env.disk, &keys_path(descriptor), cache());
            Arc::new(keys.map_err(|error| error.to_string())?)
        }
    };
    let of_keys = (keys.rows(), keys.data_length());
    if of_data != of_keys || keys.data_length() != sstable.data_length() {
        return Err("the component is of another SSTable".into());
    }
    sstable.attached().put_keys(keys);
    match component {
        Component::Terms(terms) => sstable.attached().put_terms(&definition.name, terms),
        Component::Graph(graph) => sstable.attached().put_graph(&definition.name, graph),
    }
    Ok(())
}

/// The open component of an index beside an SSTable.
enum Component {
    Terms(Arc<TermIndex>),
    Graph(Arc<VectorGraph>),
}

/// Makes the components of new SSTables before the caller takes [`TableStore::replacing`]. Under
/// that lock [`complete`] only has to open the files, except for an index that was created in
/// between.
pub fn prepare<'a>(
    engine: &Engine,
    store: &TableStore,
    written: impl IntoIterator<Item = &'a FinishedSSTable>,
) -> Result<(), StorageError> {
    if of(&store.view().indexes).next().is_none() {
        return Ok(());
    }
    let table = store.table();
    for done in written {
        let cache: Arc<dyn FileCache> = Arc::clone(&engine.caches) as _;
        let sstable = SSTable::open(&engine.env, done.descriptor.clone(), &table, cache)?;
        complete(engine, store, &Arc::new(sstable))?;
    }
    Ok(())
}

/// Makes the components that a new SSTable lacks, before it is in the view.
pub fn complete(engine: &Engine, store: &TableStore, sstable: &Arc<SSTable>) -> Result<(), StorageError> {
    let indexes = Arc::clone(&store.view().indexes);
    open(&engine.env, &engine.caches, sstable, &indexes);
    let lacking = indexes_without_components(sstable, &indexes);
    if lacking.is_empty() {
        return Ok(());
    }
    let mut builder = ComponentsBuilder::begin(&engine.env, sstable, &lacking)?;
    while builder.advance(ROWS_AT_ONCE)? {}
    builder.finish(&engine.caches)
}

/// Removes the components of indexes that do not exist any more. Those of SSTables that are not in
/// the view yet are forgotten when these come ([`crate::table::attached::leave_present`]).
pub fn remove_dropped(engine: &Engine, store: &TableStore, before: &View) {
    let _alone = store.replacing.lock().expect("a panic while SSTables are replaced ends the process");
    let view = store.view();
    for index in of(&before.indexes) {
        let old = fingerprint(&index.definition);
        if of(&view.indexes).any(|other| is_of(&old, &other.definition)) {
            continue;
        }
        for sstable in &view.sstables {
            sstable.attached().forget(index.name());
            let path = path_of(sstable.descriptor(), &index.definition);
            if engine.env.disk.exists(&path)
                && let Err(error) = engine.env.disk.remove_file(&path)
            {
                tracing::warn!(path = %path.display(), %error, "a component of a dropped index stays behind");
            }
        }
    }
}
