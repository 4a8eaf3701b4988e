//! Troubles of the simulated network: links, partitions, resets, hung connections, the ends of
//! machines.

use std::net::SocketAddr;

use super::socket::Socket;
use super::{Event, Link, SimNetwork, State, lock};
use crate::Random;

impl SimNetwork {
    /// Sets the link of one way from a machine to another.
    pub fn set_link(&self, from: usize, to: usize, link: Link) {
        lock(&self.state).links.insert((from, to), link);
    }

    /// Sets the properties of links that have none of their own, also after [`Self::heal`].
    pub fn set_usual_link(&self, link: Link) {
        lock(&self.state).usual = link;
    }

    /// Sets the link of one way from a machine to another; it stays after [`Self::heal`].
    pub fn set_lasting_link(&self, from: usize, to: usize, link: Link) {
        lock(&self.state).lasting.insert((from, to), link);
    }

    /// Blocks everything from `from` to `to`; the other way stays open.
    pub fn block(&self, from: usize, to: usize) {
        self.trace.record("block", &[from as u64, to as u64]);
        lock(&self.state).blocked.insert((from, to));
    }

    /// Ends [`Self::block`].
    pub fn unblock(&self, from: usize, to: usize) {
        self.trace.record("unblock", &[from as u64, to as u64]);
        lock(&self.state).blocked.remove(&(from, to));
    }

    /// Cuts a group of machines off from all others, both ways.
    pub fn partition(&self, group: &[usize]) {
        let machines = lock(&self.state).hosts.len();
        for inside in group {
            for outside in (0..machines).filter(|machine| !group.contains(machine)) {
                self.block(*inside, outside);
                self.block(outside, *inside);
            }
        }
    }

    /// Opens all links, with their usual properties. Connections that hang go on hanging.
    pub fn heal(&self) {
        self.trace.record("heal", &[]);
        let mut state = lock(&self.state);
        state.blocked.clear();
        state.links.clear();
    }

    /// Number of a machine's connections to another one.
    pub fn connections(&self, machine: usize, other: usize) -> usize {
        lock(&self.state).between(machine, other).len()
    }

    /// Resets a connection between two machines, chosen by chance; both sides are told. False:
    /// there is none.
    pub fn reset_one(&self, machine: usize, other: usize) -> bool {
        let now = self.timeline.nanos();
        self.with(|state| {
            let Some(id) = self.choose(state, machine, other) else { return false };
            let peer = state.sockets.get(&id).expect("chosen among them").peer;
            state.schedule(now, Event::Reset { socket: id });
            state.schedule(now, Event::Reset { socket: peer });
            true
        })
    }

    /// Lets a connection between two machines hang, chosen by chance: nothing moves on it, and
    /// neither side is told, except a side that has a user timeout. False: there is none.
    pub fn hang_one(&self, machine: usize, other: usize) -> bool {
        self.with(|state| {
            let Some(id) = self.choose(state, machine, other) else { return false };
            self.trace.record("hang", &[id]);
            let peer = state.sockets.get(&id).expect("chosen among them").peer;
            for socket in [id, peer] {
                if let Some(socket) = state.sockets.get_mut(&socket) {
                    socket.is_hung = true;
                }
            }
            true
        })
    }

    fn choose(&self, state: &State, machine: usize, other: usize) -> Option<u64> {
        let ids = state.between(machine, other);
        if ids.is_empty() {
            return None;
        }
        let choice = usize::try_from(self.random.below(ids.len() as u64)).expect("below a usize");
        ids.get(choice).copied()
    }

    /// Ends a machine's process. Its kernel closes its sockets, unless the machine has lost its
    /// power.
    pub(in crate::sim) fn end_life(&self, machine: usize, power_cut: bool) {
        let now = self.timeline.nanos();
        self.with(|state| {
            let host = state.hosts.get_mut(machine).expect("a machine of this world");
            host.life += 1;
            host.is_on = !power_cut;
            let dials: Vec<u64> =
                state.dials.iter().filter(|(_, dial)| dial.machine == machine).map(|(id, _)| *id).collect();
            for dial in dials {
                state.dials.remove(&dial);
            }
            let of_machine = |socket: &Socket| socket.machine == machine;
            let sockets: Vec<u64> = state.sockets.iter().filter(|(_, s)| of_machine(s)).map(|(id, _)| *id).collect();
            for socket in sockets {
                match power_cut {
                    true => self.forget(state, socket),
                    false => self.drop_socket(state, now, socket),
                }
            }
            let listeners: Vec<(usize, SocketAddr, u64)> =
                state.listeners.keys().filter(|(host, ..)| *host == machine).copied().collect();
            for listener in listeners {
                self.end_listener(state, now, listener);
            }
        });
    }

    fn forget(&self, state: &mut State, id: u64) {
        if let Some(socket) = state.sockets.remove(&id) {
            state.to_drop.extend(socket.reader.into_iter().chain(socket.writer));
        }
    }

    /// Called when a machine has its power again.
    pub(in crate::sim) fn power_on(&self, machine: usize) {
        lock(&self.state).hosts.get_mut(machine).expect("a machine of this world").is_on = true;
    }
}

impl State {
    /// A machine's sockets of connections to another one that are not over.
    fn between(&self, machine: usize, other: usize) -> Vec<u64> {
        let is_open = |socket: &Socket| {
            socket.machine == machine && socket.peer_machine == other && !socket.is_hung && socket.failure.is_none()
        };
        self.sockets.iter().filter(|(_, socket)| is_open(socket)).map(|(id, _)| *id).collect()
    }
}
