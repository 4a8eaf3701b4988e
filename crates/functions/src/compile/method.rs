//! Calls: which method of the library is meant (JLS 15.12), and what its type variables stand for.

use super::{Compiler, Result, Typed};
use crate::ast::{Expr, Kind, LambdaBody, TypeName};
use crate::class::{JavaClass, Type};
use crate::compile_error::{CompileError, Place};
use crate::library::{LIBRARY, Method};
use crate::machine::code::ExprCode;

/// Type variables of a signature.
const VARIABLES: usize = 7;

/// The types that the variables of a signature stand for.
type Bindings = [Option<Type>; VARIABLES];

/// An argument: a value, or an expression whose type depends on the method.
enum Argument<'a> {
    Value(Typed, Place),
    Function(&'a Expr),
}

/// How an argument is converted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Strict,
    Loose,
    Varargs,
}

impl Compiler {
    pub(super) fn call(
        &mut self,
        target: Option<&Expr>,
        name: &str,
        arguments: &[Expr],
        place: Place,
        expected: Option<&Type>,
    ) -> Result<Typed> {
        let Some(target) = target else {
            return Err(CompileError::new(
                place,
                format!("The method {name} is undefined or not supported in user-defined functions"),
            ));
        };
        if let Some(class) = self.class_named(target) {
            let bindings = Bindings::default();
            return self.invoke(class, name, None, bindings, arguments, place, expected);
        }
        if let Kind::Name(first) = &target.kind
            && first != "udfContext"
            && !self.variables.iter().any(|known| known.is_visible && known.name == *first)
        {
            return Err(CompileError::new(target.place, format!("{first} cannot be resolved")));
        }
        let target = self.expression(target, None)?;
        let class = match &target.ty {
            Type::Class(class, _) => *class,
            Type::Array(element) if name == "clone" && arguments.is_empty() => {
                let body: crate::machine::Body = |m, a| {
                    let copy = m.object(a[0])?.clone();
                    m.alloc(copy)
                };
                let ty = Type::Array(element.clone());
                return Ok(Typed::new(ExprCode::Call(body, true, Box::new([target.ex])), ty));
            }
            Type::Array(_) => JavaClass::Object,
            other => {
                return Err(CompileError::new(place, format!("Cannot invoke {name}() on the type {other}")));
            }
        };
        let mut bindings = Bindings::default();
        if let Type::Class(_, arguments) = &target.ty {
            for (at, argument) in arguments.iter().enumerate().take(VARIABLES) {
                bindings[at] = Some(argument.clone());
            }
        }
        self.invoke(class, name, Some(target), bindings, arguments, place, expected)
    }

    pub(super) fn create(
        &mut self,
        name: &TypeName,
        arguments: &[Expr],
        place: Place,
        expected: Option<&Type>,
    ) -> Result<Typed> {
        let ty = self.resolve(name)?;
        let Type::Class(class, given) = &ty else {
            return Err(CompileError::new(place, format!("Cannot instantiate the type {ty}")));
        };
        let mut bindings = Bindings::default();
        for (at, argument) in given.iter().enumerate().take(VARIABLES) {
            bindings[at] = Some(argument.clone());
        }
        let is_diamond = name.arguments.as_ref().is_some_and(Vec::is_empty);
        if let (true, Some(Type::Class(_, wanted))) = (is_diamond, expected) {
            for (at, argument) in wanted.iter().enumerate().take(class.arity().min(VARIABLES)) {
                bindings[at] = Some(argument.clone());
            }
        }
        if LIBRARY.find(*class, "new").is_empty() {
            let text = format!("Cannot instantiate the type {ty}, or it is not supported in user-defined functions");
            return Err(CompileError::new(place, text));
        }
        let made = self.invoke(*class, "new", None, bindings, arguments, place, expected)?;
        // a raw type has no arguments
        if given.is_empty() && !is_diamond {
            return Ok(Typed { ty, ..made });
        }
        Ok(made)
    }

