//! Seeds of hint files: a file of Cassandra 5.0.8, and the same hints compressed.

use std::fs;

use hints::{Compression, Descriptor};

/// Plain and compressed files.
pub fn files() -> Vec<Vec<u8>> {
    let folder = crate::root().join("crates/hints/testdata");
    let entries = fs::read_dir(folder).expect("the files are in the tree");
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "hints"));
    paths.sort();
    let mut files: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).expect("readable")).collect();
    let (plain, head) = Descriptor::decode(&files[0]).expect("a file of Cassandra");
    let compression = Compression::new("LZ4Compressor", None).expect("a compressor of Cassandra");
    let mut compressed = Vec::new();
    Descriptor { compression: Some(compression.clone()), ..plain }.encode(&mut compressed);
    compression.put_block(&mut compressed, &files[0][head..]).expect("compressed");
    files.push(compressed);
    files
}
