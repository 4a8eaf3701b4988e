//! The classes of CQL values: UUID, InetAddress, ByteBuffer, Date, LocalDate, Duration, TupleValue,
//! UDTValue, and the context of a function.

use types::{CqlType, calendar};

use super::MethodTable;
use crate::class::{JavaClass, Prim, Type};
use crate::machine::{Buffer, Machine, Object, Result, Value, convert, show_address};

pub(super) fn declare(table: &mut MethodTable) {
    simple(table);
    dates(table);
    buffers(table);
    fields(table);
    context(table);
}

fn uuid(m: &mut Machine<'_>, value: Value) -> Result<u128> {
    match m.peek(value) {
        Some(Object::Uuid(bytes)) => Ok(u128::from_be_bytes(*bytes)),
        _ => m.wrong_class(value, "java.util.UUID"),
    }
}

fn simple(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::Uuid,
        &[
            ("UUID new(long, long)", |m, a| {
                let (high, low) = (m.long(a[0])?, m.long(a[1])?);
                m.alloc(Object::Uuid((u128::from(high as u64) << 64 | u128::from(low as u64)).to_be_bytes()))
            }),
            ("static UUID fromString(String)", |m, a| {
                let text = m.rust_string(a[0])?;
                match types::literal::parse_uuid(&text) {
                    Some(bytes) => m.alloc(Object::Uuid(bytes)),
                    None => m.throw(JavaClass::IllegalArgumentException, format!("Invalid UUID string: {text}")),
                }
            }),
            ("long getMostSignificantBits()", |m, a| Ok(Value::Long((uuid(m, a[0])? >> 64) as i64))),
            ("long getLeastSignificantBits()", |m, a| Ok(Value::Long(uuid(m, a[0])? as i64))),
            ("int version()", |m, a| Ok(Value::Int((uuid(m, a[0])? >> 76 & 15) as i32))),
            ("int variant()", |m, a| {
                let low = uuid(m, a[0])? as u64;
                Ok(Value::Int(match low >> 61 {
                    0..4 => 0,
                    4 | 5 => 2,
                    6 => 6,
                    _ => 7,
                }))
            }),
            ("long timestamp()", |m, a| {
                let high = (uuid(m, a[0])? >> 64) as u64;
                if high >> 12 & 15 != 1 {
                    return m.throw(JavaClass::UnsupportedOperationException, "Not a time-based UUID");
                }
                Ok(Value::Long(((high & 0xfff) << 48 | (high >> 16 & 0xffff) << 32 | high >> 32) as i64))
            }),
            ("int compareTo(UUID)", |m, a| m.compare(a[0], a[1]).map(|order| Value::Int(order as i32))),
        ],
    );
    table.add_methods(
        JavaClass::InetAddress,
        &[
            ("String getHostAddress()", |m, a| {
                let text = match m.object(a[0])? {
                    Object::Inet(bytes) => show_address(bytes),
                    _ => return m.wrong_class(a[0], "java.net.InetAddress"),
                };
                m.string(&text)
            }),
            ("byte[] getAddress()", |m, a| {
                let bytes: Vec<Value> = match m.object(a[0])? {
                    Object::Inet(bytes) => bytes.iter().map(|byte| Value::Byte(*byte as i8)).collect(),
                    _ => return m.wrong_class(a[0], "java.net.InetAddress"),
                };
                m.alloc(Object::Array(Type::Prim(Prim::Byte), bytes))
            }),
            ("boolean isLoopbackAddress()", |m, a| {
                let loopback = match m.object(a[0])? {
                    Object::Inet(bytes) => match types::inet::of_bytes(bytes) {
                        Some(address) => address.is_loopback(),
                        None => false,
                    },
                    _ => return m.wrong_class(a[0], "java.net.InetAddress"),
                };
                Ok(Value::Bool(loopback))
            }),
        ],
    );
    table.add_methods(
        JavaClass::Duration,
        &[
            ("static Duration newInstance(int, int, long)", |m, a| {
                let (months, days, nanoseconds) = (m.int(a[0])?, m.int(a[1])?, m.long(a[2])?);
                let signs = [i64::from(months), i64::from(days), nanoseconds];
                if signs.iter().any(|part| *part < 0) && signs.iter().any(|part| *part > 0) {
                    let message = format!(
                        "All values must be either negative or positive, got {months} months, {days} days, {nanoseconds} nanoseconds"
                    );
                    return m.throw(JavaClass::IllegalArgumentException, message);
                }
                m.alloc(Object::Duration(types::duration::Duration { months, days, nanoseconds }))
            }),
            ("int getMonths()", |m, a| Ok(Value::Int(duration(m, a[0])?.months))),
            ("int getDays()", |m, a| Ok(Value::Int(duration(m, a[0])?.days))),
            ("long getNanoseconds()", |m, a| Ok(Value::Long(duration(m, a[0])?.nanoseconds))),
        ],
    );
}

