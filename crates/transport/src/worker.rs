//! A worker: one thread, one runtime, one listener, its own connections.
//!
//! Nothing on the way of a request leaves the thread. Three tasks stand beside the connections: the
//! ticker looks for timeouts, the event task hands events to the connections that asked for them,
//! and the accept loop, which is the thread's main future, brings connections until the server
//! drains.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use env::Listener;
use tokio::sync::{mpsc, watch};

use crate::connection::{Origin, serve};
use crate::control::{CloseReason, Control, Link};
use crate::limits::ACCEPT_PAUSE;
use crate::protocol::Protocol;
use crate::session::{Opened, Service};
use crate::shared::{Arrival, Phase};
use crate::worker_core::WorkerCore;

/// Runs a worker through the phases of its server until that ends.
pub(crate) async fn run<V: Service>(
    core: Rc<WorkerCore<V::Protocol>>,
    service: Rc<V>,
    address: SocketAddr,
    listener: Box<dyn Listener>,
    mut arrivals: mpsc::Receiver<Arrival>,
    mut phase: watch::Receiver<Phase>,
) {
    let ticker = core.clone();
    tokio::task::spawn_local(async move { ticker.tick().await });
    let (events, subscription) = (core.clone(), core.shared.events.subscribe());
    tokio::task::spawn_local(async move { events.hand_out_events(subscription).await });
    let mut next = Some(listener);
    while let Some(listener) = next {
        let left = accept_while_serving(&core, &service, listener, &mut arrivals, &mut phase).await;
        wait_for_connections_to_end(&core, left).await;
        next = listen_again(&core, address, &mut arrivals, &mut phase).await;
    }
}

