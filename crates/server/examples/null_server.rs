//! A server that answers every request with the same row: the bare cost of the connection layer, against which the
//! database's own is measured.
//!
//! `cargo run --release -p server --example null_server -- [address [workers [wait]]]`; with `wait` no request is answered at the first
//! poll, so that each takes the way of those that wait.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use env::Instant;
use protocol::response::{ColumnSpec, Prepared, ResultMetadata, Rows};
use protocol::{Request, RequestEnvelope, Response, ResponseEnvelope};
use server::{ConnectionInfo, RequestHandler, Server, ServerOptions};
use types::CqlType;

struct Null {
    metadata: Arc<ResultMetadata>,
    row: Bytes,
    wait: bool,
}

impl RequestHandler for Null {
    type Client = ();

    fn connect(&self, _: ConnectionInfo) -> Rc<()> {
        Rc::new(())
    }

    fn disconnect(&self, (): &()) {}

    async fn handle(self: Rc<Self>, _: Rc<()>, request: RequestEnvelope, _: Instant) -> ResponseEnvelope {
        if self.wait {
            tokio::task::yield_now().await;
        }
        let response = match &request.request {
            Request::Prepare(_) => Response::Prepared(Box::new(Prepared {
                id: Bytes::from_static(b"0123456789abcdef"),
                markers: Arc::from(self.metadata.columns()),
                partition_key_markers: Arc::from([0u16]),
                result: self.metadata.clone(),
            })),
            Request::Execute(execute) => {
                let mut rows = Rows::new(self.metadata.clone(), 1, self.row.clone());
                rows.skip_metadata = execute.parameters.skip_metadata;
                Response::Rows(Box::new(rows))
            }
            _ => Response::Rows(Box::new(Rows::new(self.metadata.clone(), 1, self.row.clone()))),
        };
        ResponseEnvelope::new(request.stream, response)
    }
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:9042".to_owned());
    let address = address.parse().map_err(std::io::Error::other)?;
    let env = env::real::env();
    let workers = arguments.next().and_then(|count| count.parse().ok()).unwrap_or_else(|| env.tasks.cores());
    let wait = arguments.next().is_some();
    let server = Server::start(&env, ServerOptions { workers, ..ServerOptions::new(address) }, move |_| {
        let column =
            |name: &str, cql_type| ColumnSpec { keyspace: "ks".into(), table: "t".into(), name: name.into(), cql_type };
        let columns = vec![column("k", CqlType::Int), column("v", CqlType::Text)];
        let row = Bytes::from_static(b"\0\0\0\x04\0\0\0\x01\0\0\0\x19abcdefghijklmnopqrstuvwxy");
        Null { metadata: Arc::new(ResultMetadata::new(columns)), row, wait }
    })?;
    println!("{} with {workers} workers", server.address());
    loop {
        std::thread::park();
    }
}
