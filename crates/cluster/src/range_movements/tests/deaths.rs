//! A process or a machine dies at a step of each change of the ring: that of the node that changes,
//! or of another one that has a part in it. The node is started again on its disk, and the operator
//! asks again until the change has come to its end. Clients write all the while, and in the end
//! each replica has what was acknowledged.
//!
//! The steps are not written down here. A change is rehearsed on the seed without a death, and each
//! moment at which something becomes another thing that an observer can see ([`Sight`]) is a step:
//! somebody learns of the change, a stream begins or has its next file, the outcome is on the disk,
//! somebody is told of it. Equal seeds give equal runs, so the step comes again where a node dies
//! in it: at its first event, or at a drawn one before the next step.
//!
//! The everyday test has one drawn step for each change. `HELENUS_SEEDS=a..b cargo test --profile
//! quick -p cluster --lib deaths -- --nocapture` has every step of every change, and the death of
//! either machine, with these seeds; `HELENUS_CHANGES=Move,Rebuild` has these changes alone.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use env::Random;
use env::sim::{SimRandom, World};

use super::*;

/// A change of the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Bootstrap,
    Replace,
    Decommission,
    Remove,
    Move,
    Rebuild,
}

use Change::{Bootstrap, Decommission, Move, Rebuild, Remove, Replace};

const CHANGES: [Change; 6] = [Bootstrap, Replace, Decommission, Remove, Move, Rebuild];

/// An operator asks so often at most.
const ATTEMPTS_MAX: usize = 10;

/// A rehearsal goes on for so long after the change, for what nodes do then.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// The first seed of the everyday test.
const EVERYDAY_SEED: u64 = 60;

/// Between two writes of the client.
const WRITES_EVERY: Duration = Duration::from_millis(150);

/// A step of a rehearsal.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Step {
    /// Events of the simulation before it.
    events: u64,
    /// The news that an observer sees then.
    what: String,
}

/// An observer's sight of a node.
#[derive(Clone)]
struct Sight {
    machine: usize,
    mode: Mode,
    /// `system.local.bootstrapped` of the node that changes.
    saved: Option<String>,
    /// The ring as the node knows it.
    ring: Arc<ring::Ring>,
    /// Files of the streams that run: to come, come, to go, gone.
    streams: Vec<[u64; 4]>,
    /// Streams that have ended.
    ended: usize,
    /// The removal that the node coordinates waits for so many.
    removal: Option<usize>,
}

impl Sight {
    fn of(changing: &Changing, machine: usize) -> Self {
        let node = changing.ring.node(machine);
        let files = |of: &crate::streaming::SessionProgress| {
            [of.to_receive.files, of.received.files, of.to_send.files, of.sent.files]
        };
        let (mode, removal) = {
            let state = node.membership_state.movements.state();
            (state.mode, state.removal.as_ref().map(|removal| removal.waiting.len()))
        };
        let is_actor = machine == changing.change.actor();
        Self {
            machine,
            mode,
            saved: if is_actor { changing.ring.saved_bootstrap_state(machine) } else { None },
            ring: node.ring(),
            streams: node.stream_progress().iter().map(files).collect(),
            ended: node.ended_streams().len(),
            removal,
        }
    }

