//! This node's place among the others: joining, following the ring, leaving.
//!
//! A node that has not joined is alone: its ring has one endpoint, and nothing of this is used. The
//! crate `membership` speaks with the others; here its answers become the ring snapshot
//! ([`crate::topology`]), and what others ask goes to [`crate::serve`].

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use bytes::BytesMut;
use config::Streams;
use env::Stream;
use gossip::{Event, Gossip, Options, Status};
use internode::payload::gossip::ApplicationState;
use internode::{Envelope, LinkType, MessagingVersion, Verb};
use links::{Encryption, LinkOptions, LinkSettings, Peer, Scope};
use membership::{JoinOptions, LocalApplicationStates, Membership, MembershipHandler, Messenger};

pub use membership::JoinError;

use crate::batch_hosts::BatchHosts;
use crate::dynamic_snitch::{DynamicSnitch, DynamicSnitchOptions};
use crate::identity::{RELEASE_VERSION, local_table};
use crate::membership_state::{NodeLocations, SeedNames};
use crate::node::Node;
use crate::range_movement_state::{BootstrapState, JOINING, Mode, MovementSettings};
use crate::range_movements::bootstrap::{HIBERNATE, joining_status};
use crate::range_movements::removal;
use crate::repair_state::schedule::turns::{self, Phase, ScheduleStatus};
use crate::repair_state::settings::RepairSettings;
use crate::schema_agreement::waiting::FIRST_SCHEMA_WAIT;
use crate::system_rows::SystemRow;
use crate::{peers, serve, view_replicas};

/// The ring as the configuration describes it.
#[derive(Clone, Debug)]
pub struct JoinSettings {
    /// Addresses of seeds, this node among them or not (`seed_provider`).
    pub seeds: Vec<SocketAddr>,
    /// Looks the seeds up again; None: their addresses never change.
    pub seed_names: Option<SeedNames>,
    /// The messaging version of the ring (`storage_compatibility_mode`).
    pub version: MessagingVersion,
    /// The links that this node compresses when it opens them (`internode_compression`).
    pub compression: Scope,
    /// How links are encrypted (`server_encryption_options`); None: they are not.
    pub encryption: Option<Encryption>,
    /// How much links may hold and how long they wait. The time of streams is that of `streams`.
    pub links: LinkSettings,
    /// `phi_convict_threshold`
    pub convict_threshold: f64,
    /// The SSTable versions that this node writes and reads, as gossip tells them.
    pub sstable_versions: String,
    /// Links to nodes of this data center go to the internal addresses that they tell
    /// (`prefer_local`).
    pub prefers_local: bool,
    /// This node tells its listen address to its data center, beside the broadcast address.
    pub tells_internal_address: bool,
    /// How replicas are ordered by their latencies; None: they are not (`dynamic_snitch: false`).
    pub dynamic_snitch: Option<DynamicSnitchOptions>,
    /// Which nodes keep the records of logged batches (`batchlog_endpoint_strategy`).
    pub batch_hosts: BatchHosts,
    /// How SSTables are streamed.
    pub streams: Streams,
    /// How repairs are run.
    pub repairs: RepairSettings,
    /// How ranges move when the ring changes.
    pub movements: MovementSettings,
    /// The places of nodes that a file names (PropertyFileSnitch); empty: nodes tell theirs.
    pub places: NodeLocations,
}

impl JoinSettings {
    /// The options of links of a node with these addresses.
    pub(crate) fn links(&self, listen: SocketAddr, local: SocketAddr) -> LinkOptions {
        LinkOptions {
            listen,
            local,
            version: self.version,
            compression: self.compression,
            encryption: self.encryption.clone(),
            settings: LinkSettings { stream_user_timeout: self.streams.user_timeout, ..self.links.clone() },
        }
    }

    /// The options of gossip of a node of this cluster.
    pub(crate) fn gossip(&self, local: SocketAddr, cluster: &str) -> Options {
        let mut gossip = Options::new(local, cluster, self.seeds.clone());
        gossip.convict_threshold = self.convict_threshold;
        gossip
    }
}

impl Node {
    /// The way to other nodes. `None`: the node is alone.
    pub fn messenger(&self) -> Option<&Messenger> {
        self.membership_state.messenger.get()
    }

