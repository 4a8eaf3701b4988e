//! Seeds of bodies of functions: the Java bodies that `crates/functions/testdata/draw.py` drew, and
//! modules of WebAssembly.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Every so many'th body of the drawn ones is a seed.
const STEP: usize = 12;

/// Java bodies, each behind the byte of its function's outside.
pub fn java() -> Vec<Vec<u8>> {
    let path = crate::root().join("crates/functions/testdata/drawn.txt");
    let drawn = std::fs::read_to_string(path).expect("the drawn bodies");
    let bodies = drawn.lines().step_by(STEP).filter_map(|line| line.rsplit_once('\t'));
    bodies.map(|(body, _)| [&[0], body.as_bytes()].concat()).collect()
}

/// Modules: a number times three and a number doubled (in binary form), a text given back, a loop,
/// memory that grows.
pub fn wasm() -> Vec<Vec<u8>> {
    const BINARY: &str = "AGFzbQEAAAABBgFgAX8BfwMCAQAHCAEEY2FsbAAACgkBBwAgACAAags=";
    let texts: [(u8, &str); 4] = [
        (1, r#"(module (func (export "call") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 3))))"#),
        (
            0,
            r#"(module (memory (export "memory") 1) (func (export "allocate") (param i32) (result i32) (i32.const 8))
            (func (export "call") (param i32 i32) (result i64)
            (i64.or (i64.shl (i64.extend_i32_u (local.get 0)) (i64.const 32)) (i64.extend_i32_u (local.get 1)))))"#,
        ),
        (1, r#"(module (func (export "call") (param i32) (result i32) (loop (br 0)) (unreachable)))"#),
        (
            1,
            r#"(module (memory 1) (func (export "call") (param i32) (result i32)
            (drop (memory.grow (local.get 0))) (memory.fill (i32.const 0) (i32.const 7) (i32.const 65536)) (memory.size)))"#,
        ),
    ];
    let texts = texts.iter().map(|(number, text)| [&[*number], text.as_bytes()].concat());
    let binary = STANDARD.decode(BINARY).expect("base64");
    texts.chain([[&[1][..], &binary].concat()]).collect()
}
