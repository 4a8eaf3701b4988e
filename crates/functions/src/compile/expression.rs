//! Expressions, their types and conversions.

use super::{Compiler, Result, Returns, Typed, mismatch};
use crate::ast::{Expr, Kind, LambdaBody, TypeName};
use crate::class::{BOOLEAN, INT, JavaClass, LONG, Prim, Type};
use crate::compile_error::{CompileError, Place};
use crate::machine::code::{Cmp, ExprCode, Lambda, Op, Program, StmtCode};
use crate::machine::{Machine, Value, convert};

/// Steps and bytes for the constants of a body.
const CONSTANT_STEPS: u64 = 10_000;
const CONSTANT_BYTES: u64 = 1 << 20;

impl Compiler {
    /// An expression that has a value. `expected` helps lambdas, `<>` and generic methods.
    pub(super) fn expression(&mut self, expression: &Expr, expected: Option<&Type>) -> Result<Typed> {
        let typed = self.any_expression(expression, expected)?;
        if typed.ty == Type::Void {
            return Err(CompileError::new(expression.place, "The expression has no value (void)"));
        }
        Ok(typed)
    }

    /// An expression, perhaps of type void.
    pub(super) fn any_expression(&mut self, expression: &Expr, expected: Option<&Type>) -> Result<Typed> {
        let place = expression.place;
        match &expression.kind {
            Kind::Null => Ok(Typed::new(ExprCode::Const(Value::Null), Type::Null)),
            Kind::Bool(value) => Ok(Typed::constant(Value::Bool(*value), Prim::Boolean)),
            Kind::Int(value) => match i32::try_from(*value) {
                Ok(value) => Ok(Typed::constant(Value::Int(value), Prim::Int)),
                Err(_) => Err(CompileError::new(place, format!("The literal {value} of type int is out of range"))),
            },
            Kind::Long(value, decimal) => {
                if *decimal && *value > i64::MAX as u64 {
                    return Err(CompileError::new(place, format!("The literal {value}L of type long is out of range")));
                }
                Ok(Typed::constant(Value::Long(*value as i64), Prim::Long))
            }
            Kind::Float(value) => Ok(Typed::constant(Value::Float(*value), Prim::Float)),
            Kind::Double(value) => Ok(Typed::constant(Value::Double(*value), Prim::Double)),
            Kind::Char(value) => Ok(Typed::constant(Value::Char(*value), Prim::Char)),
            Kind::Text(value) => {
                let at = self.text(value.clone());
                Ok(Typed { text: Some(value.clone()), ..Typed::new(ExprCode::Text(at), Type::of(JavaClass::String)) })
            }
            Kind::Name(name) => self.name(name, place),
            Kind::Field(target, name) => self.field(target, name, place),
            Kind::Call(target, name, arguments) => self.call(target.as_deref(), name, arguments, place, expected),
            Kind::New(ty, arguments) => self.create(ty, arguments, place, expected),
            Kind::NewArray(ty, sizes, dimensions) => {
                let mut element = self.resolve(ty)?;
                for _ in 1..*dimensions {
                    element = Type::Array(Box::new(element));
                }
                let mut counts = Vec::new();
                for size in sizes {
                    let typed = self.expression(size, None)?;
                    counts.push(self.promoted_int(typed, size.place)?);
                }
                Ok(Typed::new(ExprCode::NewArray(element.clone(), counts), Type::Array(Box::new(element))))
            }
            Kind::ArrayLiteral(ty, items) => {
                let ty = match (ty, expected) {
                    (Some(ty), _) => self.resolve(ty)?,
                    (None, Some(expected)) => expected.clone(),
                    (None, None) => Type::Null,
                };
                let Type::Array(element) = &ty else {
                    return Err(CompileError::new(
                        place,
                        format!("Type mismatch: cannot convert from an array to {ty}"),
                    ));
                };
                let mut values = Vec::new();
                for item in items {
                    let typed = self.expression(item, Some(element))?;
                    values.push(self.assign(typed, element, item.place)?);
                }
                Ok(Typed::new(ExprCode::ArrayLiteral((**element).clone(), values), ty.clone()))
            }
            Kind::Index(array, index) => {
                let (array, index, element) = self.element(array, index)?;
                Ok(Typed::new(ExprCode::Index(Box::new((array, index))), element))
            }
            Kind::Unary(operator, of) => self.unary(operator, of, place),
            Kind::Step(change, post, target) => self.change(*change, *post, target, place),
            Kind::Binary(operator, left, right) => {
                let (left, right) = (self.expression(left, None)?, self.expression(right, None)?);
                self.binary(operator, left, right, place)
            }
            Kind::Assign(operator, target, value) => self.assignment(operator, target, value, place),
            Kind::Cond(condition, then, other) => self.conditional(condition, then, other, expected),
            Kind::Cast(ty, of) => self.cast(ty, of, place),
            Kind::InstanceOf(of, ty) => {
                let (typed, ty) = (self.expression(of, None)?, self.resolve(ty)?);
                if !typed.ty.is_reference() || !ty.is_reference() {
                    return Err(CompileError::new(place, "instanceof needs references"));
                }
                Ok(Typed::new(ExprCode::InstanceOf(ty, Box::new(typed.ex)), BOOLEAN))
            }
            Kind::Lambda(parameters, body) => match expected.map(|expected| (expected, expected.shape())) {
                Some((ty, Some((types, result)))) => {
                    let result = (!matches!(result, Type::Var(_))).then_some(result);
                    let (ex, _) = self.lambda(parameters, body, &types, result, place)?;
                    Ok(Typed::new(ex, ty.clone()))
                }
                _ => Err(CompileError::new(place, "The target type of this expression must be a functional interface")),
            },
            Kind::Reference(..) => match expected.map(|expected| (expected, expected.shape())) {
                Some((ty, Some((types, result)))) => {
                    let result = (!matches!(result, Type::Var(_))).then_some(result);
                    let (ex, _) = self.reference(expression, &types, result)?;
                    Ok(Typed::new(ex, ty.clone()))
                }
                _ => Err(CompileError::new(place, "The target type of this expression must be a functional interface")),
            },
        }
    }

