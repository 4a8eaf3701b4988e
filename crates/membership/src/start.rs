//! The way of a node into its ring: [`Membership::join`].
//!
//! In: links are opened; the seeds are asked for the ring (shadow round); what they say is compared
//! with what this node wants to be; gossip begins. The way out is [`crate::stop`]; dropping a
//! [`Membership`] is like the death of the process.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env::rare::{Rare, happens};
use env::{Env, Joinable, LocalFutureFactory};
use gossip::options::{GENERATION_AHEAD_MAX, PARTITIONER, ROUND};
use gossip::shadow::{ShadowRoundResult, as_member, is_hearsay};
use gossip::{Gossip, Local, Now, Options, Status};
use internode::payload::gossip::{ApplicationState, EndpointState, States, VersionedValue};
use links::{LinkOptions, Links, Receiver};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::callbacks::Callbacks;
use crate::local_states::LocalApplicationStates;
use crate::shared::{MembershipHandler, Messenger, Shared, State};
use crate::verbs::VerbCounters;

/// Pause before the seeds are asked again. Each further pause is twice as long, up to
/// [`SHADOW_REPEAT_MAX`]. Cassandra asks every five seconds: nodes that start together, each in
/// its own shadow round, would stand still for that long.
const SHADOW_REPEAT_MIN: Duration = Duration::from_millis(250);

/// The longest pause between two questions to the seeds.
const SHADOW_REPEAT_MAX: Duration = Duration::from_secs(5);

/// Time after which nodes that storage knows are asked too, beside the seeds.
const SHADOW_OTHERS: Duration = Duration::from_secs(5);

/// Time after which the names of the seeds are looked up again while no seed answers: they may
/// have other addresses than at the start.
const SEEDS_AGAIN: Duration = Duration::from_secs(60);

/// Time after which the look at the ring is given up (twice `StorageService.RING_DELAY`).
const SHADOW_MAX: Duration = Duration::from_secs(60);

/// Time after which a seed that finds no other node goes on alone.
const SHADOW_SEED_MAX: Duration = Duration::from_secs(30);

/// Time between two looks whether answers have come.
const SHADOW_LOOK: Duration = Duration::from_millis(10);

/// Longest time that a node that has joined waits for signs of life of the other members before it
/// serves clients.
const SETTLE_MAX: Duration = Duration::from_secs(3);

const _: () = {
    assert!(SHADOW_LOOK.as_millis() < SHADOW_REPEAT_MIN.as_millis(), "an answer is seen before the next question");
    assert!(SHADOW_REPEAT_MIN.as_millis() < SHADOW_REPEAT_MAX.as_millis(), "pauses grow");
    assert!(SHADOW_OTHERS.as_secs() < SHADOW_SEED_MAX.as_secs(), "a seed asks whom it knows before it goes on alone");
    assert!(SHADOW_SEED_MAX.as_secs() < SHADOW_MAX.as_secs(), "a seed goes on before others give up");
};

/// How a node joins.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// Links: addresses, version, framing.
    pub links: LinkOptions,
    /// Gossip: cluster, seeds, thresholds.
    pub gossip: Options,
    /// Seconds since 1970 at the start, but at least one more than the generation of the start
    /// before.
    pub generation: i32,
    /// True: the node shows itself as a member at once. Otherwise it only takes part in gossip
    /// until [`Membership::become_member`].
    pub is_member: bool,
    /// The status that a node tells at once if it is no member yet and was on its way in at an
    /// earlier start; None: it tells none.
    pub joining: Option<String>,
    /// The node that this one replaces, whose tokens this one may have; None: it replaces none.
    pub replaces: Option<SocketAddr>,
    /// Links to members of the own data center go to the internal addresses that they tell.
    pub prefers_local: bool,
    /// The values that this node tells of itself.
    pub local_states: LocalApplicationStates,
    /// Members that storage knows from before the restart (`system.peers_v2`). They are asked for
    /// the ring when no seed has answered for five seconds.
    pub remembered: States,
}

