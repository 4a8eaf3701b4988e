//! `system.peers` and `system.peers_v2`: what drivers read of the other nodes, and what this node
//! remembers of them across a restart.
//!
//! A background task follows gossip. Each time something has changed it compares the members as
//! gossip tells of them with the rows that it wrote last, writes the difference, and then tells a
//! listener what drivers are to know: so a driver that is told of a node finds its row. The task
//! also tells the others how much data this node has (LOAD), once a minute.
//!
//! Agrees with `StorageService.{onChange,handleStateNormal,excise}`,
//! `transport.Server.EventNotifier` and `SystemKeyspace.{updatePeerInfo,removeEndpoint}`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use env::Next;
use gossip::{Gossip, Peer, Status};
use internode::payload::gossip::tokens::{text_of, tokens_of};
use internode::payload::gossip::{ApplicationState, EndpointState, States, VersionedValue};
use membership::Messenger;
use ring::{Endpoint, Ring};
use rows::{DeletionTime, Mutation, PartitionUpdate, Row};
use schema::TableMetadata;
use storage::Engine;

use crate::error::NodeError;
use crate::identity::inet;
use crate::membership_state::{Listener, RingEvent};
use crate::node::Node;
use crate::system_rows::{self, SystemRow};

/// How often the others are told how much data this node has (`LoadBroadcaster`).
const LOAD_PERIOD: Duration = Duration::from_secs(60);

/// Time after which rows that could not be written are written again, if nothing else happens
/// before.
const WRITE_AGAIN: Duration = Duration::from_secs(10);

/// A member as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Member {
    host_id: [u8; 16],
    tokens: Vec<i64>,
    data_center: Option<String>,
    rack: Option<String>,
    release_version: Option<String>,
    schema_version: Option<[u8; 16]>,
    /// The address at which drivers connect; None: a node of 3.x wrote the row, which has no port.
    native: Option<SocketAddr>,
}

/// A member as drivers know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct DriverView {
    /// Drivers were told that the node has joined.
    joined: bool,
    /// The last news to drivers: true: the node is up; false: it is down. None: they were told
    /// nothing.
    up: Option<bool>,
}

/// The members as the task has seen them last, and what it has told of them, by their addresses.
#[derive(Default)]
struct PeersState {
    members: BTreeMap<SocketAddr, Member>,
    /// The members that the rows have, where the last rows could not be written; None: those that
    /// the task has seen last.
    written: Option<BTreeMap<SocketAddr, Member>>,
    told: BTreeMap<SocketAddr, DriverView>,
}

impl Node {
    /// Starts the task that follows the ring for `system.peers` and the listener. A node alone has
    /// nothing to follow.
    pub(crate) fn start_peers_task(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        let mut state = PeersState { members: saved(&self.engine).into_iter().collect(), ..PeersState::default() };
        let step = move || step(&weak, &mut state).map_or(Next::Done, Next::After);
        let wake = self.env.tasks.background("peers", Box::new(step));
        wake.wake();
        let _ = self.membership_state.peers.set(wake);
    }

    /// Sets the function that hears what drivers are to be told of the ring. It can be set once.
    pub fn on_ring_event(&self, listener: Box<Listener>) {
        let _ = self.membership_state.listener.set(listener);
    }
}

/// The members that the directory knows from before the restart, as gossip would tell of them.
pub(crate) fn saved_states(engine: &Engine, local: SocketAddr) -> States {
    let members = saved(engine).into_iter().filter(|(address, _)| *address != local);
    members.map(|(address, member)| (address, member.as_told())).collect()
}

