//! This node's place among the others: joining, following the ring, leaving.
//!
//! A node that has not joined is alone: its ring has one endpoint, and nothing of this is used. The
//! crate `membership` speaks with the others; here its answers become the ring snapshot
//! ([`crate::topology`]), and what others ask goes to [`crate::serve`].

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use gossip::{Event, Gossip, Options};
use internode::payload::gossip::ApplicationState;
use internode::{Envelope, LinkType, MessagingVersion};
use links::{Encryption, LinkOptions, Peer, Scope};
use membership::{Follower, Introduction, JoinError, JoinOptions, Membership, Messenger};

use crate::identity::RELEASE_VERSION;
use crate::joined::Places;
use crate::node::Node;
use crate::{peers, serve};

/// The ring as the configuration describes it.
#[derive(Clone, Debug)]
pub struct JoinSettings {
    /// Addresses of seeds, this node among them or not (`seed_provider`).
    pub seeds: Vec<SocketAddr>,
    /// The messaging version of the ring (`storage_compatibility_mode`).
    pub version: MessagingVersion,
    /// The links that this node compresses when it opens them (`internode_compression`).
    pub compression: Scope,
    /// How links are encrypted (`server_encryption_options`); None: they are not.
    pub encryption: Option<Encryption>,
    /// A link whose peer takes no byte for so long is closed; zero: never
    /// (`internode_tcp_user_timeout`).
    pub user_timeout: Duration,
    /// Bytes that may wait on all links to other nodes beyond the room of each
    /// (`internode_application_send_queue_reserve_endpoint_capacity`).
    pub reserve: usize,
    /// Bytes that may wait on one link before that (`internode_application_send_queue_capacity`).
    pub queue: usize,
    /// `phi_convict_threshold`
    pub convict_threshold: f64,
    /// The SSTable versions that this node writes and reads, as gossip tells them.
    pub sstable_versions: String,
    /// The places of nodes that a file names (PropertyFileSnitch); empty: nodes tell theirs.
    pub places: Places,
}

impl Node {
    /// The way to other nodes. `None`: the node is alone.
    pub fn members(&self) -> Option<&Messenger> {
        self.joined.messenger.get()
    }

    /// This node, for what outlives a request. Of a node that has not joined: nothing.
    pub(crate) fn weak(&self) -> Weak<Self> {
        self.this.get().cloned().unwrap_or_default()
    }

    /// The membership, from the time when the node has joined to the time when it leaves.
    pub fn membership(&self) -> Option<Arc<Membership>> {
        self.joined.membership.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Joins the ring as a member that has its data already. The ring snapshot has the others when
    /// this returns. Drivers are told that they may connect by [`Membership::set_ready`].
    pub async fn join(self: &Arc<Self>, settings: JoinSettings) -> Result<(), JoinError> {
        self.keep_identity().await?;
        let identity = &self.identity;
        let cluster = &identity.cluster_name;
        let mut gossip = Options::new(identity.broadcast, cluster, settings.seeds);
        gossip.convict_threshold = settings.convict_threshold;
        let introduction = self.introduction(settings.version, settings.sstable_versions);
        let _ = self.joined.introduction.set(introduction.clone());
        let options = JoinOptions {
            links: LinkOptions {
                listen: identity.listen,
                local: identity.broadcast,
                version: settings.version,
                compression: settings.compression,
                encryption: settings.encryption,
                user_timeout: settings.user_timeout,
                queue: settings.queue,
                reserve: settings.reserve,
            },
            gossip,
            generation: i32::try_from(identity.generation).unwrap_or(i32::MAX),
            introduction,
            remembered: peers::remembered(&self.engine, identity.broadcast),
        };
        let _ = self.joined.places.set(settings.places);
        let follower = Arc::new(Following(Arc::downgrade(self)));
        // otherwise a node that dies now would come back as another, with its address taken
        if let Err(error) = self.engine.log.sync().await {
            tracing::error!(%error, "the host id of this node may be forgotten when it ends");
        }
        self.start_schema_exchange();
        let membership = Membership::join(&self.env, options, follower).await?;
        membership.with_gossip(|gossip| self.follow(gossip));
        let _ = self.this.set(Arc::downgrade(self));
        let _ = self.joined.messenger.set(membership.messenger());
        *self.joined.membership.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(membership));
        self.write_bootstrapped();
        self.keep_peers();
        self.tell_schema_version();
        self.wait_for_first_schema().await;
        Ok(())
    }

    /// Waits until host id, tokens and generation are durable: the others must not know a node that
    /// a crash makes another one.
    async fn keep_identity(&self) -> Result<(), JoinError> {
        let failed = |error: String| JoinError::Identity(error);
        let applied = self.engine.apply(&[self.local_row()]).map_err(|error| failed(error.to_string()))?;
        match applied.position {
            Some(position) => self.engine.log.wait_durable(position).await.map_err(|error| failed(error.to_string())),
            None => Ok(()),
        }
    }

    /// The values that this node tells of itself.
    pub(crate) fn introduction(&self, version: MessagingVersion, sstable_versions: String) -> Introduction {
        let identity = &self.identity;
        Introduction {
            host_id: types::literal::print_uuid(&identity.host_id),
            tokens: identity.tokens.iter().map(|token| token.0).collect(),
            data_center: identity.data_center.clone(),
            rack: identity.rack.clone(),
            release_version: RELEASE_VERSION.to_owned(),
            native: identity.native,
            schema: types::literal::print_uuid(&self.schema().version),
            version,
            sstable_versions,
        }
    }

    /// Tells the others the version of the schema in force. A node alone does nothing.
    pub(crate) fn tell_schema_version(&self) {
        if let Some(messenger) = self.members() {
            let version = types::literal::print_uuid(&self.schema().version);
            messenger.with_gossip(|gossip| {
                if gossip.local.state().value(ApplicationState::Schema) != Some(version.as_str()) {
                    gossip.local.set(ApplicationState::Schema, version);
                }
            });
        }
    }

    /// Tells the others that this node stops, and closes the links. A node alone does nothing.
    pub async fn leave(&self) {
        let membership = self.joined.membership.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(membership) = membership {
            membership.leave().await;
        }
    }
}

/// Follows the ring for a node, for as long as the node is there.
struct Following(Weak<Node>);

impl Follower for Following {
    fn ring_changed(&self, gossip: &Gossip, _event: &Event) {
        if let Some(node) = self.0.upgrade() {
            node.follow(gossip);
        }
    }

    fn schema_version(&self) -> [u8; 16] {
        self.0.upgrade().map(|node| node.schema().version).unwrap_or_default()
    }

    fn requested(&self, via: &Messenger, from: &Peer, link: LinkType, message: Envelope) -> bool {
        self.0.upgrade().is_some_and(|node| serve::requested(&node, via, from, link, message))
    }
}