    fn name(&mut self, name: &str, place: Place) -> Result<Typed> {
        if let Some((slot, ty)) = self.variable(name, place, false) {
            return Ok(Typed::new(ExprCode::Local(slot), ty));
        }
        if name == "udfContext" {
            return Ok(Typed::new(ExprCode::Static(JavaClass::UdfContext, 0), Type::of(JavaClass::UdfContext)));
        }
        Err(CompileError::new(place, format!("{name} cannot be resolved to a variable")))
    }

    fn field(&mut self, target: &Expr, name: &str, place: Place) -> Result<Typed> {
        if let Some(class) = self.class_named(target) {
            return match constant_of(class, name) {
                Some(found) => Ok(found),
                None => Err(CompileError::new(
                    place,
                    format!("{}.{name} cannot be resolved or is not supported in user-defined functions", class.name()),
                )),
            };
        }
        let target = self.expression(target, None)?;
        match (&target.ty, name) {
            (Type::Array(_), "length") => Ok(Typed::new(ExprCode::Length(Box::new(target.ex)), INT)),
            _ => Err(CompileError::new(place, format!("{name} cannot be resolved or is not a field"))),
        }
    }

    /// Array and index of an element, with its type.
    fn element(&mut self, array: &Expr, index: &Expr) -> Result<(ExprCode, ExprCode, Type)> {
        let typed = self.expression(array, None)?;
        let Type::Array(element) = typed.ty else {
            return Err(CompileError::new(
                array.place,
                format!("The type of the expression must be an array type but it resolved to {}", typed.ty),
            ));
        };
        let at = self.expression(index, None)?;
        Ok((typed.ex, self.promoted_int(at, index.place)?, *element))
    }

    /// A value that unary promotion makes an int.
    fn promoted_int(&mut self, typed: Typed, place: Place) -> Result<ExprCode> {
        match typed.ty.unboxed() {
            Some(prim) if prim.widens_to(Prim::Int) => self.assign(typed, &INT, place),
            _ => mismatch(place, &typed.ty, &INT),
        }
    }

    /// Converts a value for a variable of a type (JLS 5.2).
    pub(super) fn assign(&mut self, typed: Typed, to: &Type, place: Place) -> Result<ExprCode> {
        match self.assign_loosely(typed.clone(), to, true) {
            Some(ex) => Ok(ex),
            None => mismatch(place, &typed.ty, to),
        }
    }

