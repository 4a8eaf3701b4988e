//! OPTIONS, STARTUP, authentication, versions, compression.

use native::{ServerOptions, Stage};
use tls::{Connector, Tls, TlsOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::*;
use crate::handler::{eventually, options, password, start};

#[test]
fn every_version_and_compression() {
    let (server, _) = start(options());
    for version in [3, 4, 5, 6] {
        for compression in [None, Some("lz4"), Some("snappy")] {
            if version >= 5 && compression == Some("snappy") {
                continue;
            }
            let mut client = Client::connect(server.address(), version);
            client.send(3, OPTIONS, &[]);
            let supported = client.receive();
            assert_eq!((supported.version, supported.opcode, supported.stream), (0x80 | version, SUPPORTED, 3));
            let started = match compression {
                Some(name) => client.startup(&[("COMPRESSION", name)]),
                None => client.startup(&[]),
            };
            assert_eq!((started.opcode, started.body.len()), (READY, 0));
            let rows = client.ask("rows 5000");
            assert_eq!(rows.flags & 1 == 1, version < 5 && compression.is_some());
            assert_eq!(rows.opcode, RESULT);
            let head = b"\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x02ks\0\x01t\0\x01c\0\x03\0\0\0\x01";
            assert_eq!(rows.body[..head.len()], head[..]);
            assert_eq!(rows.body.len(), head.len() + 5000);
            // a request large enough to be compressed, and too large for one segment
            let long = format!("void {}", "x".repeat(300_000));
            assert_eq!(client.ask(&long).body, [0, 0, 0, 1][..]);
            // an answer too large for one segment
            assert_eq!(client.ask("rows 1000000").body.len(), head.len() + 1_000_000);
        }
    }
    server.shutdown();
}

#[test]
fn supported_is_cassandras() {
    let (server, _) = start(options());
    let mut client = Client::connect(server.address(), 4);
    client.send(0, OPTIONS, &[]);
    let body = client.receive().body;
    let mut expected = b"\0\x03\0\x11PROTOCOL_VERSIONS\0\x04\0\x043/v3\0\x044/v4\0\x045/v5\0\x096/v6-beta".to_vec();
    expected.extend_from_slice(b"\0\x0bCOMPRESSION\0\x02\0\x06snappy\0\x03lz4\0\x0bCQL_VERSION\0\x01\0\x053.4.7");
    assert_eq!(body, expected);
    assert_eq!(body.len(), 102);
}

#[test]
fn unknown_versions_get_the_negotiation_answer() {
    let (server, _) = start(options());
    for version in [0x42, 0x41, 7, 2, 1] {
        let mut client = Client::connect(server.address(), version);
        client.send_raw(&envelope(version, 0, 0, OPTIONS, &[]));
        if version <= 2 {
            let mut head = [0; 8];
            std::io::Read::read_exact(&mut client.socket, &mut head).unwrap();
            assert_eq!(head[..4], [0x80 | version, 0, 0, 0]);
            continue;
        }
        let answer = client.receive();
        assert_eq!((answer.version, answer.error_code()), (0x85, 0x0A));
        let expected = format!(
            "Invalid or unsupported protocol version ({version}); supported versions are (3/v3, 4/v4, 5/v5, 6/v6-beta)"
        );
        assert_eq!(answer.error_text(), expected);
        client.assert_closed();
    }
    let mut client = Client::connect(server.address(), 6);
    client.send_raw(&envelope(6, 0, 0, OPTIONS, &[]));
    let text = client.receive().error_text();
    assert_eq!(text, "Beta version of the protocol used (6/v6-beta), but USE_BETA flag is unset");
    client.assert_closed();
}

#[test]
fn refused_startups_leave_the_connection_open() {
    let (server, _) = start(options());
    let mut client = Client::connect(server.address(), 5);
    client.query(9, "void");
    let answer = client.receive();
    assert_eq!((answer.stream, answer.error_code()), (9, 0x0A));
    assert_eq!(answer.error_text(), "Unexpected message QUERY, expecting STARTUP or OPTIONS");
    let snappy = client.startup(&[("COMPRESSION", "snappy")]);
    assert_eq!(snappy.error_text(), "Snappy compression is not supported in protocol V5");
    let unknown = client.startup(&[("COMPRESSION", "zstd")]);
    assert_eq!(unknown.error_text(), "Unknown compression algorithm: zstd");
    client.send(0, STARTUP, &string_map(&[]));
    assert_eq!(client.receive().error_text(), "Missing value CQL_VERSION in STARTUP message");
    assert_eq!(client.startup(&[]).opcode, READY);
    let again = client.startup(&[]);
    assert_eq!(again.error_text(), "Unexpected message STARTUP, the connection is already initialized");
    assert_eq!(client.ask("void").opcode, RESULT);
}

#[test]
fn another_version_after_startup() {
    let (server, _) = start(options());
    let mut client = Client::ready(server.address(), 4);
    client.version = 3;
    client.query(1, "void");
    let text = client.receive().error_text();
    assert_eq!(text, "Invalid message version. Got 3/v3 but previous messages on this connection had version 4/v4");
    client.assert_closed();
}

#[test]
fn passwords() {
    let (server, seen) = start(ServerOptions { authenticator: password(), ..options() });
    for version in [4, 5] {
        let mut client = Client::connect(server.address(), version);
        let answer = client.startup(&[]);
        assert_eq!(answer.opcode, AUTHENTICATE);
        assert_eq!(&answer.body[2..], b"org.apache.cassandra.auth.PasswordAuthenticator");
        assert_eq!(client.ask("void").error_text(), "Unexpected message QUERY, expecting SASL_RESPONSE");
        client.send(2, AUTH_RESPONSE, b"\0\0\0\x0b\0cassandra\0");
        assert_eq!(client.receive().error_code(), 0x0100);
        client.send(2, AUTH_RESPONSE, b"\0\0\0\x14\0cassandra\0cassandra");
        let answer = client.receive();
        assert_eq!((answer.opcode, &answer.body[..]), (AUTH_SUCCESS, &[0xff; 4][..]));
        assert_eq!(&client.ask("user").body[6..], b"cassandra");
    }
    eventually(|| seen.disconnected.load(std::sync::atomic::Ordering::SeqCst) == 2);
}

#[test]
fn clients_are_listed() {
    let (server, _) = start(options());
    let mut client = Client::connect(server.address(), 5);
    eventually(|| server.connections().len() == 1);
    assert_eq!(server.connections().list()[0].stage(), Stage::Established);
    client.startup(&[("DRIVER_NAME", "test"), ("DRIVER_VERSION", "1.2"), ("client_id", "7")]);
    client.ask("use");
    let listed = server.connections().list();
    let [connection] = &listed[..] else { panic!() };
    let details = connection.details();
    assert_eq!(connection.peer, client.socket.local_addr().unwrap());
    assert_eq!((connection.stage(), connection.stage().name()), (Stage::Ready, "READY"));
    assert_eq!(connection.requests.get(), 2);
    assert_eq!(details.driver_name.as_deref(), Some("test"));
    assert_eq!(details.driver_version.as_deref(), Some("1.2"));
    assert_eq!(details.keyspace.as_deref(), Some("ks"));
    assert_eq!(details.version.unwrap().number(), 5);
    assert!(details.options.contains(&("CLIENT_ID".to_owned(), "7".to_owned())));
    drop(client);
    eventually(|| server.connections().is_empty());
}

/// A client may say what it wants of itself; little of it is kept while the connection lives.
#[test]
fn little_of_startup_is_kept() {
    let (server, _) = start(options());
    let long = "x".repeat(500);
    let many: Vec<String> = (0..100).map(|number| format!("OPTION_{number:03}")).collect();
    let named = |value| many.iter().map(|name| (name.as_str(), value)).collect::<Vec<_>>();
    let kept = |options: &[(&str, &str)]| {
        let client = Client::ready_with(server.address(), 4, options);
        let details = server.connections().list()[0].details();
        drop(client);
        eventually(|| server.connections().is_empty());
        details.options
    };
    let of_short = kept(&named("1"));
    assert_eq!((of_short.len(), of_short[31].0.as_str()), (32, "OPTION_030"), "CQL_VERSION is the first");
    let of_long = kept(&named(long.as_str()));
    assert!(of_long.len() > 10, "{}", of_long.len());
    assert!(of_long.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() <= 8 << 10);
    // and before STARTUP a message is short
    let mut client = Client::connect(server.address(), 4);
    let huge = "x".repeat(60_000);
    client.send(3, STARTUP, &string_map(&[("CQL_VERSION", "3.4.7"), ("A", &huge), ("B", &huge)]));
    let refused = client.receive();
    assert_eq!((refused.stream, refused.error_code()), (3, 0x2200));
    assert_eq!(client.startup(&[]).opcode, READY);
    assert_eq!(client.ask(&format!("void {}", "x".repeat(100_000))).opcode, RESULT);
}

/// On an optional port some clients encrypt and others do not.
#[test]
fn it_is_known_which_connections_are_encrypted() {
    let env = env::real::env();
    let identity = include_str!("../../../links/testdata/tls/node.pem").to_owned();
    let of_server = TlsOptions { identity, optional: true, ..TlsOptions::default() };
    let (server, _) = start(ServerOptions { tls: Some(Tls::open(&env, &of_server).unwrap()), ..options() });
    let address = server.address();
    let _plain = Client::ready(address, 4);
    let trusted = Some(include_str!("../../../links/testdata/tls/authority.pem").to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connect = |protocol: &str| {
        let protocols = vec![protocol.to_owned()];
        let of_client = TlsOptions { trusted: trusted.clone(), protocols, ..TlsOptions::default() };
        let connector = Connector::open(&of_client).unwrap();
        runtime.block_on(async {
            let stream = env.network.connect(address).await.unwrap();
            let mut stream = connector.connect(address.ip(), stream).await.unwrap();
            stream.write_all(&envelope(4, 0, 0, OPTIONS, &[])).await.unwrap();
            stream.flush().await.unwrap();
            let mut header = [0; 9];
            stream.read_exact(&mut header).await.unwrap();
            assert_eq!(header[4], SUPPORTED);
            stream
        })
    };
    let _encrypted = ["TLSv1.2", "TLSv1.3"].map(connect);
    let connections = server.connections().list();
    let told: Vec<_> = connections.iter().map(|connection| connection.encrypted.get()).collect();
    assert_eq!(
        told.iter().map(|told| told.map(|told| told.protocol)).collect::<Vec<_>>(),
        [None, Some("TLSv1.2"), Some("TLSv1.3")]
    );
    assert!(told.iter().flatten().all(|told| told.cipher_suite.starts_with("TLS_")), "{told:?}");
}
