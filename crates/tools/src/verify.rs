//! `helenus sstable verify`: checks SSTables against their checksums and their components against
//! each other; names file, component and offset of each damage. The checks are in
//! `sstable::verify`.
//!
//! Exit code 1 when there is damage. Agrees in purpose with
//! `org.apache.cassandra.tools.StandaloneVerifier`, whose `-r` and `-t` need a node.

use clap::Args;
use rows::ReadError;
use sstable::verify::{Depth, Verified, Verifier};
use sstable::{Descriptor, Version};

use crate::context::Context;
use crate::failure::{DONE, FAILED, Failure};
use crate::open;
use crate::progress::Progress;
use crate::target::Targets;

/// Damages that are printed for each SSTable; further ones are counted.
const PRINTED_MAX: u64 = 100;

/// Check SSTables for damage, as sstableverify does.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    targets: Targets,
    /// Also decode every row, look up every key, and read large partitions backwards by their row
    /// index.
    #[arg(short = 'e', long, conflicts_with = "quick")]
    extended: bool,
    /// Components and digest only.
    #[arg(short = 'q', long)]
    quick: bool,
    /// An SSTable that is not of the newest version of its format counts as damaged.
    #[arg(short = 'c', long = "check_version")]
    check_version: bool,
    /// Asked for by sstableverify; there is nothing to force.
    #[arg(short = 'f', long)]
    force: bool,
}

/// Verifies each SSTable.
pub fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<u8, Failure> {
    let mut code = DONE;
    for descriptor in arguments.targets.sstables(context.env)? {
        let damages = verify(arguments, &descriptor, context)?;
        if damages > 0 {
            code = FAILED;
        }
    }
    Ok(code)
}

/// Verifies one SSTable. Gives the number of damages.
fn verify(arguments: &Arguments, descriptor: &Descriptor, context: &mut Context<'_>) -> Result<u64, Failure> {
    let mut damages = 0;
    let name = descriptor.prefix();
    if arguments.check_version && ![Version::DA, Version::OA].contains(&descriptor.version) {
        damages += 1;
        writeln!(context.out, "{name}: version {} is not the newest of its format", descriptor.version.name())?;
    }
    let opened = open::statistics(context.env, descriptor)
        .and_then(|statistics| open::table_of_header(descriptor, &statistics))
        .and_then(|table| open::open(context.env, descriptor, &table));
    let sstable = match opened {
        Ok(sstable) => sstable,
        Err(failure) => {
            writeln!(context.out, "{name}: {failure}")?;
            return Ok(damages + 1);
        }
    };
    let depth = match (arguments.quick, arguments.extended) {
        (true, _) => Depth::Quick,
        (_, true) => Depth::Extended,
        _ => Depth::Normal,
    };
    let mut verifier = Verifier::new(context.env, &sstable, depth);
    let mut progress = Progress::new(&format!("verify {name}"), sstable.stored_length() + sstable.data_length());
    let mut looked_at = 0;
    loop {
        match verifier.step() {
            Ok(None) => break,
            Ok(Some(bytes)) => {
                looked_at += bytes;
                progress.at(looked_at);
            }
            Err(error) => {
                damages += 1;
                report(&name, damages, &error, context)?;
            }
        }
    }
    drop(progress);
    let Verified { chunks, partitions, unfiltereds } = verifier.verified();
    let verdict = if damages == 0 { "no damage".to_owned() } else { format!("{damages} damages") };
    let read = match depth {
        Depth::Extended => format!("{chunks} chunks, {partitions} partitions, {unfiltereds} rows and markers read"),
        Depth::Normal => format!("{chunks} chunks, {partitions} partitions read"),
        Depth::Quick | Depth::Components => "components and digest compared".to_owned(),
    };
    writeln!(context.out, "{name}: {read}: {verdict}")?;
    Ok(damages)
}

fn report(name: &str, number: u64, error: &ReadError, context: &mut Context<'_>) -> Result<(), Failure> {
    match number {
        ..=PRINTED_MAX => writeln!(context.out, "{name}: {error}")?,
        n if n == PRINTED_MAX + 1 => writeln!(context.out, "{name}: and more")?,
        _ => {}
    }
    Ok(())
}