    /// The conversion of an argument or of a value; None: there is none. Constants are narrowed
    /// where a value is assigned only.
    pub(super) fn assign_loosely(&mut self, typed: Typed, to: &Type, narrows: bool) -> Option<ExprCode> {
        if typed.ty == *to {
            return Some(typed.ex);
        }
        match (&typed.ty, to) {
            (Type::Prim(from), Type::Prim(to)) => {
                if from.widens_to(*to) {
                    return Some(self.converted(typed, *to).ex);
                }
                narrowed(&typed, *to).filter(|_| narrows).map(ExprCode::Const)
            }
            (Type::Prim(from), to) => {
                if let Some(wanted) = to.unboxed().filter(|wanted| wanted != from) {
                    return narrowed(&typed, wanted).filter(|_| narrows).map(ExprCode::Const);
                }
                Type::of(from.boxed()).is_subtype(to).then_some(typed.ex)
            }
            (from, Type::Prim(wanted)) => {
                let prim = from.unboxed()?;
                if !prim.widens_to(*wanted) {
                    return None;
                }
                let open = Typed::new(ExprCode::Unbox(prim, Box::new(typed.ex)), Type::Prim(prim));
                Some(self.converted(open, *wanted).ex)
            }
            (from, to) => from.is_subtype(to).then_some(typed.ex),
        }
    }

    /// A number as another primitive type; constants stay constants.
    fn converted(&self, typed: Typed, to: Prim) -> Typed {
        if typed.ty.prim() == Some(to) {
            return typed;
        }
        match typed.constant.and_then(|constant| convert(to, constant)) {
            Some(constant) => Typed::constant(constant, to),
            None => Typed::new(ExprCode::Convert(to, Box::new(typed.ex)), Type::Prim(to)),
        }
    }

    /// The value of a box, or the value itself.
    fn unboxed(&self, typed: Typed) -> Typed {
        match (&typed.ty, typed.ty.unboxed()) {
            (Type::Class(..), Some(prim)) => Typed::new(ExprCode::Unbox(prim, Box::new(typed.ex)), Type::Prim(prim)),
            _ => typed,
        }
    }

    /// Unary promotion: at least an int.
    fn promoted(&self, typed: Typed) -> Option<Typed> {
        let open = self.unboxed(typed);
        let prim = open.ty.prim().filter(|prim| prim.is_numeric())?;
        Some(self.converted(open, prim.max(Prim::Int)))
    }

    /// Evaluates an expression of constants.
    fn fold_constant(&self, typed: Typed, is_constant: bool) -> Typed {
        if !is_constant {
            return typed;
        }
        let program = Program::default();
        let value = Machine::new(&program, CONSTANT_STEPS, CONSTANT_BYTES).value(&typed.ex);
        match (value, typed.ty.prim()) {
            (Ok(value), Some(prim)) => Typed::constant(value, prim),
            _ => typed,
        }
    }

    fn unary(&mut self, operator: &str, of: &Expr, place: Place) -> Result<Typed> {
        // the smallest number has no positive counterpart
        match (operator, &of.kind) {
            ("-", Kind::Int(2_147_483_648)) => return Ok(Typed::constant(Value::Int(i32::MIN), Prim::Int)),
            ("-", Kind::Long(0x8000_0000_0000_0000, true)) => {
                return Ok(Typed::constant(Value::Long(i64::MIN), Prim::Long));
            }
            _ => {}
        }
        let typed = self.expression(of, None)?;
        let shown = typed.ty.clone();
        let wrong = || {
            CompileError::new(place, format!("The operator {operator} is undefined for the argument type(s) {shown}"))
        };
        let constant = typed.constant.is_some();
        let made = match operator {
            "!" => {
                let open = self.unboxed(typed);
                if open.ty != BOOLEAN {
                    return Err(wrong());
                }
                Typed::new(ExprCode::Not(Box::new(open.ex)), BOOLEAN)
            }
            "~" => {
                let open = self.promoted(typed).filter(|open| open.ty == INT || open.ty == LONG).ok_or_else(wrong)?;
                let ones = if open.ty == INT { Value::Int(-1) } else { Value::Long(-1) };
                Typed::new(ExprCode::Arith(Op::Xor, Box::new((open.ex, ExprCode::Const(ones)))), open.ty)
            }
            "-" => {
                let open = self.promoted(typed).ok_or_else(wrong)?;
                Typed::new(ExprCode::Neg(Box::new(open.ex)), open.ty)
            }
            _ => return self.promoted(typed).ok_or_else(wrong),
        };
        Ok(self.fold_constant(made, constant))
    }

    pub(super) fn binary(&mut self, operator: &str, left: Typed, right: Typed, place: Place) -> Result<Typed> {
        let constant = left.constant.is_some() && right.constant.is_some();
        if operator == "+" && (left.ty.is_string() || right.ty.is_string()) {
            return Ok(self.concatenate(left, right));
        }
        let made = self.binary_numeric(operator, left, right, place)?;
        Ok(self.fold_constant(made, constant))
    }

