//! The machine that runs a compiled body: values, objects, and a budget of steps and bytes.
//!
//! A value is a number, null, or the index of an object. Objects live until the call ends, so that
//! circles of objects cost nothing. Every expression costs a step, every object its bytes; who runs
//! out of either is stopped, and no body can catch that.

pub(crate) mod code;
mod codec;
mod objects;
mod run;
mod text;

use smallvec::SmallVec;

pub(crate) use objects::{Buffer, Items, Kind, Object, Order, Sequence, Table};
pub(crate) use run::{Flow, SWITCH, zero};
pub(crate) use text::{rounding_names, show_address};

use crate::class::{JavaClass, Prim};
use code::Program;

/// Bytes that are copied or compared for one step: some nanoseconds, as other steps take.
const BYTES_PER_STEP: usize = 32;

/// Bits of a machine word.
const WORD_BITS: u64 = 64;

/// Products of two words that are computed for one step.
const PRODUCTS_PER_STEP: u64 = 32;

/// A value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Byte(i8),
    Short(i16),
    Char(u16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    /// An object, by its index.
    Ref(u32),
}

/// Why a body stops without a value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Stop {
    /// An exception, which a body may catch.
    Throw(Value),
    /// The steps are used up.
    Steps,
    /// The bytes are used up.
    Bytes,
    /// Calls of lambdas or walks of nested collections are too deep: Java's stack overflow.
    Depth,
}

pub(crate) type Result<T = Value> = std::result::Result<T, Stop>;

/// The body of a method of the library.
pub(crate) type Body = fn(&mut Machine<'_>, &[Value]) -> Result;

/// Calls of lambdas within each other, and walks of nested collections.
const DEPTH_MAX: u32 = 64;

/// The bytes that every object costs besides its content.
const OBJECT_SIZE: u64 = 64;

/// The state of one call.
pub(crate) struct Machine<'a> {
    pub program: &'a Program,
    pub frame: SmallVec<[Value; 8]>,
    pub objects: Vec<Object>,
    pub steps: u64,
    pub bytes: u64,
    pub depth: u32,
    /// For each text constant its object once it was used.
    texts: Vec<Value>,
    /// Constants of enumerations, once they were used.
    statics: Vec<(JavaClass, u8, Value)>,
}

impl<'a> Machine<'a> {
    pub fn new(program: &'a Program, steps: u64, bytes: u64) -> Self {
        let frame = SmallVec::from_elem(Value::Null, program.slots);
        Self { program, frame, objects: Vec::new(), steps, bytes, depth: 0, texts: Vec::new(), statics: Vec::new() }
    }

