//! `helenus sstable split`: cuts an SSTable into pieces of at most a given size of Data.db, between
//! partitions. The pieces replace the SSTable as one step, after a snapshot of it was taken. Agrees
//! with `org.apache.cassandra.tools.StandaloneSplitter`.

use clap::Args;
use rows::{ReadContext, ReadMode};
use sstable::{Descriptor, Version};

use crate::context::Context;
use crate::failure::{DONE, Failure};
use crate::progress::Progress;
use crate::rewrite::{Output, Recipe, snapshot};
use crate::target::Targets;
use crate::{guard, open};

/// Cut SSTables into smaller ones.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    targets: Targets,
    /// Greatest size of a piece in MiB; a larger partition stays whole.
    #[arg(short = 's', long = "size", value_name = "MIB", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    size: u64,
    /// Take no snapshot (named pre-split-TIME) before.
    #[arg(long)]
    no_snapshot: bool,
}

/// Splits each SSTable that is larger, one transaction each.
pub fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<u8, Failure> {
    let piece_max = arguments.size << 20;
    let name = format!("pre-split-{}", context.env.clock.now_micros() / 1000);
    let named = arguments.targets.live_sstables(context.env)?;
    for descriptor in &named {
        let _lock = guard::lock(context.env, &descriptor.directory)?;
        let statistics = open::statistics(context.env, descriptor)?;
        let table = open::table_of_header(descriptor, &statistics)?;
        let sstable = open::open(context.env, descriptor, &table)?;
        if sstable.stored_length() <= piece_max {
            writeln!(context.out, "{}: at most {} MiB already", descriptor.prefix(), arguments.size)?;
            continue;
        }
        if !arguments.no_snapshot {
            let place = snapshot(context.env, descriptor, &name)?;
            writeln!(context.out, "{}: snapshot in {}", descriptor.prefix(), place.display())?;
        }
        split(&sstable, descriptor, &named, piece_max, context)?;
    }
    Ok(DONE)
}

/// The version of the pieces: the version of the source, or the newest one if the source's cannot
/// be written.
fn writable(version: Version) -> Version {
    if version.is_writable() { version } else { Version::DA }
}

fn split(
    sstable: &sstable::SSTable,
    descriptor: &Descriptor,
    named: &[Descriptor],
    piece_max: u64,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    let mut recipe = Recipe::of(sstable).in_version(writable(descriptor.version));
    // the bloom filter of a piece is made for its share of the partitions and a little more, as
    // pieces differ
    let pieces = sstable.stored_length().div_ceil(piece_max).max(1);
    recipe.options.estimated_keys = (recipe.options.estimated_keys / pieces * 5).div_ceil(4) + 1;
    let mut output = Output::new(context.env, &descriptor.directory, recipe, descriptor.id, named)?;
    let mut progress = Progress::new(&format!("split {}", descriptor.prefix()), sstable.data_length());
    let written = sstable
        .scan_all(&ReadContext::new(ReadMode::Background))
        .map_err(Failure::from)
        .and_then(|mut stream| output.write_all(&mut stream, piece_max, &mut progress));
    if let Err(failure) = written {
        output.abandon();
        return Err(failure);
    }
    let (finished, _) = output.commit(std::slice::from_ref(descriptor))?;
    drop(progress);
    for new in finished {
        let (name, bytes) = (new.descriptor.prefix(), new.data.stored_length);
        writeln!(context.out, "{} -> {name}: {} partitions, {bytes} bytes", descriptor.prefix(), new.partitions)?;
    }
    Ok(())
}
