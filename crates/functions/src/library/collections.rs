//! Lists, sets, maps and their iterators; the static methods of Collections and Arrays stand in
//! [`statics`].
//!
//! `keySet`, `values` and `entrySet` give copies that cannot be changed, where Java gives views;
//! `Entry.setValue` writes through.

mod statics;

use super::MethodTable;
use crate::class::{JavaClass, Type};
use crate::machine::{Items, Kind, Machine, Object, Result, Sequence, Table as Entries, Value};

pub(super) fn declare(table: &mut MethodTable) {
    collections(table);
    lists(table);
    sets(table);
    maps(table);
    statics::declare(table);
    table.add_methods(
        JavaClass::Iterator,
        &[
            ("boolean hasNext()", |m, a| match m.object(a[0])? {
                Object::Iterator(_, items, at, _) => Ok(Value::Bool(*at < items.len())),
                _ => m.null_pointer(),
            }),
            ("E next()", |m, a| {
                let (source, item, changes) = match m.object(a[0])? {
                    Object::Iterator(source, items, at, changes) => {
                        let item = items.get(*at).copied();
                        *at += 1;
                        (*source, item, *changes)
                    }
                    _ => return m.null_pointer(),
                };
                if m.changes(source) != changes {
                    return m.throw_with(JavaClass::ConcurrentModificationException, Value::Null);
                }
                match item {
                    Some(item) => Ok(item),
                    None => m.throw_with(JavaClass::NoSuchElementException, Value::Null),
                }
            }),
            ("void remove()", |m, a| {
                let (source, place, item) = match m.object(a[0])? {
                    Object::Iterator(source, items, at, _) => {
                        let Some(place) = at.checked_sub(1) else {
                            return m.throw_with(JavaClass::IllegalStateException, Value::Null);
                        };
                        let item = items.get(place).copied().unwrap_or(Value::Null);
                        (*source, place, item)
                    }
                    _ => return m.null_pointer(),
                };
                match m.object(source)? {
                    Object::List(list) => {
                        if matches!(list.kind, Sequence::Fixed | Sequence::Sized) {
                            return unsupported(m);
                        }
                        if place < list.items.len() {
                            list.items.remove(place);
                        }
                        list.changes += 1;
                        if let Object::Iterator(_, items, at, _) = m.object(a[0])? {
                            items.remove(place);
                            *at = place;
                        }
                    }
                    _ => {
                        m.table_remove(source, item)?;
                    }
                }
                let now = m.changes(source);
                if let Object::Iterator(.., changes) = m.object(a[0])? {
                    *changes = now;
                }
                Ok(Value::Null)
            }),
        ],
    );
}

fn unsupported<T>(m: &mut Machine<'_>) -> Result<T> {
    m.throw_with(JavaClass::UnsupportedOperationException, Value::Null)
}

/// A list that bodies change.
fn list_of<'m>(m: &'m mut Machine<'_>, value: Value) -> Result<&'m mut Items> {
    if !matches!(m.peek(value), Some(Object::List(_))) {
        return m.wrong_class(value, "java.util.List");
    }
    match m.object(value)? {
        Object::List(items) => Ok(items),
        _ => Err(crate::machine::Stop::Depth),
    }
}

/// A list whose length bodies change.
fn growing<'m>(m: &'m mut Machine<'_>, value: Value) -> Result<&'m mut Items> {
    if matches!(list_of(m, value)?.kind, Sequence::Fixed | Sequence::Sized) {
        return unsupported(m);
    }
    list_of(m, value)
}

fn len(m: &mut Machine<'_>, value: Value) -> Result<usize> {
    match m.object(value)? {
        Object::List(items) => Ok(items.items.len()),
        Object::Set(table) | Object::Map(table) => Ok(table.len()),
        _ => m.wrong_class(value, "java.util.Collection"),
    }
}

