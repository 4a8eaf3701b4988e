//! A node in this process, asked through its request handler: frames in, frames out, no socket.
//!
//! The node runs as `helenus serve` starts it, with threads for the log, flushes and compactions; a
//! request runs on the caller's thread.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bench_lean::answer::judge;
use bytes::{Bytes, BytesMut};
use config::Config;
use native::{ConnectionInfo, ConnectionStats, Handled, RequestHandler};
use protocol::frame::{HEADER_SIZE, decode_header};
use protocol::{ProtocolVersion, RequestEnvelope, ResponseEnvelope};
use server::CqlHandler;
use server::memory::MemoryBudget;
use server::running::{self, RunningNode, StartOptions};
use tokio::runtime::Runtime;

use crate::Result;

/// Enough that nothing is flushed and no cached chunk is dropped while requests are counted.
const MEMORY: u64 = 1 << 30;

/// The log is synced by its own thread, so that a write is answered without a wait.
const SETTINGS: [&str; 2] = ["commitlog_sync=periodic", "commitlog_sync_period=10s"];

/// A running node with one client.
pub struct Node {
    runtime: Runtime,
    running: RunningNode,
    handler: Rc<CqlHandler>,
    client: Rc<<CqlHandler as RequestHandler>::Client>,
    env: env::Env,
    out: BytesMut,
}

impl Node {
    /// Starts a node over a directory.
    pub fn start(directory: &Path) -> Result<Self> {
        let env = env::real::env();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let running = running::start(StartOptions {
            env: env.clone(),
            data_dir: directory.to_path_buf(),
            schema_file: None,
            read_only: false,
            config: Config::load(None, &SETTINGS.map(str::to_owned), false)?,
            listen: any_port,
            admin: None,
            set_level: None,
            log: Arc::default(),
            workers: Some(1),
            // one a table: the shard that a row falls into then makes no difference
            shards: Some(1),
            memory: MemoryBudget::of(MEMORY),
            descriptors: None,
            first_password: running::FirstPassword::default(),
        })?;
        let handler = Rc::new(CqlHandler::new(Arc::clone(&running.services)));
        let client = handler.connect(ConnectionInfo {
            peer: any_port,
            version: ProtocolVersion::V4,
            user: None,
            stats: Arc::new(ConnectionStats::new(any_port)),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, running, handler, client, env, out: BytesMut::with_capacity(1 << 20) })
    }

    /// Flushes everything and stops.
    pub fn stop(self) -> Result<()> {
        let Self { runtime, running, handler, .. } = self;
        drop(handler);
        Ok(runtime.block_on(running.shutdown())?)
    }

    /// Gives the answer's body, however long the request waits.
    pub fn ask(&mut self, frame: &Bytes) -> Result<&[u8]> {
        let handling = Rc::clone(&self.handler).handle(Rc::clone(&self.client), decode(frame)?, self.env.now());
        let answer = self.runtime.block_on(async {
            match handling.await {
                Handled::Answered(answer) => answer,
                Handled::Last(wait) => wait.await,
            }
        });
        self.encode(&answer)
    }

    /// Gives the answer's body to a request that must not wait.
    pub fn ask_at_once(&mut self, frame: &Bytes) -> Result<&[u8]> {
        let handling = Rc::clone(&self.handler).handle(Rc::clone(&self.client), decode(frame)?, self.env.now());
        let polled = {
            let _inside = self.runtime.enter();
            pin!(handling).poll(&mut Context::from_waker(Waker::noop()))
        };
        match polled {
            Poll::Ready(Handled::Answered(answer)) => self.encode(&answer),
            Poll::Ready(Handled::Last(_)) => Err("a request waits for the commit log".into()),
            Poll::Pending => Err("a request waits; it must be answered at once to be counted".into()),
        }
    }

    fn encode(&mut self, answer: &ResponseEnvelope) -> Result<&[u8]> {
        self.out.clear();
        answer.encode(&mut self.out, ProtocolVersion::V4, None);
        let body = &self.out[HEADER_SIZE..];
        judge(answer.response.opcode() as u8, body)?;
        Ok(body)
    }
}

fn decode(frame: &Bytes) -> Result<RequestEnvelope> {
    let header = decode_header(frame).map_err(|refused| refused.error)?.ok_or("a frame is cut off")?;
    Ok(RequestEnvelope::decode(&header, &frame.slice(HEADER_SIZE..))?)
}
