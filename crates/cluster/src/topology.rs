//! The ring snapshot of this node: made at the start, and anew when a schema change has changed
//! keyspaces or gossip tells of a change of the ring.
//!
//! A node alone has one endpoint, itself, which is up and owns all tokens. Of the others gossip
//! tells: an endpoint belongs to the ring when it has told its status, tokens and host id.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};

use env::LocalFutureFactory;
use gossip::{Gossip, Status};
use internode::payload::gossip::tokens::tokens_of;
use internode::payload::gossip::{ApplicationState, EndpointState};
use ring::{Endpoint, EndpointId, FormerTokens, Replication, Ring, State};
use schema::Schema;
use types::Token;

use crate::dynamic_snitch::Severities;
use crate::identity::Identity;
use crate::membership_state::NodeLocations;
use crate::node::Node;

/// The ring of a node alone.
pub(crate) fn ring_of_one(identity: &Identity, schema: &Schema) -> Ring {
    with_keyspaces(&Ring::new(vec![endpoint_of_this(identity)], EndpointId(0)), schema)
}

fn endpoint_of_this(identity: &Identity) -> Endpoint {
    Endpoint {
        address: identity.broadcast,
        native: identity.native,
        host_id: identity.host_id,
        data_center: identity.data_center.clone(),
        rack: identity.rack.clone(),
        tokens: identity.tokens.clone(),
        is_up: true,
        state: State::Normal,
    }
}

/// An endpoint as gossip tells of it; `None`: it is no member of the ring, or has not told enough.
pub(crate) fn endpoint_of(address: SocketAddr, told: &EndpointState, is_alive: bool) -> Option<Endpoint> {
    let status = Status::of(told)?;
    let state = match &status {
        // whoever hibernates keeps its tokens: its ranges are nobody else's
        Status::Normal | Status::Shutdown | Status::Hibernate => State::Normal,
        // others fetch its data: they are about to have its ranges
        Status::Removing => State::Leaving,
        Status::Boot => State::Joining,
        Status::BootReplace(replaced) => State::Replacing(replaced_address(replaced, address)?),
        Status::Leaving => State::Leaving,
        Status::Moving(token) => State::Moving(Token(token.parse().ok()?)),
        Status::Left(_) | Status::Removed(_) | Status::Other(_) => return None,
    };
    let mut tokens: Vec<Token> =
        tokens_of(told.value(ApplicationState::Tokens)?).ok()?.into_iter().map(Token).collect();
    tokens.sort();
    let native = told.value(ApplicationState::NativeAddressAndPort).and_then(|text| text.parse().ok());
    let text = |state| told.value(state).map(str::to_owned);
    Some(Endpoint {
        address,
        native: native.unwrap_or_else(|| SocketAddr::new(address.ip(), DEFAULT_NATIVE_PORT)),
        host_id: types::literal::parse_uuid(told.value(ApplicationState::HostId)?)?,
        data_center: text(ApplicationState::Dc).unwrap_or_else(|| "UNKNOWN_DC".to_owned()),
        rack: text(ApplicationState::Rack).unwrap_or_else(|| "UNKNOWN_RACK".to_owned()),
        tokens,
        is_up: is_alive && !matches!(status, Status::Shutdown | Status::Hibernate),
        state,
    })
}

/// The address of the replaced node, from the status of the node that replaces it. The older form
/// of the status has no port; then the port of `teller` is taken.
fn replaced_address(text: &str, teller: SocketAddr) -> Option<SocketAddr> {
    let alone = || Some(SocketAddr::new(text.parse().ok()?, teller.port()));
    text.parse().ok().or_else(alone)
}

/// The port at which drivers connect to a node that tells none.
const DEFAULT_NATIVE_PORT: u16 = 9042;

/// The ring with the keyspaces of a schema. Keyspaces whose replication this node cannot place (it
/// was written by another program) are told of once, and requests for them are refused.
fn with_keyspaces(ring: &Ring, schema: &Schema) -> Ring {
    let stored = schema.keyspaces.values().filter(|keyspace| !keyspace.is_virtual);
    let parsed = stored.map(|keyspace| {
        let replication = Replication::parse(&keyspace.replication.class, &keyspace.replication.options);
        (keyspace.name.clone(), replication)
    });
    ring.with_keyspaces(parsed)
}

impl Node {
    /// Makes the ring anew for the schema in force. Called before a schema change is answered.
    pub(crate) fn renew_ring(&self) {
        let schema = self.schema();
        self.ring.rcu(|ring| with_keyspaces(ring, &schema));
    }