fn duration(m: &mut Machine<'_>, value: Value) -> Result<types::duration::Duration> {
    match m.peek(value) {
        Some(Object::Duration(duration)) => Ok(*duration),
        _ => m.wrong_class(value, "org.apache.cassandra.cql3.functions.types.Duration"),
    }
}

fn millis(m: &mut Machine<'_>, value: Value) -> Result<i64> {
    match m.peek(value) {
        Some(Object::Date(millis)) => Ok(*millis),
        _ => m.wrong_class(value, "java.util.Date"),
    }
}

fn days(m: &mut Machine<'_>, value: Value) -> Result<i32> {
    match m.peek(value) {
        Some(Object::LocalDate(days)) => Ok(*days),
        _ => m.wrong_class(value, "org.apache.cassandra.cql3.functions.types.LocalDate"),
    }
}

const DAY: i64 = 86_400_000;

fn dates(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::Date,
        &[
            ("Date new(long)", |m, a| {
                let millis = m.long(a[0])?;
                m.alloc(Object::Date(millis))
            }),
            ("long getTime()", |m, a| millis(m, a[0]).map(Value::Long)),
            ("void setTime(long)", |m, a| {
                let time = m.long(a[1])?;
                if let Object::Date(millis) = m.object(a[0])? {
                    *millis = time;
                }
                Ok(Value::Null)
            }),
            ("boolean before(Date)", |m, a| Ok(Value::Bool(millis(m, a[0])? < millis(m, a[1])?))),
            ("boolean after(Date)", |m, a| Ok(Value::Bool(millis(m, a[0])? > millis(m, a[1])?))),
            ("int compareTo(Date)", |m, a| Ok(Value::Int(millis(m, a[0])?.cmp(&millis(m, a[1])?) as i32))),
        ],
    );
    table.add_methods(
        JavaClass::LocalDate,
        &[
            ("static LocalDate fromDaysSinceEpoch(int)", |m, a| {
                let days = m.int(a[0])?;
                m.alloc(Object::LocalDate(days))
            }),
            ("static LocalDate fromMillisSinceEpoch(long)", |m, a| {
                let days = m.long(a[0])?.div_euclid(DAY);
                match i32::try_from(days) {
                    Ok(days) => m.alloc(Object::LocalDate(days)),
                    Err(_) => m.throw(
                        JavaClass::IllegalArgumentException,
                        "Date should be in the range [-5877641-06-23; 5881580-07-11]",
                    ),
                }
            }),
            ("static LocalDate fromYearMonthDay(int, int, int)", |m, a| {
                let (year, month, day) = (m.int(a[0])?, m.int(a[1])?, m.int(a[2])?);
                let known = u8::try_from(month).ok().zip(u8::try_from(day).ok()).filter(|(month, day)| {
                    (1..=12).contains(month) && *day >= 1 && *day <= calendar::month_length(year.into(), *month)
                });
                match known {
                    Some((month, day)) => {
                        let days = calendar::Date { year: year.into(), month, day }.days();
                        m.alloc(Object::LocalDate(days as i32))
                    }
                    None => m.throw(JavaClass::IllegalArgumentException, format!("Invalid date: {year}-{month}-{day}")),
                }
            }),
            ("int getDaysSinceEpoch()", |m, a| days(m, a[0]).map(Value::Int)),
            ("long getMillisSinceEpoch()", |m, a| Ok(Value::Long(i64::from(days(m, a[0])?) * DAY))),
            ("int getYear()", |m, a| Ok(Value::Int(calendar::Date::of_days(days(m, a[0])?.into()).year as i32))),
            ("int getMonth()", |m, a| Ok(Value::Int(calendar::Date::of_days(days(m, a[0])?.into()).month.into()))),
            ("int getDay()", |m, a| Ok(Value::Int(calendar::Date::of_days(days(m, a[0])?.into()).day.into()))),
        ],
    );
}

