//! Functions in WebAssembly: what they give, and which modules are refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

/// Gives back its argument's bytes, in which the letters a to z become capitals; null stays null.
const CAPITALS: &str = r#"(module
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 16))
    (func (export "allocate") (param $size i32) (result i32)
        (global.get $next)
        (global.set $next (i32.add (global.get $next) (local.get $size))))
    (func (export "call") (param $at i32) (param $length i32) (result i64)
        (local $i i32) (local $c i32)
        (if (i32.eq (local.get $length) (i32.const -1)) (then (return (i64.const 0xffffffff))))
        (block $done (loop $next
            (br_if $done (i32.ge_u (local.get $i) (local.get $length)))
            (local.set $c (i32.load8_u (i32.add (local.get $at) (local.get $i))))
            (if (i32.lt_u (i32.sub (local.get $c) (i32.const 97)) (i32.const 26))
                (then (i32.store8 (i32.add (local.get $at) (local.get $i)) (i32.sub (local.get $c) (i32.const 32)))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $next)))
        (i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32)) (i64.extend_i32_u (local.get $length)))))"#;

/// `(i32, i32) -> i32`, the sum, in the binary form.
const SUM: &str = "AGFzbQEAAAABBwFgAn9/AX8DAgEABwgBBGNhbGwAAAoJAQcAIAAgAWoL";

fn signature(arguments: &str, returns: &str, called_on_null: bool) -> Signature {
    let arguments = arguments.split_whitespace().enumerate().map(|(at, name)| (format!("a{at}"), ty(name))).collect();
    Signature { arguments, returns: ty(returns), called_on_null }
}

/// The result of a call as text; an error as `! text`, a refusal as `? text`.
fn outcome(arguments: &str, values: &[&str], returns: &str, body: &str) -> String {
    let signature = signature(arguments, returns, values.contains(&"null"));
    let function = match compile_wasm(&signature, body) {
        Ok(function) => function,
        Err(reason) => return format!("? {reason}"),
    };
    let types = signature.arguments.iter().map(|(_, ty)| ty);
    let bytes: Vec<Option<Vec<u8>>> =
        values.iter().zip(types).map(|(value, ty)| (*value != "null").then(|| value_of(ty, value))).collect();
    let given: Vec<Option<&[u8]>> = bytes.iter().map(Option::as_deref).collect();
    let call = || match function.call(&given, &BUDGET) {
        Ok(Some(bytes)) => literal::to_text(&ty(returns), &bytes),
        Ok(None) => "null".to_owned(),
        Err(CallError::Thrown(text)) => format!("! {text}"),
        Err(error) => format!("! {error:?}"),
    };
    let first = call();
    assert_eq!(call(), first, "a call sees nothing of the one before");
    first
}

fn entry(text: &str) -> String {
    format!("(module (func (export \"call\") {text}))")
}

#[test]
fn numbers_go_in_and_out() {
    let of_one = |ty: &str, body: &str| entry(&format!("(param {ty}) (result {ty}) {body}"));
    let cases = [
        ("int int", &["7", "-9"][..], "int", SUM.to_owned(), "-2"),
        ("int int", &["7", "-9"], "int", format!("  {}\n{}  ", &SUM[..20], &SUM[20..]), "-2"),
        ("bigint", &["-5"], "bigint", of_one("i64", "(i64.mul (local.get 0) (i64.const 3))"), "-15"),
        ("double", &["2.25"], "double", of_one("f64", "(f64.sqrt (local.get 0))"), "1.5"),
        ("float", &["-1.5"], "float", of_one("f32", "(f32.abs (local.get 0))"), "1.5"),
        ("boolean", &["true"], "boolean", of_one("i32", "(i32.eqz (local.get 0))"), "false"),
        ("tinyint", &["-100"], "tinyint", of_one("i32", "(i32.sub (local.get 0) (i32.const 28))"), "-128"),
        (
            "tinyint",
            &["-100"],
            "tinyint",
            of_one("i32", "(i32.sub (local.get 0) (i32.const 29))"),
            "! the result -129 does not fit the function's type",
        ),
        ("", &[], "int", entry("(result i32) (i32.const 42)"), "42"),
        (
            "int",
            &["1"],
            "int",
            of_one("i32", "(i32.div_s (local.get 0) (i32.const 0))"),
            "! WebAssembly trap: integer divide by zero",
        ),
        ("int", &["1"], "int", of_one("i32", "(loop (br 0)) (unreachable)"), "! Steps"),
        (
            "int",
            &["1"],
            "int",
            "(module (func $f (export \"call\") (param i32) (result i32) (call $f (local.get 0))))".to_owned(),
            "! WebAssembly trap: call stack exhausted",
        ),
        // no call sees what another one left
        (
            "",
            &[],
            "int",
            "(module (global $n (mut i32) (i32.const 0)) (func (export \"call\") (result i32)
                (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n)))"
                .to_owned(),
            "1",
        ),
    ];
    for (arguments, values, returns, body, expected) in cases {
        assert_eq!(outcome(arguments, values, returns, &body), expected, "{body}");
    }
}