/// Accepts connections while the server serves; gives the phase that follows. The listener is
/// closed then.
async fn accept_while_serving<V: Service>(
    core: &Rc<WorkerCore<V::Protocol>>,
    service: &Rc<V>,
    mut listener: Box<dyn Listener>,
    arrivals: &mut mpsc::Receiver<Arrival>,
    phase: &mut watch::Receiver<Phase>,
) -> Phase {
    core.shared.listening.fetch_add(1, Ordering::AcqRel);
    let left = loop {
        tokio::select! {
            biased;
            left = phase.wait_for(|phase| *phase != Phase::Serving) => break left.map_or(Phase::Ended, |phase| *phase),
            Some(arrival) = arrivals.recv() => serve_here(core, service, arrival),
            accepted = env::accept_detached(&mut *listener) => match accepted {
                Ok(arrival) => {
                    if let Some(arrival) = core.hand_to_least_loaded(arrival) {
                        serve_here(core, service, arrival);
                    }
                }
                Err(error) => {
                    let shared = &core.shared;
                    match shared.unaccepted.add(shared.env.now()) {
                        Some(attempts) => tracing::warn!(%error, attempts, "cannot accept connections"),
                        None => tracing::debug!(%error, "cannot accept connections"),
                    }
                    shared.env.sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    };
    drop(listener);
    core.shared.listening.fetch_sub(1, Ordering::AcqRel);
    left
}

/// Waits for the end of all connections. Requests in flight have the time of a drain, unless they
/// are to be dropped.
async fn wait_for_connections_to_end<P: Protocol>(core: &Rc<WorkerCore<P>>, left: Phase) {
    if let Some(event) = core.shared.farewell() {
        core.for_each(|control| control.notify(&event));
    }
    let force = left == Phase::Closed { force: true };
    core.close_all(if force { CloseReason::Stop } else { CloseReason::Drain });
    let limit = core.shared.limits.drain_timeout;
    if core.shared.env.timeout(limit, core.wait_until_empty()).await.is_err() {
        tracing::warn!(
            connections = core.stats.connections.get(),
            "requests in flight dropped at the end of the drain"
        );
        core.close_all(CloseReason::Stop);
        core.wait_until_empty().await;
    }
    assert!(core.is_empty(), "no connection outlives the phase in which it was accepted");
}

/// Waits until the server serves again and listens; None: it has ended. A connection that another
/// worker still hands over meanwhile is closed.
async fn listen_again<P: Protocol>(
    core: &Rc<WorkerCore<P>>,
    address: SocketAddr,
    arrivals: &mut mpsc::Receiver<Arrival>,
    phase: &mut watch::Receiver<Phase>,
) -> Option<Box<dyn Listener>> {
    loop {
        let asked = tokio::select! {
            biased;
            Some(arrival) = arrivals.recv() => {
                core.close_arrival(arrival);
                continue;
            }
            asked = phase.wait_for(|phase| !matches!(phase, Phase::Closed { .. })) => asked.map_or(Phase::Ended, |phase| *phase),
        };
        if asked == Phase::Ended {
            return None;
        }
        match core.shared.env.network.bind(address, true) {
            Ok(listener) => return Some(listener),
            Err(error) => {
                tracing::warn!(%address, %error, "cannot listen again");
                core.shared.set_bind_error(error);
                // the one who asked closes the server again; until then others may accept
                core.shared.env.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves a connection on this thread. It is counted in this worker's arrival queue already.
fn serve_here<V: Service>(core: &Rc<WorkerCore<V::Protocol>>, service: &Rc<V>, (detached, peer): Arrival) {
    let (entry, refusal) = core.register(peer);
    if let Some(refusal) = &refusal {
        match core.shared.unlogged_refusals.add(core.shared.env.now()) {
            Some(refused) => tracing::warn!(%peer, refused, "{refusal}"),
            None => tracing::debug!(%peer, "{refusal}"),
        }
        if core.has_many_refusals() {
            return;
        }
    }
    let stream = match detached.attach() {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%peer, %error, "cannot serve a connection"),
    };
    let service = service.clone();
    tokio::task::spawn_local(async move {
        let stream = match &entry.core.shared.tls {
            None => stream,
            Some(tls) => match unless_ended(&entry.control, tls.accept_with_info(stream)).await {
                None => return tracing::debug!(%peer, "no connection: the server ended it in its TLS handshake"),
                Some(Ok((stream, encrypted))) => {
                    if let Some(encrypted) = encrypted {
                        let _ = entry.stats.encrypted.set(encrypted);
                    }
                    stream
                }
                Some(Err(error)) => return tracing::debug!(%peer, %error, "no connection: the TLS handshake failed"),
            },
        };
        let session = service.open(Opened { peer, stats: entry.stats.clone(), link: Link::new(&entry.control) });
        let (core, control, stats) = (entry.core.clone(), entry.control.clone(), entry.stats.clone());
        serve(Origin { core, control, stats, peer, refusal }, session, stream).await;
    });
}

/// The outcome of a TLS handshake; None: the worker wants the connection to end. A client whose
/// handshake is not done has no request in flight, and a drain that waited for such a client
/// would last as long as the client says nothing.
async fn unless_ended<P: Protocol, T>(control: &Control<P>, handshake: impl Future<Output = T>) -> Option<T> {
    let mut handshake = pin!(handshake);
    poll_fn(|context| {
        control.set_waker(context.waker());
        match control.close_reason.get() {
            Some(_) => Poll::Ready(None),
            None => handshake.as_mut().poll(context).map(Some),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Wake, Waker};

    use env::Instant;

    use super::*;
    use crate::protocol::Silent;

    /// The number of wakes.
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A client connects, begins no handshake, and the server stops.
    #[test]
    fn a_drain_waits_for_no_handshake() {
        let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&wakes));
        let mut context = Context::from_waker(&waker);
        let control = Control::<Silent>::new(Instant::from_nanos(0));
        let mut handshake = pin!(unless_ended(&control, std::future::pending::<()>()));
        assert_eq!(handshake.as_mut().poll(&mut context), Poll::Pending);
        control.close(CloseReason::Drain);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1, "the connection is told");
        assert_eq!(handshake.as_mut().poll(&mut context), Poll::Ready(None));
    }
}
