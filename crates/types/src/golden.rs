//! Tests: byte-comparable forms, orders, hashes and type names equal those that Cassandra 5.0.8
//! computed (`testdata/fixtures/vectors`, made inside Cassandra).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::Read;

use bytes::Bytes;
use serde_json::Value;

use crate::byte_comparable::{
    TERMINATOR_AFTER, TERMINATOR_BEFORE, TERMINATOR_CLUSTERING, TERMINATOR_STATIC, encode_clustering,
    encode_decorated_key,
};
use crate::{CqlType, Token, compare, marshal};

fn lines(gz: &[u8]) -> Vec<Value> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(gz).read_to_string(&mut text).expect("test data is gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("test data is JSON lines")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex"))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

type Clustering = (Vec<(CqlType, bool)>, Vec<Option<Bytes>>, Vec<u8>);

fn clusterings() -> Vec<(Clustering, String)> {
    let mut all = Vec::new();
    for line in lines(include_bytes!("../../../testdata/fixtures/vectors/clustering_bytecomparable.jsonl.gz")) {
        let names: Vec<_> = line["types"].as_array().expect("types").iter().filter_map(Value::as_str).collect();
        let types = names.iter().map(|name| marshal::parse(name).expect("a type of Cassandra")).collect();
        let values = line["ck"].as_array().expect("ck").iter();
        let values = values.map(|value| value.as_str().map(|text| Bytes::from(unhex(text)))).collect();
        let form = unhex(line["bc"].as_str().expect("bc"));
        all.push(((types, values, form), line["kind"].as_str().expect("kind").to_owned()));
    }
    assert_eq!(all.len(), 2976);
    all
}

#[test]
fn byte_comparable_forms_of_clusterings() {
    for ((types, values, expected), kind) in clusterings() {
        let terminator = match kind.as_str() {
            "CLUSTERING" => TERMINATOR_CLUSTERING,
            "STATIC_CLUSTERING" => TERMINATOR_STATIC,
            "INCL_START_BOUND" | "EXCL_END_BOUND" | "EXCL_END_INCL_START_BOUNDARY" => TERMINATOR_BEFORE,
            _ => TERMINATOR_AFTER,
        };
        let mut form = Vec::new();
        encode_clustering(&types, &values, terminator, &mut form);
        assert_eq!(hex(&form), hex(&expected), "{kind} {types:?} {values:?}");
    }
}

#[test]
fn orders_agree_with_byte_comparable_forms() {
    let mut by_types: BTreeMap<String, Vec<Clustering>> = BTreeMap::new();
    for (clustering, kind) in clusterings() {
        if kind == "CLUSTERING" && clustering.0.len() == clustering.1.len() {
            by_types.entry(format!("{:?}", clustering.0)).or_default().push(clustering);
        }
    }
    let mut pairs = 0;
    for same in by_types.values() {
        for a in same {
            for b in same {
                let order =
                    a.0.iter().zip(a.1.iter().zip(&b.1)).fold(Ordering::Equal, |order, ((ty, reversed), pair)| {
                        order.then_with(|| match pair {
                            (Some(x), Some(y)) if *reversed => compare(ty, x, y).reverse(),
                            (Some(x), Some(y)) => compare(ty, x, y),
                            (x, y) => x.is_some().cmp(&y.is_some()),
                        })
                    });
                assert_eq!(order, a.2.cmp(&b.2), "{:?} {:?} {:?}", a.0, a.1, b.1);
                pairs += 1;
            }
        }
    }
    assert!(pairs > 10_000, "{pairs}");
}

#[test]
fn type_names_print_as_they_were_read() {
    let mut seen = 0;
    for line in lines(include_bytes!("../../../testdata/fixtures/vectors/clustering_bytecomparable.jsonl.gz")) {
        for name in line["types"].as_array().expect("types").iter().filter_map(Value::as_str) {
            let (ty, reversed) = marshal::parse(name).expect("a type of Cassandra");
            assert_eq!(marshal::print(&ty, reversed), name);
            seen += 1;
        }
    }
    assert!(seen > 2976, "{seen}");
}

#[test]
fn elements_of_vectors_print_as_in_cassandra() {
    // as Cassandra 5.0.8 named the types of result columns
    for name in [
        "VectorType(FrozenType(ListType(Int32Type)) , 1)",
        "VectorType(FrozenType(UserType(tyks,75,61:Int32Type)) , 1)",
        "VectorType(TupleType(Int32Type) , 1)",
        "VectorType(VectorType(Int32Type , 1) , 1)",
        "VectorType(FrozenType(SetType(UserType(tyks,75,61:Int32Type))) , 2)",
    ] {
        let mut full = name.to_owned();
        for class in ["VectorType", "FrozenType", "ListType", "SetType", "UserType", "TupleType", "Int32Type"] {
            full = full.replace(class, &format!("org.apache.cassandra.db.marshal.{class}"));
        }
        let (ty, reversed) = marshal::parse(&full).expect("a type of Cassandra");
        assert_eq!(marshal::print(&ty, reversed), full);
    }
}

#[test]
fn names_in_a_user_type_are_bytes_of_two_hex_digits() {
    let parse = |name: &str| marshal::parse(&format!("UserType(ks,{name},61:Int32Type)"));
    assert!(parse("7a4B").is_ok());
    for wrong in ["+a", "7", "7a4", "-7", "7g"] {
        assert_eq!(parse(wrong).map_err(|error| error.what), Err("hex digits expected"), "{wrong}");
    }
}

#[test]
fn hashes_tokens_and_forms_of_keys() {
    let keys = lines(include_bytes!("../../../testdata/fixtures/vectors/keys.jsonl.gz"));
    assert!(keys.len() > 3900);
    for line in keys {
        let key = unhex(line["key"].as_str().expect("key"));
        let token = line["token"].as_i64().expect("token");
        assert_eq!(Token::of_key(&key), Token(token));
        let (h0, h1) = stdx::murmur3(&key);
        assert_eq!((Some(h0), Some(h1)), (line["hash"][0].as_i64(), line["hash"][1].as_i64()));
        let mut form = Vec::new();
        encode_decorated_key(Token(token), &key, &mut form);
        assert_eq!(hex(&form), line["bc"].as_str().expect("bc"));
    }
}
