//! Work of the management API that goes on after its answer: each has an id, by which a client asks
//! how it stands.
//!
//! The last [`JOBS_MAX`] jobs are known. A job that has ended makes room for a new one, the oldest
//! first; while so many run, a new one is refused.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::http::Uri;
use env::Env;
use serde_json::{Value, json};

use super::repairs;
use super::request::{Answer, ManagementRequest};
use crate::verb::{AdminError, Result, ServedApi};

/// Jobs that are known, and that may run at one time.
const JOBS_MAX: usize = 100;

/// The jobs that have begun at this node, oldest first.
#[derive(Default)]
pub(in crate::http) struct Jobs(Mutex<JobList>);

#[derive(Default)]
struct JobList {
    /// The number of jobs since the start, from which ids are made.
    begun: u64,
    jobs: Vec<Job>,
}

/// A job.
struct Job {
    id: String,
    kind: &'static str,
    /// When the job was asked for; milliseconds since 1970.
    submitted_at: i64,
    /// When the job ended, and how; None: the job runs.
    ended: Option<(i64, std::result::Result<(), String>)>,
}

impl Jobs {
    fn known(&self) -> MutexGuard<'_, JobList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a new job. Err: too many run.
    fn add(&self, kind: &'static str, now: i64) -> Result<String> {
        let mut known = self.known();
        if known.jobs.len() >= JOBS_MAX {
            let Some(place) = known.jobs.iter().position(|job| job.ended.is_some()) else {
                return Err(AdminError::Failed(format!("{JOBS_MAX} jobs run already")));
            };
            known.jobs.remove(place);
        }
        known.begun += 1;
        let id = format!("job-{}-{now}", known.begun);
        known.jobs.push(Job { id: id.clone(), kind, submitted_at: now, ended: None });
        Ok(id)
    }

    fn end(&self, id: &str, now: i64, result: std::result::Result<(), String>) {
        if let Some(job) = self.known().jobs.iter_mut().find(|job| job.id == id) {
            job.ended = Some((now, result));
        }
    }

    fn status(&self, id: &str) -> Option<Value> {
        self.known().jobs.iter().find(|job| job.id == id).map(|job| {
            let (status, end, error) = match &job.ended {
                None => ("WAITING", 0, None),
                Some((at, Ok(()))) => ("COMPLETED", *at, None),
                Some((at, Err(why))) => ("ERROR", *at, Some(why)),
            };
            json!({
                "id": job.id, "type": job.kind, "status": status, "submit_time": job.submitted_at, "end_time": end,
                "error": error, "status_changes": [],
            })
        })
    }
}

/// Begins work on a thread of its own, and answers with the id of the job.
pub(super) fn begin(
    env: &Env,
    api: &Arc<dyn ServedApi>,
    jobs: &Arc<Jobs>,
    (kind, work): (&'static str, fn(&ManagementRequest<'_>) -> Result<()>),
    (uri, body): (&Uri, &Bytes),
) -> Result<Answer> {
    // a request that cannot be read is refused at once
    ManagementRequest::new(&**api, jobs, uri, body)?;
    let now = |env: &Env| env.clock.now_micros() / 1000;
    let id = jobs.add(kind, now(env))?;
    let (of_job, of_jobs) = (id.clone(), Arc::clone(jobs));
    let (api, uri, body) = (Arc::clone(api), uri.clone(), body.clone());
    let of_thread = env.clone();
    let run = move || {
        let result = ManagementRequest::new(&*api, &of_jobs, &uri, &body).and_then(|call| work(&call));
        if let Err(error) = &result {
            tracing::warn!(%error, kind, "a job of the management API has failed");
        }
        of_jobs.end(&of_job, now(&of_thread), result.map_err(|error| error.message().to_owned()));
    };
    if let Err(error) = env.tasks.try_spawn_worker("job", Box::new(run)) {
        let why = format!("the system gives the node no thread for the job: {error}");
        jobs.end(&id, now(env), Err(why.clone()));
        return Err(AdminError::Failed(why));
    }
    Ok(Answer::text(202, id))
}

/// How a job stands: one of these, or a repair.
pub(super) fn job(call: &ManagementRequest<'_>) -> Result<Answer> {
    let Some(id) = call.value("job_id") else { return Err(AdminError::Invalid("job_id must be provided".to_owned())) };
    let found = call.jobs.status(id).or_else(|| repairs::job(call, id));
    Ok(found.map_or_else(|| Answer::json(404, json!({})), |job| Answer::json(200, job)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_has_ended_makes_room() {
        let jobs = Jobs::default();
        let ids: Vec<_> = (0..JOBS_MAX).map(|_| jobs.add("FLUSH", 1).expect("there is room")).collect();
        assert!(jobs.add("FLUSH", 2).is_err(), "all run");
        jobs.end(&ids[7], 3, Err("no".to_owned()));
        assert_eq!(jobs.status(&ids[7]).expect("known")["error"], "no");
        jobs.add("FLUSH", 4).expect("one has ended");
        assert!(jobs.status(&ids[7]).is_none() && jobs.status(&ids[6]).is_some());
    }

    #[test]
    fn a_job_without_a_thread_is_refused() {
        let (sim, jobs) = (env::sim::Sim::new(1), Arc::new(Jobs::default()));
        let api: Arc<dyn ServedApi> = crate::fake::fake();
        let uri = Uri::from_static("/api/v1/ops/tables/flush");
        let work: fn(&ManagementRequest<'_>) -> Result<()> = |_| Ok(());
        let begin = || begin(&sim.env(), &api, &jobs, ("FLUSH", work), (&uri, &Bytes::new()));
        let statuses = || -> Vec<String> {
            let ids: Vec<_> = jobs.known().jobs.iter().map(|job| job.id.clone()).collect();
            ids.iter().map(|id| jobs.status(id).expect("known")["status"].to_string()).collect()
        };
        sim.set_lack_of_threads(true);
        assert!(matches!(begin(), Err(AdminError::Failed(_))));
        assert_eq!(statuses(), ["\"ERROR\""]);
        sim.set_lack_of_threads(false);
        assert!(begin().is_ok());
        sim.run_until_idle();
        assert_eq!(statuses(), ["\"ERROR\"", "\"COMPLETED\""]);
    }
}
