//! The bodies of targets whose decoders are public. Those of private decoders stand in their
//! crates, in modules named `fuzzing`.

pub mod functions;
pub mod hints;
pub mod internode;
pub mod paxos;
pub mod reads;
pub mod repair;
pub mod schema_rows;
pub mod stream;
pub mod whole;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use bytes::{Bytes, BytesMut};
use env::sim::{DATA, Sim};
use protocol::frame::HEADER_SIZE;
use protocol::segment::decode::EnvelopeJoiner;
use protocol::segment::{SegmentDecoder, SegmentFormat};
use protocol::{Compression, RequestEnvelope};
use schema::{TableId, TableMetadata};

use crate::fixtures::FileSet;

/// Statements: any text is parsed or refused.
pub fn cql(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = ::cql::parse::parse(text);
    }
}

/// cassandra.yaml: any text is read or refused.
pub fn config(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = ::config::Config::load(Some(text), &[], data.len().is_multiple_of(2));
    }
}

/// The manifest of a snapshot.
pub fn manifest(data: &[u8]) {
    let _ = storage::snapshot::time_of_manifest(data);
}

/// The manifest of a backup: what is read has plain names alone, and is written and read again.
pub fn backup(data: &[u8]) {
    let Ok(manifest) = backup::Manifest::decode(data) else { return };
    let leads_out = |name: &str| name.starts_with('/') || name.split('/').any(|part| part == "..");
    assert!(!manifest.files().any(|entry| leads_out(&entry.name) || leads_out(&entry.key)));
    assert!(!manifest.tables.iter().any(|table| leads_out(&table.keyspace) || leads_out(&table.directory())));
    let bytes = serde_json::to_vec(&manifest).expect("a manifest is written");
    assert_eq!(backup::Manifest::decode(&bytes), Ok(manifest));
}

/// Names of types, as CQL and as class names: what is read prints to something that reads as the
/// same.
pub fn type_names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = types::cql_name::parse(text, &|_| None);
    if let Ok((ty, reversed)) = types::marshal::parse(text) {
        let printed = types::marshal::print(&ty, reversed);
        assert_eq!(types::marshal::parse(&printed).ok(), Some((ty, reversed)), "{printed}");
    }
}

/// Values of any type: `u8` length of a type expression, the expression, `u8` length of a value,
/// the value, another value. Files hold what was never validated: it is compared and printed all
/// the same, and what is valid comes back from its text.
pub fn values(data: &[u8]) {
    let Some((length, rest)) = data.split_first() else { return };
    let (expression, rest) = rest.split_at(usize::from(*length).min(rest.len()));
    let Some((length, rest)) = rest.split_first() else { return };
    let (a, b) = rest.split_at(usize::from(*length).min(rest.len()));
    let Ok(expression) = std::str::from_utf8(expression) else { return };
    let Ok((ty, _)) = types::marshal::parse(expression) else { return };
    assert_eq!(types::compare(&ty, a, b), types::compare(&ty, b, a).reverse());
    for value in [a, b] {
        assert!(types::compare(&ty, value, value).is_eq());
        types::byte_comparable::encode_local_token(&ty, value, &mut Vec::new());
        let _ =
            (types::to_text(&ty, value), types::literal::to_plain_text(&ty, value), types::json::to_json(&ty, value));
        let _ = types::collection::count(value);
        let _ = (types::collection::elements(value).count(), types::collection::entries(value).count());
        let _ = types::validate(&ty, value);
    }
}

/// A transaction's log in the directory of two SSTables: what no record names stays, and an error
/// removes nothing.
pub fn txn_log(data: &[u8]) {
    let sealed = sstable::txn_log::sealed(data);
    for log in [data, &sealed] {
        let sim = Sim::new(1);
        let directory = Path::new(DATA);
        for name in ["da-1-bti-Data.db", "da-1-bti-TOC.txt", "da-2-bti-Data.db", "da-22-bti-Data.db", "kept"] {
            crate::fixtures::put(&sim, &directory.join(name), b"x");
        }
        crate::fixtures::put(&sim, &directory.join("bti-da_txn_flush_00000000-0000-0000-0000-000000000001.log"), log);
        let env = sim.env();
        let directories = [directory.to_owned()];
        let names = || env.disk.list_dir(directory).expect("a directory").len();
        let hidden = sstable::txn_log::obsolete_files(&env, &directories);
        let recovered = sstable::txn_log::recover(&env, &directories);
        assert!(env.disk.exists(&directory.join("kept")), "a file of no SSTable is gone");
        match recovered {
            Err(_) => assert_eq!(names(), 6),
            Ok(_) => assert_eq!(names(), 5 - hidden.expect("what was recovered could be read").len()),
        }
    }
}

static TABLES: LazyLock<Vec<Arc<TableMetadata>>> = LazyLock::new(|| {
    let tables = ["dels_desc", "ck_nested", "types_all", "st_basic"];
    tables.iter().map(|table| FileSet::of_cassandra(table, "da").table).collect()
});

/// The tables that mutations are of, besides the built-in ones: by the last byte of the id.
pub fn mutation_table(id: TableId) -> Option<Arc<TableMetadata>> {
    static SCHEMA: LazyLock<schema::Schema> = LazyLock::new(schema::system::schema);
    SCHEMA.table_by_id(id).cloned().or_else(|| TABLES.get(usize::from(id.0[15])).cloned())
}

/// Records of the commit log and bodies of messages; what is read can be written and read again.
pub fn mutation(data: &[u8]) {
    let record = Bytes::copy_from_slice(data);
    let Ok(Some(mutation)) = rows::codec::decode_mutation(&record, &mutation_table) else { return };
    let mut out = Vec::new();
    rows::codec::encode_mutation(&mut out, &mutation);
}

/// Frames of versions 3 and 4: a header, then a request's body.
pub fn request(data: &[u8]) {
    let Ok(Some(header)) = protocol::frame::decode_header(data) else { return };
    let body = Bytes::copy_from_slice(data.get(HEADER_SIZE..).unwrap_or_default());
    let _ = RequestEnvelope::decode(&header, &body);
}

/// A connection of version 5: segments, the envelopes in them, the requests in those. First byte:
/// compressed or not.
pub fn segment(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let format = if first & 1 == 0 { SegmentFormat::Plain } else { SegmentFormat::Lz4 };
    let decoder = SegmentDecoder::new(format);
    let mut joiner = EnvelopeJoiner::new(4096);
    let mut input = BytesMut::from(rest);
    while let Ok(Some(segment)) = decoder.next(&mut input) {
        if joiner.push(segment).is_err() {
            return;
        }
        loop {
            match joiner.next_envelope() {
                Ok(Some(protocol::segment::decode::Joined::Envelope(header, body))) => {
                    let _ = RequestEnvelope::decode(&header, &body);
                }
                Ok(Some(protocol::segment::decode::Joined::TooLarge(_))) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(joiner.buffered() <= rest.len() * 256);
    }
}

/// Compressed bodies: `u8` method, then the body.
pub fn compressed(data: &[u8]) {
    let Some((method, body)) = data.split_first() else { return };
    let method = if method & 1 == 0 { Compression::Lz4 } else { Compression::Snappy };
    for size_max in [1 << 10, 16 << 20] {
        if let Ok(bytes) = method.decompress(body, size_max) {
            assert!(bytes.len() <= size_max);
        }
    }
}