    /// A concatenation. Constants are joined at once, and chains become one expression.
    fn concatenate(&mut self, left: Typed, right: Typed) -> Typed {
        let text_of = |typed: &Typed| -> Option<Vec<u16>> {
            if let Some(text) = &typed.text {
                return Some(text.clone());
            }
            let program = Program::default();
            let mut out = Vec::new();
            Machine::new(&program, CONSTANT_STEPS, CONSTANT_BYTES).show(typed.constant?, &mut out).ok()?;
            Some(out)
        };
        if let (Some(mut text), Some(more)) = (text_of(&left), text_of(&right)) {
            text.extend(more);
            let at = self.text(text.clone());
            return Typed { text: Some(text), ..Typed::new(ExprCode::Text(at), Type::of(JavaClass::String)) };
        }
        let mut parts = match left.ex {
            ExprCode::Concat(parts) if left.ty.is_string() => parts,
            other => vec![other],
        };
        parts.push(right.ex);
        Typed::new(ExprCode::Concat(parts), Type::of(JavaClass::String))
    }

    fn binary_numeric(&mut self, operator: &str, left: Typed, right: Typed, place: Place) -> Result<Typed> {
        let (left_shown, right_shown) = (left.ty.clone(), right.ty.clone());
        let wrong = || {
            let text =
                format!("The operator {operator} is undefined for the argument type(s) {left_shown}, {right_shown}");
            CompileError::new(place, text)
        };
        match operator {
            "&&" | "||" => {
                let (left, right) = (self.unboxed(left), self.unboxed(right));
                if left.ty != BOOLEAN || right.ty != BOOLEAN {
                    return Err(wrong());
                }
                let operands = Box::new((left.ex, right.ex));
                return Ok(Typed::new(
                    if operator == "&&" { ExprCode::And(operands) } else { ExprCode::Or(operands) },
                    BOOLEAN,
                ));
            }
            "==" | "!=" => {
                let references = left.ty.is_reference() && right.ty.is_reference();
                if references {
                    let boxes = left.ty.unboxed().is_some() && right.ty.unboxed().is_some();
                    if boxes {
                        let text = format!(
                            "The operator {operator} of two boxed values compares references, which is not supported in \
                             user-defined functions; use equals"
                        );
                        return Err(CompileError::new(place, text));
                    }
                    if !left.ty.is_subtype(&right.ty)
                        && !right.ty.is_subtype(&left.ty)
                        && !castable(&left.ty, &right.ty)
                    {
                        return Err(CompileError::new(
                            place,
                            format!("Incompatible operand types {left_shown} and {right_shown}"),
                        ));
                    }
                    return Ok(Typed::new(ExprCode::Same(operator == "!=", Box::new((left.ex, right.ex))), BOOLEAN));
                }
            }
            _ => {}
        }
        let (left, right) = (self.unboxed(left), self.unboxed(right));
        let (Some(a), Some(b)) = (left.ty.prim(), right.ty.prim()) else { return Err(wrong()) };
        let cmp = match operator {
            "==" => Some(Cmp::Eq),
            "!=" => Some(Cmp::Ne),
            "<" => Some(Cmp::Lt),
            "<=" => Some(Cmp::Le),
            ">" => Some(Cmp::Gt),
            ">=" => Some(Cmp::Ge),
            _ => None,
        };
        if (a, b) == (Prim::Boolean, Prim::Boolean) {
            return match (operator, cmp) {
                (_, Some(cmp @ (Cmp::Eq | Cmp::Ne))) => {
                    Ok(Typed::new(ExprCode::Compare(cmp, Box::new((left.ex, right.ex))), BOOLEAN))
                }
                ("&", _) => Ok(Typed::new(ExprCode::Arith(Op::And, Box::new((left.ex, right.ex))), BOOLEAN)),
                ("|", _) => Ok(Typed::new(ExprCode::Arith(Op::Or, Box::new((left.ex, right.ex))), BOOLEAN)),
                ("^", _) => Ok(Typed::new(ExprCode::Arith(Op::Xor, Box::new((left.ex, right.ex))), BOOLEAN)),
                _ => Err(wrong()),
            };
        }
        if !a.is_numeric() || !b.is_numeric() {
            return Err(wrong());
        }
        let shift = match operator {
            "<<" => Some(Op::Shl),
            ">>" => Some(Op::Shr),
            ">>>" => Some(Op::Ushr),
            _ => None,
        };
        if let Some(op) = shift {
            if !a.is_integral() || !b.is_integral() {
                return Err(wrong());
            }
            let (Some(left), Some(right)) = (self.promoted(left), self.promoted(right)) else { return Err(wrong()) };
            return Ok(Typed::new(ExprCode::Arith(op, Box::new((left.ex, right.ex))), left.ty));
        }
        let common = a.max(b).max(Prim::Int);
        let (left, right) = (self.converted(left, common), self.converted(right, common));
        let operands = Box::new((left.ex, right.ex));
        if let Some(cmp) = cmp {
            return Ok(Typed::new(ExprCode::Compare(cmp, operands), BOOLEAN));
        }
        let op = match operator {
            "+" => Op::Add,
            "-" => Op::Sub,
            "*" => Op::Mul,
            "/" => Op::Div,
            "%" => Op::Rem,
            "&" if common.is_integral() => Op::And,
            "|" if common.is_integral() => Op::Or,
            "^" if common.is_integral() => Op::Xor,
            _ => return Err(wrong()),
        };
        Ok(Typed::new(ExprCode::Arith(op, operands), Type::Prim(common)))
    }