fn buffer<'m>(m: &'m mut Machine<'_>, value: Value) -> Result<&'m mut Buffer> {
    if !matches!(m.peek(value), Some(Object::Buffer(_))) {
        return m.wrong_class(value, "java.nio.ByteBuffer");
    }
    match m.object(value)? {
        Object::Buffer(buffer) => Ok(buffer),
        _ => Err(crate::machine::Stop::Depth),
    }
}

/// Reads a number at the position, which moves on, or at an index.
fn read<const N: usize>(m: &mut Machine<'_>, a: &[Value]) -> Result<[u8; N]> {
    let index = match a.get(1) {
        Some(index) => Some(m.int(*index)?),
        None => None,
    };
    let of = buffer(m, a[0])?;
    let at = match index {
        Some(index) => usize::try_from(index).unwrap_or(usize::MAX),
        None => of.position,
    };
    let bytes = at.checked_add(N).filter(|end| *end <= of.limit).and_then(|end| of.bytes.get(at..end));
    let Some(Ok(mut found)) = bytes.map(<[u8; N]>::try_from) else {
        return match index {
            Some(_) => m.throw_with(JavaClass::IndexOutOfBoundsException, Value::Null),
            None => m.throw_with(JavaClass::BufferUnderflowException, Value::Null),
        };
    };
    if index.is_none() {
        of.position += N;
    }
    if of.little {
        found.reverse();
    }
    Ok(found)
}

/// Writes a number at the position, which moves on.
fn write<const N: usize>(m: &mut Machine<'_>, of: Value, mut bytes: [u8; N]) -> Result {
    let to = buffer(m, of)?;
    if to.little {
        bytes.reverse();
    }
    let (at, limit) = (to.position, to.limit);
    match to.bytes.get_mut(at..at + N).filter(|_| at + N <= limit) {
        Some(place) => {
            place.copy_from_slice(&bytes);
            to.position += N;
            Ok(of)
        }
        None => m.throw_with(JavaClass::BufferOverflowException, Value::Null),
    }
}

fn whole(bytes: Vec<u8>) -> Object {
    let limit = bytes.len();
    Object::Buffer(Buffer { bytes, position: 0, limit, little: false, mark: None })
}

fn bytes_of(m: &mut Machine<'_>, array: Value) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for item in m.items(array)? {
        bytes.push(m.int(item)? as u8);
    }
    Ok(bytes)
}

