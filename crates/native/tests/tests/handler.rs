//! A handler that does what the text of a query says, and a server of it.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use env::{Env, Instant};
use native::{
    AuthOutcome, Authenticator, ConnectionInfo, Handled, PASSWORD_AUTHENTICATOR, RequestHandler, Server, ServerLimits,
    ServerOptions,
};
use protocol::request::AuthResponse;
use protocol::response::{ColumnSpec, ResultMetadata, Rows};
use protocol::{ErrorMessage, Request, RequestEnvelope, Response, ResponseEnvelope};
use types::CqlType;

/// Counts of the handler's work that the tests look at.
#[derive(Default)]
pub struct Seen {
    pub running: AtomicUsize,
    pub running_max: AtomicUsize,
    pub connected: AtomicUsize,
    pub disconnected: AtomicUsize,
}

pub struct TestHandler {
    env: Env,
    seen: Arc<Seen>,
    metadata: Arc<ResultMetadata>,
}

struct Running(Arc<Seen>);

impl Running {
    fn new(seen: &Arc<Seen>) -> Self {
        let now = seen.running.fetch_add(1, Ordering::SeqCst) + 1;
        seen.running_max.fetch_max(now, Ordering::SeqCst);
        Self(seen.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl RequestHandler for TestHandler {
    type Client = ConnectionInfo;
    type Last = Pin<Box<dyn Future<Output = ResponseEnvelope>>>;

    fn connect(&self, info: ConnectionInfo) -> Rc<ConnectionInfo> {
        self.seen.connected.fetch_add(1, Ordering::SeqCst);
        Rc::new(info)
    }

    fn disconnect(&self, _: &ConnectionInfo) {
        self.seen.disconnected.fetch_add(1, Ordering::SeqCst);
    }

    async fn handle(
        self: Rc<Self>,
        client: Rc<ConnectionInfo>,
        request: RequestEnvelope,
        _: Instant,
    ) -> Handled<Self::Last> {
        let running = Running::new(&self.seen);
        let Request::Query(query) = request.request else {
            return Handled::Answered(ResponseEnvelope::new(0, Response::Void));
        };
        let mut words = query.query.split(' ');
        let (verb, number) = (words.next(), words.next().and_then(|word| word.parse::<usize>().ok()));
        let response = match (verb, number) {
            (Some("void"), _) => Response::Void,
            (Some("user"), _) => Response::SetKeyspace(client.user.as_deref().unwrap_or("").to_owned()),
            (Some("use"), _) => {
                client.stats.set_keyspace("ks");
                Response::SetKeyspace("ks".to_owned())
            }
            (Some("slow"), Some(millis)) => {
                self.env.sleep(Duration::from_millis(millis as u64)).await;
                Response::Void
            }
            (Some("rows"), Some(size)) => {
                let body = Bytes::from((0..size).map(|byte| byte as u8).collect::<Vec<u8>>());
                Response::Rows(Box::new(Rows::new(self.metadata.clone(), 1, body)))
            }
            (Some("panic"), _) => panic!("as asked"),
            (Some("last"), Some(millis)) => {
                // it begins now, whoever is asked first
                let sleep = self.env.sleep(Duration::from_millis(millis as u64));
                return Handled::Last(Box::pin(async move {
                    let _running = running;
                    sleep.await;
                    ResponseEnvelope::new(0, Response::SetKeyspace(millis.to_string()))
                }));
            }
            (Some("slow-last"), Some(millis)) => {
                self.env.sleep(Duration::from_millis(millis as u64)).await;
                return Handled::Last(Box::pin(async move {
                    let _running = running;
                    ResponseEnvelope::new(0, Response::SetKeyspace("slow-last".to_owned()))
                }));
            }
            (Some("last-panic"), _) => return Handled::Last(Box::pin(async { panic!("as asked") })),
            _ => Response::Error(ErrorMessage::syntax("what?")),
        };
        Handled::Answered(ResponseEnvelope::new(0, response))
    }
}

/// Lets in cassandra/cassandra.
struct Password;

impl Authenticator for Password {
    fn class_name(&self) -> Option<&str> {
        Some(PASSWORD_AUTHENTICATOR)
    }

    fn authenticate(&self, response: AuthResponse) -> Pin<Box<dyn Future<Output = AuthOutcome>>> {
        Box::pin(async move {
            match response.plain() {
                Some(("cassandra", "cassandra")) => Ok(Arc::from("cassandra")),
                _ => Err(protocol::ErrorMessage::new(
                    protocol::ErrorKind::BadCredentials,
                    "Provided username and/or password are incorrect",
                )),
            }
        })
    }
}

pub fn options() -> ServerOptions {
    ServerOptions::new("127.0.0.1:0".parse().unwrap())
}

pub fn password() -> Arc<dyn Authenticator> {
    Arc::new(Password)
}

pub fn start(options: ServerOptions) -> (Server, Arc<Seen>) {
    let env = env::real::env();
    let seen = Arc::new(Seen::default());
    let (of_handler, to_handlers) = (seen.clone(), env.clone());
    let server = native::start(&env, options, move |_| {
        let column = ColumnSpec { keyspace: "ks".into(), table: "t".into(), name: "c".into(), cql_type: CqlType::Blob };
        TestHandler {
            env: to_handlers.clone(),
            seen: of_handler.clone(),
            metadata: Arc::new(ResultMetadata::new(vec![column])),
        }
    });
    (server.unwrap(), seen)
}

pub fn start_with(limits: ServerLimits) -> (Server, Arc<Seen>) {
    start(ServerOptions { limits, ..options() })
}

/// Waits until `done`, for at most five seconds.
pub fn eventually(mut done: impl FnMut() -> bool) {
    for _ in 0..500 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it did not happen");
}