/// The place of an element, or the exception of ArrayList.
fn checked(m: &mut Machine<'_>, list: Value, index: Value) -> Result<usize> {
    let index = m.int(index)?;
    let length = list_of(m, list)?.items.len();
    match usize::try_from(index) {
        Ok(at) if at < length => Ok(at),
        _ => m.throw(JavaClass::IndexOutOfBoundsException, format!("Index {index} out of bounds for length {length}")),
    }
}

fn add(m: &mut Machine<'_>, to: Value, item: Value) -> Result<bool> {
    if let Some(Object::List(_)) = m.peek(to) {
        m.charge(16)?;
        let list = growing(m, to)?;
        list.items.push(item);
        list.changes += 1;
        return Ok(true);
    }
    Ok(m.table_put(to, item, Value::Bool(true))?.is_none())
}

/// The place of an equal element.
fn index_of(m: &mut Machine<'_>, list: Value, item: Value) -> Result<Option<usize>> {
    let mut at = 0;
    while let Some(other) = list_of(m, list)?.items.get(at).copied() {
        if m.equal(item, other)? {
            return Ok(Some(at));
        }
        at += 1;
    }
    Ok(None)
}

fn contains(m: &mut Machine<'_>, of: Value, item: Value) -> Result<bool> {
    match m.peek(of) {
        Some(Object::List(_)) => Ok(index_of(m, of, item)?.is_some()),
        _ => Ok(m.table_get(of, item)?.is_some()),
    }
}

fn remove(m: &mut Machine<'_>, of: Value, item: Value) -> Result<bool> {
    if let Some(Object::List(_)) = m.peek(of) {
        growing(m, of)?;
        let Some(at) = index_of(m, of, item)? else { return Ok(false) };
        let list = growing(m, of)?;
        list.items.remove(at);
        list.changes += 1;
        return Ok(true);
    }
    Ok(m.table_remove(of, item)?.is_some())
}

fn collections(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::Iterable,
        &[
            ("Iterator<E> iterator()", |m, a| {
                let (items, changes) = (m.items(a[0])?, m.changes(a[0]));
                m.alloc(Object::Iterator(a[0], items, 0, changes))
            }),
            ("void forEach(Consumer<E>)", |m, a| {
                for item in m.items(a[0])? {
                    m.invoke(a[1], &[item])?;
                }
                Ok(Value::Null)
            }),
        ],
    );
    table.add_methods(
        JavaClass::Collection,
        &[
            ("int size()", |m, a| Ok(Value::Int(len(m, a[0])? as i32))),
            ("boolean isEmpty()", |m, a| Ok(Value::Bool(len(m, a[0])? == 0))),
            ("boolean add(E)", |m, a| add(m, a[0], a[1]).map(Value::Bool)),
            ("boolean addAll(Collection<E>)", |m, a| {
                let mut changed = false;
                for item in m.items(a[1])? {
                    changed |= add(m, a[0], item)?;
                }
                Ok(Value::Bool(changed))
            }),
            ("boolean contains(Object)", |m, a| contains(m, a[0], a[1]).map(Value::Bool)),
            ("boolean containsAll(Collection<Object>)", |m, a| {
                for item in m.items(a[1])? {
                    if !contains(m, a[0], item)? {
                        return Ok(Value::Bool(false));
                    }
                }
                Ok(Value::Bool(true))
            }),
            ("boolean remove(Object)", |m, a| remove(m, a[0], a[1]).map(Value::Bool)),
            ("boolean removeAll(Collection<Object>)", |m, a| retain(m, a[0], |m, item| Ok(!contains(m, a[1], item)?))),
            ("boolean retainAll(Collection<Object>)", |m, a| retain(m, a[0], |m, item| contains(m, a[1], item))),
            ("boolean removeIf(Predicate<E>)", |m, a| {
                retain(m, a[0], |m, item| {
                    let goes = m.invoke(a[1], &[item])?;
                    Ok(!m.bool(goes)?)
                })
            }),
            ("void clear()", |m, a| {
                match m.object(a[0])? {
                    Object::List(list) if matches!(list.kind, Sequence::Array | Sequence::Linked) => {
                        list.items.clear();
                        list.changes += 1;
                    }
                    Object::Set(table) if table.kind != Kind::Fixed => table.clear(),
                    _ => return unsupported(m),
                }
                Ok(Value::Null)
            }),
            ("Object[] toArray()", |m, a| {
                let items = m.items(a[0])?;
                m.alloc(Object::Array(Type::object(), items))
            }),
            ("T[] toArray(T[])", |m, a| {
                let items = m.items(a[0])?;
                let element = match m.object(a[1])? {
                    Object::Array(element, _) => element.clone(),
                    _ => return m.null_pointer(),
                };
                m.alloc(Object::Array(element, items))
            }),
        ],
    );
}

