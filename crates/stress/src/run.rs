//! Runs: a number of concurrent operations until the end of the run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use scylla::client::session::Session;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use crate::measure::{Figures, Meter, Series, Tally, Uncertainty};
use crate::pace::Pace;
use crate::report::{Finished, Reports};
use crate::seeds::Source;
use crate::settings::Settings;
use crate::settings::command::{Command, Truncate};
use crate::settings::output::Level;
use crate::workload::{Done, Next, Operation, Streak, Workload};
use crate::{Error, Result, counter_table, profile, session, standard};

/// Most operations of a warm-up, which has a quarter of the run's.
const WARM_UP: u64 = 50_000;
/// Number of runs in a row without a gain after which the search for the best number of threads
/// ends.
const RUNS_WITHOUT_GAIN_MAX: usize = 3;
/// Pause between runs that write, so that one run does not slow down the next.
const PAUSE: Duration = Duration::from_secs(5);
/// Pause before an operation is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(10);
/// The failure of a run that was ended with Ctrl-C.
const INTERRUPTED: &str = "interrupted: the results are those until then";

/// Runs everything that the command line asks for.
pub async fn all(settings: Settings) -> Result<()> {
    let session = Arc::new(session::connect(&settings).await?);
    let mut reports = Reports::new(&settings, session::server(&session).await?)?;
    let (workload, tables) = prepare(&session, &settings).await?;
    let workload = Arc::new(workload);
    if settings.load.count == Some(0) {
        return reports.say("n=0: the schema is there, nothing else was done.");
    }
    if settings.load.warm_up {
        warm_up(&settings, &workload, &mut reports).await?;
    }
    if settings.load.truncate == Truncate::Once {
        truncate(&session, &tables).await?;
    }
    let mut runs: Vec<Finished> = Vec::new();
    let mut threads = settings.rate.threads.unwrap_or(settings.rate.at_least);
    // from here on there are results, which Ctrl-C does not throw away
    let mut interrupts = signal(SignalKind::interrupt())?;
    loop {
        if settings.load.truncate == Truncate::Always {
            truncate(&session, &tables).await?;
        }
        let (run, failure) = one(&settings, &workload, threads, &mut reports, &mut interrupts).await?;
        runs.push(run);
        if let Some(failure) = failure {
            reports.end(&runs, "FAILURE")?;
            return Err(failure);
        }
        threads = if threads < 16 { threads * 2 } else { threads * 3 / 2 };
        let searching = settings.rate.threads.is_none() && threads <= settings.rate.at_most;
        if !searching || (settings.rate.auto && is_saturated(&runs)) {
            break;
        }
        // a Ctrl-C in the pause ends the run behind it
        if settings.writes() {
            tokio::time::sleep(PAUSE).await;
        }
    }
    reports.end(&runs, "END")
}

/// Creates the schema and prepares statements; also returns the tables that are loaded.
async fn prepare(session: &Arc<Session>, settings: &Settings) -> Result<(Workload, Vec<String>)> {
    if let Command::User(files, parts) = &settings.load.command {
        return profile::prepare(session, settings, files, parts).await;
    }
    standard::create(session, settings).await?;
    let single = [(settings.load.command.clone(), 1.0)];
    let parts = match &settings.load.command {
        Command::Mixed(parts) => parts.as_slice(),
        _ => &single,
    };
    let mut operations: Vec<(Arc<dyn Operation>, f64)> = Vec::new();
    for (command, weight) in parts {
        let operation: Arc<dyn Operation> = match command {
            Command::Write => Arc::new(standard::Write::new(session, settings).await?),
            Command::Read => Arc::new(standard::Read::new(session, settings).await?),
            Command::CounterWrite => Arc::new(counter_table::Add::new(session, settings).await?),
            Command::CounterRead => Arc::new(counter_table::Get::new(session, settings).await?),
            Command::Mixed(_) | Command::User(..) => return Err("a mix holds simple commands only".into()),
        };
        operations.push((operation, *weight));
    }
    let keyspace = &settings.schema.keyspace;
    let workload = Workload::new(operations, settings.load.streak.clone());
    Ok((workload, vec![format!("\"{keyspace}\".standard1"), format!("\"{keyspace}\".counter1")]))
}

