//! `bench-instructions`: counts the instructions of a few hot requests and compares them with the
//! baseline in the tree.
//!
//! - `bench-instructions` counts, prints a table, and fails when a request costs more or less than
//!   the baseline says, by more than the tolerance ([`baseline`]);
//! - `bench-instructions --rewrite` counts and writes the baseline;
//! - `bench-instructions drive DIRECTORY` is what runs under valgrind ([`drive`]).
//!
//! Time on a shared machine varies by ten per cent and more, instructions by a few per mille, so a
//! loss of a few per cent shows in an everyday test. The count is of user instructions on one
//! thread between a decoded frame and an encoded one: no system call, no socket, no cache miss.
//!
//! Exit codes: 0 as the baseline says, 1 different or failed, 2 wrong usage, 3 valgrind is missing.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a program that measures, outside of the server

mod baseline;
mod cases;
mod counting;
mod drive;
mod node;

use std::path::Path;
use std::process::ExitCode;

use baseline::Baseline;

/// The same allocator as the server, because an allocation is a good part of a request.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs of which the least count of each case is judged while it is not as the baseline says. In
/// one process of three the batch costs 22 % more in all rounds; chance only adds.
const RUNS_MAX: usize = 5;

/// Whatever ends a run.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["drive", directory] => drive::run(Path::new(directory)).map(|()| true),
        [] | ["--rewrite"] if !counting::has_valgrind() => {
            eprintln!("bench-instructions: valgrind is needed (apt install valgrind)");
            return ExitCode::from(3);
        }
        [] => guard(),
        ["--rewrite"] => rewrite().map(|()| true),
        _ => {
            eprintln!("usage: bench-instructions [--rewrite]");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench-instructions: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every request costs what the baseline says.
fn guard() -> Result<bool> {
    let path = baseline::path();
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let baseline = Baseline::parse(&text)?;
    let compiler = counting::compiler()?;
    let mut counts = counting::count()?;
    for _ in 1..RUNS_MAX {
        if baseline.judge(&counts, &compiler).holds() {
            break;
        }
        counts.extend(counting::count()?);
        counts = counting::least(counts);
    }
    let verdict = baseline.judge(&counts, &compiler);
    print!("{verdict}");
    Ok(verdict.holds())
}

fn rewrite() -> Result<()> {
    let baseline = Baseline { compiler: counting::compiler()?, counts: counting::count()? };
    let path = baseline::path();
    std::fs::write(&path, baseline.to_string()).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("{} is written:\n{baseline}", path.display());
    Ok(())
}
