//! The text of values: `String.valueOf`, which every concatenation uses.

use types::{calendar, java_number};

use super::{Machine, Object, Result, Value};
use crate::class::JavaClass;

const ROUNDINGS: [&str; 8] = ["UP", "DOWN", "CEILING", "FLOOR", "HALF_UP", "HALF_DOWN", "HALF_EVEN", "UNNECESSARY"];

/// The names of the rounding modes, in their order.
pub(crate) fn rounding_names() -> &'static [&'static str] {
    &ROUNDINGS
}

impl Machine<'_> {
    /// Appends the text of a value.
    pub fn show(&mut self, value: Value, out: &mut Vec<u16>) -> Result<()> {
        self.step(1)?;
        let text = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Byte(value) => value.to_string(),
            Value::Short(value) => value.to_string(),
            Value::Char(value) => {
                out.push(value);
                return Ok(());
            }
            Value::Int(value) => value.to_string(),
            Value::Long(value) => value.to_string(),
            Value::Float(value) => java_number::print_float(value),
            Value::Double(value) => java_number::print_double(value),
            Value::Ref(at) => return self.show_object(value, at, out),
        };
        out.extend(text.encode_utf16());
        Ok(())
    }

    fn show_object(&mut self, value: Value, at: u32, out: &mut Vec<u16>) -> Result<()> {
        if let Some(Object::Text(units) | Object::Builder(units, _)) = self.peek(value) {
            let size = units.len() * 2;
            out.extend_from_slice(units);
            return self.charge(size);
        }
        let text = match self.peek(value) {
            Some(Object::Integer(value)) => types::radix::print_signed(value),
            Some(Object::Decimal(value)) => java_number::print_decimal(&value.unscaled, value.scale),
            Some(Object::Rounding(at)) => ROUNDINGS.get(usize::from(*at)).copied().unwrap_or_default().to_owned(),
            Some(Object::Uuid(bytes)) => types::literal::print_uuid(bytes),
            Some(Object::Inet(bytes)) => format!("/{}", show_address(bytes)),
            Some(Object::Buffer(buffer)) => format!(
                "java.nio.HeapByteBuffer[pos={} lim={} cap={}]",
                buffer.position,
                buffer.limit,
                buffer.bytes.len()
            ),
            Some(Object::Date(millis)) => show_date(*millis),
            Some(Object::LocalDate(days)) => {
                let date = calendar::Date::of_days(i64::from(*days));
                format!("{}-{:02}-{:02}", date.year, date.month, date.day)
            }
            Some(Object::Duration(duration)) => duration.to_string(),
            Some(Object::Tuple(types, fields)) => {
                let each = types.iter().zip(fields).map(|(ty, field)| match field {
                    Some(bytes) => types::literal::to_text(ty, bytes),
                    None => "NULL".to_owned(),
                });
                format!("({})", each.collect::<Vec<_>>().join(","))
            }
            Some(Object::Udt(udt, fields)) => {
                let each = udt.fields.iter().zip(fields).map(|((name, ty), field)| match field {
                    Some(bytes) => format!("{name}:{}", types::literal::to_text(ty, bytes)),
                    None => format!("{name}:NULL"),
                });
                format!("{{{}}}", each.collect::<Vec<_>>().join(","))
            }
            Some(Object::Throwable { class, message, .. }) => {
                let (name, message) = (class.full_name(), *message);
                out.extend(name.encode_utf16());
                if message != Value::Null {
                    out.extend(": ".encode_utf16());
                    self.show(message, out)?;
                }
                return Ok(());
            }
            Some(Object::Entry(_, key, of)) => {
                let (key, of) = (*key, *of);
                return self.nested(|machine| {
                    machine.show(key, out)?;
                    out.push(u16::from(b'='));
                    machine.show(of, out)
                });
            }
            Some(Object::Optional(Value::Null)) => "Optional.empty".to_owned(),
            Some(Object::Optional(of)) => {
                let of = *of;
                out.extend("Optional[".encode_utf16());
                self.show(of, out)?;
                out.push(u16::from(b']'));
                return Ok(());
            }
            Some(Object::List(_) | Object::Set(_)) => {
                let items = self.items(value)?;
                return self.nested(|machine| machine.show_all(&items, "[", "]", out));
            }
            Some(Object::Map(table)) => {
                let entries = table.entries();
                return self.nested(|machine| {
                    out.push(u16::from(b'{'));
                    for (at, (key, value)) in entries.into_iter().enumerate() {
                        if at > 0 {
                            out.extend(", ".encode_utf16());
                        }
                        machine.show(key, out)?;
                        out.push(u16::from(b'='));
                        machine.show(value, out)?;
                        machine.charge(8)?;
                    }
                    out.push(u16::from(b'}'));
                    Ok(())
                });
            }
            // objects without a text of their own show an address, which is any number
            _ => format!("{}@{at:x}", self.class_of(value).unwrap_or(JavaClass::Object).full_name()),
        };
        self.charge(text.len())?;
        out.extend(text.encode_utf16());
        Ok(())
    }

    /// Appends values between brackets.
    pub fn show_all(&mut self, items: &[Value], open: &str, close: &str, out: &mut Vec<u16>) -> Result<()> {
        out.extend(open.encode_utf16());
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                out.extend(", ".encode_utf16());
            }
            self.show(*item, out)?;
            self.charge(4)?;
        }
        out.extend(close.encode_utf16());
        Ok(())
    }

    /// The text of a value as a new string.
    pub fn text_of(&mut self, value: Value) -> Result {
        if matches!(self.peek(value), Some(Object::Text(_))) {
            return Ok(value);
        }
        let mut out = Vec::new();
        self.show(value, &mut out)?;
        self.text(out)
    }
}

/// An address as Java shows it: IPv6 with all groups.
pub(crate) fn show_address(bytes: &[u8]) -> String {
    if bytes.len() == 4 {
        return bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(".");
    }
    let groups =
        bytes.chunks(2).map(|group| format!("{:x}", group.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte))));
    groups.collect::<Vec<_>>().join(":")
}

/// `Date.toString()` in UTC.
fn show_date(millis: i64) -> String {
    const DAY: i64 = 86_400_000;
    let (days, rest) = (millis.div_euclid(DAY), millis.rem_euclid(DAY) / 1000);
    let date = calendar::Date::of_days(days);
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][days.rem_euclid(7) as usize];
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months[usize::from(date.month.clamp(1, 12)) - 1];
    format!(
        "{weekday} {month} {:02} {:02}:{:02}:{:02} UTC {:04}",
        date.day,
        rest / 3600,
        rest / 60 % 60,
        rest % 60,
        date.year
    )
}
