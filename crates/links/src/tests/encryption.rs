//! Links with TLS: who gets in, who does not, and what is said of it.

use super::*;

const AUTHORITY: &str = include_str!("../../testdata/tls/authority.pem");
const NODE: &str = include_str!("../../testdata/tls/node.pem");
const STRANGER: &str = include_str!("../../testdata/tls/stranger.pem");
const EXPIRED: &str = include_str!("../../testdata/tls/expired.pem");

/// A receiver that takes every peer to stand at one distance.
struct At(Distance, Gather);

impl Receiver for At {
    fn distance(&self, _peer: SocketAddr) -> Distance {
        self.0
    }

    fn received(&self, from: &Peer, link: LinkType, message: Envelope) -> Result<(), InternodeError> {
        self.1.received(from, link, message)
    }
}

#[derive(Clone, Copy)]
struct Asked {
    scope: Scope,
    identity: &'static str,
    optional: bool,
    mutual: bool,
}

const ALL: Asked = Asked { scope: Scope::All, identity: NODE, optional: false, mutual: false };

fn begin(world: &World, machine: usize, asked: Option<Asked>, distance: Distance) -> (Links, Got) {
    let env = world.env(machine);
    let encryption = asked.map(|asked| {
        let options = TlsOptions {
            identity: asked.identity.to_owned(),
            trusted: Some(AUTHORITY.to_owned()),
            require_client_auth: asked.mutual,
            optional: asked.optional,
            ..TlsOptions::default()
        };
        Encryption::open(&env, asked.scope, &options, &options).unwrap()
    });
    let got = Got::default();
    let options = LinkOptions { encryption, ..plain(world, machine) };
    let receiver = Arc::new(At(distance, Gather(got.clone())));
    (Links::start(&env, options, receiver).unwrap(), got)
}

/// Whether a message of an opener arrives at an acceptor within some attempts, by their options.
fn arrives(opener: Option<Asked>, acceptor: Option<Asked>, distance: Distance) -> bool {
    let world = World::new(21, 2);
    let (links, _) = begin(&world, 0, opener, distance);
    let (_others, got) = begin(&world, 1, acceptor, distance);
    for (id, verb, size) in [(1, Verb::MutationReq, 100), (2, Verb::MutationReq, 200_000), (3, Verb::EchoReq, 0)] {
        links.send(address(&world, 1), message(&world, 0, id, verb, size, 20_000)).unwrap();
    }
    world.run_for(Duration::from_secs(5));
    let count = got.lock().unwrap().len();
    assert!(count == 0 || count == 3, "all three links behave alike: {count}");
    count == 3
}

#[test]
fn an_encrypted_link_carries_messages_of_every_size() {
    let mutual = Asked { mutual: true, ..ALL };
    for (opener, acceptor) in [(ALL, ALL), (mutual, mutual), (ALL, mutual)] {
        assert!(arrives(Some(opener), Some(acceptor), Distance::OtherDataCenter));
    }
}

#[test]
fn a_wrong_certificate_or_none_gets_nothing_through() {
    let stranger = Asked { identity: STRANGER, ..ALL };
    let expired = Asked { identity: EXPIRED, ..ALL };
    let mutual = Asked { mutual: true, ..ALL };
    for (opener, acceptor) in [
        // the opener looks at the acceptor's certificate
        (Some(ALL), Some(stranger)),
        (Some(ALL), Some(expired)),
        // the acceptor looks at the opener's where it asks for one
        (Some(stranger), Some(mutual)),
        (Some(expired), Some(mutual)),
        // one side encrypts and the other does not
        (Some(ALL), None),
        (None, Some(ALL)),
    ] {
        assert!(!arrives(opener, acceptor, Distance::OtherDataCenter));
    }
    assert!(arrives(Some(stranger), Some(ALL), Distance::OtherDataCenter), "nobody asked for its certificate");
}

#[test]
fn an_optional_encryption_speaks_with_both_kinds() {
    let optional = Asked { optional: true, ..ALL };
    for (opener, acceptor) in
        [(None, Some(optional)), (Some(ALL), Some(optional)), (Some(optional), Some(ALL)), (Some(optional), None)]
    {
        assert!(arrives(opener, acceptor, Distance::OtherDataCenter));
    }
    // a node that encrypts nothing itself, and takes what is encrypted
    let ready = Asked { scope: Scope::None, ..optional };
    assert!(arrives(Some(ALL), Some(ready), Distance::OtherDataCenter));
    assert!(!arrives(Some(ready), Some(ALL), Distance::OtherDataCenter));
}

