//! `helenus sstable salvage`: writes the readable part of a damaged SSTable into a new one, and
//! says what is lost: byte ranges, partitions, rows, and why. `sstable::salvage` does the reading.
//! Where something is lost the new SSTable does not count as repaired.
//!
//! Exit code 1 when something is lost. Agrees in purpose with
//! `org.apache.cassandra.tools.StandaloneScrubber`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use rows::PartitionStream;
use sstable::salvage::{Lost, SalvageReport, SalvageStream};
use sstable::{Descriptor, Version, WriterOptions};
use types::CqlType;
use types::literal::to_plain_text;

use crate::context::Context;
use crate::failure::{DONE, FAILED, Failure};
use crate::progress::Progress;
use crate::rewrite::{Output, Recipe, check_columns, snapshot};
use crate::target::Targets;
use crate::{guard, schema_file};

/// Places of loss that are printed for each SSTable, and keys that are printed for each place,
/// unless all are wanted.
const PRINTED_MAX: usize = 20;

/// Write what is readable of damaged SSTables into new ones, and say what is lost.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("where").required(true).args(["output", "replace", "dry_run"])))]
pub struct Arguments {
    #[command(flatten)]
    targets: Targets,
    /// Write there, and leave the source.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace the source, after a snapshot of it (named pre-salvage-TIME).
    #[arg(long)]
    replace: bool,
    /// Only say what would be lost.
    #[arg(long)]
    dry_run: bool,
    /// Take no snapshot.
    #[arg(long, requires = "replace")]
    no_snapshot: bool,
    /// A schema.cql [default: schema.cql beside the files, else the header]; needed when
    /// Statistics.db is lost.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Print every place of loss.
    #[arg(short = 'v', long)]
    verbose: bool,
}

/// Salvages each SSTable, one transaction each.
pub fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<u8, Failure> {
    let mut code = DONE;
    let name = format!("pre-salvage-{}", context.env.clock.now_micros() / 1000);
    let named = match arguments.replace {
        true => arguments.targets.live_sstables(context.env)?,
        false => arguments.targets.sstables(context.env)?,
    };
    for descriptor in &named {
        let table = schema_file::from_text(context.env, descriptor, arguments.schema.as_ref())?;
        let mut stream = SalvageStream::open(context.env, descriptor, table.as_ref())?;
        let finished = if arguments.dry_run {
            read_through(&mut stream);
            Vec::new()
        } else {
            write(arguments, (descriptor, &named), &mut stream, &name, context)?
        };
        print(arguments, descriptor, &stream, context)?;
        for new in finished {
            writeln!(context.out, "  written: {} with {} partitions", new.descriptor.prefix(), new.partitions)?;
        }
        if !stream.report().is_whole() {
            code = FAILED;
        }
    }
    Ok(code)
}

fn read_through(stream: &mut SalvageStream) {
    loop {
        // a salvage stream never fails: it leaves out what cannot be read and names it in its
        // report
        while let Ok(Some(_)) = stream.next_partition() {
            while let Ok(Some(_)) = stream.next_unfiltered() {}
        }
        if !stream.next_pass() {
            return;
        }
    }
}

/// Writes an SSTable anew, one of those that are named.
fn write(
    arguments: &Arguments,
    (descriptor, named): (&Descriptor, &[Descriptor]),
    stream: &mut SalvageStream,
    snapshot_name: &str,
    context: &mut Context<'_>,
) -> Result<Vec<sstable::FinishedSSTable>, Failure> {
    check_columns(stream.header(), descriptor)?;
    let directory = arguments.output.as_ref().unwrap_or(&descriptor.directory);
    let _lock = guard::lock(context.env, directory)?;
    if arguments.replace && !arguments.no_snapshot {
        let place = snapshot(context.env, descriptor, snapshot_name)?;
        writeln!(context.out, "{}: snapshot in {}", descriptor.prefix(), place.display())?;
    }
    let mut output = Output::new(context.env, directory, recipe(stream, descriptor.version)?, descriptor.id, named)?;
    let mut progress = Progress::new(&format!("salvage {}", descriptor.prefix()), stream.data().length());
    loop {
        let written = output.write_all(stream, u64::MAX, &mut progress).and_then(|()| output.finish_piece());
        if let Err(failure) = written {
            output.abandon();
            return Err(failure);
        }
        if !stream.next_pass() {
            break;
        }
    }
    if !stream.report().is_whole()
        && let Err(failure) = output.forget_repair()
    {
        output.abandon();
        return Err(failure);
    }
    let replaced = if arguments.replace { std::slice::from_ref(descriptor) } else { &[] };
    Ok(output.commit(replaced)?.0)
}

fn recipe(stream: &SalvageStream, version: Version) -> Result<Recipe, Failure> {
    let compression = stream.data().compression().map(|info| info.params.clone());
    let keys = stream.report().partitions_expected.unwrap_or(100_000);
    let recipe = match stream.statistics() {
        Some(statistics) => Recipe::like(stream.table(), stream.header(), statistics, compression, keys),
        None => {
            let options = WriterOptions::for_table(stream.table(), keys).map_err(Failure::new)?;
            let (table, header) = (stream.table().clone(), stream.header().clone());
            Recipe { table, header, version, options: WriterOptions { compression, ..options } }
        }
    };
    Ok(recipe.in_version(if version.is_writable() { version } else { Version::DA }))
}

fn print(
    arguments: &Arguments,
    descriptor: &Descriptor,
    stream: &SalvageStream,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    let report = stream.report();
    let SalvageReport { partitions, rows, markers, .. } = report;
    let out = &mut context.out;
    writeln!(
        out,
        "{}: {partitions} partitions, {rows} rows, {markers} range tombstone markers kept",
        descriptor.prefix()
    )?;
    if let Some(expected) = report.partitions_expected {
        writeln!(out, "  the index names {expected} partitions")?;
    }
    if let Some(expected) = report.rows_expected {
        writeln!(out, "  Statistics.db counts {expected} rows: {} lost", expected.saturating_sub(*rows))?;
    }
    for note in &report.notes {
        writeln!(out, "  {note}")?;
    }
    for (count, what) in [
        (report.out_of_order, "partitions were out of order: sorted, into an SSTable of their own"),
        (report.partitions_cut, "partitions are kept in part"),
        (report.partitions_lost, "partitions are lost"),
        (report.rows_out_of_order, "rows were out of order and are left out"),
        (report.bytes_lost, "bytes of the uncompressed data are lost:"),
    ] {
        if count > 0 {
            writeln!(out, "  {count} {what}")?;
        }
    }
    let printed = if arguments.verbose { report.lost.len() } else { PRINTED_MAX };
    for lost in report.lost.iter().take(printed) {
        writeln!(out, "    {}", describe(lost, &stream.table().partition_key_type, arguments.verbose))?;
    }
    let more = report.lost.len().saturating_sub(printed) as u64 + report.lost_unlisted;
    if more > 0 {
        writeln!(out, "    and {more} more places{}", if arguments.verbose { "" } else { " (-v prints them)" })?;
    }
    Ok(())
}

fn describe(lost: &Lost, key_type: &CqlType, all: bool) -> String {
    let limit = if all { usize::MAX } else { PRINTED_MAX };
    let keys: Vec<String> = lost.keys.iter().take(limit).map(|key| to_plain_text(key_type, key)).collect();
    let keys = match (keys.is_empty(), lost.keys.len() > limit) {
        (true, _) => String::new(),
        (false, more) => format!("; keys known: {}{}", keys.join(", "), if more { ", …" } else { "" }),
    };
    format!("{}..{}: {}{keys}", lost.from, lost.to, lost.why)
}
