//! `helenus sstable upgrade`: rewrites SSTables in another version, up or down, with the schema's
//! compression and filter if there is a schema. Level, repaired state, timestamps and origin are
//! kept. In the same directory the new SSTable replaces the source.
//!
//! Versions before `oa` cannot express deletion and expiration times beyond 2038-01-19: these times
//! are moved to that date, as Cassandra does, and counted. Agrees in purpose with
//! `org.apache.cassandra.tools.StandaloneUpgrader`, which goes up only.

use std::path::PathBuf;

use clap::Args;
use rows::{ReadContext, ReadMode};
use sstable::{Descriptor, Version};

use crate::context::Context;
use crate::failure::{DONE, Failure};
use crate::progress::Progress;
use crate::rewrite::{Output, Recipe, check_columns};
use crate::schema_file::{self, Source};
use crate::target::Targets;
use crate::{guard, open};

/// Rewrite SSTables in another version.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    targets: Targets,
    /// The version: da, oa or nb.
    #[arg(long, value_name = "VERSION", default_value = "da", value_parser = parse_version)]
    to: Version,
    /// Write there, and leave the source.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// A schema.cql: its compression and filter are used, its dropped columns left out [default:
    /// schema.cql beside the files, else as the files are].
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Also those that have the version already.
    #[arg(short = 'a', long = "include-all-sstables")]
    all: bool,
    /// Do not remove the source.
    #[arg(short = 'k', long = "keep-source")]
    keep_source: bool,
}

fn parse_version(text: &str) -> Result<Version, String> {
    let version = Version::from_name(text).filter(|version| Version::WRITABLE.contains(version));
    version.ok_or_else(|| format!("{text}: da, oa and nb can be written"))
}

/// Rewrites each SSTable, one transaction each.
pub fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<u8, Failure> {
    let named = arguments.targets.live_sstables(context.env)?;
    for descriptor in &named {
        if descriptor.version == arguments.to && !arguments.all {
            writeln!(context.out, "{}: has version {} already", descriptor.prefix(), arguments.to.name())?;
            continue;
        }
        upgrade(arguments, descriptor, &named, context)?;
    }
    Ok(DONE)
}

fn upgrade(
    arguments: &Arguments,
    descriptor: &Descriptor,
    named: &[Descriptor],
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    let directory = arguments.output.as_ref().unwrap_or(&descriptor.directory);
    let _lock = guard::lock(context.env, directory)?;
    let statistics = open::statistics(context.env, descriptor)?;
    let source = schema_file::find(context.env, descriptor, &statistics, arguments.schema.as_ref())?;
    let sstable = open::open(context.env, descriptor, source.table())?;
    check_columns(sstable.header(), descriptor)?;
    let mut recipe = Recipe::of(&sstable);
    if let Source::File(_) = source {
        recipe = recipe.by_schema()?;
    }
    let mut output = Output::new(context.env, directory, recipe.in_version(arguments.to), descriptor.id, named)?;
    let mut progress = Progress::new(&format!("upgrade {}", descriptor.prefix()), sstable.data_length());
    let written = sstable
        .scan_all(&ReadContext::new(ReadMode::Background))
        .map_err(Failure::from)
        .and_then(|mut stream| output.write_all(&mut stream, u64::MAX, &mut progress));
    if let Err(failure) = written {
        output.abandon();
        return Err(failure);
    }
    let replaces = arguments.output.is_none() && !arguments.keep_source;
    let replaced = if replaces { std::slice::from_ref(descriptor) } else { &[] };
    let (finished, capped) = output.commit(replaced)?;
    drop(progress);
    for new in finished {
        let stored = new.descriptor.prefix();
        writeln!(context.out, "{} -> {stored}: {} partitions", descriptor.prefix(), new.partitions)?;
    }
    if capped > 0 {
        let version = arguments.to.name();
        writeln!(
            context.out,
            "{capped} deletion or expiration times after 2038-01-19 have no form in {version}: moved there"
        )?;
    }
    Ok(())
}
