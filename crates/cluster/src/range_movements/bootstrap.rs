//! The way in of a node that is new: it fetches the data of its ranges before it owns them.
//!
//! 1. It takes part in gossip and has the schema. While others change the ring it waits for its
//!    turn (unless `consistent_rangemovement` is off), also if it replaces another one.
//! 2. It says BOOT, or BOOT_REPLACE with the address of the node in whose place it stands: from the
//!    time on when the others know, writes of its ranges go to it too. A node that has the address
//!    of the one that it replaces hibernates instead: the others keep hints for it. Of nodes that
//!    have said BOOT at the same time the one with the lowest address is first.
//! 3. What Paxos has begun in its ranges is completed (`paxos_variant: v2`), and it fetches them.
//!    The ranges that have come are recorded, so that `nodetool bootstrap resume` fetches the rest.
//!    The others forget a node that joins when it has been silent for some minutes, each by its own
//!    clock, and a member that had forgotten it has written to others only. A node that was cut off
//!    for so long that this may have happened (`gossip::presence`) tells again that it joins, waits
//!    until the others know it, and fetches everything anew. So does a node that was killed: it
//!    says BOOT at its next start before anything else.
//! 4. A node that replaces another one looks again whether that one is down, and fails otherwise.
//! 5. It is a member: COMPLETED on its disk, NORMAL for the others. While COMPLETED is written the
//!    replaced node may come back, so the look is repeated in one step with NORMAL.
//!
//! In a ring in which users have no keyspaces yet, nodes may come all at once and fetch only what
//! the ring keeps about itself. Each looks again when all others know that it comes: a keyspace
//! that a client has made by then may have rows that were written without it.
//!
//! `org.apache.cassandra.service.StorageService.{prepareForBootstrap,bootstrap,finishJoiningRing}`,
//! `dht.BootStrapper`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gossip::{Absence, Gossip};
use membership::{LocalApplicationStates, Membership};
use ring::Ring;
use ring::primary::Ranges;
use ring::relocation::{NoSource, SourceChoice, subtract};
use schema::system::is_system_keyspace;

use super::changing_nodes::{ChangingNodes, LOOK};
use super::flows::{ATTEMPTS_MAX, MovementStreams, PAUSE, refuse_missing};
use super::removal::{self, now};
use crate::node::Node;
use crate::range_movement_state::{BootstrapState, Mode, MovementSettings};
use crate::streaming::{Operation, SessionEnd};

/// Longest time that a new node waits for others that came at the same time.
const NEWCOMERS_MAX: Duration = Duration::from_secs(5);

/// A new node does not bootstrap without the schema of its ring. It waits this long, because the
/// node that was asked for the schema may have died, and another node is asked only when the
/// question has expired.
const SCHEMA_WAIT: Duration = Duration::from_secs(90);

/// How often one attempt asks again for keyspaces that were made meanwhile. The rows of further
/// ones have come by writes: the others have known for long that this node joins.
const ROUNDS_MAX: usize = 10;

/// The second sentence of a refusal of a replacement that waits for another change of the ring:
/// what else the operator can do.
const REPLACES_OTHERWISE: &str = ". One that cannot come to its end without the node that is to be replaced is \
                                  stopped first, if it joins, and started again, if it leaves or moves";

/// The status of a node that has tokens and is no replica for the others.
pub(crate) const HIBERNATE: &str = "hibernate,true";

/// The status of a node that is on its way in. A node that replaces another one at the same
/// address hibernates: the other nodes take it for the replaced node, which is still down.
pub(crate) fn joining_status(settings: MovementSettings, own: SocketAddr, first_token: i64) -> String {
    match settings.replaces {
        Some(replaced) if replaced == own => HIBERNATE.to_owned(),
        Some(replaced) => format!("BOOT_REPLACE,{replaced}"),
        None => format!("BOOT,{first_token}"),
    }
}

/// A node on its way in.
struct Joining<'a> {
    local_states: &'a LocalApplicationStates,
    /// The status that it tells.
    status: String,
    settings: MovementSettings,
}

impl Node {
    /// Whether this node fetches its data before it becomes a member.
    pub(crate) fn needs_bootstrap(&self, seeds: &[SocketAddr]) -> bool {
        let settings = self.membership_state.movements.settings();
        !self.identity.is_bootstrapped && settings.bootstraps && !seeds.contains(&self.identity.broadcast)
    }

