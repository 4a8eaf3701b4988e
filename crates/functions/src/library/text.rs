//! String, StringBuilder, StringBuffer, CharSequence.

use super::MethodTable;
use super::lang::compare_to;
use crate::class::{JavaClass, Type};
use crate::machine::{Machine, Object, Result, Value};

pub(super) fn declare(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::CharSequence,
        &[
            ("int length()", |m, a| Ok(Value::Int(m.units(a[0])?.len() as i32))),
            ("char charAt(int)", |m, a| {
                let at = m.int(a[1])?;
                let units = m.units(a[0])?;
                match usize::try_from(at).ok().and_then(|at| units.get(at)) {
                    Some(unit) => Ok(Value::Char(*unit)),
                    None => {
                        let length = units.len();
                        out_of(m, &format!("index {at}, length {length}"))
                    }
                }
            }),
            ("boolean isEmpty()", |m, a| Ok(Value::Bool(m.units(a[0])?.is_empty()))),
            ("CharSequence subSequence(int, int)", |m, a| {
                let (from, to) = (m.int(a[1])?, m.int(a[2])?);
                substring(m, a[0], from, to)
            }),
        ],
    );
    strings(table);
    more_strings(table);
    macro_rules! builders {
        ($class:ident, $buffer:literal) => {
            builder(
                table,
                JavaClass::$class,
                &[
                    (concat!(stringify!($class), " new()"), |m, _| m.alloc(Object::Builder(Vec::new(), $buffer))),
                    (concat!(stringify!($class), " new(int)"), |m, _| m.alloc(Object::Builder(Vec::new(), $buffer))),
                    (concat!(stringify!($class), " new(CharSequence)"), |m, a| {
                        let units = m.copied_units(a[0])?;
                        m.alloc(Object::Builder(units, $buffer))
                    }),
                    (concat!(stringify!($class), " append(Object)"), |m, a| append(m, a[0], a[1])),
                    (concat!(stringify!($class), " append(char)"), |m, a| append(m, a[0], a[1])),
                    (concat!(stringify!($class), " append(int)"), |m, a| append(m, a[0], a[1])),
                    (concat!(stringify!($class), " append(long)"), |m, a| append(m, a[0], a[1])),
                    (concat!(stringify!($class), " append(float)"), |m, a| append(m, a[0], a[1])),
                    (concat!(stringify!($class), " append(double)"), |m, a| append(m, a[0], a[1])),
                    (concat!(stringify!($class), " append(boolean)"), |m, a| append(m, a[0], a[1])),
                    (concat!(stringify!($class), " append(CharSequence, int, int)"), |m, a| {
                        let (from, to) = (m.int(a[2])?, m.int(a[3])?);
                        let part = substring(m, a[1], from, to)?;
                        append(m, a[0], part)
                    }),
                    (concat!(stringify!($class), " insert(int, Object)"), |m, a| insert(m, a)),
                    (concat!(stringify!($class), " insert(int, char)"), |m, a| insert(m, a)),
                    (concat!(stringify!($class), " insert(int, int)"), |m, a| insert(m, a)),
                    (concat!(stringify!($class), " insert(int, long)"), |m, a| insert(m, a)),
                    (concat!(stringify!($class), " insert(int, double)"), |m, a| insert(m, a)),
                    (concat!(stringify!($class), " insert(int, boolean)"), |m, a| insert(m, a)),
                    (concat!(stringify!($class), " reverse()"), |m, a| {
                        let units = m.units(a[0])?;
                        let reversed: Vec<char> =
                            char::decode_utf16(units.iter().copied()).map(|c| c.unwrap_or('\u{fffd}')).collect();
                        let mut out = Vec::new();
                        reversed.iter().rev().for_each(|c| out.extend_from_slice(c.encode_utf16(&mut [0; 2])));
                        // lone surrogates are turned one by one
                        if out.len() != units.len()
                            || units.iter().any(|unit| (0xd800..0xe000).contains(unit)) && out.contains(&0xfffd)
                        {
                            out = units.iter().rev().copied().collect();
                        }
                        replace(m, a[0], out)
                    }),
                    (concat!(stringify!($class), " deleteCharAt(int)"), |m, a| {
                        let at = m.int(a[1])?;
                        let mut units = m.copied_units(a[0])?;
                        match usize::try_from(at) {
                            Ok(place) if place < units.len() => {
                                units.remove(place);
                                replace(m, a[0], units)
                            }
                            _ => out_of(m, &format!("index {at},length {}", units.len())),
                        }
                    }),
                    (concat!(stringify!($class), " delete(int, int)"), |m, a| {
                        let (from, to) = (m.int(a[1])?, m.int(a[2])?);
                        let mut units = m.copied_units(a[0])?;
                        let to = to.min(units.len() as i32);
                        if from < 0 || from > to {
                            return out_of(m, &format!("start {from}, end {to}, length {}", units.len()));
                        }
                        units.drain(from as usize..to as usize);
                        replace(m, a[0], units)
                    }),
                    (concat!(stringify!($class), " replace(int, int, String)"), |m, a| {
                        let (from, to) = (m.int(a[1])?, m.int(a[2])?);
                        let by = m.copied_units(a[3])?;
                        let mut units = m.copied_units(a[0])?;
                        let to = to.min(units.len() as i32);
                        if from < 0 || from > to {
                            return out_of(m, &format!("start {from}, end {to}, length {}", units.len()));
                        }
                        units.splice(from as usize..to as usize, by);
                        replace(m, a[0], units)
                    }),
                    ("void setLength(int)", |m, a| {
                        let length = m.int(a[1])?;
                        let mut units = m.copied_units(a[0])?;
                        let Ok(length) = usize::try_from(length) else {
                            return out_of(m, &format!("String index out of range: {length}"));
                        };
                        m.charge(length.saturating_mul(2))?;
                        units.resize(length, 0);
                        replace(m, a[0], units)
                    }),
                    ("void setCharAt(int, char)", |m, a| {
                        let (at, unit) = (m.int(a[1])?, m.char(a[2])?);
                        let mut units = m.copied_units(a[0])?;
                        match usize::try_from(at).ok().and_then(|at| units.get_mut(at)) {
                            Some(place) => *place = unit,
                            None => return out_of(m, &format!("index {at},length {}", units.len())),
                        }
                        replace(m, a[0], units)
                    }),
                ],
            );
        };
    }
    builders!(StringBuilder, false);
    builders!(StringBuffer, true);
}