/// One step of the task. Gives the time until the next step at the latest; None: the node has
/// ended.
fn step(node: &Weak<Node>, state: &mut PeersState) -> Option<Duration> {
    let node = node.upgrade().filter(|node| !node.engine.is_draining())?;
    let Some(messenger) = node.messenger() else { return Some(LOAD_PERIOD) };
    let load = load(&node.engine);
    forget_replaced(&node, messenger);
    let (members, alive) = messenger.with_gossip(|gossip| {
        if gossip.local.state().value(ApplicationState::Load) != Some(load.as_str()) {
            gossip.local.set(ApplicationState::Load, load.clone());
        }
        (members(gossip), reachable(gossip))
    });
    let mutations = changes(&node, state.written.as_ref().unwrap_or(&state.members), &members);
    let applied = if mutations.is_empty() { Ok(()) } else { node.engine.apply(&mutations).map(drop) };
    // also where the rows are late: a log that has failed for good keeps no news from drivers
    let events = ring_events(&mut state.told, &state.members, &members, &alive);
    let before = std::mem::replace(&mut state.members, members);
    if let Some(listener) = node.membership_state.listener.get() {
        // another node may have this node's address for drivers (`rpc_address: localhost` on each
        // machine): drivers would take the end of that node for the end of this one
        let is_own = |event: &RingEvent| event.at() == node.identity.native;
        events.into_iter().filter(|event| !is_own(event)).for_each(listener);
    }
    match applied {
        Ok(()) => {
            state.written = None;
            Some(LOAD_PERIOD)
        }
        Err(error) => {
            // once: a log that has failed for good refuses them every time
            if state.written.is_none() {
                tracing::error!(%error, "what is known of other nodes cannot be written to system.peers");
            }
            state.written.get_or_insert(before);
            Some(WRITE_AGAIN)
        }
    }
}

/// Forgets members that have lost their host id to others, and those that are down and have lost
/// all their tokens: they are back under another address, or were replaced.
/// `StorageService.{handleStateNormal,updateTokenMetadata}`.
///
/// A member whose host id belongs to a node that was started later is that node at its former
/// address, and is forgotten before it is seen down: afterwards drivers would be told of its end
/// when they use the new one already.
///
/// Of a member that was remembered across the restart, and that nobody has told of since, each
/// token must be seen with a node that was told of. The member may have moved instead, and be
/// alive: gossip about it brings it back. Were it kept, it would own its tokens again once the node
/// that took them moves or leaves.
fn forget_replaced(node: &Node, messenger: &Messenger) {
    let now = gossip::Now {
        monotonic: Duration::from_nanos(node.env.clock.monotonic_nanos()),
        wall_millis: node.env.clock.now_micros() / 1000,
    };
    messenger.with_gossip(|gossip| {
        // the ring of what gossip tells now: an earlier one does not have who has come since
        let ring = node.ring();
        let is_told = |peer: &Peer| matches!(peer.status(), Some(Status::Normal | Status::Shutdown));
        let is_known = |what: &dyn Fn(&Endpoint) -> bool| ring.endpoints().iter().any(what);
        let has_lost_all = |address: &SocketAddr, peer: &Peer| {
            peer.is_member() && is_told(peer) && !is_known(&|endpoint| endpoint.address == *address)
        };
        let (mut replaced, mut superseded) = (Vec::new(), Vec::new());
        for (address, peer) in gossip.peers().iter().filter(|(address, peer)| has_lost_all(address, peer)) {
            let member = Member::of(&peer.state);
            // a node that is on its way in has not come to the place of another one yet
            let is_same = |endpoint: &Endpoint, of: &Member| endpoint.owns_tokens() && endpoint.host_id == of.host_id;
            let is_elsewhere = |member: &Member| is_known(&|endpoint| is_same(endpoint, member));
            if member.as_ref().is_some_and(is_elsewhere) || (!peer.is_alive && !peer.is_remembered) {
                replaced.push(*address);
            } else if !peer.is_alive && member.is_some_and(|member| is_superseded(gossip, &ring, &member)) {
                superseded.push(*address);
            }
        }
        for address in replaced {
            tracing::info!(endpoint = %address, "a node has been replaced: it is forgotten");
            gossip.remove(address, now);
        }
        for address in superseded {
            tracing::info!(endpoint = %address, "a node from before the restart has no tokens any more: it is forgotten");
            gossip.forget_remembered(address);
        }
    });
}

