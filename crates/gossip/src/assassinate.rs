//! The removal of an endpoint that does not come back, by gossip alone: its state becomes LEFT in a
//! generation of its own, which all others take (`Gossiper.assassinateEndpoint`).

use std::net::SocketAddr;
use std::time::Duration;

use internode::payload::gossip::tokens::tokens_of;
use internode::payload::gossip::{ApplicationState, EndpointState, VersionedValue};

use crate::local::put;
use crate::machine::{Gossip, Now};
use crate::options::FORGET;

/// The heartbeat of a state that is told in an endpoint's place; it is above those of an ordinary
/// start.
const HEARTBEAT: i32 = 9999;

/// Seconds by which the generation of an endpoint that is not known is set ahead.
const AHEAD: i64 = 60;

impl Gossip {
    /// Removes an endpoint from the ring. `seen`: generation and heartbeat of half a minute ago;
    /// None: it was not known. Err: it is alive, because one of them has changed.
    pub fn assassinate(
        &mut self,
        endpoint: SocketAddr,
        seen: Option<(i32, i32)>,
        now: Now,
    ) -> Result<(), &'static str> {
        let known = self.peers().get(&endpoint).map(|peer| peer.state.clone());
        let mut state = match (known, seen) {
            (Some(state), Some((generation, _))) if state.generation != generation => return Err("generation"),
            (Some(state), Some((_, heartbeat))) if state.heartbeat != heartbeat => return Err("heartbeat"),
            (Some(state), _) => {
                EndpointState { generation: state.generation.saturating_add(1), heartbeat: HEARTBEAT, ..state }
            }
            (None, _) => {
                let generation = i32::try_from(now.wall_millis / 1000 + AHEAD).unwrap_or(i32::MAX);
                EndpointState { generation, heartbeat: HEARTBEAT, values: Vec::new() }
            }
        };
        let tokens = state.value(ApplicationState::Tokens).and_then(|text| tokens_of(text).ok());
        let token = tokens.and_then(|tokens| tokens.first().copied()).unwrap_or_default();
        let expiry = now.wall_millis + i64::try_from(FORGET.as_millis()).unwrap_or(i64::MAX);
        let version = state.max_version().max(HEARTBEAT).saturating_add(1);
        for of in [ApplicationState::StatusWithPort, ApplicationState::Status] {
            put(&mut state, of, VersionedValue { value: format!("LEFT,{token},{expiry}"), version });
        }
        self.apply(vec![(endpoint, state)], now);
        Ok(())
    }

    /// The suspicion of the failure detector (phi) that an endpoint is down; None: the endpoint is
    /// not known. Above `phi_convict_threshold` it is convicted.
    pub fn phi(&self, endpoint: SocketAddr, now: Duration) -> Option<f64> {
        self.peers().get(&endpoint).map(|peer| peer.arrivals.phi(now))
    }
}
