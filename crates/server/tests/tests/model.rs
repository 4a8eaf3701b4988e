//! Random CQL histories on a whole node over a simulated machine, against naive twins: writes and
//! deletes of every kind, TTLs, logged batches, conditional statements, counters, flushes,
//! compactions, restarts, kills, power cuts. Statements go through parser, planner, coordinator,
//! engine and files, as a client's do. A machine also dies while statements are under way.
//!
//! Short by default; `HELENUS_SEEDS=N` runs N seeds. A failure names its seed: the same seed fails
//! the same way.

#[path = "model/conditional.rs"]
mod conditional;
#[path = "model/counters.rs"]
mod counters;
#[path = "model/histories.rs"]
mod histories;
#[path = "model/node.rs"]
mod node;
#[path = "model/statements.rs"]
mod statements;
#[path = "model/twin.rs"]
mod twin;

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cql::QueryOptions;
use env::Random;
use env::sim::{Sim, SimRandom};
use histories::{Histories, Write};
use node::SimNode;
use statements::{Generator, Query};
use types::Consistency;

/// Seeds of the everyday run.
const SEEDS: u64 = 12;
/// Lives of a machine, one run of the node each.
const LIVES: usize = 3;
/// Most statements of a life.
const STATEMENTS_MAX: u64 = 150;
/// Most statements that are under way when a machine dies.
const UNDER_WAY_MAX: u64 = 3;

/// Counts of a run, to see that the troubles it is for were there.
#[derive(Default, Debug)]
struct Figures {
    /// Conditional statements that applied.
    applied: usize,
    /// Conditional statements that did not.
    not_applied: usize,
    /// Statements under way when a machine died.
    under_way: usize,
    /// Histories, but one a start, that were possible before all tables were read.
    forks: usize,
    /// Histories, but one a start, that were possible after all tables were read.
    unknown: usize,
}

struct Model<'a> {
    sim: &'a Sim,
    dice: SimRandom,
    histories: Histories,
    generator: Generator,
    figures: Figures,
}

impl<'a> Model<'a> {
    fn new(sim: &'a Sim) -> Self {
        let (histories, generator) = (Histories::new(sim.seed()), Generator::new(sim.dice()));
        Self { sim, dice: sim.dice(), histories, generator, figures: Figures::default() }
    }

