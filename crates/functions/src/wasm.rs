//! User-defined functions in WebAssembly: for what the subset of Java does not reach.
//!
//! A body is a module, as text (`(module …)`) or as base64 of its binary form. The module exports a
//! function `call` in one of two forms, which its own type tells apart:
//!
//! - **numbers**: one parameter for each argument and one result, `i32` for boolean, tinyint,
//!   smallint and int, `i64` for bigint, counter, timestamp and time, `f32` for float, `f64` for
//!   double. Only for functions that are not called with null.
//! - **bytes**: a pair `i32, i32` for each argument, the address and the length of its serialized
//!   value in the exported `memory`, or length -1 for null; an `i64` as result, the address in its
//!   upper and the length in its lower half, or lower half -1 for null. The module exports
//!   `allocate (i32) -> i32`, which gives room for the bytes of an argument.
//!
//! A module imports nothing, so that it reaches no file, clock, socket or random number. Each call
//! has an instance of its own, so that no call sees what another one left. Instructions are counted
//! against the budget's steps, and memory against its bytes.
//!
//! Cassandra has no such language: a Cassandra node in the ring keeps the function in its schema
//! and refuses calls of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use types::CqlType;
use wasmi::{
    CompilationMode, Config, EnforcedLimits, Engine, Error, ExternType, FuncType, Instance, Module, Store, StoreLimits,
    StoreLimitsBuilder, TrapCode, Val, ValType,
};

use crate::{Budget, CallError, Signature};

/// The largest body in bytes. Larger ones are refused.
pub const WASM_BODY_SIZE_MAX: usize = 256 * 1024;

/// Instructions of a module that count as one step of the budget: an instruction does less than a
/// step of a Java body.
const INSTRUCTIONS_EACH_STEP: u64 = 5;
/// The most elements of a module's tables. A table that asks for more is refused.
const TABLE_ELEMENTS_MAX: usize = 10_000;
/// Bytes of the stack of a call. A deeper recursion is an error of the call.
const STACK_BYTES_MAX: usize = 1 << 20;
/// Calls inside of a call that may be open. A deeper recursion is an error of the call.
const RECURSION_MAX: usize = 1_000;

/// The exported function.
const ENTRY: &str = "call";
/// The exported function that gives room for arguments.
const ALLOCATE: &str = "allocate";
/// The exported memory.
const MEMORY: &str = "memory";

/// A compiled module.
#[derive(Debug)]
pub(crate) struct Code {
    engine: Engine,
    module: Module,
    arguments: Vec<CqlType>,
    returns: CqlType,
    form: Form,
}

/// How values go in and out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Numbers,
    Bytes,
}

/// Compiles a body, or says why it is refused.
pub(crate) fn compile(signature: &Signature, body: &str) -> Result<Code, String> {
    if body.len() > WASM_BODY_SIZE_MAX {
        return Err(format!("The body has {} bytes, more than {WASM_BODY_SIZE_MAX}", body.len()));
    }
    let binary = if body.trim_start().starts_with("(module") {
        body.as_bytes().to_vec()
    } else {
        let signs: String = body.split_ascii_whitespace().collect();
        STANDARD.decode(signs).map_err(|error| {
            format!("The body is neither a module as text, which begins with (module, nor base64 of one: {error}")
        })?
    };
    let engine = Engine::new(&config());
    let module = Module::new(&engine, binary).map_err(|error| error.to_string())?;
    if let Some(import) = module.imports().next() {
        return Err(format!("The module imports {}.{}; a function has no imports", import.module(), import.name()));
    }
    let form = form_of(signature, &module)?;
    let arguments = signature.arguments.iter().map(|(_, ty)| ty.clone()).collect();
    Ok(Code { engine, module, arguments, returns: signature.returns.clone(), form })
}

fn config() -> Config {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        .compilation_mode(CompilationMode::Eager)
        .enforced_limits(EnforcedLimits::strict())
        .ignore_custom_sections(true)
        .set_max_recursion_depth(RECURSION_MAX)
        .set_max_stack_height(STACK_BYTES_MAX);
    config
}

/// The number type that stands for a CQL type; None: it has none.
fn number_of(ty: &CqlType) -> Option<ValType> {
    match ty {
        CqlType::Boolean | CqlType::TinyInt | CqlType::SmallInt | CqlType::Int => Some(ValType::I32),
        CqlType::BigInt | CqlType::Counter | CqlType::Timestamp | CqlType::Time => Some(ValType::I64),
        CqlType::Float => Some(ValType::F32),
        CqlType::Double => Some(ValType::F64),
        _ => None,
    }
}

