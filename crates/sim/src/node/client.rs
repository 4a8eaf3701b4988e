//! A client's connection: one request after the other, made anew when it has failed.

use std::net::SocketAddr;
use std::time::Duration;

use env::sim::address_of;
use env::{Env, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::wire::{self, Answer};
use crate::starting::PORT;

/// Longest time that a client waits for an answer; longer than the node lets a request take.
const PATIENCE: Duration = Duration::from_secs(12);

pub(super) struct Client {
    pub env: Env,
    /// Number of machines with nodes, which are the first ones. Each connection is to one of them,
    /// drawn anew.
    servers: usize,
    /// The only node to connect to; None: any node.
    only: Option<usize>,
    stream: Option<Box<dyn Stream>>,
}

impl Client {
    pub fn new(env: Env, servers: usize) -> Self {
        Client { env, servers, only: None, stream: None }
    }

    /// Has all further connections go to this node.
    pub fn connect_only_to(&mut self, server: usize) {
        self.only = Some(server);
        self.stream = None;
    }

    /// Connects, however long that takes.
    pub async fn connect(&mut self) {
        while self.stream.is_none() {
            if let Ok(Some(stream)) = self.env.timeout(PATIENCE, connect(&self.env, self.server())).await {
                self.stream = Some(stream);
                return;
            }
            self.env.sleep(Duration::from_millis(20 + self.env.random.below(200))).await;
        }
    }

    /// The node of the next connection.
    fn server(&self) -> usize {
        match (self.only, self.servers) {
            (Some(server), _) => server,
            (None, 1) => 0,
            (None, servers) => self.env.random.below(servers as u64) as usize,
        }
    }

    /// The node's answer; None: the outcome of the request is not known. The caller has connected
    /// by [`Self::connect`] before.
    pub async fn ask(&mut self, text: &str, level: u16) -> Option<Answer> {
        let mut stream = self.stream.take()?;
        let asked = self.env.timeout(PATIENCE, exchange(&mut stream, wire::query(text, level))).await;
        let answer = asked.ok()?;
        if answer.is_some() {
            self.stream = Some(stream);
        }
        answer
    }

    /// Asks again and again, until there is an answer that is no error.
    pub async fn ask_until_answered(&mut self, text: &str, level: u16) -> Vec<Vec<Option<i64>>> {
        loop {
            self.connect().await;
            match self.ask(text, level).await {
                Some(Answer::Rows(rows)) => return rows,
                Some(Answer::Error(code, text)) => assert!(code < 0x2000, "the statement is right, but: {text}"),
                None => {}
            }
            self.env.sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn connect(env: &Env, node: usize) -> Option<Box<dyn Stream>> {
    let mut stream = env.network.connect(SocketAddr::new(address_of(node), PORT)).await.ok()?;
    match exchange(&mut stream, wire::startup()).await? {
        Answer::Rows(_) => Some(stream),
        Answer::Error(..) => None,
    }
}

async fn exchange(stream: &mut Box<dyn Stream>, request: Vec<u8>) -> Option<Answer> {
    stream.write_all(&request).await.ok()?;
    let mut header = [0; wire::HEADER];
    stream.read_exact(&mut header).await.ok()?;
    let mut body = vec![0; wire::body_size(&header)];
    stream.read_exact(&mut body).await.ok()?;
    let answer = wire::decode(&header, body);
    assert!(answer.is_some(), "the node's answer is one of the protocol: {header:?}");
    answer
}
