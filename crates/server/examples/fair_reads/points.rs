//! Point reads of one connection: so many in flight, the next one when an answer comes or when its time has come.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::client::{Client, EXECUTE, execute};

/// Small partitions there are.
pub const PARTITIONS: u32 = 100_000;

/// What is read.
#[derive(Clone, Copy, PartialEq)]
pub enum Points {
    /// Any of the small partitions.
    Spread,
    /// One of them.
    Hot,
    /// A row that the rows before it lead to.
    Slow,
}

impl Points {
    pub fn of(load: &str) -> Self {
        match load {
            "hot" => Self::Hot,
            "slow" => Self::Slow,
            _ => Self::Spread,
        }
    }

    fn statement(self) -> &'static str {
        match self {
            Self::Slow => "SELECT v FROM fair.wide WHERE p = ? AND c < 1900 AND v = 0x00 ALLOW FILTERING",
            _ => "SELECT v FROM fair.small WHERE p = ?",
        }
    }
}

/// Gives the latencies in microseconds. In even steps a read that could not be sent in time counts from when it should have been.
pub fn run(mut client: Client, of: Points, number: usize, depth: usize, rate: u64, until: Instant) -> Vec<u32> {
    let id = client.prepare(of.statement());
    let mut random = number as u64 + 1;
    let mut key = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match of {
            Points::Spread => ((random >> 33) as u32 % PARTITIONS).to_be_bytes(),
            Points::Hot => 77u32.to_be_bytes(),
            Points::Slow => 0u32.to_be_bytes(),
        }
    };
    let mut times = Vec::with_capacity(1 << 20);
    let mut free: Vec<i16> = (0..depth as i16).collect();
    let mut begun = vec![Instant::now(); depth];
    let step = (rate > 0).then(|| Duration::from_nanos(1_000_000_000 / rate.max(1)));
    let mut due = Instant::now();
    client.socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let mut out = Vec::new();
    loop {
        let now = Instant::now();
        if now >= until && free.len() == depth {
            return times;
        }
        while now < until && (step.is_none() || due <= now) {
            let Some(stream) = free.pop() else { break };
            Client::frame(&mut out, stream, EXECUTE, &execute(&id, &[&key()], None, None));
            begun[stream as usize] = if step.is_some() { due } else { now };
            due += step.unwrap_or_default();
        }
        if !out.is_empty() {
            client.socket.write_all(&out).unwrap();
            out.clear();
        }
        client.fill();
        while let Some(answer) = client.buffered() {
            assert_ne!(answer.opcode, 0, "{}", String::from_utf8_lossy(&answer.body));
            times.push(begun[answer.stream as usize].elapsed().as_micros() as u32);
            free.push(answer.stream);
        }
    }
}
