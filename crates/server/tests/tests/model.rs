//! Random CQL histories on a whole node over a simulated machine, against a naive twin: writes and
//! deletes of every kind, TTLs, flushes, compactions, restarts, kills, power cuts. Statements go
//! through parser, planner, coordinator, engine and files, as a client's do.
//!
//! Short by default; `HELENUS_SEEDS=N` runs N seeds. A failure names its seed: the same seed fails
//! the same way.

#[path = "model/node.rs"]
mod node;
#[path = "model/statements.rs"]
mod statements;
#[path = "model/twin.rs"]
mod twin;

use env::Random;
use env::sim::Sim;
use node::SimNode;
use statements::Generator;
use twin::Twin;

/// Seeds of the everyday run.
const SEEDS: u64 = 12;
/// Lives of a machine, one run of the node each.
const LIVES: usize = 3;
/// Most statements of a life.
const STATEMENTS_MAX: u64 = 150;

fn run(seed: u64) {
    let sim = Sim::new(seed);
    let dice = sim.dice();
    let mut twin = Twin::default();
    let mut generator = Generator::new(sim.dice());
    for _ in 0..LIVES {
        let node = SimNode::open(&sim);
        node.execute(statements::KEYSPACE, None);
        node.execute(statements::TABLE, None);
        for _ in 0..dice.below(STATEMENTS_MAX) {
            match dice.below(30) {
                0 => node.flush(),
                1 => node.compact(),
                2 => sim.advance(std::time::Duration::from_secs(dice.below(40))),
                3 => drop(sim.run_until_idle()),
                4..=14 => check(seed, &node, &twin, &generator),
                _ => {
                    let (text, ops) = generator.write(node.now());
                    node.execute(&text, None);
                    twin.apply(ops);
                }
            }
        }
        (0..10).for_each(|_| check(seed, &node, &twin, &generator));
        match dice.below(3) {
            0 => node.drain(),
            1 => sim.kill(),
            _ => sim.power_cut(),
        }
    }
    let node = SimNode::open(&sim);
    (0..10).for_each(|_| check(seed, &node, &twin, &generator));
}

fn check(seed: u64, node: &SimNode, twin: &Twin, generator: &Generator) {
    let query = generator.query();
    let found = node.query(&query.text(), query.page_size);
    let expected = twin.answer(&query, node.now());
    assert_eq!(found, expected, "seed {seed}: {} (pages of {:?})", query.text(), query.page_size);
}

#[test]
fn histories_equal_their_naive_twin() {
    let seeds = std::env::var("HELENUS_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    (0..seeds).for_each(run);
}
