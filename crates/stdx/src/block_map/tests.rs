//! Compares the map with the standard library's `BTreeMap`, entry by entry and sum by sum.

use std::ops::Bound;

use super::*;

#[derive(Clone, PartialEq, Debug)]
struct Number(u64);

impl Value for Number {
    type Sum = u64;

    fn add_to(&self, sum: &mut u64) {
        *sum += self.0;
    }

    fn take_from(&self, sum: &mut u64) {
        *sum -= self.0;
    }
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn key(number: u64) -> Key {
    Key::from_slice(&(number as u16).to_be_bytes())
}

fn bound(dice: &mut Dice, keys: u64) -> Bound<Key> {
    let key = key(dice.roll(keys));
    match dice.roll(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

fn shown(bound: &Bound<Key>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &**key)
}

fn check(map: &BlockMap<Number>, twin: &BTreeMap<Key, Number>, dice: &mut Dice, keys: u64) {
    assert_eq!(map.len(), twin.len());
    assert!(map.more.values().all(|block| !block.entries.is_empty() && block.entries.len() <= BLOCK_MAX));
    assert!(map.iter().map(|(key, value)| (key, value)).eq(twin));
    assert_eq!(map.last().map(|(key, value)| (key, value)), twin.last_key_value());
    for _ in 0..20 {
        let at = key(dice.roll(keys));
        let around = [
            twin.range::<Key, _>((Bound::Unbounded, Bound::Excluded(&at))).next_back(),
            twin.get_key_value(&at),
            twin.range::<Key, _>((Bound::Excluded(&at), Bound::Unbounded)).next(),
        ];
        assert_eq!(map.around(&at).map(|entry| entry.map(|(key, value)| (key, value))), around);
        let (start, end) = (bound(dice, keys), bound(dice, keys));
        let is_in = |key: &Key| {
            let behind = match &start {
                Bound::Unbounded => true,
                Bound::Included(start) => key >= start,
                Bound::Excluded(start) => key > start,
            };
            behind
                && match &end {
                    Bound::Unbounded => true,
                    Bound::Included(end) => key <= end,
                    Bound::Excluded(end) => key < end,
                }
        };
        let expected: Vec<_> = twin.iter().filter(|(key, _)| is_in(key)).collect();
        let range = || map.range(shown(&start), shown(&end)).map(|(key, value)| (key, value));
        assert!(range().eq(expected.iter().copied()), "{start:?} {end:?}");
        assert!(range().rev().eq(expected.iter().rev().copied()), "{start:?} {end:?}, backwards");
        for part in map.parts(shown(&start), shown(&end)) {
            let sum: u64 = part.entries.iter().map(|(_, number)| number.0).sum();
            assert!(part.sum.is_none_or(|of_block| *of_block == sum));
        }
    }
}

#[test]
fn a_map_in_blocks_holds_what_a_tree_holds() {
    for seed in 0..12 {
        let mut dice = Dice(seed);
        let keys = [10, 300, 5_000][seed as usize % 3];
        let (mut map, mut twin) = (BlockMap::<Number>::default(), BTreeMap::new());
        for step in 0..3_000u64 {
            // keys in order, backwards, and anywhere
            let number = match seed % 4 {
                0 => step % keys,
                1 => keys - 1 - step % keys,
                _ => dice.roll(keys),
            };
            match dice.roll(10) {
                0 | 1 => assert_eq!(map.remove(&key(number)), twin.remove(&key(number))),
                2 => {
                    let (start, end) = (key(number), key(number + dice.roll(100)));
                    map.change_between(&start, &end, |_, value| value.0 += 1);
                    twin.iter_mut().filter(|(key, _)| **key > start && **key < end).for_each(|(_, value)| value.0 += 1);
                }
                3 => assert!(!map.upsert(key(number), |old| {
                    if let Some(old) = old {
                        old.0 += 7;
                    }
                    None
                })),
                _ => assert_eq!(map.upsert(key(number), |_| Some(Number(step))), !twin.contains_key(&key(number))),
            }
            let entry = twin.entry(key(number));
            match map.range(Bound::Included(&key(number)), Bound::Included(&key(number))).next() {
                Some((_, value)) => *entry.or_insert(Number(0)) = value.clone(),
                None => assert!(matches!(entry, std::collections::btree_map::Entry::Vacant(_))),
            }
            if step % 100 == 0 {
                check(&map, &twin, &mut dice, keys);
            }
        }
        check(&map, &twin, &mut dice, keys);
    }
}

#[test]
fn what_comes_in_order_fills_its_blocks() {
    let mut map = BlockMap::default();
    for number in 0..1_000 {
        map.upsert(key(number), |_| Some(Number(number)));
    }
    assert_eq!(map.more.len(), (1_000 - 1) / BLOCK_MAX, "behind the first");
}