/// Removes the elements for which a test fails.
fn retain(m: &mut Machine<'_>, of: Value, mut test: impl FnMut(&mut Machine<'_>, Value) -> Result<bool>) -> Result {
    let items = m.items(of)?;
    let mut kept = Vec::with_capacity(items.len());
    for item in &items {
        if test(m, *item)? {
            kept.push(*item);
        }
    }
    let changed = kept.len() != items.len();
    if let Some(Object::List(_)) = m.peek(of) {
        let list = growing(m, of)?;
        list.items = kept;
        list.changes += u32::from(changed);
    } else {
        let mut left = kept.into_iter().peekable();
        for item in items {
            if left.peek() == Some(&item) {
                left.next();
            } else {
                m.table_remove(of, item)?;
            }
        }
    }
    Ok(Value::Bool(changed))
}

fn sort(m: &mut Machine<'_>, mut items: Vec<Value>, comparator: Value) -> Result<Vec<Value>> {
    // a merge sort: stable as Java's, and it stops at the first exception
    if items.len() < 2 {
        return Ok(items);
    }
    m.step(items.len())?;
    let right = items.split_off(items.len() / 2);
    let (left, right) = (sort(m, items, comparator)?, sort(m, right, comparator)?);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek().copied(), right.peek().copied()) {
        let first = m.compare_by(comparator, a, b)?.is_le();
        merged.extend(if first { left.next() } else { right.next() });
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}

