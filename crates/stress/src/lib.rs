//! `helenus stress`: puts load on a cluster and reports the result, with the commands and options
//! of cassandra-stress.
//!
//! Stress is a client program outside of the server and speaks through a driver to whatever node it
//! is given, Helenus or Cassandra, so that anybody can repeat a comparison. The command line is in
//! [`settings`], the requests in [`workload`], their pace in [`run`], the measurements in
//! [`measure`] and [`report`].
//!
//! Invariants: the values of an operation follow from its seed alone, so that a later `read` meets
//! what a `write` wrote; with `-rate fixed=` latency counts from the moment at which an operation
//! should have begun (no coordinated omission); no memory grows with the number of operations.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a client program beside the server, with a clock, threads and files of its own

mod counter_table;
mod distribution;
mod help;
mod measure;
mod pace;
mod profile;
mod report;
mod run;
mod seeds;
mod session;
mod settings;
mod standard;
mod tunnel;
mod value;
mod workload;

use std::process::ExitCode;

use settings::{Action, Settings};

/// An error, as a sentence for the user.
type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

/// Runs the command of `arguments` (the words behind `helenus stress`). Exit codes: 0 done, 1 the
/// load failed, 2 wrong usage.
pub fn run(arguments: &[String]) -> ExitCode {
    let settings = match Settings::parse(arguments) {
        Ok(Action::Load(settings)) => settings,
        Ok(Action::Help(topic)) => {
            print!("{}", help::text(topic.as_deref()));
            return ExitCode::SUCCESS;
        }
        Ok(Action::Version) => {
            println!("helenus stress {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Ok(Action::Print(distribution, draws)) => {
            print!("{}", distribution.histogram(draws));
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("helenus stress: {error}");
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(error.into()),
    };
    match runtime.block_on(run::all(*settings)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error),
    }
}

fn failed(error: Error) -> ExitCode {
    eprintln!("helenus stress: {error}");
    ExitCode::FAILURE
}