/// Why a node did not join.
#[derive(Debug)]
pub enum JoinError {
    /// The storage port cannot be listened on.
    Port(SocketAddr, io::Error),
    /// No seed has answered.
    NoSeed {
        /// The `cluster_name` of this node, which seeds of another one do not answer.
        cluster: String,
        /// The seeds that took a link and said nothing of the ring.
        silent: Vec<SocketAddr>,
        /// The seeds to which no link could be opened.
        unreachable: Vec<SocketAddr>,
    },
    /// The address belongs to a node with another host id.
    AddressTaken {
        /// The address.
        address: SocketAddr,
        /// The host id that the ring knows.
        host_id: String,
    },
    /// The ring knows the address as that of a node that was replacing the former node there and
    /// has not finished. This start does not go on with the replacement, and would make the node a
    /// member without its data.
    ReplacementUnfinished(SocketAddr),
    /// The host id and the tokens of the node cannot be made durable, so that its next start might
    /// come with others.
    Identity(String),
    /// The data of the node has not come, or the node may not fetch it; a sentence.
    Bootstrap(String),
    /// A token belongs to another node.
    TokenTaken {
        /// The token.
        token: i64,
        /// Its owner.
        owner: SocketAddr,
    },
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(address, error) => write!(f, "cannot listen for other nodes on {address}: {error}"),
            Self::NoSeed { cluster, silent, unreachable } => {
                let list = |seeds: &[SocketAddr]| seeds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                f.write_str("none of the seeds answers:")?;
                if !silent.is_empty() {
                    let of = list(silent);
                    write!(
                        f,
                        " {of} took a link and did not answer this node of cluster '{cluster}' with {PARTITIONER}; if \
                         the cluster_name or the partitioner is another one there, its log says so"
                    )?;
                }
                let separator = if silent.is_empty() || unreachable.is_empty() { "" } else { ";" };
                f.write_str(separator)?;
                if unreachable.is_empty() {
                    return Ok(());
                }
                write!(f, " no link can be opened to {}; is the storage port open?", list(unreachable))
            }
            Self::AddressTaken { address, host_id } => write!(
                f,
                "{address} is the address of the node with host id {host_id}; start on its directory, or remove that node first"
            ),
            Self::ReplacementUnfinished(address) => write!(
                f,
                "{address} is the address of a node that was being replaced, and the replacement has not come to its end \
                 (hibernate): start with replace_address_first_boot={} to go on with it",
                address.ip()
            ),
            Self::Bootstrap(why) => f.write_str(why),
            Self::Identity(why) => write!(f, "who this node is cannot be written: {why}"),
            Self::TokenTaken { token, owner } => {
                write!(f, "the token {token} belongs to {owner}; choose another (initial_token)")
            }
        }
    }
}

impl std::error::Error for JoinError {}

/// This node among the others. Dropping it is like the death of the process: the other nodes are
/// told nothing.
pub struct Membership {
    pub(crate) shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    /// The thread of membership; behind a lock so that other threads can share the rest.
    thread: Mutex<Option<Box<dyn Joinable>>>,
}

