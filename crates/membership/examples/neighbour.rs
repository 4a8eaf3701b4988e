//! Stands as a member in a ring of real Cassandra nodes, and prints what it sees: `neighbour LOCAL
//! SEED CLUSTER SECONDS [12|13]`.
//!
//! The node holds no data: for a scratch ring alone. `tests/oracle/gossip` runs it.

use std::sync::Arc;
use std::time::Duration;

use gossip::{Event, Gossip, Options};
use internode::{Envelope, LinkType, MessagingVersion};
use links::{LinkOptions, Peer, Scope};
use membership::{JoinOptions, LocalApplicationStates, Membership, MembershipHandler, Messenger};

struct Print;

impl MembershipHandler for Print {
    fn ring_changed(&self, _gossip: &Gossip, events: &[Event]) {
        events.iter().for_each(|event| println!("{event:?}"));
    }

    fn schema_version(&self) -> [u8; 16] {
        [0; 16]
    }

    fn requested(&self, _via: &Messenger, from: &Peer, _link: LinkType, message: Envelope) -> bool {
        println!("{} asks {}", from.address, message.header.verb.name());
        false
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, local, seed, cluster, seconds, rest @ ..] = &arguments[..] else {
        panic!("neighbour LOCAL SEED CLUSTER SECONDS [12|13]")
    };
    let local: std::net::SocketAddr = local.parse().expect("an address with a port");
    let version = match rest.first().map(String::as_str) {
        Some("13") => MessagingVersion::V13,
        _ => MessagingVersion::V12,
    };
    let env = env::real::env();
    // the same node at every start: Cassandra keeps what it knows of an address
    let number = match local.ip() {
        std::net::IpAddr::V4(ip) => u32::from(ip),
        std::net::IpAddr::V6(_) => panic!("an IPv4 address"),
    };
    let options = JoinOptions {
        links: LinkOptions {
            listen: local,
            local,
            version,
            compression: Scope::None,
            encryption: None,
            settings: links::LinkSettings::default(),
        },
        gossip: Options::new(local, cluster, vec![seed.parse().expect("the seed's address with a port")]),
        generation: i32::try_from(env.clock.now_seconds()).expect("before 2038"),
        is_member: true,
        joining: None,
        replaces: None,
        prefers_local: false,
        local_states: LocalApplicationStates {
            host_id: format!("00000000-0000-4000-8000-{number:012x}"),
            tokens: vec![i64::from(number)],
            data_center: "datacenter1".to_owned(),
            rack: "rack1".to_owned(),
            release_version: "5.0.8".to_owned(),
            native: std::net::SocketAddr::new(local.ip(), 9042),
            internal: None,
            schema: "59adb24e-f3cd-3e02-97f0-5b395827453f".to_owned(),
            version,
            sstable_versions: "big-nb".to_owned(),
        },
        remembered: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let membership = Membership::join(&env, options, Arc::new(Print)).await.expect("the ring takes this node");
        membership.set_ready(true);
        println!("joined");
        env.sleep(Duration::from_secs(seconds.parse().expect("seconds"))).await;
        membership.leave().await;
        println!("left");
    });
}
