//! User-defined functions in a subset of Java 11 or in WebAssembly: compiled when they are created,
//! and run under a budget of steps and bytes, Java by a machine of our own, WebAssembly ([`wasm`])
//! by wasmi.
//!
//! A Java body is parsed ([`parser`]), resolved and checked ([`compile`]) against the classes and
//! methods that it may use ([`class`], [`library`]), and becomes code that the [`machine`] runs.
//! What lies outside of the subset is refused with its line when the function is created. A body
//! has no way to a file, a clock, a thread, a socket or a random number, because the library has
//! none.
//!
//! Values go in and out as their serialized bytes; only the arguments that a body reads are
//! decoded.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.{JavaBasedUDFunction,UDFContext,UDFDataType}`
//! for types, codecs and the context, and with the Java Language Specification for everything else.

mod ast;
mod class;
mod compile;
mod compile_error;
mod lexer;
mod library;
mod machine;
mod parser;
#[cfg(test)]
mod tests;
mod wasm;

use std::sync::Arc;

use types::{CqlType, UserType};

use crate::machine::code::Program;
use crate::machine::{Flow, Machine, Stop, Value};
pub use compile_error::CompileError;
pub use wasm::WASM_BODY_SIZE_MAX;

/// The largest Java body in bytes. Larger ones are refused.
pub const BODY_SIZE_MAX: usize = 64 * 1024;

/// The outside of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// Names and types of the arguments.
    pub arguments: Vec<(String, CqlType)>,
    /// The type of the result.
    pub returns: CqlType,
    /// Whether the function is called with null arguments. If not, arguments and result are
    /// primitives where Java has them, and the caller gives null for a call with a null argument.
    pub called_on_null: bool,
}

/// How much a call may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Steps: about one for each operator, call and statement of Java that runs, or for some
    /// instructions of WebAssembly.
    pub steps: u64,
    /// Bytes of objects that the call makes, or of a module's memory. None of them is freed before
    /// the call ends.
    pub bytes: u64,
}

/// Why a call has no value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// An exception that the body did not catch, as Java's `toString` shows it
    /// (`java.lang.ArithmeticException: / by zero`), or what ended a WebAssembly module.
    Thrown(String),
    /// The steps of the budget are used up.
    Steps,
    /// The bytes of the budget are used up.
    Bytes,
}

/// A compiled function.
#[derive(Debug)]
pub struct Function(Body);

#[derive(Debug)]
enum Body {
    Java(JavaFunction),
    Wasm(wasm::Code),
}

#[derive(Debug)]
struct JavaFunction {
    program: Program,
    returns: CqlType,
    called_on_null: bool,
}

/// Compiles a body in WebAssembly, or says why it is refused.
pub fn compile_wasm(signature: &Signature, body: &str) -> Result<Function, String> {
    wasm::compile(signature, body).map(|code| Function(Body::Wasm(code)))
}

/// Compiles a Java body. `user_types` are those of the function's keyspace, for `udfContext`.
pub fn compile(signature: &Signature, body: &str, user_types: &[Arc<UserType>]) -> Result<Function, CompileError> {
    if body.len() > BODY_SIZE_MAX {
        let text = format!("The body has {} bytes, more than {BODY_SIZE_MAX}", body.len());
        return Err(CompileError { line: 1, column: 1, text });
    }
    let body_signature = compile::BodySignature {
        arguments: &signature.arguments,
        returns: &signature.returns,
        called_on_null: signature.called_on_null,
        user_types,
    };
    let program = compile::compile(&body_signature, body)?;
    let (returns, called_on_null) = (signature.returns.clone(), signature.called_on_null);
    Ok(Function(Body::Java(JavaFunction { program, returns, called_on_null })))
}

impl Function {
    /// Calls the function with serialized arguments; None is null. The result is the serialized
    /// value; None: null.
    pub fn call(&self, arguments: &[Option<&[u8]>], budget: &Budget) -> Result<Option<Vec<u8>>, CallError> {
        self.call_counted(arguments, budget).0
    }

    /// As [`Function::call`]; gives the steps that the call took besides.
    pub fn call_counted(
        &self,
        arguments: &[Option<&[u8]>],
        budget: &Budget,
    ) -> (Result<Option<Vec<u8>>, CallError>, u64) {
        let mut left = budget.steps;
        let result = match &self.0 {
            Body::Java(function) => function.call(arguments, budget, &mut left),
            Body::Wasm(code) => code.call(arguments, budget, &mut left),
        };
        (result, budget.steps.saturating_sub(left))
    }
}

impl JavaFunction {
    /// `left`: steps that the call has left of its budget in the end.
    fn call(&self, arguments: &[Option<&[u8]>], budget: &Budget, left: &mut u64) -> Result<Option<Vec<u8>>, CallError> {
        assert_eq!(arguments.len(), self.program.arguments.len(), "a function is called with its arguments");
        let mut machine = Machine::new(&self.program, budget.steps, budget.bytes);
        let result = self.run(&mut machine, arguments);
        *left = machine.steps;
        match result {
            Ok(result) => Ok(result),
            Err(Stop::Steps) => Err(CallError::Steps),
            Err(Stop::Bytes) => Err(CallError::Bytes),
            Err(Stop::Depth) => Err(CallError::Thrown("java.lang.StackOverflowError".to_owned())),
            Err(Stop::Throw(thrown)) => {
                /// Steps and bytes for the text of an exception.
                const SHOWN: u64 = 100_000;
                (machine.steps, machine.bytes) = (SHOWN, SHOWN);
                let mut text = Vec::new();
                let _ = machine.show(thrown, &mut text);
                Err(CallError::Thrown(String::from_utf16_lossy(&text)))
            }
        }
    }

    fn run(&self, machine: &mut Machine<'_>, arguments: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>, Stop> {
        for (slot, (argument, (_, ty))) in arguments.iter().zip(&self.program.arguments).enumerate() {
            if !self.program.used.get(slot).copied().unwrap_or(true) {
                continue;
            }
            let value = match argument {
                Some(bytes) => machine.decode(ty, bytes)?,
                None => Value::Null,
            };
            // empty bytes are null; a primitive argument is never called with null
            if value == Value::Null && !self.called_on_null {
                return Ok(None);
            }
            machine.frame[slot] = value;
        }
        match machine.run(&self.program.body)? {
            Flow::Return(Value::Null) => Ok(None),
            Flow::Return(value) => machine.encode(&self.returns, value).map(Some),
            _ => Ok(None),
        }
    }
}
