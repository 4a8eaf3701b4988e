//! A replica: a file for each key, written before the write is acknowledged; requests wait in a
//! bounded queue for one task that serves them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use env::sim::{DATA, World};
use env::{Env, Stream, accept};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use super::message::{Message, SIZE, Stamped};
use super::{Defect, INBOX_MAX, Shared};

/// The port on which replicas listen.
pub(super) const PORT: u16 = 7000;

/// The bound of the queue with the defect [`super::Defect::NoBound`]: it is so large that no run
/// reaches it.
const INBOX_WITHOUT_BOUND: usize = 1 << 16;

type Waiting = (Message, oneshot::Sender<Stamped>);

/// Starts the replica of a machine on what its disk has.
pub(super) fn start(world: &World, machine: usize, shared: &Shared) {
    let (env, shared) = (world.env(machine), shared.clone());
    let own = env.clone();
    env.tasks.spawn_local_worker("replica", Box::new(move || Box::pin(serve(own, shared))));
}

async fn serve(env: Env, shared: Shared) {
    let bound = if shared.defect == Some(Defect::NoBound) { INBOX_WITHOUT_BOUND } else { INBOX_MAX };
    let (sender, inbox) = mpsc::channel(bound);
    let waiting = Arc::new(AtomicUsize::new(0));
    let (of_task, seen) = (env.clone(), waiting.clone());
    tokio::task::spawn_local(process_inbox(of_task, shared.clone(), inbox, seen));
    let address = SocketAddr::from(([0, 0, 0, 0], PORT));
    let mut listener = env.network.bind(address, false).expect("the last life's listener is gone");
    while let Ok((stream, _)) = accept(listener.as_mut()).await {
        tokio::task::spawn_local(answer(stream, sender.clone(), shared.clone(), waiting.clone()));
    }
}

/// Serves a connection: one request after the other.
async fn answer(mut stream: Box<dyn Stream>, inbox: mpsc::Sender<Waiting>, shared: Shared, waiting: Arc<AtomicUsize>) {
    let mut bytes = [0; SIZE];
    while stream.read_exact(&mut bytes).await.is_ok() {
        let request = Message::decode(&bytes);
        let (sender, receiver) = oneshot::channel();
        let Ok(room) = inbox.reserve().await else { return };
        let count = waiting.fetch_add(1, Ordering::Relaxed) + 1;
        shared.inbox_most.fetch_max(count, Ordering::Relaxed);
        room.send((request, sender));
        let Ok(stamped) = receiver.await else { return };
        if stream.write_all(&Message { stamped, ..request }.encode()).await.is_err() {
            return;
        }
    }
}

async fn process_inbox(env: Env, shared: Shared, mut inbox: mpsc::Receiver<Waiting>, waiting: Arc<AtomicUsize>) {
    while let Some((request, answer)) = inbox.recv().await {
        waiting.fetch_sub(1, Ordering::Relaxed);
        // what cannot be stored is not acknowledged
        if let Some(stamped) = execute(&env, &shared, &request) {
            // who asked may be gone
            let _ = answer.send(stamped);
        }
        env.sleep(std::time::Duration::from_micros(env.random.below(300))).await;
    }
}

fn execute(env: &Env, shared: &Shared, request: &Message) -> Option<Stamped> {
    // what cannot be read is not taken for nothing
    let held = load(env, request.key).ok()?.unwrap_or_default();
    if shared.defect == Some(Defect::MakeUp) && !request.is_store && env.random.below(50) == 0 {
        return Some(Stamped { stamp: held.stamp + 256, value: Some(1_000_000 + held.stamp) });
    }
    if !request.is_store || request.stamped <= held {
        return Some(held);
    }
    let forgets = shared.defect == Some(Defect::ForgetDeletion) && request.stamped.value.is_none();
    if forgets && env.random.below(2) == 0 {
        return Some(request.stamped);
    }
    store(env, shared, request).ok().map(|()| request.stamped)
}

fn store(env: &Env, shared: &Shared, request: &Message) -> std::io::Result<()> {
    let (path, bytes) = (path(request.key), request.encode());
    if shared.defect == Some(Defect::NoSync) {
        return env.disk.create(&path)?.write_all(&bytes);
    }
    env.disk.replace_file(&path, &bytes)
}

fn path(key: u64) -> PathBuf {
    PathBuf::from(format!("{DATA}/register-{key}"))
}

/// The record of a key on the disk; None: there is none, or it is not complete.
pub(super) fn load(env: &Env, key: u64) -> std::io::Result<Option<Stamped>> {
    match env.disk.read_all(&path(key), SIZE as u64) {
        Ok(bytes) => Ok(bytes.try_into().ok().map(|bytes| Message::decode(&bytes).stamped)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
