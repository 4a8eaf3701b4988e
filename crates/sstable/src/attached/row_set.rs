//! Numbers of rows that a search has found in one SSTable, in order.
//!
//! Few are a sorted list; where they are more than one row in [`BITS_PER_ROW`], a bit for each row
//! of the SSTable takes less. So a set takes at most an eighth of a byte for each row there is.

/// Bits of a number in a list.
const BITS_PER_ROW: usize = 32;

/// A set of row numbers.
#[derive(Clone, Debug)]
pub enum RowSet {
    /// Ascending, each once.
    List(Vec<u32>),
    /// A bit a row.
    Bits(Vec<u64>),
}

/// Collects numbers in any order.
pub struct RowSetBuilder {
    rows: u32,
    list: Vec<u32>,
    bits: Option<Vec<u64>>,
}

impl RowSetBuilder {
    /// For an SSTable of so many rows. Greater numbers are passed over.
    pub fn new(rows: u32) -> Self {
        Self { rows, list: Vec::new(), bits: None }
    }

    /// Adds a number.
    pub fn add(&mut self, row: u32) {
        if row >= self.rows {
            return;
        }
        if let Some(bits) = &mut self.bits {
            set(bits, row);
            return;
        }
        self.list.push(row);
        if self.list.len() > self.rows as usize / BITS_PER_ROW + 64 {
            let mut bits = vec![0; (self.rows as usize).div_ceil(64)];
            self.list.drain(..).for_each(|row| set(&mut bits, row));
            self.bits = Some(bits);
        }
    }

    /// The set.
    pub fn finish(mut self) -> RowSet {
        if let Some(bits) = self.bits {
            return RowSet::Bits(bits);
        }
        if !self.list.is_sorted() {
            self.list.sort_unstable();
        }
        self.list.dedup();
        RowSet::List(self.list)
    }
}

fn set(bits: &mut [u64], row: u32) {
    if let Some(word) = bits.get_mut(row as usize / 64) {
        *word |= 1 << (row % 64);
    }
}

impl RowSet {
    /// The first number that is not less than `row`. `hint` is where the last search ended, 0 at
    /// the beginning; it moves on.
    pub fn at_or_after(&self, row: u32, hint: &mut usize) -> Option<u32> {
        match self {
            Self::List(list) => {
                let rest = list.get(*hint..)?;
                // the next one is mostly the one wanted
                let skipped = match rest.first() {
                    Some(first) if *first >= row => 0,
                    _ => rest.partition_point(|other| *other < row),
                };
                *hint += skipped;
                list.get(*hint).copied()
            }
            Self::Bits(bits) => {
                let mut at = row as usize / 64;
                let mut word = *bits.get(at)? & (u64::MAX << (row % 64));
                while word == 0 {
                    at += 1;
                    word = *bits.get(at)?;
                }
                u32::try_from(at * 64 + word.trailing_zeros() as usize).ok()
            }
        }
    }

    /// How many.
    pub fn len(&self) -> u64 {
        match self {
            Self::List(list) => list.len() as u64,
            Self::Bits(bits) => bits.iter().map(|word| u64::from(word.count_ones())).sum(),
        }
    }

    /// None.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_bits_give_what_was_added() {
        for (rows, step) in [(10_000u32, 977u32), (10_000, 3), (64, 1), (1, 1)] {
            let mut builder = RowSetBuilder::new(rows);
            let mut wanted: Vec<u32> = (0..rows).step_by(step as usize).collect();
            wanted.iter().rev().chain(&wanted).for_each(|row| builder.add(*row));
            builder.add(rows);
            let set = builder.finish();
            assert_eq!(matches!(set, RowSet::Bits(_)), wanted.len() * 2 > rows as usize / 32 + 64, "{rows} {step}");
            assert_eq!(set.len(), wanted.len() as u64);
            let (mut found, mut from, mut hint) = (Vec::new(), 0, 0);
            while let Some(row) = set.at_or_after(from, &mut hint) {
                found.push(row);
                from = row + 1;
            }
            assert_eq!(found, wanted);
            let mut hint = 0;
            wanted.retain(|row| *row >= rows / 2);
            assert_eq!(set.at_or_after(rows / 2, &mut hint), wanted.first().copied());
        }
    }
}
