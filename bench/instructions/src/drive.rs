//! The program that runs under valgrind: it loads the tables, then makes the requests of each case
//! in [`measured_requests`], which is the only function that valgrind counts. Prints a line for
//! each round of each case, the number of requests and the case's name, in the order in which
//! valgrind writes the counts. Before its rounds a case is run once uncounted, which fills caches
//! and makes what is made lazily.

use std::path::Path;

use bench_lean::answer::Answer;
use bench_lean::connection::put_frame;
use bench_lean::template::{Request, Template};
use bytes::{BufMut, Bytes, BytesMut};
use protocol::Opcode;
use types::Consistency;

use crate::Result;
use crate::cases::{Ask, Case, SCHEMA, cases, loads, overwrites};
use crate::node::Node;

/// How often the requests of a case are counted; the smallest count is taken.
const ROUNDS: u32 = 5;

/// Runs everything over an empty directory.
pub fn run(directory: &Path) -> Result<()> {
    let mut node = Node::start(directory)?;
    for statement in SCHEMA {
        node.ask(&query(statement))?;
    }
    for load in loads() {
        for frame in frames(&mut node, &load)? {
            node.ask(&frame)?;
        }
    }
    node.stop()?;
    let mut node = Node::start(directory)?;
    for frame in frames(&mut node, &overwrites())? {
        node.ask(&frame)?;
    }
    for case in cases() {
        let frames = frames(&mut node, &case)?;
        for frame in &frames {
            let body = node.ask(frame)?;
            check(&case, body)?;
        }
        for _ in 0..ROUNDS {
            measured_requests(&mut node, &frames)?;
            println!("{} {}", frames.len(), case.name);
        }
    }
    node.stop()
}

/// Valgrind counts from the entry of this function to its return, on this thread; its name
/// stands in `counting`. It holds no closure, whose name would match as well.
#[inline(never)]
fn measured_requests(node: &mut Node, frames: &[Bytes]) -> Result<()> {
    for frame in frames {
        node.ask_at_once(frame)?;
    }
    Ok(())
}

/// The answer has the rows that the case expects.
fn check(case: &Case, body: &[u8]) -> Result<()> {
    let Ask::Prepared(Request { rows: Some(expected), .. }) = &case.ask else { return Ok(()) };
    let found = Answer::read(body)?.rows;
    if found == *expected {
        return Ok(());
    }
    Err(format!("{}: {found} rows where {expected} are expected", case.name).into())
}

/// The frames of a case's requests.
fn frames(node: &mut Node, case: &Case) -> Result<Vec<Bytes>> {
    let numbers = (0..case.count).map(|i| case.first + i * case.step);
    match &case.ask {
        Ask::Text(statement) => Ok(numbers.map(|n| query(&statement(n))).collect()),
        Ask::Prepared(request) => {
            let id = prepare(node, &request.statement)?;
            let template = Template::new(request, &id);
            numbers.map(|n| execute(&template, request.batch, n)).collect()
        }
    }
}

fn execute(template: &Template<'_>, batch: Option<u64>, n: u64) -> Result<Bytes> {
    let mut out = BytesMut::new();
    match batch {
        None => template.encode(&mut out, 0, n, None)?,
        Some(size) => template.encode_batch(&mut out, 0, &(n..n + size).collect::<Vec<u64>>())?,
    }
    Ok(out.freeze())
}

fn prepare(node: &mut Node, statement: &str) -> Result<Bytes> {
    let mut out = BytesMut::new();
    put_frame(&mut out, 0, Opcode::Prepare, |out| put_text(out, statement));
    let body = node.ask(&out.freeze())?;
    // [int] kind, [short bytes] id
    let [_, _, _, _, high, low, rest @ ..] = body else { return Err("a short answer to PREPARE".into()) };
    let size = usize::from(u16::from_be_bytes([*high, *low]));
    Ok(Bytes::copy_from_slice(rest.get(..size).ok_or("a short answer to PREPARE")?))
}

fn query(statement: &str) -> Bytes {
    let mut out = BytesMut::new();
    put_frame(&mut out, 0, Opcode::Query, |out| {
        put_text(out, statement);
        out.put_u16(Consistency::LocalOne as u16);
        out.put_u8(0);
    });
    out.freeze()
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_u32(text.len() as u32);
    out.put_slice(text.as_bytes());
}