/// Whether each token of a member belongs to a node that has told of itself, or to this one.
fn is_superseded(gossip: &Gossip, ring: &Ring, member: &Member) -> bool {
    let is_heard = |endpoint: &Endpoint| {
        let peer = gossip.peers().get(&endpoint.address);
        std::ptr::eq(endpoint, ring.local()) || peer.is_some_and(|peer| !peer.is_remembered)
    };
    let is_lost = |token: &i64| ring.tokens().any(|(of, endpoint)| of.0 == *token && is_heard(endpoint));
    !member.tokens.is_empty() && member.tokens.iter().all(is_lost)
}

/// The bytes of this node's SSTables, as Java prints a double.
pub(crate) fn load(engine: &Engine) -> String {
    let views = engine.tables().into_iter().map(|store| store.view());
    let bytes: u64 = views.map(|view| view.sstables.iter().map(|sstable| sstable.disk_size()).sum::<u64>()).sum();
    format!("{bytes}.0")
}

fn members(gossip: &Gossip) -> BTreeMap<SocketAddr, Member> {
    let members = gossip.peers().iter().filter(|(_, peer)| peer.is_member());
    members.filter_map(|(address, peer)| Some((*address, Member::of(&peer.state)?))).collect()
}

/// The members that drivers can connect to.
fn reachable(gossip: &Gossip) -> Vec<SocketAddr> {
    let is_ready = |peer: &Peer| peer.is_alive && peer.state.value(ApplicationState::RpcReady) == Some("true");
    gossip.peers().iter().filter(|(_, peer)| is_ready(peer)).map(|(address, _)| *address).collect()
}

/// The news that drivers have not been told yet. A node that joins is told of when drivers may
/// connect to it. The end of a node is not told where another member has its address for drivers by
/// now: the same node under another broadcast address, or the one that has replaced it.
fn ring_events(
    told: &mut BTreeMap<SocketAddr, DriverView>,
    before: &BTreeMap<SocketAddr, Member>,
    now: &BTreeMap<SocketAddr, Member>,
    alive: &[SocketAddr],
) -> Vec<RingEvent> {
    let native = |address: &SocketAddr, member: &Member| member.native.unwrap_or(*address);
    let has = |at: SocketAddr, is_counted: &dyn Fn(&SocketAddr) -> bool| {
        now.iter().any(|(address, member)| native(address, member) == at && is_counted(address))
    };
    let mut news = Vec::new();
    for (address, member) in now {
        let at = native(address, member);
        // what was written before the restart, drivers know from before
        let is_old = before.contains_key(address);
        let known = told.entry(*address).or_insert(DriverView { joined: is_old, up: None });
        let is_up = alive.contains(address);
        if is_up && !known.joined {
            known.joined = true;
            news.push(RingEvent::Joined(at));
        }
        if before.get(address).is_some_and(|before| before.tokens != member.tokens) {
            news.push(RingEvent::Moved(at));
        }
        if known.up != Some(is_up) && (is_up || known.up.is_some()) {
            known.up = Some(is_up);
            match is_up {
                true => news.push(RingEvent::Up(at)),
                false if has(at, &|other| alive.contains(other)) => {}
                false => news.push(RingEvent::Down(at)),
            }
        }
    }
    for (address, member) in before.iter().filter(|(address, _)| !now.contains_key(address)) {
        told.remove(address);
        let at = native(address, member);
        if !has(at, &|_| true) {
            news.push(RingEvent::Left(at));
        }
    }
    news
}

