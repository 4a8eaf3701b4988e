//! Reading: by name, by slices from every position forwards and reversed, the newest N, whole
//! partitions by pages.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;

use crate::Outcome;
use crate::data::{Table, key, missing_name, mix, name, value, widths};
use crate::report::Report;

/// Cells that a slice or a query by names asks for.
const CELLS: u64 = 100;
/// Runs of each kind of query, whose times are printed.
const RUNS: u64 = 20;
/// Positions from which slices start, spread over the partition.
const POSITIONS: u64 = 21;
/// Rows of a page when a partition is read whole.
const PAGE_ROWS: i32 = 5_000;

type Answer = Vec<(String, String)>;

/// Reads every partition up to `cells_max` in every way.
pub async fn run(session: Session, cells_max: u64) -> Outcome {
    let mut report = Report::default();
    println!(
        "{:<16} {:>9} {:<22} {:>7} {:>7} {:>7} {:>7}  (µs)",
        "table", "cells", "query", "min", "80th", "95th", "max"
    );
    for table in Table::ALL {
        let reader = Reader::new(&session, table).await?;
        for width in widths(cells_max) {
            reader.by_name(&mut report, width).await?;
            reader.slices(&mut report, width).await?;
            reader.newest(&mut report, width).await?;
            reader.whole(&mut report, width).await?;
        }
    }
    report.end()
}

struct Reader<'a> {
    session: &'a Session,
    table: Table,
    one: PreparedStatement,
    names: PreparedStatement,
    up: PreparedStatement,
    down: PreparedStatement,
    newest: PreparedStatement,
    all: PreparedStatement,
}

impl<'a> Reader<'a> {
    async fn new(session: &'a Session, table: Table) -> Result<Self, Box<dyn std::error::Error>> {
        let select =
            |rest: &str| session.prepare(format!("SELECT name, value FROM {} WHERE key = ? {rest}", table.name()));
        let mut all = select("").await?;
        all.set_page_size(PAGE_ROWS);
        Ok(Self {
            session,
            table,
            one: select("AND name = ?").await?,
            names: select("AND name IN ?").await?,
            up: select(&format!("AND name >= ? ORDER BY name ASC LIMIT {CELLS}")).await?,
            down: select(&format!("AND name <= ? ORDER BY name DESC LIMIT {CELLS}")).await?,
            newest: select(&format!("ORDER BY name DESC LIMIT {CELLS}")).await?,
            all,
        })
    }

    fn row(&self, width: u64, index: u64) -> (String, String) {
        (name(index), value(self.table, width, index))
    }

    async fn ask(
        &self,
        statement: &PreparedStatement,
        values: impl scylla::serialize::row::SerializeRow,
    ) -> Result<(Answer, Duration), Box<dyn std::error::Error>> {
        let begun = Instant::now();
        let result = self.session.execute_unpaged(statement, values).await?;
        let took = begun.elapsed();
        let rows = result.into_rows_result()?;
        let rows = rows.rows::<(String, String)>()?.collect::<Result<_, _>>()?;
        Ok((rows, took))
    }

    /// One name, a name that is not there, and a hundred names over the whole width.
    async fn by_name(&self, report: &mut Report, width: u64) -> Outcome {
        let (mut single, mut many) = (Vec::new(), Vec::new());
        for run in 0..RUNS {
            let index = if run == 0 {
                0
            } else if run == 1 {
                width - 1
            } else {
                mix(run ^ width) % width
            };
            let (got, took) = self.ask(&self.one, (key(width), name(index))).await?;
            single.push(took);
            report.check(got == [self.row(width, index)], || {
                format!("{:?} {width}: name {index} gave {got:?}", self.table)
            });
            let (got, _) = self.ask(&self.one, (key(width), missing_name(index))).await?;
            report.check(got.is_empty(), || {
                format!("{:?} {width}: a name after {index} that is not there gave {got:?}", self.table)
            });

            let mut wanted: Vec<u64> = (0..CELLS).map(|i| mix(run * CELLS + i) % width).collect();
            wanted.sort_unstable();
            wanted.dedup();
            let mut names: Vec<String> = wanted.iter().map(|i| name(*i)).collect();
            names.push(missing_name(width / 2));
            let (got, took) = self.ask(&self.names, (key(width), names)).await?;
            many.push(took);
            if self.table == Table::Descending {
                wanted.reverse();
            }
            let want: Answer = wanted.iter().map(|i| self.row(width, *i)).collect();
            report.check(got == want, || {
                format!("{:?} {width}: {} names gave {} rows", self.table, wanted.len(), got.len())
            });
        }
        report.times(self.table.name(), width, "one name", &mut single);
        report.times(self.table.name(), width, "100 names", &mut many);
        Ok(())
    }

    /// From every position on, upwards and downwards, whichever of them the table has reversed.
    async fn slices(&self, report: &mut Report, width: u64) -> Outcome {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for position in 0..POSITIONS {
            let index = (width - 1) * position / (POSITIONS - 1);
            let (got, took) = self.ask(&self.up, (key(width), name(index))).await?;
            up.push(took);
            let want: Answer = (index..width.min(index + CELLS)).map(|i| self.row(width, i)).collect();
            report.check(got == want, || format!("{:?} {width}: up from {index} gave {} rows", self.table, got.len()));

            let (got, took) = self.ask(&self.down, (key(width), missing_name(index))).await?;
            down.push(took);
            let want: Answer = (0..=index).rev().take(CELLS as usize).map(|i| self.row(width, i)).collect();
            report
                .check(got == want, || format!("{:?} {width}: down from {index} gave {} rows", self.table, got.len()));
        }
        report.times(self.table.name(), width, "slice up", &mut up);
        report.times(self.table.name(), width, "slice down", &mut down);
        Ok(())
    }

    /// The last hundred names: reversed in the ascending table, a slice without start in the
    /// descending one.
    async fn newest(&self, report: &mut Report, width: u64) -> Outcome {
        let mut times = Vec::new();
        let want: Answer = (0..width).rev().take(CELLS as usize).map(|i| self.row(width, i)).collect();
        for _ in 0..RUNS {
            let (got, took) = self.ask(&self.newest, (key(width),)).await?;
            times.push(took);
            report
                .check(got == want, || format!("{:?} {width}: the newest {CELLS} gave {} rows", self.table, got.len()));
        }
        report.times(self.table.name(), width, "newest 100", &mut times);
        Ok(())
    }

    /// The partition from end to end, by pages.
    async fn whole(&self, report: &mut Report, width: u64) -> Outcome {
        let begun = Instant::now();
        let mut rows =
            self.session.execute_iter(self.all.clone(), (key(width),)).await?.rows_stream::<(String, String)>()?;
        let (mut seen, mut wrong) = (0, 0);
        while let Some(row) = rows.try_next().await? {
            let index = if self.table == Table::Ascending { seen } else { width.saturating_sub(seen + 1) };
            wrong += u64::from(row != self.row(width, index));
            seen += 1;
        }
        report.check(seen == width && wrong == 0, || {
            format!("{:?} {width}: read whole gave {seen} rows, {wrong} of them wrong", self.table)
        });
        report.times(self.table.name(), width, "whole, by pages", &mut [begun.elapsed()]);
        Ok(())
    }
}