async fn truncate(session: &Session, tables: &[String]) -> Result<()> {
    for table in tables {
        session.query_unpaged(format!("TRUNCATE {table}"), ()).await?;
    }
    Ok(())
}

async fn warm_up(settings: &Settings, workload: &Arc<Workload>, reports: &mut Reports) -> Result<()> {
    let count = settings.load.count.map_or(WARM_UP, |count| (count / 4).min(WARM_UP));
    if count == 0 {
        return Ok(());
    }
    reports.say(&format!("Warming up with {count} operations (no-warmup leaves that out) ..."))?;
    let threads = settings.rate.threads.unwrap_or(settings.rate.at_least).min(100);
    let source = Arc::new(Source::new(settings.population.clone(), Some(count)));
    let mut load = Load::start(settings, workload, source, threads, None);
    load.wait().await
}

/// Whether the last runs were on average no faster than those before.
fn is_saturated(runs: &[Finished]) -> bool {
    let Some(first) = runs.len().checked_sub(RUNS_WITHOUT_GAIN_MAX + 1) else { return false };
    let gain: f64 =
        runs[first..].windows(2).map(|pair| pair[1].total.per_second / pair[0].total.per_second - 1.0).sum();
    gain / RUNS_WITHOUT_GAIN_MAX as f64 <= 0.0
}

/// One run; also the reason why it ended early, if it did. Ctrl-C lets the operations that are
/// under way end; a second one does not wait for them.
async fn one(
    settings: &Settings,
    workload: &Arc<Workload>,
    threads: usize,
    reports: &mut Reports,
    interrupts: &mut Signal,
) -> Result<(Finished, Option<Error>)> {
    reports.begin(settings, threads)?;
    let source = Arc::new(Source::new(settings.population.clone(), settings.load.count));
    let begun = Instant::now();
    let mut load = Load::start(settings, workload, source.clone(), threads, settings.rate.per_second);
    let (mut series, mut uncertainty) = (Series::default(), Uncertainty::default());
    let mut totals: Vec<(String, Tally)> = load.meters.iter().map(|meter| (meter.name.clone(), Tally::new())).collect();
    let (mut last, mut is_over, mut failure) = (begun, false, None);
    let mut is_interrupted = false;
    while !is_over {
        tokio::select! {
            () = tokio::time::sleep_until((last + settings.output.interval).into()) => {}
            ended = load.wait() => { is_over = true; failure = ended.err(); }
            _ = interrupts.recv() => {
                if is_interrupted {
                    return Err(INTERRUPTED.into());
                }
                is_interrupted = true;
                source.stop();
            }
        }
        let now = Instant::now();
        let (at, seconds) = ((now - begun).as_secs_f64(), (now - last).as_secs_f64());
        let mut together = Tally::new();
        for (meter, (_, total)) in load.meters.iter().zip(&mut totals) {
            let tally = meter.take();
            if load.meters.len() > 1 && tally.operations > 0 {
                reports.line(
                    &meter.name,
                    total.operations + tally.operations,
                    &Figures::of(&tally, at, seconds),
                    &uncertainty,
                )?;
            }
            together.add(&tally);
            total.add(&tally);
        }
        let figures = Figures::of(&together, at, seconds);
        let so_far: u64 = totals.iter().map(|(_, total)| total.operations).sum();
        // the last interval of a run is short and says little about the rate
        if !is_over && !is_interrupted {
            uncertainty.push(figures.per_second);
        }
        if together.operations > 0 {
            reports.line("total", so_far, &figures, &uncertainty)?;
        }
        reports.interval(last, now, &together.response)?;
        series.push(figures);
        let timed_out = settings.load.duration.is_some_and(|duration| now - begun >= duration);
        let endless = settings.load.count.is_none() && settings.load.duration.is_none();
        if timed_out || (endless && uncertainty.is_enough(settings.load.uncertainty, settings.load.measurements)) {
            source.stop();
        }
        last = now;
    }
    let finished = Finished::new(threads, begun.elapsed().as_secs_f64(), totals, series);
    reports.finished(&finished)?;
    Ok((finished, failure.or_else(|| is_interrupted.then(|| INTERRUPTED.into()))))
}