fn buffers(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::ByteBuffer,
        &[
            ("static ByteBuffer allocate(int)", |m, a| match m.int(a[0])? {
                size @ 0.. => {
                    m.charge(size as usize)?;
                    m.alloc(whole(vec![0; size as usize]))
                }
                size => m.throw(JavaClass::IllegalArgumentException, format!("capacity < 0: ({size} < 0)")),
            }),
            ("static ByteBuffer wrap(byte[])", |m, a| {
                let bytes = bytes_of(m, a[0])?;
                m.alloc(whole(bytes))
            }),
            ("int remaining()", |m, a| buffer(m, a[0]).map(|b| Value::Int((b.limit - b.position) as i32))),
            ("boolean hasRemaining()", |m, a| buffer(m, a[0]).map(|b| Value::Bool(b.limit > b.position))),
            ("int position()", |m, a| buffer(m, a[0]).map(|b| Value::Int(b.position as i32))),
            ("int limit()", |m, a| buffer(m, a[0]).map(|b| Value::Int(b.limit as i32))),
            ("int capacity()", |m, a| buffer(m, a[0]).map(|b| Value::Int(b.bytes.len() as i32))),
            ("ByteBuffer position(int)", |m, a| {
                let at = m.int(a[1])?;
                let b = buffer(m, a[0])?;
                match usize::try_from(at) {
                    Ok(at) if at <= b.limit => {
                        b.position = at;
                        b.mark = b.mark.filter(|mark| *mark <= at);
                    }
                    _ => return m.throw_with(JavaClass::IllegalArgumentException, Value::Null),
                }
                Ok(a[0])
            }),
            ("ByteBuffer limit(int)", |m, a| {
                let at = m.int(a[1])?;
                let b = buffer(m, a[0])?;
                match usize::try_from(at) {
                    Ok(at) if at <= b.bytes.len() => {
                        b.limit = at;
                        b.position = b.position.min(at);
                        b.mark = b.mark.filter(|mark| *mark <= at);
                    }
                    _ => return m.throw_with(JavaClass::IllegalArgumentException, Value::Null),
                }
                Ok(a[0])
            }),
            ("ByteBuffer flip()", |m, a| {
                let b = buffer(m, a[0])?;
                (b.limit, b.position, b.mark) = (b.position, 0, None);
                Ok(a[0])
            }),
            ("ByteBuffer rewind()", |m, a| {
                let b = buffer(m, a[0])?;
                (b.position, b.mark) = (0, None);
                Ok(a[0])
            }),
            ("ByteBuffer clear()", |m, a| {
                let b = buffer(m, a[0])?;
                (b.limit, b.position, b.mark) = (b.bytes.len(), 0, None);
                Ok(a[0])
            }),
            ("ByteBuffer mark()", |m, a| {
                let b = buffer(m, a[0])?;
                b.mark = Some(b.position);
                Ok(a[0])
            }),
            ("ByteBuffer reset()", |m, a| {
                let b = buffer(m, a[0])?;
                let Some(mark) = b.mark else {
                    return m.throw_with(JavaClass::InvalidMarkException, Value::Null);
                };
                b.position = mark;
                Ok(a[0])
            }),
            ("ByteBuffer duplicate()", |m, a| {
                let copy = Buffer { little: false, ..buffer(m, a[0])?.clone() };
                m.alloc(Object::Buffer(copy))
            }),
            ("byte get()", |m, a| read::<1>(m, a).map(|bytes| Value::Byte(i8::from_be_bytes(bytes)))),
            ("byte get(int)", |m, a| read::<1>(m, a).map(|bytes| Value::Byte(i8::from_be_bytes(bytes)))),
            ("short getShort()", |m, a| read(m, a).map(|bytes| Value::Short(i16::from_be_bytes(bytes)))),
            ("short getShort(int)", |m, a| read(m, a).map(|bytes| Value::Short(i16::from_be_bytes(bytes)))),
            ("int getInt()", |m, a| read(m, a).map(|bytes| Value::Int(i32::from_be_bytes(bytes)))),
            ("int getInt(int)", |m, a| read(m, a).map(|bytes| Value::Int(i32::from_be_bytes(bytes)))),
            ("long getLong()", |m, a| read(m, a).map(|bytes| Value::Long(i64::from_be_bytes(bytes)))),
            ("long getLong(int)", |m, a| read(m, a).map(|bytes| Value::Long(i64::from_be_bytes(bytes)))),
            ("float getFloat()", |m, a| read(m, a).map(|bytes| Value::Float(f32::from_be_bytes(bytes)))),
            ("double getDouble()", |m, a| read(m, a).map(|bytes| Value::Double(f64::from_be_bytes(bytes)))),
            ("ByteBuffer put(byte)", |m, a| {
                let value = m.int(a[1])? as u8;
                write(m, a[0], [value])
            }),
            ("ByteBuffer put(byte[])", |m, a| {
                for byte in bytes_of(m, a[1])? {
                    write(m, a[0], [byte])?;
                }
                Ok(a[0])
            }),
            ("ByteBuffer putShort(short)", |m, a| {
                let value = m.int(a[1])? as i16;
                write(m, a[0], value.to_be_bytes())
            }),
            ("ByteBuffer putInt(int)", |m, a| {
                let value = m.int(a[1])?;
                write(m, a[0], value.to_be_bytes())
            }),
            ("ByteBuffer putLong(long)", |m, a| {
                let value = m.long(a[1])?;
                write(m, a[0], value.to_be_bytes())
            }),
            ("ByteBuffer putFloat(float)", |m, a| {
                let value = m.float(a[1])?;
                write(m, a[0], value.to_be_bytes())
            }),
            ("ByteBuffer putDouble(double)", |m, a| {
                let value = m.double(a[1])?;
                write(m, a[0], value.to_be_bytes())
            }),
            ("byte[] array()", |m, a| {
                let bytes = buffer(m, a[0])?.bytes.iter().map(|byte| Value::Byte(*byte as i8)).collect();
                m.alloc(Object::Array(Type::Prim(Prim::Byte), bytes))
            }),
        ],
    );
}

