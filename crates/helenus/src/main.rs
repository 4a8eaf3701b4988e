//! The `helenus` program: command line, start, end.
//!
//! `helenus serve` is a node ([`serve`]); the other words are tools. Exit codes: 0 done, 1 refused or failed, 2 wrong usage.

#![forbid(unsafe_code)]

mod arguments;
mod serve;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Command, Program};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let program = Program::parse();
    match program.command {
        None => serve::run(program.serve),
        Some(Command::Serve(serve)) => serve::run(serve),
        Some(Command::Nodetool { .. }) => later("nodetool"),
        Some(Command::Sstable { .. }) => later("sstable"),
        Some(Command::Shell { .. }) => later("shell"),
        Some(Command::Stress { .. }) => later("stress"),
    }
}

fn later(word: &str) -> ExitCode {
    eprintln!("helenus: {word} comes with a later version");
    ExitCode::FAILURE
}