/// The operations of a run.
struct Load {
    meters: Vec<Arc<Meter>>,
    tasks: JoinSet<Result<()>>,
    source: Arc<Source>,
    /// The first failure.
    failure: Option<Error>,
}

impl Load {
    fn start(
        settings: &Settings,
        workload: &Arc<Workload>,
        source: Arc<Source>,
        threads: usize,
        per_second: Option<f64>,
    ) -> Self {
        let meters: Vec<Arc<Meter>> =
            workload.operations.iter().map(|operation| Arc::new(Meter::new(operation.name()))).collect();
        workload.operations.iter().for_each(|operation| operation.begin());
        let pace = per_second.map(|rate| Arc::new(Pace::new(rate)));
        let mut tasks = JoinSet::new();
        for thread in 0..threads {
            let worker = Worker {
                workload: workload.clone(),
                source: source.clone(),
                pace: pace.clone(),
                fixed: settings.rate.fixed,
                tries: settings.errors.retries + 1,
                ignore: settings.errors.ignore,
                level: settings.output.level,
                meters: meters.iter().map(|meter| (meter.clone(), meter.place())).collect(),
                random: SmallRng::seed_from_u64(thread as u64),
            };
            tasks.spawn(worker.run());
        }
        Self { meters, tasks, source, failure: None }
    }

    /// Waits until all operations have ended; the first failure ends the others. Waiting may be
    /// given up and begun again.
    async fn wait(&mut self) -> Result<()> {
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended.map_err(Into::into).and_then(|ended| ended) {
                self.source.stop();
                self.failure.get_or_insert(error);
            }
        }
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// Executes one operation after the other.
struct Worker {
    workload: Arc<Workload>,
    source: Arc<Source>,
    pace: Option<Arc<Pace>>,
    fixed: bool,
    tries: u32,
    ignore: bool,
    level: Level,
    meters: Vec<(Arc<Meter>, usize)>,
    random: SmallRng,
}

impl Worker {
    async fn run(mut self) -> Result<()> {
        let mut streak = Streak::default();
        while let Some(next) = self.workload.next(&self.source, &mut streak, &mut self.random) {
            let operation = self.workload.operations[next.kind].clone();
            let intended = self.pace.as_ref().map(|pace| pace.next());
            if let Some(intended) = intended {
                tokio::time::sleep_until(intended.into()).await;
                // the run may have ended during a long wait
                if self.source.is_stopped() {
                    operation.ended(&next.visits);
                    return Ok(());
                }
            }
            let sent = Instant::now();
            let since = if self.fixed { intended.unwrap_or(sent) } else { sent };
            let (answer, retries) = self.attempt(&operation, &next).await;
            let (meter, place) = &self.meters[next.kind];
            meter.record(*place, since.elapsed(), sent.elapsed(), answer.as_ref().ok(), retries);
            operation.ended(&next.visits);
            if operation.is_write() {
                next.visits.iter().for_each(|visit| self.source.wrote(visit));
            }
            if let Err(error) = answer {
                let text = format!(
                    "{} of seed {} failed {} times: {error}",
                    meter.name, next.visits[0].seed as i64, self.tries
                );
                if !self.ignore {
                    return Err(text.into());
                }
                if self.level >= Level::Normal {
                    eprintln!("{text}");
                }
            }
        }
        Ok(())
    }

    /// Tries an operation until it succeeds. Also returns the number of attempts beyond the first.
    async fn attempt(&self, operation: &Arc<dyn Operation>, next: &Next) -> (Result<Done>, u64) {
        for retries in 0..u64::from(self.tries) - 1 {
            match operation.run(&next.visits, next.draw).await {
                Ok(done) => return (Ok(done), retries),
                Err(error) => {
                    if self.level == Level::Verbose {
                        eprintln!("{} of seed {}: {error}", operation.name(), next.visits[0].seed as i64);
                    }
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
        (operation.run(&next.visits, next.draw).await, u64::from(self.tries) - 1)
    }
}
