//! `nodetool profileload` and its alias `toppartitions`: samples for a while what is read and
//! written most, and what takes longest.

use std::io;

use crate::nodetool::text::Table;
use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verb::AdminError;
use crate::verbs::{GetSamplingJobs, SAMPLERS, SampleRequest, Samples, ScheduleSampling, StopSampling};

const DURATION: u64 = 10_000;
const CAPACITY_MAX: usize = 1024;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The keyspace, column family name, and duration in milliseconds (Default: 10000)
    args: Vec<String>,
    /// Capacity of the sampler, higher for more accuracy (Default: 256)
    #[arg(short = 's', default_value_t = 256)]
    capacity: usize,
    /// Number of the top samples to list (Default: 10)
    #[arg(short = 'k', default_value_t = 10)]
    count: usize,
    /// Comma separated list of samplers to use (Default: all)
    #[arg(short = 'a')]
    samplers: Option<String>,
    /// Schedule a new job that samples every interval milliseconds (Default: disabled) in the
    /// background
    #[arg(short = 'i', long)]
    interval: Option<u64>,
    /// Stop the scheduled sampling job identified by <keyspace> and <cfname>. Jobs are stopped
    /// until the last schedules complete.
    #[arg(short = 't', long)]
    stop: bool,
    /// List the scheduled sampling jobs
    #[arg(short = 'l', long)]
    list: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let request = self.request()?;
        let of = |name: &Option<String>| name.clone().unwrap_or_else(|| "null".to_owned());
        let (keyspace, table) = (of(&request.keyspace), of(&request.table));
        if self.stop {
            if !context.api.ask(&StopSampling { keyspace: request.keyspace, table: request.table })? {
                writeln!(
                    context.out,
                    "Unable to stop the non-existent scheduled sampling for keyspace: {keyspace}, table: {table}"
                )?;
            }
            return Ok(());
        }
        if let Some(interval) = self.interval {
            if !context.api.ask(&ScheduleSampling { sample: request, interval_millis: interval })? {
                writeln!(
                    context.out,
                    "Unable to schedule sampling for keyspace: {keyspace}, table: {table} due to existing samplings. \
                     Stop the existing sampling jobs first."
                )?;
            }
            return Ok(());
        }
        if self.list {
            return list(context);
        }
        let samples = context.api.ask(&request).map_err(told)?;
        print(&samples, context.out)?;
        Ok(writeln!(context.out)?)
    }

    fn request(&self) -> Result<SampleRequest, VerbError> {
        let (keyspace, table, duration) = match self.args.as_slice() {
            [] => (None, None, None),
            [duration] => (None, None, Some(duration)),
            [keyspace, table] => (Some(keyspace), Some(table), None),
            [keyspace, table, duration] => (Some(keyspace), Some(table), Some(duration)),
            _ => {
                return usage(
                    "Invalid arguments, either [keyspace table/* duration] or [keyspace table/*] or [duration] or no args.\n\
                     Optionally, use * to represent all tables under the keyspace.",
                );
            }
        };
        if self.count == 0 {
            return usage("TopK count (-k) option must have positive value");
        }
        if self.count >= self.capacity {
            return usage("TopK count (-k) option must be smaller then the summary capacity (-s)");
        }
        if self.capacity > CAPACITY_MAX {
            return usage(format!("Capacity (-s) cannot exceed {CAPACITY_MAX}."));
        }
        let duration_millis = match duration.map(|text| text.parse::<i64>()) {
            None => DURATION,
            Some(Ok(duration @ 1..)) => duration.unsigned_abs(),
            Some(Ok(duration)) => return usage(format!("Duration: {duration} must be positive")),
            Some(Err(_)) => {
                let text = duration.map_or("", String::as_str);
                return usage(format!("For input string: \"{text}\""));
            }
        };
        if let Some(interval) = self.interval.filter(|interval| *interval < duration_millis) {
            return usage(format!(
                "Invalid scheduled sampling interval. Expecting interval >= duration, but interval: {interval} ms; \
                 duration: {duration_millis} ms"
            ));
        }
        let named = |name: Option<&String>| name.filter(|name| *name != "*").cloned();
        let (keyspace, table) = (named(keyspace), named(table));
        let (capacity, count, samplers) = (self.capacity, self.count, self.samplers()?);
        Ok(SampleRequest { keyspace, table, duration_millis, capacity, count, samplers })
    }

    fn samplers(&self) -> Result<Vec<String>, VerbError> {
        let all: Vec<&str> = SAMPLERS.iter().map(|sampler| sampler.name).collect();
        let Some(text) = &self.samplers else { return Ok(all.into_iter().map(str::to_owned).collect()) };
        let one = |given: &str| {
            let name = given.trim().to_uppercase();
            match all.contains(&name.as_str()) {
                true => Ok(name),
                false => usage(format!("'{given}' sampler is not available from: [{}]", all.join(", "))),
            }
        };
        text.split(',').map(one).collect()
    }
}

/// A refusal of the node as a line without the hint to `nodetool help`, as Cassandra prints it.
fn told(error: AdminError) -> VerbError {
    match error {
        AdminError::Invalid(text) => VerbError::Failed { text: format!("{text}\n"), code: 1 },
        other => other.into(),
    }
}

fn list(context: &mut Context<'_>) -> Outcome {
    let jobs = context.api.ask(&GetSamplingJobs {})?;
    let keyspaces = jobs.iter().map(|(keyspace, _)| keyspace.len());
    let width = keyspaces.chain(["KEYSPACE".len()]).max().unwrap_or(0);
    writeln!(context.out, "{:>width$} {:>5}", "KEYSPACE", "TABLE")?;
    for (keyspace, table) in jobs {
        writeln!(context.out, "{keyspace:>width$} {table:>5}")?;
    }
    Ok(())
}

/// Prints samples: a table for each sampler, with an empty line between them. Agrees with
/// `SamplingManager.formatResult`.
pub fn print(samples: &Samples, out: &mut dyn io::Write) -> io::Result<()> {
    let mut is_first = true;
    for sampler in SAMPLERS {
        let Some((_, samples)) = samples.iter().find(|(name, _)| name == sampler.name) else { continue };
        if !std::mem::replace(&mut is_first, false) {
            writeln!(out)?;
        }
        writeln!(out, "{}", sampler.title())?;
        if samples.is_empty() {
            writeln!(out, "   Nothing recorded during sampling period...")?;
            continue;
        }
        let mut table = Table::new();
        sampler.rows(samples).into_iter().for_each(|row| table.add(row));
        table.print(out)?;
    }
    Ok(())
}
