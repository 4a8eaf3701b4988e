//! The way to a node: links in the version that the node speaks, and the pace that all share.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::{Env, Stream};
use internode::MessagingVersion;
use links::StreamOpener;
use sending::Pace;
use streaming::PlanId;

use crate::options::Throttle;
use crate::watch::Watch;

/// A node that takes no byte for so long is given up (`internode_streaming_tcp_user_timeout`).
pub(crate) const TAKING_MAX: Duration = Duration::from_secs(300);

/// The state that all sessions of a load share.
pub(crate) struct Shared {
    pub plan: PlanId,
    pub paces: RefCell<Paces>,
    pub watch: Arc<dyn Watch>,
    /// Openers of links, one for each version of streams: nodes speak their current one alone.
    pub openers: Vec<(MessagingVersion, StreamOpener)>,
}

/// The way to one node.
pub(crate) struct PeerConnector {
    pub env: Env,
    pub shared: Rc<Shared>,
    pub peer: SocketAddr,
    pub is_far: bool,
    /// The opener that the node understood last, by its place.
    pub understood: Cell<usize>,
}

impl PeerConnector {
    /// Opens a link, in the version that the node speaks.
    pub async fn open(&self) -> Result<Box<dyn Stream>, String> {
        let openers = &self.shared.openers;
        let first = self.understood.get();
        let mut refusal = String::new();
        for place in [first, 1 - first].into_iter().filter(|place| *place < openers.len()) {
            let (version, opener) = &openers[place];
            match opener.open(self.peer).await {
                Ok(link) => {
                    self.understood.set(place);
                    return Ok(link);
                }
                // the node names another version, and closes
                Err(error) if is_of_version(&error) => refusal = format!("version {}: {error}", version.number()),
                Err(error) => return Err(format!("no link can be opened: {error}")),
            }
        }
        Err(format!("no link can be opened: {refusal}"))
    }
}

fn is_of_version(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionReset, InvalidData, UnexpectedEof};
    matches!(error.kind(), InvalidData | UnexpectedEof | ConnectionReset)
}

/// The address by which a node is to know this program. Nobody ever connects to it.
pub(crate) fn own_address(peer: SocketAddr) -> SocketAddr {
    let ip = match peer.ip().is_loopback() {
        true => IpAddr::V4(Ipv4Addr::LOCALHOST),
        false => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    };
    SocketAddr::new(ip, peer.port())
}

/// When the next bytes may go, by kind, to all peers together.
pub(crate) struct Paces {
    rates: Throttle,
    parts: Pace,
    parts_inter_dc: Pace,
    entire: Pace,
    entire_inter_dc: Pace,
}

impl Paces {
    pub fn new(env: &Env, rates: Throttle) -> Self {
        let pace = || Pace::new(env);
        Self { rates, parts: pace(), parts_inter_dc: pace(), entire: pace(), entire_inter_dc: pace() }
    }

    /// Takes bytes that are to be sent; gives how long to wait before.
    pub fn take(&mut self, env: &Env, bytes: usize, is_entire: bool, is_far: bool) -> Duration {
        let Self { rates, parts, parts_inter_dc, entire, entire_inter_dc } = self;
        let (near, near_rate, far, far_rate) = match is_entire {
            false => (parts, rates.parts, parts_inter_dc, rates.parts_inter_dc),
            true => (entire, rates.entire, entire_inter_dc, rates.entire_inter_dc),
        };
        let wait = near.take(env.now(), bytes, near_rate);
        if is_far { wait.max(far.take(env.now(), bytes, far_rate)) } else { wait }
    }
}