/// The place of a field given by number or name, with its type.
fn field(m: &mut Machine<'_>, of: Value, which: Value) -> Result<(usize, CqlType)> {
    let name = match which {
        Value::Int(_) => None,
        _ => Some(m.rust_string(which)?),
    };
    let found = match (m.peek(of), &name, which) {
        (Some(Object::Tuple(types, _)), None, Value::Int(at)) => {
            usize::try_from(at).ok().and_then(|at| Some((at, types.get(at)?.clone())))
        }
        (Some(Object::Udt(udt, _)), None, Value::Int(at)) => {
            usize::try_from(at).ok().and_then(|at| Some((at, udt.fields.get(at)?.1.clone())))
        }
        (Some(Object::Udt(udt, _)), Some(name), _) => {
            // a name without quotes is found in any case
            let exact = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
            udt.fields.iter().enumerate().find_map(|(at, (field, ty))| {
                let same = match exact {
                    Some(exact) => exact == field,
                    None => name.eq_ignore_ascii_case(field),
                };
                same.then(|| (at, ty.clone()))
            })
        }
        _ => return m.wrong_class(of, "org.apache.cassandra.cql3.functions.types.UDTValue"),
    };
    match (found, name, which) {
        (Some(found), ..) => Ok(found),
        (None, Some(name), _) => {
            m.throw(JavaClass::IllegalArgumentException, format!("{name} is not a field defined in this definition"))
        }
        (None, None, Value::Int(at)) => {
            let count = match m.object(of)? {
                Object::Tuple(types, _) => types.len(),
                Object::Udt(udt, _) => udt.fields.len(),
                _ => 0,
            };
            m.throw(JavaClass::ArrayIndexOutOfBoundsException, format!("Index {at} out of bounds for length {count}"))
        }
        _ => m.null_pointer(),
    }
}

/// Whether a field of a type is read and written as this Java class.
fn suits(ty: &CqlType, class: JavaClass) -> bool {
    Type::of_cql(ty, false).class() == Some(class)
}

fn read_field(m: &mut Machine<'_>, a: &[Value], class: JavaClass, primitive: Option<Prim>) -> Result {
    let (at, ty) = field(m, a[0], a[1])?;
    if !suits(&ty, class) {
        return no_codec(m, &ty, class);
    }
    let bytes = match m.object(a[0])? {
        Object::Tuple(_, fields) | Object::Udt(_, fields) => fields.get(at).cloned().flatten(),
        _ => None,
    };
    match (bytes, primitive) {
        (Some(bytes), _) => m.decode(&ty, &bytes),
        (None, Some(Prim::Boolean)) => Ok(Value::Bool(false)),
        (None, Some(prim)) => Ok(convert(prim, Value::Int(0)).unwrap_or(Value::Null)),
        (None, None) if class == JavaClass::List => m.list(Vec::new()),
        (None, None) => Ok(Value::Null),
    }
}

fn no_codec<T>(m: &mut Machine<'_>, ty: &CqlType, class: JavaClass) -> Result<T> {
    let message = format!("Codec not found for requested operation: [{} <-> {}]", ty.cql_name(), class.full_name());
    m.throw(JavaClass::CodecNotFoundException, message)
}

