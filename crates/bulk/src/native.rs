//! A client of the native protocol that asks a few questions of one node: STARTUP, a login by name
//! and password, QUERY, rows. Version 4, which has no segments; nothing is compressed, prepared or
//! paged. [`answer`] decodes.

pub(crate) mod answer;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::BytesMut;
use env::{Env, Stream};
use stdx::Cursor;
use tls::{Connector, TlsOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub use answer::Answer;
use answer::{HEADER_SIZE, Opcode, Reply};

/// A node that does not take the connection for so long is given up.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// The consistency ONE.
const ONE: u16 = 1;
/// Bytes taken from the socket at once.
const READ_SIZE: usize = 64 << 10;

/// The nodes that may be asked, and how they are reached.
#[derive(Clone)]
pub struct Access {
    /// Names or addresses of nodes. They are tried in this order until one answers.
    pub nodes: Vec<String>,
    /// The port for clients.
    pub port: u16,
    /// Name and password.
    pub login: Option<(String, String)>,
    /// How the connection is encrypted; None: it is not.
    pub tls: Option<TlsOptions>,
}

impl Access {
    /// A connection to the first node that takes one. Err: why none of them does.
    pub async fn open(&self, env: &Env) -> Result<NativeConnection, String> {
        let connector = self.tls.as_ref().map(Connector::open).transpose()?;
        let mut refusals = Vec::new();
        for node in &self.nodes {
            let (name, network) = (node.clone(), env.clone());
            let found = env.blocking("resolve", move || network.network.resolve(&name)).await;
            let addresses = match found.map_err(|full| full.to_string())? {
                Ok(addresses) => addresses,
                Err(error) => {
                    refusals.push(format!("{node}: {error}"));
                    continue;
                }
            };
            for address in addresses {
                match self.attempt(env, address, connector.as_ref()).await {
                    Ok(connection) => return Ok(connection),
                    Err(why) => refusals.push(format!("{address}: {why}")),
                }
            }
        }
        Err(format!("no node answers on port {}: {}", self.port, refusals.join("; ")))
    }

    async fn attempt(&self, env: &Env, to: IpAddr, connector: Option<&Connector>) -> Result<NativeConnection, String> {
        let opening = async {
            let stream = env.network.connect(SocketAddr::new(to, self.port)).await?;
            match connector {
                Some(connector) => connector.connect(to, stream).await,
                None => Ok(stream),
            }
        };
        let opened = env.timeout(CONNECT_MAX, opening).await;
        let stream = opened
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))
            .and_then(|opened| opened)
            .map_err(|error| error.to_string())?;
        let mut connection = NativeConnection { env: env.clone(), node: to, stream, input: BytesMut::new() };
        connection.start(self.login.as_ref()).await?;
        Ok(connection)
    }
}

/// A connection that is ready for questions.
pub struct NativeConnection {
    env: Env,
    node: IpAddr,
    stream: Box<dyn Stream>,
    input: BytesMut,
}

impl NativeConnection {
    /// The address that was connected to.
    pub fn node(&self) -> IpAddr {
        self.node
    }

    /// Asks one question, at consistency ONE. Err: the node's words, or why it says nothing.
    pub async fn ask(&mut self, statement: &str) -> Result<Answer, String> {
        match self.query(statement).await? {
            Reply::Rows(answer) => Ok(answer),
            other => Err(format!("an answer of another kind than rows: {other:?}")),
        }
    }

    /// Executes a statement that gives no rows.
    pub async fn execute(&mut self, statement: &str) -> Result<(), String> {
        self.query(statement).await.map(drop)
    }

    async fn query(&mut self, statement: &str) -> Result<Reply, String> {
        let mut body = Vec::new();
        stdx::put_int_bytes(&mut body, Some(statement.as_bytes()));
        stdx::put_u16(&mut body, ONE);
        body.push(0);
        self.exchange(Opcode::Query, &body).await
    }

    async fn start(&mut self, login: Option<&(String, String)>) -> Result<(), String> {
        let mut body = Vec::new();
        stdx::put_u16(&mut body, 1);
        stdx::put_short_bytes(&mut body, b"CQL_VERSION");
        stdx::put_short_bytes(&mut body, b"3.0.0");
        match (self.exchange(Opcode::Startup, &body).await?, login) {
            (Reply::Ready, _) => return Ok(()),
            (Reply::Authenticate, Some((name, password))) => {
                let token = format!("\0{name}\0{password}");
                let mut body = Vec::new();
                stdx::put_int_bytes(&mut body, Some(token.as_bytes()));
                match self.exchange(Opcode::AuthResponse, &body).await? {
                    Reply::AuthSuccess => return Ok(()),
                    other => Err(other),
                }
            }
            (Reply::Authenticate, None) => return Err("it wants a user name and a password".to_owned()),
            (other, _) => Err(other),
        }
        .map_err(|other| format!("an unexpected answer to the login: {other:?}"))
    }

    async fn exchange(&mut self, opcode: Opcode, body: &[u8]) -> Result<Reply, String> {
        let length = i32::try_from(body.len()).map_err(|_| "a question that is too long".to_owned())?;
        let mut frame = vec![answer::VERSION, 0, 0, 0, opcode as u8];
        stdx::put_i32(&mut frame, length);
        frame.extend_from_slice(body);
        let asking = async {
            self.stream.write_all(&frame).await?;
            self.stream.flush().await?;
            loop {
                if let Some(size) = answer::frame_size(&self.input).map_err(io::Error::other)?
                    && self.input.len() >= size
                {
                    return Ok(self.input.split_to(size).freeze());
                }
                self.input.reserve(READ_SIZE);
                if self.stream.read_buf(&mut self.input).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        };
        let answered = self.env.timeout(ANSWER_MAX, asking).await;
        let answered = answered.map_err(|_| io::Error::from(io::ErrorKind::TimedOut)).and_then(|answered| answered);
        let frame = answered.map_err(|error| error.to_string())?;
        let mut cursor = Cursor::new(&frame);
        let header = cursor.take(HEADER_SIZE).map_err(|error| error.to_string())?;
        answer::decode(header, cursor.rest())
    }
}
