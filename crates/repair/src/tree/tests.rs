//! Tests of [`MerkleTree`].

use super::*;

fn range(start: i64, end: i64) -> Tokens {
    Tokens { start: Token(start), end: Token(end) }
}

/// A tree with the hashes of partitions.
fn filled(tree: MerkleTree, partitions: impl IntoIterator<Item = (i64, Hash)>) -> MerkleTree {
    let mut filler = TreeFiller::new(tree);
    partitions.into_iter().for_each(|(token, hash)| filler.add(Token(token), &hash));
    filler.finish()
}

fn hash(number: u8) -> Hash {
    [number; HASH_SIZE]
}

#[test]
fn midpoints_are_cassandras() {
    assert_eq!(midpoint(range(0, 10)), Token(5));
    assert_eq!(midpoint(range(-3, 0)), Token(-2), "rounded down");
    assert_eq!(midpoint(range(i64::MIN, i64::MIN)), Token(-1), "the whole ring");
    assert_eq!(midpoint(range(i64::MAX - 1, i64::MIN + 3)), Token(i64::MIN + 1));
    assert_eq!(halves(range(4, 5)), None);
}

#[test]
fn a_difference_is_as_large_as_the_part_that_differs() {
    let whole = range(0, 64);
    let base = MerkleTree::new(whole, 8);
    assert_eq!(base.leaves(), 8);
    let differences = |tokens: &[i64], leaves: u64| {
        let partitions = tokens.iter().map(|token| (*token, hash(1 << (token / 8))));
        let other = filled(MerkleTree::new(whole, leaves), partitions);
        let (mut found, mut back) = (Vec::new(), Vec::new());
        base.difference(&other, &mut found);
        other.difference(&base, &mut back);
        assert_eq!(found, back);
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(differences(&[], 8), "");
    assert_eq!(differences(&[8], 8), "(0,8]");
    assert_eq!(differences(&[9], 8), "(8,16]");
    assert_eq!(differences(&[1, 9], 8), "(0,16]", "both halves of a part are the part");
    assert_eq!(differences(&[9, 17], 8), "(8,16] (16,24]");
    assert_eq!(differences(&[1, 9, 17, 25, 33], 8), "(32,40] (0,32]", "the larger part is told when it is known");
    assert_eq!(differences(&[9], 2), "(0,32]", "down to the shallower tree");
    assert_eq!(differences(&[9], 1), "(0,64]");
    assert_eq!(differences(&[9], 64), "(8,16]");
}

#[test]
fn ranges_over_the_end_of_the_ring() {
    let tokens = [i64::MAX - 3, i64::MAX, i64::MIN, i64::MIN + 4];
    let partitions = tokens.iter().zip(1..).map(|(token, number)| (*token, hash(number)));
    let tree = filled(MerkleTree::new(range(i64::MAX - 4, i64::MIN + 4), 64), partitions);
    let filled: Vec<_> = tree.parts().into_iter().filter(|(_, found)| *found != hash(0)).collect();
    for (token, number) in tokens.iter().zip(1..) {
        let holders: Vec<_> = filled.iter().filter(|(part, _)| contains(*part, Token(*token))).collect();
        assert!(holders.len() == 1 && holders[0].1 == hash(number), "{token}: {filled:?}");
    }
}

#[test]
fn a_tree_is_read_as_it_was_written() {
    let partitions = (-999..1000).step_by(37).map(|token| (token, hash(token as u8)));
    let tree = filled(MerkleTree::new(range(-1000, 1000), 16), partitions);
    let mut bytes = Vec::new();
    tree.put(&mut bytes);
    let read = |bytes: &[u8], deepest| {
        let mut levels = Levels::default();
        let read = MerkleTree::read(&mut stdx::Cursor::new(bytes), deepest, &mut levels)?;
        assert_eq!(levels.deepest_within(31), Some(DEPTH_MAX), "all levels have 31 nodes");
        let deepest = [0, 1, 2, 3, 6, 7, 30].map(|nodes_max| levels.deepest_within(nodes_max));
        assert_eq!(deepest, [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(3)]);
        Ok::<_, internode::InternodeError>(read)
    };
    assert_eq!(read(&bytes, 4), Ok(tree.clone()));
    for deepest in 0..4 {
        let folded = read(&bytes, deepest).expect("a tree with fewer levels");
        assert_eq!(folded.leaves(), 1 << deepest);
        let mut differences = Vec::new();
        folded.difference(&tree, &mut differences);
        assert_eq!(differences, [], "what lies below the level {deepest} is summed");
    }
    assert!((0..bytes.len()).all(|end| read(&bytes[..end], 4).is_err()));
    let midpoint = bytes.len() - bytes.iter().rev().position(|byte| *byte == 2).expect("an inner node");
    bytes[midpoint + 11] ^= 1;
    assert!(read(&bytes, 4).is_err(), "another midpoint");
}

#[test]
fn the_order_of_partitions_does_not_matter() {
    let tokens = [-900i64, -899, -1, 0, 1, 3, 500, 501, 1000];
    let partitions = || tokens.iter().zip(1..=9).map(|(token, number)| (*token, hash(number)));
    let empty = || MerkleTree::new(range(-1000, 1000), 64);
    let tree = filled(empty(), partitions());
    assert_eq!(filled(empty(), partitions().collect::<Vec<_>>().into_iter().rev()), tree);
    assert_eq!(filled(empty(), partitions().skip(4).chain(partitions().take(4))), tree);
    let sum = partitions().fold(hash(0), |mut sum, (_, hash)| {
        xor(&mut sum, &hash);
        sum
    });
    assert_eq!(tree.nodes[0].hash, sum, "the root is the sum of all");
}
