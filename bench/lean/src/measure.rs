//! A request over and over, on some connections with some in flight each, and what that took.
//!
//! Comes out: `requests`, `rows`, `seconds`, `cpu_us` (user and system time of the server),
//! `rss_mib`, `histogram` (latencies: pairs of nanoseconds and how many), and for a job of a known
//! number of requests `tenths`: seconds and CPU time at which each tenth was done.

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

/// The state that the threads share.
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

/// The observations of one thread.
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
                .map(|(connection, id)| scope.spawn(move || Lane::new(course, connection, &id).run()))
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
    /// The number of the next request, unless there is none.
    fn next_request(&self) -> Option<u64> {
        let i = self.begun_count.fetch_add(1, Ordering::Relaxed);
        (i < self.requests).then_some(i)
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

/// One connection's share of the course.
struct Lane<'a> {
    course: &'a Course<'a>,
    connection: Connection,
    template: Template<'a>,
    out: BytesMut,
    /// Streams without a request.
    free: Vec<u16>,
    /// When the request of each stream was begun.
    since: Vec<Instant>,
    paging_state: Option<Bytes>,
    over: bool,
    seen: Seen,
}

impl<'a> Lane<'a> {
    fn new(course: &'a Course<'a>, connection: Connection, id: &'a Bytes) -> Self {
        let streams = course.measure.in_flight as u16;
        Self {
            course,
            connection,
            template: Template::new(&course.measure.request, id),
            out: BytesMut::new(),
            free: (0..streams).rev().collect(),
            since: vec![course.begun; usize::from(streams)],
            paging_state: None,
            over: false,
            seen: Seen { latencies: histogram(), rows: 0, last: course.begun },
        }
    }

    /// As many in flight as wanted, until the time or the requests are over and all answers are
    /// there.
    fn run(mut self) -> Result<Seen> {
        loop {
            self.send_what_is_due()?;
            if self.free.len() == self.since.len() {
                return Ok(self.seen);
            }
            self.connection.receive()?;
            self.take_answers()?;
        }
    }

    fn send_what_is_due(&mut self) -> Result<()> {
        let now = Instant::now();
        self.over |= now >= self.course.until;
        while !self.over && !self.free.is_empty() {
            let Some(i) = self.course.next_request() else {
                self.over = true;
                break;
            };
            let stream = self.free.pop().ok_or("no free stream")?;
            self.since[usize::from(stream)] = now;
            self.put(stream, i)?;
        }
        if !self.out.is_empty() {
            self.connection.send(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    fn put(&mut self, stream: u16, i: u64) -> Result<()> {
        let request = &self.course.measure.request;
        let index = request.index;
        let Some(statements) = request.batch else {
            let state = self.paging_state.take();
            return self.template.encode(&mut self.out, stream, index.at(i), state.as_deref());
        };
        let numbers = (i * statements..((i + 1) * statements).min(index.count())).map(|i| index.at(i));
        self.template.encode_batch(&mut self.out, stream, &numbers.collect::<Vec<u64>>())
    }

    fn take_answers(&mut self) -> Result<()> {
        let request = &self.course.measure.request;
        let now = Instant::now();
        while let Some((stream, body)) = self.connection.next_answer()? {
            let answer = Answer::read(body)?;
            if let Some(rows) = request.rows.filter(|rows| *rows != answer.rows) {
                return Err(format!("{} rows came, {rows} were expected", answer.rows).into());
            }
            if request.page_size.is_some() {
                self.paging_state = answer.paging_state.map(Bytes::copy_from_slice);
                self.over |= self.paging_state.is_none() && !request.again;
            }
            let begun = self.since.get(usize::from(stream)).ok_or("an answer on a stream that was not used")?;
            self.seen.latencies.saturating_record((now - *begun).as_nanos() as u64);
            self.seen.rows += u64::from(answer.rows);
            self.seen.last = now;
            self.free.push(stream);
            self.course.count()?;
        }
        Ok(())
    }
}
