//! `cargo run -p sim -- --seed N`: runs seeds, and prints the troubles, the findings of the
//! judges, and the command that runs a seed again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use env::rare::{EventChoice, Figures, Rare};
use sim::faults::{Kind, Kinds};
use sim::register::Defect;
use sim::report::Report;
use sim::run::{Settings, Subject, replay, run};

/// The allocator of the server. With glibc's a seventh of a run was spent there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Machines from a seed, and the judges of what was seen.
#[derive(Parser)]
struct Options {
    /// The subject of the runs.
    #[arg(long, value_enum, default_value = "ring")]
    subject: Subject,
    /// A seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Seeds, A..B, instead of one.
    #[arg(long, value_parser = parse_seeds, conflicts_with = "seed")]
    seeds: Option<Range<u64>>,
    /// How long clients work, in seconds of the simulation.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Most troubles; clients go on without any for the rest of their time.
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    steps: u64,
    /// The kinds of trouble, separated by commas; `none`: no trouble [default: all].
    #[arg(long, value_parser = parse_kinds, default_value = "all", hide_default_value = true)]
    faults: Kinds,
    /// The rare events: `drawn` by the seed, `none`, or `all`. A release build has them with the
    /// feature `rare` only.
    #[arg(long, value_parser = parse_rare, default_value = "drawn")]
    rare: EventChoice,
    /// A defect of the register, to see its judge find it.
    #[arg(long, value_enum)]
    defect: Option<Defect>,
    /// The nodes' own log lines of these levels (`info`, `storage=debug`) on standard error.
    #[arg(long)]
    log: Option<String>,
    /// Print only a line for each seed without findings.
    #[arg(long)]
    quiet: bool,
}

fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    let numbers = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    numbers.filter(|seeds| !seeds.is_empty()).ok_or_else(|| "seeds are A..B, A less than B".to_owned())
}

fn parse_kinds(text: &str) -> Result<Kinds, String> {
    match text {
        "all" => Ok(Kinds::ALL),
        "none" => Ok(Kinds::of(&[])),
        names => {
            let kinds: Result<Vec<Kind>, String> = names.split(',').map(|name| Kind::from_str(name, false)).collect();
            kinds.map(|kinds| Kinds::of(&kinds)).map_err(|why| {
                let all: Vec<_> = Kind::value_variants().iter().filter_map(ValueEnum::to_possible_value).collect();
                let names: Vec<&str> = all.iter().map(|value| value.get_name()).collect();
                format!("{why}; there are {}", names.join(", "))
            })
        }
    }
}

fn parse_rare(text: &str) -> Result<EventChoice, String> {
    match text {
        "drawn" => Ok(EventChoice::Drawn),
        "none" => Ok(EventChoice::None),
        "all" => Ok(EventChoice::All),
        _ => Err("there are drawn, none and all".to_owned()),
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(levels) = &options.log {
        // without times: those of the simulation are not those of the machine
        tracing_subscriber::fmt().with_env_filter(levels).without_time().with_writer(std::io::stderr).init();
    }
    let seeds = options.seeds.clone().unwrap_or(options.seed..options.seed + 1);
    let (mut passed, mut failed, mut events) = (0, 0, 0);
    let mut rare = Coverage::default();
    for seed in seeds {
        let (seconds, steps) = (options.seconds, options.steps);
        let settings = Settings { seed, seconds, steps, kinds: options.faults, rare: options.rare };
        // said before, so that a run that panics is known by its seed too
        let again = replay(options.subject, settings, options.defect);
        eprintln!("{again}");
        let report = run(options.subject, settings, options.defect);
        let is_sound = report.rulings.findings.is_empty();
        print(&report, options.quiet && is_sound);
        events += report.trace.1;
        rare.add(&report.rare);
        match is_sound {
            true => passed += 1,
            false => {
                failed += 1;
                println!("  again: {again}");
            }
        }
    }
    rare.print();
    println!("{events} steps of the simulation\n{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// By rare event: the number of seeds in which it was switched on, of those in which it happened,
/// and how often it happened.
#[derive(Default)]
struct Coverage(BTreeMap<Rare, [u64; 3]>);

impl Coverage {
    fn add(&mut self, figures: &[Figures]) {
        for of_event in figures {
            let [seeds, with, happened] = self.0.entry(of_event.event).or_default();
            *seeds += 1;
            *with += u64::from(of_event.happened > 0);
            *happened += of_event.happened;
        }
    }

    fn print(&self) {
        for (event, [seeds, with, happened]) in &self.0 {
            println!("rare {event:?}: switched on by {seeds} seeds, happened in {with}, {happened} times");
        }
    }
}

/// Prints the troubles of a run, and what each judge says.
fn print(report: &Report, is_short: bool) {
    let (digest, steps) = report.trace;
    let troubles = report.happened.len();
    println!(
        "seed {}: {} operations, {troubles} troubles, {steps} steps, trace {digest:016x}",
        report.seed, report.operations
    );
    if !is_short {
        report.happened.iter().for_each(|line| println!("  {line}"));
        let rare = report.rare.iter().map(|of| format!("{:?} {} of {}", of.event, of.happened, of.reached));
        println!("  rare events: {}", rare.collect::<Vec<_>>().join(", "));
        let silent = report.rulings.judges.iter().filter(|judge| !report.rulings.has_found(judge));
        println!("  nothing found by: {}", silent.copied().collect::<Vec<_>>().join(", "));
    }
    report.rulings.findings.iter().for_each(|finding| println!("  FOUND {finding}"));
}
