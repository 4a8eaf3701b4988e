//! The schema version: a digest of all schema rows as a version-3 UUID.
//!
//! Nodes of a ring compare it. Cassandra digests the rows as they are stored, timestamps included
//! (`SchemaKeyspace.calculateSchemaDigest`). We digest their content, which is equal on two nodes
//! with the same schema. Both have to be the same digest once a ring has nodes of both programs.

use md5::{Digest, Md5};

use super::{SchemaTable, rows_of};
use crate::{Schema, system};

impl Schema {
    /// The version of this schema. Keyspaces that are local to the node do not count.
    pub fn digest(&self) -> [u8; 16] {
        let mut rows: Vec<_> = self
            .keyspaces
            .values()
            .filter(|keyspace| !keyspace.is_virtual && !system::is_local_keyspace(&keyspace.name))
            .flat_map(|keyspace| rows_of(keyspace))
            .collect();
        rows.sort_by(|a, b| (a.table, &a.keyspace, &a.clustering).cmp(&(b.table, &b.keyspace, &b.clustering)));
        let mut hash = Md5::new();
        for row in &rows {
            update(&mut hash, row.table);
            part(&mut hash, row.keyspace.as_bytes());
            row.clustering.iter().for_each(|value| part(&mut hash, value));
            for (name, value) in &row.cells {
                part(&mut hash, name.as_bytes());
                part(&mut hash, value);
            }
        }
        let mut version: [u8; 16] = hash.finalize().into();
        version[6] = (version[6] & 0x0f) | 0x30;
        version[8] = (version[8] & 0x3f) | 0x80;
        version
    }
}

fn update(hash: &mut Md5, table: SchemaTable) {
    part(hash, table.name().as_bytes());
}

fn part(hash: &mut Md5, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}