fn builder(table: &mut MethodTable, class: JavaClass, made: &[(&str, crate::machine::Body)]) {
    table.add_methods(class, made);
    table.add_methods(
        class,
        &[
            ("String substring(int)", |m, a| {
                let (from, to) = (m.int(a[1])?, m.units(a[0])?.len() as i32);
                substring(m, a[0], from, to)
            }),
            ("String substring(int, int)", |m, a| {
                let (from, to) = (m.int(a[1])?, m.int(a[2])?);
                substring(m, a[0], from, to)
            }),
            ("int indexOf(String)", |m, a| find(m, a[0], a[1], 0)),
            ("int indexOf(String, int)", |m, a| {
                let from = m.int(a[2])?;
                find(m, a[0], a[1], from)
            }),
            ("int lastIndexOf(String)", |m, a| find_last(m, a[0], a[1], i32::MAX)),
            ("boolean equals(Object)", |_, a| Ok(Value::Bool(a[0] == a[1]))),
            ("String toString()", |m, a| {
                let units = m.copied_units(a[0])?;
                m.text(units)
            }),
        ],
    );
}

fn out_of(m: &mut Machine<'_>, message: &str) -> Result {
    m.throw(JavaClass::StringIndexOutOfBoundsException, message)
}

fn append(m: &mut Machine<'_>, to: Value, what: Value) -> Result {
    // a char array is appended as text in Java; bodies rarely do, and it is no parameter here
    let mut more = Vec::new();
    m.show(what, &mut more)?;
    m.charge(more.len() * 2)?;
    if let Object::Builder(units, _) = m.object(to)? {
        units.append(&mut more);
    }
    Ok(to)
}

fn replace(m: &mut Machine<'_>, of: Value, by: Vec<u16>) -> Result {
    m.charge(by.len() * 2)?;
    if let Object::Builder(units, _) = m.object(of)? {
        *units = by;
    }
    Ok(of)
}

fn insert(m: &mut Machine<'_>, a: &[Value]) -> Result {
    let at = m.int(a[1])?;
    let mut more = Vec::new();
    m.show(a[2], &mut more)?;
    let mut units = m.copied_units(a[0])?;
    match usize::try_from(at) {
        Ok(place) if place <= units.len() => {
            units.splice(place..place, more);
            replace(m, a[0], units)
        }
        _ => out_of(m, &format!("offset {at}, length {}", units.len())),
    }
}

fn substring(m: &mut Machine<'_>, of: Value, from: i32, to: i32) -> Result {
    let units = m.units(of)?;
    if from < 0 || to < from || to as usize > units.len() {
        let length = units.len();
        return out_of(m, &format!("begin {from}, end {to}, length {length}"));
    }
    let part = units[from as usize..to as usize].to_vec();
    m.text(part)
}