fn form_of(signature: &Signature, module: &Module) -> Result<Form, String> {
    let types = signature.arguments.iter().map(|(_, ty)| ty);
    let numbers: Option<Vec<ValType>> = types.map(number_of).collect();
    let as_numbers =
        numbers.zip(number_of(&signature.returns)).map(|(arguments, result)| FuncType::new(arguments, [result]));
    let as_numbers = as_numbers.filter(|_| !signature.called_on_null);
    let pairs = vec![ValType::I32; 2 * signature.arguments.len()];
    let as_bytes = FuncType::new(pairs, [ValType::I64]);
    let Some(ExternType::Func(found)) = module.get_export(ENTRY) else {
        return Err(format!("The module exports no function \"{ENTRY}\""));
    };
    if as_numbers.as_ref() == Some(&found) {
        return Ok(Form::Numbers);
    }
    if found != as_bytes {
        let numbers = as_numbers.map(|ty| format!(" or {}", shown(&ty))).unwrap_or_default();
        return Err(format!("\"{ENTRY}\" is {}; it must be {}{numbers}", shown(&found), shown(&as_bytes)));
    }
    if !matches!(module.get_export(MEMORY), Some(ExternType::Memory(_))) {
        return Err(format!("The module exports no memory \"{MEMORY}\""));
    }
    let allocates = FuncType::new([ValType::I32], [ValType::I32]);
    match module.get_export(ALLOCATE) {
        Some(ExternType::Func(found)) if found == allocates => Ok(Form::Bytes),
        _ => Err(format!("The module exports no function \"{ALLOCATE}\" that is {}", shown(&allocates))),
    }
}

/// `(i32, i32) -> i64`
fn shown(ty: &FuncType) -> String {
    let list =
        |types: &[ValType]| types.iter().map(|ty| format!("{ty:?}").to_lowercase()).collect::<Vec<_>>().join(", ");
    format!("({}) -> {}", list(ty.params()), list(ty.results()))
}

/// Why a call ended.
fn ended(error: &Error) -> CallError {
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => CallError::Steps,
        Some(TrapCode::GrowthOperationLimited) => CallError::Bytes,
        _ => CallError::Thrown(format!("WebAssembly trap: {error}")),
    }
}

fn thrown(text: impl Into<String>) -> CallError {
    CallError::Thrown(text.into())
}

/// One call: an instance, and what it may still use.
struct Call<'c> {
    code: &'c Code,
    store: Store<StoreLimits>,
    instance: Instance,
}

impl Code {
    /// Calls the function; None is null, as an argument and as the result. `left`: steps that the
    /// call has left of its budget in the end.
    pub fn call(
        &self,
        arguments: &[Option<&[u8]>],
        budget: &Budget,
        left: &mut u64,
    ) -> Result<Option<Vec<u8>>, CallError> {
        let bytes = usize::try_from(budget.bytes).unwrap_or(usize::MAX);
        let limits = StoreLimitsBuilder::new().memory_size(bytes).table_elements(TABLE_ELEMENTS_MAX).build();
        let mut store = Store::new(&self.engine, limits);
        store.limiter(|limits| limits);
        let fuel = budget.steps.saturating_mul(INSTRUCTIONS_EACH_STEP);
        store.set_fuel(fuel).map_err(|error| ended(&error))?;
        let instance = Instance::new(&mut store, &self.module, &[]).map_err(|error| ended(&error))?;
        let mut call = Call { code: self, store, instance };
        let result = match self.form {
            Form::Numbers => call.with_numbers(arguments),
            Form::Bytes => call.with_bytes(arguments),
        };
        *left = call.store.get_fuel().map_or(0, |fuel| fuel / INSTRUCTIONS_EACH_STEP);
        result
    }
}