/// The rows that differ from those that were written.
fn changes(node: &Node, before: &BTreeMap<SocketAddr, Member>, now: &BTreeMap<SocketAddr, Member>) -> Vec<Mutation> {
    let [Some(peers), Some(peers_v2)] = tables(&node.engine) else { return Vec::new() };
    let mut mutations = Vec::new();
    for (address, member) in now.iter().filter(|(address, member)| before.get(address) != Some(member)) {
        let timestamp = node.clock.next_micros();
        mutations.push(member.row(&peers, *address, timestamp));
        mutations.push(member.row(&peers_v2, *address, timestamp));
    }
    let seconds = node.env.clock.now_seconds();
    for address in before.keys().filter(|address| !now.contains_key(address)) {
        let deletion = DeletionTime::new(node.clock.next_micros(), seconds);
        let update = |table: &Arc<TableMetadata>| {
            let key = system_rows::partition_key(table, &[&inet(address.ip())]);
            PartitionUpdate::new(Arc::clone(table), key)
        };
        mutations.push(Mutation::of(PartitionUpdate { deletion, ..update(&peers) }));
        // another node may have the same address and another port
        let port = Bytes::copy_from_slice(&i32::from(address.port()).to_be_bytes());
        let mut of_port = update(&peers_v2);
        of_port.add_row(Row { deletion, ..Row::new([Some(port)].into_iter().collect()) });
        mutations.push(Mutation::of(of_port));
    }
    mutations
}

fn tables(engine: &Engine) -> [Option<Arc<TableMetadata>>; 2] {
    let schema = engine.schema();
    ["peers", "peers_v2"].map(|name| schema.table("system", name).cloned())
}

/// The members that `system.peers_v2` has.
fn saved(engine: &Engine) -> Vec<(SocketAddr, Member)> {
    let [_, Some(table)] = tables(engine) else { return Vec::new() };
    match system_rows::read(engine, &table, None) {
        Ok(rows) => rows.iter().filter_map(|(key, row)| Member::of_row(&table, &key.key, row)).collect(),
        Err(error) => {
            tracing::error!(%error, "what was known of other nodes cannot be read from system.peers_v2");
            Vec::new()
        }
    }
}

/// Takes over what a version before 4.0 remembered of other nodes, where `system.peers_v2` has
/// nothing: it had `system.peers` alone, without ports, which were the same on all nodes. A first
/// start on its directory would otherwise know of nobody but the seeds. Agrees with
/// `SystemKeyspaceMigrator41.migratePeers`.
pub(crate) fn migrate_legacy_peers(node: &Node) -> Result<(), NodeError> {
    let [Some(peers), Some(peers_v2)] = tables(&node.engine) else { return Ok(()) };
    if !system_rows::read(&node.engine, &peers_v2, None)?.is_empty() {
        return Ok(());
    }
    let (port, native_port) = (node.identity.broadcast.port(), node.identity.native.port());
    let rows = system_rows::read(&node.engine, &peers, None)?;
    let members = rows.iter().filter_map(|(key, row)| {
        let address = types::inet::of_bytes(&key.key)?;
        let native = system_rows::value(&peers, row, "rpc_address").and_then(|bytes| types::inet::of_bytes(bytes));
        let native = native.map(|address| SocketAddr::new(address, native_port));
        let member = Member { native, ..Member::of_columns(&peers, row)? };
        Some(member.row(&peers_v2, SocketAddr::new(address, port), node.clock.next_micros()))
    });
    let mutations: Vec<Mutation> = members.collect();
    if !mutations.is_empty() {
        node.engine.apply(&mutations)?;
        tracing::info!(members = mutations.len(), "the members in system.peers are taken over into system.peers_v2");
    }
    Ok(())
}

impl Member {
    /// A member by the state that it tells. None: the node has not told its host id and tokens.
    fn of(state: &EndpointState) -> Option<Self> {
        let text = |of| state.value(of).map(str::to_owned);
        let uuid = |of| state.value(of).and_then(types::literal::parse_uuid);
        let mut tokens = tokens_of(state.value(ApplicationState::Tokens)?).ok()?;
        tokens.sort_unstable();
        Some(Self {
            host_id: uuid(ApplicationState::HostId)?,
            tokens,
            data_center: text(ApplicationState::Dc),
            rack: text(ApplicationState::Rack),
            release_version: text(ApplicationState::ReleaseVersion),
            schema_version: uuid(ApplicationState::Schema),
            native: state.value(ApplicationState::NativeAddressAndPort).and_then(|text| text.parse().ok()),
        })
    }