/// The place of a text in another from a place on; -1: it is not there.
fn position(units: &[u16], part: &[u16], from: i32) -> i32 {
    let from = (from.max(0) as usize).min(units.len());
    if part.is_empty() {
        return from as i32;
    }
    units[from..].windows(part.len()).position(|window| window == part).map_or(-1, |at| (from + at) as i32)
}

/// Takes steps for a search.
fn search(m: &mut Machine<'_>, of: Value, part: Value) -> Result<(Vec<u16>, Vec<u16>)> {
    let part = m.copied_units(part)?;
    let units = m.copied_units(of)?;
    m.step(units.len() / 4 * (1 + part.len() / 16))?;
    Ok((units, part))
}

fn find(m: &mut Machine<'_>, of: Value, part: Value, from: i32) -> Result {
    let (units, part) = search(m, of, part)?;
    Ok(Value::Int(position(&units, &part, from)))
}

/// The place of a character. It takes the steps of what was looked at, so that a body may go from
/// one to the next.
fn find_code(m: &mut Machine<'_>, of: Value, part: &[u16], from: i32) -> Result {
    let units = m.units(of)?;
    let found = position(units, part, from);
    let end = usize::try_from(found).unwrap_or(units.len());
    let looked_at = end.saturating_sub(from.max(0) as usize);
    m.step_bytes(looked_at * 2)?;
    Ok(Value::Int(found))
}

fn find_last(m: &mut Machine<'_>, of: Value, part: Value, from: i32) -> Result {
    let (units, part) = search(m, of, part)?;
    let Some(most) = units.len().checked_sub(part.len()) else { return Ok(Value::Int(-1)) };
    if from < 0 {
        return Ok(Value::Int(-1));
    }
    let most = most.min(from as usize);
    let found = (0..=most).rev().find(|at| units[*at..].starts_with(&part));
    Ok(Value::Int(found.map_or(-1, |at| at as i32)))
}

/// A character given as int, as units.
fn of_code(m: &mut Machine<'_>, code: Value) -> Result<Vec<u16>> {
    let code = m.int(code)?;
    Ok(match u32::try_from(code).ok().and_then(char::from_u32) {
        Some(c) => c.encode_utf16(&mut [0; 2]).to_vec(),
        None => vec![code as u16],
    })
}

fn strings(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::String,
        &[
            ("String new()", |m, _| m.text(Vec::new())),
            ("String new(CharSequence)", |m, a| {
                let units = m.copied_units(a[0])?;
                m.text(units)
            }),
            ("String new(char[])", |m, a| {
                let units = chars(m, a[0])?;
                m.text(units)
            }),
            ("static String valueOf(char[])", |m, a| {
                let units = chars(m, a[0])?;
                m.text(units)
            }),
            ("static String valueOf(Object)", |m, a| m.text_of(a[0])),
            ("static String valueOf(char)", |m, a| m.text_of(a[0])),
            ("static String valueOf(int)", |m, a| m.text_of(a[0])),
            ("static String valueOf(long)", |m, a| m.text_of(a[0])),
            ("static String valueOf(float)", |m, a| m.text_of(a[0])),
            ("static String valueOf(double)", |m, a| m.text_of(a[0])),
            ("static String valueOf(boolean)", |m, a| m.text_of(a[0])),
            ("String substring(int)", |m, a| {
                let (from, to) = (m.int(a[1])?, m.units(a[0])?.len() as i32);
                substring(m, a[0], from, to)
            }),
            ("String substring(int, int)", |m, a| {
                let (from, to) = (m.int(a[1])?, m.int(a[2])?);
                substring(m, a[0], from, to)
            }),
            ("int indexOf(String)", |m, a| find(m, a[0], a[1], 0)),
            ("int indexOf(String, int)", |m, a| {
                let from = m.int(a[2])?;
                find(m, a[0], a[1], from)
            }),
            ("int indexOf(int)", |m, a| {
                let part = of_code(m, a[1])?;
                find_code(m, a[0], &part, 0)
            }),
            ("int indexOf(int, int)", |m, a| {
                let (part, from) = (of_code(m, a[1])?, m.int(a[2])?);
                find_code(m, a[0], &part, from)
            }),
            ("int lastIndexOf(String)", |m, a| find_last(m, a[0], a[1], i32::MAX)),
            ("int lastIndexOf(int)", |m, a| {
                let part = of_code(m, a[1])?;
                let part = m.text(part)?;
                find_last(m, a[0], part, i32::MAX)
            }),
            ("boolean contains(CharSequence)", |m, a| {
                let (units, part) = search(m, a[0], a[1])?;
                Ok(Value::Bool(position(&units, &part, 0) >= 0))
            }),
            ("boolean startsWith(String)", |m, a| {
                let part = m.copied_units(a[1])?;
                Ok(Value::Bool(m.units(a[0])?.starts_with(&part)))
            }),
            ("boolean startsWith(String, int)", |m, a| {
                let (part, at) = (m.copied_units(a[1])?, m.int(a[2])?);
                let units = m.units(a[0])?;
                let rest = usize::try_from(at).ok().and_then(|at| units.get(at..));
                Ok(Value::Bool(rest.is_some_and(|rest| rest.starts_with(&part))))
            }),
            ("boolean endsWith(String)", |m, a| {
                let part = m.copied_units(a[1])?;
                Ok(Value::Bool(m.units(a[0])?.ends_with(&part)))
            }),
            ("int compareTo(String)", |m, a| {
                m.units(a[1])?;
                compare_to(m, a[0], a[1])
            }),
            ("int compareToIgnoreCase(String)", |m, a| {
                let (x, y) = (folded(m, a[0])?, folded(m, a[1])?);
                let (x, y) = (m.text(x)?, m.text(y)?);
                compare_to(m, x, y)
            }),
            ("boolean equalsIgnoreCase(String)", |m, a| {
                if a[1] == Value::Null {
                    return Ok(Value::Bool(false));
                }
                Ok(Value::Bool(folded(m, a[0])? == folded(m, a[1])?))
            }),
            ("String concat(String)", |m, a| {
                let mut units = m.copied_units(a[0])?;
                units.extend_from_slice(m.units(a[1])?);
                m.text(units)
            }),
        ],
    );
}

