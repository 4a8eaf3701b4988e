//! Resolves names, checks types, and turns the tree of a body into code.
//!
//! Agrees with chapters 5, 14 and 15 of the Java Language Specification, edition 11, for the
//! subset. Looser than Java in three points: type arguments may be narrower without wildcards, a
//! variable without a first value has its zero, and checked exceptions count only where they are
//! thrown by name. Stricter in one: `==` of two boxed numbers is refused, because its outcome
//! depends on Java's caches.

mod expression;
mod method;
mod statement;

use types::{CqlType, UserType};

use crate::ast::{Expr, Kind, TypeName};
use crate::class::{JavaClass, Prim, Type};
use crate::compile_error::{CompileError, Place};
use crate::machine::Value;
use crate::machine::code::{ExprCode, Label, Program};
use crate::parser;

type Result<T> = std::result::Result<T, CompileError>;

/// The outside of a body: names and types of the arguments, the result, and whether null is an
/// argument.
pub(crate) struct BodySignature<'a> {
    pub arguments: &'a [(String, CqlType)],
    pub returns: &'a CqlType,
    pub called_on_null: bool,
    pub user_types: &'a [std::sync::Arc<UserType>],
}

/// An expression with its static type.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub ex: ExprCode,
    pub ty: Type,
    /// The value of a constant expression of a primitive type.
    pub constant: Option<Value>,
    /// The value of a constant string.
    pub text: Option<Vec<u16>>,
}

impl Typed {
    fn new(ex: ExprCode, ty: Type) -> Self {
        Self { ex, ty, constant: None, text: None }
    }

    fn constant(value: Value, prim: Prim) -> Self {
        Self { constant: Some(value), ..Self::new(ExprCode::Const(value), Type::Prim(prim)) }
    }
}

/// A variable.
struct Variable {
    name: String,
    ty: Type,
    slot: u16,
    /// The lambda in which it is declared; 0: the body itself.
    lambda: usize,
    /// How often it is set, the first value included.
    sets: usize,
    /// Where a lambda takes it along.
    captured: Option<Place>,
    is_visible: bool,
}

/// A loop, switch or labeled statement around the current one.
struct Target {
    name: Option<String>,
    label: Label,
    is_loop: bool,
    is_switch: bool,
    is_left: bool,
}

/// The receiver of `return`.
#[derive(Clone, Debug)]
enum Returns {
    Body(Type),
    /// Of a lambda: its result, if it is known before; what was returned so far.
    Lambda(Option<Type>, Option<Type>),
}

struct Compiler {
    program: Program,
    variables: Vec<Variable>,
    targets: Vec<Target>,
    labels: Label,
    returns: Returns,
    /// The slots that each lambda around takes along; the first is of the body itself.
    captures: Vec<Vec<u16>>,
    /// The classes that the try statements around catch.
    catching: Vec<Vec<JavaClass>>,
}

/// Compiles a body.
pub(crate) fn compile(signature: &BodySignature<'_>, body: &str) -> Result<Program> {
    let statements = parser::parse(body)?;
    let returns = Type::of_cql(signature.returns, !signature.called_on_null);
    let mut compiler = Compiler {
        program: Program {
            arguments: signature.arguments.to_vec(),
            returns: Some(signature.returns.clone()),
            user_types: signature.user_types.to_vec(),
            ..Program::default()
        },
        variables: Vec::new(),
        targets: Vec::new(),
        labels: 0,
        returns: Returns::Body(returns),
        captures: vec![Vec::new()],
        catching: Vec::new(),
    };
    let start = Place { line: 1, column: 1 };
    for (name, ty) in signature.arguments {
        let ty = Type::of_cql(ty, !signature.called_on_null);
        compiler.declare(name, ty, start)?;
    }
    compiler.program.used = vec![false; signature.arguments.len()];
    let (code, completes) = compiler.block(&statements)?;
    if completes {
        let lines = body.lines().count().max(1);
        let place = Place { line: u32::try_from(lines).unwrap_or(u32::MAX), column: 1 };
        return Err(CompileError::new(
            place,
            format!("This method must return a result of type {}", compiler.result()),
        ));
    }
    for variable in &compiler.variables {
        if let (Some(place), 2..) = (variable.captured, variable.sets) {
            let text = format!(
                "Local variable {} defined in an enclosing scope must be final or effectively final",
                variable.name
            );
            return Err(CompileError::new(place, text));
        }
    }
    compiler.program.body = code;
    compiler.program.slots = compiler.variables.len();
    Ok(compiler.program)
}

