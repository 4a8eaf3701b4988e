//! Samples for `nodetool profileload`: a session of `cluster::sampling` for some time, once or as a
//! job again and again. Agrees with `StorageService.samplePartitions` and
//! `org.apache.cassandra.metrics.SamplingManager`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admin::verbs::{GetSamplingJobs, Sample, SampleRequest, Samples, ScheduleSampling, StopSampling};
use admin::{Functions, Result};
use cluster::operations::tables;
use cluster::sampling::{Sampled, Sampler, Session, SessionId};
use env::{Next, Wake};
use schema::TableMetadata;

use super::{NodeAdmin, failed, invalid, runtime};
use crate::services::Services;

/// Most calls that wait for their samples at one time, and most jobs. A further call or job is
/// refused.
const SESSIONS_MAX: usize = 8;
/// The longest that a call waits for its samples, milliseconds.
const DURATION_MAX: u64 = 3_600_000;

/// The name of a job: keyspace and table, `*` for all.
type JobName = (String, String);

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(sample).add(schedule).add(stop).add(jobs);
}

/// Jobs that sample again and again.
#[derive(Default)]
pub(super) struct SamplingJobs {
    jobs: Mutex<BTreeMap<JobName, Job>>,
    /// Number of calls that wait for their samples.
    calls: Mutex<usize>,
}

/// A job; its task ends when this is dropped.
struct Job {
    stopped: Arc<AtomicBool>,
    _wake: Wake,
}

fn name_of(keyspace: Option<&str>, table: Option<&str>) -> JobName {
    let name = |name: Option<&str>| name.unwrap_or("*").to_owned();
    (name(keyspace), name(table))
}

fn not_found<T>(keyspace: &str, table: Option<&str>) -> Result<T> {
    invalid(format!("ColumnFamilyStore for {keyspace}/{} not found.", table.unwrap_or("*")))
}

fn session(admin: &NodeAdmin, request: &SampleRequest) -> Result<Session> {
    let schema = admin.services.node.schema();
    let tables = match (&request.keyspace, &request.table) {
        (None, None) => None,
        (None, Some(_)) => return invalid("a table without its keyspace"),
        (Some(keyspace), table) => {
            let Some(known) = schema.keyspace(keyspace).filter(|known| !known.is_virtual) else {
                return not_found(keyspace, table.as_deref());
            };
            let wanted = |of: &&Arc<TableMetadata>| table.as_ref().is_none_or(|name| of.name == *name);
            let tables: Vec<_> = known.tables.values().filter(wanted).map(|table| table.id).collect();
            if let Some(table) = table.as_ref().filter(|_| tables.is_empty()) {
                return not_found(keyspace, Some(table));
            }
            Some(tables)
        }
    };
    if !(1..=DURATION_MAX).contains(&request.duration_millis) {
        return invalid(format!("Sampling duration {} must be positive.", request.duration_millis));
    }
    let known = |name: &String| match Sampler::from_name(name) {
        Some(sampler) => Ok(sampler),
        None => invalid(format!("'{name}' is no sampler")),
    };
    let samplers = request.samplers.iter().map(known).collect::<Result<_>>()?;
    Ok(Session { tables, samplers, capacity: request.capacity.clamp(1, 1024) })
}

/// Begins a sampling session, and waits on this thread until its time is over.
fn sample(admin: &NodeAdmin, request: &SampleRequest) -> Result<Samples> {
    let session = session(admin, request)?;
    let _admission = Admission::take(&admin.sampling)?;
    let services = &admin.services;
    let id = services.node.sampling.begin(session);
    let duration = Duration::from_millis(request.duration_millis);
    // a timer is made where its runtime is
    let slept = runtime().map(|runtime| runtime.block_on(async { services.node.env.sleep(duration).await }));
    let samples = end(services, id, request);
    slept.map(|()| samples)
}

/// The right of a call to wait for a sampling session; given back when dropped.
struct Admission<'a>(&'a SamplingJobs);

