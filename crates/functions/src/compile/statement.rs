//! Statements, and which of them can be reached.

use super::{Compiler, Result, Returns, Target, Typed, mismatch};
use crate::ast::{Catch, Declarator, Expr, Group, Kind, Stmt, StmtKind, TypeName};
use crate::class::{BOOLEAN, JavaClass, Prim, Type};
use crate::compile_error::{CompileError, Place};
use crate::machine::code::{ExprCode, StmtCode};
use crate::machine::{SWITCH, Value, convert, zero};

/// Code, and whether it can complete normally.
type WithCompletion<T> = Result<(T, bool)>;

impl Compiler {
    /// A block with a scope of its own.
    pub(super) fn block(&mut self, statements: &[Stmt]) -> WithCompletion<Vec<StmtCode>> {
        let mark = self.variables.len();
        let found = self.statements(statements);
        self.leave(mark);
        found
    }

    fn statements(&mut self, statements: &[Stmt]) -> WithCompletion<Vec<StmtCode>> {
        let mut code = Vec::new();
        let mut completes = true;
        for statement in statements {
            if !completes {
                return Err(CompileError::new(statement.place, "Unreachable code"));
            }
            let (one, goes_on) = self.statement(statement, None)?;
            code.push(one);
            completes = goes_on;
        }
        Ok((code, completes))
    }

    /// A statement with a scope of its own.
    fn scoped(&mut self, statement: &Stmt) -> WithCompletion<Box<StmtCode>> {
        let mark = self.variables.len();
        let found = self.statement(statement, None);
        self.leave(mark);
        found.map(|(code, completes)| (Box::new(code), completes))
    }

    fn condition(&mut self, expression: &Expr) -> Result<Typed> {
        let typed = self.expression(expression, None)?;
        let constant = typed.constant;
        let ex = self.assign(typed, &BOOLEAN, expression.place)?;
        Ok(Typed { constant, ..Typed::new(ex, BOOLEAN) })
    }

    fn enter(&mut self, name: Option<&str>, is_loop: bool, is_switch: bool) -> u16 {
        let label = self.next_label();
        self.targets.push(Target { name: name.map(str::to_owned), label, is_loop, is_switch, is_left: false });
        label
    }

    /// Whether a `break` left the statement.
    fn exit(&mut self) -> bool {
        self.targets.pop().is_some_and(|target| target.is_left)
    }