    /// The differences from an earlier sight, in words; None: there are none.
    fn news(&self, before: &Sight) -> Option<String> {
        let mut news = Vec::new();
        let mut tell = |differs: bool, what: &dyn Fn() -> String| news.extend(differs.then(what));
        tell(self.mode != before.mode, &|| format!("is {}", self.mode));
        tell(self.saved != before.saved, &|| format!("has {:?} on its disk", self.saved));
        if !Arc::ptr_eq(&self.ring, &before.ring) {
            let shown = |one: &ring::Endpoint| (one.address, one.state, one.tokens.clone(), one.is_up);
            let known: Vec<_> = before.ring.endpoints().iter().map(shown).collect();
            for one in self.ring.endpoints() {
                let up = if one.is_up { "up" } else { "down" };
                tell(!known.contains(&shown(one)), &|| format!("knows {} as {:?}, {up}", one.address.ip(), one.state));
            }
            let is_known = |address| self.ring.endpoints().iter().any(|one| one.address == address);
            known.iter().for_each(|one| tell(!is_known(one.0), &|| format!("has forgotten {}", one.0.ip())));
        }
        tell(self.streams != before.streams, &|| format!("streams {:?}", self.streams));
        tell(self.ended != before.ended, &|| format!("has {} streams behind it", self.ended));
        tell(self.removal != before.removal, &|| format!("waits for {:?} in a removal", self.removal));
        (!news.is_empty()).then(|| format!("machine {} {}", self.machine, news.join(", ")))
    }
}

/// The rows (k, c) that a client got acknowledged at QUORUM, which is both copies here.
type Acknowledged = Arc<Mutex<BTreeSet<(i32, i32)>>>;

impl Change {
    /// The machine of the node that changes; of a removal, of the one that coordinates it.
    fn actor(self) -> usize {
        match self {
            Bootstrap | Move | Rebuild => 2,
            Replace => 3,
            Decommission => 1,
            Remove => 0,
        }
    }

    /// The machine of a node that data comes from or goes to.
    fn peer(self) -> usize {
        if self == Remove { 1 } else { 0 }
    }

    /// The machine whose node the client writes through, which stays alive: a third one.
    fn coordinator(self, victim: usize) -> usize {
        let members = if self == Decommission { [0, 2] } else { [0, 1] };
        members.into_iter().find(|machine| *machine != victim).expect("two members stay")
    }

    /// The members in the end.
    fn members(self) -> &'static [usize] {
        match self {
            Bootstrap | Move | Rebuild => &[0, 1, 2],
            Replace => &[0, 1, 3],
            Decommission => &[0, 2],
            Remove => &[0, 1],
        }
    }
}

/// A ring in which a change is under way.
struct Changing {
    ring: SimRing,
    change: Change,
    /// The host id of the node that does not come back, of a removal.
    removed: String,
    /// The token to which a node moves.
    token: i64,
    /// The rebuild has ended well.
    is_rebuilt: Arc<AtomicBool>,
    acknowledged: Acknowledged,
    /// The client has come to its end.
    is_quiet: Arc<AtomicBool>,
}

impl Changing {
    fn begin(change: Change, victim: usize, seed: u64) -> Self {
        let mut ring = match change {
            Replace => {
                let mut ring = SimRing::begun(seed, &["dc1", "dc1", "dc1", "dc1"], 3);
                ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
                write(&ring, 0, 0, Consistency::All);
                let tokens = ring.node(2).ring().local().tokens.iter().map(|token| token.0).collect();
                ring.tokens.insert(3, tokens);
                ring
            }
            Bootstrap | Rebuild => ring_of(seed, 2),
            Decommission | Remove | Move => ring_of(seed, 3),
        };
        let mut removed = String::new();
        match change {
            Replace => {
                let (ring_delay, replaces) = (Duration::from_secs(10), Some(ring.address(2)));
                ring.movements = MovementSettings { ring_delay, replaces, ..MovementSettings::default() };
                ring.kill(2);
                ring.agree();
            }
            Remove => {
                removed = types::literal::print_uuid(&ring.node(2).identity.host_id);
                ring.kill(2);
                ring.agree();
            }
            Rebuild => {
                ring.movements.bootstraps = false;
                ring.start(2);
                agree_on_members(&ring, &[0, 1, 2]);
            }
            _ => {}
        }
        let token = if change == Move { ring.node(2).ring().local().tokens[0].0 / 2 } else { 0 };
        if matches!(change, Bootstrap | Replace) {
            ring.spawn(change.actor());
        }
        let of_all = (0..KEYS).map(|k| (k, 0)).collect();
        let (acknowledged, is_quiet) = (Arc::new(Mutex::new(of_all)), Arc::default());
        let changing = Self { ring, change, removed, token, is_rebuilt: Arc::default(), acknowledged, is_quiet };
        changing.write_on(change.coordinator(victim));
        if !matches!(change, Bootstrap | Replace) {
            changing.ask();
        }
        changing
    }