    /// The state that gossip would tell of the member, in a generation before all others.
    fn as_told(&self) -> EndpointState {
        use ApplicationState::{
            Dc, HostId, NativeAddressAndPort, Rack, ReleaseVersion, Schema, StatusWithPort, Tokens,
        };
        let uuid = |id: &[u8; 16]| types::literal::print_uuid(id);
        let values = [
            (Schema, self.schema_version.as_ref().map(uuid)),
            (Dc, self.data_center.clone()),
            (Rack, self.rack.clone()),
            (ReleaseVersion, self.release_version.clone()),
            (HostId, Some(uuid(&self.host_id))),
            (Tokens, Some(text_of(&self.tokens))),
            (NativeAddressAndPort, self.native.map(|native| native.to_string())),
            (StatusWithPort, Some(format!("NORMAL,{}", self.tokens.first().copied().unwrap_or_default()))),
        ];
        let values =
            values.into_iter().filter_map(|(of, value)| Some((of, VersionedValue { value: value?, version: 0 })));
        EndpointState { generation: 0, heartbeat: 0, values: values.collect() }
    }

    fn row(&self, table: &Arc<TableMetadata>, address: SocketAddr, timestamp: i64) -> Mutation {
        let (key, port) = (inet(address.ip()), i32::from(address.port()).to_be_bytes());
        let clustering: &[&[u8]] = if table.name == "peers" { &[] } else { &[&port] };
        let text = |text: &String| Bytes::copy_from_slice(text.as_bytes());
        let uuid = |id: &[u8; 16]| Bytes::copy_from_slice(id);
        let native_address = self.native.map(|native| inet(native.ip()));
        let native_port = self.native.map(|native| Bytes::copy_from_slice(&i32::from(native.port()).to_be_bytes()));
        // a column that a table does not have is left out
        let columns = [
            ("host_id", Some(uuid(&self.host_id))),
            ("data_center", self.data_center.as_ref().map(text)),
            ("rack", self.rack.as_ref().map(text)),
            ("release_version", self.release_version.as_ref().map(text)),
            ("schema_version", self.schema_version.as_ref().map(uuid)),
            ("rpc_address", native_address.clone()),
            ("native_address", native_address),
            ("native_port", native_port),
        ];
        let row = SystemRow::new(table, &[&key], clustering, timestamp, None);
        let set = |row: SystemRow, (name, value): (&str, Option<Bytes>)| match value {
            Some(value) => row.set(name, value),
            None => row,
        };
        let tokens = self.tokens.iter().map(|token| (Bytes::from(token.to_string()), Bytes::new()));
        columns.into_iter().fold(row, set).set_elements("tokens", tokens).finish()
    }

    fn of_row(table: &TableMetadata, key: &[u8], row: &Row) -> Option<(SocketAddr, Self)> {
        let value = |name: &str| system_rows::value(table, row, name);
        let port = |bytes: &[u8]| u16::try_from(i32::from_be_bytes(bytes.try_into().ok()?)).ok();
        let address = types::inet::of_bytes(key)?;
        let peer_port = port(row.clustering.first()?.as_deref()?)?;
        let native = value("native_address").and_then(|bytes| types::inet::of_bytes(bytes));
        let native_port = value("native_port").and_then(|bytes| port(bytes));
        let native = native.zip(native_port).map(|(address, port)| SocketAddr::new(address, port));
        let member = Self { native, ..Self::of_columns(table, row)? };
        Some((SocketAddr::new(address, peer_port), member))
    }