    fn statement(&mut self, statement: &Stmt, label: Option<&str>) -> WithCompletion<StmtCode> {
        let place = statement.place;
        match &statement.kind {
            StmtKind::Empty => Ok((StmtCode::Block(Vec::new()), true)),
            StmtKind::Block(body) => self.block(body).map(|(body, completes)| (StmtCode::Block(body), completes)),
            StmtKind::Declare(ty, declared) => self.declaration(ty, declared),
            StmtKind::Expr(expression) => {
                if !matches!(expression.kind, Kind::Call(..) | Kind::Assign(..) | Kind::Step(..) | Kind::New(..)) {
                    return Err(CompileError::new(place, "Syntax error, the expression is no statement"));
                }
                let typed = self.any_expression(expression, None)?;
                Ok((StmtCode::Expr(typed.ex), true))
            }
            StmtKind::If(condition, then, other) => {
                let condition = self.condition(condition)?;
                let (then, first) = self.scoped(then)?;
                let (other, second) = match other {
                    Some(other) => self.scoped(other).map(|(code, completes)| (Some(code), completes))?,
                    None => (None, true),
                };
                Ok((StmtCode::If(condition.ex, then, other), first || second))
            }
            StmtKind::While(condition, body) => {
                let condition = self.condition(condition)?;
                if condition.constant == Some(Value::Bool(false)) {
                    return Err(CompileError::new(body.place, "Unreachable code"));
                }
                let number = self.enter(label, true, false);
                let (body, _) = self.scoped(body)?;
                let left = self.exit();
                let forever = condition.constant == Some(Value::Bool(true));
                Ok((StmtCode::Loop(Some(condition.ex), body, Vec::new(), false, number), !forever || left))
            }
            StmtKind::DoWhile(body, condition) => {
                let number = self.enter(label, true, false);
                let (body, _) = self.scoped(body)?;
                let left = self.exit();
                let condition = self.condition(condition)?;
                let forever = condition.constant == Some(Value::Bool(true));
                Ok((StmtCode::Loop(Some(condition.ex), body, Vec::new(), true, number), !forever || left))
            }
            StmtKind::For(first, condition, updates, body) => {
                let mark = self.variables.len();
                let (mut code, _) = self.statements(first)?;
                let condition = condition.as_ref().map(|condition| self.condition(condition)).transpose()?;
                let number = self.enter(label, true, false);
                let (body, _) = self.scoped(body)?;
                let left = self.exit();
                let mut after = Vec::new();
                for update in updates {
                    after.push(self.any_expression(update, None)?.ex);
                }
                self.leave(mark);
                let forever = condition.as_ref().is_none_or(|condition| condition.constant == Some(Value::Bool(true)));
                code.push(StmtCode::Loop(condition.map(|condition| condition.ex), body, after, false, number));
                Ok((StmtCode::Block(code), !forever || left))
            }
            StmtKind::ForEach(ty, name, items, body) => self.for_each_statement(place, (ty, name), items, body, label),
            StmtKind::Switch(value, groups) => self.switch(value, groups, label),
            StmtKind::Labeled(name, inner) => {
                if matches!(
                    inner.kind,
                    StmtKind::While(..) | StmtKind::DoWhile(..) | StmtKind::For(..) | StmtKind::ForEach(..)
                ) {
                    return self.statement(inner, Some(name));
                }
                let number = self.enter(Some(name), false, false);
                let (inner, completes) = self.scoped(inner)?;
                let left = self.exit();
                Ok((StmtCode::Labeled(number, inner), completes || left))
            }
            StmtKind::Return(value) => self.return_statement(value.as_ref(), place),
            StmtKind::Break(name) => {
                let found = self.targets.iter_mut().rev().find(|target| match name {
                    Some(name) => target.name.as_ref() == Some(name),
                    None => target.is_loop || target.is_switch,
                });
                let Some(target) = found else {
                    return Err(CompileError::new(place, "break cannot be used outside of a loop or a switch"));
                };
                target.is_left = true;
                Ok((StmtCode::Break(if target.is_switch { SWITCH } else { target.label }), false))
            }
            StmtKind::Continue(name) => {
                let found = self.targets.iter().rev().find(|target| {
                    target.is_loop && name.as_ref().is_none_or(|name| target.name.as_ref() == Some(name))
                });
                match found {
                    Some(target) => Ok((StmtCode::Continue(target.label), false)),
                    None => Err(CompileError::new(place, "continue cannot be used outside of a loop")),
                }
            }
            StmtKind::Throw(value) => {
                let typed = self.expression(value, None)?;
                match typed.ty.class() {
                    Some(class) if class.is_throwable() => {
                        let checked = !class.is_a(JavaClass::RuntimeException) && !class.is_a(JavaClass::Error);
                        let caught = self.catching.iter().flatten().any(|known| class.is_a(*known));
                        if checked && !caught {
                            return Err(CompileError::new(place, format!("Unhandled exception type {}", class.name())));
                        }
                    }
                    _ if typed.ty == Type::Null => {}
                    _ => {
                        let text = format!(
                            "No exception of type {} can be thrown; an exception type must be a subclass of Throwable",
                            typed.ty
                        );
                        return Err(CompileError::new(place, text));
                    }
                }
                Ok((StmtCode::Throw(typed.ex), false))
            }
            StmtKind::Try(body, catches, last) => self.try_statement(body, catches, last.as_deref()),
        }
    }