fn write_field(m: &mut Machine<'_>, a: &[Value], class: JavaClass) -> Result {
    let (at, ty) = field(m, a[0], a[1])?;
    if !suits(&ty, class) {
        return no_codec(m, &ty, class);
    }
    let bytes = match a[2] {
        Value::Null => None,
        value => Some(m.encode(&ty, value)?),
    };
    put(m, a[0], at, bytes)
}

fn put(m: &mut Machine<'_>, of: Value, at: usize, bytes: Option<Vec<u8>>) -> Result {
    m.charge(bytes.as_ref().map_or(0, Vec::len))?;
    if let Object::Tuple(_, fields) | Object::Udt(_, fields) = m.object(of)?
        && let Some(place) = fields.get_mut(at)
    {
        *place = bytes;
    }
    Ok(of)
}

fn fields(table: &mut MethodTable) {
    macro_rules! accessors {
        ($($name:literal $java:literal $class:ident $prim:expr,)*) => {
            $(
                let (get, set): (crate::machine::Body, crate::machine::Body) =
                    (|m, a| read_field(m, a, JavaClass::$class, $prim), |m, a| write_field(m, a, JavaClass::$class));
                for which in ["int", "String"] {
                    table.add_methods(JavaClass::UdtValue, &[
                        (&format!("{} get{}({which})", $java, $name), get),
                        (&format!("UDTValue set{}({which}, {})", $name, $java), set),
                    ]);
                }
                table.add_methods(JavaClass::TupleValue, &[
                    (concat!($java, " get", $name, "(int)"), get),
                    (concat!("TupleValue set", $name, "(int, ", $java, ")"), set),
                ]);
            )*
        };
    }
    accessors! {
        "Bool" "boolean" Boolean Some(Prim::Boolean),
        "Byte" "byte" Byte Some(Prim::Byte),
        "Short" "short" Short Some(Prim::Short),
        "Int" "int" Integer Some(Prim::Int),
        "Long" "long" Long Some(Prim::Long),
        "Time" "long" Long Some(Prim::Long),
        "Float" "float" Float Some(Prim::Float),
        "Double" "double" Double Some(Prim::Double),
        "Timestamp" "Date" Date None,
        "Date" "LocalDate" LocalDate None,
        "String" "String" String None,
        "Bytes" "ByteBuffer" ByteBuffer None,
        "Varint" "BigInteger" BigInteger None,
        "Decimal" "BigDecimal" BigDecimal None,
        "UUID" "UUID" Uuid None,
        "Inet" "InetAddress" InetAddress None,
        "UDTValue" "UDTValue" UdtValue None,
        "TupleValue" "TupleValue" TupleValue None,
    }
    let is_null: crate::machine::Body = |m, a| {
        let (at, _) = field(m, a[0], a[1])?;
        match m.object(a[0])? {
            Object::Tuple(_, fields) | Object::Udt(_, fields) => {
                Ok(Value::Bool(fields.get(at).is_none_or(Option::is_none)))
            }
            _ => Ok(Value::Bool(true)),
        }
    };
    let to_null: crate::machine::Body = |m, a| {
        let (at, _) = field(m, a[0], a[1])?;
        put(m, a[0], at, None)
    };
    table.add_methods(
        JavaClass::UdtValue,
        &[
            ("boolean isNull(int)", is_null),
            ("boolean isNull(String)", is_null),
            ("UDTValue setToNull(int)", to_null),
            ("UDTValue setToNull(String)", to_null),
            ("UDTValue setList(int, List<Object>)", |m, a| write_field(m, a, JavaClass::List)),
            ("UDTValue setList(String, List<Object>)", |m, a| write_field(m, a, JavaClass::List)),
            ("UDTValue setSet(int, Set<Object>)", |m, a| write_field(m, a, JavaClass::Set)),
            ("UDTValue setSet(String, Set<Object>)", |m, a| write_field(m, a, JavaClass::Set)),
            ("UDTValue setMap(int, Map<Object, Object>)", |m, a| write_field(m, a, JavaClass::Map)),
            ("UDTValue setMap(String, Map<Object, Object>)", |m, a| write_field(m, a, JavaClass::Map)),
        ],
    );
    table.add_methods(
        JavaClass::TupleValue,
        &[
            ("boolean isNull(int)", is_null),
            ("TupleValue setToNull(int)", to_null),
            ("TupleValue setList(int, List<Object>)", |m, a| write_field(m, a, JavaClass::List)),
            ("TupleValue setSet(int, Set<Object>)", |m, a| write_field(m, a, JavaClass::Set)),
            ("TupleValue setMap(int, Map<Object, Object>)", |m, a| write_field(m, a, JavaClass::Map)),
        ],
    );
}