    /// `value` as the type of a target, as `+=` and `++` cast it.
    fn assign_cast(&mut self, value: Typed, to: &Type, place: Place) -> Result<ExprCode> {
        match (value.ty.prim(), to.unboxed()) {
            (Some(from), Some(to)) if from.is_numeric() == to.is_numeric() => Ok(self.converted(value, to).ex),
            _ => self.assign(value, to, place),
        }
    }

    /// Sets a variable or element to what a function makes of its value.
    fn update(
        &mut self,
        target: &Expr,
        post: bool,
        place: Place,
        make: impl FnOnce(&mut Self, Typed) -> Result<Typed>,
    ) -> Result<Typed> {
        match &target.kind {
            Kind::Name(name) => {
                let Some((slot, ty)) = self.variable(name, target.place, true) else {
                    return Err(CompileError::new(target.place, format!("{name} cannot be resolved to a variable")));
                };
                let value = make(self, Typed::new(ExprCode::Local(slot), ty.clone()))?;
                let value = Box::new(self.assign_cast(value, &ty, place)?);
                let ex = if post { ExprCode::PostLocal(slot, value) } else { ExprCode::SetLocal(slot, value) };
                Ok(Typed::new(ex, ty))
            }
            Kind::Index(array, index) => {
                let (array, index, element) = self.element(array, index)?;
                let of = Type::Array(Box::new(element.clone()));
                let (a, i) = (self.temporary(of, place)?, self.temporary(INT, place)?);
                let old = self.temporary(element.clone(), place)?;
                let read = ExprCode::Index(Box::new((ExprCode::Local(a), ExprCode::Local(i))));
                let value = make(self, Typed::new(ExprCode::Local(old), element.clone()))?;
                let value = self.assign_cast(value, &element, place)?;
                let mut parts = vec![
                    ExprCode::SetLocal(a, Box::new(array)),
                    ExprCode::SetLocal(i, Box::new(index)),
                    ExprCode::SetLocal(old, Box::new(read)),
                    ExprCode::SetIndex(Box::new((ExprCode::Local(a), ExprCode::Local(i), value))),
                ];
                if post {
                    parts.push(ExprCode::Local(old));
                }
                Ok(Typed::new(ExprCode::Seq(parts), element))
            }
            _ => Err(CompileError::new(place, "The left-hand side of an assignment must be a variable")),
        }
    }

    fn change(&mut self, change: i32, post: bool, target: &Expr, place: Place) -> Result<Typed> {
        self.update(target, post, place, |compiler, value| {
            if !compiler.unboxed(value.clone()).ty.prim().is_some_and(Prim::is_numeric) {
                return mismatch(place, &value.ty, &INT);
            }
            compiler.binary("+", value, Typed::constant(Value::Int(change), Prim::Int), place)
        })
    }

