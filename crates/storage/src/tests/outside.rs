//! Partitions outside of the ranges of their node are found, whatever the ranges leave out.

use rows::{PartitionStream, ReadContext, ReadMode};
use sstable::{SSTable, Version};
use types::{DecoratedKey, Token};

use super::receiving::{source, sstables};
use crate::token_ranges::TokenRanges;

fn keys(sstable: &SSTable) -> Vec<DecoratedKey> {
    let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).expect("sound");
    std::iter::from_fn(|| stream.next_partition().expect("sound").map(|head| head.key)).collect()
}

/// All tokens but some, each of which is left out alone.
fn all_but(left_out: &[Token]) -> TokenRanges {
    let mut ranges = Vec::new();
    for (at, token) in left_out.iter().enumerate() {
        let next = left_out[(at + 1) % left_out.len()];
        ranges.push((*token, Token(next.0 - 1)));
    }
    TokenRanges::new(&ranges)
}

#[test]
fn the_first_partition_outside_of_ranges_is_found() {
    for version in [Version::DA, Version::NB] {
        let (_sim, engine) = source(version);
        for sstable in sstables(&engine) {
            let keys = keys(&sstable);
            assert!(keys.len() > 10, "{} partitions", keys.len());
            let found = |ranges: &TokenRanges| ranges.first_outside(&sstable).expect("sound");
            for (at, key) in keys.iter().enumerate() {
                assert_eq!(found(&all_but(&[key.token])).as_ref(), Some(key), "{at}");
                // beside the partition, where there is none
                for free in [key.token.0 - 1, key.token.0 + 1] {
                    assert_eq!(found(&all_but(&[Token(free)])), None, "{at}");
                    let later = keys.get(at + 1).map(|later| later.token);
                    let left_out: Vec<_> = [Token(free)].into_iter().chain(later).collect();
                    assert_eq!(found(&all_but(&left_out)).map(|key| key.token), later, "{at}");
                }
            }
            assert_eq!(found(&TokenRanges::new(&[])).as_ref(), keys.first());
            let (first, last) = (keys[0].token, keys[keys.len() - 1].token);
            let within = TokenRanges::new(&[(Token(first.0 - 1), last)]);
            assert_eq!(found(&within), None);
            let up_to_last = TokenRanges::new(&[(Token(first.0 - 1), Token(last.0 - 1))]);
            assert_eq!(found(&up_to_last).as_ref(), keys.last());
        }
    }
}