    /// The columns that both tables have: all but the address for drivers, which is left out.
    /// None: host id or tokens are missing.
    fn of_columns(table: &TableMetadata, row: &Row) -> Option<Self> {
        let text = |name: &str| system_rows::text(table, row, name);
        let uuid = |name: &str| {
            system_rows::value(table, row, name).and_then(|bytes| <[u8; 16]>::try_from(bytes.as_ref()).ok())
        };
        let parse = |bytes: Bytes| std::str::from_utf8(&bytes).ok()?.parse().ok();
        let mut tokens: Vec<i64> = system_rows::elements(table, row, "tokens").into_iter().filter_map(parse).collect();
        tokens.sort_unstable();
        if tokens.is_empty() {
            return None;
        }
        Some(Self {
            host_id: uuid("host_id")?,
            tokens,
            data_center: text("data_center"),
            rack: text("rack"),
            release_version: text("release_version"),
            schema_version: uuid("schema_version"),
            native: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use env::sim::{ENOSPC, Fault, Op};

    use super::*;
    use crate::testing::SimRing;

    fn known(ring: &SimRing, machine: usize) -> Vec<SocketAddr> {
        let mut saved: Vec<_> = saved(&ring.node(machine).engine).into_iter().map(|(address, _)| address).collect();
        saved.sort();
        saved
    }

    /// Drivers hear of a node when its row is there: up when they may connect to it, down when it
    /// is silent. After a restart the rows are what the node knows before it hears of anybody.
    #[test]
    fn rows_follow_the_ring_and_drivers_hear_of_it() {
        let mut ring = SimRing::new(3, &["dc1", "dc1", "dc1"]);
        let others: Vec<_> = [1, 2].map(|machine| ring.address(machine)).to_vec();
        assert!(ring.world.run_until(Duration::from_secs(10), || known(&ring, 0) == others));
        // until the others have heard that drivers may connect
        ring.world.run_for(Duration::from_secs(10));
        let heard: Arc<std::sync::Mutex<Vec<RingEvent>>> = Arc::default();
        let told = Arc::clone(&heard);
        ring.node(0).on_ring_event(Box::new(move |event| told.lock().expect("no panic").push(event)));
        ring.kill(2);
        ring.agree();
        ring.start(2);
        ring.agree();
        ring.world.run_for(Duration::from_secs(5));
        let native = SocketAddr::new(others[1].ip(), 9042);
        assert_eq!(*heard.lock().expect("no panic"), [RingEvent::Down(native), RingEvent::Up(native)]);
        let remembered = saved_states(&ring.node(0).engine, ring.address(0));
        let told = |machine: usize| {
            ring.node(0)
                .messenger()
                .expect("joined")
                .with_gossip(|gossip| gossip.peers()[&ring.address(machine)].state.clone())
        };
        for (address, state) in &remembered {
            let machine = if *address == others[0] { 1 } else { 2 };
            assert_eq!(Member::of(state), Member::of(&told(machine)));
        }
        assert_eq!(remembered.len(), 2);
    }

    /// A directory of Cassandra 3 has `system.peers` alone.
    #[test]
    fn members_that_cassandra_3_remembered_are_taken_over() {
        let ring = SimRing::new(5, &["dc1", "dc1", "dc1"]);
        let others: Vec<_> = [1, 2].map(|machine| ring.address(machine)).to_vec();
        assert!(ring.world.run_until(Duration::from_secs(10), || known(&ring, 0) == others));
        let node = ring.node(0);
        let before = saved(&node.engine);
        let [_, Some(table)] = tables(&node.engine) else { panic!("built-in tables") };
        let deletion = DeletionTime::new(node.clock.next_micros(), node.env.clock.now_seconds());
        let gone = before.iter().map(|(address, _)| {
            let key = system_rows::partition_key(&table, &[&inet(address.ip())]);
            Mutation::of(PartitionUpdate { deletion, ..PartitionUpdate::new(Arc::clone(&table), key) })
        });
        node.engine.apply(&gone.collect::<Vec<_>>()).expect("room");
        assert!(saved(&node.engine).is_empty());
        migrate_legacy_peers(node).expect("room");
        assert_eq!(saved(&node.engine), before);
    }

    /// The log has no room when a node joins: the row comes when there is room.
    #[test]
    fn rows_that_cannot_be_written_are_written_later() {
        let mut ring = SimRing::begun(79, &["dc1", "dc1", "dc1"], 2);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "1")]);
        let [second, third] = [1, 2].map(|machine| ring.address(machine));
        assert!(ring.world.run_until(Duration::from_secs(10), || known(&ring, 0) == [second]));
        let full = Fault { times: u64::MAX, errno: ENOSPC, ..Fault::next(Op::Write, "CommitLog") };
        ring.world.disk(0).inject(full);
        ring.apply_alone(0, &[ring.row("ks", 1, 1, 1, 1_000)]);
        ring.world.run_for(Duration::from_secs(2));
        ring.start(2);
        ring.agree();
        ring.world.run_for(Duration::from_secs(5));
        assert_eq!(known(&ring, 0), [second], "there is no room");
        ring.world.disk(0).heal();
        assert!(ring.world.run_until(Duration::from_secs(40), || known(&ring, 0) == [second, third]));
    }

