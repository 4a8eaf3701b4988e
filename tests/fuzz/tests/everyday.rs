//! Each target's body over its seeds, over seeded mutations of them and over what once was a
//! defect, within a limit of memory: an allocation by an untrusted length ends this process.
//!
//! `HELENUS_SEEDS=a..b` takes other seeds; a failure prints the target, the seed and the input.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use fuzzing::mutate::{Random, mutate};
use fuzzing::{TARGETS, Target, regressions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Bytes of address space beyond those at the start.
const MEMORY_MAX: u64 = 512 * 1024 * 1024;
/// Longer seeds are damaged in fewer rounds: the rounds are so many for seeds up to this.
const SEED_LENGTH: usize = 2000;

fn limit_memory() {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = status.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
    let limit = getrlimit(Resource::As);
    let current = Some(pages * 4096 + MEMORY_MAX);
    setrlimit(Resource::As, Rlimit { current, maximum: limit.maximum }).unwrap();
}

fn feed(target: &Target, what: &str, input: &[u8]) {
    let done = catch_unwind(AssertUnwindSafe(|| (target.body)(input)));
    if done.is_err() {
        let path = std::env::temp_dir().join(format!("helenus-fuzz-{}", target.name));
        std::fs::write(&path, input).unwrap();
        panic!("{} {what}: the input is in {}", target.name, path.display());
    }
}

fn seeds() -> std::ops::Range<u64> {
    let text = std::env::var("HELENUS_SEEDS").unwrap_or_else(|_| "1..2".to_owned());
    let (from, to) = text.split_once("..").expect("HELENUS_SEEDS=a..b");
    from.parse().unwrap()..to.parse().unwrap()
}

#[test]
fn every_target_reads_or_refuses() {
    limit_memory();
    for target in TARGETS {
        for path in regressions(target.name) {
            feed(target, &path.display().to_string(), &std::fs::read(&path).unwrap());
        }
        let inputs = (target.seeds)();
        assert!(!inputs.is_empty(), "{} has no seeds", target.name);
        for (number, input) in inputs.iter().enumerate() {
            feed(target, &format!("seed input {number}"), input);
        }
        for seed in seeds() {
            let mut random = Random::new(seed);
            let mut budget = target.rounds * SEED_LENGTH;
            while budget > 0 {
                let (input, other) = (&inputs[random.below(inputs.len())], &inputs[random.below(inputs.len())]);
                let damaged = mutate(&mut random, input, other);
                feed(target, &format!("seed {seed}"), &damaged);
                budget = budget.saturating_sub(damaged.len().max(SEED_LENGTH));
            }
        }
    }
}

#[test]
fn every_target_has_its_program() {
    for target in TARGETS {
        let path = fuzzing::root().join(format!("fuzz/fuzz_targets/{}.rs", target.name));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(text.contains(&format!("fuzzing::run(\"{}\", data)", target.name)), "{}", path.display());
    }
    let programs = std::fs::read_dir(fuzzing::root().join("fuzz/fuzz_targets")).unwrap().count();
    assert_eq!(programs, TARGETS.len());
}
