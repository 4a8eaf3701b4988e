//! `bench-null ADDRESS FILE [WORKERS]`: our connection layer with canned answers. What a request
//! costs here is the bare cost of its bytes; what it costs more on the database is the database's
//! own.
//!
//! FILE has a line of JSON for each statement, as `bench-lean` captures them: `{"statement": TEXT,
//! "rows": N, "body": HEX, "paging_state": HEX or null}`. EXECUTE of such a statement is answered
//! with exactly these rows, whatever is bound; every other request with "done, no rows". Once it
//! listens it prints a line with its address.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a program beside the server

use std::future::Pending;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use env::Instant;
use native::{ConnectionInfo, Handled, RequestHandler, ServerOptions};
use protocol::request::Execute;
use protocol::response::{Prepared, ResultMetadata, Rows};
use protocol::{Request, RequestEnvelope, Response, ResponseEnvelope};
use serde::Deserialize;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A line of the file.
#[derive(Deserialize)]
struct Line {
    statement: String,
    rows: u32,
    body: String,
    paging_state: Option<String>,
}

/// An answer, ready.
struct Canned {
    statement: String,
    rows: u32,
    body: Bytes,
    paging_state: Option<Bytes>,
}

impl TryFrom<Line> for Canned {
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn try_from(line: Line) -> Result<Self> {
        let paging_state = line.paging_state.as_deref().map(bytes_of).transpose()?;
        Ok(Self { statement: line.statement, rows: line.rows, body: bytes_of(&line.body)?, paging_state })
    }
}

fn bytes_of(hex: &str) -> Result<Bytes> {
    let pairs = hex.as_bytes().chunks(2);
    let bytes: Result<Vec<u8>> = pairs.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect();
    Ok(bytes?.into())
}

struct Null {
    canned: Arc<[Canned]>,
    metadata: Arc<ResultMetadata>,
}

impl Null {
    /// A statement's id is its place among the canned ones; all others share the place behind them.
    fn prepared(&self, statement: &str) -> Response {
        let place = self.canned.iter().position(|canned| canned.statement == statement).unwrap_or(self.canned.len());
        Response::Prepared(Box::new(Prepared {
            id: Bytes::copy_from_slice(&(place as u128).to_be_bytes()),
            markers: Arc::from([]),
            partition_key_markers: Arc::from([]),
            result: self.metadata.clone(),
        }))
    }

    fn execute(&self, execute: &Execute) -> Response {
        let place = execute.id.last_chunk().map_or(usize::MAX, |id| u64::from_be_bytes(*id) as usize);
        let Some(canned) = self.canned.get(place) else { return Response::Void };
        let mut rows = Rows::new(self.metadata.clone(), canned.rows, canned.body.clone());
        rows.paging_state = canned.paging_state.clone();
        rows.skip_metadata = true;
        Response::Rows(Box::new(rows))
    }
}

impl RequestHandler for Null {
    type Client = ();
    type Last = Pending<ResponseEnvelope>;

    fn connect(&self, _: ConnectionInfo) -> Rc<()> {
        Rc::new(())
    }

    fn disconnect(&self, (): &()) {}

    async fn handle(self: Rc<Self>, _: Rc<()>, request: RequestEnvelope, _: Instant) -> Handled<Self::Last> {
        let response = match &request.request {
            Request::Prepare(prepare) => self.prepared(prepare.query.as_str()),
            Request::Execute(execute) => self.execute(execute),
            _ => Response::Void,
        };
        Handled::Answered(ResponseEnvelope::new(request.stream, response))
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, file, rest @ ..] = arguments.as_slice() else {
        return Err("usage: bench-null ADDRESS FILE [WORKERS]".into());
    };
    let text = std::fs::read_to_string(file)?;
    let lines = text.lines().map(|line| Canned::try_from(serde_json::from_str::<Line>(line)?));
    let canned: Arc<[Canned]> = lines.collect::<Result<_>>()?;
    let env = env::real::env();
    let workers = rest.first().map_or(Ok(env.tasks.cores()), |count| count.parse())?;
    let server = native::start(&env, ServerOptions { workers, ..ServerOptions::new(address.parse()?) }, move |_| {
        Null { canned: canned.clone(), metadata: Arc::new(ResultMetadata::empty()) }
    })?;
    println!("{}", server.address());
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_an_answer() {
        let text = r#"{"statement": "SELECT", "rows": 2, "body": "00ff", "paging_state": "0a"}"#;
        let canned = Canned::try_from(serde_json::from_str::<Line>(text).expect("a line")).expect("digits");
        assert_eq!(
            (canned.rows, &canned.body[..], canned.paging_state.as_deref()),
            (2, &b"\0\xff"[..], Some(&b"\x0a"[..]))
        );
        assert!(bytes_of("0g").is_err());
    }
}