/// Units with each case mapped, one by one, as comparisons that ignore case do.
fn folded(m: &mut Machine<'_>, of: Value) -> Result<Vec<u16>> {
    let one = |unit: u16| -> u16 {
        let Some(c) = char::from_u32(unit.into()) else { return unit };
        let map = |mut cs: Box<dyn Iterator<Item = char>>, c: char| match (cs.next(), cs.next()) {
            (Some(only), None) => only,
            _ => c,
        };
        let upper = map(Box::new(c.to_uppercase()), c);
        let lower = map(Box::new(upper.to_lowercase()), upper);
        u16::try_from(u32::from(lower)).unwrap_or(unit)
    };
    let units: Vec<u16> = m.units(of)?.iter().map(|unit| one(*unit)).collect();
    m.step(units.len())?;
    Ok(units)
}

fn chars(m: &mut Machine<'_>, array: Value) -> Result<Vec<u16>> {
    let items = m.items(array)?;
    let mut units = Vec::with_capacity(items.len());
    for item in items {
        units.push(m.char(item)?);
    }
    Ok(units)
}

/// A text mapped as a whole.
fn mapped(m: &mut Machine<'_>, of: Value, map: impl Fn(&str) -> String) -> Result {
    let text = m.rust_string(of)?;
    m.step(text.len() / 4)?;
    m.string(&map(&text))
}

