//! Changes of the table as a whole: TRUNCATE, ALTER, and DROP followed by CREATE under the same
//! name.
//!
//! Checked: a truncation leaves nothing from before, and an altered table shows what it showed
//! before; a table that is created again is empty. All of it on a disk that fails, too (`faults`).

use std::time::Duration;

use super::*;
use crate::table::TableStore;
use crate::truncate;

/// Chunk lengths that ALTER chooses among, in kibibytes.
const CHUNKS: [&str; 3] = ["1", "2", "4"];

impl Model {
    /// TRUNCATE.
    pub fn truncate(&mut self, engine: &Arc<Engine>) -> Result<(), StorageError> {
        // the tag of the snapshot is the time in milliseconds
        self.sim.advance(Duration::from_millis(5));
        let store = self.store(engine);
        self.sim.block_on(truncate::truncate(engine, &store))
    }

    fn change(
        &self,
        engine: &Arc<Engine>,
        decide: impl FnOnce(&schema::Schema) -> schema::Schema,
    ) -> Result<Vec<Arc<TableStore>>, StorageError> {
        // two changes at one moment would be one
        self.sim.advance(Duration::from_millis(5));
        let changed = schema_change::change(engine, |schema| Ok::<_, ()>(decide(schema)))?;
        let changed = changed.expect("the change is not refused");
        if let Some(position) = changed.position {
            self.sim.block_on(engine.log.wait_durable(position))?;
        }
        Ok(changed.dropped)
    }

    /// Other compression, and perhaps a new column, which nobody writes.
    pub fn alter(&mut self, engine: &Arc<Engine>) -> Result<(), StorageError> {
        let old = self.table(engine);
        let mut specs = old.specs();
        if self.dice.chance(50) && specs.len() < 10 {
            let (name, kind) = (format!("added{}", specs.len()), ColumnKind::Regular);
            specs.push(ColumnSpec { name, kind, position: 0, ty: CqlType::Int, reversed: false });
        }
        let mut params = old.params.clone();
        let chunk = CHUNKS[self.dice.below(CHUNKS.len() as u64) as usize];
        params.compression.insert("chunk_length_in_kb".into(), chunk.into());
        let (kind, flags, dropped) = (TableKind::Regular, TableFlags::COMPOUND, BTreeMap::new());
        let new = TableMetadata::new(old.id, "model", "t", kind, flags, params, specs, dropped, Some(&old));
        let new = common::keyspace("model", Some(Arc::new(new)));
        self.change(engine, |schema| schema.with_keyspace(new)).map(drop)
    }

    /// Drops the table and creates it again; the process may die before the files are gone.
    pub fn create_again(&mut self, engine: &Arc<Engine>) -> Result<(), StorageError> {
        let dropped = self.drop_table(engine)?;
        if self.dice.chance(70) {
            common::remove(&self.sim, engine, &dropped);
        }
        self.create_table(engine)
    }

    /// DROP; gives the tables whose files may go.
    pub fn drop_table(&mut self, engine: &Arc<Engine>) -> Result<Vec<Arc<TableStore>>, StorageError> {
        // the next table has another id, also where nobody knows whether this one is gone
        self.tables += 1;
        self.change(engine, |schema| schema.with_keyspace(common::keyspace("model", None)))
    }

    /// CREATE of a table that was dropped in this life.
    pub fn create_table(&mut self, engine: &Arc<Engine>) -> Result<(), StorageError> {
        let table = table_of(TableId([10 + self.tables; 16]), "model", self.sim.seed());
        self.change(engine, |schema| schema.with_keyspace(common::keyspace("model", Some(table)))).map(drop)
    }

    /// Nothing that was written so far shows any more.
    pub fn forget(&mut self) {
        self.histories = vec![Vec::new()];
    }

    pub fn is_there(&self, engine: &Engine) -> bool {
        engine.schema().table("model", "t").is_some()
    }
}
