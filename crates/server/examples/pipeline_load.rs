//! Loads a server with EXECUTE requests, some connections with some requests in flight each, and says what one costs.
//!
//! `cargo run --release -p server --example pipeline_load -- address version connections depth seconds [server's process id]`

// A client stands outside the house.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use protocol::segment::{SegmentEncoder, SegmentFormat};

/// EXECUTE of a 16-byte id with one value of 4 bytes, skipping metadata.
fn execute(version: u8, stream: i16) -> BytesMut {
    let mut body = BytesMut::new();
    body.put_slice(b"\0\x100123456789abcdef");
    if version >= 5 {
        body.put_slice(b"\0\x100123456789abcdef\0\x0A\0\0\0\x03");
    } else {
        body.put_slice(b"\0\x0A\x03");
    }
    body.put_slice(b"\0\x01\0\0\0\x04\0\0\0\x01");
    let mut out = BytesMut::new();
    out.put_u8(version);
    out.put_u8(0);
    out.put_i16(stream);
    out.put_u8(10);
    out.put_u32(body.len() as u32);
    out.put_slice(&body);
    out
}

fn connect(address: &str, version: u8) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    let startup = b"\0\x01\0\x0BCQL_VERSION\0\x053.4.7";
    let mut out = vec![version, 0, 0, 0, 1, 0, 0, 0, startup.len() as u8];
    out.extend_from_slice(startup);
    socket.write_all(&out).unwrap();
    let mut ready = [0; 9];
    socket.read_exact(&mut ready).unwrap();
    assert_eq!(ready[4], 2, "READY");
    socket
}

/// Sends `depth` requests with one write and reads until as many answers have come, again and again.
fn run(mut socket: TcpStream, version: u8, depth: usize, stop: &AtomicBool, done: &AtomicU64) {
    let mut batch = BytesMut::new();
    let mut encoder = SegmentEncoder::new(SegmentFormat::Plain);
    for stream in 0..depth {
        let request = execute(version, stream as i16);
        match version {
            5.. => encoder.append(&mut batch, |out| out.put_slice(&request)),
            _ => batch.put_slice(&request),
        }
    }
    encoder.finish(&mut batch);
    // all answers are alike: learn the size of one, then count bytes
    let mut buffer = vec![0; 1 << 20];
    let mut size = 0;
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket.write_all(&batch).unwrap();
    while let Ok(read @ 1..) = socket.read(&mut buffer) {
        size += read;
    }
    socket.set_read_timeout(None).unwrap();
    while !stop.load(Ordering::Relaxed) {
        socket.write_all(&batch).unwrap();
        // segments may be cut differently, so version 5 counts a little less exactly
        let mut left = size as i64 - if version >= 5 { 9 } else { 0 };
        while left > 0 {
            left -= socket.read(&mut buffer).unwrap() as i64;
        }
        done.fetch_add(depth as u64, Ordering::Relaxed);
    }
}

/// User and system time of a process, in seconds.
fn cpu(pid: Option<&str>) -> f64 {
    let Some(pid) = pid else { return 0.0 };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = [11, 12].iter().map(|field| fields[*field].parse::<f64>().unwrap()).sum();
    ticks / 100.0
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, version, connections, depth, seconds, rest @ ..] = &arguments[..] else {
        eprintln!("address version connections depth seconds [pid]");
        return;
    };
    let version: u8 = version.parse().unwrap();
    let depth: usize = depth.parse().unwrap();
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let threads: Vec<_> = (0..connections.parse().unwrap())
        .map(|_: usize| {
            let socket = connect(address, version);
            let (stop, done) = (stop.clone(), done.clone());
            thread::spawn(move || run(socket, version, depth, &stop, &done))
        })
        .collect();
    thread::sleep(Duration::from_secs(1));
    let pid = rest.first().map(String::as_str);
    let (begin, before, used) = (Instant::now(), done.load(Ordering::Relaxed), cpu(pid));
    thread::sleep(Duration::from_secs(seconds.parse().unwrap()));
    let (passed, count) = (begin.elapsed().as_secs_f64(), done.load(Ordering::Relaxed) - before);
    let used = cpu(pid) - used;
    stop.store(true, Ordering::Relaxed);
    println!(
        "v{version} {connections} connections, depth {depth}: {:.0} requests/s, {:.2} us of the server's CPU each",
        count as f64 / passed,
        used * 1e6 / count as f64
    );
    for thread in threads {
        thread.join().unwrap();
    }
}
