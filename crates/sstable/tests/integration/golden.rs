//! Every SSTable of Cassandra is read to the last cell, and each of its keys is found.

use rows::{ReadContext, ReadMode};

use crate::{dump, fixtures};

#[test]
fn content_is_what_cassandra_says() {
    let mut lines = 0;
    for fixture in fixtures::all() {
        let sstable = fixture.open();
        let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).unwrap();
        let found = dump::lines(sstable.table(), &mut stream);
        let golden = fixture.golden_lines();
        for (number, (found, golden)) in found.iter().zip(&golden).enumerate() {
            assert_eq!(found, golden, "{:?} line {}", fixture.descriptor, number + 1);
        }
        assert_eq!(found.len(), golden.len(), "{:?}", fixture.descriptor);
        lines += found.len();
    }
    println!("{lines} lines equal");
}