/// A new value of a user type or tuple.
fn new_tuple_or_udt(m: &mut Machine<'_>, ty: &CqlType, udt: bool) -> Result {
    match ty {
        CqlType::Udt(of, _) if udt => m.alloc(Object::Udt(of.clone(), vec![None; of.fields.len()])),
        CqlType::Tuple(of) if !udt => m.alloc(Object::Tuple(of.clone(), vec![None; of.len()])),
        // in Cassandra a user type is a tuple type too
        other => {
            let what = if udt { "a UDT" } else { "a tuple type" };
            let message = format!("Function argument is not {what} but a {}", other.cql_name());
            m.throw(JavaClass::IllegalStateException, message)
        }
    }
}

fn argument(m: &mut Machine<'_>, which: Value, udt: bool) -> Result {
    let program = m.program;
    if let Value::Int(at) = which {
        return match usize::try_from(at).ok().and_then(|at| program.arguments.get(at)) {
            Some((_, ty)) => new_tuple_or_udt(m, ty, udt),
            None => m.throw(
                JavaClass::IllegalArgumentException,
                format!("Function does not declare an argument with index {at}"),
            ),
        };
    }
    let name = m.rust_string(which)?;
    match program.arguments.iter().find(|(known, _)| *known == name) {
        Some((_, ty)) => new_tuple_or_udt(m, ty, udt),
        None => m.throw(
            JavaClass::IllegalArgumentException,
            format!("Function does not declare an argument named '{name}'"),
        ),
    }
}

fn new_return_value(m: &mut Machine<'_>, udt: bool) -> Result {
    match &m.program.returns {
        Some(ty) => new_tuple_or_udt(m, ty, udt),
        None => m.null_pointer(),
    }
}

fn context(table: &mut MethodTable) {
    table.add_methods(
        JavaClass::UdfContext,
        &[
            ("UDTValue newArgUDTValue(int)", |m, a| argument(m, a[1], true)),
            ("UDTValue newArgUDTValue(String)", |m, a| argument(m, a[1], true)),
            ("UDTValue newReturnUDTValue()", |m, _| new_return_value(m, true)),
            ("UDTValue newUDTValue(String)", |m, a| {
                let name = m.rust_string(a[1])?;
                let program = m.program;
                match program.user_types.iter().find(|udt| udt.name == name) {
                    Some(udt) => new_tuple_or_udt(m, &CqlType::Udt(udt.clone(), true), true),
                    None => {
                        m.throw(JavaClass::IllegalArgumentException, format!("No UDT named {name} in the keyspace"))
                    }
                }
            }),
            ("TupleValue newArgTupleValue(int)", |m, a| argument(m, a[1], false)),
            ("TupleValue newArgTupleValue(String)", |m, a| argument(m, a[1], false)),
            ("TupleValue newReturnTupleValue()", |m, _| new_return_value(m, false)),
            ("TupleValue newTupleValue(String)", |m, a| {
                let text = m.rust_string(a[1])?;
                let program = m.program;
                let find = |name: &str| program.user_types.iter().find(|udt| udt.name == name).cloned();
                match types::cql_name::parse(&text, &find) {
                    Some(ty) => new_tuple_or_udt(m, &ty, false),
                    None => m.throw(JavaClass::IllegalArgumentException, format!("Cannot parse the type {text}")),
                }
            }),
        ],
    );
}
