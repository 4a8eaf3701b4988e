//! Worked bytes of each message, and input that lies. Captured messages are in `tests/golden.rs`.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn endpoint() -> SocketAddr {
    "127.0.0.2:7000".parse().unwrap()
}

fn value(value: &str, version: i32) -> VersionedValue {
    VersionedValue { value: value.to_owned(), version }
}

#[test]
fn golden_syn() {
    let syn = Syn {
        cluster: "lab".to_owned(),
        partitioner: "org.apache.cassandra.dht.Murmur3Partitioner".to_owned(),
        digests: vec![Digest { endpoint: endpoint(), generation: 1_700_000_000, max_version: 5 }],
    };
    let golden = bytes(
        "0003 6C6162 002B 6F72672E6170616368652E63617373616E6472612E6468742E4D75726D757233506172746974696F6E6572 \
         00000001 06 7F000002 1B58 6553F100 00000005",
    );
    assert_eq!(syn.encode(), Ok(golden.clone()));
    assert_eq!(Syn::decode(&golden), Ok(syn));
}

#[test]
fn golden_ack2() {
    let state = EndpointState {
        generation: 1_700_000_000,
        heartbeat: 5,
        values: vec![(ApplicationState::NetVersion, value("12", 2)), (ApplicationState::RpcReady, value("true", 4))],
    };
    assert_eq!(state.max_version(), 5);
    assert_eq!(state.value(ApplicationState::NetVersion), Some("12"));
    let ack2 = Ack2 { states: vec![(endpoint(), state)] };
    let golden = bytes(
        "00000001 06 7F000002 1B58 6553F100 00000005 00000002 0000000B 0002 3132 00000002 0000000E 0004 74727565 00000004",
    );
    assert_eq!(ack2.encode(), Ok(golden.clone()));
    assert_eq!(Ack2::decode(&golden), Ok(ack2));
    for end in 0..golden.len() {
        assert!(Ack2::decode(&golden[..end]).is_err(), "{end}");
    }
}

#[test]
fn golden_tokens() {
    let mut out = Vec::new();
    put_utf(&mut out, &tokens::text_of(&[-1, 256])).unwrap();
    let golden = bytes(
        "0035 C080C080C08008 C3BFC3BFC3BFC3BFC3BFC3BFC3BFC3BF C080C080C08008 C080C080C080C080C080C08001C080 C080C080C080C080",
    );
    assert_eq!(out, golden);
    assert_eq!(tokens::tokens_of(&tokens::text_of(&[-1, 256, i64::MIN])), Ok(vec![-1, 256, i64::MIN]));
    for bad in ["", "\0\0\0\u{9}", "\0\0\0\u{8}\0", "€"] {
        assert!(tokens::tokens_of(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn numbers_beyond_the_last_state_are_refused() {
    for (place, (state, _)) in ApplicationState::ALL.iter().enumerate() {
        assert_eq!(ApplicationState::from_number(place as i32), Some(*state));
    }
    assert_eq!(ApplicationState::from_number(31), None);
    let counts_that_lie = bytes("7FFFFFFF 06 7F000002 1B58");
    assert!(Ack2::decode(&counts_that_lie).is_err());
    assert!(Ack::decode(&counts_that_lie).is_err());
}