impl Membership {
    /// Opens links, looks at the ring, and takes part in gossip: as a member that has its data
    /// already (no bootstrap), or as none yet.
    pub async fn join(env: &Env, options: JoinOptions, handler: Arc<dyn MembershipHandler>) -> Result<Self, JoinError> {
        let (wish, gossip) = (options.clone(), options.gossip.clone());
        let (mut membership, known) = Self::open(env, options, handler)?;
        let ring = membership.look(&gossip, &known).await?;
        check(&wish, &ring)?;
        let JoinOptions { local_states, is_member, joining, replaces, .. } = wish;
        membership.shared.with_gossip(|machine, now| {
            let generation =
                |of: SocketAddr| ring.iter().find(|(endpoint, _)| *endpoint == of).map(|(_, state)| state.generation);
            // the clock was set back since the last start, and the directory is another one
            let own = generation(gossip.local);
            // the clock of the node in whose place this one stands was ahead, and a token that both
            // own belongs to the one that was started last
            let replaced = replaces.and_then(generation);
            // nobody believes a generation that is further ahead, so that it was told by mistake
            let believed_max = now.wall_millis / 1000 + GENERATION_AHEAD_MAX;
            let told = own.into_iter().chain(replaced).filter(|of| i64::from(*of) < believed_max);
            let earlier = told.max().filter(|of| *of >= machine.local.state().generation);
            if let Some(next) = earlier.and_then(|earlier| earlier.checked_add(1)) {
                machine.local.begin_generation(next);
            }
            if is_member {
                local_states.set_normal(&mut machine.local);
            } else if let Some(status) = joining {
                local_states.set_joining(&mut machine.local, &status);
            }
            machine.enable();
            let (hearsay, told): (States, States) = ring.into_iter().partition(|(_, state)| is_hearsay(state));
            // a member remembers the others itself; what others remember may be older
            for (endpoint, state) in hearsay.into_iter().filter(|_| !is_member) {
                let state =
                    if replaces == Some(endpoint) { with_data_center_and_rack(state, &local_states) } else { state };
                machine.remember(endpoint, as_member(state), now);
            }
            machine.apply_shadow_round(told, now);
        });
        membership.begin_rounds();
        membership.wait_to_settle().await;
        Ok(membership)
    }

    /// Shows this node as a member that has its data already.
    pub fn become_member(&self, local_states: &LocalApplicationStates) {
        self.with_gossip(|gossip| local_states.set_normal(&mut gossip.local));
    }

    /// Opens links, looks at the ring, and closes them again, without joining. Gives what the
    /// members tell of themselves. Empty: there is no ring yet.
    pub async fn run_shadow_round(
        env: &Env,
        options: JoinOptions,
        handler: Arc<dyn MembershipHandler>,
    ) -> Result<States, JoinError> {
        let gossip = options.gossip.clone();
        let (membership, known) = Self::open(env, options, handler)?;
        membership.look(&gossip, &known).await
    }