    fn assignment(&mut self, operator: &str, target: &Expr, value: &Expr, place: Place) -> Result<Typed> {
        if !operator.is_empty() {
            return self.update(target, false, place, |compiler, old| {
                let value = compiler.expression(value, None)?;
                compiler.binary(operator, old, value, place)
            });
        }
        match &target.kind {
            Kind::Name(name) => {
                let Some((slot, ty)) = self.variable(name, target.place, true) else {
                    return Err(CompileError::new(target.place, format!("{name} cannot be resolved to a variable")));
                };
                let typed = self.expression(value, Some(&ty))?;
                let ex = self.assign(typed, &ty, value.place)?;
                Ok(Typed::new(ExprCode::SetLocal(slot, Box::new(ex)), ty))
            }
            Kind::Index(array, index) => {
                let (array, index, element) = self.element(array, index)?;
                let typed = self.expression(value, Some(&element))?;
                let ex = self.assign(typed, &element, value.place)?;
                Ok(Typed::new(ExprCode::SetIndex(Box::new((array, index, ex))), element))
            }
            _ => Err(CompileError::new(place, "The left-hand side of an assignment must be a variable")),
        }
    }

    /// `a ? b : c` (JLS 15.25).
    fn conditional(&mut self, condition: &Expr, then: &Expr, other: &Expr, expected: Option<&Type>) -> Result<Typed> {
        let typed = self.expression(condition, None)?;
        let known = typed.constant;
        let condition_ex = self.assign(typed, &BOOLEAN, condition.place)?;
        let (a, b) = (self.expression(then, expected)?, self.expression(other, expected)?);
        let constant = known.is_some() && a.constant.is_some() && b.constant.is_some();
        let ty = match (a.ty.unboxed(), b.ty.unboxed()) {
            _ if a.ty == b.ty => a.ty.clone(),
            (Some(x), Some(y)) if x == y => Type::Prim(x),
            (Some(x), Some(y)) if x.is_numeric() && y.is_numeric() => Type::Prim(common(x, &a, y, &b)),
            // one side is null, or boxes and other references meet
            _ => match (&a.ty, &b.ty, expected) {
                (Type::Null, other, _) | (other, Type::Null, _) => other.boxed(),
                (a, b, _) if a.boxed().is_subtype(&b.boxed()) => b.boxed(),
                (a, b, _) if b.boxed().is_subtype(&a.boxed()) => a.boxed(),
                (_, _, Some(expected)) if expected.is_reference() => expected.clone(),
                _ => Type::object(),
            },
        };
        let a = self.assign(a, &ty, then.place)?;
        let b = self.assign(b, &ty, other.place)?;
        Ok(self.fold_constant(Typed::new(ExprCode::Cond(Box::new((condition_ex, a, b))), ty), constant))
    }

    fn cast(&mut self, name: &TypeName, of: &Expr, place: Place) -> Result<Typed> {
        let ty = self.resolve(name)?;
        let typed = self.expression(of, Some(&ty))?;
        let wrong = || CompileError::new(place, format!("Cannot cast from {} to {ty}", typed.ty));
        match (&typed.ty, &ty) {
            (from, to) if from == to => Ok(typed),
            (Type::Prim(from), Type::Prim(to)) if from.is_numeric() && to.is_numeric() => {
                Ok(self.converted(typed, *to))
            }
            (Type::Prim(from), to) if to.is_reference() => {
                if Type::of(from.boxed()).is_subtype(to) {
                    Ok(Typed::new(typed.ex, ty))
                } else {
                    Err(wrong())
                }
            }
            (from, Type::Prim(to)) if from.is_reference() => match from.unboxed() {
                Some(prim) if prim.widens_to(*to) => {
                    let open = self.unboxed(typed);
                    Ok(self.converted(open, *to))
                }
                None if Type::of(to.boxed()).is_subtype(from) => {
                    Ok(Typed::new(ExprCode::Unbox(*to, Box::new(typed.ex)), ty))
                }
                _ => Err(wrong()),
            },
            (from, to) if from.is_subtype(to) => Ok(Typed { ty: ty.clone(), ..typed }),
            (from, to) if castable(from, to) => Ok(Typed::new(ExprCode::Cast(ty.clone(), Box::new(typed.ex)), ty)),
            _ => Err(wrong()),
        }
    }