    fn declaration(&mut self, ty: &TypeName, declared: &[Declarator]) -> WithCompletion<StmtCode> {
        let mut code = Vec::new();
        for (place, name, dimensions, value) in declared {
            if ty.name == "var" {
                let Some(value) = value else {
                    return Err(CompileError::new(*place, "Cannot use 'var' on variable without initializer"));
                };
                let typed = self.expression(value, None)?;
                if typed.ty == Type::Null {
                    return Err(CompileError::new(
                        *place,
                        "Cannot infer type for local variable initialized to 'null'",
                    ));
                }
                let slot = self.declare(name, typed.ty, *place)?;
                code.push(StmtCode::Expr(ExprCode::SetLocal(slot, Box::new(typed.ex))));
                continue;
            }
            let mut ty = self.resolve(ty)?;
            for _ in 0..*dimensions {
                ty = Type::Array(Box::new(ty));
            }
            if ty == Type::Void {
                return Err(CompileError::new(*place, format!("void is an invalid type for the variable {name}")));
            }
            let first = match value {
                None => ExprCode::Const(zero(&ty)),
                Some(value) => {
                    let typed = self.expression(value, Some(&ty))?;
                    self.assign(typed, &ty, value.place)?
                }
            };
            let slot = self.declare(name, ty, *place)?;
            if value.is_none()
                && let Some(variable) = self.variables.last_mut()
            {
                variable.sets = 0;
            }
            code.push(StmtCode::Expr(ExprCode::SetLocal(slot, Box::new(first))));
        }
        match code.len() {
            1 => Ok((code.remove(0), true)),
            _ => Ok((StmtCode::Block(code), true)),
        }
    }

    fn for_each_statement(
        &mut self,
        place: Place,
        (ty, name): (&TypeName, &str),
        items: &Expr,
        body: &Stmt,
        label: Option<&str>,
    ) -> WithCompletion<StmtCode> {
        let typed = self.expression(items, None)?;
        let element = match &typed.ty {
            Type::Array(element) => (**element).clone(),
            Type::Class(class, _) if class.is_a(JavaClass::Iterable) => typed.ty.argument(0),
            _ => {
                return Err(CompileError::new(
                    items.place,
                    "Can only iterate over an array or an instance of java.lang.Iterable",
                ));
            }
        };
        let wanted = if ty.name == "var" { element.clone() } else { self.resolve(ty)? };
        let mark = self.variables.len();
        let slot = self.declare(name, wanted.clone(), place)?;
        // the conversion of an element: unboxed at once, widened in the body
        let unboxed = match (&wanted, element.unboxed()) {
            (Type::Prim(_), Some(prim)) if element.is_reference() => Some(prim),
            _ => None,
        };
        let own = unboxed.map_or(element.clone(), Type::Prim);
        let widened = self.assign(Typed::new(ExprCode::Local(slot), own.clone()), &wanted, items.place)?;
        let number = self.enter(label, true, false);
        let (code, _) = self.scoped(body)?;
        self.exit();
        self.leave(mark);
        let code = match own == wanted {
            true => code,
            false => {
                Box::new(StmtCode::Block(vec![StmtCode::Expr(ExprCode::SetLocal(slot, Box::new(widened))), *code]))
            }
        };
        Ok((StmtCode::Each(slot, unboxed, typed.ex, code, number), true))
    }

    fn switch(&mut self, value: &Expr, groups: &[Group], label: Option<&str>) -> WithCompletion<StmtCode> {
        let typed = self.expression(value, None)?;
        let prim = match typed.ty.unboxed() {
            Some(prim @ (Prim::Byte | Prim::Short | Prim::Char | Prim::Int)) => Some(prim),
            None if typed.ty.is_string() => None,
            _ => {
                let text = format!(
                    "Cannot switch on a value of type {}. Only convertible int values, strings or enum variables are permitted",
                    typed.ty
                );
                return Err(CompileError::new(value.place, text));
            }
        };
        let value = match prim {
            Some(prim) => self.assign(typed, &Type::Prim(prim), value.place)?,
            None => typed.ex,
        };
        let mark = self.variables.len();
        self.enter(label, false, true);
        let (mut constants, mut texts, mut other) = (Vec::new(), Vec::new(), None);
        let (mut code, mut completes) = (Vec::new(), true);
        for group in groups {
            for label in &group.labels {
                let at = code.len();
                let Some(label) = label else {
                    if other.replace(at).is_some() {
                        return Err(CompileError::new(
                            group.body.first().map_or(Place { line: 1, column: 1 }, |st| st.place),
                            "The default case is already defined",
                        ));
                    }
                    continue;
                };
                let typed = self.expression(label, None)?;
                let constant = typed.constant.and_then(|constant| {
                    convert(prim?, constant).filter(|c| convert(Prim::Long, *c) == convert(Prim::Long, constant))
                });
                match (constant, &typed.text, prim) {
                    (Some(constant), _, Some(_)) => {
                        if constants.iter().any(|(known, _)| *known == constant) {
                            return Err(CompileError::new(label.place, "Duplicate case"));
                        }
                        constants.push((constant, at));
                    }
                    (_, Some(text), None) => {
                        let text = self.text(text.clone());
                        if texts.iter().any(|(known, _)| *known == text) {
                            return Err(CompileError::new(label.place, "Duplicate case"));
                        }
                        texts.push((text, at));
                    }
                    _ => return Err(CompileError::new(label.place, "case expressions must be constant expressions")),
                }
            }
            let mut goes_on = true;
            for statement in &group.body {
                if !goes_on {
                    return Err(CompileError::new(statement.place, "Unreachable code"));
                }
                let (one, next) = self.statement(statement, None)?;
                code.push(one);
                goes_on = next;
            }
            completes = goes_on;
        }
        let left = self.exit();
        self.leave(mark);
        let all = other.is_some();
        Ok((StmtCode::Switch(value, constants, texts, other, code), completes || left || !all))
    }

