//! Running statements and expressions.

use num_traits::ToPrimitive;
use smallvec::SmallVec;

use super::{Machine, Object, Result, Stop, Value, convert};
use crate::class::{JavaClass, Prim, Type};
use crate::machine::code::{Cmp, ExprCode, Label, Op, StmtCode};

/// How a statement ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Flow {
    Next,
    Break(Label),
    Continue(Label),
    Return(Value),
}

/// The label of a `break` that leaves the switch around it.
pub(crate) const SWITCH: Label = Label::MAX;

impl Machine<'_> {
    /// Runs statements until one of them leaves.
    pub fn run(&mut self, body: &[StmtCode]) -> Result<Flow> {
        for statement in body {
            match self.statement(statement)? {
                Flow::Next => {}
                leaves => return Ok(leaves),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &StmtCode) -> Result<Flow> {
        self.step(1)?;
        match statement {
            StmtCode::Expr(expression) => {
                self.value(expression)?;
                Ok(Flow::Next)
            }
            StmtCode::Block(body) => self.run(body),
            StmtCode::If(condition, then, other) => {
                if self.condition(condition)? {
                    return self.statement(then);
                }
                match other {
                    Some(other) => self.statement(other),
                    None => Ok(Flow::Next),
                }
            }
            StmtCode::Return(Some(value)) => Ok(Flow::Return(self.value(value)?)),
            StmtCode::Return(None) => Ok(Flow::Return(Value::Null)),
            StmtCode::Break(label) => Ok(Flow::Break(*label)),
            StmtCode::Continue(label) => Ok(Flow::Continue(*label)),
            StmtCode::Loop(condition, body, updates, first, label) => {
                self.run_loop(condition.as_ref(), body, updates, *first, *label)
            }
            StmtCode::Each(slot, to, items, body, label) => self.run_for_each(*slot, *to, items, body, *label),
            StmtCode::Labeled(label, body) => match self.statement(body)? {
                Flow::Break(left) if left == *label => Ok(Flow::Next),
                other => Ok(other),
            },
            StmtCode::Throw(value) => match self.value(value)? {
                Value::Null => self.null_pointer(),
                thrown => Err(Stop::Throw(thrown)),
            },
            StmtCode::Switch(value, constants, texts, other, body) => {
                self.switch(value, constants, texts, *other, body)
            }
            StmtCode::Try(body, catches, last) => self.run_try(body, catches, last.as_deref()),
        }
    }

    fn run_loop(
        &mut self,
        condition: Option<&ExprCode>,
        body: &StmtCode,
        updates: &[ExprCode],
        first: bool,
        label: Label,
    ) -> Result<Flow> {
        let mut checked = !first;
        loop {
            self.step(1)?;
            if checked
                && let Some(condition) = condition
                && !self.condition(condition)?
            {
                return Ok(Flow::Next);
            }
            checked = true;
            match self.statement(body)? {
                Flow::Break(left) if left == label => return Ok(Flow::Next),
                Flow::Continue(left) if left == label => {}
                Flow::Next => {}
                leaves => return Ok(leaves),
            }
            for update in updates {
                self.value(update)?;
            }
        }
    }

    fn run_for_each(
        &mut self,
        slot: u16,
        to: Option<Prim>,
        items: &ExprCode,
        body: &StmtCode,
        label: Label,
    ) -> Result<Flow> {
        let source = self.value(items)?;
        let is_array = matches!(self.peek(source), Some(Object::Array(..)));
        let is_list = matches!(self.peek(source), Some(Object::List(_)));
        let (all, changes) = (self.items(source)?, self.changes(source));
        let count = all.len();
        for (at, item) in all.into_iter().enumerate() {
            self.step(1)?;
            if self.changes(source) != changes {
                // as Java: an iterator whose list has shrunk to its place ends without an error
                if is_list && at == self.live_len(source) {
                    return Ok(Flow::Next);
                }
                return self.throw_with(JavaClass::ConcurrentModificationException, Value::Null);
            }
            let item = match (is_array, self.peek(source)) {
                (true, Some(Object::Array(_, now))) => now.get(at).copied().unwrap_or(item),
                (_, Some(Object::List(now))) => now.items.get(at).copied().unwrap_or(item),
                _ => item,
            };
            let item = match to {
                None => item,
                Some(prim) => self.unbox(prim, item)?,
            };
            self.set(slot, item);
            match self.statement(body)? {
                Flow::Break(left) if left == label => return Ok(Flow::Next),
                Flow::Continue(left) if left == label => {}
                Flow::Next => {}
                leaves => return Ok(leaves),
            }
        }
        if is_list && self.changes(source) != changes && self.live_len(source) != count {
            return self.throw_with(JavaClass::ConcurrentModificationException, Value::Null);
        }
        Ok(Flow::Next)
    }

    /// Elements that a collection has now.
    fn live_len(&self, source: Value) -> usize {
        match self.peek(source) {
            Some(Object::List(items)) => items.items.len(),
            Some(Object::Set(table) | Object::Map(table)) => table.len(),
            _ => 0,
        }
    }

    fn switch(
        &mut self,
        value: &ExprCode,
        constants: &[(Value, usize)],
        texts: &[(u32, usize)],
        other: Option<usize>,
        body: &[StmtCode],
    ) -> Result<Flow> {
        let value = self.value(value)?;
        let mut from = other;
        if texts.is_empty() {
            self.step(constants.len())?;
            if let Some((_, at)) = constants.iter().find(|(constant, _)| *constant == value) {
                from = Some(*at);
            } else if value == Value::Null {
                return self.null_pointer();
            }
        } else {
            let units = self.units(value)?.to_vec();
            self.step(texts.len() + units.len() / 8)?;
            let program = self.program;
            let is = |at: &u32| program.texts.get(*at as usize).is_some_and(|text| *text == units);
            if let Some((_, at)) = texts.iter().find(|(text, _)| is(text)) {
                from = Some(*at);
            }
        }
        let Some(body) = from.and_then(|from| body.get(from..)) else { return Ok(Flow::Next) };
        match self.run(body)? {
            Flow::Break(SWITCH) => Ok(Flow::Next),
            other => Ok(other),
        }
    }

    fn run_try(
        &mut self,
        body: &[StmtCode],
        catches: &[(Vec<JavaClass>, u16, Vec<StmtCode>)],
        last: Option<&[StmtCode]>,
    ) -> Result<Flow> {
        let mut outcome = self.run(body);
        // a stack that overflowed is an error that bodies may see
        if let Err(Stop::Throw(thrown)) = outcome
            && let Some(class) = self.class_of(thrown)
            && let Some((_, slot, handler)) =
                catches.iter().find(|(classes, ..)| classes.iter().any(|caught| class.is_a(*caught)))
        {
            self.set(*slot, thrown);
            outcome = self.run(handler);
        }
        if let (Some(last), Ok(_) | Err(Stop::Throw(_))) = (last, &outcome) {
            match self.run(last)? {
                Flow::Next => {}
                leaves => return Ok(leaves),
            }
        }
        outcome
    }

    fn condition(&mut self, expression: &ExprCode) -> Result<bool> {
        let value = self.value(expression)?;
        self.bool(value)
    }

    fn set(&mut self, slot: u16, value: Value) {
        if let Some(place) = self.frame.get_mut(usize::from(slot)) {
            *place = value;
        }
    }

    fn local(&self, slot: u16) -> Value {
        self.frame.get(usize::from(slot)).copied().unwrap_or(Value::Null)
    }

    /// The value of a box as a primitive.
    pub fn unbox(&mut self, prim: Prim, value: Value) -> Result {
        let fits = match value {
            Value::Null => return self.null_pointer(),
            Value::Bool(_) => prim == Prim::Boolean,
            Value::Byte(_) => prim == Prim::Byte,
            Value::Short(_) => prim == Prim::Short,
            Value::Char(_) => prim == Prim::Char,
            Value::Int(_) => prim == Prim::Int,
            Value::Long(_) => prim == Prim::Long,
            Value::Float(_) => prim == Prim::Float,
            Value::Double(_) => prim == Prim::Double,
            Value::Ref(_) => false,
        };
        if fits { Ok(value) } else { self.wrong_class(value, &prim.boxed().full_name()) }
    }

    /// Evaluates an expression.
    pub fn value(&mut self, expression: &ExprCode) -> Result {
        match expression {
            ExprCode::Const(value) => return Ok(*value),
            ExprCode::Local(slot) => return Ok(self.local(*slot)),
            _ => {}
        }
        self.step(1)?;
        match expression {
            ExprCode::Const(value) => Ok(*value),
            ExprCode::Local(slot) => Ok(self.local(*slot)),
            ExprCode::Arith(op, operands) => {
                let (a, b) = (self.value(&operands.0)?, self.value(&operands.1)?);
                self.arithmetic(*op, a, b)
            }
            ExprCode::Compare(cmp, operands) => {
                let (a, b) = (self.value(&operands.0)?, self.value(&operands.1)?);
                Ok(Value::Bool(compare(*cmp, a, b)))
            }
            ExprCode::SetLocal(slot, value) => {
                let value = self.value(value)?;
                self.set(*slot, value);
                Ok(value)
            }
            ExprCode::PostLocal(slot, value) => {
                let before = self.local(*slot);
                let value = self.value(value)?;
                self.set(*slot, value);
                Ok(before)
            }
            ExprCode::Same(negated, operands) => {
                let (a, b) = (self.value(&operands.0)?, self.value(&operands.1)?);
                Ok(Value::Bool((a == b) != *negated))
            }
            ExprCode::And(operands) => Ok(Value::Bool(self.condition(&operands.0)? && self.condition(&operands.1)?)),
            ExprCode::Or(operands) => Ok(Value::Bool(self.condition(&operands.0)? || self.condition(&operands.1)?)),
            ExprCode::Not(of) => Ok(Value::Bool(!self.condition(of)?)),
            ExprCode::Neg(of) => Ok(match self.value(of)? {
                Value::Int(value) => Value::Int(value.wrapping_neg()),
                Value::Long(value) => Value::Long(value.wrapping_neg()),
                Value::Float(value) => Value::Float(-value),
                Value::Double(value) => Value::Double(-value),
                other => return self.wrong_class(other, "java.lang.Number"),
            }),
            ExprCode::Convert(to, of) => {
                let value = self.value(of)?;
                match convert(*to, value) {
                    Some(value) => Ok(value),
                    None => self.wrong_class(value, &to.boxed().full_name()),
                }
            }
            ExprCode::Unbox(prim, of) => {
                let value = self.value(of)?;
                self.unbox(*prim, value)
            }
            ExprCode::Cond(parts) => {
                if self.condition(&parts.0)? {
                    self.value(&parts.1)
                } else {
                    self.value(&parts.2)
                }
            }
            ExprCode::Call(body, has_receiver, arguments) => self.call(*body, *has_receiver, arguments),
            other => self.rare(other),
        }
    }

    #[inline(never)]
    fn call(&mut self, body: super::Body, has_receiver: bool, arguments: &[ExprCode]) -> Result {
        let mut values: SmallVec<[Value; 4]> = SmallVec::new();
        for argument in arguments {
            values.push(self.value(argument)?);
        }
        if has_receiver && values.first() == Some(&Value::Null) {
            return self.null_pointer();
        }
        body(self, &values)
    }

    #[inline(never)]
    fn rare(&mut self, expression: &ExprCode) -> Result {
        match expression {
            ExprCode::Text(at) => self.constant_text(*at),
            ExprCode::Static(class, number) => self.constant(*class, *number),
            ExprCode::Cast(ty, of) => {
                let value = self.value(of)?;
                if value == Value::Null || self.is_instance(value, ty) {
                    return Ok(value);
                }
                let name = ty.class().map_or_else(|| ty.to_string(), JavaClass::full_name);
                self.wrong_class(value, &name)
            }
            ExprCode::InstanceOf(ty, of) => {
                let value = self.value(of)?;
                Ok(Value::Bool(self.is_instance(value, ty)))
            }
            ExprCode::Concat(parts) => {
                let mut out = Vec::new();
                for part in parts {
                    let value = self.value(part)?;
                    self.show(value, &mut out)?;
                }
                self.text(out)
            }
            ExprCode::NewArray(element, sizes) => {
                let mut counts = Vec::new();
                for size in sizes {
                    let size = self.value(size)?;
                    counts.push(self.int(size)?);
                }
                if let Some(negative) = counts.iter().find(|count| **count < 0) {
                    return self.throw(JavaClass::NegativeArraySizeException, negative.to_string());
                }
                self.new_array(element, &counts)
            }
            ExprCode::ArrayLiteral(element, items) => {
                let mut values = Vec::new();
                for item in items {
                    values.push(self.value(item)?);
                }
                self.alloc(Object::Array(element.clone(), values))
            }
            ExprCode::Index(operands) => {
                let (array, index) = (self.value(&operands.0)?, self.value(&operands.1)?);
                let index = self.int(index)?;
                let at = self.array_index(array, index)?;
                match self.peek(array) {
                    Some(Object::Array(_, items)) => Ok(items.get(at).copied().unwrap_or(Value::Null)),
                    _ => self.null_pointer(),
                }
            }
            ExprCode::SetIndex(operands) => {
                let (array, index) = (self.value(&operands.0)?, self.value(&operands.1)?);
                let (value, index) = (self.value(&operands.2)?, self.int(index)?);
                let at = self.array_index(array, index)?;
                if let Object::Array(_, items) = self.object(array)?
                    && let Some(place) = items.get_mut(at)
                {
                    *place = value;
                }
                Ok(value)
            }
            ExprCode::Length(of) => {
                let array = self.value(of)?;
                match self.peek(array) {
                    Some(Object::Array(_, items)) => Ok(Value::Int(items.len() as i32)),
                    _ => self.null_pointer(),
                }
            }
            ExprCode::Seq(parts) => {
                let mut last = Value::Null;
                for part in parts {
                    last = self.value(part)?;
                }
                Ok(last)
            }
            ExprCode::Lambda(at) => {
                let program = self.program;
                let Some(lambda) = program.lambdas.get(*at as usize) else { return self.null_pointer() };
                let captured = lambda.captured.iter().map(|slot| self.local(*slot)).collect();
                self.alloc(Object::Lambda(*at, captured))
            }
            _ => self.null_pointer(),
        }
    }

    fn constant_text(&mut self, at: u32) -> Result {
        let at = at as usize;
        if self.texts.len() <= at {
            self.texts.resize(at + 1, Value::Null);
        }
        if self.texts[at] == Value::Null {
            let program = self.program;
            let text = program.texts.get(at).cloned().unwrap_or_default();
            self.texts[at] = self.text(text)?;
        }
        Ok(self.texts[at])
    }

    fn constant(&mut self, class: JavaClass, number: u8) -> Result {
        if let Some((.., value)) = self.statics.iter().find(|(c, n, _)| (*c, *n) == (class, number)) {
            return Ok(*value);
        }
        let object = match class {
            JavaClass::UdfContext => Object::Context,
            JavaClass::RoundingMode => Object::Rounding(number),
            JavaClass::BigInteger => Object::Integer([0, 1, 2, 10][usize::from(number.min(3))].into()),
            JavaClass::BigDecimal => Object::Decimal(types::decimal::Decimal {
                unscaled: [0, 1, 10][usize::from(number.min(2))].into(),
                scale: 0,
            }),
            _ => return self.null_pointer(),
        };
        let value = self.alloc(object)?;
        self.statics.push((class, number, value));
        Ok(value)
    }

    /// Whether a value is of a class or array type; null is of none.
    pub fn is_instance(&self, value: Value, ty: &Type) -> bool {
        match (self.class_of(value), ty) {
            (None, _) => false,
            (_, Type::Class(JavaClass::Object, _)) => true,
            (Some(_), Type::Array(wanted)) => match self.peek(value) {
                Some(Object::Array(element, _)) => {
                    element == &**wanted || element.is_reference() && element.is_subtype(wanted)
                }
                _ => false,
            },
            (Some(class), Type::Class(wanted, _)) => match self.peek(value) {
                Some(Object::Lambda(..)) => true,
                _ => class.is_a(*wanted),
            },
            _ => false,
        }
    }

    /// The index of an element, or the exception for one that is not there.
    pub fn array_index(&mut self, array: Value, index: i32) -> Result<usize> {
        let Some(Object::Array(_, items)) = self.peek(array) else { return self.null_pointer() };
        match usize::try_from(index) {
            Ok(at) if at < items.len() => Ok(at),
            _ => {
                let message = format!("Index {index} out of bounds for length {}", items.len());
                self.throw(JavaClass::ArrayIndexOutOfBoundsException, message)
            }
        }
    }

    fn new_array(&mut self, element: &Type, counts: &[i32]) -> Result {
        let Some((count, rest)) = counts.split_first() else { return Ok(Value::Null) };
        let count = *count as usize;
        self.charge(count.saturating_mul(16))?;
        let mut items = Vec::new();
        match (rest.is_empty(), element) {
            (false, Type::Array(inner)) => {
                for _ in 0..count {
                    items.push(self.new_array(inner, rest)?);
                }
            }
            _ => items = vec![zero(element); count],
        }
        self.alloc(Object::Array(element.clone(), items))
    }

    /// Calls a lambda.
    pub fn invoke(&mut self, lambda: Value, arguments: &[Value]) -> Result {
        let program = self.program;
        let found = match self.peek(lambda) {
            Some(Object::Lambda(at, captured)) => {
                program.lambdas.get(*at as usize).map(|code| (code, captured.clone()))
            }
            Some(Object::Comparator(_)) => {
                let [a, b] = arguments else { return self.null_pointer() };
                let order = self.compare_by(lambda, *a, *b)?;
                return Ok(Value::Int(order as i32));
            }
            _ => None,
        };
        let Some((code, captured)) = found else { return self.null_pointer() };
        self.step(1)?;
        let slots = code.captured.iter().zip(&captured).chain(code.parameters.iter().zip(arguments));
        let own = code.own.0..code.own.1;
        let touched = code.captured.iter().copied().chain(own);
        let before: Vec<(u16, Value)> = touched.map(|slot| (slot, self.local(slot))).collect();
        slots.for_each(|(slot, value)| self.set(*slot, *value));
        let outcome = self.nested(|machine| machine.run(&code.body));
        before.into_iter().for_each(|(slot, value)| self.set(slot, value));
        match outcome? {
            Flow::Return(value) => Ok(value),
            _ => Ok(Value::Null),
        }
    }

    fn arithmetic(&mut self, op: Op, a: Value, b: Value) -> Result {
        Ok(match (a, b) {
            (Value::Int(a), Value::Int(b)) => Value::Int(match op {
                Op::Add => a.wrapping_add(b),
                Op::Sub => a.wrapping_sub(b),
                Op::Mul => a.wrapping_mul(b),
                Op::Div | Op::Rem if b == 0 => return self.throw(JavaClass::ArithmeticException, "/ by zero"),
                Op::Div => a.wrapping_div(b),
                Op::Rem => a.wrapping_rem(b),
                Op::And => a & b,
                Op::Or => a | b,
                Op::Xor => a ^ b,
                Op::Shl => a.wrapping_shl(b as u32),
                Op::Shr => a.wrapping_shr(b as u32),
                Op::Ushr => (a as u32).wrapping_shr(b as u32) as i32,
            }),
            // the distance of a shift has a type of its own
            (Value::Int(_), Value::Long(b)) => return self.arithmetic(op, a, Value::Int(b as i32)),
            (Value::Long(_), Value::Int(b)) => return self.arithmetic(op, a, Value::Long(b.into())),
            (Value::Long(a), Value::Long(b)) => Value::Long(match op {
                Op::Add => a.wrapping_add(b),
                Op::Sub => a.wrapping_sub(b),
                Op::Mul => a.wrapping_mul(b),
                Op::Div | Op::Rem if b == 0 => return self.throw(JavaClass::ArithmeticException, "/ by zero"),
                Op::Div => a.wrapping_div(b),
                Op::Rem => a.wrapping_rem(b),
                Op::And => a & b,
                Op::Or => a | b,
                Op::Xor => a ^ b,
                Op::Shl => a.wrapping_shl(b as u32),
                Op::Shr => a.wrapping_shr(b as u32),
                Op::Ushr => (a as u64).wrapping_shr(b as u32) as i64,
            }),
            (Value::Float(a), Value::Float(b)) => Value::Float(match op {
                Op::Add => a + b,
                Op::Sub => a - b,
                Op::Mul => a * b,
                Op::Div => a / b,
                _ => a % b,
            }),
            (Value::Double(a), Value::Double(b)) => Value::Double(match op {
                Op::Add => a + b,
                Op::Sub => a - b,
                Op::Mul => a * b,
                Op::Div => a / b,
                _ => a % b,
            }),
            (Value::Bool(a), Value::Bool(b)) => Value::Bool(match op {
                Op::And => a & b,
                Op::Or => a | b,
                _ => a ^ b,
            }),
            (a, _) => return self.wrong_class(a, "java.lang.Number"),
        })
    }

    /// A number that a library function takes as its low 64 bits.
    pub fn low_bits(value: &num_bigint::BigInt) -> i64 {
        let low = value & num_bigint::BigInt::from(u64::MAX);
        low.to_u64().unwrap_or_default() as i64
    }
}

fn compare(cmp: Cmp, a: Value, b: Value) -> bool {
    fn decide<T: PartialOrd>(cmp: Cmp, a: T, b: T) -> bool {
        match cmp {
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
        }
    }
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => decide(cmp, a, b),
        (Value::Long(a), Value::Long(b)) => decide(cmp, a, b),
        (Value::Float(a), Value::Float(b)) => decide(cmp, a, b),
        (Value::Double(a), Value::Double(b)) => decide(cmp, a, b),
        (a, b) => (a == b) == (cmp == Cmp::Eq),
    }
}

/// The value of a variable or element that was not set.
pub(crate) fn zero(ty: &Type) -> Value {
    match ty.prim() {
        None => Value::Null,
        Some(Prim::Boolean) => Value::Bool(false),
        Some(Prim::Byte) => Value::Byte(0),
        Some(Prim::Short) => Value::Short(0),
        Some(Prim::Char) => Value::Char(0),
        Some(Prim::Int) => Value::Int(0),
        Some(Prim::Long) => Value::Long(0),
        Some(Prim::Float) => Value::Float(0.0),
        Some(Prim::Double) => Value::Double(0.0),
    }
}
