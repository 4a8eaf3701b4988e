//! A load from its beginning to its end.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use env::{Env, LocalFuture, LocalFutureFactory};
use internode::{Envelope, InternodeError, LinkType, MessagingVersion};
use links::{Encryption, LinkOptions, LinkSettings, Peer, Receiver, Scope, StreamOpener};
use schema::TableMetadata;
use sstable::{Descriptor, NoCache, SSTable};

use crate::options::Options;
use crate::peer_connector::{Paces, PeerConnector, Shared, TAKING_MAX, own_address};
use crate::plan::{self, PeerShare};
use crate::target::{self, Target};
use crate::watch::{Planned, Watch};
use crate::{columns, session};

/// SSTables of one load. Their data files and indexes are open until the load ends.
pub const SSTABLES_MAX: usize = 4096;

/// The end of the sessions with a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerResult {
    /// The share that the node was to get.
    pub planned: Planned,
    /// Whether it has all of it; an error is a sentence.
    pub result: Result<(), String>,
}

/// The end of a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadResult {
    /// The nodes that were to get something, by their addresses.
    pub peers: Vec<PeerResult>,
    /// The keyspace's replication factor, over all data centers.
    pub replication: u32,
}

impl LoadResult {
    /// The nodes that have not got everything.
    pub fn failures(&self) -> impl Iterator<Item = &PeerResult> {
        self.peers.iter().filter(|peer| peer.result.is_err())
    }
}

/// Loads SSTables, on a thread of its own; waits for the end. Err: why nothing was sent.
pub fn load(
    env: &Env,
    options: Options,
    sstables: Vec<Descriptor>,
    watch: Arc<dyn Watch>,
) -> Result<LoadResult, String> {
    let of_thread = env.clone();
    on_thread(env, move || Box::pin(async move { run(&of_thread, options, sstables, watch).await }))
}

/// Runs a future to its end on a thread of its own that runs local tasks.
pub(crate) fn on_thread<T: Send + 'static>(
    env: &Env,
    make: impl FnOnce() -> Pin<Box<dyn Future<Output = Result<T, String>>>> + Send + 'static,
) -> Result<T, String> {
    let (tell, told) = std::sync::mpsc::channel();
    let make: LocalFutureFactory =
        Box::new(move || -> LocalFuture { Box::pin(async move { drop(tell.send(make().await)) }) });
    env.tasks.spawn_local_worker("load", make).join()?;
    told.recv().unwrap_or_else(|_| Err("the thread of the load ended early".to_owned()))
}

/// As [`load`], within a thread that runs local tasks.
pub async fn run(
    env: &Env,
    options: Options,
    sstables: Vec<Descriptor>,
    watch: Arc<dyn Watch>,
) -> Result<LoadResult, String> {
    if sstables.len() > SSTABLES_MAX {
        return Err(format!("{} SSTables at one time, the limit is {SSTABLES_MAX}", sstables.len()));
    }
    let Target { ring, table } = target::learn(env, &options).await?;
    let replicas = plan::replicas(&ring, &options.keyspace, &options.ignored)?;
    let (of_job, connections) = (env.clone(), options.connections_per_host);
    let job = move || -> Result<Vec<PeerShare>, String> {
        let sstables = sstables.iter().map(|descriptor| open(&of_job, descriptor, &table));
        let sstables = sstables.collect::<Result<Vec<_>, _>>()?;
        let shares = replicas.iter().map(|replica| plan::share(&of_job, replica, &sstables, connections));
        Ok(shares.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    };
    let shares = env.blocking_long("load", job).await.map_err(|full| full.to_string())??;
    let planned: Vec<Planned> = shares.iter().map(planned).collect();
    watch.planned(&planned);
    let peers = stream(env, &options, shares, planned, watch).await?;
    let replication = ring.placement(&options.keyspace).map_or(0, |placement| placement.replication.factor());
    Ok(LoadResult { peers, replication })
}

fn planned(share: &PeerShare) -> Planned {
    let files = share.sessions.iter().flatten();
    let bytes = files.clone().fold(0u64, |sum, file| sum.saturating_add(file.weight.1));
    Planned { peer: share.peer, files: files.count(), bytes }
}

/// Opens an SSTable as one of the ring's table. Waits for the disk.
fn open(env: &Env, descriptor: &Descriptor, table: &Arc<TableMetadata>) -> Result<SSTable, String> {
    let sstable = SSTable::open(env, descriptor.clone(), table, Arc::new(NoCache));
    let sstable = sstable.map_err(|error| error.to_string())?;
    let name = descriptor.path(sstable::Component::Data);
    match columns::check(&sstable.statistics().header, table) {
        Ok(()) => Ok(sstable),
        Err(why) => Err(format!("{}: {why} {}.{}", name.display(), table.keyspace, table.name)),
    }
}

/// Runs all sessions with all nodes, and gives their ends in the order of `planned`.
async fn stream(
    env: &Env,
    options: &Options,
    shares: Vec<PeerShare>,
    planned: Vec<Planned>,
    watch: Arc<dyn Watch>,
) -> Result<Vec<PeerResult>, String> {
    let Some(first) = shares.first() else { return Ok(Vec::new()) };
    let from = own_address(first.peer);
    let opener = |version| Ok::<_, String>((version, opener(env, options, from, version)?));
    let shared = Rc::new(Shared {
        plan: types::timeuuid::from_micros(env.clock.now_micros(), variant(env.random.next_u64())),
        paces: RefCell::new(Paces::new(env, options.throttle)),
        watch,
        openers: vec![opener(MessagingVersion::V13)?, opener(MessagingVersion::V12)?],
    });
    let mut running = Vec::new();
    for share in shares {
        let PeerShare { peer, is_far, sessions } = share;
        let (env, shared) = (env.clone(), Rc::clone(&shared));
        let connector = Rc::new(PeerConnector { env, shared, peer, is_far, understood: Cell::new(0) });
        let sessions = (0..)
            .zip(sessions)
            .map(|(index, files)| tokio::task::spawn_local(session::run(Rc::clone(&connector), index, files)));
        running.push(sessions.collect::<Vec<_>>());
    }
    let mut ends = Vec::new();
    for (planned, sessions) in planned.into_iter().zip(running) {
        let mut result = Ok(());
        for session in sessions {
            let ended = session.await.unwrap_or_else(|error| Err(error.to_string()));
            result = result.and(ended);
        }
        ends.push(PeerResult { planned, result });
    }
    Ok(ends)
}

/// The second half of a UUID with the bits of its variant.
fn variant(random: u64) -> u64 {
    random & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000
}

fn opener(env: &Env, options: &Options, from: SocketAddr, version: MessagingVersion) -> Result<StreamOpener, String> {
    let encryption = options.internode_tls.as_ref().map(|tls| Encryption::open(env, Scope::All, tls, tls));
    let options = LinkOptions {
        listen: from,
        local: from,
        version,
        compression: Scope::None,
        encryption: encryption.transpose()?,
        settings: LinkSettings { stream_user_timeout: TAKING_MAX, ..LinkSettings::default() },
    };
    let receiver: Arc<dyn Receiver> = Arc::new(NoMessages);
    Ok(StreamOpener::new(env, &options, &receiver))
}

/// A loader takes no messages.
struct NoMessages;

impl Receiver for NoMessages {
    fn received(&self, _from: &Peer, _link: LinkType, _message: Envelope) -> Result<(), InternodeError> {
        Ok(())
    }
}
