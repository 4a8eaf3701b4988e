//! `helenus sstable list`: the SSTables of a table, a line each, and the files that its transaction
//! logs hide; with `--txn` the files as Cassandra's sstableutil lists them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use env::Env;
use sstable::{Component, Descriptor, Statistics, txn_log};
use types::Token;

use crate::context::Context;
use crate::failure::{DONE, FAILED, Failure};
use crate::metadata::{date, droppable_ratio};
use crate::target::Targets;
use crate::{open, target};

/// List the SSTables of a directory, a line each.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    targets: Targets,
    /// List files by what transaction logs make of them, as sstableutil does.
    #[arg(long, value_name = "WHICH", num_args = 0..=1, default_missing_value = "all")]
    txn: Option<Which>,
    /// With --txn: also the transaction logs themselves.
    #[arg(short = 'o', long, requires = "txn")]
    oplog: bool,
    /// Seconds that tombstones are kept: those older count as droppable.
    #[arg(short = 'g', long = "gc_grace_seconds", value_name = "SECONDS", default_value_t = 0)]
    gc_grace_seconds: i64,
}

/// Which files `--txn` lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Which {
    /// Files that count, and files that do not.
    All,
    /// Files that do not count.
    Tmp,
    /// Files that count.
    Final,
}

/// Lists each directory.
pub fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<u8, Failure> {
    let mut code = DONE;
    for directory in arguments.targets.directories(context.env)? {
        match arguments.txn {
            Some(which) => list_files(which, arguments.oplog, &directory, context)?,
            None => code = code.max(list_sstables(arguments, &directory, context)?),
        }
    }
    context.out.flush()?;
    Ok(code)
}

const TITLES: [&str; 13] = [
    "id",
    "version",
    "level",
    "bytes",
    "partitions",
    "rows",
    "min timestamp",
    "max timestamp",
    "droppable",
    "repaired",
    "first token",
    "last token",
    "state",
];

fn list_sstables(arguments: &Arguments, directory: &Path, context: &mut Context<'_>) -> Result<u8, Failure> {
    let mut code = DONE;
    let states = states(context.env, directory)?;
    let entries = context.env.disk.list_dir(directory);
    let entries = entries.map_err(|error| Failure::new(format!("{}: {error}", directory.display())))?;
    let mut lines: Vec<(Descriptor, [String; TITLES.len()])> = Vec::new();
    let mut damaged = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is_dir) {
        let Some((descriptor, Some(Component::Data))) = Descriptor::parse(directory, &entry.name) else { continue };
        let state = states.get(&descriptor.path(Component::Data)).copied().unwrap_or("live");
        match line(arguments, &descriptor, state, context.env) {
            Ok(line) => lines.push((descriptor, line)),
            Err(failure) => damaged.push(failure),
        }
    }
    lines.sort_by_key(|(descriptor, _)| descriptor.id);
    writeln!(context.out, "{}", directory.display())?;
    let rows: Vec<[String; TITLES.len()]> =
        std::iter::once(TITLES.map(str::to_owned)).chain(lines.into_iter().map(|line| line.1)).collect();
    write_columns(&rows, context)?;
    for unsettled in txn_log::unsettled(context.env, directory)? {
        let state = if unsettled.committed { "committed" } else { "not committed" };
        writeln!(context.out, "transaction {}: {state}", unsettled.log.display())?;
    }
    let leftovers = entries.iter().filter(|entry| !entry.is_dir && entry.name.ends_with(".tmp"));
    for leftover in leftovers {
        writeln!(context.out, "temporary {}", directory.join(&leftover.name).display())?;
    }
    for failure in damaged {
        code = FAILED;
        writeln!(context.err, "helenus sstable: {failure}")?;
    }
    Ok(code)
}

/// Prints rows in columns as wide as their widest cell.
fn write_columns(rows: &[[String; TITLES.len()]], context: &mut Context<'_>) -> Result<(), Failure> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..TITLES.len()).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        writeln!(context.out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn line(
    arguments: &Arguments,
    descriptor: &Descriptor,
    state: &str,
    env: &Env,
) -> Result<[String; TITLES.len()], Failure> {
    let statistics = open::statistics(env, descriptor)?;
    let stats = &statistics.stats;
    let (partitions, first, last) = extent(descriptor, &statistics, env)?;
    let bytes: u64 = Component::ALL.into_iter().filter_map(|one| env.disk.file_len(&descriptor.path(one)).ok()).sum();
    let before = i64::from(env.clock.now_seconds()) - arguments.gc_grace_seconds;
    let repaired = match (stats.pending_repair, stats.repaired_at) {
        (Some(session), _) => format!("pending {}", types::literal::print_uuid(&session)),
        (None, 0) => "no".to_owned(),
        (None, at) => date(at).unwrap_or_default(),
    };
    Ok([
        descriptor.id.to_string(),
        descriptor.version.name().to_owned(),
        stats.level.to_string(),
        bytes.to_string(),
        partitions.to_string(),
        stats.total_rows.to_string(),
        stats.min_timestamp.to_string(),
        stats.max_timestamp.to_string(),
        format!("{:.3}", droppable_ratio(stats, before)),
        repaired,
        first,
        last,
        state.to_owned(),
    ])
}

/// Number of partitions, first and last token.
fn extent(descriptor: &Descriptor, statistics: &Statistics, env: &Env) -> Result<(u64, String, String), Failure> {
    let table = open::table_of_header(descriptor, statistics)?;
    let sstable = open::open(env, descriptor, &table)?;
    let token = |token: Token| token.0.to_string();
    Ok((sstable.partition_count(), token(sstable.first_key().token), token(sstable.last_key().token)))
}

/// Which files transaction logs make temporary or live; a file that no log names is live.
fn states(env: &Env, directory: &Path) -> Result<BTreeMap<PathBuf, &'static str>, Failure> {
    let mut states = BTreeMap::new();
    for unsettled in txn_log::unsettled(env, directory)? {
        if unsettled.committed {
            states.extend(unsettled.removed.into_iter().map(|path| (path, "obsolete")));
        } else {
            states.extend(unsettled.added.into_iter().map(|path| (path, "temporary")));
        }
    }
    Ok(states)
}

fn list_files(which: Which, oplog: bool, directory: &Path, context: &mut Context<'_>) -> Result<(), Failure> {
    let env = context.env;
    let states = states(env, directory)?;
    let logs: Vec<PathBuf> = txn_log::unsettled(env, directory)?.into_iter().map(|one| one.log).collect();
    for path in target::files(env, directory)? {
        let is_log = logs.contains(&path);
        let does_not_count = states.contains_key(&path);
        let wanted = match which {
            Which::All => true,
            Which::Tmp => does_not_count,
            Which::Final => !does_not_count,
        };
        if is_log && oplog || !is_log && wanted {
            let path = std::path::absolute(&path).unwrap_or(path);
            writeln!(context.out, "{}", path.display())?;
        }
    }
    Ok(())
}
