//! Files of certificates change while connections come and go, on simulated machines.

use std::net::SocketAddr;
use std::path::Path;

use cluster::Timeouts;
use config::{ClientEncryption, InternodeEncryption, Pem, ServerEncryption};
use env::Stream;
use env::sim::{DATA, World};
use links::Encryption;
use storage::EngineOptions;
use tls::{Connector, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::{client_encryption, machine, server_encryption};

const AUTHORITY: &str = include_str!("../../../links/testdata/tls/authority.pem");
/// Signed by the authority.
const NODE: &str = include_str!("../../../links/testdata/tls/node.pem");
/// Signed by somebody else.
const STRANGER: &str = include_str!("../../../links/testdata/tls/stranger.pem");
const KEY: &str = "client_encryption_options";

type Ends = (Box<dyn Stream>, Box<dyn Stream>);

/// A simulated machine with a file of keys and certificates.
struct Machine {
    world: World,
    env: Env,
    /// Of a second machine, from which connections come.
    peer: Env,
    address: SocketAddr,
}

impl Machine {
    fn new() -> Self {
        let world = World::new(5, 2);
        let (env, peer) = (world.env(0), world.env(1));
        let address = SocketAddr::new(world.address(0), 9042);
        Self { world, env, peer, address }
    }

    fn path(name: &str) -> String {
        Path::new(DATA).join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        self.env.disk.replace_file(Path::new(&Self::path(name)), text.as_bytes()).expect("a sound disk");
    }

    /// A new connection, as both ends see it; None: the handshake failed at one of them.
    fn connect(&self, accept: &Tls, connect: &Connector) -> Option<Ends> {
        self.world.block_on(async {
            let mut listener = self.env.network.bind(self.address, false).expect("a free port");
            let accepted = async {
                let (stream, _) = env::accept(&mut *listener).await.expect("a connection");
                accept.accept(stream).await.ok()
            };
            let connected = async {
                let stream = self.peer.network.connect(self.address).await.expect("somebody listens");
                connect.connect(self.address.ip(), stream).await.ok()
            };
            let (accepted, connected) = tokio::join!(accepted, connected);
            let mut ends = (accepted?, connected?);
            says(&mut ends.0, &mut ends.1, b"!").await.then_some(ends)
        })
    }

    fn speaks(&self, ends: &mut Ends) -> bool {
        self.world.block_on(says(&mut ends.0, &mut ends.1, b"x"))
    }
}

async fn says(from: &mut Box<dyn Stream>, to: &mut Box<dyn Stream>, byte: &[u8; 1]) -> bool {
    let mut come = [0];
    from.write_all(byte).await.is_ok()
        && from.flush().await.is_ok()
        && to.read_exact(&mut come).await.is_ok()
        && come == *byte
}

fn of_clients() -> ClientEncryption {
    ClientEncryption {
        optional: false,
        identity: Pem::File(Machine::path("node.pem")),
        trusted: None,
        require_client_auth: false,
        protocols: Vec::new(),
        cipher_suites: Vec::new(),
    }
}

/// A client that trusts the authority alone.
fn client() -> Connector {
    let trusted = Some(AUTHORITY.to_owned());
    Connector::open(&TlsOptions { trusted, ..TlsOptions::default() }).expect("a certificate")
}

#[test]
fn new_connections_use_files_that_have_changed() {
    let machine = Machine::new();
    machine.write("node.pem", NODE);
    let services =
        machine::start(&machine.env, EngineOptions::with_small_budgets(Path::new(DATA)), 1, Timeouts::default());
    let (tls, watched) = client_encryption::open(&machine.env, KEY, &of_clients()).expect("good files");
    assert!(follow(&services.certificates, &services.node.env).is_none(), "there is nothing to look at yet");
    services.certificates.watch(watched);
    let _follow = follow(&services.certificates, &services.node.env).expect("a task");
    let mut first = machine.connect(&tls, &client()).expect("the authority has signed");
    machine.write("node.pem", STRANGER);
    assert!(machine.connect(&tls, &client()).is_some(), "nobody has looked yet");
    machine.world.run_for(PERIOD + Duration::from_secs(1));
    assert!(machine.connect(&tls, &client()).is_none(), "a stranger has signed");
    assert!(machine.speaks(&mut first), "a connection goes on as it began");
    machine.write("node.pem", NODE);
    assert_eq!(services.certificates.reload(&machine.env, true), [""; 0]);
    assert!(machine.connect(&tls, &client()).is_some());
}

#[test]
fn files_that_cannot_be_used_change_nothing_and_are_told_of_once() {
    let machine = Machine::new();
    machine.write("node.pem", NODE);
    let (tls, watched) = client_encryption::open(&machine.env, KEY, &of_clients()).expect("good files");
    let certificates = Certificates::default();
    certificates.watch(watched);
    let look = |at_once| certificates.reload(&machine.env, at_once);
    assert_eq!(look(false), [""; 0]);
    let key = NODE.split("-----BEGIN CERTIFICATE-----").next().expect("the key stands first");
    let certificate = STRANGER.split("-----END PRIVATE KEY-----").nth(1).expect("the certificate stands behind");
    for (broken, why) in [
        ("no PEM at all", "no certificate stands beside the private key"),
        // a writer was interrupted between two files, or took the wrong one
        (&format!("{key}{certificate}"), "KeyMismatch"),
    ] {
        machine.write("node.pem", broken);
        let told = look(false);
        assert!(told.len() == 1 && told[0].starts_with(KEY) && told[0].contains(why), "{told:?}");
        assert_eq!(look(false), [""; 0], "it is told of once");
        assert_eq!(look(true).len(), 1, "who asks is told");
        assert!(machine.connect(&tls, &client()).is_some(), "{why}: the keys before are used");
    }
    machine.env.disk.remove_file(Path::new(&Machine::path("node.pem"))).expect("it was there");
    assert_eq!(look(false).len(), 1);
    assert!(machine.connect(&tls, &client()).is_some());
}

/// Of links both sides change: what this node shows and whom it trusts, when it opens a link and
/// when a peer does.
#[test]
fn links_between_nodes_use_files_that_have_changed() {
    let machine = Machine::new();
    for (name, text) in [("in.pem", NODE), ("out.pem", NODE), ("trusted.pem", AUTHORITY)] {
        machine.write(name, text);
    }
    let file = |name| Pem::File(Machine::path(name));
    let options = ServerEncryption {
        internode: InternodeEncryption::All,
        optional: false,
        identity: file("in.pem"),
        outbound_identity: Some(file("out.pem")),
        trusted: file("trusted.pem"),
        require_client_auth: true,
        protocols: Vec::new(),
        cipher_suites: Vec::new(),
    };
    let (links, watched) = server_encryption::open(&machine.env, &options).expect("good files");
    let certificates = Certificates::default();
    certificates.watch(watched);
    // a peer whose files stay as they are
    let (peer, _) = server_encryption::open(&machine.env, &options).expect("good files");
    let opens = |from: &Encryption, to: &Encryption| machine.connect(&to.accept, &from.connect).is_some();
    let both = || (opens(&links, &peer), opens(&peer, &links));
    assert_eq!(both(), (true, true));
    let change = |name, text| {
        machine.write(name, text);
        certificates.reload(&machine.env, false)
    };
    assert_eq!(change("out.pem", STRANGER), [""; 0]);
    assert_eq!(both(), (false, true));
    assert_eq!(change("in.pem", STRANGER), [""; 0]);
    assert_eq!(both(), (false, false));
    assert!(!change("trusted.pem", "nobody").is_empty());
    machine.write("in.pem", NODE);
    assert_eq!(change("out.pem", NODE).len(), 1, "one file of a key is broken, so none of the key is used");
    assert_eq!(both(), (false, false));
    assert_eq!(change("trusted.pem", AUTHORITY), [""; 0]);
    assert_eq!(both(), (true, true));
}