impl<'a> Admission<'a> {
    fn take(jobs: &'a SamplingJobs) -> Result<Self> {
        let mut calls = jobs.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if *calls >= SESSIONS_MAX {
            return Err(failed("Sampling already in progress"));
        }
        *calls += 1;
        Ok(Self(jobs))
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        *self.0.calls.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

/// Ends a session; gives the top of each sampler over all tables.
fn end(services: &Services, id: SessionId, request: &SampleRequest) -> Samples {
    let sampled = services.node.sampling.end(id, request.count);
    let of = |name: &String| {
        let of_sampler = sampled.iter().filter(|sampled| sampled.sampler.name() == name);
        let mut all: Vec<Sample> = of_sampler.flat_map(|sampled| in_words(services, sampled)).collect();
        all.sort_by_key(|sample| std::cmp::Reverse(sample.count));
        all.truncate(request.count);
        (name.clone(), all)
    };
    request.samplers.iter().map(of).collect()
}

fn in_words(services: &Services, sampled: &Sampled) -> Vec<Sample> {
    // None: the table was dropped meanwhile
    let Some(store) = tables::of_id(&services.node, sampled.table) else { return Vec::new() };
    let table = store.table();
    let value = |item: &[u8]| match sampled.sampler {
        Sampler::LocalReadTime => String::from_utf8_lossy(item).into_owned(),
        _ => table.partition_key_text(item),
    };
    let one = |counted: &metrics::top::Counted<bytes::Bytes>| Sample {
        table: format!("{}.{}", table.keyspace, table.name),
        value: value(&counted.item),
        count: counted.count,
        error: counted.error,
    };
    sampled.top.iter().map(one).collect()
}

/// Starts a job. False: the tables are being sampled already.
fn schedule(admin: &NodeAdmin, request: &ScheduleSampling) -> Result<bool> {
    let ScheduleSampling { sample: request, interval_millis } = request;
    let interval_millis = *interval_millis;
    let session = session(admin, request)?;
    if !(request.duration_millis..=DURATION_MAX).contains(&interval_millis) {
        return invalid("the interval must be at least the duration");
    }
    let name = name_of(request.keyspace.as_deref(), request.table.as_deref());
    let mut jobs = admin.sampling.jobs.lock().unwrap_or_else(PoisonError::into_inner);
    let overlaps = |other: &JobName| {
        let all = |name: &JobName| name.0 == "*";
        all(other) || all(&name) || *other == name || *other == (name.0.clone(), "*".to_owned())
    };
    if jobs.keys().any(overlaps) || jobs.len() >= SESSIONS_MAX {
        return Ok(false);
    }
    let stopped = Arc::new(AtomicBool::new(false));
    let mut round = Round {
        services: Arc::clone(&admin.services),
        request: request.clone(),
        session,
        pause: Duration::from_millis(interval_millis - request.duration_millis),
        running: None,
        stopped: Arc::clone(&stopped),
    };
    let step = Box::new(move || round.step());
    let wake = admin.services.node.env.tasks.try_background("sampling", step).map_err(failed)?;
    wake.wake();
    jobs.insert(name, Job { stopped, _wake: wake });
    Ok(true)
}

/// Stops the job of these names; without names all jobs. False: there is no such job.
fn stop(admin: &NodeAdmin, request: &StopSampling) -> Result<bool> {
    let (keyspace, table) = (request.keyspace.as_deref(), request.table.as_deref());
    let mut jobs = admin.sampling.jobs.lock().unwrap_or_else(PoisonError::into_inner);
    let stop = |job: Job| job.stopped.store(true, Ordering::Relaxed);
    if keyspace.is_none() && table.is_none() {
        std::mem::take(&mut *jobs).into_values().for_each(stop);
        return Ok(true);
    }
    Ok(jobs.remove(&name_of(keyspace, table)).map(stop).is_some())
}

fn jobs(admin: &NodeAdmin, _: &GetSamplingJobs) -> Result<Vec<(String, String)>> {
    Ok(admin.sampling.jobs.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect())
}

/// A job's task. Each round samples, writes the samples into the log and pauses.
struct Round {
    services: Arc<Services>,
    request: SampleRequest,
    session: Session,
    pause: Duration,
    running: Option<SessionId>,
    stopped: Arc<AtomicBool>,
}

impl Round {
    fn step(&mut self) -> Next {
        match self.running.take() {
            None => {
                self.running = Some(self.services.node.sampling.begin(self.session.clone()));
                Next::After(Duration::from_millis(self.request.duration_millis))
            }
            Some(id) => {
                let samples = end(&self.services, id, &self.request);
                let mut text = Vec::new();
                match admin::nodetool::print_samples(&samples, &mut text) {
                    Ok(()) => tracing::info!("{}", String::from_utf8_lossy(&text)),
                    Err(error) => tracing::warn!(%error, "samples cannot be told"),
                }
                if self.stopped.load(Ordering::Relaxed) { Next::Done } else { Next::After(self.pause) }
            }
        }
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        if let Some(id) = self.running.take() {
            self.services.node.sampling.end(id, 0);
        }
    }
}
