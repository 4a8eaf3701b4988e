//! `nodetool proxyhistograms`: latencies of clients' requests.

use crate::nodetool::{Context, Outcome};
use crate::verbs::GetClientLatencies;

/// Names of the rows of nodetool's histograms, in the order of `HistogramData::column`.
pub(super) const ROWS: [&str; 7] = ["50%", "75%", "95%", "98%", "99%", "Min", "Max"];

#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let latencies = context.api.ask(&GetClientLatencies {})?;
        let columns = [
            ("Read Latency", latencies.read.column()),
            ("Write Latency", latencies.write.column()),
            ("Range Latency", latencies.range.column()),
            ("CAS Read Latency", latencies.cas_read.column()),
            ("CAS Write Latency", latencies.cas_write.column()),
            ("View Write Latency", latencies.view_write.column()),
        ];
        let row = |name: &str, cells: Vec<String>| {
            let cells: String = cells.iter().map(|cell| format!("{cell:>19}")).collect();
            format!("{name:<10}{cells}")
        };
        let out = &mut *context.out;
        writeln!(out, "proxy histograms")?;
        writeln!(out, "{}", row("Percentile", columns.iter().map(|(name, _)| (*name).to_owned()).collect()))?;
        writeln!(out, "{}", row("", columns.iter().map(|_| "(micros)".to_owned()).collect()))?;
        for (index, name) in ROWS.iter().enumerate() {
            writeln!(
                out,
                "{}",
                row(name, columns.iter().map(|(_, figures)| format!("{}.00", figures[index])).collect())
            )?;
        }
        writeln!(out)?;
        Ok(())
    }
}