    /// This node, for work that outlives a request. Before the node has joined the reference leads
    /// to nothing.
    pub(crate) fn weak(&self) -> Weak<Self> {
        self.this.get().cloned().unwrap_or_default()
    }

    /// The membership, from the time when the node has joined to the time when it leaves.
    pub fn membership(&self) -> Option<Arc<Membership>> {
        self.membership_state.membership.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gets in touch with the others, and becomes a member unless `join_ring` is off. The ring
    /// snapshot has the others when this returns. Drivers are told that they may connect by
    /// [`Membership::set_ready`].
    pub async fn join(self: &Arc<Self>, settings: JoinSettings) -> Result<(), JoinError> {
        let joins = settings.movements.joins;
        if !joins && settings.movements.replaces.is_some() {
            let why = "Cannot set both join_ring=false and attempt to replace a node";
            return Err(JoinError::Bootstrap(why.to_owned()));
        }
        if !joins {
            self.connect(settings).await?;
            tracing::info!("Not joining ring as requested. `nodetool join` joins it");
            return Ok(());
        }
        // begun here: an operator who asks for the join meanwhile must not have this one refused
        let _running = self.membership_state.movements.begin(JOINING).map_err(JoinError::Bootstrap)?;
        self.connect(settings).await?;
        self.enter_ring().await
    }

    /// Takes part in gossip: as a member that has its data already, or as none yet. A node that is
    /// new takes over the schema before the others see it as a member: they would ask it for tables
    /// that it does not know.
    async fn connect(self: &Arc<Self>, settings: JoinSettings) -> Result<(), JoinError> {
        self.save_identity().await?;
        let identity = &self.identity;
        let gossip = settings.gossip(identity.broadcast, &identity.cluster_name);
        let links = settings.links(identity.listen, identity.broadcast);
        let internal = settings.tells_internal_address.then_some(identity.listen);
        let local_states =
            LocalApplicationStates { internal, ..self.local_states(settings.version, settings.sstable_versions) };
        let _ = self.membership_state.local_states.set(local_states.clone());
        self.membership_state.movements.configure(settings.movements);
        let (fetches, joins) = (self.needs_bootstrap(&settings.seeds), settings.movements.joins);
        {
            let mut state = self.membership_state.movements.state();
            (state.mode, state.fetches) = (Mode::Starting, fetches);
        }
        let first_token = local_states.tokens.first().copied().unwrap_or_default();
        let joining = joining_status(settings.movements, identity.broadcast, first_token);
        // the others must not take a new node for the dead one that it replaces under its address
        let is_at_own_address = settings.movements.replaces == Some(identity.broadcast);
        let options = JoinOptions {
            links,
            gossip,
            generation: i32::try_from(identity.generation).unwrap_or(i32::MAX),
            is_member: identity.is_bootstrapped && joins,
            joining: match (identity.is_bootstrapped, joins) {
                // whoever has data and stays out keeps its tokens, and is no replica meanwhile
                (true, false) => Some(HIBERNATE.to_owned()),
                (false, true) => (fetches && (identity.is_interrupted || is_at_own_address)).then_some(joining),
                (true, true) | (false, false) => None,
            },
            // also of a node that is there: the others may not have heard that it has replaced one
            replaces: settings.movements.replaces,
            prefers_local: settings.prefers_local,
            local_states: local_states.clone(),
            remembered: peers::saved_states(&self.engine, identity.broadcast),
        };
        self.membership_state.places.store(Arc::new(settings.places));
        if let Some(names) = settings.seed_names {
            let _ = self.membership_state.seed_names.set(names);
        }
        if let Some(options) = settings.dynamic_snitch {
            let _ = self.membership_state.dynamic_snitch.set(DynamicSnitch::new(&self.env, options));
        }
        let _ = self.membership_state.batch_hosts.set(settings.batch_hosts);
        let follower = Arc::new(RingFollower(Arc::downgrade(self)));
        let _ = self.handoff.apply_own_hint.set(serve::take_own_hints(Arc::downgrade(self)));
        // otherwise a node that dies now would come back as another, with its address taken
        if let Err(error) = self.engine.log.sync().await {
            tracing::error!(%error, "the host id of this node may be forgotten when it ends");
        }
        self.start_schema_exchange();
        self.start_streams(settings.streams);
        self.start_repairs(settings.repairs);
        let membership = Membership::join(&self.env, options, follower).await?;
        let _ = self.this.set(Arc::downgrade(self));
        membership.with_gossip(|gossip| self.follow(gossip));
        view_replicas::begin(self);
        let _ = self.membership_state.messenger.set(membership.messenger());
        let membership = Arc::new(membership);
        *self.membership_state.membership.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::clone(&membership));
        self.save_generation(membership.with_gossip(|gossip| gossip.local.state().generation)).await;
        self.start_peers_task();
        self.tell_schema_version();
        self.announce_schedule(ScheduleStatus { phase: Phase::Off, since: 0 });
        if !self.wait_for_first_schema(FIRST_SCHEMA_WAIT).await {
            tracing::warn!("no node of the ring has given its schema yet; this one goes on with what it has");
        }
        // the schema is there before the task that took it over has told of it
        self.renew_ring();
        self.tell_schema_version();
        membership.with_gossip(|gossip| removal::follow_all_removing(self, gossip));
        Ok(())
    }