    /// A lambda for parameters of these types; the result's type, which None leaves to its body.
    pub(super) fn lambda(
        &mut self,
        parameters: &[(Option<TypeName>, String)],
        body: &LambdaBody,
        types: &[Type],
        result: Option<Type>,
        place: Place,
    ) -> Result<(ExprCode, Type)> {
        if parameters.len() != types.len() {
            return Err(CompileError::new(
                place,
                "Lambda expression's signature does not match the functional interface",
            ));
        }
        self.captures.push(Vec::new());
        let mark = self.variables.len();
        let mut slots = Vec::new();
        for ((name_type, name), ty) in parameters.iter().zip(types) {
            let ty = match name_type {
                Some(name) if name.name != "var" => self.resolve(name)?,
                _ => match ty {
                    Type::Var(_) => Type::object(),
                    other => other.clone(),
                },
            };
            slots.push(self.declare(name, ty, place)?);
        }
        let targets = std::mem::take(&mut self.targets);
        let catching = std::mem::take(&mut self.catching);
        let outer = std::mem::replace(&mut self.returns, Returns::Lambda(result.clone(), None));
        let (code, returned) = match body {
            LambdaBody::Value(value) => {
                let typed = self.any_expression(value, result.as_ref())?;
                match result {
                    Some(Type::Void) => (vec![StmtCode::Expr(typed.ex)], Type::Void),
                    Some(ty) => (vec![StmtCode::Return(Some(self.assign(typed, &ty, value.place)?))], ty),
                    None if typed.ty == Type::Void => (vec![StmtCode::Expr(typed.ex)], Type::Void),
                    None => {
                        let ty = typed.ty.boxed();
                        (vec![StmtCode::Return(Some(typed.ex))], ty)
                    }
                }
            }
            LambdaBody::Block(statements) => {
                let (code, completes) = self.block(statements)?;
                let returned = match &self.returns {
                    Returns::Lambda(Some(ty), _) => ty.clone(),
                    Returns::Lambda(None, Some(ty)) => ty.clone(),
                    _ => Type::Void,
                };
                if completes && returned != Type::Void {
                    return Err(CompileError::new(
                        place,
                        format!("This method must return a result of type {returned}"),
                    ));
                }
                (code, returned)
            }
        };
        self.returns = outer;
        self.targets = targets;
        self.catching = catching;
        self.leave(mark);
        let captured = self.captures.pop().unwrap_or_default();
        let own = (mark as u16, self.variables.len() as u16);
        self.program.lambdas.push(Lambda { parameters: slots, captured, own, body: code });
        Ok((ExprCode::Lambda(self.program.lambdas.len() as u32 - 1), returned))
    }
}

/// A constant of type int (or smaller) in a smaller type, if the value fits.
fn narrowed(typed: &Typed, to: Prim) -> Option<Value> {
    let from = typed.ty.prim().filter(|from| *from <= Prim::Int && from.is_numeric())?;
    let _ = from;
    if !matches!(to, Prim::Byte | Prim::Short | Prim::Char) {
        return None;
    }
    let value = typed.constant?;
    let cut = convert(to, value)?;
    (convert(Prim::Int, cut) == convert(Prim::Int, value)).then_some(cut)
}

/// The type of a conditional of two numbers: a constant that fits takes the smaller type.
fn common(x: Prim, a: &Typed, y: Prim, b: &Typed) -> Prim {
    let small = |prim: Prim| matches!(prim, Prim::Byte | Prim::Short | Prim::Char);
    if small(x) && y == Prim::Int && narrowed(b, x).is_some() {
        return x;
    }
    if small(y) && x == Prim::Int && narrowed(a, y).is_some() {
        return y;
    }
    match (x, y) {
        (Prim::Byte, Prim::Short) | (Prim::Short, Prim::Byte) => Prim::Short,
        _ => x.max(y).max(Prim::Int),
    }
}

/// Whether a cast between references can succeed.
fn castable(from: &Type, to: &Type) -> bool {
    match (from, to) {
        (Type::Class(a, _), Type::Class(b, _)) => {
            let open = |class: &JavaClass| {
                matches!(
                    class,
                    JavaClass::Comparable
                        | JavaClass::CharSequence
                        | JavaClass::Iterable
                        | JavaClass::Collection
                        | JavaClass::List
                        | JavaClass::Set
                        | JavaClass::Map
                )
            };
            a.is_a(*b) || b.is_a(*a) || open(a) && open(b)
        }
        (Type::Class(JavaClass::Object, _), Type::Array(_)) | (Type::Array(_), Type::Class(JavaClass::Object, _)) => {
            true
        }
        (Type::Array(a), Type::Array(b)) => a == b || a.is_reference() && b.is_reference() && castable(a, b),
        (Type::Null, _) | (_, Type::Null) | (Type::Var(_), _) | (_, Type::Var(_)) => true,
        _ => false,
    }
}

