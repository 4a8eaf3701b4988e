//! Tests: text forms, JSON, calculations and validation give what Cassandra 5.0.8 answered, case by
//! case (testdata/forms.tsv.gz).
//!
//! A line of that file: the operation, its arguments, `=>`, then `ok` with bytes, literal and plain
//! text, or `err` with the message.

use std::io::Read;

use crate::number::{Function, Operator, apply, calculate, result_type};
use crate::{CqlType, Duration, TypeError, json, literal, marshal, parse_text, validate};

/// An answer to compare: bytes in hex, literal (or JSON), plain text; or the message of an error.
type Answer = Result<[String; 3], String>;

fn ty(name: &str) -> CqlType {
    marshal::parse(name).expect("a type of Cassandra").0
}

fn answer(ty: &CqlType, bytes: &[u8], text: String) -> [String; 3] {
    [literal::hex(bytes), literal::to_text(ty, bytes), text]
}

/// The cause of an error, without the words that an operation puts before it.
fn cause(error: TypeError) -> String {
    let message = error.to_string();
    message.split_once(" failed: ").map_or(message.clone(), |(_, cause)| cause.to_owned())
}

fn operator(symbol: &str) -> Operator {
    use Operator::{Add, Divide, Modulo, Multiply, Subtract};
    let all = [Add, Subtract, Multiply, Divide, Modulo];
    all.into_iter().find(|operator| operator.symbol().to_string() == symbol).expect("an operator")
}

fn function(name: &str) -> Function {
    match name {
        "abs" => Function::Abs,
        "exp" => Function::Exp,
        "log" => Function::Log,
        "log10" => Function::Log10,
        _ => Function::Round,
    }
}

fn ask(question: &[&str]) -> Answer {
    let message = |error: TypeError| error.to_string();
    match question {
        ["parse", name, text] => {
            let ty = ty(name);
            let bytes = parse_text(&ty, text).map_err(message)?;
            let plain = literal::to_plain_text(&ty, &bytes);
            Ok(answer(&ty, &bytes, plain))
        }
        ["op", symbol, left, right, result, a, b] => {
            let (left, right, result) = (ty(left), ty(right), ty(result));
            assert_eq!(result_type(operator(symbol), &left, &right), Some(result.clone()), "{question:?}");
            let (a, b) = (parse_text(&left, a).map_err(message)?, parse_text(&right, b).map_err(message)?);
            let value = calculate(operator(symbol), (&left, &a), (&right, &b)).map_err(cause)?;
            Ok(answer(&result, &value.expect("operands are there"), String::new()))
        }
        ["fn", name, ty_name, text] => {
            let ty = ty(ty_name);
            let value = apply(function(name), &ty, &parse_text(&ty, text).map_err(message)?).map_err(message)?;
            Ok(answer(&ty, &value.expect("an argument is there"), String::new()))
        }
        ["dur", name, text, duration, symbol] => {
            let ty = ty(name);
            let duration = Duration::parse(duration).map_err(message)?.encode();
            let value = parse_text(&ty, text).map_err(message)?;
            let moved = calculate(operator(symbol), (&ty, &value), (&CqlType::Duration, &duration)).map_err(cause)?;
            Ok(answer(&ty, &moved.expect("operands are there"), String::new()))
        }
        ["floor", millis, start, duration] => {
            let [millis, start] = [millis, start].map(|text| text.parse().expect("a number"));
            let duration = Duration::parse(duration).map_err(message)?;
            Ok([duration.floor_timestamp(millis, start).map_err(message)?.to_string(), String::new(), String::new()])
        }
        ["json", name, text] => {
            let ty = ty(name);
            let bytes = json::parse(text).and_then(|json| json::from_json(&ty, &json)).map_err(message)?;
            Ok([literal::hex(&bytes), json::to_json(&ty, &bytes), String::new()])
        }
        ["valid", name, hex] => {
            validate(&ty(name), &literal::unhex(hex).expect("hex")).map_err(message)?;
            Ok(Default::default())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn answers_are_those_of_cassandra() {
    let mut text = String::new();
    let gz = include_bytes!("../testdata/forms.tsv.gz");
    flate2::read::GzDecoder::new(&gz[..]).read_to_string(&mut text).expect("test data is gzip");
    let mut wrong = Vec::new();
    for line in text.lines() {
        let (question, expected) = line.split_once("\t=>\t").expect("an answer");
        let question: Vec<_> = question.split('\t').collect();
        let mut words = expected.split('\t').map(str::to_owned);
        let expected: Answer = match words.next().as_deref() {
            Some("ok") => Ok([(); 3].map(|()| words.next().unwrap_or_default())),
            _ => Err(words.next().unwrap_or_default()),
        };
        let ours = ask(&question);
        if ours != expected {
            wrong.push(format!("{question:?}: {ours:?}, Cassandra {expected:?}"));
        }
    }
    assert!(text.lines().count() > 4000);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