    /// A row of a member whose tokens another node has by now, and of which nobody tells, is of no
    /// worth: the member would own them again as soon as that node moves.
    #[test]
    fn a_member_that_was_replaced_during_a_restart_is_forgotten() {
        let mut ring = SimRing::new(2, &["dc1", "dc1"]);
        let other = ring.address(1);
        assert!(ring.world.run_until(Duration::from_secs(10), || known(&ring, 0) == [other]));
        let node = ring.node(0);
        let state = node.messenger().expect("joined").with_gossip(|gossip| gossip.peers()[&other].state.clone());
        let gone = SocketAddr::from(([10, 0, 0, 99], 7000));
        let member = Member { host_id: [9; 16], ..Member::of(&state).expect("a member") };
        let rows = changes(node, &BTreeMap::new(), &[(gone, member)].into());
        node.engine.apply(&rows).expect("a sound disk");
        ring.world.run_for(Duration::from_secs(20));
        assert_eq!(known(&ring, 0), [other, gone]);
        ring.kill(0);
        ring.start(0);
        assert!(ring.world.run_until(Duration::from_secs(30), || known(&ring, 0) == [other]), "{:?}", known(&ring, 0));
        let is_known = |gossip: &mut Gossip| gossip.peers().contains_key(&gone);
        assert!(!ring.node(0).messenger().expect("joined").with_gossip(is_known));
    }

    /// A node is killed and comes back at once under another broadcast address, and drivers reach
    /// it where they did before. They hear that it is up, and not of the end of the former address,
    /// which is forgotten before it is seen down.
    #[test]
    fn a_node_that_has_moved_to_another_address_has_not_left() {
        let mut ring = SimRing::begun(78, &["dc1", "dc1", "dc1", "dc1"], 3);
        let [second, former, new] = [1, 2, 3].map(|machine| ring.address(machine));
        assert!(ring.world.run_until(Duration::from_secs(10), || known(&ring, 0) == [second, former]));
        // until the others have heard that drivers may connect
        ring.world.run_for(Duration::from_secs(10));
        let native = SocketAddr::new(former.ip(), 9042);
        let heard: Arc<std::sync::Mutex<Vec<RingEvent>>> = Arc::default();
        let told = Arc::clone(&heard);
        ring.node(0).on_ring_event(Box::new(move |event| told.lock().expect("no panic").push(event)));
        let identity = &ring.node(2).identity;
        let (host_id, tokens) = (identity.host_id, identity.tokens.iter().map(|token| token.0).collect());
        ring.host_ids.insert(3, host_id);
        ring.tokens.insert(3, tokens);
        ring.natives.insert(3, native);
        let killed = ring.world.elapsed();
        ring.kill(2);
        ring.start(3);
        assert!(ring.world.run_until(Duration::from_secs(5), || known(&ring, 0) == [second, new]));
        assert!(ring.world.elapsed() - killed < Duration::from_secs(15), "nobody is convicted so early");
        ring.agree();
        ring.world.run_for(Duration::from_secs(60));
        assert_eq!(*heard.lock().expect("no panic"), [RingEvent::Joined(native), RingEvent::Up(native)]);
    }

