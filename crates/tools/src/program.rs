//! The command line of `helenus sstable`: it finds the verb and gives it the words behind.

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::context::Context;
use crate::failure::{DONE, FAILED, Failure, USAGE};
use crate::{dump, list, load, metadata, salvage, split, tombstones, upgrade, verify};

/// Look into SSTable files, check them, and write them anew.
#[derive(Parser)]
#[command(name = "helenus sstable", disable_help_subcommand = true)]
struct Program {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Dump(dump::Arguments),
    Metadata(metadata::Arguments),
    Verify(verify::Arguments),
    List(list::Arguments),
    Load(Box<load::Arguments>),
    Tombstones(tombstones::Arguments),
    Split(split::Arguments),
    Upgrade(upgrade::Arguments),
    Salvage(salvage::Arguments),
}

/// Runs a verb; gives the exit code.
pub fn run(arguments: &[String], context: &mut Context<'_>) -> u8 {
    let words = std::iter::once("sstable".to_owned()).chain(arguments.iter().cloned());
    let program = match Program::try_parse_from(words) {
        Ok(program) => program,
        Err(error) => return explain(&error, context),
    };
    let done = match program.verb {
        Verb::Dump(arguments) => dump::run(&arguments, context),
        Verb::Metadata(arguments) => metadata::run(&arguments, context),
        Verb::Verify(arguments) => verify::run(&arguments, context),
        Verb::List(arguments) => list::run(&arguments, context),
        Verb::Load(arguments) => load::run(&arguments, context),
        Verb::Tombstones(arguments) => tombstones::run(&arguments, context),
        Verb::Split(arguments) => split::run(&arguments, context),
        Verb::Upgrade(arguments) => upgrade::run(&arguments, context),
        Verb::Salvage(arguments) => salvage::run(&arguments, context),
    };
    match done {
        Ok(code) => code,
        Err(Failure { message, code }) => {
            if !message.is_empty() {
                // when standard error fails too, the exit code is all that is left
                let _ = writeln!(context.err, "helenus sstable: {message}");
            }
            code
        }
    }
}

/// Reports why the command line was not parsed: help is printed to the output, everything else is
/// wrong usage.
fn explain(error: &clap::Error, context: &mut Context<'_>) -> u8 {
    let text = error.render();
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let written = if is_help { write!(context.out, "{text}") } else { write!(context.err, "{text}") };
    match (is_help, written) {
        (true, Ok(())) => DONE,
        (true, Err(_)) => FAILED,
        (false, _) => USAGE,
    }
}