impl Compiler {
    fn result(&self) -> Type {
        match &self.returns {
            Returns::Body(ty) => ty.clone(),
            Returns::Lambda(expected, _) => expected.clone().unwrap_or(Type::Void),
        }
    }

    /// Declares a variable, with a slot of its own.
    fn declare(&mut self, name: &str, ty: Type, place: Place) -> Result<u16> {
        /// More variables than any body has.
        const VARIABLES_MAX: usize = 4096;
        if self.variables.iter().any(|known| known.is_visible && known.name == name) {
            return Err(CompileError::new(place, format!("Duplicate local variable {name}")));
        }
        if self.variables.len() >= VARIABLES_MAX {
            return Err(CompileError::new(place, "The code has too many variables"));
        }
        let slot = self.variables.len() as u16;
        let lambda = self.captures.len() - 1;
        self.variables.push(Variable {
            name: name.to_owned(),
            ty,
            slot,
            lambda,
            sets: 1,
            captured: None,
            is_visible: true,
        });
        Ok(slot)
    }

    /// A slot for a value between two expressions.
    fn temporary(&mut self, ty: Type, place: Place) -> Result<u16> {
        let name = format!(" {}", self.variables.len());
        self.declare(&name, ty, place)
    }

    /// Variables declared since a mark are seen no more.
    fn leave(&mut self, mark: usize) {
        self.variables[mark..].iter_mut().for_each(|variable| variable.is_visible = false);
    }

    /// A variable that is read or set.
    fn variable(&mut self, name: &str, place: Place, sets: bool) -> Option<(u16, Type)> {
        let current = self.captures.len() - 1;
        let found = self.variables.iter_mut().find(|known| known.is_visible && known.name == name)?;
        found.sets += usize::from(sets);
        let (slot, ty, lambda) = (found.slot, found.ty.clone(), found.lambda);
        if lambda < current {
            found.captured = Some(place);
            for captures in &mut self.captures[lambda + 1..] {
                if !captures.contains(&slot) {
                    captures.push(slot);
                }
            }
        }
        if let Some(used) = self.program.used.get_mut(usize::from(slot)) {
            *used = true;
        }
        Some((slot, ty))
    }

    fn next_label(&mut self) -> Label {
        self.labels += 1;
        self.labels
    }

    fn text(&mut self, text: Vec<u16>) -> u32 {
        let known = self.program.texts.iter().position(|known| *known == text);
        known.unwrap_or_else(|| {
            self.program.texts.push(text);
            self.program.texts.len() - 1
        }) as u32
    }

    /// The type of a name; `var` is refused here.
    fn resolve(&self, name: &TypeName) -> Result<Type> {
        let mut ty = match (Prim::from_name(&name.name), JavaClass::from_name(&name.name)) {
            (Some(prim), _) => Type::Prim(prim),
            (None, Some(class)) => {
                let mut arguments = Vec::new();
                for argument in name.arguments.iter().flatten() {
                    let argument = self.resolve(argument)?;
                    if !argument.is_reference() {
                        let text =
                            format!("Syntax error on token \"{argument}\", Dimensions expected after this token");
                        return Err(CompileError::new(name.place, text));
                    }
                    arguments.push(argument);
                }
                if !arguments.is_empty() && arguments.len() != class.arity() {
                    let text = format!("Incorrect number of arguments for type {}", class.name());
                    return Err(CompileError::new(name.place, text));
                }
                Type::Class(class, arguments)
            }
            (None, None) => {
                let text = format!(
                    "{} cannot be resolved to a type, or is not supported in user-defined functions",
                    name.name
                );
                return Err(CompileError::new(name.place, text));
            }
        };
        for _ in 0..name.dimensions {
            ty = Type::Array(Box::new(ty));
        }
        Ok(ty)
    }

    /// The class that an expression names, if it is no variable.
    fn class_named(&self, expression: &Expr) -> Option<JavaClass> {
        let mut parts = Vec::new();
        let mut at = expression;
        loop {
            match &at.kind {
                Kind::Field(target, name) => {
                    parts.push(name.as_str());
                    at = target;
                }
                Kind::Name(name) => {
                    if self.variables.iter().any(|known| known.is_visible && known.name == *name) {
                        return None;
                    }
                    parts.push(name.as_str());
                    break;
                }
                _ => return None,
            }
        }
        parts.reverse();
        JavaClass::from_name(&parts.join("."))
    }
}

fn mismatch<T>(place: Place, from: &Type, to: &Type) -> Result<T> {
    Err(CompileError::new(place, format!("Type mismatch: cannot convert from {from} to {to}")))
}