    /// A client writes rows at QUORUM, one after the other, until it is told to be quiet.
    fn write_on(&self, through: usize) {
        let (acknowledged, is_quiet) = (Arc::clone(&self.acknowledged), Arc::clone(&self.is_quiet));
        let row = |k: i32, c: i32| self.ring.row("ks", k, c, k * 10 + c, 1_000 + i64::from(c));
        let mut rows = (1..20).flat_map(|c| (0..KEYS).map(move |k| (k, c))).map(|(k, c)| (k, c, row(k, c)));
        let rows: Vec<_> = rows.by_ref().collect();
        beside(&self.ring, through, move |node| async move {
            for (k, c, row) in rows {
                node.env.sleep(WRITES_EVERY).await;
                if is_quiet.load(Ordering::Relaxed) {
                    return;
                }
                let is_written = match node.write(vec![row], Consistency::Quorum).await {
                    Ok(Some(wait)) => wait.await.is_ok(),
                    Ok(None) => true,
                    Err(_) => false,
                };
                if is_written {
                    acknowledged.lock().unwrap_or_else(PoisonError::into_inner).insert((k, c));
                }
            }
        });
    }

    /// The operator asks for the change.
    fn ask(&self) {
        let (id, token, is_rebuilt) = (self.removed.clone(), self.token, Arc::clone(&self.is_rebuilt));
        let change = self.change;
        beside(&self.ring, change.actor(), move |node| async move {
            match change {
                Bootstrap | Replace => drop(node.enter().await),
                Decommission => drop(decommission::decommission(&node, true).await),
                Remove => drop(removal::remove(&node, &id).await),
                Move => drop(relocation::relocate(&node, &token.to_string()).await),
                Rebuild => {
                    let options = RebuildOptions { keyspace: Some("ks".to_owned()), ..RebuildOptions::default() };
                    let rebuilt = rebuild::rebuild(&node, options).await;
                    is_rebuilt.fetch_or(rebuilt.is_ok(), Ordering::Relaxed);
                }
            }
        });
    }

    /// The operator asks again. A new node whose process could not join is started again.
    fn ask_again(&mut self) {
        let actor = self.change.actor();
        if self.ring.node(actor).membership().is_none() {
            self.ring.kill(actor);
            return self.ring.spawn(actor);
        }
        self.ask();
    }

    fn is_done(&self) -> bool {
        let (ring, actor) = (&self.ring, self.change.actor());
        // a process that has not joined yet says NORMAL, too
        let is_normal =
            |machine: usize| ring.node(machine).membership().is_some() && ring.node(machine).mode() == Mode::Normal;
        match self.change {
            Bootstrap | Replace => is_normal(actor) && saved(ring, actor) == Some(BootstrapState::Completed),
            Decommission => ring.node(actor).mode() == Mode::Decommissioned,
            Remove => self.is_agreed(),
            Move => ring.node(actor).ring().tokens().any(|(owned, _)| owned.0 == self.token) && is_normal(actor),
            Rebuild => self.is_rebuilt.load(Ordering::Relaxed),
        }
    }

    /// Whether every member sees the members of the end, and no other, as NORMAL and up.
    fn is_agreed(&self) -> bool {
        let members: Vec<_> = self.change.members().iter().map(|machine| self.ring.address(*machine)).collect();
        self.change.members().iter().all(|machine| {
            let snapshot = self.ring.node(*machine).ring();
            let owners = snapshot.endpoints().iter().filter(|endpoint| endpoint.owns_tokens());
            let mut seen: Vec<_> = owners.clone().map(|endpoint| endpoint.address).collect();
            seen.sort();
            seen == members && owners.clone().all(|one| one.state == State::Normal && one.is_up)
        })
    }

