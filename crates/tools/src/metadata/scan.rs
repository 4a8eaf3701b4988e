//! `-s`: reads the whole SSTable and counts partitions, rows, cells and tombstones.

use std::fmt::Write;

use rows::{ColumnData, PartitionStream, ReadContext, ReadMode, Row, Unfiltered};
use sstable::{Descriptor, Statistics};
use types::literal::to_plain_text;

use super::text::byte_words;
use crate::context::Context;
use crate::failure::Failure;
use crate::open;
use crate::progress::Progress;

/// Partitions that are named in each list of largest ones.
const NAMED: usize = 5;

#[derive(Default)]
struct Counts {
    partitions: u64,
    rows: u64,
    tombstones: u64,
    cells: u64,
}

/// The partitions with the greatest numbers of one kind.
#[derive(Default)]
struct Greatest(Vec<(u64, String)>);

impl Greatest {
    fn add(&mut self, number: u64, key: &str) {
        if self.0.len() == NAMED && self.0.last().is_some_and(|last| last.0 >= number) {
            return;
        }
        let at = self.0.partition_point(|other| other.0 >= number);
        self.0.insert(at, (number, key.to_owned()));
        self.0.truncate(NAMED);
    }
}

/// Appends the counts.
pub fn print(
    context: &Context<'_>,
    descriptor: &Descriptor,
    statistics: &Statistics,
    out: &mut String,
) -> Result<(), Failure> {
    let table = open::table_of_header(descriptor, statistics)?;
    let sstable = open::open(context.env, descriptor, &table)?;
    let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background))?;
    let mut progress = Progress::new("scan", sstable.data_length());
    let mut all = Counts::default();
    let (mut widest, mut largest, mut dead) = (Greatest::default(), Greatest::default(), Greatest::default());
    let mut start = 0;
    while let Some(head) = stream.next_partition()? {
        let mut here = Counts { tombstones: u64::from(!head.deletion.is_live()), ..Counts::default() };
        // cells of static rows are not counted, as in sstablemetadata
        here.rows += u64::from(head.static_row.is_some());
        while let Some(unfiltered) = stream.next_unfiltered()? {
            match &unfiltered {
                Unfiltered::Marker(_) => here.tombstones += 1,
                Unfiltered::Row(row) => count_row(row, &mut here),
            }
            progress.at(stream.position());
        }
        all.partitions += 1;
        all.rows += here.rows;
        all.cells += here.cells;
        all.tombstones += here.tombstones;
        let key = to_plain_text(&table.partition_key_type, &head.key.key);
        widest.add(here.rows, &key);
        largest.add(stream.position() - start, &key);
        start = stream.position();
        if here.tombstones > 0 {
            dead.add(here.tombstones, &key);
        }
    }
    let size = sstable.data_length();
    let mut put = |line: String| writeln!(out, "{line}").expect("a String takes all");
    put(format!("Size: {size}"));
    put(format!("Partitions: {}", all.partitions));
    put(format!("Rows: {}", all.rows));
    put(format!("Tombstones: {}", all.tombstones));
    put(format!("Cells: {}", all.cells));
    put("Widest Partitions: ".to_owned());
    widest.0.iter().for_each(|(rows, key)| put(format!("  [{key}] {rows}")));
    // sizes are bytes of Data.db before compression; sstablemetadata adds up sizes in memory
    put("Largest Partitions: ".to_owned());
    let words = |bytes: u64| byte_words(bytes as i64).unwrap_or_default();
    largest.0.iter().for_each(|(bytes, key)| put(format!("  [{key}] {bytes} ({})", words(*bytes))));
    if !dead.0.is_empty() {
        put("Tombstone Leaders: ".to_owned());
        dead.0.iter().for_each(|(tombstones, key)| put(format!("  [{key}] {tombstones}")));
    }
    Ok(())
}

fn count_row(row: &Row, counts: &mut Counts) {
    counts.rows += 1;
    for data in &row.columns {
        let cells = match data {
            ColumnData::Simple(cell) => std::slice::from_ref(cell),
            ColumnData::Complex(complex) => &complex.cells,
        };
        counts.cells += cells.len() as u64;
        counts.tombstones += cells.iter().filter(|cell| cell.is_tombstone()).count() as u64;
    }
}
