//! A request over and over, on some connections with some in flight each, and what that took.
//!
//! Comes out: `requests`, `rows`, `seconds`, `cpu_us` (user and system time of the server), `rss_mib`, `histogram` (latencies: pairs of
//! nanoseconds and how many), and for a job of a known number of requests `tenths`: seconds and CPU time at which each tenth was done.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use hdrhistogram::Histogram;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Result;
use crate::answer::Answer;
use crate::connection::Connection;
use crate::job::Server;
use crate::process::Usage;
use crate::template::{Request, Template};

/// Latencies are told to this many digits.
const DIGITS: u8 = 2;
const LATENCY_MAX_NS: u64 = 600_000_000_000;

/// See the module.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    request: Request,
    /// No request begins later. A job whose numbers are counted ends earlier if they are used up.
    seconds: f64,
    /// At most so many requests.
    #[serde(default = "u64_max")]
    requests: u64,
    #[serde(default = "one")]
    connections: u64,
    /// On each connection.
    #[serde(default = "one")]
    in_flight: u64,
}

fn one() -> u64 {
    1
}

fn u64_max() -> u64 {
    u64::MAX
}

/// What the threads share.
struct Course<'a> {
    measure: &'a Measure,
    server: Server,
    before: Usage,
    begun: Instant,
    until: Instant,
    /// Requests in all, if that is known.
    requests: u64,
    begun_count: AtomicU64,
    done_count: AtomicU64,
    tenths: Mutex<Vec<(f64, f64)>>,
}

/// What one thread has seen.
struct Seen {
    latencies: Histogram<u64>,
    rows: u64,
    last: Instant,
}

impl Measure {
    /// Opens connections, prepares, then measures.
    pub fn run(&self, server: Server) -> Result<Value> {
        let mut connections = Vec::new();
        for _ in 0..self.connections {
            let mut connection = Connection::open(server.address)?;
            let id = connection.prepare(&self.request.statement)?;
            connections.push((connection, id));
        }
        let statements = self.request.batch.unwrap_or(1).max(1);
        let begun = Instant::now();
        let course = Course {
            measure: self,
            server,
            before: Usage::of(server.pid)?,
            begun,
            until: begun + Duration::from_secs_f64(self.seconds),
            requests: self.requests.min(self.request.index.count().div_ceil(statements)),
            begun_count: AtomicU64::new(0),
            done_count: AtomicU64::new(0),
            tenths: Mutex::default(),
        };
        let seen: Vec<Seen> = std::thread::scope(|scope| {
            let course = &course;
            let threads: Vec<_> = connections
                .into_iter()
                .map(|(connection, id)| scope.spawn(move || course.run(connection, &id)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("a measuring thread does not panic"))
                .collect::<Result<_>>()
        })?;
        let used = Usage::of(server.pid)?.since(&course.before);
        let mut latencies = histogram();
        seen.iter().try_for_each(|seen| latencies.add(&seen.latencies))?;
        let last = seen.iter().map(|seen| seen.last).max().unwrap_or(begun);
        let pairs: Vec<(u64, u64)> =
            latencies.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
        Ok(json!({
            "requests": latencies.len(), "rows": seen.iter().map(|seen| seen.rows).sum::<u64>(),
            "seconds": (last - begun).as_secs_f64(), "cpu_us": used.cpu_us, "rss_mib": used.rss_mib,
            "min_ns": latencies.min(), "max_ns": latencies.max(), "histogram": pairs,
            "tenths": *course.tenths.lock().expect("no thread panicked"),
        }))
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, DIGITS).expect("bounds and digits that the histogram takes")
}

impl Course<'_> {
    /// One connection's share: as many in flight as wanted, until the time or the requests are over.
    fn run(&self, mut connection: Connection, id: &Bytes) -> Result<Seen> {
        let request = &self.measure.request;
        let mut template = Template::new(request, id);
        let mut seen = Seen { latencies: histogram(), rows: 0, last: self.begun };
        let mut out = BytesMut::new();
        let mut free: Vec<u16> = (0..self.measure.in_flight as u16).rev().collect();
        let mut since = vec![self.begun; free.len()];
        let mut paging_state = None;
        let mut over = false;
        loop {
            let now = Instant::now();
            over |= now >= self.until;
            while !over && let Some(stream) = free.pop() {
                over = !self.put_next(&mut template, &mut out, stream, paging_state.take())?;
                if over {
                    free.push(stream);
                } else {
                    since[usize::from(stream)] = now;
                }
            }
            if !out.is_empty() {
                connection.send(&out)?;
                out.clear();
            }
            if free.len() == since.len() {
                return Ok(seen);
            }
            connection.receive()?;
            let now = Instant::now();
            while let Some((stream, body)) = connection.next_answer()? {
                let answer = Answer::read(body)?;
                if let Some(rows) = request.rows.filter(|rows| *rows != answer.rows) {
                    return Err(format!("{} rows came, {rows} were expected", answer.rows).into());
                }
                seen.rows += u64::from(answer.rows);
                if request.page_size.is_some() {
                    paging_state = answer.paging_state.map(Bytes::copy_from_slice);
                    over |= paging_state.is_none();
                }
                let begun = since.get(usize::from(stream)).ok_or("an answer on a stream that was not used")?;
                seen.latencies.saturating_record((now - *begun).as_nanos() as u64);
                seen.last = now;
                free.push(stream);
                self.count()?;
            }
        }
    }

    /// Appends the next request; false if there is none.
    fn put_next(&self, template: &mut Template, out: &mut BytesMut, stream: u16, state: Option<Bytes>) -> Result<bool> {
        let i = self.begun_count.fetch_add(1, Ordering::Relaxed);
        if i >= self.requests {
            return Ok(false);
        }
        let index = self.measure.request.index;
        match self.measure.request.batch {
            None => template.encode(out, stream, index.at(i), state.as_deref())?,
            Some(statements) => {
                let numbers: Vec<u64> =
                    (i * statements..((i + 1) * statements).min(index.count())).map(|i| index.at(i)).collect();
                template.encode_batch(out, stream, &numbers)?;
            }
        }
        Ok(true)
    }

    /// One more is done; at each tenth the time and the server's CPU time are noted.
    fn count(&self) -> Result<()> {
        let done = self.done_count.fetch_add(1, Ordering::Relaxed) + 1;
        if self.requests != u64::MAX && (done * 10 / self.requests) != ((done - 1) * 10 / self.requests) {
            let used = Usage::of(self.server.pid)?.since(&self.before);
            let mut tenths = self.tenths.lock().expect("no thread panicked");
            tenths.push((self.begun.elapsed().as_secs_f64(), used.cpu_us));
        }
        Ok(())
    }
}