    /// Each machine serves its drivers at the same address: they hear nothing of the other machine.
    #[test]
    fn drivers_hear_nothing_of_a_node_that_has_the_address_of_theirs() {
        let mut ring = SimRing::begun(81, &["dc1", "dc1", "dc1"], 2);
        // until the others have heard that drivers may connect
        ring.world.run_for(Duration::from_secs(10));
        let heard: Arc<std::sync::Mutex<Vec<RingEvent>>> = Arc::default();
        let told = Arc::clone(&heard);
        ring.node(0).on_ring_event(Box::new(move |event| told.lock().expect("no panic").push(event)));
        let own = ring.node(0).identity.native;
        ring.natives.insert(2, own);
        ring.start(2);
        ring.agree();
        ring.world.run_for(Duration::from_secs(10));
        assert_eq!(known(&ring, 0), [ring.address(1), ring.address(2)]);
        ring.kill(2);
        ring.agree();
        ring.world.run_for(Duration::from_secs(5));
        assert_eq!(*heard.lock().expect("no panic"), []);
    }

    fn member(token: i64) -> Member {
        Member {
            host_id: [1; 16],
            tokens: vec![token],
            data_center: None,
            rack: None,
            release_version: None,
            schema_version: None,
            native: Some("10.0.0.9:9042".parse().expect("an address")),
        }
    }

    /// The members, those of them that are alive, and what drivers hear of it.
    type Step<'a> = (&'a BTreeMap<SocketAddr, Member>, &'a [SocketAddr], &'a [RingEvent]);

    /// Two members have one address for drivers: one of them is down or forgotten, and the other
    /// one is up there, or is to be.
    #[test]
    fn an_address_that_another_member_has_is_not_taken_from_drivers() {
        let [former, new] = [9, 8].map(|last| SocketAddr::from(([10, 0, 0, last], 7000)));
        let native = member(1).native.expect("given");
        let before: BTreeMap<_, _> = [(former, member(1))].into();
        let both: BTreeMap<_, _> = [(former, member(1)), (new, member(1))].into();
        let now: BTreeMap<_, _> = [(new, member(1))].into();
        let (joined, up, down) = (RingEvent::Joined(native), RingEvent::Up(native), RingEvent::Down(native));
        let cases: [&[Step<'_>]; 3] = [
            // nobody has seen the former one down
            &[
                (&both, &[former], &[]),
                (&both, &[former, new], &[joined, up]),
                (&both, &[new], &[]),
                (&now, &[new], &[]),
            ],
            // the former one was stopped
            &[(&before, &[], &[down]), (&now, &[], &[]), (&now, &[new], &[joined, up]), (&now, &[], &[down])],
            // both are down
            &[(&both, &[former, new], &[joined, up]), (&both, &[former], &[]), (&both, &[], &[down])],
        ];
        for (case, steps) in cases.into_iter().enumerate() {
            let mut told = BTreeMap::new();
            assert_eq!(ring_events(&mut told, &before, &before, &[former]), [up], "case {case}");
            let mut members = &before;
            for (after, alive, expected) in steps {
                assert_eq!(ring_events(&mut told, members, after, alive), *expected, "case {case}");
                members = *after;
            }
        }
    }

    #[test]
    fn a_node_that_joins_is_told_of_when_drivers_may_connect() {
        let (address, native) = ("10.0.0.9:7000".parse().expect("an address"), member(1).native.expect("given"));
        let (none, one, other) = (BTreeMap::new(), [(address, member(1))].into(), [(address, member(2))].into());
        let mut told = BTreeMap::new();
        assert_eq!(ring_events(&mut told, &none, &one, &[]), []);
        assert_eq!(ring_events(&mut told, &one, &one, &[address]), [RingEvent::Joined(native), RingEvent::Up(native)]);
        assert_eq!(ring_events(&mut told, &one, &one, &[address]), []);
        assert_eq!(ring_events(&mut told, &one, &other, &[]), [RingEvent::Moved(native), RingEvent::Down(native)]);
        assert_eq!(ring_events(&mut told, &other, &none, &[]), [RingEvent::Left(native)]);
    }
}