fn lists(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::List,
        &[
            ("E get(int)", |m, a| {
                let at = checked(m, a[0], a[1])?;
                Ok(list_of(m, a[0])?.items[at])
            }),
            ("E set(int, E)", |m, a| {
                let at = checked(m, a[0], a[1])?;
                let list = list_of(m, a[0])?;
                if list.kind == Sequence::Fixed {
                    return unsupported(m);
                }
                Ok(std::mem::replace(&mut list.items[at], a[2]))
            }),
            ("void add(int, E)", |m, a| {
                let at = m.int(a[1])?;
                m.charge(16)?;
                let list = growing(m, a[0])?;
                let length = list.items.len();
                match usize::try_from(at) {
                    Ok(at) if at <= length => {
                        list.items.insert(at, a[2]);
                        list.changes += 1;
                        m.step(length / 16)?;
                        Ok(Value::Null)
                    }
                    _ => m.throw(JavaClass::IndexOutOfBoundsException, format!("Index: {at}, Size: {length}")),
                }
            }),
            ("E remove(int)", |m, a| {
                growing(m, a[0])?;
                let at = checked(m, a[0], a[1])?;
                let list = growing(m, a[0])?;
                list.changes += 1;
                Ok(list.items.remove(at))
            }),
            ("int indexOf(Object)", |m, a| Ok(Value::Int(index_of(m, a[0], a[1])?.map_or(-1, |at| at as i32)))),
            ("int lastIndexOf(Object)", |m, a| {
                for (at, item) in m.items(a[0])?.into_iter().enumerate().rev() {
                    if m.equal(a[1], item)? {
                        return Ok(Value::Int(at as i32));
                    }
                }
                Ok(Value::Int(-1))
            }),
            ("List<E> subList(int, int)", |m, a| {
                let (from, to) = (m.int(a[1])?, m.int(a[2])?);
                let items = m.items(a[0])?;
                let range =
                    usize::try_from(from).ok().zip(usize::try_from(to).ok()).and_then(|(from, to)| items.get(from..to));
                match range {
                    Some(part) => {
                        m.alloc(Object::List(Items { kind: Sequence::Fixed, items: part.to_vec(), changes: 0 }))
                    }
                    None if from > to => {
                        m.throw(JavaClass::IllegalArgumentException, format!("fromIndex({from}) > toIndex({to})"))
                    }
                    None if from < 0 => m.throw(JavaClass::IndexOutOfBoundsException, format!("fromIndex = {from}")),
                    None => m.throw(JavaClass::IndexOutOfBoundsException, format!("toIndex = {to}")),
                }
            }),
            ("void sort(Comparator<E>)", |m, a| {
                let items = m.items(a[0])?;
                let sorted = sort(m, items, a[1])?;
                let list = list_of(m, a[0])?;
                list.items = sorted;
                Ok(Value::Null)
            }),
            ("void replaceAll(UnaryOperator<E>)", |m, a| {
                let mut items = m.items(a[0])?;
                for item in &mut items {
                    *item = m.invoke(a[1], &[*item])?;
                }
                list_of(m, a[0])?.items = items;
                Ok(Value::Null)
            }),
            ("static List<T> of(T...)", |m, a| {
                let items = m.items(a[0])?;
                if items.contains(&Value::Null) {
                    return m.null_pointer();
                }
                m.alloc(Object::List(Items { kind: Sequence::Fixed, items, changes: 0 }))
            }),
            ("static List<T> copyOf(Collection<T>)", |m, a| {
                let items = m.items(a[0])?;
                m.alloc(Object::List(Items { kind: Sequence::Fixed, items, changes: 0 }))
            }),
        ],
    );
    macro_rules! made {
        ($class:ident $kind:ident) => {
            table.add_methods(
                JavaClass::$class,
                &[
                    (concat!(stringify!($class), "<E> new()"), |m, _| new_list(m, Sequence::$kind)),
                    (concat!(stringify!($class), "<E> new(Collection<E>)"), |m, a| {
                        let items = m.items(a[0])?;
                        let list = new_list(m, Sequence::$kind)?;
                        list_of(m, list)?.items = items;
                        Ok(list)
                    }),
                ],
            );
        };
    }
    made!(ArrayList Array);
    made!(LinkedList Linked);
    table.add_methods(
        JavaClass::ArrayList,
        &[
            ("ArrayList<E> new(int)", |m, a| match m.int(a[0])? {
                0.. => new_list(m, Sequence::Array),
                negative => m.throw(JavaClass::IllegalArgumentException, format!("Illegal Capacity: {negative}")),
            }),
            ("void ensureCapacity(int)", |_, _| Ok(Value::Null)),
        ],
    );
    table.add_methods(
        JavaClass::LinkedList,
        &[
            ("void addFirst(E)", |m, a| push_first(m, a)),
            ("void push(E)", |m, a| push_first(m, a)),
            ("void addLast(E)", |m, a| add(m, a[0], a[1]).map(|_| Value::Null)),
            ("boolean offer(E)", |m, a| add(m, a[0], a[1]).map(Value::Bool)),
            ("E getFirst()", |m, a| end_element(m, a[0], true, false, true)),
            ("E getLast()", |m, a| end_element(m, a[0], false, false, true)),
            ("E element()", |m, a| end_element(m, a[0], true, false, true)),
            ("E peek()", |m, a| end_element(m, a[0], true, false, false)),
            ("E peekFirst()", |m, a| end_element(m, a[0], true, false, false)),
            ("E peekLast()", |m, a| end_element(m, a[0], false, false, false)),
            ("E removeFirst()", |m, a| end_element(m, a[0], true, true, true)),
            ("E remove()", |m, a| end_element(m, a[0], true, true, true)),
            ("E pop()", |m, a| end_element(m, a[0], true, true, true)),
            ("E removeLast()", |m, a| end_element(m, a[0], false, true, true)),
            ("E poll()", |m, a| end_element(m, a[0], true, true, false)),
            ("E pollFirst()", |m, a| end_element(m, a[0], true, true, false)),
            ("E pollLast()", |m, a| end_element(m, a[0], false, true, false)),
        ],
    );
}