    /// Asserts that each replica has every row that was acknowledged, and no row that nobody wrote.
    fn check(&self, what: &str) {
        let acknowledged = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (ring, members) = (&self.ring, self.change.members());
        let snapshot = ring.node(members[0]).ring();
        let placement = snapshot.placement("ks").expect("placed");
        for k in 0..KEYS {
            let token = types::DecoratedKey::new(bytes::Bytes::copy_from_slice(&k.to_be_bytes())).token;
            assert_eq!(placement.natural(token).len(), 2, "{what}: two copies");
            assert!(placement.pending(token).is_empty(), "{what}: nothing moves any more");
            for id in placement.natural(token) {
                let address = snapshot.endpoint(*id).address;
                let machine = members.iter().find(|machine| ring.address(**machine) == address);
                let machine = *machine.expect("a replica lives");
                let stored: BTreeSet<_> = ring.stored(machine, "ks", k).into_iter().collect();
                let expected = acknowledged.iter().filter(|row| row.0 == k).map(|row| (row.1, k * 10 + row.1));
                let missing: Vec<_> = expected.filter(|row| !stored.contains(row)).collect();
                assert!(missing.is_empty(), "{what}: machine {machine} lacks {missing:?} of {k} and has {stored:?}");
                assert!(stored.iter().all(|(c, v)| *v == k * 10 + c), "{what}: nobody wrote {stored:?}");
            }
        }
    }
}

/// The steps of a change, of a client that writes through the one that stays when `victim` dies.
fn rehearse(change: Change, victim: usize, seed: u64) -> Vec<Step> {
    let changing = Changing::begin(change, victim, seed);
    let ring = &changing.ring;
    let observed: Vec<usize> = ring.living();
    let mut sights: Vec<Sight> = observed.iter().map(|machine| Sight::of(&changing, *machine)).collect();
    let mut steps = vec![Step { events: 0, what: "it has been asked for".to_owned() }];
    let mut events = 0;
    let mut done_at = None;
    let ended = ring.world.run_until(PATIENCE, || {
        for sight in &mut sights {
            let now = Sight::of(&changing, sight.machine);
            steps.extend(now.news(sight).map(|what| Step { events, what }));
            *sight = now;
        }
        events += 1;
        if done_at.is_none() && changing.is_done() {
            done_at = Some(ring.world.elapsed());
        }
        done_at.is_some_and(|at| ring.world.elapsed() >= at + AFTERWARDS)
    });
    assert!(ended, "seed {seed}: {change:?} comes to its end when nobody dies");
    steps.push(Step { events, what: "the end".to_owned() });
    steps
}

