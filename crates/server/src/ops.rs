//! The ops thread: the admin port, on a runtime of its own, so that a busy worker does not silence it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use admin::AdminApi;
use admin::http::AskReplay;
use env::{Env, Joinable, Listener};
use tokio::sync::oneshot;

/// Who answers.
enum Served {
    Node(Arc<dyn AdminApi>),
    Start(AskReplay),
}

impl Served {
    async fn serve(self, env: Env, listener: Box<dyn Listener>) -> io::Result<()> {
        match self {
            Served::Node(api) => admin::http::serve(env, listener, api).await,
            Served::Start(ask) => admin::http::serve_starting(listener, ask).await,
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
    /// Starts the thread; returns when it listens.
    pub fn start(env: &Env, address: SocketAddr, api: Arc<dyn AdminApi>) -> io::Result<Self> {
        Self::start_with(env, address, Served::Node(api))
    }

    /// The same for a node that is not there yet.
    pub(crate) fn start_early(env: &Env, address: SocketAddr, ask: AskReplay) -> io::Result<Self> {
        Self::start_with(env, address, Served::Start(ask))
    }

    fn start_with(env: &Env, address: SocketAddr, served: Served) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let of_thread = env.clone();
        let body = move || serve(of_thread, address, served, stopped, &tell);
        let thread = env.tasks.spawn_worker("ops", Box::new(body));
        let address = told.recv().unwrap_or_else(|_| Err(io::Error::other("the ops thread ended at its start")))?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
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
        let listener = match bound {
            Ok((listener, address)) => {
                drop(tell.send(Ok(address)));
                listener
            }
            Err(error) => return drop(tell.send(Err(error))),
        };
        tokio::select! {
            _ = stopped => {}
            ended = served.serve(env, listener) => {
                if let Err(error) = ended {
                    tracing::error!(%error, "the admin port ended");
                }
            }
        }
    });
}
