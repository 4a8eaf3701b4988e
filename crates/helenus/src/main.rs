//! The `helenus` program: command line, start, end.
//!
//! `helenus serve` is a node ([`serve`]); the other words are tools. Exit codes: 0 done, 1 refused
//! or failed, 2 wrong usage.

#![forbid(unsafe_code)]

mod admin_port;
mod arguments;
mod backup;
mod check;
mod configuration;
mod crash_report;
mod doctor;
mod entrypoint;
mod health;
mod heap;
mod log;
mod manuals;
mod metadata_service;
mod ring;
mod serve;
mod service_manager;
mod unsupported_values;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use admin::AdminApi;
use admin::http::{Client, NodeAddress};
use clap::Parser;

use arguments::{Command, Program};

// defects and rare events are for the simulator
const _: () =
    assert!(cfg!(debug_assertions) || !env::rare::ARE_COMPILED, "the program is built without the feature `rare`");
const _: () = assert!(!env::defects::ARE_COMPILED, "the program is built without the feature `defects`");

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    carry_out(Program::parse_from(words(std::env::args_os().collect())))
}

/// A link to the program with the name `nodetool` is that command, as scripts and images expect it.
fn words(mut words: Vec<OsString>) -> Vec<OsString> {
    let name = words.first().and_then(|word| Path::new(word).file_name());
    if name.is_some_and(|name| name == "nodetool") {
        words.insert(1, "nodetool".into());
    }
    words
}

fn carry_out(program: Program) -> ExitCode {
    match program.command {
        None => serve::run(program.serve),
        Some(Command::Serve(serve)) => serve::run(serve),
        Some(Command::Ring(ring)) => ring::run(&ring),
        Some(Command::Backup(verb)) => backup::run(&verb),
        Some(Command::Nodetool { arguments }) => nodetool(&arguments),
        Some(Command::Sstable { arguments }) => sstable(&arguments),
        Some(Command::Doctor(options)) => doctor::run(&options),
        Some(Command::Check(mut options)) => check::run(&mut options),
        Some(Command::Health { arguments }) => health::run(&env::real::env(), arguments),
        Some(Command::Entrypoint { words }) => run_entrypoint(&words),
        Some(Command::Completions { shell }) => manuals::completions(shell),
        Some(Command::Man { directory }) => manuals::pages(&directory),
        Some(Command::Shell { arguments }) => prompt(&arguments),
        Some(Command::Stress { arguments }) => load(&arguments),
    }
}

fn nodetool(arguments: &[String]) -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    ExitCode::from(ask(arguments, &mut out, &mut err))
}

fn ask(arguments: &[String], out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let env = env::real::env();
    let now = env.clock.now_micros() / 1000;
    let connect = |address: NodeAddress| Ok(Box::new(Client::open(env.clone(), address)?) as Box<dyn AdminApi>);
    admin::nodetool::run(arguments, now, &connect, out, err)
}

/// Translates the environment of a container, and carries out the command that it stands for.
fn run_entrypoint(words: &[String]) -> ExitCode {
    let container = entrypoint::Container::of_process(&env::real::env());
    match entrypoint::translate(&container, words) {
        Ok(translated) => {
            translated.notes.iter().for_each(|note| eprintln!("helenus: {note}"));
            let first_password = translated.first_password();
            let mut program = Program::parse_from(["helenus".to_owned()].into_iter().chain(translated.words));
            if let Some(Command::Serve(serve)) = &mut program.command {
                serve.first_password = first_password;
            }
            carry_out(program)
        }
        Err(message) => {
            eprintln!("helenus: {message}");
            ExitCode::FAILURE
        }
    }
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

#[cfg(feature = "shell")]
fn prompt(arguments: &[String]) -> ExitCode {
    shell::run(arguments)
}

#[cfg(not(feature = "shell"))]
fn prompt(_: &[String]) -> ExitCode {
    eprintln!("helenus: this program was built without the shell (feature `shell`)");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_its_command() {
        let of = |given: &[&str]| words(given.iter().map(OsString::from).collect());
        assert_eq!(of(&["/usr/bin/nodetool", "status"]), ["/usr/bin/nodetool", "nodetool", "status"]);
        assert_eq!(of(&["helenus", "nodetool"]), ["helenus", "nodetool"]);
        assert!(of(&[]).is_empty());
    }
}