    /// Opens links, ready for a look at the ring. Also gives the members that are known from
    /// before.
    fn open(
        env: &Env,
        options: JoinOptions,
        handler: Arc<dyn MembershipHandler>,
    ) -> Result<(Self, Vec<SocketAddr>), JoinError> {
        let JoinOptions { links, gossip, generation, prefers_local, local_states, remembered, .. } = options;
        let known: Vec<_> = remembered.iter().map(|(endpoint, _)| *endpoint).collect();
        let mut local = Local::new(generation);
        local_states.set(&mut local);
        let mut machine = Gossip::new(gossip, local);
        machine.begin_shadow();
        let now = Now {
            monotonic: Duration::from_nanos(env.clock.monotonic_nanos()),
            wall_millis: env.clock.now_micros() / 1000,
        };
        for (endpoint, state) in remembered {
            machine.remember(endpoint, state, now);
        }
        let state = State { gossip: machine, callbacks: Callbacks::default() };
        let shared = Arc::new(Shared {
            env: env.clone(),
            version: links.version,
            state: Mutex::new(state),
            links: Mutex::new(None),
            handler,
            logged_nodes: Mutex::default(),
            verbs: VerbCounters::default(),
            prefers_local,
            is_leaving: AtomicBool::new(false),
        });
        let listen = links.listen;
        let receiver: Arc<dyn Receiver> = Arc::new(Messenger(shared.clone()));
        let opened = Links::start(env, links, receiver).map_err(|error| JoinError::Port(listen, error))?;
        *shared.links.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(opened));
        Ok((Self { shared, stop: None, thread: Mutex::new(None) }, known))
    }

    /// The shadow round. Gives the ring; empty: there is none yet.
    async fn look(&self, options: &Options, known: &[SocketAddr]) -> Result<States, JoinError> {
        let others: Vec<_> = options.seeds.iter().copied().filter(|seed| *seed != options.local).collect();
        let is_seed = options.seeds.contains(&options.local);
        if others.is_empty() {
            return Ok(States::new());
        }
        let env = &self.shared.env;
        let begun = env.now();
        let (mut ask_at, mut pause) = (Duration::ZERO, SHADOW_REPEAT_MIN);
        loop {
            let gone = env.elapsed(begun);
            if gone >= ask_at {
                (ask_at, pause) = (gone + pause, (pause * 2).min(SHADOW_REPEAT_MAX));
                if gone >= SHADOW_OTHERS {
                    self.shared.renew_seeds().await;
                }
                let known = if gone >= SHADOW_OTHERS { known } else { &[] };
                self.shared.with_gossip(|gossip, _| gossip.ask_seeds(known));
            }
            env.sleep(SHADOW_LOOK).await;
            match self.shared.with_gossip(|gossip, _| gossip.shadow_round_result()) {
                Some(ShadowRoundResult::Ring(states)) => return Ok(states),
                Some(ShadowRoundResult::NoRing) if is_seed => return Ok(States::new()),
                _ if is_seed && gone >= SHADOW_SEED_MAX => return Ok(States::new()),
                _ if gone >= SHADOW_MAX => return Err(self.no_seed(options, others)),
                _ => {}
            }
        }
    }

    /// The error of a look at the ring that none of these seeds has answered.
    fn no_seed(&self, options: &Options, seeds: Vec<SocketAddr>) -> JoinError {
        let links = self.shared.links().map(|links| links.outbound_counts()).unwrap_or_default();
        let had_link = |seed: &SocketAddr| links.iter().any(|link| link.peer == *seed && link.connections > 0);
        let (silent, unreachable) = seeds.into_iter().partition(had_link);
        JoinError::NoSeed { cluster: options.cluster.clone(), silent, unreachable }
    }

    /// Waits until all members that should be up have given a sign of life, so that the first
    /// requests find the ring as it is.
    async fn wait_to_settle(&self) {
        let env = &self.shared.env;
        let begun = env.now();
        while env.elapsed(begun) < SETTLE_MAX && self.shared.with_gossip(|gossip, _| gossip.is_settling()) {
            env.sleep(SHADOW_LOOK).await;
        }
    }

    fn begin_rounds(&mut self) {
        let shared = self.shared.clone();
        let (stop, mut stopped) = oneshot::channel::<()>();
        let rounds = async move {
            let (mut heard, mut renewal) = (shared.env.now(), SeedRenewal::default());
            loop {
                let random = shared.env.random.clone();
                if !happens(Rare::NoGossip) {
                    let mut draw = |bound: usize| random.below(bound as u64) as usize;
                    shared.with_gossip(|gossip, now| gossip.tick(now, &mut draw));
                }
                shared.expire();
                if shared.with_gossip(|gossip, _| gossip.peers().values().any(|peer| peer.is_alive)) {
                    heard = shared.env.now();
                } else if shared.env.elapsed(heard) >= SEEDS_AGAIN {
                    heard = shared.env.now();
                    let of_task = shared.clone();
                    renewal.begin(async move { of_task.renew_seeds().await });
                }
                tokio::select! {
                    _ = &mut stopped => return,
                    () = shared.env.sleep(ROUND) => {}
                }
            }
        };
        let make: LocalFutureFactory = Box::new(move || Box::pin(rounds));
        self.thread = Mutex::new(Some(self.shared.env.tasks.spawn_local_worker("gossip", make)));
        self.stop = Some(stop);
    }

    /// Calls `act` with gossip, to look at the state of the others or to change what this node
    /// tells.
    pub fn with_gossip<T>(&self, act: impl FnOnce(&mut Gossip) -> T) -> T {
        self.shared.with_gossip(|gossip, _| act(gossip))
    }

    /// The way to the other nodes.
    pub fn messenger(&self) -> Messenger {
        Messenger(self.shared.clone())
    }

    /// Tells the others whether drivers may connect now.
    pub fn set_ready(&self, ready: bool) {
        self.with_gossip(|gossip| gossip.local.set(ApplicationState::RpcReady, ready.to_string()));
    }
}

/// The look-up of the seeds' names beside the rounds of gossip. The failure that hides all other
/// nodes may hide the name servers, too, and then a look-up takes minutes. Rounds must go on
/// meanwhile: without them a node that comes back into the ring would be taken for dead, and no
/// request would be told that its answer has not come.
#[derive(Default)]
pub(crate) struct SeedRenewal(Option<JoinHandle<()>>);