    /// Fetches the data of the ranges that this node is about to own. It is not a member yet when
    /// this returns. `is_resumed`: this process has told the others in an earlier attempt that it
    /// joins.
    pub(crate) async fn bootstrap(
        self: &Arc<Self>,
        local_states: &LocalApplicationStates,
        is_resumed: bool,
    ) -> Result<(), String> {
        let settings = self.membership_state.movements.settings();
        self.membership_state.movements.state().restart_reason = None;
        if !self.ring().endpoints().iter().any(ring::Endpoint::owns_tokens) {
            // nobody else is there
            return Ok(());
        }
        // without the schema the ring looks as if it had nothing to lose
        if !self.wait_for_first_schema(SCHEMA_WAIT).await {
            let why = "no node of the ring has given its schema: what this one has to fetch is not known";
            return Err(why.to_owned());
        }
        let first = local_states.tokens.first().copied().unwrap_or_default();
        let status = joining_status(settings, self.identity.broadcast, first);
        let joining = Joining { local_states, status, settings };
        if settings.replaces.is_none() && !self.has_keyspaces_of_users() {
            // the nodes of a new ring may come at the same time, and none waits for another
            self.membership_state.movements.state().is_of_new_ring = true;
            match self.fetch_of_new_ring(&joining).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(why) => {
                    self.membership_state.movements.set_mode(Mode::JoiningFailed);
                    return Err(why);
                }
            }
        }
        // a node that goes on after an interruption says BOOT already
        let has_begun = |gossip: &mut gossip::Gossip| gossip::Status::of(gossip.local.state()).is_some();
        if !self.messenger().is_some_and(|messenger| messenger.with_gossip(has_begun)) {
            self.wait_for_turn(settings, |_| true).await?;
            self.wait_for_newcomers().await;
            self.wait_for_turn(settings, |_| true).await?;
        }
        if let Some(replaced) = settings.replaces {
            self.check_down(replaced)?;
        }
        if self.hibernates() {
            tracing::warn!(
                "Writes will not be forwarded to this node during replacement because it has the same address as the \
                 node to be replaced. If the previous node has been down for longer than max_hint_window, repair must \
                 be run after the replacement process in order to make this node consistent."
            );
        }
        self.membership_state.movements.set_mode(Mode::Joining);
        self.save_bootstrap_state(BootstrapState::InProgress).await?;
        // nothing that was fetched from a new ring counts in one that has rows now
        let is_resumed = is_resumed && !self.membership_state.movements.state().is_of_new_ring;
        let fetched = self.fetch_as_joining(&joining, is_resumed).await;
        // a node that was only cut off may be back, and would not give its tokens up: the writes
        // that it coordinates would go to other replicas than the reads of the others
        let is_free = || settings.replaces.map_or(Ok(()), |replaced| self.check_down(replaced));
        let fetched = fetched.and_then(|()| is_free());
        if fetched.is_err() {
            self.membership_state.movements.set_mode(Mode::JoiningFailed);
        }
        fetched
    }

    /// Tells the others that this node joins, and fetches its data.
    async fn fetch_as_joining(self: &Arc<Self>, joining: &Joining<'_>, is_resumed: bool) -> Result<(), String> {
        let absence = if is_resumed { self.absence() } else { None };
        match (is_resumed, absence) {
            // what has come is complete: nobody can have forgotten this node since
            (true, None) => self.announce(|local| joining.local_states.set_joining(local, &joining.status)),
            (true, Some(absence)) => self.announce_join_again(joining, &absence).await?,
            (false, _) => self.restart_join(joining)?,
        }
        let (mut attempt, mut is_known) = (1, false);
        loop {
            if !is_known {
                self.wait_until_counted_on(joining.settings).await?;
                is_known = true;
            }
            let why = match (self.fetch_own_ranges(joining.settings).await, self.absence()) {
                (Ok(()), None) => return Ok(()),
                (Ok(()), Some(absence)) => absence.to_string(),
                (Err(why), _) => why,
            };
            tracing::warn!(attempt, why, "not all data has come");
            if attempt == ATTEMPTS_MAX {
                return Err(format!(
                    "{why}; `nodetool bootstrap resume -f` fetches the rest, and another start everything anew"
                ));
            }
            attempt += 1;
            self.env.sleep(PAUSE).await;
            if let Some(absence) = self.absence() {
                self.announce_join_again(joining, &absence).await?;
                is_known = false;
            }
        }
    }

    /// Tells the others that this node joins. Data that has come before is fetched again, because
    /// the others may have written only to other nodes meanwhile.
    fn restart_join(&self, joining: &Joining<'_>) -> Result<(), String> {
        self.shared_keyspaces(&self.ring())?.iter().try_for_each(|(name, _)| self.forget_available(name))?;
        self.membership_state.movements.state().is_of_new_ring = false;
        self.announce_join(joining);
        Ok(())
    }

    /// Tells the others that this node joins, and watches from then on whether they may have
    /// forgotten it.
    fn announce_join(&self, joining: &Joining<'_>) {
        self.announce(|local| joining.local_states.set_joining(local, &joining.status));
        if let Some(messenger) = self.messenger() {
            messenger.with_gossip(|gossip| gossip.watch_presence(now(self)));
        }
    }

    /// Tells the others again that this node joins, because they may have forgotten it.
    async fn announce_join_again(&self, joining: &Joining<'_>, absence: &Absence) -> Result<(), String> {
        let why = format!(
            "{absence}: others may have forgotten that this node joins, and have written without it meanwhile. It joins \
             anew, and fetches all of its ranges again"
        );
        tracing::warn!("{why}");
        self.membership_state.movements.state().restart_reason = Some(why);
        self.restart_join(joining)?;
        self.wait_for_members().await;
        Ok(())
    }

    /// Waits, for `ring_delay` at most, until all members are up. After a cut of the network it
    /// takes some seconds until a member is seen to be up, and [`Node::wait_until_known`] waits
    /// only for members that are.
    async fn wait_for_members(&self) {
        let (begun, limit) = (self.env.now(), self.membership_state.movements.settings().ring_delay);
        let is_one_down = || self.ring().peers().any(|peer| peer.owns_tokens() && !peer.is_up);
        while self.env.elapsed(begun) < limit && is_one_down() {
            self.env.sleep(LOOK).await;
        }
    }

    /// Waits until the others count on a node that has said that it joins, and until it has its
    /// turn. What Paxos has begun in its ranges is completed then.
    async fn wait_until_counted_on(self: &Arc<Self>, settings: MovementSettings) -> Result<(), String> {
        self.wait_until_known().await;
        // others may have begun at the same time: writes of this node's ranges reach it while it
        // waits, and it fetches from the ring as they leave it
        let own = self.identity.broadcast;
        // for the others a node that hibernates does not join: they do not wait for it
        let gives_way = self.hibernates();
        let is_ahead = |endpoint: &ring::Endpoint| gives_way || !endpoint.state.is_joining() || endpoint.address < own;
        self.wait_for_turn(settings, is_ahead).await?;
        self.repair_paxos_before_movement("bootstrap").await
    }

    /// A silence in which others may have forgotten that this node joins. A node that hibernates is
    /// a member for the others, which do not forget it and do not write to it either.
    fn absence(&self) -> Option<Absence> {
        let messenger = self.messenger().filter(|_| !self.hibernates())?;
        messenger.with_gossip(|gossip| gossip.absence(now(self)))
    }

    /// Whether this node replaces another one at the same address.
    fn hibernates(&self) -> bool {
        self.membership_state.movements.settings().replaces == Some(self.identity.broadcast)
    }

    /// Refuses to replace a node that is up.
    fn check_down(&self, replaced: SocketAddr) -> Result<(), String> {
        self.messenger().map_or(Ok(()), |messenger| messenger.with_gossip(|gossip| refuse_live(gossip, replaced)))
    }

    /// Tells the others that this node, which has its data, is a member. Err: the node in whose
    /// place it stands is up again; nothing is told, and COMPLETED is taken back. Gossip takes in
    /// nothing between the look and the word.
    pub(crate) async fn take_place(
        &self,
        membership: &Membership,
        local_states: &LocalApplicationStates,
    ) -> Result<(), String> {
        let replaced = self.membership_state.movements.settings().replaces;
        let is_free = membership.with_gossip(|gossip| {
            let is_free = replaced.map_or(Ok(()), |replaced| refuse_live(gossip, replaced));
            if is_free.is_ok() {
                local_states.set_normal(&mut gossip.local);
            }
            is_free
        });
        if is_free.is_err() {
            self.membership_state.movements.set_mode(Mode::JoiningFailed);
            // otherwise the next start would tell NORMAL at once
            self.save_bootstrap_state(BootstrapState::InProgress).await?;
        }
        is_free
    }

    /// Waits a little for nodes that came at the same time, have a lower address and have not told
    /// yet that they join: while two nodes have said BOOT, statements with conditions are refused
    /// in ranges of both.
    async fn wait_for_newcomers(&self) {
        let Some(messenger) = self.messenger() else { return };
        let is_ahead = |(address, peer): (&SocketAddr, &gossip::Peer)| {
            peer.is_alive && peer.status().is_none() && *address < self.identity.broadcast
        };
        let begun = self.env.now();
        while self.env.elapsed(begun) < NEWCOMERS_MAX
            && messenger.with_gossip(|gossip| gossip.peers().iter().any(is_ahead))
        {
            self.env.sleep(LOOK).await;
        }
    }

    /// Waits while nodes that are ahead of this one change the ring: it changes once at a time.
    /// Err: one of them is down, so that nobody knows when its change ends.
    async fn wait_for_turn(
        &self,
        settings: MovementSettings,
        is_ahead: impl Fn(&ring::Endpoint) -> bool,
    ) -> Result<(), String> {
        if !settings.is_consistent {
            return Ok(());
        }
        let counts = |endpoint: &ring::Endpoint| {
            is_ahead(endpoint) && settings.replaces.is_none_or(|replaced| self.must_wait_for(endpoint, replaced))
        };
        let mut has_told = false;
        while let Some(changing_nodes) = ChangingNodes::of(&self.ring(), counts) {
            let told = changing_nodes.describe(&removal::removing(self));
            if changing_nodes.is_one_down() {
                return Err(format!("{changing_nodes} {told}"));
            }
            if !has_told {
                let otherwise = if settings.replaces.is_some() { REPLACES_OTHERWISE } else { "" };
                tracing::warn!("{changing_nodes} This node waits for its turn: {told}{otherwise}");
                has_told = true;
            }
            self.env.sleep(LOOK).await;
        }
        Ok(())
    }

    /// Whether this node, which replaces another one, waits for a node that changes the ring. The
    /// replaced node may have died while it left or moved, and the replacement is the end of that;
    /// a removal takes its tokens away. A node that joins and is down fetches everything anew when
    /// it comes again.
    fn must_wait_for(&self, endpoint: &ring::Endpoint, replaced: SocketAddr) -> bool {
        match endpoint.address == replaced {
            true => removal::removing(self).contains(&replaced),
            false => endpoint.is_up || !endpoint.state.is_joining(),
        }
    }

    /// Whether users have keyspaces, as far as this node knows.
    fn has_keyspaces_of_users(&self) -> bool {
        self.schema().keyspaces.keys().any(|name| !is_system_keyspace(name))
    }

    /// Tells the others of a ring in which users have no keyspaces that this node joins, and
    /// fetches what the ring keeps about itself. The others know of this node first: roles that are
    /// changed later, too, reach it. False: a client has made a keyspace before all of them knew,
    /// and its rows are to be fetched as in any other ring.
    async fn fetch_of_new_ring(self: &Arc<Self>, joining: &Joining<'_>) -> Result<bool, String> {
        // before the others know of it: a node that joins may not stop its gossip
        self.membership_state.movements.set_mode(Mode::Joining);
        self.announce_join(joining);
        self.wait_until_aware().await;
        self.take_schemas_of_members().await?;
        if self.has_keyspaces_of_users() {
            tracing::info!("a keyspace was made while this node came: it fetches the data of its ranges");
            return Ok(false);
        }
        self.shared_keyspaces(&self.ring())?.iter().try_for_each(|(name, _)| self.forget_available(name))?;
        let settings = MovementSettings { is_consistent: false, ..joining.settings };
        let mut attempt = 1;
        while let Err(why) = self.fetch_own_ranges(settings).await {
            tracing::warn!(attempt, why, "what the ring keeps about itself has not come");
            if attempt == ATTEMPTS_MAX {
                return Err(why);
            }
            attempt += 1;
            self.env.sleep(PAUSE).await;
        }
        Ok(true)
    }

    /// Waits until this node has the schemas of all members that are up: otherwise it would leave
    /// out keyspaces and tables that it does not know. Err: the schema of a member does not come.
    async fn take_schemas_of_members(&self) -> Result<(), String> {
        let lacking = self.wait_for_schemas_of_members(SCHEMA_WAIT).await;
        if lacking.is_empty() {
            return Ok(());
        }
        let names = lacking.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Err(format!("the schema of {names} has not come: what this node has to fetch is not known"))
    }

    /// One attempt: fetches everything that has not come yet, in the schema that the members have.
    /// If the schema has more keyspaces in the end, these are fetched too: a member that was cut
    /// off may have written to them and not have known that this node joins.
    async fn fetch_own_ranges(self: &Arc<Self>, settings: MovementSettings) -> Result<(), String> {
        self.take_schemas_of_members().await?;
        for _ in 0..ROUNDS_MAX {
            let asked = self.fetch_known_keyspaces(settings).await?;
            if let Err(why) = self.take_schemas_of_members().await {
                tracing::warn!(why, "this node joins without another look at that schema");
            }
            let known = self.shared_keyspaces(&self.ring())?;
            if known.iter().all(|(keyspace, _)| asked.contains(keyspace)) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Fetches everything that has not come yet of the keyspaces that this node knows, and gives
    /// their names.
    async fn fetch_known_keyspaces(self: &Arc<Self>, settings: MovementSettings) -> Result<Vec<String>, String> {
        let ring = self.ring();
        let strict = settings.is_consistent && settings.replaces.is_none();
        let replaced = settings.replaces;
        let may_give = |endpoint: &ring::Endpoint| Some(endpoint.address) != replaced;
        let choice = SourceChoice { strict, may_give: &may_give };
        let (mut exchange, mut asked) = (MovementStreams::default(), Vec::new());
        for (keyspace, placement) in self.shared_keyspaces(&ring)? {
            // for its own ring, too, a node that hibernates has its tokens already
            let fetches = match self.hibernates() {
                true => ring.rebuild_fetches(&placement, ring.local_id(), &Ranges::new(), choice),
                false => ring.joining_fetches(&placement, ring.local_id(), &ring.local().tokens, choice),
            };
            let mut fetches = fetches.map_err(|error| describe(&ring, &keyspace, &error))?;
            let has = self.available_ranges(&keyspace)?;
            refuse_missing(&keyspace, &placement, &subtract(&fetches.missing, &has))?;
            for ranges in fetches.from.values_mut() {
                *ranges = subtract(ranges, &has);
            }
            fetches.from.retain(|_, ranges| !ranges.is_empty());
            exchange.fetch(&ring, &keyspace, &fetches.from);
            asked.push(keyspace);
        }
        let requests = exchange.requests.clone();
        let on_end = |peer: SocketAddr, end: &SessionEnd| self.record_fetched(&requests, peer, end);
        exchange.run(self, Operation::Bootstrap, on_end).await?;
        Ok(asked)
    }

    /// Records what has come when the streams from a peer have ended, so that it need not come
    /// again.
    fn record_fetched(
        &self,
        requests: &BTreeMap<SocketAddr, BTreeMap<String, Ranges>>,
        peer: SocketAddr,
        end: &SessionEnd,
    ) {
        match end {
            Ok(_) => {
                for (keyspace, ranges) in requests.get(&peer).into_iter().flatten() {
                    if let Err(error) = self.record_available(keyspace, ranges) {
                        tracing::warn!(%error, keyspace, "it cannot be recorded what has come");
                    }
                }
            }
            Err(failure) => tracing::warn!(%peer, reason = failure.reason, "the data of a node has not come"),
        }
    }
}

/// Refuses to replace a node that gossip takes for up.
fn refuse_live(gossip: &Gossip, replaced: SocketAddr) -> Result<(), String> {
    match gossip.peers().get(&replaced).is_some_and(|peer| peer.is_alive) {
        true => Err(format!("Cannot replace a live node... {replaced} is up")),
        false => Ok(()),
    }
}

/// A range that cannot be fetched, for the operator.
pub(crate) fn describe(ring: &Ring, keyspace: &str, error: &NoSource) -> String {
    let needed: Vec<String> = error.needed.iter().map(|id| ring.endpoint(*id).address.to_string()).collect();
    format!(
        "Necessary replicas for strict consistency are missing in keyspace {keyspace}: {error} ({}). Wait until they are \
         up, or accept data that may be older (consistent_rangemovement=false)",
        needed.join(", ")
    )
}