    /// Makes the ring anew from gossip; does nothing if nothing of the ring has changed.
    pub(crate) fn follow(&self, gossip: &Gossip) {
        let peers = gossip.peers().iter();
        let others = peers.filter_map(|(address, peer)| {
            let endpoint = endpoint_of(*address, &peer.state, peer.is_alive)?;
            Some((peer.state.generation, self.placed(endpoint)))
        });
        let this = (gossip.local.state().generation, self.endpoint_as_told(gossip));
        let others = {
            let mut replacements = self.membership_state.replacements.lock().unwrap_or_else(PoisonError::into_inner);
            replacements.follow(&this.1, others.collect(), |address| gossip.peers().contains_key(address))
        };
        let endpoints = without_conflicts(this, others);
        let former = self.follow_former_owners(&endpoints);
        let ring = self.ring.load();
        if ring.endpoints() != endpoints || *ring.former() != former {
            self.ring.rcu(|ring| ring.with_endpoints(endpoints.clone(), EndpointId(0), former.clone()));
        }
        let unready = unready(gossip);
        if **self.membership_state.unready.load() != unready {
            self.membership_state.unready.store(Arc::new(unready));
        }
        let severities = severities(gossip);
        if **self.membership_state.severities.load() != severities {
            self.membership_state.severities.store(Arc::new(severities));
        }
        if let Some(snitch) = self.membership_state.dynamic_snitch.get() {
            snitch.set_severities(self.membership_state.severities.load_full());
        }
        self.renew_peers();
    }

    /// The former owners of tokens, after the endpoints have become these. Once all nodes have had
    /// the time to hear of the change, the ring is made anew.
    fn follow_former_owners(&self, endpoints: &[Endpoint]) -> FormerTokens {
        let delay = self.membership_state.movements.settings().ring_delay;
        let mut owners = self.membership_state.former_owners.lock().unwrap_or_else(PoisonError::into_inner);
        let has_come = owners.follow(self.ring.load().endpoints(), endpoints, self.env.now(), delay);
        if has_come {
            let (weak, env) = (self.weak(), self.env.clone());
            let make: LocalFutureFactory = Box::new(move || {
                Box::pin(async move {
                    env.sleep(delay).await;
                    let Some(node) = weak.upgrade() else { return };
                    if let Some(messenger) = node.messenger() {
                        messenger.with_gossip(|gossip| node.follow(gossip));
                    }
                })
            });
            if let Err(error) = self.env.tasks.try_spawn_local_worker("former owners", make) {
                tracing::warn!(%error, "no thread ends the writes to former owners of ranges: they get none");
                owners.forget();
            }
        }
        owners.of_endpoints(endpoints)
    }

    /// Has the rows of other nodes that drivers read written anew from gossip.
    pub(crate) fn renew_peers(&self) {
        if let Some(task) = self.membership_state.peers.get() {
            task.wake();
        }
    }

    /// This node with the part in the ring and the tokens that it tells of itself. A node that
    /// stops is a member with its tokens; one that has left owns none.
    fn endpoint_as_told(&self, gossip: &Gossip) -> Endpoint {
        let this = endpoint_of_this(&self.identity);
        let told = gossip.local.state();
        match endpoint_of(this.address, told, true) {
            Some(Endpoint { state, tokens, .. }) => Endpoint { state, tokens, ..this },
            None if matches!(Status::of(told), Some(Status::Left(_))) => Endpoint { tokens: Vec::new(), ..this },
            // before its first word it owns nothing: what it is about to own still belongs to
            // others
            None if Status::of(told).is_none() && self.is_outside() => {
                Endpoint { state: State::Joining, tokens: Vec::new(), ..this }
            }
            None => this,
        }
    }

    /// Whether this node is no member, and does not become one at once.
    fn is_outside(&self) -> bool {
        let settings = self.membership_state.movements.settings();
        !self.identity.is_bootstrapped && (settings.bootstraps || !settings.joins)
    }

    /// The endpoint with the place that the snitch's file gives it.
    fn placed(&self, endpoint: Endpoint) -> Endpoint {
        match self.membership_state.places.load().of(endpoint.address.ip()) {
            Some((data_center, rack)) => Endpoint { data_center: data_center.clone(), rack: rack.clone(), ..endpoint },
            None => endpoint,
        }
    }
}

impl Node {
    /// Takes the new places of the snitch's file. Refused if a node that is up would get another
    /// place: its data would then be looked for on other nodes. Agrees with
    /// `PropertyFileSnitch.reloadConfiguration`.
    pub fn replace_places(&self, places: NodeLocations) -> Result<(), String> {
        let (ring, former) = (self.ring(), self.membership_state.places.load());
        for endpoint in ring.endpoints().iter().filter(|endpoint| endpoint.is_up) {
            let (before, after) = (former.of(endpoint.address.ip()), places.of(endpoint.address.ip()));
            if before != after {
                let name = |place: Option<&(String, String)>| {
                    place.map_or_else(|| "none".to_owned(), |(data_center, rack)| format!("{data_center}:{rack}"))
                };
                return Err(format!(
                    "Cannot update data center or rack from {} to {} for live host {}, property file NOT RELOADED",
                    name(before),
                    name(after),
                    endpoint.address
                ));
            }
        }
        self.membership_state.places.store(Arc::new(places));
        if let Some(messenger) = self.messenger() {
            messenger.with_gossip(|gossip| self.follow(gossip));
        }
        Ok(())
    }
}