impl SeedRenewal {
    /// Begins a look-up as a task of the calling thread, unless the last one has not ended.
    pub(crate) fn begin(&mut self, look_up: impl Future<Output = ()> + 'static) {
        if self.0.as_ref().is_none_or(JoinHandle::is_finished) {
            self.0 = Some(tokio::task::spawn_local(look_up));
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        drop(self.stop.take());
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(panic)) = thread.map(Joinable::join) {
            tracing::error!(panic, "the thread of gossip had panicked");
        }
        let links = self.shared.links.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(links);
    }
}

/// The state that others tell of the node that this one replaces, with data center and rack added,
/// because Cassandra does not tell these.
fn with_data_center_and_rack(mut state: EndpointState, local_states: &LocalApplicationStates) -> EndpointState {
    let place = [(ApplicationState::Dc, &local_states.data_center), (ApplicationState::Rack, &local_states.rack)];
    for (of, name) in place {
        if state.value(of).is_none() {
            state.values.push((of, VersionedValue { value: name.clone(), version: 0 }));
        }
    }
    state
}

/// Refuses an address, host id or tokens that belong to another node. A node that has died just
/// after it had replaced another one, before any other node could hear of it, still replaces that
/// one in the eyes of the ring.
fn check(wish: &JoinOptions, ring: &States) -> Result<(), JoinError> {
    let JoinOptions { local_states, replaces, is_member, .. } = wish;
    let local = wish.gossip.local;
    let own = ring.iter().find(|(endpoint, _)| *endpoint == local).and_then(|(_, state)| Status::of(state));
    let hibernates = |status: Option<&str>| status.map(Status::parse) == Some(Status::Hibernate);
    if own == Some(Status::Hibernate) && !is_member && !hibernates(wish.joining.as_deref()) {
        return Err(JoinError::ReplacementUnfinished(local));
    }
    let is_replaced = |endpoint: &SocketAddr| {
        *replaces == Some(*endpoint)
            || matches!(&own, Some(Status::BootReplace(replaced)) if *replaced == endpoint.to_string())
    };
    // of two members with one token the one that was started last has it, as everywhere in the
    // ring; somebody may not have heard yet that this node has replaced the other one
    let own_generation = ring.iter().find(|(endpoint, state)| {
        *endpoint == local && state.value(ApplicationState::HostId) == Some(local_states.host_id.as_str())
    });
    // a node that was removed has no tokens in the ring; its removal has a later generation than a
    // member that has come to them by a move
    let is_known_member = own.as_ref().is_some_and(|status| status.owns_tokens() && !status.is_dead());
    let own_generation = own_generation.filter(|_| *is_member && is_known_member).map(|(_, state)| state.generation);
    let is_earlier = |state: &EndpointState| own_generation.is_some_and(|own| state.generation < own);
    // a member knows better than hearsay who it is
    for (endpoint, state) in ring.iter().filter(|(_, state)| !(*is_member && is_hearsay(state))) {
        if Status::of(state).is_some_and(|status| status.is_dead()) || is_replaced(endpoint) {
            continue;
        }
        let host_id = state.value(ApplicationState::HostId).unwrap_or_default();
        if *endpoint == local {
            // an earlier start on another directory was on its way in, and owns nothing yet
            let is_given_up = !is_member && own.as_ref().is_some_and(Status::is_joining);
            if !host_id.is_empty() && host_id != local_states.host_id && !is_given_up {
                return Err(JoinError::AddressTaken { address: local, host_id: host_id.to_owned() });
            }
            continue;
        }
        // the same node under another address keeps its tokens
        if host_id == local_states.host_id || is_earlier(state) {
            continue;
        }
        let tokens = state.value(ApplicationState::Tokens).map(internode::payload::gossip::tokens::tokens_of);
        let Some(Ok(tokens)) = tokens else { continue };
        if let Some(token) = tokens.into_iter().find(|token| local_states.tokens.contains(token)) {
            return Err(JoinError::TokenTaken { token, owner: *endpoint });
        }
    }
    Ok(())
}