    #[expect(clippy::too_many_arguments, reason = "a call has as many parts")]
    fn invoke(
        &mut self,
        class: JavaClass,
        name: &str,
        receiver: Option<Typed>,
        bindings: Bindings,
        arguments: &[Expr],
        place: Place,
        expected: Option<&Type>,
    ) -> Result<Typed> {
        let mut given = Vec::new();
        for argument in arguments {
            given.push(match &argument.kind {
                Kind::Lambda(..) | Kind::Reference(..) => Argument::Function(argument),
                // `Comparator.comparing(x -> …)`: what x is follows from the method that takes it
                Kind::Call(Some(target), _, inner)
                    if self.class_named(target).is_some()
                        && inner.iter().any(|part| matches!(part.kind, Kind::Lambda(..) | Kind::Reference(..))) =>
                {
                    Argument::Function(argument)
                }
                _ => {
                    // diamonds and generic methods as arguments are resolved without a target
                    Argument::Value(self.expression(argument, None)?, argument.place)
                }
            });
        }
        let methods = LIBRARY.find(class, name);
        let shown = || {
            let types: Vec<String> = given
                .iter()
                .map(|argument| match argument {
                    Argument::Value(typed, _) => typed.ty.to_string(),
                    Argument::Function(_) => "->".to_owned(),
                })
                .collect();
            let name = if name == "new" { class.name() } else { name };
            format!("{name}({})", types.join(", "))
        };
        if methods.is_empty() {
            let text = format!(
                "The method {} of the type {} is undefined or not supported in user-defined functions",
                shown(),
                class.name()
            );
            return Err(CompileError::new(place, text));
        }
        let fitting: Vec<&Method> =
            methods.iter().copied().filter(|method| method.is_static || receiver.is_some()).collect();
        let mut chosen = None;
        for phase in [Phase::Strict, Phase::Loose, Phase::Varargs] {
            let applicable: Vec<&Method> =
                fitting.iter().copied().filter(|method| self.applies(method, &bindings, &given, phase)).collect();
            if !applicable.is_empty() {
                chosen = Some((most_specific(&applicable), phase));
                break;
            }
        }
        let Some((Some(method), phase)) = chosen else {
            if !methods.is_empty() && fitting.is_empty() {
                let text = format!(
                    "Cannot make a static reference to the non-static method {name} from the type {}",
                    class.name()
                );
                return Err(CompileError::new(place, text));
            }
            let text = format!(
                "The method {} in the type {} is not applicable for the arguments, ambiguous, or not supported in user-defined functions",
                shown(),
                class.name()
            );
            return Err(CompileError::new(place, text));
        };
        self.applied(method, phase, receiver, bindings, given, expected)
    }

