//! Bodies of user-defined functions: any text and any module is refused or compiled, a compiled one
//! runs to an end within its budget, and what it gives is a value of its type.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use functions::{Budget, CallError, Function, Signature};
use types::{CqlType, cql_name};

/// Small, so that a loop ends soon.
const BUDGET: Budget = Budget { steps: 20_000, bytes: 1 << 20 };

/// The arguments of every function under test, with serialized values.
const ARGUMENTS: [(&str, &str, &[u8]); 5] = [
    ("a", "int", &[0, 0, 0, 17]),
    ("b", "bigint", &[255, 255, 255, 254, 213, 250, 14, 0]),
    ("d", "double", &[0x40, 4, 0, 0, 0, 0, 0, 0]),
    ("s", "text", b"Hello, World"),
    ("l", "list<int>", &[0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 1]),
];

/// Types of results, one of which the first byte of an input chooses.
const RESULTS: [&str; 4] = ["text", "int", "list<int>", "double"];

fn ty(text: &str) -> CqlType {
    cql_name::parse(text, &|_| None).expect("a type of a test")
}

fn signature(number: u8, arguments: &[(&str, &str, &[u8])]) -> Signature {
    Signature {
        arguments: arguments.iter().map(|(name, of, _)| ((*name).to_owned(), ty(of))).collect(),
        returns: ty(RESULTS[usize::from(number) % RESULTS.len()]),
        called_on_null: number >= 128,
    }
}

fn call(function: &Function, signature: &Signature, arguments: &[(&str, &str, &[u8])]) {
    let given: Vec<Option<&[u8]>> = arguments.iter().map(|(_, _, bytes)| Some(*bytes)).collect();
    match function.call(&given, &BUDGET) {
        Ok(Some(bytes)) => types::validate(&signature.returns, &bytes).expect("a result is a value of its type"),
        Ok(None) | Err(CallError::Steps | CallError::Bytes) => {}
        Err(CallError::Thrown(text)) => assert!(!text.is_empty(), "an exception has a text"),
    }
}

/// A Java body behind a byte that chooses the function's outside.
pub fn java(data: &[u8]) {
    let Some((number, body)) = data.split_first() else { return };
    let Ok(body) = std::str::from_utf8(body) else { return };
    let signature = signature(*number, &ARGUMENTS);
    if let Ok(function) = functions::compile(&signature, body, &[]) {
        call(&function, &signature, &ARGUMENTS);
    }
}

/// A WebAssembly module, text or binary, behind a byte that chooses the function's outside: numbers
/// or bytes.
pub fn wasm(data: &[u8]) {
    let Some((number, module)) = data.split_first() else { return };
    // the first argument goes in as a number or as bytes, a list only as bytes
    let arguments = if number % 2 == 0 { &ARGUMENTS[3..4] } else { &ARGUMENTS[..1] };
    let signature = signature(*number, arguments);
    let body = match std::str::from_utf8(module) {
        Ok(text) if text.starts_with('(') => text.to_owned(),
        _ => STANDARD.encode(module),
    };
    if let Ok(function) = functions::compile_wasm(&signature, &body) {
        call(&function, &signature, arguments);
    }
}
