//! `cargo run -p sim -- --seed N`: runs seeds, prints what the judges found and how to run a seed
//! again.

use clap::Parser;
use sim::register::Defect;
use sim::run::{Settings, Subject, replay, run};

/// Machines from a seed, and the judges of what was seen.
#[derive(Parser)]
struct Options {
    /// The subject of the run.
    #[arg(long, value_enum, default_value = "node")]
    subject: Subject,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// How long clients work, in seconds of the simulation.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// A defect of the register, to see its judge find it.
    #[arg(long, value_enum)]
    defect: Option<Defect>,
}

fn main() -> std::process::ExitCode {
    let options = Options::parse();
    let mut failed = 0;
    for seed in options.seed..options.seed + options.count {
        let settings = Settings { seed, seconds: options.seconds };
        let report = run(options.subject, settings, options.defect);
        println!("seed {seed}: {} operations, trace {:x?}", report.operations, report.trace);
        for finding in &report.findings {
            println!("  {finding}");
        }
        if !report.findings.is_empty() {
            failed += 1;
            println!("  again: {}", replay(options.subject, settings, options.defect));
        }
    }
    println!("{} seeds passed, {failed} failed", options.count - failed);
    if failed == 0 { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
