//! The `helenus` program: command line, start, end.
//!
//! `helenus serve` is a node ([`serve`]); the other words are tools. Exit codes: 0 done, 1 refused
//! or failed, 2 wrong usage.

#![forbid(unsafe_code)]

mod admin_port;
mod arguments;
mod backup;
mod configuration;
mod heap;
mod log;
mod metadata_service;
mod ring;
mod serve;
mod unhonoured;

use std::process::ExitCode;

use admin::AdminApi;
use admin::http::{Client, NodeAddress};
use clap::Parser;

use arguments::{Command, Program};

// defects are for the simulator's tests
const _: () = assert!(!env::defects::ARE_COMPILED, "the program is built without the feature `defects`");

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let program = Program::parse();
    match program.command {
        None => serve::run(program.serve),
        Some(Command::Serve(serve)) => serve::run(serve),
        Some(Command::Ring(ring)) => ring::run(&ring),
        Some(Command::Backup(verb)) => backup::run(&verb),
        Some(Command::Nodetool { arguments }) => nodetool(&arguments),
        Some(Command::Sstable { arguments }) => sstable(&arguments),
        Some(Command::Shell { .. }) => later("shell"),
        Some(Command::Stress { arguments }) => load(&arguments),
    }
}

fn nodetool(arguments: &[String]) -> ExitCode {
    let env = env::real::env();
    let now = env.clock.now_micros() / 1000;
    let connect = |address: NodeAddress| Box::new(Client::new(env.clone(), address)) as Box<dyn AdminApi>;
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    ExitCode::from(admin::nodetool::run(arguments, now, &connect, &mut out, &mut err))
}

fn sstable(arguments: &[String]) -> ExitCode {
    let env = env::real::env();
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    ExitCode::from(tools::run(arguments, &mut tools::Context { env: &env, out: &mut out, err: &mut err }))
}

#[cfg(feature = "stress")]
fn load(arguments: &[String]) -> ExitCode {
    stress::run(arguments)
}

#[cfg(not(feature = "stress"))]
fn load(_: &[String]) -> ExitCode {
    eprintln!("helenus: this program was built without stress (feature `stress`)");
    ExitCode::FAILURE
}

fn later(word: &str) -> ExitCode {
    eprintln!("helenus: {word} comes with a later version");
    ExitCode::FAILURE
}
