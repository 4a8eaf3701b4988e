//! The most frequent and the greatest items of a stream, in bounded memory.
//!
//! [`Frequent`] is the space-saving algorithm (Metwally, Agrawal, El Abbadi 2005): there are
//! `capacity` counters; an item without a counter takes over the smallest one, whose count becomes
//! the item's error. Every item that makes up more than `1 / capacity` of the stream has a counter,
//! and a count is at most its error too high. The figures agree with
//! `org.apache.cassandra.metrics.FrequencySampler`; [`Greatest`] with `MaxSampler`.

use std::collections::{BTreeMap, BTreeSet};

/// A counted item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counted<T> {
    /// The item that was counted or measured.
    pub item: T,
    /// How often the item came, or how much was measured.
    pub count: u64,
    /// The count is at most this much too high.
    pub error: u64,
}

/// The most frequent items.
#[derive(Debug)]
pub struct Frequent<T> {
    capacity: usize,
    /// Count and error of each item.
    counters: BTreeMap<T, (u64, u64)>,
    /// The items in the order of their counts. Holds the same items as `counters`.
    order: BTreeSet<(u64, T)>,
}

impl<T: Ord + Clone> Frequent<T> {
    /// With a number of counters, at least one.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), counters: BTreeMap::new(), order: BTreeSet::new() }
    }

    /// Counts an item that came `amount` times.
    pub fn add(&mut self, item: &T, amount: u64) {
        if let Some((count, _)) = self.counters.get_mut(item) {
            self.order.remove(&(*count, item.clone()));
            *count = count.saturating_add(amount);
            self.order.insert((*count, item.clone()));
            return;
        }
        let error = match self.order.pop_first_if_full(self.capacity) {
            Some((count, evicted)) => {
                self.counters.remove(&evicted);
                count
            }
            None => 0,
        };
        let count = error.saturating_add(amount);
        self.counters.insert(item.clone(), (count, error));
        self.order.insert((count, item.clone()));
        assert!(
            self.counters.len() == self.order.len() && self.order.len() <= self.capacity,
            "each counted item stands once in the order, and there are no more than the capacity"
        );
    }

    /// The most frequent items, the most frequent first.
    pub fn top(&self, count: usize) -> Vec<Counted<T>> {
        let counted = |(count, item): &(u64, T)| {
            let error = self.counters.get(item).map_or(0, |(_, error)| *error);
            Counted { item: item.clone(), count: *count, error }
        };
        self.order.iter().rev().take(count).map(counted).collect()
    }
}

/// Room in an ordered set of bounded size.
trait PopIfFull<T> {
    /// Takes out the smallest element if the set has `capacity` elements.
    fn pop_first_if_full(&mut self, capacity: usize) -> Option<T>;
}

impl<T: Ord> PopIfFull<T> for BTreeSet<T> {
    fn pop_first_if_full(&mut self, capacity: usize) -> Option<T> {
        if self.len() < capacity { None } else { self.pop_first() }
    }
}

/// The greatest measurements. An item is among them as often as it was measured so great.
#[derive(Debug)]
pub struct Greatest<T> {
    capacity: usize,
    /// Items by value; the second number, which falls with each measurement, keeps equal values
    /// apart.
    order: BTreeMap<(u64, u64), T>,
    number: u64,
}

impl<T: Clone> Greatest<T> {
    /// Keeps a number of measurements, at least one.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), order: BTreeMap::new(), number: 0 }
    }

    /// Whether a value would be kept. Callers ask before they build an item that is not kept.
    pub fn takes(&self, value: u64) -> bool {
        let least = self.order.first_key_value().map_or(0, |((least, _), _)| *least);
        value > 0 && (self.order.len() < self.capacity || value > least)
    }

    /// Keeps the measurement of an item if it is among the greatest.
    pub fn add(&mut self, item: &T, value: u64) {
        if !self.takes(value) {
            return;
        }
        if self.order.len() >= self.capacity {
            self.order.pop_first();
        }
        self.number += 1;
        self.order.insert((value, u64::MAX - self.number), item.clone());
    }

    /// The greatest measurements, the greatest first; of equal ones the earlier first.
    pub fn top(&self, count: usize) -> Vec<Counted<T>> {
        let counted = |((value, _), item): (&(u64, u64), &T)| Counted { item: item.clone(), count: *value, error: 0 };
        self.order.iter().rev().take(count).map(counted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against exact counts of skewed streams: no count is too low, none higher than its error
    /// says, and nothing frequent is missing.
    #[test]
    fn space_saving_keeps_what_is_frequent() {
        for (seed, capacity) in [(1_u64, 8_usize), (2, 32), (3, 100)] {
            let (mut frequent, mut exact) = (Frequent::new(capacity), BTreeMap::<u64, u64>::new());
            let mut random = seed;
            let total = 20_000;
            for _ in 0..total {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (a, b) = ((random >> 33) % 60, (random >> 50) % 60);
                let item = a * b / 20;
                frequent.add(&item, 1);
                *exact.entry(item).or_default() += 1;
            }
            let told = frequent.top(capacity);
            assert!(told.is_sorted_by(|a, b| a.count >= b.count));
            assert!(told.len() <= capacity);
            for counted in &told {
                let truth = exact[&counted.item];
                assert!(counted.count >= truth && counted.count - counted.error <= truth, "{counted:?} {truth}");
            }
            for (item, count) in exact.iter().filter(|(_, count)| **count > total / capacity as u64) {
                assert!(told.iter().any(|counted| counted.item == *item), "{item} came {count} times");
            }
        }
    }

    #[test]
    fn within_the_capacity_counts_are_exact() {
        let mut frequent = Frequent::new(3);
        for item in ["a", "b", "a", "c", "a", "b"] {
            frequent.add(&item, 1);
        }
        let told: Vec<_> = frequent.top(2).into_iter().map(|told| (told.item, told.count, told.error)).collect();
        assert_eq!(told, [("a", 3, 0), ("b", 2, 0)]);
        frequent.add(&"d", 1);
        assert_eq!(
            frequent.top(3)[1..].iter().map(|told| (told.item, told.error)).collect::<Vec<_>>(),
            [("d", 1), ("b", 0)]
        );
    }

    #[test]
    fn the_greatest_are_kept_as_often_as_they_come() {
        let mut greatest = Greatest::new(3);
        for (item, value) in [("a", 5), ("b", 9), ("a", 7), ("c", 1), ("d", 0), ("b", 9)] {
            greatest.add(&item, value);
        }
        let told: Vec<_> = greatest.top(10).into_iter().map(|told| (told.item, told.count)).collect();
        assert_eq!(told, [("b", 9), ("b", 9), ("a", 7)]);
        assert!(!greatest.takes(7) && greatest.takes(8));
    }
}
