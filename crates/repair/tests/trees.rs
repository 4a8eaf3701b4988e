//! Merkle trees that real Cassandra 5.0.8 nodes computed, against the rows that they had.
//!
//! `testdata/trees.jsonl.gz` holds for each of 24 tables the payload of a VALIDATION_RSP, the
//! RANGE_REQ and RANGE_RSP of all rows of the table on that node, and for each partition its token,
//! the hash and the hashed bytes as a decoder of another hand found them.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)] // reads its captures, as any test may

use std::collections::BTreeMap;
use std::sync::Arc;

use captures::{hex, lines, table};
use internode::payload::partitions::DataStream;
use internode::payload::read_request::ReadRequest;
use internode::payload::read_response::ReadResponse;
use internode::payload::repair::ValidationResponse;
use internode::payload::token_ranges::Tokens;
use repair::tree::{Hash, contains};
use repair::{MerkleTree, MerkleTrees, Validator};
use schema::TableMetadata;
use serde_json::Value;
use types::Token;

fn trees() -> Vec<Value> {
    lines(include_bytes!("../testdata/trees.jsonl.gz"))
}

fn trees_of(told: &Value) -> (bytes::Bytes, MerkleTrees) {
    let response = ValidationResponse::decode(&hex(&told["merkle"])).unwrap();
    let bytes = response.trees.unwrap();
    let trees = MerkleTrees::decode(&bytes).unwrap();
    let ranges: Vec<_> = trees.trees().iter().map(MerkleTree::range).collect();
    assert!(response.job.ranges.iter().all(|range| ranges.contains(range)), "a tree for each range");
    (bytes, trees)
}

/// A tree of the whole ring with the partitions that a node answered with.
fn validated(told: &Value, table: &Arc<TableMetadata>, size: u64) -> MerkleTrees {
    let whole = Tokens { start: Token(i64::MIN), end: Token(i64::MIN) };
    let mut validator = Validator::new(table, MerkleTrees::new(vec![MerkleTree::new(whole, size)]));
    for rows in told["rows"].as_array().unwrap() {
        let request = ReadRequest::decode(&hex(&rows[0]), &|_| Some(Arc::clone(table))).unwrap();
        let ReadResponse::Data(data) = ReadResponse::decode(&hex(&rows[1])).unwrap() else {
            panic!("an answer with data");
        };
        let mut stream = DataStream::new(data.partitions, &request);
        while !validator.advance(&mut stream, 3).unwrap() {}
    }
    validator.finish()
}

#[test]
fn trees_are_written_as_cassandra_writes_them() {
    for told in trees() {
        let (bytes, trees) = trees_of(&told);
        let again = MerkleTrees::new(trees.trees().to_vec());
        assert_eq!(again.encode(), bytes, "{}", told["name"]);
        for tree in trees.trees() {
            let empty = MerkleTree::new(tree.range(), tree.leaves() as u64);
            let parts = |tree: &MerkleTree| tree.parts().into_iter().map(|(part, _)| part).collect::<Vec<_>>();
            assert_eq!(parts(&empty), parts(tree), "the shape of a tree that is built here");
        }
    }
}

#[test]
fn partitions_are_hashed_as_cassandra_hashes_them() {
    let (mut leaves, mut partitions) = (0, 0);
    for told in trees() {
        let table = Arc::new(table(&told));
        let mut expected: BTreeMap<i64, Hash> = BTreeMap::new();
        for partition in told["partitions"].as_array().unwrap() {
            expected.insert(partition[0].as_i64().unwrap(), hex(&partition[1])[..].try_into().unwrap());
        }
        let found = validated(&told, &table, 1 << 16);
        for (part, hash) in found.trees()[0].parts() {
            let inside = expected.iter().filter(|(token, _)| contains(part, Token(**token)));
            let sum = inside.fold([0; 32], |sum: Hash, (_, hash)| std::array::from_fn(|at| sum[at] ^ hash[at]));
            assert_eq!(hash, sum, "{} {part}", told["name"]);
        }
        partitions += expected.len();
        leaves += leaves_in_common(&trees_of(&told).1, &expected);
    }
    assert!(partitions > 100 && leaves > 100, "{partitions} partitions, {leaves} leaves");
}

/// The leaves of a captured tree that hold what the partitions say. A table may have changed
/// between the validation and the read.
fn leaves_in_common(trees: &MerkleTrees, partitions: &BTreeMap<i64, Hash>) -> usize {
    let parts = trees.trees().iter().flat_map(MerkleTree::parts);
    let agrees = |(part, hash): &(Tokens, Hash)| {
        let inside = partitions.iter().filter(|(token, _)| contains(*part, Token(**token)));
        let sum = inside.fold([0; 32], |sum: Hash, (_, hash)| std::array::from_fn(|at| sum[at] ^ hash[at]));
        sum == *hash && *hash != [0; 32]
    };
    parts.filter(agrees).count()
}