    /// Takes steps.
    pub fn step(&mut self, count: usize) -> Result<()> {
        match self.steps.checked_sub(count as u64) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(Stop::Steps),
        }
    }

    /// Takes the steps of copying or comparing bytes. A body may ask for it again and again, so
    /// nothing that grows with a value is free.
    pub fn step_bytes(&mut self, count: usize) -> Result<()> {
        self.step(count / BYTES_PER_STEP)
    }

    /// Takes the steps of turning a number of so many bits into digits, or of comparing it with a
    /// power of ten.
    pub fn step_digits(&mut self, bits: u64) -> Result<()> {
        let words = bits / WORD_BITS;
        self.step(usize::try_from(words * words / PRODUCTS_PER_STEP).unwrap_or(usize::MAX))
    }

    /// The bytes of a value that is compared, hashed or copied as a whole; zero for others, such as
    /// collections, whose elements take their own steps.
    pub fn whole_size(&self, value: Value) -> usize {
        match self.peek(value) {
            Some(
                object @ (Object::Text(_)
                | Object::Integer(_)
                | Object::Decimal(_)
                | Object::Buffer(_)
                | Object::Tuple(..)
                | Object::Udt(..)),
            ) => object.size(),
            _ => 0,
        }
    }

    /// Takes bytes before they are allocated.
    pub fn charge(&mut self, count: usize) -> Result<()> {
        self.step(count / 16)?;
        match self.bytes.checked_sub(count as u64) {
            Some(left) => {
                self.bytes = left;
                Ok(())
            }
            None => Err(Stop::Bytes),
        }
    }

    /// Adds an object.
    pub fn alloc(&mut self, object: Object) -> Result {
        self.charge(OBJECT_SIZE as usize + object.size())?;
        let at = u32::try_from(self.objects.len()).map_err(|_| Stop::Bytes)?;
        self.objects.push(object);
        Ok(Value::Ref(at))
    }

    /// Runs with one more level of depth.
    pub fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            return Err(Stop::Depth);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// An exception with a message.
    pub fn throw<T>(&mut self, class: JavaClass, message: impl AsRef<str>) -> Result<T> {
        let message = self.string(message.as_ref())?;
        self.throw_with(class, message)
    }

    /// An exception with a message that is a value; null: without one.
    pub fn throw_with<T>(&mut self, class: JavaClass, message: Value) -> Result<T> {
        let thrown = self.alloc(Object::Throwable { class, message, cause: Value::Null })?;
        Err(Stop::Throw(thrown))
    }

    pub fn null_pointer<T>(&mut self) -> Result<T> {
        self.throw_with(JavaClass::NullPointerException, Value::Null)
    }

    /// The exception for a value whose class is not the expected one.
    pub fn wrong_class<T>(&mut self, value: Value, wanted: &str) -> Result<T> {
        match self.class_of(value) {
            None => self.null_pointer(),
            Some(class) => {
                let message = format!("class {} cannot be cast to class {wanted}", class.full_name());
                self.throw(JavaClass::ClassCastException, message)
            }
        }
    }

    /// An object. Null and numbers throw.
    pub fn object(&mut self, value: Value) -> Result<&mut Object> {
        match value {
            Value::Ref(at) if (at as usize) < self.objects.len() => Ok(&mut self.objects[at as usize]),
            _ => self.wrong_class(value, "java.lang.Object"),
        }
    }

    /// An object, if the value is one.
    pub fn peek(&self, value: Value) -> Option<&Object> {
        match value {
            Value::Ref(at) => self.objects.get(at as usize),
            _ => None,
        }
    }

    pub fn int(&mut self, value: Value) -> Result<i32> {
        match value {
            Value::Int(value) => Ok(value),
            Value::Short(value) => Ok(value.into()),
            Value::Byte(value) => Ok(value.into()),
            Value::Char(value) => Ok(value.into()),
            other => self.wrong_class(other, "java.lang.Integer"),
        }
    }

    pub fn long(&mut self, value: Value) -> Result<i64> {
        match value {
            Value::Long(value) => Ok(value),
            other => self.int(other).map(i64::from),
        }
    }

    pub fn double(&mut self, value: Value) -> Result<f64> {
        match value {
            Value::Double(value) => Ok(value),
            Value::Float(value) => Ok(value.into()),
            Value::Long(value) => Ok(value as f64),
            other => self.int(other).map(f64::from),
        }
    }

    pub fn float(&mut self, value: Value) -> Result<f32> {
        match value {
            Value::Float(value) => Ok(value),
            Value::Long(value) => Ok(value as f32),
            other => self.int(other).map(|value| value as f32),
        }
    }

    pub fn bool(&mut self, value: Value) -> Result<bool> {
        match value {
            Value::Bool(value) => Ok(value),
            other => self.wrong_class(other, "java.lang.Boolean"),
        }
    }

    pub fn char(&mut self, value: Value) -> Result<u16> {
        match value {
            Value::Char(value) => Ok(value),
            other => self.wrong_class(other, "java.lang.Character"),
        }
    }

    /// The code units of a string or a builder.
    pub fn units(&mut self, value: Value) -> Result<&[u16]> {
        if !matches!(self.peek(value), Some(Object::Text(_) | Object::Builder(_, _))) {
            return self.wrong_class(value, "java.lang.String");
        }
        match self.peek(value) {
            Some(Object::Text(text) | Object::Builder(text, _)) => Ok(text),
            _ => Err(Stop::Depth),
        }
    }

    /// A copy of the code units of a string or a builder.
    pub fn copied_units(&mut self, value: Value) -> Result<Vec<u16>> {
        let size = size_of_val(self.units(value)?);
        self.step_bytes(size)?;
        Ok(self.units(value)?.to_vec())
    }

    /// A new string.
    pub fn string(&mut self, text: &str) -> Result {
        self.text(text.encode_utf16().collect())
    }

    /// A new string of code units.
    pub fn text(&mut self, units: Vec<u16>) -> Result {
        self.alloc(Object::Text(units))
    }

    /// A string as Rust has it; lone surrogates become question marks, as in Java's UTF-8.
    pub fn rust_string(&mut self, value: Value) -> Result<String> {
        let size = size_of_val(self.units(value)?);
        self.step_bytes(size)?;
        let units = self.units(value)?;
        Ok(char::decode_utf16(units.iter().copied()).map(|unit| unit.unwrap_or('?')).collect())
    }

    /// The class of a value; None: null.
    pub fn class_of(&self, value: Value) -> Option<JavaClass> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(_) => JavaClass::Boolean,
            Value::Byte(_) => JavaClass::Byte,
            Value::Short(_) => JavaClass::Short,
            Value::Char(_) => JavaClass::Character,
            Value::Int(_) => JavaClass::Integer,
            Value::Long(_) => JavaClass::Long,
            Value::Float(_) => JavaClass::Float,
            Value::Double(_) => JavaClass::Double,
            Value::Ref(_) => self.peek(value)?.class(),
        })
    }
}

/// The value of a numeric conversion, as a cast of Java: integers are cut, floating numbers
/// saturate. None: the value is no number.
pub(crate) fn convert(to: Prim, value: Value) -> Option<Value> {
    let whole = match value {
        Value::Byte(value) => value.into(),
        Value::Short(value) => value.into(),
        Value::Char(value) => value.into(),
        Value::Int(value) => value.into(),
        Value::Long(value) => value,
        // to byte, short and char by way of int
        Value::Float(value) if to == Prim::Long => value as i64,
        Value::Float(value) => (value as i32).into(),
        Value::Double(value) if to == Prim::Long => value as i64,
        Value::Double(value) => (value as i32).into(),
        Value::Bool(_) if to == Prim::Boolean => return Some(value),
        _ => return None,
    };
    Some(match to {
        Prim::Boolean => return None,
        Prim::Byte => Value::Byte(whole as i8),
        Prim::Short => Value::Short(whole as i16),
        Prim::Char => Value::Char(whole as u16),
        Prim::Int => Value::Int(whole as i32),
        Prim::Long => Value::Long(whole),
        Prim::Float => Value::Float(match value {
            Value::Float(value) => value,
            Value::Double(value) => value as f32,
            _ => whole as f32,
        }),
        Prim::Double => Value::Double(match value {
            Value::Float(value) => value.into(),
            Value::Double(value) => value,
            _ => whole as f64,
        }),
    })
}
