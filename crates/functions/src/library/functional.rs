//! Functional interfaces, Comparator and Optional.

use super::MethodTable;
use crate::class::JavaClass;
use crate::machine::{Machine, Object, Order, Result, Value};

pub(super) fn declare(table: &mut MethodTable) {
    let apply: crate::machine::Body = |m, a| m.invoke(a[0], &a[1..]);
    table.add_methods(JavaClass::Function, &[("B apply(A)", apply)]);
    table.add_methods(JavaClass::BiFunction, &[("C apply(A, B)", apply)]);
    table.add_methods(JavaClass::UnaryOperator, &[("A apply(A)", apply)]);
    table.add_methods(JavaClass::BinaryOperator, &[("A apply(A, A)", apply)]);
    table.add_methods(JavaClass::Predicate, &[("boolean test(A)", apply)]);
    table.add_methods(JavaClass::Consumer, &[("void accept(A)", apply)]);
    table.add_methods(JavaClass::BiConsumer, &[("void accept(A, B)", apply)]);
    table.add_methods(JavaClass::Supplier, &[("A get()", apply)]);
    table.add_methods(
        JavaClass::Comparator,
        &[
            ("int compare(A, A)", |m, a| m.compare_by(a[0], a[1], a[2]).map(|order| Value::Int(order as i32))),
            ("Comparator<A> reversed()", |m, a| m.alloc(Object::Comparator(Order::Reversed(a[0])))),
            ("Comparator<A> thenComparing(Comparator<A>)", |m, a| m.alloc(Object::Comparator(Order::Then(a[0], a[1])))),
            ("static Comparator<T> naturalOrder()", |m, _| m.alloc(Object::Comparator(Order::Natural))),
            ("static Comparator<T> reverseOrder()", |m, _| m.alloc(Object::Comparator(Order::Reversed(Value::Null)))),
            ("static Comparator<T> comparing(Function<T, R>)", |m, a| {
                m.alloc(Object::Comparator(Order::By(a[0], Value::Null)))
            }),
        ],
    );
    table.add_methods(
        JavaClass::Collections,
        &[("static Comparator<T> reverseOrder()", |m, _| m.alloc(Object::Comparator(Order::Reversed(Value::Null))))],
    );
    table.add_methods(
        JavaClass::Optional,
        &[
            ("static Optional<T> of(T)", |m, a| match a[0] {
                Value::Null => m.null_pointer(),
                value => m.alloc(Object::Optional(value)),
            }),
            ("static Optional<T> ofNullable(T)", |m, a| m.alloc(Object::Optional(a[0]))),
            ("static Optional<T> empty()", |m, _| m.alloc(Object::Optional(Value::Null))),
            ("boolean isPresent()", |m, a| Ok(Value::Bool(optional_value(m, a[0])? != Value::Null))),
            ("boolean isEmpty()", |m, a| Ok(Value::Bool(optional_value(m, a[0])? == Value::Null))),
            ("E get()", |m, a| match optional_value(m, a[0])? {
                Value::Null => m.throw(JavaClass::NoSuchElementException, "No value present"),
                value => Ok(value),
            }),
            ("E orElse(E)", |m, a| match optional_value(m, a[0])? {
                Value::Null => Ok(a[1]),
                value => Ok(value),
            }),
        ],
    );
}

fn optional_value(m: &mut Machine<'_>, of: Value) -> Result {
    match m.object(of)? {
        Object::Optional(value) => Ok(*value),
        _ => m.wrong_class(of, "java.util.Optional"),
    }
}