    fn open(&self) -> SimNode<'a> {
        let node = SimNode::open(self.sim);
        for statement in [statements::KEYSPACE, statements::TABLE, conditional::TABLE, counters::TABLE] {
            node.execute(statement);
        }
        node
    }

    /// A statement with its effect. `partition` is that of a conditional statement.
    fn draw(&mut self, now: u32, partition: i32) -> (String, Write) {
        match self.dice.below(10) {
            0..=2 => {
                let statement = conditional::Statement::draw(&self.dice, partition);
                (statement.text(), Write::Conditional(statement))
            }
            3..=4 => {
                let statement = counters::Statement::draw(&self.dice);
                (statement.text(), Write::Counters(statement))
            }
            _ => {
                let (text, ops) = self.generator.write(now);
                (text, Write::Rows(ops))
            }
        }
    }

    fn write(&mut self, node: &SimNode) {
        let partition = self.dice.below(conditional::PARTITIONS) as i32;
        let (text, write) = self.draw(node.now(), partition);
        match write {
            Write::Conditional(statement) if statement.is_conditional() => {
                let applied = node.query(&text, QueryOptions::default())[0][0] == "true";
                *if applied { &mut self.figures.applied } else { &mut self.figures.not_applied } += 1;
                self.histories.apply_conditional(&statement, applied);
            }
            write => {
                node.execute(&text);
                self.histories.apply(&write);
            }
        }
    }

    /// One life: writes, reads, flushes, compactions.
    fn live(&mut self, node: &SimNode) {
        for _ in 0..self.dice.below(STATEMENTS_MAX) {
            match self.dice.below(36) {
                0 => node.flush(),
                1 => node.compact(),
                2 => self.sim.advance(Duration::from_secs(self.dice.below(40))),
                3 => drop(self.sim.run_until_idle()),
                4..=14 => self.check_query(node),
                15 => self.check_conditional(node),
                16 => self.check_counters(node),
                _ => self.write(node),
            }
        }
    }

    /// Ends a life; statements may be under way then. Which of them were executed is found when
    /// the tables are read again.
    fn die(&mut self, node: &SimNode) {
        match self.dice.below(4) {
            0 => return node.drain(),
            1 => self.sim.disk().power_cut_after(self.dice.below(12)),
            _ => {}
        }
        // two conditional statements on one partition would depend on each other
        let count = self.dice.below(UNDER_WAY_MAX + 1);
        let drawn: Vec<_> = (0..count).map(|k| self.draw(node.now(), k as i32)).collect();
        let mut under_way: Vec<_> = drawn.iter().map(|(text, _)| (node.begin(text), Poll::Pending)).collect();
        for _ in 0..self.dice.below(6) {
            for (request, polled) in under_way.iter_mut().filter(|(_, polled)| polled.is_pending()) {
                *polled = request.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            self.sim.step();
        }
        // a statement that fails because the disk is gone may have been executed
        let done: Vec<bool> = under_way.iter().map(|(_, polled)| *polled == Poll::Ready(true)).collect();
        if self.dice.chance(50) {
            self.sim.kill()
        } else {
            self.sim.power_cut()
        }
        for ((_, write), is_done) in drawn.iter().zip(done) {
            if is_done { self.histories.apply(write) } else { self.histories.apply_perhaps(write) }
        }
        self.figures.under_way += drawn.len();
    }

    fn check_query(&mut self, node: &SimNode) {
        let query: Query = self.generator.query();
        let found = node.query(&query.text(), QueryOptions { page_size: query.page_size, ..QueryOptions::default() });
        self.histories.check_query(&query, node.now(), &found);
    }

    fn check_conditional(&mut self, node: &SimNode) {
        for k in 0..conditional::PARTITIONS as i32 {
            let text = format!("SELECT k, c, s, v FROM c WHERE k = {k}");
            let consistency = if self.dice.chance(50) { Consistency::Serial } else { Consistency::One };
            let found = node.query(&text, QueryOptions { consistency, ..QueryOptions::default() });
            self.histories.check(&text, &found, |twins| twins.conditional.rows(k));
        }
    }

    fn check_counters(&mut self, node: &SimNode) {
        let text = "SELECT k, c, n FROM n";
        let mut found = node.query(text, QueryOptions::default());
        found.sort();
        self.histories.check(text, &found, |twins| twins.counters.rows());
    }

    /// Reads all of the tables.
    fn check_all(&mut self, node: &SimNode) {
        let (query, before) = (Query::everything(), self.histories.count());
        let found = node.query(&query.text(), QueryOptions::default());
        self.histories.check_query(&query, node.now(), &found);
        self.check_conditional(node);
        self.check_counters(node);
        (0..10).for_each(|_| self.check_query(node));
        self.figures.forks += before - 1;
        self.figures.unknown += self.histories.count() - 1;
    }
}

fn run(seed: u64) -> Figures {
    let sim = Sim::new(seed);
    let mut model = Model::new(&sim);
    for _ in 0..LIVES {
        let node = model.open();
        model.check_all(&node);
        model.live(&node);
        model.check_all(&node);
        model.die(&node);
    }
    model.check_all(&model.open());
    model.figures
}

#[test]
fn histories_equal_their_naive_twins() {
    let seeds = std::env::var("HELENUS_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let all: Vec<Figures> = (0..seeds).map(run).collect();
    let sum = |of: fn(&Figures) -> usize| all.iter().map(of).sum::<usize>();
    let figures = [
        sum(|run| run.applied),
        sum(|run| run.not_applied),
        sum(|run| run.under_way),
        sum(|run| run.forks),
        sum(|run| run.unknown),
    ];
    println!("applied, not applied, under way, histories forked, histories still unknown: {figures:?}");
    assert!(figures[..4].iter().all(|figure| *figure > 0), "the runs lack something: {figures:?}");
}