fn new_list(m: &mut Machine<'_>, kind: Sequence) -> Result {
    m.alloc(Object::List(Items { kind, items: Vec::new(), changes: 0 }))
}

fn push_first(m: &mut Machine<'_>, a: &[Value]) -> Result {
    m.charge(16)?;
    let list = growing(m, a[0])?;
    list.items.insert(0, a[1]);
    list.changes += 1;
    let length = list.items.len();
    m.step(length / 16)?;
    Ok(Value::Null)
}

/// The first or last element, taken or not; without one null or an exception.
fn end_element(m: &mut Machine<'_>, of: Value, first: bool, take: bool, strict: bool) -> Result {
    let list = list_of(m, of)?;
    let length = list.items.len();
    let Some(last) = length.checked_sub(1) else {
        return if strict { m.throw_with(JavaClass::NoSuchElementException, Value::Null) } else { Ok(Value::Null) };
    };
    let at = if first { 0 } else { last };
    if !take {
        return Ok(list.items[at]);
    }
    list.changes += 1;
    let item = list.items.remove(at);
    m.step(length / 16)?;
    Ok(item)
}

/// Java's capacity of a hash table for a number of entries that come.
fn room(count: usize) -> u64 {
    (count as f64 / 0.75) as u64 + 1
}

fn set_of(m: &mut Machine<'_>, table: Entries, items: &[Value]) -> Result {
    let set = m.alloc(Object::Set(table))?;
    for item in items {
        m.table_fill(set, *item, Value::Bool(true))?;
    }
    Ok(set)
}

fn sets(table: &mut MethodTable) {
    macro_rules! made {
        ($class:ident $kind:ident $more:literal) => {
            table.add_methods(
                JavaClass::$class,
                &[
                    (concat!(stringify!($class), "<E> new()"), |m, _| m.alloc(Object::Set(Entries::new(Kind::$kind)))),
                    (concat!(stringify!($class), "<E> new(int)"), |m, a| {
                        let capacity = m.int(a[0])?.max(0) as u64;
                        m.alloc(Object::Set(Entries::with_capacity(Kind::$kind, capacity)))
                    }),
                    (concat!(stringify!($class), "<E> new(Collection<E>)"), |m, a| {
                        let items = m.items(a[0])?;
                        set_of(m, Entries::with_capacity(Kind::$kind, room(items.len()).max($more)), &items)
                    }),
                ],
            );
        };
    }
    made!(HashSet Hash 16);
    made!(LinkedHashSet Linked 16);
    table.add_methods(
        JavaClass::Set,
        &[("static Set<T> of(T...)", |m, a| {
            let items = m.items(a[0])?;
            let set = m.alloc(Object::Set(Entries::new(Kind::Fixed)))?;
            for item in items {
                if item == Value::Null {
                    return m.null_pointer();
                }
                if m.table_fill(set, item, Value::Bool(true))?.is_some() {
                    let mut text = "duplicate element: ".encode_utf16().collect();
                    m.show(item, &mut text)?;
                    let message = m.text(text)?;
                    return m.throw_with(JavaClass::IllegalArgumentException, message);
                }
            }
            Ok(set)
        })],
    );
    table.add_methods(
        JavaClass::TreeSet,
        &[
            ("TreeSet<E> new()", |m, _| m.alloc(Object::Set(Entries::new(Kind::Tree)))),
            ("TreeSet<E> new(Comparator<E>)", |m, a| m.alloc(Object::Set(Entries::sorted(a[0])))),
            ("TreeSet<E> new(Collection<E>)", |m, a| {
                let items = m.items(a[0])?;
                set_of(m, Entries::new(Kind::Tree), &items)
            }),
            ("E first()", |m, a| rank(m, a[0], None, Near::First).and_then(|found| key(m, found, true))),
            ("E last()", |m, a| rank(m, a[0], None, Near::Last).and_then(|found| key(m, found, true))),
            ("E floor(E)", |m, a| rank(m, a[0], Some(a[1]), Near::Floor).and_then(|found| key(m, found, false))),
            ("E ceiling(E)", |m, a| rank(m, a[0], Some(a[1]), Near::Ceiling).and_then(|found| key(m, found, false))),
            ("E lower(E)", |m, a| rank(m, a[0], Some(a[1]), Near::Lower).and_then(|found| key(m, found, false))),
            ("E higher(E)", |m, a| rank(m, a[0], Some(a[1]), Near::Higher).and_then(|found| key(m, found, false))),
            ("E pollFirst()", |m, a| poll(m, a[0], Near::First)),
            ("E pollLast()", |m, a| poll(m, a[0], Near::Last)),
        ],
    );
}