/// A constant of a class.
fn constant_of(class: JavaClass, name: &str) -> Option<Typed> {
    let known = |value: Value, prim: Prim| Some(Typed::constant(value, prim));
    let object = |number: u8| Some(Typed::new(ExprCode::Static(class, number), Type::of(class)));
    match (class, name) {
        (JavaClass::Integer, "MAX_VALUE") => known(Value::Int(i32::MAX), Prim::Int),
        (JavaClass::Integer, "MIN_VALUE") => known(Value::Int(i32::MIN), Prim::Int),
        (JavaClass::Integer, "SIZE") => known(Value::Int(32), Prim::Int),
        (JavaClass::Integer, "BYTES") => known(Value::Int(4), Prim::Int),
        (JavaClass::Long, "MAX_VALUE") => known(Value::Long(i64::MAX), Prim::Long),
        (JavaClass::Long, "MIN_VALUE") => known(Value::Long(i64::MIN), Prim::Long),
        (JavaClass::Long, "SIZE") => known(Value::Int(64), Prim::Int),
        (JavaClass::Long, "BYTES") => known(Value::Int(8), Prim::Int),
        (JavaClass::Short, "MAX_VALUE") => known(Value::Short(i16::MAX), Prim::Short),
        (JavaClass::Short, "MIN_VALUE") => known(Value::Short(i16::MIN), Prim::Short),
        (JavaClass::Byte, "MAX_VALUE") => known(Value::Byte(i8::MAX), Prim::Byte),
        (JavaClass::Byte, "MIN_VALUE") => known(Value::Byte(i8::MIN), Prim::Byte),
        (JavaClass::Character, "MAX_VALUE") => known(Value::Char(u16::MAX), Prim::Char),
        (JavaClass::Character, "MIN_VALUE") => known(Value::Char(0), Prim::Char),
        (JavaClass::Double, "MAX_VALUE") => known(Value::Double(f64::MAX), Prim::Double),
        (JavaClass::Double, "MIN_VALUE") => known(Value::Double(f64::from_bits(1)), Prim::Double),
        (JavaClass::Double, "MIN_NORMAL") => known(Value::Double(f64::MIN_POSITIVE), Prim::Double),
        (JavaClass::Double, "NaN") => known(Value::Double(f64::NAN), Prim::Double),
        (JavaClass::Double, "POSITIVE_INFINITY") => known(Value::Double(f64::INFINITY), Prim::Double),
        (JavaClass::Double, "NEGATIVE_INFINITY") => known(Value::Double(f64::NEG_INFINITY), Prim::Double),
        (JavaClass::Float, "MAX_VALUE") => known(Value::Float(f32::MAX), Prim::Float),
        (JavaClass::Float, "MIN_VALUE") => known(Value::Float(f32::from_bits(1)), Prim::Float),
        (JavaClass::Float, "NaN") => known(Value::Float(f32::NAN), Prim::Float),
        (JavaClass::Float, "POSITIVE_INFINITY") => known(Value::Float(f32::INFINITY), Prim::Float),
        (JavaClass::Float, "NEGATIVE_INFINITY") => known(Value::Float(f32::NEG_INFINITY), Prim::Float),
        (JavaClass::Math | JavaClass::StrictMath, "PI") => known(Value::Double(std::f64::consts::PI), Prim::Double),
        (JavaClass::Math | JavaClass::StrictMath, "E") => known(Value::Double(std::f64::consts::E), Prim::Double),
        (JavaClass::Boolean, "TRUE") => {
            Some(Typed::new(ExprCode::Const(Value::Bool(true)), Type::of(JavaClass::Boolean)))
        }
        (JavaClass::Boolean, "FALSE") => {
            Some(Typed::new(ExprCode::Const(Value::Bool(false)), Type::of(JavaClass::Boolean)))
        }
        (JavaClass::BigInteger, "ZERO") => object(0),
        (JavaClass::BigInteger, "ONE") => object(1),
        (JavaClass::BigInteger, "TWO") => object(2),
        (JavaClass::BigInteger, "TEN") => object(3),
        (JavaClass::BigDecimal, "ZERO") => object(0),
        (JavaClass::BigDecimal, "ONE") => object(1),
        (JavaClass::BigDecimal, "TEN") => object(2),
        (JavaClass::BigDecimal, _) if name.starts_with("ROUND_") => {
            let at =
                crate::machine::rounding_names().iter().position(|known| name.strip_prefix("ROUND_") == Some(known))?;
            known(Value::Int(at as i32), Prim::Int)
        }
        (JavaClass::RoundingMode, _) => {
            let at = crate::machine::rounding_names().iter().position(|known| *known == name)?;
            object(at as u8)
        }
        _ => None,
    }
}