    /// Becomes a member of the ring with which the node is in touch, and fetches its data first
    /// where it has none. By `nodetool join`, and again after a bootstrap that has failed
    /// (`nodetool bootstrap resume`). Refused while the node is on its way in already: two joins at
    /// one time would both tell the others of the node, and the later one would say that it joins
    /// when the earlier one has made it a member. A node that has its place stays as it is.
    pub async fn enter(self: &Arc<Self>) -> Result<(), JoinError> {
        let _running = self.membership_state.movements.begin(JOINING).map_err(JoinError::Bootstrap)?;
        if self.membership().is_some() && !self.mode().is_outside() {
            return Ok(());
        }
        self.refuse_without_gossip().map_err(JoinError::Bootstrap)?;
        self.enter_ring().await
    }

    /// Does the work of [`Self::enter`]. The caller makes sure that it runs only once at a time.
    async fn enter_ring(self: &Arc<Self>) -> Result<(), JoinError> {
        let (Some(membership), Some(local_states)) = (self.membership(), self.membership_state.local_states.get())
        else {
            return Err(JoinError::Bootstrap("this node has no ring to join".to_owned()));
        };
        let (mode, fetches) = {
            let state = self.membership_state.movements.state();
            (state.mode, state.fetches)
        };
        let is_new = !self.identity.is_bootstrapped && fetches;
        if is_new {
            // a process that has failed to fetch everything has told ever since that it joins
            self.bootstrap(local_states, mode == Mode::JoiningFailed).await.map_err(JoinError::Bootstrap)?;
            if let Err(why) = self.refuse_without_gossip() {
                self.membership_state.movements.set_mode(Mode::JoiningFailed);
                return Err(JoinError::Bootstrap(why));
            }
            self.save_bootstrap_state(BootstrapState::Completed).await.map_err(JoinError::Bootstrap)?;
        }
        if membership.with_gossip(|gossip| Status::of(gossip.local.state())) != Some(Status::Normal) {
            match is_new {
                true => self.take_place(&membership, local_states).await.map_err(JoinError::Bootstrap)?,
                false => membership.become_member(local_states),
            }
            membership.with_gossip(|gossip| self.follow(gossip));
            // the others are to know it before drivers do
            if self.ring().endpoints().len() > 1 {
                self.env.sleep(gossip::options::ROUND).await;
            }
        }
        self.membership_state.movements.set_mode(Mode::Normal);
        self.write_bootstrapped();
        Ok(())
    }

    /// Waits until host id, tokens and generation are durable: the others must not know a node that
    /// a crash makes another one.
    async fn save_identity(&self) -> Result<(), JoinError> {
        let failed = |error: String| JoinError::Identity(error);
        let applied = self.engine.apply(&[self.local_row()]).map_err(|error| failed(error.to_string()))?;
        match applied.position {
            Some(position) => self.engine.log.wait_durable(position).await.map_err(|error| failed(error.to_string())),
            None => Ok(()),
        }
    }

