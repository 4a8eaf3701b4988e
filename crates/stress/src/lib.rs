//! `helenus stress`: loads a cluster and says what it did, with the commands and options of cassandra-stress.
//!
//! It stands outside of the house: a client program that speaks through a driver to whatever node it is given, Helenus or Cassandra, so that
//! a comparison can be repeated by anybody. Command line → [`settings`]; what is asked of the cluster → [`workload`]; who asks how fast →
//! [`run`]; what it measured → [`measure`] and [`report`].
//!
//! What must hold: an operation's values follow from its seed alone, so that a later `read` meets what a `write` wrote; with `-rate fixed=`
//! latency counts from when an operation should have begun (no coordinated omission); nothing grows with the number of operations.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a client program beside the server: it has clock, threads and files of its own

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

use settings::{Settings, Wanted};

/// What went wrong, as a sentence for the user.
type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

/// Runs the command of `arguments` (what stands behind `helenus stress`). Exit codes: 0 done, 1 the load failed, 2 wrong usage.
pub fn run(arguments: &[String]) -> ExitCode {
    let settings = match Settings::parse(arguments) {
        Ok(Wanted::Load(settings)) => settings,
        Ok(Wanted::Help(topic)) => {
            print!("{}", help::text(topic.as_deref()));
            return ExitCode::SUCCESS;
        }
        Ok(Wanted::Version) => {
            println!("helenus stress {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Ok(Wanted::Print(distribution, draws)) => {
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