/// The endpoints that do not say that drivers may connect (RPC_READY).
fn unready(gossip: &Gossip) -> HashSet<SocketAddr> {
    let is_ready = |told: &EndpointState| told.value(ApplicationState::RpcReady) == Some("true");
    gossip.peers().iter().filter(|(_, peer)| !is_ready(&peer.state)).map(|(address, _)| *address).collect()
}

/// The severities that endpoints tell of themselves (SEVERITY), without those of 0.
fn severities(gossip: &Gossip) -> Severities {
    let of = |told: &EndpointState| {
        told.value(ApplicationState::Severity)?.parse().ok().filter(|told: &f64| told.is_finite() && *told != 0.0)
    };
    gossip.peers().iter().filter_map(|(address, peer)| Some((*address, of(&peer.state)?))).collect()
}

/// The endpoints of the ring, this node first, the others by address. A host id that two endpoints
/// show, and a token that two own, belong to the one that was started last; an endpoint that is
/// left without tokens is none (`StorageService.handleStateNormal`). Those that have been replaced
/// are not among them any more ([`crate::replacements`]).
fn without_conflicts(this: (i32, Endpoint), mut others: Vec<(i32, Endpoint)>) -> Vec<Endpoint> {
    others.push(this);
    let this = others.len() - 1;
    let mut newest_first: Vec<(usize, i32, Endpoint)> =
        (0..).zip(others).map(|(at, (generation, e))| (at, generation, e)).collect();
    newest_first.sort_by_key(|(at, generation, _)| (std::cmp::Reverse(*generation), *at));
    let (mut host_ids, mut owned) = (HashSet::new(), HashSet::new());
    let mut kept: Vec<(usize, Endpoint)> = Vec::with_capacity(newest_first.len());
    for (at, _, mut endpoint) in newest_first {
        // this node does not give way: whoever took its place is told so by its own start
        let is_new = host_ids.insert(endpoint.host_id) || at == this;
        if endpoint.owns_tokens() {
            endpoint.tokens.retain(|token| owned.insert(*token) || at == this);
        }
        if is_new && (!endpoint.tokens.is_empty() || at == this) {
            kept.push((at, endpoint));
        }
    }
    kept.sort_by_key(|(at, _)| (*at != this, *at));
    assert!(kept.first().is_some_and(|(at, _)| *at == this), "this node is the first endpoint of its ring");
    kept.into_iter().map(|(_, endpoint)| endpoint).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::time::Duration;

    use internode::payload::gossip::VersionedValue;
    use internode::payload::gossip::tokens::text_of;
    use schema::KeyspaceMetadata;
    use types::Consistency;

    use crate::coordinator::error::RequestError;
    use crate::testing::{SimNode, SimRing};

    /// A node of a ring that is up, at 10.0.0.NUMBER.
    pub(crate) fn endpoint(number: u8, tokens: &[i64]) -> Endpoint {
        let address = SocketAddr::from(([10, 0, 0, number], 7000));
        Endpoint {
            address,
            native: address,
            host_id: [number; 16],
            data_center: "dc".to_owned(),
            rack: "rack".to_owned(),
            tokens: tokens.iter().copied().map(types::Token).collect(),
            is_up: true,
            state: State::Normal,
        }
    }

    #[test]
    fn a_host_id_and_a_token_belong_to_the_node_that_started_last() {
        let this = (5, endpoint(1, &[1, 2]));
        let moved = Endpoint { host_id: [3; 16], ..endpoint(4, &[7, 8]) };
        let joining = Endpoint { state: State::Joining, ..endpoint(6, &[9]) };
        let others = vec![
            (4, endpoint(2, &[2, 3])),
            (4, endpoint(3, &[7, 8])),
            (6, moved.clone()),
            (7, endpoint(5, &[9])),
            (8, joining.clone()),
            (3, endpoint(7, &[9])),
        ];
        let kept = without_conflicts(this.clone(), others);
        assert_eq!(kept, [this.1, endpoint(2, &[3]), moved, endpoint(5, &[9]), joining]);
    }

    /// A dead node whose clock was ahead when it started is replaced by one of a right clock: from
    /// the time on when that one is a member, it has the tokens.
    #[test]
    fn the_ring_follows_a_replacement_whatever_the_clocks_say() {
        let ring = SimRing::new(4, &["dc1", "dc1"]);
        let node = ring.node(0);
        let [dead, new] = [98, 99].map(|last| SocketAddr::from(([10, 0, 0, last], 7000)));
        let seconds = i32::try_from(node.env.clock.now_seconds()).expect("before 2038");
        let hear = |address: SocketAddr, host: u8, generation: i32, status: String, version: i32| {
            let value = |value: String| VersionedValue { value, version };
            let values = vec![
                (ApplicationState::HostId, value(types::literal::print_uuid(&[host; 16]))),
                (ApplicationState::Tokens, value(text_of(&[5]))),
                (ApplicationState::StatusWithPort, value(status)),
            ];
            let now = gossip::Now {
                monotonic: Duration::from_nanos(node.env.clock.monotonic_nanos()),
                wall_millis: node.env.clock.now_micros() / 1000,
            };
            let told = vec![(address, EndpointState { generation, heartbeat: version, values })];
            node.messenger().expect("joined").with_gossip(|gossip| gossip.apply_shadow_round(told, now));
            let snapshot = node.ring();
            snapshot.tokens().find(|(owned, _)| *owned == Token(5)).map(|(_, endpoint)| endpoint.address)
        };
        assert_eq!(hear(dead, 98, seconds + 10_000, "NORMAL,5".to_owned(), 1), Some(dead));
        assert_eq!(hear(new, 99, seconds, format!("BOOT_REPLACE,{dead}"), 1), Some(dead), "it is on its way");
        assert_eq!(hear(new, 99, seconds, "NORMAL,5".to_owned(), 2), Some(new));
    }

    /// A file that moves a node that is up is refused; one that moves a node that is down counts.
    #[test]
    fn places_are_replaced_unless_a_live_node_would_move() {
        let mut ring = SimRing::new(3, &["dc1", "dc1", "dc1"]);
        let places = |rack: &str| {
            let default = Some(("dc1".to_owned(), "rack1".to_owned()));
            let by_address = [(ring.address(2).ip(), ("dc1".to_owned(), rack.to_owned()))].into();
            NodeLocations { by_address, default }
        };
        let (first, second) = (places("rack1"), places("rack2"));
        let of_third = |ring: &SimRing| {
            let (now, address) = (ring.node(0).ring(), ring.address(2));
            now.endpoints().iter().find(|endpoint| endpoint.address == address).map(|endpoint| endpoint.rack.clone())
        };
        ring.node(0).membership_state.places.store(Arc::new(first));
        let refused = ring.node(0).replace_places(second.clone()).expect_err("it is up");
        assert!(refused.starts_with("Cannot update data center or rack from dc1:rack1 to dc1:rack2"), "{refused}");
        assert_eq!(of_third(&ring).as_deref(), Some("rack1"));
        ring.kill(2);
        ring.agree();
        ring.node(0).replace_places(second).expect("it is down");
        assert_eq!(of_third(&ring).as_deref(), Some("rack2"));
    }

    /// A keyspace is on the ring when its CREATE is answered; one that cannot be placed is refused
    /// by name, and one with more copies than there are nodes has too few for QUORUM.
    #[test]
    fn the_ring_follows_the_schema() {
        let machine = SimNode::new(Duration::from_secs(2));
        let node = &machine.node;
        let create = |name: &str, factor: &str| {
            let (name, factor) = (name.to_owned(), factor.to_owned());
            let decide = move |schema: &schema::Schema| -> Result<schema::Schema, ()> {
                let mut after = schema.clone();
                let mut keyspace = KeyspaceMetadata::clone(&schema.keyspaces["system_traces"]);
                keyspace.name.clone_from(&name);
                keyspace.tables.clear();
                keyspace.replication.options.insert("replication_factor".to_owned(), factor);
                after.keyspaces.insert(name, Arc::new(keyspace));
                Ok(after)
            };
            machine.sim.block_on(node.change_schema(decide)).expect("stored").map(drop).expect("not refused");
        };
        let planned = |keyspace: &str, level| {
            let planned = node.plan_partition(keyspace, types::Token(7), level, types::WriteKind::Simple);
            planned.map(|answers| (answers.block_for, answers.outstanding))
        };
        create("three", "3");
        assert_eq!(planned("three", Consistency::One), Ok((1, 1)));
        let shortage = ring::InsufficientReplicas { required: 2, alive: 1 };
        let level = Consistency::Quorum;
        assert_eq!(planned("three", level), Err(RequestError::Unavailable { level, shortage }));
        create("odd", "3/1");
        assert!(
            matches!(planned("odd", Consistency::One), Err(RequestError::Unplaced { keyspace, .. }) if keyspace == "odd")
        );
    }
}
