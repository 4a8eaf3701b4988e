//! An observer outside of the server. It writes through a real driver, keeps what was acknowledged,
//! lets something go wrong, and reads everything back: nothing lost, nothing invented, nothing
//! resurrected.
//!
//! - [`kill`]: kill -9 at random moments, while writing and while starting
//! - [`power`]: power cuts at random moments: what was not synced is gone, or a part of it
//! - [`bits`]: one damaged file in a directory at rest
//! - [`space`]: a device that is full, and has room again
//! - [`disk`]: a disk that fails: writes, reads, syncs, opening, renaming
//! - [`vanish`]: a directory that disappears, and comes back
//! - [`clock`]: a wall clock that jumps
//! - [`descriptors`]: clients that take all file descriptors and do nothing
//! - [`large`]: values up to the limit of frames
//! - [`overload`]: more connections, requests and bytes than the server can take
//! - [`writer`], [`builder`]: what is written and what has to be there, rows and schema
//! - [`partition`]: the naive twin of a partition
//! - [`node`]: the server as a child process
//! - [`inject`]: how its calls are made to fail
//! - [`recorder`]: a twin of its directory, and what a power cut leaves of it
//!
//! `tests/run` has the short forms; the long ones are in `tests/README.md`.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a client program beside the server

mod bits;
mod builder;
mod clock;
mod descriptors;
mod disk;
mod inject;
mod kill;
mod large;
mod node;
mod overload;
mod partition;
mod power;
mod recorder;
mod report;
mod space;
mod vanish;
mod wire;
mod writer;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// The result of a step; an error's text says what is wrong.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Parser)]
#[command(about = "What was acknowledged is there, whatever happens to the server")]
struct Options {
    /// The server's binary; without it what HELENUS_BIN names.
    #[arg(long)]
    helenus: Option<PathBuf>,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Work here and leave it there.
    #[arg(long)]
    keep: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Kill -9 at random moments.
    Kill {
        #[arg(long, default_value_t = 1000)]
        cycles: u32,
    },
    /// Cut the power at random moments.
    Power {
        #[arg(long, default_value_t = 300)]
        rounds: u32,
    },
    /// Damage one file at a time.
    Bits {
        #[arg(long, default_value_t = 300)]
        rounds: u32,
    },
    /// Fill the device; has to be root, for a file system of its own.
    Space {
        #[arg(long, default_value_t = 20)]
        rounds: u32,
    },
    /// Let calls to the disk fail.
    Disk {
        #[arg(long, default_value_t = 100)]
        rounds: u32,
        /// One kind of fault, by a part of its name.
        #[arg(long, default_value = "")]
        only: String,
    },
    /// Take directories away and put them back.
    Vanish {
        #[arg(long, default_value_t = 50)]
        rounds: u32,
    },
    /// Set the clock forwards and back by hours.
    Clock {
        #[arg(long, default_value_t = 50)]
        rounds: u32,
    },
    /// Take file descriptors away.
    Descriptors,
    /// Write and read large values.
    Large {
        /// The limit of frames, MiB.
        #[arg(long, default_value_t = 255)]
        limit: usize,
        /// Small reads are timed beside values of these sizes, MiB.
        #[arg(long, value_delimiter = ',', default_value = "5,50")]
        beside: Vec<usize>,
        #[arg(long, default_value_t = 10)]
        seconds: u64,
    },
    /// Ask for more than there is.
    Overload {
        #[arg(long, default_value_t = 10_000)]
        connections: usize,
        #[arg(long, default_value_t = 30)]
        seconds: u64,
        /// One kind of load, by a part of its name.
        #[arg(long, default_value = "")]
        only: String,
    },
}

#[tokio::main]
async fn main() -> Outcome {
    let options = Options::parse();
    let scratch = tempfile::Builder::new().prefix("helenus-faults-").tempdir()?;
    let place = options.keep.clone().unwrap_or_else(|| scratch.path().to_owned());
    std::fs::create_dir_all(&place)?;
    let named = || std::env::var_os("HELENUS_BIN").map(PathBuf::from);
    let program = options.helenus.or_else(named).ok_or("--helenus or HELENUS_BIN names the server")?.canonicalize()?;
    let mut report = report::Report::default();
    match options.verb {
        Verb::Kill { cycles } => kill::run(&program, &place, options.seed, cycles, &mut report).await?,
        Verb::Power { rounds } => power::run(&program, &place, options.seed, rounds, &mut report).await?,
        Verb::Bits { rounds } => bits::run(&program, &place, options.seed, rounds, &mut report).await?,
        Verb::Space { rounds } => space::run(&program, &place, options.seed, rounds, &mut report).await?,
        Verb::Disk { rounds, only } => disk::run(&program, &place, options.seed, rounds, &only, &mut report).await?,
        Verb::Vanish { rounds } => vanish::run(&program, &place, options.seed, rounds, &mut report).await?,
        Verb::Clock { rounds } => clock::run(&program, &place, options.seed, rounds, &mut report).await?,
        Verb::Descriptors => descriptors::run(&program, &place, &mut report).await?,
        Verb::Large { limit, beside, seconds } => {
            large::run(&program, &place, limit, &beside, seconds, &mut report).await?;
        }
        Verb::Overload { connections, seconds, only } => {
            overload::run(&program, &place, connections, seconds, &only, &mut report).await?;
        }
    }
    report.end()
}