#[test]
fn bytes_go_in_and_out() {
    assert_eq!(outcome("text", &["Helenus of Troy"], "text", CAPITALS), "'HELENUS OF TROY'");
    assert_eq!(outcome("text", &["null"], "text", CAPITALS), "null");
    assert_eq!(outcome("list<int>", &["[1, 2]"], "list<int>", CAPITALS), "[1, 2]");
    // the bytes of an int are no list
    assert!(outcome("int", &["5"], "list<text>", CAPITALS).starts_with("! the result is no list<text>: "));
    let with_result = |result: &str| {
        format!(
            "(module (memory (export \"memory\") 1) (func (export \"allocate\") (param i32) (result i32) (i32.const 65530))
            (func (export \"call\") (param i32 i32) (result i64) (i64.const {result})))"
        )
    };
    assert_eq!(outcome("int", &["5"], "text", &with_result("0x0000fffa00000004")), "'\0\0\0\u{5}'");
    assert_eq!(outcome("bigint", &["5"], "text", &with_result("0")), "! allocate gave room outside of the memory");
    for outside in ["0x0000fffa00000007", "0xffffffff00000001", "0x00000000fffffffe"] {
        let found = outcome("int", &["5"], "text", &with_result(outside));
        assert_eq!(found, "! the result lies outside of the memory", "{outside}");
    }
}

#[test]
fn memory_has_a_limit() {
    let pages = BUDGET.bytes / 65536;
    let grow = |more: u64| {
        entry(&format!("(result i32) (memory.grow (i32.const {more}))")).replace("(module", "(module (memory 1)")
    };
    assert_eq!(outcome("", &[], "int", &grow(pages - 1)), "1");
    assert_eq!(outcome("", &[], "int", &grow(pages)), "-1");
    let from_the_start = format!("(module (memory {}) (func (export \"call\") (result i32) (i32.const 1)))", pages + 1);
    assert!(outcome("", &[], "int", &from_the_start).starts_with('!'));
}

#[test]
fn modules_are_refused_with_a_reason() {
    let cases = [
        ("return 1;", "The body is neither a module as text"),
        ("AAAA", ""),
        ("(module (func (export \"call\") (result i32) (i64.const 1)))", ""),
        ("(module)", "The module exports no function \"call\""),
        ("(module (memory (export \"call\") 1))", "The module exports no function \"call\""),
        (
            "(module (func (export \"call\") (param i32) (result i64) (i64.const 1)))",
            "\"call\" is (i32) -> i64; it must be () -> i64 or () -> i32",
        ),
        ("(module (func (export \"call\") (result i64) (i64.const 1)))", "The module exports no memory \"memory\""),
        (
            "(module (memory (export \"memory\") 1) (func (export \"call\") (result i64) (i64.const 1)))",
            "The module exports no function \"allocate\" that is (i32) -> i32",
        ),
        (
            "(module (import \"env\" \"time\" (func (result i64))) (func (export \"call\") (result i32) (i32.const 1)))",
            "The module imports env.time; a function has no imports",
        ),
    ];
    for (body, reason) in cases {
        let refused = compile_wasm(&signature("", "int", false), body).map(|_| ()).expect_err(body);
        assert!(refused.starts_with(reason), "{body}: {refused}");
    }
    let large = format!("(module {})", " ".repeat(WASM_BODY_SIZE_MAX));
    let refused = compile_wasm(&signature("", "int", false), &large).map(|_| ()).expect_err("too large");
    assert!(refused.contains("more than 262144"), "{refused}");
    // a function that may be called with null has no numbers
    let numbers = "(module (func (export \"call\") (param i32) (result i32) (local.get 0)))";
    let refused = compile_wasm(&signature("int", "int", true), numbers).map(|_| ()).expect_err("numbers");
    assert_eq!(refused, "\"call\" is (i32) -> i32; it must be (i32, i32) -> i64");
}

/// Damaged modules are refused or run; none of them ends the process.
#[test]
fn damaged_modules_end_nothing() {
    let whole = STANDARD.decode(SUM).expect("base64");
    let signature = signature("int int", "int", false);
    let (mut refused, mut ran) = (0, 0);
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            match compile_wasm(&signature, &STANDARD.encode(&damaged)) {
                Err(_) => refused += 1,
                Ok(function) => {
                    let _ = function.call(&[Some(&[0, 0, 0, 1]), Some(&[0, 0, 0, 2])], &BUDGET);
                    ran += 1;
                }
            }
        }
    }
    assert!(refused > 100 && ran > 3, "{refused} refused, {ran} ran");
}