#[test]
fn data_centers_and_racks_decide_where_they_are_asked_to() {
    let of = |scope| Some(Asked { scope, ..ALL });
    let (dc, rack) = (of(Scope::BetweenDataCenters), of(Scope::BetweenRacks));
    for distance in [Distance::SameRack, Distance::OtherRack, Distance::OtherDataCenter] {
        assert!(arrives(dc, dc, distance) && arrives(rack, rack, distance));
        // a peer that never encrypts is let in where no encryption is asked
        assert_eq!(arrives(None, dc, distance), distance != Distance::OtherDataCenter);
        assert_eq!(arrives(None, rack, distance), distance == Distance::SameRack);
    }
}

#[test]
fn bytes_of_an_encrypted_link_are_no_messages_in_plain() {
    let world = World::new(22, 2);
    let env = world.env(0);
    let options =
        TlsOptions { identity: NODE.to_owned(), trusted: Some(AUTHORITY.to_owned()), ..TlsOptions::default() };
    let encryption = Encryption::open(&env, Scope::All, &options, &options).unwrap();
    let (links, _) = {
        let options = LinkOptions { encryption: Some(encryption), ..plain(&world, 0) };
        (Links::start(&env, options, Arc::new(Gather(Got::default()))).unwrap(), ())
    };
    let peer = world.env(1);
    links.send(address(&world, 1), message(&world, 0, 1, Verb::EchoReq, 0, 20_000)).unwrap();
    let first = world.block_on(async {
        let mut listener = peer.network.bind(address(&world, 1), false).unwrap();
        let (mut stream, _) = env::accept(&mut *listener).await.unwrap();
        let mut first = [0; 3];
        stream.read_exact(&mut first).await.unwrap();
        first
    });
    assert_eq!(first[..2], [0x16, 3], "a TLS record with a handshake");
}

/// A link for a stream begins with TLS where the scope says so, and with the handshake elsewhere.
#[test]
fn links_for_streams_are_encrypted_by_the_distance_of_the_peer() {
    use Distance::{OtherDataCenter, OtherRack, SameRack};
    for (scope, encrypted) in [
        (Scope::None, vec![]),
        (Scope::BetweenDataCenters, vec![OtherDataCenter]),
        (Scope::BetweenRacks, vec![OtherRack, OtherDataCenter]),
        (Scope::All, vec![SameRack, OtherRack, OtherDataCenter]),
    ] {
        for distance in [SameRack, OtherRack, OtherDataCenter] {
            let world = World::new(24, 2);
            let env = world.env(0);
            let options =
                TlsOptions { identity: NODE.to_owned(), trusted: Some(AUTHORITY.to_owned()), ..TlsOptions::default() };
            let encryption = Encryption::open(&env, scope, &options, &options).unwrap();
            let options = LinkOptions { encryption: Some(encryption), ..plain(&world, 0) };
            let receiver: Arc<dyn Receiver> = Arc::new(At(distance, Gather(Got::default())));
            let (opener, to) = (crate::StreamOpener::new(&env, &options, &receiver), address(&world, 1));
            let opening = move || -> env::LocalFuture { Box::pin(async move { drop(opener.open(to).await) }) };
            drop(env.tasks.spawn_local_worker("open", Box::new(opening)));
            let peer = world.env(1);
            let first = world.block_on(async {
                let mut listener = peer.network.bind(to, false).unwrap();
                let (mut stream, _) = env::accept(&mut *listener).await.unwrap();
                let mut first = [0; 4];
                stream.read_exact(&mut first).await.unwrap();
                first
            });
            let is_tls = first[..2] == [0x16, 3];
            assert!(is_tls || first == [0xCA, 0x55, 0x2D, 0xFA], "{first:?}");
            assert_eq!(is_tls, encrypted.contains(&distance), "{scope:?} {distance:?}");
        }
    }
}

/// The opener compresses the links that it is asked to compress: it says so in the handshake.
#[test]
fn links_are_compressed_by_the_distance_of_the_peer() {
    for (compression, distance, framing) in [
        (Scope::None, Distance::OtherDataCenter, Framing::Crc),
        (Scope::BetweenDataCenters, Distance::OtherRack, Framing::Crc),
        (Scope::BetweenDataCenters, Distance::OtherDataCenter, Framing::Lz4),
        (Scope::All, Distance::SameRack, Framing::Lz4),
    ] {
        let world = World::new(23, 2);
        let options = LinkOptions { compression, ..plain(&world, 0) };
        let links = Links::start(&world.env(0), options, Arc::new(At(distance, Gather(Got::default())))).unwrap();
        links.send(address(&world, 1), message(&world, 0, 1, Verb::EchoReq, 0, 20_000)).unwrap();
        let peer = world.env(1);
        let initiate = world.block_on(async {
            let mut listener = peer.network.bind(address(&world, 1), false).unwrap();
            let (mut stream, _) = env::accept(&mut *listener).await.unwrap();
            let mut bytes = [0; 19];
            stream.read_exact(&mut bytes).await.unwrap();
            internode::Initiate::decode(&bytes).unwrap().unwrap().0
        });
        assert_eq!(initiate.framing, framing, "{compression:?} {distance:?}");
    }
}
