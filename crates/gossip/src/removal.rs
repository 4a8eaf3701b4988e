//! The removal of an endpoint that is down, told by another node in its place (`nodetool
//! removenode`): first `removing`, while others fetch its data, then `removed`.
//!
//! Each is a generation above that of the endpoint, so that all others take it. Agrees with
//! `org.apache.cassandra.gms.Gossiper.{advertiseRemoving,advertiseTokenRemoved}`.

use std::net::SocketAddr;

use internode::payload::gossip::{ApplicationState, EndpointState, VersionedValue};

use crate::local::put;
use crate::machine::{Gossip, Now};
use crate::options::FORGET;

impl Gossip {
    /// Tells of an endpoint that it is being removed. `host_id`: the endpoint's; `coordinator`:
    /// the host id of the node that waits until others have the data. Err: the endpoint is not
    /// known, or has been started anew since `generation`.
    pub fn advertise_removing(
        &mut self,
        endpoint: SocketAddr,
        host_id: &str,
        coordinator: &str,
        generation: i32,
        now: Now,
    ) -> Result<(), String> {
        let known = self.peers().get(&endpoint).map(|peer| peer.state.generation);
        if known != Some(generation) {
            return Err(format!("Endpoint {endpoint} generation changed while trying to remove it"));
        }
        let coordinator = format!("REMOVER,{coordinator}");
        self.advertise_status_of(endpoint, &format!("removing,{host_id}"), Some(coordinator), now);
        Ok(())
    }

    /// Tells of an endpoint that it is removed: all others forget it.
    pub fn advertise_removed(&mut self, endpoint: SocketAddr, host_id: &str, now: Now) {
        let expiry = now.wall_millis + i64::try_from(FORGET.as_millis()).unwrap_or(i64::MAX);
        self.advertise_status_of(endpoint, &format!("removed,{host_id},{expiry}"), None, now);
    }

    /// Gives an endpoint a status in a new generation, in the endpoint's place.
    fn advertise_status_of(&mut self, endpoint: SocketAddr, status: &str, coordinator: Option<String>, now: Now) {
        let Some(state) = self.peers().get(&endpoint).map(|peer| peer.state.clone()) else { return };
        let mut state = EndpointState { generation: state.generation.saturating_add(1), ..state };
        let version = state.max_version().saturating_add(1);
        let mut say = |of, value: &str| put(&mut state, of, VersionedValue { value: value.to_owned(), version });
        say(ApplicationState::StatusWithPort, status);
        say(ApplicationState::Status, status);
        if let Some(coordinator) = coordinator {
            say(ApplicationState::RemovalCoordinator, &coordinator);
        }
        state.heartbeat = version;
        self.apply(vec![(endpoint, state)], now);
    }
}
