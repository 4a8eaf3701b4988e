//! The static methods of Collections and Arrays, by which user-defined functions make, sort and
//! change lists, sets, maps and arrays.

use super::super::MethodTable;
use super::{add, checked, fixed_list, list_of, set_of, sort};
use crate::class::JavaClass;
use crate::machine::{Items, Kind, Machine, Object, Result, Sequence, Table as Entries, Value};

pub(super) fn declare(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::Collections,
        &[
            ("static List<T> emptyList()", |m, _| fixed_list(m, Vec::new())),
            ("static Set<T> emptySet()", |m, _| m.alloc(Object::Set(Entries::new(Kind::Fixed)))),
            ("static Map<T, R> emptyMap()", |m, _| m.alloc(Object::Map(Entries::new(Kind::Fixed)))),
            ("static List<T> singletonList(T)", |m, a| fixed_list(m, vec![a[0]])),
            ("static Set<T> singleton(T)", |m, a| set_of(m, Entries::new(Kind::Fixed), &[a[0]])),
            ("static Map<T, R> singletonMap(T, R)", |m, a| {
                let map = m.alloc(Object::Map(Entries::new(Kind::Fixed)))?;
                m.table_fill(map, a[0], a[1])?;
                Ok(map)
            }),
            ("static List<T> unmodifiableList(List<T>)", |m, a| {
                let items = m.items(a[0])?;
                fixed_list(m, items)
            }),
            ("static List<T> nCopies(int, T)", |m, a| match m.int(a[0])? {
                count @ 0.. => {
                    m.charge(count as usize * 16)?;
                    fixed_list(m, vec![a[1]; count as usize])
                }
                count => m.throw(JavaClass::IllegalArgumentException, format!("List length = {count}")),
            }),
            ("static void sort(List<T>)", |m, a| {
                let items = m.items(a[0])?;
                list_of(m, a[0])?.items = sort(m, items, Value::Null)?;
                Ok(Value::Null)
            }),
            ("static void sort(List<T>, Comparator<T>)", |m, a| {
                let items = m.items(a[0])?;
                let sorted = sort(m, items, a[1])?;
                list_of(m, a[0])?.items = sorted;
                Ok(Value::Null)
            }),
            ("static void reverse(List<T>)", |m, a| {
                m.items(a[0])?;
                list_of(m, a[0])?.items.reverse();
                Ok(Value::Null)
            }),
            ("static void swap(List<T>, int, int)", |m, a| {
                let (x, y) = (checked(m, a[0], a[1])?, checked(m, a[0], a[2])?);
                list_of(m, a[0])?.items.swap(x, y);
                Ok(Value::Null)
            }),
            ("static T max(Collection<T>)", |m, a| best(m, a[0], Value::Null, true)),
            ("static T min(Collection<T>)", |m, a| best(m, a[0], Value::Null, false)),
            ("static T max(Collection<T>, Comparator<T>)", |m, a| best(m, a[0], a[1], true)),
            ("static T min(Collection<T>, Comparator<T>)", |m, a| best(m, a[0], a[1], false)),
            ("static int frequency(Collection<T>, Object)", |m, a| {
                let mut count = 0;
                for item in m.items(a[0])? {
                    count += i32::from(m.equal(a[1], item)?);
                }
                Ok(Value::Int(count))
            }),
            ("static boolean addAll(Collection<T>, T...)", |m, a| {
                let mut changed = false;
                for item in m.items(a[1])? {
                    changed |= add(m, a[0], item)?;
                }
                Ok(Value::Bool(changed))
            }),
        ],
    );
    table.add_methods(
        JavaClass::Arrays,
        &[
            ("static List<T> asList(T...)", |m, a| {
                let items = m.items(a[0])?;
                m.alloc(Object::List(Items { kind: Sequence::Sized, items, changes: 0 }))
            }),
            ("static String toString(Object[])", array_text),
            ("static String toString(int[])", array_text),
            ("static String toString(long[])", array_text),
            ("static String toString(double[])", array_text),
            ("static String toString(byte[])", array_text),
            ("static String toString(char[])", array_text),
            ("static String toString(boolean[])", array_text),
            ("static void sort(int[])", array_sort),
            ("static void sort(long[])", array_sort),
            ("static void sort(double[])", array_sort),
            ("static void sort(char[])", array_sort),
            ("static void sort(Object[])", array_sort),
            ("static void fill(int[], int)", array_fill),
            ("static void fill(long[], long)", array_fill),
            ("static void fill(double[], double)", array_fill),
            ("static void fill(boolean[], boolean)", array_fill),
            ("static void fill(Object[], Object)", array_fill),
        ],
    );
}

fn best(m: &mut Machine<'_>, of: Value, comparator: Value, largest: bool) -> Result {
    let mut items = m.items(of)?.into_iter();
    let Some(mut best) = items.next() else { return m.throw_with(JavaClass::NoSuchElementException, Value::Null) };
    for item in items {
        let order = m.compare_by(comparator, item, best)?;
        if (largest && order.is_gt()) || (!largest && order.is_lt()) {
            best = item;
        }
    }
    Ok(best)
}

fn array_text(m: &mut Machine<'_>, a: &[Value]) -> Result {
    if a[0] == Value::Null {
        return m.string("null");
    }
    let items = m.items(a[0])?;
    let mut out = Vec::new();
    m.show_all(&items, "[", "]", &mut out)?;
    m.text(out)
}

fn array_sort(m: &mut Machine<'_>, a: &[Value]) -> Result {
    let items = m.items(a[0])?;
    let sorted = sort(m, items, Value::Null)?;
    if let Object::Array(_, items) = m.object(a[0])? {
        *items = sorted;
    }
    Ok(Value::Null)
}

fn array_fill(m: &mut Machine<'_>, a: &[Value]) -> Result {
    let count = m.items(a[0])?.len();
    m.step(count)?;
    if let Object::Array(_, items) = m.object(a[0])? {
        items.fill(a[1]);
    }
    Ok(Value::Null)
}
