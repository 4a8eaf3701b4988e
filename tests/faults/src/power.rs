//! Power cuts of the real program: kill -9 at random moments, while writing and while starting, and
//! each time the directory keeps only what was synced, and of the rest any subset of sectors and
//! names. Everything acknowledged is there afterwards, nothing is invented, and every start
//! succeeds.
//!
//! In the end the judge is judged: with a disk that lies about syncs something acknowledged has to
//! be missed.

use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Duration, sleep};

use crate::Outcome;
use crate::kill::{Observers, settings, write_and_kill};
use crate::node::Node;
use crate::recorder::{Recorder, Twin};
use crate::report::Report;

/// A start loses its power at the latest after this.
const STARTING_MAX_MS: u64 = 200;
/// A line of progress comes after so many rounds.
const PROGRESS_EVERY: u32 = 20;
/// A lying disk has to be found out within so many power cuts.
const LIES_MAX: u32 = 12;
/// Syncs about which a disk may lie: of the log's segments, and of the names of segments.
const LIES: [&str; 2] = ["*/CommitLog-*", "*/commitlog"];

/// A server on a machine whose power can be cut.
struct Machine {
    node: Node,
    recorder: Recorder,
    twin: Twin,
    /// Syncs about which the disk lies.
    lies: Option<&'static str>,
    /// Changes of the directory so far.
    changes: usize,
}

impl Machine {
    fn new(program: &Path, place: &Path, seed: u64, lies: Option<&'static str>) -> Outcome<Self> {
        let data = place.join("data");
        if data.exists() {
            std::fs::remove_dir_all(&data)?;
        }
        std::fs::create_dir_all(&data)?;
        let data = data.canonicalize()?;
        let recorder = Recorder::new(place).map_err(|error| format!("no library before libc: {error}"))?;
        let node = Node::new(program, &data, &place.join("log"))?;
        Ok(Self { node, recorder, twin: Twin::new(&data, seed), lies, changes: 0 })
    }

    fn spawn(&mut self, arguments: &[String]) -> Outcome {
        let variables = self.recorder.variables(self.node.data(), self.lies)?;
        self.node.set_variables(variables);
        self.node.spawn(arguments)
    }

    async fn start(&mut self, arguments: &[String]) -> Outcome {
        self.spawn(arguments)?;
        self.node.ready().await.map(drop)
    }

    /// The power goes; the process was killed before.
    fn cut(&mut self) -> Outcome {
        self.changes += self.twin.replay(&self.recorder)?;
        self.twin.cut()
    }
}

/// Cuts the power `rounds` times, each time at a drawn moment, and looks at what is left.
pub async fn run(program: &Path, place: &Path, seed: u64, rounds: u32, report: &mut Report) -> Outcome {
    let mut random = StdRng::seed_from_u64(seed);
    let mut machine = Machine::new(program, place, seed, None)?;
    machine.start(&settings(&mut random)).await?;
    let mut observers = Observers::new(&machine.node.session().await?, seed).await?;
    let mut starts_cut = 0;
    for round in 1..=rounds {
        let written = write_and_kill(&mut machine.node, &mut observers, &mut random).await;
        report.check(written, || format!("round {round}, writing"));
        machine.cut()?;
        let sets = settings(&mut random);
        while random.random_range(0..3) == 0 {
            machine.spawn(&sets)?;
            sleep(Duration::from_millis(random.random_range(0..STARTING_MAX_MS))).await;
            report.check(machine.node.kill().await, || format!("round {round}, a start without power"));
            machine.cut()?;
            starts_cut += 1;
        }
        machine.start(&sets).await.map_err(|error| format!("round {round}: {error}"))?;
        let verified = observers.verify(&machine.node.session().await?).await;
        report.check(verified, || format!("round {round}, what is there after it"));
        if round % PROGRESS_EVERY == 0 {
            println!("{round} power cuts, {} statements acknowledged", observers.acknowledged());
        }
    }
    report.check(machine.node.no_panic(), || "the log".to_owned());
    report.check(machine.node.stop().await, || "the last stop".to_owned());
    machine.changes += machine.twin.replay(&machine.recorder)?;
    report.check(machine.twin.check(), || "the journal has every change".to_owned());
    println!(
        "{rounds} power cuts while writing, {starts_cut} while starting, {} changes of files, {} statements acknowledged",
        machine.changes,
        observers.acknowledged()
    );
    for lies in LIES {
        let found = find_out(program, place, &mut random, lies).await?;
        if let Some(cuts) = found {
            println!("a disk that lies about {lies} is found out after {cuts} power cuts");
        }
        let found = found.map(drop).ok_or_else(|| "nothing is missed".into());
        report.check(found, || format!("a disk that lies about {lies}"));
    }
    Ok(())
}

/// After how many power cuts of a disk that lies the observers, or a start, miss something.
async fn find_out(program: &Path, place: &Path, random: &mut StdRng, lies: &'static str) -> Outcome<Option<u32>> {
    let place = place.join("lies");
    std::fs::create_dir_all(&place)?;
    let mut machine = Machine::new(program, &place, random.random(), Some(lies))?;
    machine.start(&settings(random)).await?;
    let mut observers = Observers::new(&machine.node.session().await?, random.random()).await?;
    for cut in 1..=LIES_MAX {
        write_and_kill(&mut machine.node, &mut observers, random).await?;
        machine.cut()?;
        if machine.start(&settings(random)).await.is_err() {
            return Ok(Some(cut));
        }
        // the schema may be gone too: then a statement fails
        let session = machine.node.session().await;
        let verified = match session {
            Ok(session) => observers.verify(&session).await,
            Err(error) => Err(error),
        };
        if verified.is_err() {
            machine.node.kill().await?;
            return Ok(Some(cut));
        }
    }
    Ok(None)
}