impl Call<'_> {
    fn enter(&mut self, name: &str, inputs: &[Val], result: Val) -> Result<Val, CallError> {
        let function = self.instance.get_func(&self.store, name);
        let function = function.ok_or_else(|| thrown(format!("the module has no function {name}")))?;
        let mut outputs = [result];
        function.call(&mut self.store, inputs, &mut outputs).map_err(|error| ended(&error))?;
        let [output] = outputs;
        Ok(output)
    }

    fn with_numbers(&mut self, arguments: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>, CallError> {
        let mut inputs = Vec::with_capacity(arguments.len());
        for (argument, ty) in arguments.iter().zip(&self.code.arguments) {
            // empty bytes are null, and so is the result
            let Some(bytes) = argument.filter(|bytes| !bytes.is_empty()) else { return Ok(None) };
            inputs.push(read_number(ty, bytes).ok_or_else(|| thrown("an argument has a wrong length"))?);
        }
        let output = self.enter(ENTRY, &inputs, Val::I32(0))?;
        write_number(&self.code.returns, output).map(Some)
    }

    fn with_bytes(&mut self, arguments: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>, CallError> {
        let mut inputs = Vec::with_capacity(2 * arguments.len());
        for argument in arguments {
            let Some(bytes) = argument else {
                inputs.extend([Val::I32(0), Val::I32(-1)]);
                continue;
            };
            let length = i32::try_from(bytes.len()).map_err(|_| CallError::Bytes)?;
            let Val::I32(address) = self.enter(ALLOCATE, &[Val::I32(length)], Val::I32(0))? else {
                return Err(thrown("the module gave no room"));
            };
            let memory = self.instance.get_memory(&self.store, MEMORY).ok_or_else(|| thrown("no memory"))?;
            memory
                .write(&mut self.store, address.cast_unsigned() as usize, bytes)
                .map_err(|_| thrown(format!("{ALLOCATE} gave room outside of the memory")))?;
            inputs.extend([Val::I32(address), Val::I32(length)]);
        }
        let Val::I64(packed) = self.enter(ENTRY, &inputs, Val::I64(0))? else {
            return Err(thrown("the module gave no place of the result"));
        };
        let (address, length) = ((packed.cast_unsigned() >> 32) as usize, packed as u32);
        if length == u32::MAX {
            return Ok(None);
        }
        let memory = self.instance.get_memory(&self.store, MEMORY).ok_or_else(|| thrown("no memory"))?;
        let data = memory.data(&self.store);
        let place = address..address.saturating_add(length as usize);
        let bytes = data.get(place).ok_or_else(|| thrown("the result lies outside of the memory"))?;
        types::validate(&self.code.returns, bytes).map_err(|error| {
            thrown(format!("the result is no {}: {error}", types::cql_name::print(&self.code.returns)))
        })?;
        Ok(Some(bytes.to_vec()))
    }
}

/// A serialized number; None if its length is wrong.
fn read_number(ty: &CqlType, bytes: &[u8]) -> Option<Val> {
    Some(match ty {
        CqlType::Boolean => Val::I32(i32::from(<[u8; 1]>::try_from(bytes).ok()? != [0])),
        CqlType::TinyInt => Val::I32(i8::from_be_bytes(bytes.try_into().ok()?).into()),
        CqlType::SmallInt => Val::I32(i16::from_be_bytes(bytes.try_into().ok()?).into()),
        CqlType::Int => Val::I32(i32::from_be_bytes(bytes.try_into().ok()?)),
        CqlType::Float => Val::F32(f32::from_be_bytes(bytes.try_into().ok()?).into()),
        CqlType::Double => Val::F64(f64::from_be_bytes(bytes.try_into().ok()?).into()),
        _ => Val::I64(i64::from_be_bytes(bytes.try_into().ok()?)),
    })
}

/// The serialized form of a number that a module gave.
fn write_number(ty: &CqlType, value: Val) -> Result<Vec<u8>, CallError> {
    let too_large = |value: i32| thrown(format!("the result {value} does not fit the function's type"));
    Ok(match (ty, value) {
        (CqlType::Boolean, Val::I32(value)) => vec![u8::from(value != 0)],
        (CqlType::TinyInt, Val::I32(value)) => i8::try_from(value).map_err(|_| too_large(value))?.to_be_bytes().into(),
        (CqlType::SmallInt, Val::I32(value)) => {
            i16::try_from(value).map_err(|_| too_large(value))?.to_be_bytes().into()
        }
        (_, Val::I32(value)) => value.to_be_bytes().into(),
        (_, Val::I64(value)) => value.to_be_bytes().into(),
        (_, Val::F32(value)) => f32::from(value).to_be_bytes().into(),
        (_, Val::F64(value)) => f64::from(value).to_be_bytes().into(),
        _ => return Err(thrown("the module gave no number")),
    })
}
