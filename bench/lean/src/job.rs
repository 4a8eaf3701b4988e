//! Jobs of the client, and their results.
//!
//! ```json
//! {"do": "query", "statement": "CREATE TABLE ..."}
//!     -> {"rows": 0}
//! {"do": "capture", "request": {...}}
//!     -> {"statement": ..., "rows": 100, "body": "0000000a30...", "paging_state": null}
//! {"do": "measure", "request": {...}, "seconds": 1, "connections": 4, "in_flight": 16}
//!     -> see `measure`
//! ```
//! A request: `{"statement": TEXT, "values": [FORM...], "index": INDEX, "rows": HOW MANY AN ANSWER
//! HAS, "batch": N, "page_size": N}`.

use std::net::SocketAddr;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::Result;
use crate::answer::Answer;
use crate::connection::Connection;
use crate::measure::Measure;
use crate::template::{Request, Template};

/// Whom to ask, and whose CPU time to count.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Of the native protocol.
    pub address: SocketAddr,
    /// Its process.
    pub pid: u32,
}

/// One line of input.
#[derive(Deserialize, Debug)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Job {
    /// A statement as it stands, once.
    Query {
        /// The statement.
        statement: String,
    },
    /// A request once; the rows of its answer as bytes in hexadecimal digits, for the null server.
    Capture {
        /// The request.
        request: Request,
    },
    /// A request over and over.
    Measure(Measure),
}

impl Job {
    /// Does it.
    pub fn run(self, server: Server) -> Result<Value> {
        match self {
            Self::Query { statement } => {
                let mut connection = Connection::open(server.address)?;
                let answer = connection.query(&statement)?;
                Ok(json!({ "rows": Answer::read(&answer)?.rows }))
            }
            Self::Capture { request } => {
                let mut connection = Connection::open(server.address)?;
                let id = connection.prepare(&request.statement)?;
                let template = Template::new(&request, &id);
                let mut out = bytes::BytesMut::new();
                template.encode(&mut out, 0, request.index.at(0), None)?;
                let body = connection.call(&out)?;
                let answer = Answer::read(&body)?;
                let (body, paging_state) = (hex(answer.content), answer.paging_state.map(hex));
                let statement = &request.statement;
                Ok(json!({ "statement": statement, "rows": answer.rows, "body": body, "paging_state": paging_state }))
            }
            Self::Measure(measure) => measure.run(server),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