fn poll(m: &mut Machine<'_>, of: Value, near: Near) -> Result {
    let found = rank(m, of, None, near)?;
    if let Some((key, _)) = found {
        m.table_remove(of, key)?;
    }
    key(m, found, false)
}

/// Which entry of a sorted table.
enum Near {
    First,
    Last,
    Floor,
    Ceiling,
    Lower,
    Higher,
}

fn rank(m: &mut Machine<'_>, of: Value, key: Option<Value>, near: Near) -> Result<Option<(Value, Value)>> {
    let entries = match m.object(of)? {
        Object::Set(table) | Object::Map(table) => table.entries(),
        _ => return m.wrong_class(of, "java.util.TreeMap"),
    };
    m.step(entries.len() / 8)?;
    let place = match key {
        Some(key) => m.rank(of, key)?,
        None => Err(0),
    };
    let at = match (near, place) {
        (Near::First, _) => Some(0),
        (Near::Last, _) => entries.len().checked_sub(1),
        (Near::Floor | Near::Ceiling, Ok(at)) => Some(at),
        (Near::Floor, Err(at)) | (Near::Lower, Ok(at) | Err(at)) => at.checked_sub(1),
        (Near::Ceiling, Err(at)) | (Near::Higher, Err(at)) => Some(at),
        (Near::Higher, Ok(at)) => Some(at + 1),
    };
    Ok(at.and_then(|at| entries.get(at).copied()))
}

fn key(m: &mut Machine<'_>, found: Option<(Value, Value)>, strict: bool) -> Result {
    match found {
        Some((key, _)) => Ok(key),
        None if strict => m.throw_with(JavaClass::NoSuchElementException, Value::Null),
        None => Ok(Value::Null),
    }
}

fn entry(m: &mut Machine<'_>, map: Value, found: Option<(Value, Value)>) -> Result {
    match found {
        Some((key, value)) => m.alloc(Object::Entry(map, key, value)),
        None => Ok(Value::Null),
    }
}

fn entries(m: &mut Machine<'_>, map: Value) -> Result<Vec<(Value, Value)>> {
    let entries = match m.object(map)? {
        Object::Map(table) => table.entries(),
        _ => return m.wrong_class(map, "java.util.Map"),
    };
    m.step(entries.len())?;
    Ok(entries)
}

fn put_all(m: &mut Machine<'_>, map: Value, from: Value) -> Result {
    for (key, value) in entries(m, from)? {
        m.table_put(map, key, value)?;
    }
    Ok(Value::Null)
}

/// The value of a key; null counts as missing.
fn present(m: &mut Machine<'_>, map: Value, key: Value) -> Result<Option<Value>> {
    Ok(m.table_get(map, key)?.filter(|value| *value != Value::Null))
}

/// Puts the outcome of a function; null takes the key away.
fn put_or_remove(m: &mut Machine<'_>, map: Value, key: Value, value: Value) -> Result {
    if value == Value::Null {
        m.table_remove(map, key)?;
    } else {
        m.table_put(map, key, value)?;
    }
    Ok(value)
}

