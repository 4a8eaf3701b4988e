//! A client: coordinates reads and writes by majorities, and writes down its operations and their
//! answers.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use env::Env;
use env::sim::{World, address_of};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::message::{Message, SIZE, Stamped};
use super::{CLIENTS, Defect, REPLICAS, Shared, VERSIONED_FROM, replica};
use crate::history::{Action, Outcome};

/// Number of clients on a machine; each does one operation after the other.
const PER_MACHINE: usize = 4;
const CONTENDED_KEYS: u64 = 2;
/// Longest time of an operation.
const PATIENCE: Duration = Duration::from_secs(1);

/// Starts all clients; each works until `seconds` are over.
pub(super) fn start_all(world: &World, shared: &Shared, seconds: u64) {
    for machine in REPLICAS..REPLICAS + CLIENTS {
        for number in 0..PER_MACHINE {
            let env = world.env(machine);
            let client = Client {
                env: env.clone(),
                shared: shared.clone(),
                number: (machine - REPLICAS) * PER_MACHINE + number,
                last_count: Cell::new(0),
            };
            shared.working.fetch_add(1, Ordering::Relaxed);
            env.tasks.spawn_local_worker("client", Box::new(move || Box::pin(client.work(seconds))));
        }
    }
}

/// Has all replicas store the newest value of each key.
pub(super) fn repair(world: &World, shared: &Shared) {
    let client =
        Client { env: world.env(REPLICAS), shared: shared.clone(), number: usize::MAX, last_count: Cell::new(0) };
    let all = CLIENTS * PER_MACHINE;
    let versioned = (0..all as u64).map(|number| VERSIONED_FROM + number);
    let env = client.env.clone();
    shared.working.fetch_add(1, Ordering::Relaxed);
    let keys: Vec<u64> = (0..CONTENDED_KEYS).chain(versioned).collect();
    let own = client.shared.clone();
    let repair_all = move || async move {
        for key in keys {
            client.repair(key).await;
        }
        client.shared.working.fetch_sub(1, Ordering::Relaxed);
    };
    env.tasks.spawn_local_worker("repair", Box::new(move || Box::pin(repair_all())));
    world.run_until(Duration::from_secs(600), || own.working.load(Ordering::Relaxed) == 0);
}

struct Client {
    env: Env,
    shared: Shared,
    number: usize,
    /// The greatest count in a stamp that this client has given.
    last_count: Cell<u64>,
}

/// Sends a request to a replica and waits for its answer.
async fn ask(env: &Env, replica: usize, request: Message) -> std::io::Result<Stamped> {
    let address = SocketAddr::new(address_of(replica), replica::PORT);
    let mut stream = env.network.connect(address).await?;
    stream.write_all(&request.encode()).await?;
    let mut bytes = [0; SIZE];
    stream.read_exact(&mut bytes).await?;
    Ok(Message::decode(&bytes).stamped)
}

impl Client {
    /// Asks these replicas side by side; gives the first `wanted` answers; None: fewer came in
    /// time.
    async fn ask_all(&self, replicas: &[usize], wanted: usize, request: Message) -> Option<Vec<Stamped>> {
        let (sender, mut answers) = mpsc::channel(REPLICAS);
        for replica in replicas.iter().copied() {
            let (env, sender) = (self.env.clone(), sender.clone());
            tokio::task::spawn_local(async move {
                if let Ok(Ok(stamped)) = env.timeout(PATIENCE, ask(&env, replica, request)).await {
                    // who has enough answers listens no more
                    let _ = sender.send(stamped).await;
                }
            });
        }
        drop(sender);
        let mut heard = Vec::new();
        while heard.len() < wanted {
            heard.push(answers.recv().await?);
        }
        Some(heard)
    }

    async fn ask_majority(&self, request: Message) -> Option<Vec<Stamped>> {
        self.ask_all(&[0, 1, 2], REPLICAS / 2 + 1, request).await
    }

    async fn newest(&self, key: u64) -> Option<Stamped> {
        let request = Message { is_store: false, key, stamped: Stamped::default() };
        if self.shared.defect == Some(Defect::ReadOne) {
            let one = self.env.random.below(REPLICAS as u64) as usize;
            return self.ask_all(&[one], 1, request).await?.into_iter().max();
        }
        self.ask_majority(request).await?.into_iter().max()
    }

    async fn read(&self, key: u64) -> Outcome {
        let Some(newest) = self.newest(key).await else { return Outcome::Failed };
        let stores = self.shared.defect != Some(Defect::ReadOne);
        let request = Message { is_store: true, key, stamped: newest };
        if stores && newest.stamp > 0 && self.ask_majority(request).await.is_none() {
            return Outcome::Failed;
        }
        Outcome::Value(newest.value)
    }

    async fn write(&self, key: u64, value: Option<u64>) -> Outcome {
        let Some(newest) = self.newest(key).await else { return Outcome::Failed };
        // a write of which nothing was heard may be somewhere: its stamp is never given again
        let count = (newest.stamp >> 8).max(self.last_count.get()) + 1;
        self.last_count.set(count);
        let stamp = count << 8 | self.number as u64;
        let request = Message { is_store: true, key, stamped: Stamped { stamp, value } };
        match self.ask_majority(request).await {
            Some(_) => Outcome::Done,
            None => Outcome::Unknown,
        }
    }

    async fn operate(&self, key: u64, action: Action) {
        let now = || self.shared_now();
        let number = self.shared.history.begin(self.number, key, action, now());
        let outcome = match action {
            Action::Read => self.read(key).await,
            Action::Write(value) => self.write(key, Some(value)).await,
            Action::Delete(_) => self.write(key, None).await,
            Action::CompareAndSet { .. } => Outcome::Failed,
        };
        self.shared.history.end(number, outcome, now());
    }

    /// The present time on the timeline. Clients' clocks neither drift nor step, so it is their
    /// monotonic time.
    fn shared_now(&self) -> u64 {
        self.env.now().as_nanos()
    }

    async fn work(self, seconds: u64) {
        let mut version = 0;
        let own = VERSIONED_FROM + self.number as u64;
        let clients = (CLIENTS * PER_MACHINE) as u64;
        while self.shared_now() < seconds * 1_000_000_000 {
            let random = &self.env.random;
            let contended = random.below(CONTENDED_KEYS);
            let other = VERSIONED_FROM + random.below(clients);
            version += 1;
            match random.below(10) {
                0 | 1 => self.operate(contended, Action::Write((self.number as u64 + 1) << 32 | version)).await,
                2..=4 => self.operate(contended, Action::Read).await,
                5 => self.operate(own, Action::Delete(version)).await,
                6 | 7 => self.operate(own, Action::Write(version)).await,
                _ => self.operate(other, Action::Read).await,
            }
            self.env.sleep(Duration::from_millis(random.below(100))).await;
        }
        self.shared.working.fetch_sub(1, Ordering::Relaxed);
    }

    /// Reads from all replicas, again and again until all answer, and stores the newest value on
    /// all of them.
    async fn repair(&self, key: u64) {
        let all: &[usize] = if self.shared.defect == Some(Defect::RepairOne) { &[0, 1] } else { &[0, 1, 2] };
        let read = Message { is_store: false, key, stamped: Stamped::default() };
        loop {
            if let Some(heard) = self.ask_all(all, all.len(), read).await {
                let stamped = heard.into_iter().max().unwrap_or_default();
                let store = Message { is_store: true, key, stamped };
                if stamped.stamp == 0 || self.ask_all(all, all.len(), store).await.is_some() {
                    return;
                }
            }
        }
    }
}
