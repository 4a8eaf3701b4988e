//! The ops thread: the admin port, on a runtime of its own, so that a busy worker does not silence
//! it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use admin::ServedApi;
use admin::http::{Access, AskReplay, Console, PortSecurity, TokenFile};
use env::{Env, Joinable, Listener};
use tokio::sync::oneshot;

/// The side that answers at the admin port.
enum Served {
    /// A node that runs, its console, and the file for the token of those who change something;
    /// None: nothing can be changed.
    Node(Arc<dyn ServedApi>, Arc<dyn Console>, Option<TokenFile>),
    /// A node that replays its commit log.
    Start(AskReplay),
}

impl Served {
    /// The token that callers must show to change something; written once the port is known.
    fn access(&self, env: &Env, port: u16) -> Access {
        match self {
            Served::Node(_, _, token) => access(env, token.as_ref(), port),
            Served::Start(_) => Access::ReadOnly("the node is starting".to_owned()),
        }
    }

    async fn serve(
        self,
        env: Env,
        listener: Box<dyn Listener>,
        access: Access,
        security: PortSecurity,
    ) -> io::Result<()> {
        match self {
            Served::Node(api, console, _) => admin::http::serve(env, listener, api, console, access, security).await,
            Served::Start(ask) => admin::http::serve_starting(env, listener, ask, security).await,
        }
    }
}

/// Writes the token file. A node that cannot write it cannot be changed over the admin port.
fn access(env: &Env, token: Option<&TokenFile>, port: u16) -> Access {
    let Some(token) = token else { return Access::ReadOnly("the node was started with --read-only".to_owned()) };
    match token.write(env, port) {
        Ok(()) => Access::Token(token.token.clone()),
        Err(error) => {
            let path = token.path.display();
            tracing::warn!(%error, %path, "the token file cannot be written: the admin port refuses changes");
            Access::ReadOnly(format!("the node could not write {path}: {error}"))
        }
    }
}

/// The running ops thread. Dropping it ends the thread.
pub struct Ops {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<Box<dyn Joinable>>,
}

impl Ops {
    /// Starts the thread; returns when it listens. The token is written to its file once the port
    /// is known.
    pub fn start(
        env: &Env,
        address: SocketAddr,
        api: Arc<dyn ServedApi>,
        console: Arc<dyn Console>,
        token: Option<TokenFile>,
        security: PortSecurity,
    ) -> io::Result<Self> {
        Self::start_with(env, address, Served::Node(api, console, token), security)
    }

    /// Starts the thread for a node that still replays its commit log.
    pub(crate) fn start_early(
        env: &Env,
        address: SocketAddr,
        ask: AskReplay,
        security: PortSecurity,
    ) -> io::Result<Self> {
        Self::start_with(env, address, Served::Start(ask), security)
    }

    fn start_with(env: &Env, address: SocketAddr, served: Served, security: PortSecurity) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let of_thread = env.clone();
        let body = move || serve(of_thread, address, served, security, stopped, &tell);
        let thread = env.tasks.spawn_worker("ops", Box::new(body));
        let address = told.recv().unwrap_or_else(|_| Err(io::Error::other("the ops thread ended at its start")))?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address on which the port listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Ops {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(Err(panic)) = self.thread.take().map(Joinable::join) {
            tracing::error!(panic, "the ops thread had panicked");
        }
    }
}

fn serve(
    env: Env,
    address: SocketAddr,
    served: Served,
    security: PortSecurity,
    stopped: oneshot::Receiver<()>,
    tell: &std::sync::mpsc::Sender<io::Result<SocketAddr>>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return drop(tell.send(Err(error))),
    };
    runtime.block_on(async move {
        let bound = env.network.bind(address, false).and_then(|listener| {
            let address = listener.local_address()?;
            Ok((listener, address))
        });
        let (listener, access) = match bound {
            Ok((listener, address)) => {
                let access = served.access(&env, address.port());
                drop(tell.send(Ok(address)));
                (listener, access)
            }
            Err(error) => return drop(tell.send(Err(error))),
        };
        tokio::select! {
            _ = stopped => {}
            ended = served.serve(env, listener, access, security) => {
                if let Err(error) = ended {
                    tracing::error!(%error, "the admin port ended");
                }
            }
        }
    });
}