/// One change, and the death of a machine's node after so many events.
fn survives(change: Change, victim: usize, events: u64, seed: u64, what: &str) {
    let dice = dice(seed, events);
    let mut changing = Changing::begin(change, victim, seed);
    let mut passed = 0;
    changing.ring.world.run_until(PATIENCE, || {
        passed += 1;
        passed > events
    });
    match dice.chance(50) {
        true => changing.ring.power_cut(victim),
        false => changing.ring.kill(victim),
    }
    // short enough that nobody has seen the death, or long enough that everybody has
    let absence = if dice.chance(50) { dice.below(2_000) } else { 20_000 + dice.below(40_000) };
    changing.ring.world.run_until(Duration::from_millis(absence), || false);
    let actor = change.actor();
    // a node that had left before it died is not there again
    let has_left = match changing.ring.try_open(victim) {
        Err(why) => why.contains("was decommissioned and will not rejoin the ring"),
        Ok(node) => {
            drop(node);
            changing.ring.kill(victim);
            false
        }
    };
    if has_left {
        assert_eq!((change, victim), (Decommission, actor), "{what}");
        // whoever died before others could hear of it is removed by the operator
        let host_id = changing.host_id_of(actor);
        if !changing.ring.world.run_until(Duration::from_secs(40), || changing.is_agreed()) {
            let host_id = host_id.unwrap_or_else(|| panic!("{what}: the others know who is leaving"));
            beside(&changing.ring, 0, move |node| async move { drop(removal::remove(&node, &host_id).await) });
        }
    } else {
        // a new node that stood in the ring goes on by itself
        changing.ring.spawn(victim);
        let mut attempts = 0;
        while !changing.ring.world.run_until(Duration::from_secs(40), || changing.is_done()) {
            attempts += 1;
            assert!(attempts < ATTEMPTS_MAX, "{what}: the change does not come to its end");
            changing.ask_again();
        }
    }
    if change == Decommission && !has_left {
        changing.ring.kill(actor);
    }
    let agreed = changing.ring.world.run_until(PATIENCE, || changing.is_agreed());
    let of = |machine: &usize| changing.ring.node(*machine).ring().endpoints().to_vec();
    assert!(agreed, "{what}: {:#?}", change.members().iter().map(of).collect::<Vec<_>>());
    changing.is_quiet.store(true, Ordering::Relaxed);
    changing.ring.world.run_until(Duration::from_secs(30), || false);
    changing.check(what);
    write(&changing.ring, change.members()[0], 99, Consistency::Quorum);
}

impl Changing {
    /// The host id of the node of a machine as the first member knows it.
    fn host_id_of(&self, machine: usize) -> Option<String> {
        let snapshot = self.ring.node(0).ring();
        let address = self.ring.address(machine);
        let known = snapshot.endpoints().iter().find(|endpoint| endpoint.address == address);
        known.map(|endpoint| types::literal::print_uuid(&endpoint.host_id))
    }
}

/// The numbers that the test draws, apart from those of the machines.
fn dice(seed: u64, events: u64) -> SimRandom {
    World::new(seed.rotate_left(32) ^ events, 1).dice()
}

/// Seeds of the long form.
fn seeds() -> Option<std::ops::Range<u64>> {
    let text = std::env::var("HELENUS_SEEDS").ok()?;
    let (first, end) = text.split_once("..").expect("HELENUS_SEEDS is A..B");
    Some(first.parse().expect("a number")..end.parse().expect("a number"))
}

/// The death of one machine in one step, or in each of them.
fn deaths(change: Change, victim: usize, seed: u64, is_long: bool) {
    let steps = rehearse(change, victim, seed);
    let dice = dice(seed, u64::MAX);
    let drawn = dice.below(steps.len() as u64 - 1) as usize;
    for (number, pair) in steps.windows(2).enumerate().filter(|(number, _)| is_long || *number == drawn) {
        let [step, next] = pair else { unreachable!("windows of two") };
        let between = next.events - step.events;
        let events = if dice.chance(50) || between == 0 { step.events } else { step.events + dice.below(between) };
        let what = format!(
            "seed {seed}: {change:?}, machine {victim} dies at event {events}, in step {number} of {} ({})",
            steps.len() - 1,
            step.what
        );
        eprintln!("{what}");
        survives(change, victim, events, seed, &what);
    }
}

#[test]
fn a_death_at_each_step_of_each_change() {
    let long = seeds();
    let chosen = std::env::var("HELENUS_CHANGES").ok();
    let is_chosen = |change: Change| {
        let is_named = |text: &String| text.split(',').any(|name| name == format!("{change:?}"));
        chosen.as_ref().is_none_or(is_named)
    };
    for (number, change) in CHANGES.into_iter().enumerate().filter(|(_, change)| is_chosen(*change)) {
        let both = [change.actor(), change.peer()];
        match &long {
            None => deaths(change, both[number % 2], EVERYDAY_SEED + number as u64, false),
            Some(seeds) => seeds.clone().for_each(|seed| both.iter().for_each(|one| deaths(change, *one, seed, true))),
        }
    }
}
