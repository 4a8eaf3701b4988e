//! The data set: what each partition holds, from its width and an index alone.
//!
//! Cell `i` of a partition has the name of number `2 i` (so that odd numbers are names that are not
//! there) in ten digits, and a value of 25 characters that depends on table, width and index. In
//! the ascending table cell 0 comes first, in the descending table the last.

/// Widths of the partitions, in cells.
pub const WIDTHS: [u64; 7] = [100, 1_200, 5_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// Length of a value.
pub const VALUE_BYTES: usize = 25;
/// Keyspace of the tables.
pub const KEYSPACE: &str = "wide";

/// One of the two tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// Names ascending.
    Ascending,
    /// Names descending: "the newest N" is a slice without a start.
    Descending,
}

impl Table {
    /// Both.
    pub const ALL: [Table; 2] = [Table::Ascending, Table::Descending];

    /// Its name with the keyspace.
    pub fn name(self) -> &'static str {
        match self {
            Table::Ascending => "wide.ascending",
            Table::Descending => "wide.descending",
        }
    }

    /// Its clustering order.
    pub fn order(self) -> &'static str {
        match self {
            Table::Ascending => "ASC",
            Table::Descending => "DESC",
        }
    }
}

/// The widths up to a limit.
pub fn widths(cells_max: u64) -> impl Iterator<Item = u64> {
    WIDTHS.into_iter().filter(move |width| *width <= cells_max)
}

/// Partition key of the partition of this width.
pub fn key(width: u64) -> String {
    format!("cells-{width}")
}

/// Name of cell `index`.
pub fn name(index: u64) -> String {
    format!("{:010}", index * 2)
}

/// A name that no cell has, between cell `index` and the next.
pub fn missing_name(index: u64) -> String {
    format!("{:010}", index * 2 + 1)
}

/// Value of cell `index`.
pub fn value(table: Table, width: u64, index: u64) -> String {
    let seed = (index ^ width.rotate_left(40)).wrapping_add((table as u64) << 60);
    let (first, second) = (mix(seed), mix(!seed));
    let mut text = format!("{first:016x}{second:016x}");
    text.truncate(VALUE_BYTES);
    text
}

/// Numbers that look random and are the same in every run (splitmix64).
pub fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_have_their_sizes_and_order() {
        assert_eq!(name(9_999_999).len(), 10);
        assert!(name(1) < missing_name(1) && missing_name(1) < name(2));
        assert_eq!(value(Table::Ascending, 100, 7).len(), VALUE_BYTES);
        assert_ne!(value(Table::Ascending, 100, 7), value(Table::Descending, 100, 7));
        assert_ne!(value(Table::Ascending, 100, 7), value(Table::Ascending, 1_200, 7));
    }
}