    /// Whether a method takes the arguments.
    fn applies(&mut self, method: &Method, bindings: &Bindings, given: &[Argument<'_>], phase: Phase) -> bool {
        let count = method.parameters.len();
        if phase == Phase::Varargs {
            if !method.varargs || given.len() + 1 < count {
                return false;
            }
        } else if given.len() != count {
            return false;
        }
        let mut bindings = bindings.clone();
        given.iter().enumerate().all(|(at, argument)| {
            let Some(parameter) = parameter_at(method, at, phase) else { return false };
            match argument {
                Argument::Function(expression) => match (parameter.shape(), &expression.kind) {
                    (Some((types, _)), Kind::Lambda(parameters, _)) => types.len() == parameters.len(),
                    (Some(_), Kind::Reference(..) | Kind::Call(..)) => true,
                    _ => false,
                },
                Argument::Value(typed, _) => {
                    bind(&parameter, &typed.ty, &mut bindings);
                    let wanted = substitute(&parameter, &bindings, false);
                    if phase == Phase::Strict && typed.ty.is_reference() != wanted.is_reference() {
                        return false;
                    }
                    self.assign_loosely(typed.clone(), &wanted, false).is_some()
                }
            }
        })
    }

    fn applied(
        &mut self,
        method: &Method,
        phase: Phase,
        receiver: Option<Typed>,
        mut bindings: Bindings,
        given: Vec<Argument<'_>>,
        expected: Option<&Type>,
    ) -> Result<Typed> {
        for (at, argument) in given.iter().enumerate() {
            if let (Argument::Value(typed, _), Some(parameter)) = (argument, parameter_at(method, at, phase)) {
                bind(&parameter, &typed.ty, &mut bindings);
            }
        }
        // what is known of the result helps the variables that the arguments leave open
        if let Some(expected) = expected {
            let mut more = bindings.clone();
            bind(&method.returns, expected, &mut more);
            bindings.iter_mut().zip(more).for_each(|(known, more)| *known = known.take().or(more));
        }
        let mut values = Vec::new();
        let has_receiver = !method.is_static;
        if let (true, Some(receiver)) = (has_receiver, receiver) {
            values.push(receiver.ex);
        }
        let mut rest = Vec::new();
        for (at, argument) in given.into_iter().enumerate() {
            let Some(parameter) = parameter_at(method, at, phase) else { continue };
            let ex = match argument {
                Argument::Value(typed, place) => {
                    let wanted = substitute(&parameter, &bindings, false);
                    match self.assign_loosely(typed.clone(), &wanted, false) {
                        Some(ex) => ex,
                        None => return super::mismatch(place, &typed.ty, &wanted),
                    }
                }
                Argument::Function(expression) => self.function(expression, &parameter, &mut bindings)?,
            };
            if phase == Phase::Varargs && at + 1 >= method.parameters.len() {
                rest.push(ex);
            } else {
                values.push(ex);
            }
        }
        if phase == Phase::Varargs {
            let element = match method.parameters.last() {
                Some(Type::Array(element)) => substitute(element, &bindings, true),
                _ => Type::object(),
            };
            values.push(ExprCode::ArrayLiteral(element, rest));
        }
        let returns = substitute(&method.returns, &bindings, true);
        Ok(Typed::new(ExprCode::Call(method.body, has_receiver, values.into()), returns))
    }

    /// A lambda or a reference to a method as an argument.
    fn function(&mut self, expression: &Expr, parameter: &Type, bindings: &mut Bindings) -> Result<ExprCode> {
        let Some((types, result)) = parameter.shape() else {
            return Err(CompileError::new(
                expression.place,
                "The target type of this expression must be a functional interface",
            ));
        };
        if matches!(expression.kind, Kind::Call(..)) {
            let wanted = substitute(parameter, bindings, true);
            let typed = self.expression(expression, Some(&wanted))?;
            return self.assign(typed, &wanted, expression.place);
        }
        let types: Vec<Type> = types.iter().map(|ty| substitute(ty, bindings, true)).collect();
        let known = substitute(&result, bindings, false);
        let wanted = (!has_variables(&known)).then_some(known);
        let (ex, returned) = match &expression.kind {
            Kind::Lambda(parameters, body) => self.lambda(parameters, body, &types, wanted, expression.place)?,
            _ => self.reference(expression, &types, wanted)?,
        };
        if returned != Type::Void {
            bind(&result, &returned, bindings);
        }
        Ok(ex)
    }

    /// `T::name` as the lambda that it stands for.
    pub(super) fn reference(
        &mut self,
        expression: &Expr,
        types: &[Type],
        result: Option<Type>,
    ) -> Result<(ExprCode, Type)> {
        let Kind::Reference(target, name) = &expression.kind else {
            return Err(CompileError::new(expression.place, "a reference to a method is expected"));
        };
        let place = expression.place;
        let names: Vec<String> = (0..types.len()).map(|at| format!(" {}-{at}", self.variables.len())).collect();
        let variables: Vec<Expr> = names.iter().map(|name| Expr { place, kind: Kind::Name(name.clone()) }).collect();
        let parameters: Vec<_> = names.iter().map(|name| (None, name.clone())).collect();
        let mut forms = Vec::new();
        if name == "new" {
            let Some(class) = self.class_named(target) else {
                return Err(CompileError::new(place, "The class of a reference to a constructor is not known"));
            };
            let arguments = (class.arity() > 0).then(Vec::new);
            let ty =
                TypeName { place, name: format!("{}.{}", class.package(), class.name()), arguments, dimensions: 0 };
            forms.push(Kind::New(ty, variables));
        } else {
            forms.push(Kind::Call(Some(target.clone()), name.clone(), variables.clone()));
            if let (true, Some((first, rest))) = (self.class_named(target).is_some(), variables.split_first()) {
                forms.push(Kind::Call(Some(Box::new(first.clone())), name.clone(), rest.to_vec()));
            }
        }
        // a form that does not apply leaves the lambda in the middle
        let (targets, catching) = (std::mem::take(&mut self.targets), std::mem::take(&mut self.catching));
        let mut outcome = Err(CompileError::new(place, format!("The method {name} is not applicable")));
        for kind in forms {
            let body = LambdaBody::Value(Expr { place, kind });
            let (captures, lambdas) = (self.captures.len(), self.program.lambdas.len());
            let returns = self.returns.clone();
            outcome = self.lambda(&parameters, &body, types, result.clone(), place);
            if outcome.is_ok() {
                break;
            }
            self.captures.truncate(captures);
            self.program.lambdas.truncate(lambdas);
            self.returns = returns;
            self.variables
                .iter_mut()
                .filter(|variable| names.contains(&variable.name))
                .for_each(|variable| variable.is_visible = false);
        }
        (self.targets, self.catching) = (targets, catching);
        outcome
    }
}

fn parameter_at(method: &Method, at: usize, phase: Phase) -> Option<Type> {
    let last = method.parameters.len().checked_sub(1);
    if phase == Phase::Varargs && last.is_some_and(|last| at >= last) {
        return match method.parameters.last() {
            Some(Type::Array(element)) => Some((**element).clone()),
            _ => None,
        };
    }
    method.parameters.get(at).cloned()
}

/// Binds the variables of a parameter by the type of its argument.
fn bind(parameter: &Type, given: &Type, bindings: &mut Bindings) {
    match (parameter, given) {
        (_, Type::Null | Type::Void) => {}
        (Type::Var(at), given) => {
            if let Some(place @ None) = bindings.get_mut(usize::from(*at)) {
                *place = Some(given.boxed());
            } else if let Some(Some(known)) = bindings.get_mut(usize::from(*at)).filter(|_| *at >= 3) {
                // two arguments of one variable: the wider type
                let given = given.boxed();
                if !given.is_subtype(known) {
                    *known = if known.is_subtype(&given) { given } else { Type::object() };
                }
            }
        }
        (Type::Class(_, parameters), Type::Class(_, given)) => {
            parameters.iter().zip(given).for_each(|(parameter, given)| bind(parameter, given, bindings));
        }
        (Type::Array(parameter), Type::Array(given)) => bind(parameter, given, bindings),
        _ => {}
    }
}

fn has_variables(ty: &Type) -> bool {
    match ty {
        Type::Var(_) => true,
        Type::Class(_, arguments) => arguments.iter().any(has_variables),
        Type::Array(element) => has_variables(element),
        _ => false,
    }
}

/// A type with its variables replaced; those that are not bound become Object, if wanted.
fn substitute(ty: &Type, bindings: &Bindings, closed: bool) -> Type {
    match ty {
        Type::Var(at) => match bindings.get(usize::from(*at)).cloned().flatten() {
            Some(bound) => bound,
            None if closed => Type::object(),
            None => ty.clone(),
        },
        Type::Class(class, arguments) => {
            Type::Class(*class, arguments.iter().map(|argument| substitute(argument, bindings, closed)).collect())
        }
        Type::Array(element) => Type::Array(Box::new(substitute(element, bindings, closed))),
        other => other.clone(),
    }
}

/// The method whose parameters are all at least as narrow as those of each other one.
fn most_specific<'a>(methods: &[&'a Method]) -> Option<&'a Method> {
    let narrower = |a: &Type, b: &Type| match (a, b) {
        (Type::Prim(a), Type::Prim(b)) => a.widens_to(*b),
        (a, b) if a.is_reference() && b.is_reference() => match (a, b) {
            (Type::Var(_), Type::Var(_)) => true,
            (Type::Var(_), _) => false,
            _ => a.is_subtype(b),
        },
        // of a primitive and a reference the earlier phases have decided
        _ => true,
    };
    methods
        .iter()
        .copied()
        .find(|method| {
            methods.iter().all(|other| {
                method.parameters.len() == other.parameters.len()
                    && method.parameters.iter().zip(&other.parameters).all(|(a, b)| narrower(a, b))
            })
        })
        .or_else(|| methods.first().copied())
}
