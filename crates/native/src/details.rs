//! The facts about a client's connection that `system_views.clients` and `nodetool clientstats`
//! show; and the protocol's types as `transport` asks for them.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use protocol::ProtocolVersion;
use protocol::response::Event;
use transport::Protocol;

/// The native protocol.
#[derive(Clone, Copy, Debug)]
pub struct Native;

impl Protocol for Native {
    type Event = Event;
    type Details = Client;

    fn kind(event: &Event) -> u8 {
        event.event_type() as u8
    }
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// Accepted; OPTIONS and STARTUP are expected.
    Established = 0,
    /// AUTH_RESPONSE is expected.
    Authenticating = 1,
    /// Requests are served.
    Ready = 2,
}

impl Stage {
    /// The name that `system_views.clients` shows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Established => "ESTABLISHED",
            Self::Authenticating => "AUTHENTICATING",
            Self::Ready => "READY",
        }
    }
}

/// The facts that STARTUP, the login and USE tell of a connection.
#[derive(Clone, Debug, Default)]
pub struct ClientDetails {
    /// The version of STARTUP; None: it was not read yet.
    pub version: Option<ProtocolVersion>,
    /// Options of STARTUP, in its order: the first of them, if there are many or long ones.
    pub options: Vec<(String, String)>,
    /// `DRIVER_NAME`
    pub driver_name: Option<Arc<str>>,
    /// `DRIVER_VERSION`
    pub driver_version: Option<Arc<str>>,
    /// The connection's keyspace; None: none was chosen.
    pub keyspace: Option<Arc<str>>,
    /// The role that the client logged in with; None: it has not logged in.
    pub user: Option<Arc<str>>,
}

/// A client's connection. Its details seldom change, so they stand behind a mutex.
#[derive(Debug, Default)]
pub struct Client {
    /// A [`Stage`]. Only grows.
    stage: AtomicU8,
    details: Mutex<ClientDetails>,
}

impl Client {
    /// How far the connection has come.
    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            0 => Stage::Established,
            1 => Stage::Authenticating,
            _ => Stage::Ready,
        }
    }

    pub(crate) fn set_stage(&self, stage: Stage) {
        let before = self.stage.swap(stage as u8, Ordering::Relaxed);
        assert!(before < stage as u8, "a connection's stages follow each other");
    }

    /// A copy of the details.
    pub fn details(&self) -> ClientDetails {
        self.details.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the details.
    pub fn update(&self, change: impl FnOnce(&mut ClientDetails)) {
        change(&mut self.details.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Notes the keyspace after USE was executed.
    pub fn set_keyspace(&self, keyspace: &str) {
        self.update(|details| details.keyspace = Some(Arc::from(keyspace)));
    }
}
