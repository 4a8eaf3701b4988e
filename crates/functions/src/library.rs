//! The methods that bodies may call: for each class their signatures and what they do, a file a
//! family. What is not in the table is refused when a body is compiled.
//!
//! A signature is written as in Java. Its type variables are `E`, `K`, `A` (the class's first),
//! `V`, `B` (the second), `C` (the third), and `T`, `R`, `U`, `W` of the method.

mod collections;
mod cql;
mod functional;
mod lang;
mod math;
mod text;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::ast::TypeName;
use crate::class::{JavaClass, Prim, Type};
use crate::machine::Body;
use crate::parser;

/// A method.
#[derive(Debug)]
pub(crate) struct Method {
    pub is_static: bool,
    pub parameters: Vec<Type>,
    /// Whether the last parameter, an array, takes any number of arguments.
    pub varargs: bool,
    pub returns: Type,
    pub body: Body,
}

/// The methods of a class by name; constructors are called `new`.
#[derive(Default)]
pub(crate) struct MethodTable {
    methods: BTreeMap<(JavaClass, String), Vec<Method>>,
}

/// All methods.
pub(crate) static LIBRARY: LazyLock<MethodTable> = LazyLock::new(|| {
    let mut table = MethodTable::default();
    lang::declare(&mut table);
    text::declare(&mut table);
    math::declare(&mut table);
    collections::declare(&mut table);
    functional::declare(&mut table);
    cql::declare(&mut table);
    table
});

impl MethodTable {
    /// Adds methods of a class.
    fn add_methods(&mut self, class: JavaClass, methods: &[(&str, Body)]) {
        for (signature, body) in methods {
            let (name, method) = read(signature, *body);
            self.methods.entry((class, name)).or_default().push(method);
        }
    }

    /// The methods of a name that a class has or inherits, the nearest class first.
    pub fn find(&self, class: JavaClass, name: &str) -> Vec<&Method> {
        let mut found: Vec<&Method> = Vec::new();
        let mut waiting = vec![class];
        let mut at = 0;
        while let Some(class) = waiting.get(at).copied() {
            at += 1;
            for method in self.methods.get(&(class, name.to_owned())).into_iter().flatten() {
                // a method of a subtype hides that of its supertype
                if !found.iter().any(|known| known.parameters == method.parameters) {
                    found.push(method);
                }
            }
            if name != "new" {
                waiting.extend(class.parents());
                if at == waiting.len() && !waiting.contains(&JavaClass::Object) {
                    waiting.push(JavaClass::Object);
                }
            }
        }
        found
    }
}

/// Reads a signature such as `static int max(int, int)`.
fn read(signature: &str, body: Body) -> (String, Method) {
    let (head, parameters) = signature.split_once('(').expect("a signature of the library has parameters");
    let parameters = parameters.strip_suffix(')').expect("a signature of the library ends with a bracket");
    let (head, is_static) = match head.strip_prefix("static ") {
        Some(head) => (head, true),
        None => (head, false),
    };
    let (returns, name) = match head.rsplit_once(' ') {
        Some((returns, name)) => (ty(returns), name),
        None => (Type::Void, head),
    };
    let varargs = parameters.ends_with("...");
    let mut list = Vec::new();
    let (mut depth, mut start) = (0, 0);
    let text = parameters.replace("...", "[]");
    for (at, c) in text.char_indices().chain([(text.len(), ',')]) {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            ',' if depth == 0 => {
                if !text[start..at].trim().is_empty() {
                    list.push(ty(text[start..at].trim()));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    (name.to_owned(), Method { is_static: is_static || name == "new", parameters: list, varargs, returns, body })
}

fn ty(text: &str) -> Type {
    of_name(&parser::parse_type(text).expect("a type of the library is written well"))
}

fn of_name(name: &TypeName) -> Type {
    let mut ty = match name.name.as_str() {
        "void" => Type::Void,
        "E" | "K" | "A" => Type::Var(0),
        "V" | "B" => Type::Var(1),
        "C" => Type::Var(2),
        "T" => Type::Var(3),
        "R" => Type::Var(4),
        "U" => Type::Var(5),
        "W" => Type::Var(6),
        other => match (Prim::from_name(other), JavaClass::ALL.iter().find(|class| class.name() == other)) {
            (Some(prim), _) => Type::Prim(prim),
            (None, Some(class)) => Type::Class(*class, name.arguments.iter().flatten().map(of_name).collect()),
            (None, None) => unreachable!("{other} is no class of the library"),
        },
    };
    for _ in 0..name.dimensions {
        ty = Type::Array(Box::new(ty));
    }
    ty
}