    fn return_statement(&mut self, value: Option<&Expr>, place: Place) -> WithCompletion<StmtCode> {
        match (self.returns.clone(), value) {
            (Returns::Body(ty), Some(value)) => {
                let typed = self.expression(value, Some(&ty))?;
                let ex = self.assign(typed, &ty, value.place)?;
                Ok((StmtCode::Return(Some(ex)), false))
            }
            (Returns::Body(ty), None) => {
                Err(CompileError::new(place, format!("This method must return a result of type {ty}")))
            }
            (Returns::Lambda(Some(Type::Void), _), None) | (Returns::Lambda(None, _), None) => {
                Ok((StmtCode::Return(None), false))
            }
            (Returns::Lambda(Some(Type::Void), _), Some(_)) => {
                Err(CompileError::new(place, "Void methods cannot return a value"))
            }
            (Returns::Lambda(Some(ty), _), Some(value)) => {
                let typed = self.expression(value, Some(&ty))?;
                let ex = self.assign(typed, &ty, value.place)?;
                Ok((StmtCode::Return(Some(ex)), false))
            }
            (Returns::Lambda(None, before), Some(value)) => {
                let typed = self.expression(value, before.as_ref())?;
                let ty = match before {
                    Some(before) if before != Type::Null => before,
                    _ => typed.ty.boxed(),
                };
                let ex = self.assign(typed, &ty, value.place)?;
                self.returns = Returns::Lambda(None, Some(ty));
                Ok((StmtCode::Return(Some(ex)), false))
            }
            (Returns::Lambda(Some(ty), _), None) => mismatch(place, &Type::Void, &ty),
        }
    }

    fn try_statement(&mut self, body: &[Stmt], catches: &[Catch], last: Option<&[Stmt]>) -> WithCompletion<StmtCode> {
        let mut handlers = Vec::new();
        let mut classes = Vec::new();
        for caught in catches {
            let mut list = Vec::new();
            for name in &caught.types {
                match self.resolve(name)?.class() {
                    Some(class) if class.is_throwable() => {
                        if classes.iter().any(|known| class.is_a(*known)) {
                            let text = format!("Unreachable catch block for {}", class.name());
                            return Err(CompileError::new(name.place, text));
                        }
                        list.push(class);
                    }
                    _ => {
                        let text = "No exception can be caught of this type; it must be a subclass of Throwable";
                        return Err(CompileError::new(name.place, text));
                    }
                }
            }
            classes.extend(list.iter().copied());
            handlers.push(list);
        }
        self.catching.push(classes);
        let (body, mut completes) = self.block(body)?;
        self.catching.pop();
        let mut code = Vec::new();
        for (caught, list) in catches.iter().zip(handlers) {
            let mark = self.variables.len();
            let place = caught.types.first().map_or(Place { line: 1, column: 1 }, |name| name.place);
            let ty = if list.len() == 1 { list[0] } else { JavaClass::Throwable };
            let slot = self.declare(&caught.name, Type::of(ty), place)?;
            let (handler, goes_on) = self.block(&caught.body)?;
            self.leave(mark);
            completes |= goes_on;
            code.push((list, slot, handler));
        }
        let last = match last {
            None => None,
            Some(last) => {
                let (last, goes_on) = self.block(last)?;
                completes &= goes_on;
                Some(last)
            }
        };
        Ok((StmtCode::Try(body, code, last), completes))
    }
}