fn maps(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::Map,
        &[
            ("int size()", |m, a| Ok(Value::Int(len(m, a[0])? as i32))),
            ("boolean isEmpty()", |m, a| Ok(Value::Bool(len(m, a[0])? == 0))),
            ("V get(Object)", |m, a| Ok(m.table_get(a[0], a[1])?.unwrap_or(Value::Null))),
            ("V getOrDefault(Object, V)", |m, a| Ok(m.table_get(a[0], a[1])?.unwrap_or(a[2]))),
            ("V put(K, V)", |m, a| Ok(m.table_put(a[0], a[1], a[2])?.unwrap_or(Value::Null))),
            ("V putIfAbsent(K, V)", |m, a| match present(m, a[0], a[1])? {
                Some(value) => Ok(value),
                None => Ok(m.table_put(a[0], a[1], a[2])?.unwrap_or(Value::Null)),
            }),
            ("void putAll(Map<K, V>)", |m, a| put_all(m, a[0], a[1])),
            ("V remove(Object)", |m, a| Ok(m.table_remove(a[0], a[1])?.unwrap_or(Value::Null))),
            ("V replace(K, V)", |m, a| match m.table_get(a[0], a[1])? {
                Some(_) => Ok(m.table_put(a[0], a[1], a[2])?.unwrap_or(Value::Null)),
                None => Ok(Value::Null),
            }),
            ("boolean containsKey(Object)", |m, a| Ok(Value::Bool(m.table_get(a[0], a[1])?.is_some()))),
            ("boolean containsValue(Object)", |m, a| {
                for (_, value) in entries(m, a[0])? {
                    if m.equal(a[1], value)? {
                        return Ok(Value::Bool(true));
                    }
                }
                Ok(Value::Bool(false))
            }),
            ("void clear()", |m, a| match m.object(a[0])? {
                Object::Map(table) if table.kind != Kind::Fixed => {
                    table.clear();
                    Ok(Value::Null)
                }
                _ => unsupported(m),
            }),
            ("Set<K> keySet()", |m, a| {
                let keys: Vec<_> = entries(m, a[0])?.into_iter().map(|(key, _)| key).collect();
                set_of(m, Entries::new(Kind::Fixed), &keys)
            }),
            ("Collection<V> values()", |m, a| {
                let items: Vec<_> = entries(m, a[0])?.into_iter().map(|(_, value)| value).collect();
                m.charge(items.len() * 16)?;
                m.alloc(Object::List(Items { kind: Sequence::Fixed, items, changes: 0 }))
            }),
            ("Set<Map.Entry<K, V>> entrySet()", |m, a| {
                let mut all = Vec::new();
                for (key, value) in entries(m, a[0])? {
                    all.push(m.alloc(Object::Entry(a[0], key, value))?);
                }
                set_of(m, Entries::new(Kind::Fixed), &all)
            }),
            ("void forEach(BiConsumer<K, V>)", |m, a| {
                for (key, value) in entries(m, a[0])? {
                    m.invoke(a[1], &[key, value])?;
                }
                Ok(Value::Null)
            }),
            ("V merge(K, V, BiFunction<V, V, V>)", |m, a| {
                let value = match present(m, a[0], a[1])? {
                    Some(old) => m.invoke(a[3], &[old, a[2]])?,
                    None => a[2],
                };
                put_or_remove(m, a[0], a[1], value)
            }),
            ("V computeIfAbsent(K, Function<K, V>)", |m, a| match present(m, a[0], a[1])? {
                Some(value) => Ok(value),
                None => {
                    let value = m.invoke(a[2], &[a[1]])?;
                    if value != Value::Null {
                        m.table_put(a[0], a[1], value)?;
                    }
                    Ok(value)
                }
            }),
            ("V computeIfPresent(K, BiFunction<K, V, V>)", |m, a| match present(m, a[0], a[1])? {
                None => Ok(Value::Null),
                Some(old) => {
                    let value = m.invoke(a[2], &[a[1], old])?;
                    put_or_remove(m, a[0], a[1], value)
                }
            }),
            ("V compute(K, BiFunction<K, V, V>)", |m, a| {
                let old = m.table_get(a[0], a[1])?.unwrap_or(Value::Null);
                let value = m.invoke(a[2], &[a[1], old])?;
                put_or_remove(m, a[0], a[1], value)
            }),
        ],
    );
    macro_rules! made {
        ($class:ident $kind:ident) => {
            table.add_methods(
                JavaClass::$class,
                &[
                    (concat!(stringify!($class), "<K, V> new()"), |m, _| {
                        m.alloc(Object::Map(Entries::new(Kind::$kind)))
                    }),
                    (concat!(stringify!($class), "<K, V> new(int)"), |m, a| {
                        let capacity = m.int(a[0])?.max(0) as u64;
                        m.alloc(Object::Map(Entries::with_capacity(Kind::$kind, capacity)))
                    }),
                    (concat!(stringify!($class), "<K, V> new(Map<K, V>)"), |m, a| {
                        let count = len(m, a[0])?;
                        let map = m.alloc(Object::Map(Entries::with_capacity(Kind::$kind, room(count))))?;
                        put_all(m, map, a[0])?;
                        Ok(map)
                    }),
                ],
            );
        };
    }
    made!(HashMap Hash);
    made!(LinkedHashMap Linked);
    table.add_methods(
        JavaClass::TreeMap,
        &[
            ("TreeMap<K, V> new()", |m, _| m.alloc(Object::Map(Entries::new(Kind::Tree)))),
            ("TreeMap<K, V> new(Comparator<K>)", |m, a| m.alloc(Object::Map(Entries::sorted(a[0])))),
            ("TreeMap<K, V> new(Map<K, V>)", |m, a| {
                let map = m.alloc(Object::Map(Entries::new(Kind::Tree)))?;
                put_all(m, map, a[0])?;
                Ok(map)
            }),
            ("K firstKey()", |m, a| rank(m, a[0], None, Near::First).and_then(|found| key(m, found, true))),
            ("K lastKey()", |m, a| rank(m, a[0], None, Near::Last).and_then(|found| key(m, found, true))),
            ("K floorKey(K)", |m, a| rank(m, a[0], Some(a[1]), Near::Floor).and_then(|found| key(m, found, false))),
            ("K ceilingKey(K)", |m, a| rank(m, a[0], Some(a[1]), Near::Ceiling).and_then(|found| key(m, found, false))),
            ("K lowerKey(K)", |m, a| rank(m, a[0], Some(a[1]), Near::Lower).and_then(|found| key(m, found, false))),
            ("K higherKey(K)", |m, a| rank(m, a[0], Some(a[1]), Near::Higher).and_then(|found| key(m, found, false))),
            ("Map.Entry<K, V> firstEntry()", |m, a| {
                rank(m, a[0], None, Near::First).and_then(|found| entry(m, a[0], found))
            }),
            ("Map.Entry<K, V> lastEntry()", |m, a| {
                rank(m, a[0], None, Near::Last).and_then(|found| entry(m, a[0], found))
            }),
        ],
    );
    table.add_methods(
        JavaClass::MapEntry,
        &[
            ("K getKey()", |m, a| match m.object(a[0])? {
                Object::Entry(_, key, _) => Ok(*key),
                _ => m.wrong_class(a[0], "java.util.Map$Entry"),
            }),
            ("V getValue()", |m, a| match m.object(a[0])? {
                Object::Entry(_, _, value) => Ok(*value),
                _ => m.wrong_class(a[0], "java.util.Map$Entry"),
            }),
            ("V setValue(V)", |m, a| {
                let (map, key, before) = match m.object(a[0])? {
                    Object::Entry(map, key, value) => (*map, *key, std::mem::replace(value, a[1])),
                    _ => return m.wrong_class(a[0], "java.util.Map$Entry"),
                };
                if map != Value::Null {
                    m.table_put(map, key, a[1])?;
                }
                Ok(before)
            }),
        ],
    );
}

fn fixed_list(m: &mut Machine<'_>, items: Vec<Value>) -> Result {
    m.alloc(Object::List(Items { kind: Sequence::Fixed, items, changes: 0 }))
}
