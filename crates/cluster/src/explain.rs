//! Reads that are told of: what one would take (EXPLAIN), and what one took (EXPLAIN ANALYZE).
//!
//! The plan is made in the background, as it may touch indexes that are not in memory. What is
//! analysed runs as every read does, inline first; only its sources are opened by way of an
//! [`Observation`].

use std::sync::Arc;

use rows::command::TraceSink;
use rows::dead::{Grace, Passed};
use rows::report::{COMMANDS_MAX, ReadReport, RunReport};
use rows::{PartitionHead, PartitionStream, ReadCommand, ReadContext, ReadError, Unfiltered};
use storage::Observation;
use types::Consistency;

use crate::coordinator::error::FailedRead;
use crate::node::Node;
use crate::replica::apply::within;
use crate::replica::read::{Open, ReadFigures, ReadOutcome, ReadRequest};

impl Node {
    /// Opens reads of this node for somebody who looks on.
    pub fn observed(&self, observation: &Observation) -> Arc<Open> {
        let (engine, observation) = (Arc::clone(&self.engine), observation.clone());
        Arc::new(move |command: &ReadCommand, context: &ReadContext| {
            engine.read_observed(command, context, &observation)
        })
    }

    /// What reading the commands would take.
    pub async fn explain(
        &self,
        commands: Vec<ReadCommand>,
        level: Consistency,
    ) -> Result<ReadReport, FailedRead<ReadError>> {
        let block_for = self.plan_read(&commands, level).map_err(FailedRead::Refused)?;
        let limit = self.timeouts().range;
        let engine = Arc::clone(&self.engine);
        let plan = move || {
            let left_out = commands.len().saturating_sub(COMMANDS_MAX) as u64;
            let told = commands.iter().take(COMMANDS_MAX);
            let planned: Result<Vec<_>, ReadError> = told.map(|command| engine.explain(command)).collect();
            let commands = planned?.into_iter().flatten().collect();
            Ok(ReadReport { commands, commands_left_out: left_out, block_for, ..ReadReport::default() })
        };
        let planned = match within(&self.env, limit, self.env.blocking("explain", plan)).await {
            None => Err(ReadOutcome::TimedOut),
            Some(Err(_)) => Err(ReadOutcome::Overloaded),
            Some(Ok(result)) => result.map_err(ReadOutcome::Failed),
        };
        planned.map_err(|outcome| self.failed_read(outcome, level, block_for))
    }

    /// Builds something from the stream of a read, as [`Node::read`] does, and tells what it took.
    pub async fn analyze<T, E, F>(
        &self,
        commands: Vec<ReadCommand>,
        level: Consistency,
        trace: Option<Arc<dyn TraceSink>>,
        is_blocked: fn(&E) -> bool,
        build: F,
    ) -> Result<(T, ReadReport), FailedRead<E>>
    where
        T: Send + 'static,
        E: From<ReadError> + Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, E> + Send + Sync + 'static,
    {
        let block_for = self.plan_read(&commands, level).map_err(FailedRead::Refused)?;
        let observation = Observation::new();
        let open = self.observed(&observation);
        let grace = grace_of(&commands);
        let env = self.env.clone();
        let timed = move |stream: &mut dyn PartitionStream| {
            let begun = env.now();
            let mut merged = Merged { stream, grace, passed: Passed::default() };
            let built = build(&mut merged)?;
            Ok((built, merged.passed, micros(env.elapsed(begun))))
        };
        let begun = self.env.now();
        let request = ReadRequest { commands, trace, open: Some(open), sought: None, results: None };
        let (limit, figures) = (self.read_limit(&request.commands), ReadFigures::default());
        let read = self.replica.read(request, limit, &figures, is_blocked, timed).await;
        let (built, passed, ran) = read.map_err(|outcome| self.failed_read(outcome, level, block_for))?;
        let micros = micros(self.env.elapsed(begun));
        let (commands, commands_left_out, in_background) = observation.take();
        let run = RunReport { passed, micros, waited_micros: micros.saturating_sub(ran), in_background };
        Ok((built, ReadReport { commands, commands_left_out, run: Some(run), block_for, ..ReadReport::default() }))
    }
}

fn grace_of(commands: &[ReadCommand]) -> Grace {
    commands.first().map_or(Grace { now: 0, seconds: 0 }, |command| Grace {
        now: command.now,
        seconds: u32::try_from(command.table.params.gc_grace_seconds).unwrap_or(0),
    })
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// What the sources put together give, counted.
struct Merged<'a> {
    stream: &'a mut dyn PartitionStream,
    grace: Grace,
    passed: Passed,
}

impl PartitionStream for Merged<'_> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let head = self.stream.next_partition()?;
        if let Some(head) = &head {
            self.passed.head(head, &self.grace);
        }
        Ok(head)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let next = self.stream.next_unfiltered()?;
        if let Some(unfiltered) = &next {
            self.passed.unfiltered(unfiltered, &self.grace);
        }
        Ok(next)
    }
}