    /// Writes the generation that this node tells, where what the ring knows has made it greater
    /// than that of its identity. The next start must have a later generation even if no other
    /// node answers it; otherwise the others would ignore what it tells.
    async fn save_generation(&self, told: i32) {
        let Some(told) = u32::try_from(told).ok().filter(|told| *told > self.identity.generation) else { return };
        let table = local_table(&self.engine);
        let row = SystemRow::new(&table, &[b"local"], &[], self.clock.next_micros(), None);
        let row = row.set("gossip_generation", told.to_be_bytes().to_vec()).finish();
        if let Err(error) = self.write_durably(row).await {
            tracing::error!(error, "the next start of this node may come before this one for the others");
        }
    }

    /// The values that this node tells of itself.
    pub(crate) fn local_states(&self, version: MessagingVersion, sstable_versions: String) -> LocalApplicationStates {
        let identity = &self.identity;
        LocalApplicationStates {
            host_id: types::literal::print_uuid(&identity.host_id),
            tokens: identity.tokens.iter().map(|token| token.0).collect(),
            data_center: identity.data_center.clone(),
            rack: identity.rack.clone(),
            release_version: RELEASE_VERSION.to_owned(),
            native: identity.native,
            internal: None,
            schema: types::literal::print_uuid(&self.schema().version),
            version,
            sstable_versions,
        }
    }

    /// Tells the others the version of the schema in force. A node alone does nothing.
    pub(crate) fn tell_schema_version(&self) {
        if let Some(messenger) = self.messenger() {
            let version = types::literal::print_uuid(&self.schema().version);
            messenger.with_gossip(|gossip| {
                if gossip.local.state().value(ApplicationState::Schema) != Some(version.as_str()) {
                    gossip.local.set(ApplicationState::Schema, version);
                }
            });
        }
    }

    /// Tells the others that this node stops, and closes the links. A node alone does nothing.
    pub async fn stop_membership(&self) {
        let membership = self.membership_state.membership.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(membership) = membership {
            membership.leave().await;
        }
    }
}

/// Whether an event may change the ring. Values that each node tells anew every minute do not:
/// otherwise a ring of a thousand nodes would be made anew many times a second.
fn is_of_the_ring(event: &Event) -> bool {
    use ApplicationState::{DiskUsage, IndexStatus, Load, NetVersion, ReleaseVersion, Schema, SstableVersions};
    let Event::Changed(_, state) = event else { return true };
    let is_restless =
        matches!(state, DiskUsage | IndexStatus | Load | NetVersion | ReleaseVersion | Schema | SstableVersions);
    !is_restless && *state != turns::STATE
}

/// Follows the ring for a node, for as long as the node is there.
struct RingFollower(Weak<Node>);

impl MembershipHandler for RingFollower {
    fn ring_changed(&self, gossip: &Gossip, events: &[Event]) {
        let Some(node) = self.0.upgrade() else { return };
        match events.iter().any(is_of_the_ring) {
            true => node.follow(gossip),
            // the rows that drivers read have more of what nodes tell than the ring has
            false => node.renew_peers(),
        }
        for event in events {
            if let Event::Joined(endpoint) | Event::Changed(endpoint, _) = event {
                removal::follow_removing(&node, gossip, *endpoint);
            }
        }
    }

    fn schema_version(&self) -> [u8; 16] {
        self.0.upgrade().map(|node| node.schema().version).unwrap_or_default()
    }

    fn seeds(&self) -> Option<Vec<SocketAddr>> {
        let names = self.0.upgrade()?.membership_state.seed_names.get()?.clone();
        Some((names.0)())
    }

    fn stream(&self, from: &Peer, stream: Box<dyn Stream>, input: BytesMut) {
        if let Some(node) = self.0.upgrade() {
            node.take_stream(from, stream, input);
        }
    }

    fn measured(&self, peer: SocketAddr, verb: Verb, latency: Duration) {
        let node = self.0.upgrade();
        if let Some(snitch) = node.as_ref().and_then(|node| node.membership_state.dynamic_snitch.get()) {
            snitch.measured(peer, verb, latency);
        }
    }

    fn requested(&self, via: &Messenger, from: &Peer, link: LinkType, message: Envelope) -> bool {
        self.0.upgrade().is_some_and(|node| serve::requested(&node, via, from, link, message))
    }
}
