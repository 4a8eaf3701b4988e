//! Tests with the JSON of rows that Cassandra 5.0.8 wrote (testdata/json.jsonl.gz), and with JSON
//! that it refuses.

use super::*;
use crate::{UserType, marshal};
use serde_json::Value;
use std::io::Read;
use std::sync::Arc;

#[test]
fn values_are_written_as_cassandra_wrote_them_and_come_back() {
    let mut text = String::new();
    let gz = include_bytes!("../../testdata/json.jsonl.gz");
    flate2::read::GzDecoder::new(&gz[..]).read_to_string(&mut text).expect("test data is gzip");
    let mut seen = 0;
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("test data is JSON lines");
        let field = |name: &str| line[name].as_str().expect("a text");
        let (ty, reversed) = marshal::parse(field("type")).expect("a type of Cassandra");
        assert_eq!(marshal::print(&ty, reversed), field("type"));
        let raw = crate::literal::unhex(field("raw")).expect("hex");
        assert_eq!(crate::validate(&ty, &raw), Ok(()));
        let json = to_json(&ty, &raw);
        assert_eq!(json, field("json"), "{} {}", field("type"), field("raw"));
        let parsed = parse(&json).expect("JSON");
        if parsed != Json::Null && !json.contains("null") && !json.contains("\"\"") && !lossy(&ty, &json) {
            let back = from_json(&ty, &parsed).unwrap_or_else(|error| panic!("{json}: {error}"));
            assert_eq!(to_json(&ty, &back), json);
            if !ty.any(&mut |ty| matches!(ty, CqlType::Udt(..) | CqlType::Varint | CqlType::Decimal)) {
                assert_eq!(crate::literal::hex(&back), field("raw"), "{json}");
            }
        }
        seen += 1;
    }
    assert!(seen > 1000, "{seen}");
}

/// Whether JSON loses a part of such values: decimals go through doubles, negative years become
/// years of the era.
fn lossy(ty: &CqlType, json: &str) -> bool {
    let old = ty.any(&mut |ty| matches!(ty, CqlType::Timestamp)) && (json.starts_with("\"+") || json.contains("\"00"));
    old || ty.any(&mut |ty| matches!(ty, CqlType::Decimal))
}

fn refused(ty: &CqlType, json: &str) -> String {
    parse(json).and_then(|json| from_json(ty, &json)).expect_err(json).to_string()
}

#[test]
fn what_is_refused_says_what_cassandra_says() {
    let list = CqlType::List { element: Arc::new(CqlType::Int), frozen: false };
    let tuple = CqlType::Tuple(Arc::new([CqlType::Int, CqlType::Text]));
    let cases = [
        (&CqlType::Int, "1.5", "Expected an int value, but got a Double: 1.5"),
        (&CqlType::Int, "3000000000", "Expected an int value, but got a Long: 3000000000"),
        (&CqlType::Int, "\"x\"", "Unable to make int from 'x'"),
        (&CqlType::Text, "[1, \"a\"]", "Expected a UTF-8 string, but got a ArrayList: [1, a]"),
        (
            &CqlType::Blob,
            "\"ab\"",
            "Value 'ab' is not a valid blob representation: String representation of blob is missing 0x prefix: ab",
        ),
        (
            &CqlType::Timestamp,
            "5",
            "Expected a long or a datestring representation of a timestamp value, but got a Integer: 5",
        ),
        (&list, "[1, null]", "Invalid null element in list"),
        (&list, "{\"a\": 1}", "Expected a list, but got a LinkedHashMap: {a=1}"),
        (&tuple, "[1]", "Tuple is missing items (expected 2): [1]"),
        (&tuple, "[1, \"a\", 2]", "Tuple contains extra items (expected 2): [1, a, 2]"),
    ];
    for (ty, json, message) in cases {
        assert_eq!(refused(ty, json), message);
    }
}

#[test]
fn json_in_strings_and_case_of_names() {
    let udt = UserType {
        keyspace: "ks".to_owned(),
        name: "t".to_owned(),
        fields: vec![("a".to_owned(), CqlType::Int), ("B".to_owned(), CqlType::Int)],
    };
    let ty = CqlType::Udt(Arc::new(udt), true);
    let value = from_json(&ty, &parse("{\"A\": 1, \"\\\"B\\\"\": 2}").expect("JSON")).expect("a value");
    assert_eq!(to_json(&ty, &value), "{\"a\": 1, \"\\\"B\\\"\": 2}");
    assert_eq!(refused(&ty, "{\"c\": 1}"), "Unknown field 'c' in value of user defined type t");
    let map = CqlType::Map { key: Arc::new(CqlType::Int), value: Arc::new(ty), frozen: false };
    let value = from_json(&map, &parse("{\"1\": \"{\\\"a\\\": 3}\"}").expect("JSON")).expect("a value");
    assert_eq!(to_json(&map, &value), "{\"1\": {\"a\": 3, \"\\\"B\\\"\": null}}");
}

/// Of members that become one by their case that counts which had to be changed, and mistakes in
/// values are told of before unknown names.
#[test]
fn members_of_one_name() {
    let fields = vec![("a".to_owned(), CqlType::Int), ("b".to_owned(), CqlType::Int)];
    let ty = CqlType::Udt(Arc::new(UserType { keyspace: "ks".to_owned(), name: "t".to_owned(), fields }), true);
    for (text, value) in [
        (r#"{"a": 1, "a": 2}"#, 2),
        (r#"{"a": 1, "A": 2}"#, 2),
        (r#"{"A": 1, "a": 2}"#, 1),
        (r#"{"\"a\"": 1, "a": 2}"#, 1),
        (r#"{"A": 1, "\"a\"": 2}"#, 2),
    ] {
        let bytes = from_json(&ty, &parse(text).expect("JSON")).expect("a value");
        assert_eq!(to_json(&ty, &bytes), format!("{{\"a\": {value}, \"b\": null}}"), "{text}");
    }
    assert_eq!(
        refused(&ty, r#"{"d": 1, "C": 1, "a": 1, "c": 2}"#),
        "Unknown field 'd' in value of user defined type t"
    );
    let told = refused(&ty, r#"{"c": 1, "a": true}"#);
    assert_eq!(told, "Expected an int value, but got a Boolean: true");
}

/// Each object of a few bytes stands for the value of a type of many fields.
#[test]
fn values_have_a_greatest_size() {
    let fields = (0..30_000).map(|at| (format!("f{at}"), CqlType::Int)).collect();
    let udt = UserType { keyspace: "ks".to_owned(), name: "wide".to_owned(), fields };
    let ty = CqlType::List { element: Arc::new(CqlType::Udt(Arc::new(udt), true)), frozen: true };
    let objects = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
    assert!(from_json(&ty, &parse(&objects(10)).expect("JSON")).is_ok());
    assert_eq!(refused(&ty, &objects(600)), "The value would be larger than 64 MiB");
}

#[test]
fn what_is_no_json_is_refused() {
    let deep = "[".repeat(100_000);
    let cases = ["", "{", "[1,]", "{\"a\"}", "{a: 1}", "\"x", "\"\\x\"", "01", "1.", ".5", "-", "nul", "\"\n\"", &deep];
    for text in cases {
        assert!(parse(text).is_err(), "{text:.20}");
    }
    assert_eq!(parse(" \"\\u00e9\\ud83d\\ude00\\ud800\" ").expect("JSON"), Json::String("é😀?".to_owned()));
    assert_eq!(parse("-1.5E+2").expect("JSON"), Json::Float(-150.0));
}