fn more_strings(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::String,
        &[
            ("String toUpperCase()", |m, a| mapped(m, a[0], str::to_uppercase)),
            ("String toLowerCase()", |m, a| mapped(m, a[0], str::to_lowercase)),
            ("String trim()", |m, a| mapped(m, a[0], |text| text.trim_matches(|c| c <= ' ').to_owned())),
            ("String strip()", |m, a| mapped(m, a[0], |text| text.trim().to_owned())),
            ("boolean isBlank()", |m, a| Ok(Value::Bool(m.rust_string(a[0])?.trim().is_empty()))),
            ("String repeat(int)", |m, a| {
                let count = m.int(a[1])?;
                let Ok(count) = usize::try_from(count) else {
                    return m.throw(JavaClass::IllegalArgumentException, format!("count is negative: {count}"));
                };
                let units = m.copied_units(a[0])?;
                m.charge(units.len().saturating_mul(count).saturating_mul(2))?;
                m.text(units.repeat(count))
            }),
            ("String replace(char, char)", |m, a| {
                let (from, to) = (m.char(a[1])?, m.char(a[2])?);
                let units = m.units(a[0])?.iter().map(|unit| if *unit == from { to } else { *unit }).collect();
                m.text(units)
            }),
            ("String replace(CharSequence, CharSequence)", |m, a| {
                let (units, part) = search(m, a[0], a[1])?;
                let by = m.copied_units(a[2])?;
                let mut out = Vec::new();
                let mut at = 0;
                loop {
                    let next = position(&units, &part, at as i32);
                    let Ok(next) = usize::try_from(next) else { break };
                    m.charge((next - at + by.len()) * 2)?;
                    out.extend_from_slice(&units[at..next]);
                    out.extend_from_slice(&by);
                    if part.is_empty() {
                        // between all units
                        let Some(unit) = units.get(next) else { return m.text(out) };
                        out.push(*unit);
                        at = next + 1;
                    } else {
                        at = next + part.len();
                    }
                }
                out.extend_from_slice(&units[at..]);
                m.text(out)
            }),
            ("char[] toCharArray()", |m, a| {
                let units = m.units(a[0])?.iter().map(|unit| Value::Char(*unit)).collect();
                m.alloc(Object::Array(Type::Prim(crate::class::Prim::Char), units))
            }),
            ("byte[] getBytes()", |m, a| {
                let bytes = m.rust_string(a[0])?.into_bytes().into_iter().map(|byte| Value::Byte(byte as i8)).collect();
                m.alloc(Object::Array(Type::Prim(crate::class::Prim::Byte), bytes))
            }),
            ("int codePointAt(int)", |m, a| {
                let at = m.int(a[1])?;
                let units = m.units(a[0])?;
                let length = units.len();
                match usize::try_from(at).ok().and_then(|at| units.get(at..)).filter(|rest| !rest.is_empty()) {
                    Some(rest) => Ok(Value::Int(match char::decode_utf16(rest.iter().copied()).next() {
                        Some(Ok(c)) => u32::from(c) as i32,
                        _ => i32::from(rest[0]),
                    })),
                    None => out_of(m, &format!("index {at}, length {length}")),
                }
            }),
            ("String[] split(String)", |m, a| split(m, a[0], a[1], 0)),
            ("String[] split(String, int)", |m, a| {
                let limit = m.int(a[2])?;
                split(m, a[0], a[1], limit)
            }),
            ("static String join(CharSequence, Object...)", |m, a| join(m, a[0], a[1])),
            ("static String join(CharSequence, Iterable)", |m, a| join(m, a[0], a[1])),
        ],
    );
}

fn join(m: &mut Machine<'_>, between: Value, items: Value) -> Result {
    let between = m.copied_units(between)?;
    let mut out = Vec::new();
    for (at, item) in m.items(items)?.into_iter().enumerate() {
        if at > 0 {
            m.charge(between.len() * 2)?;
            out.extend_from_slice(&between);
        }
        m.show(item, &mut out)?;
    }
    m.text(out)
}

/// `split` by a text without the signs of regular expressions, or by one escaped sign.
fn split(m: &mut Machine<'_>, of: Value, by: Value, limit: i32) -> Result {
    let pattern = m.rust_string(by)?;
    let mut literal = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped) if !escaped.is_ascii_alphanumeric() => literal.push(escaped),
                Some('t') => literal.push('\t'),
                Some('n') => literal.push('\n'),
                _ => return no_expression(m, &pattern),
            },
            '.' | '$' | '|' | '(' | ')' | '[' | '{' | '^' | '?' | '*' | '+' => return no_expression(m, &pattern),
            _ => literal.push(c),
        }
    }
    let part: Vec<u16> = literal.encode_utf16().collect();
    let units = m.copied_units(of)?;
    m.step(units.len())?;
    let mut pieces: Vec<Vec<u16>> = Vec::new();
    let mut at = 0;
    while limit <= 0 || pieces.len() + 1 < limit as usize {
        let next = match part.is_empty() {
            true if at + 1 >= units.len() => break,
            true => at as i32 + 1,
            false => position(&units, &part, at as i32),
        };
        let Ok(next) = usize::try_from(next) else { break };
        pieces.push(units[at..next].to_vec());
        at = next + part.len();
    }
    pieces.push(units[at..].to_vec());
    if limit == 0 {
        while pieces.len() > 1 && pieces.last().is_some_and(Vec::is_empty) {
            pieces.pop();
        }
        // a text of separators alone has no pieces; an empty text is one
        if pieces.len() == 1 && pieces[0].is_empty() && !units.is_empty() {
            pieces.pop();
        }
    }
    let mut values = Vec::new();
    for piece in pieces {
        values.push(m.text(piece)?);
    }
    m.alloc(Object::Array(Type::of(JavaClass::String), values))
}

fn no_expression(m: &mut Machine<'_>, pattern: &str) -> Result {
    let message = format!("regular expressions are not supported in user-defined functions: {pattern}");
    m.throw(JavaClass::UnsupportedOperationException, message)
}
