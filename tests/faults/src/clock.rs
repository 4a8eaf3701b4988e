//! A wall clock that jumps forwards and back by hours while the server works: no statement fails,
//! each later write wins, what expires does so by the clock, and what was acknowledged is there
//! after a kill.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::Outcome;
use crate::inject::Injection;
use crate::kill::{Observers, settings, upkeep};
use crate::node::Node;
use crate::report::Report;
use crate::writer::HarmSignals;

/// Between two jumps.
const BETWEEN_MAX_MS: u64 = 400;
/// Between the last jump and a kill.
const MARKED: Duration = Duration::from_millis(500);
/// Jumps of a round.
const JUMPS: u32 = 4;
/// The clock is at most so far from what it should be.
const HOURS_MAX: i64 = 12;

/// So many rounds.
pub async fn run(program: &Path, place: &Path, seed: u64, rounds: u32, report: &mut Report) -> Outcome {
    let injection = Injection::new(place).map_err(|error| format!("no library before libc: {error}"))?;
    let mut random = StdRng::seed_from_u64(seed);
    let mut node = Node::new(program, &place.join("data"), &place.join("log"))?;
    node.set_variables(injection.variables());
    node.start(&settings(&mut random)).await?;
    let mut observers = Observers::new(&node.session().await?, seed).await?;
    for round in 1..=rounds {
        let worked = jump(&node, &injection, &mut observers, &mut random).await;
        report.check(worked, || format!("round {round}, jumps"));
        let before = observers.verify(&node.session().await?).await;
        report.check(before, || format!("round {round}, what is there after them"));
        report.check(node.kill().await, || format!("round {round}, killed"));
        // the machine's clock is set while the server is down, too
        injection.set_clock(random.random_range(-HOURS_MAX..=HOURS_MAX) * 3600)?;
        node.start(&settings(&mut random)).await.map_err(|error| format!("round {round}: {error}"))?;
        let after = observers.verify(&node.session().await?).await;
        report.check(after, || format!("round {round}, what is there after a kill"));
    }
    report.check(expires(&node, &injection).await, || "a row that expires".to_owned());
    report.check(node.no_panic(), || "the log".to_owned());
    report.check(node.stop().await, || "the last stop".to_owned());
    println!("{} jumps, {} statements acknowledged", rounds * JUMPS, observers.acknowledged());
    Ok(())
}

async fn jump(node: &Node, injection: &Injection, observers: &mut Observers, random: &mut StdRng) -> Outcome {
    let session = node.session().await?;
    let meanwhile = async {
        for _ in 0..JUMPS {
            let seconds = random.random_range(-HOURS_MAX * 3600..=HOURS_MAX * 3600);
            injection.set_clock(seconds)?;
            let time = Duration::from_millis(random.random_range(50..BETWEEN_MAX_MS));
            upkeep(node, random, time).await;
        }
        // the server marks how far its timestamps are five times a second
        upkeep(node, random, MARKED).await;
        Ok(())
    };
    // nothing is harmed: no statement may fail
    observers.work(session, meanwhile, Arc::new(HarmSignals::default())).await
}

/// A row with a TTL of an hour goes when the clock says so.
async fn expires(node: &Node, injection: &Injection) -> Outcome {
    let session = node.session().await?;
    injection.set_clock(0)?;
    session.query_unpaged("INSERT INTO observed.decided (id, n) VALUES (-5, 1) USING TTL 3600", &[]).await?;
    for (hours, rows) in [(0, 1), (2, 0)] {
        injection.set_clock(hours * 3600)?;
        let answer = session.query_unpaged("SELECT n FROM observed.decided WHERE id = -5", &[]).await?;
        let seen = answer.into_rows_result()?.rows_num();
        if seen != rows {
            return Err(format!("{seen} rows after {hours} hours, {rows} expected").into());
        }
    }
    Ok(())
}
