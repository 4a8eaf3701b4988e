//! `helenus backup VERB`: backups of nodes in a directory or an object store. One verb a file; what
//! they do is in the crate `backup`.

mod create;
mod list;
mod load;
mod log;
mod restore;
mod verify;

use std::process::ExitCode;

use clap::Subcommand;

/// The words of `helenus backup`.
#[derive(Subcommand)]
pub enum Backup {
    /// Back up the node of this machine: its snapshot, and only the files that the store lacks.
    Create(create::Create),
    /// List the backups of a store.
    List(list::List),
    /// Read every file of a backup and compare its digest.
    Verify(verify::Verify),
    /// Make the data directory of a node again, for a ring of the same nodes and tokens.
    Restore(restore::Restore),
    /// Load a backup into a running ring of any topology.
    Load(Box<load::Load>),
    /// Bring segments of the commit log; for archive_command.
    Log(log::Log),
}

/// Carries out `helenus backup`.
pub fn run(verb: &Backup) -> ExitCode {
    let env = env::real::env();
    let done = match verb {
        Backup::Create(create) => create.run(&env),
        Backup::List(list) => list.run(&env),
        Backup::Verify(verify) => verify.run(&env),
        Backup::Restore(restore) => restore.run(&env),
        Backup::Load(load) => load.run(&env),
        Backup::Log(log) => log.run(&env),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("helenus backup: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Refuses the name of a snapshot that no backup can have. A node takes snapshots of more names,
/// but no backup could be made of such a snapshot, which would stay on the disk.
pub fn check_tag(tag: &str) -> Result<(), String> {
    backup::manifest::check_name(tag)
        .map_err(|why| format!("--tag: {why}: it has letters, digits and . : _ - + @ alone, and no dot in front"))
}

/// Prints a line on stdout. Err: nobody reads it.
fn say(line: &str) -> Result<(), String> {
    use std::io::Write;
    writeln!(std::io::stdout(), "{line}").map_err(|error| format!("the output cannot be written: {error}"))
}
