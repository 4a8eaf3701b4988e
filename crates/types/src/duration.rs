//! Durations: months, days and nanoseconds, which are kept apart because months and days differ in
//! length. Agrees with `org.apache.cassandra.cql3.Duration`.

use std::fmt::Write;

use stdx::{Cursor, put_svint};

use crate::TypeError;
use crate::calendar::{Date, MILLIS_PER_DAY};

const NANOS_PER_MILLI: i64 = 1_000_000;
const NANOS_PER_HOUR: i64 = 3_600_000_000_000;
/// Months after which the calendar repeats itself: 400 years.
const CALENDAR_MONTHS: u32 = 4800;

/// Units from the largest, which is also their order in a text: symbol, name, part of the duration
/// that they count in, and how many of that part they are.
const UNITS: [(&str, &str, Part, i64); 10] = [
    ("y", "years", Part::Months, 12),
    ("mo", "months", Part::Months, 1),
    ("w", "weeks", Part::Days, 7),
    ("d", "days", Part::Days, 1),
    ("h", "hours", Part::Nanoseconds, NANOS_PER_HOUR),
    ("m", "minutes", Part::Nanoseconds, 60_000_000_000),
    ("s", "seconds", Part::Nanoseconds, 1_000_000_000),
    ("ms", "milliseconds", Part::Nanoseconds, NANOS_PER_MILLI),
    ("us", "microseconds", Part::Nanoseconds, 1000),
    ("ns", "nanoseconds", Part::Nanoseconds, 1),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Months,
    Days,
    Nanoseconds,
}

/// A duration. All parts that are not zero have the same sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Duration {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Nanoseconds.
    pub nanoseconds: i64,
}

impl Duration {
    /// Reads the bytes. None: they are no duration.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        let months = i32::try_from(cursor.svint().ok()?).ok()?;
        let days = i32::try_from(cursor.svint().ok()?).ok()?;
        Some(Self { months, days, nanoseconds: cursor.svint().ok()? })
    }

    /// The bytes: three signed variable-length integers.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_svint(&mut out, i64::from(self.months));
        put_svint(&mut out, i64::from(self.days));
        put_svint(&mut out, self.nanoseconds);
        out
    }

    /// Whether the duration is negative.
    pub fn is_negative(&self) -> bool {
        self.months < 0 || self.days < 0 || self.nanoseconds < 0
    }

    /// The duration with the opposite sign.
    pub fn negated(&self) -> Self {
        Self {
            months: self.months.wrapping_neg(),
            days: self.days.wrapping_neg(),
            nanoseconds: self.nanoseconds.wrapping_neg(),
        }
    }

    /// Reads `1y2mo3d4h5m6s7ms8us9ns`, `P1Y2M3DT4H5M6S`, `P3W` or `P0001-02-03T04:05:06`, each with
    /// an optional minus.
    pub fn parse(text: &str) -> Result<Self, TypeError> {
        let (negative, source) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut builder = Builder::default();
        let read = match source.strip_prefix('P') {
            None => builder.standard(source)?,
            Some(iso) if iso.ends_with('W') => builder.iso_weeks(iso)?,
            Some(iso) if iso.contains('-') => builder.iso_alternative(iso)?,
            Some(iso) => builder.iso(iso)?,
        };
        read.ok_or_else(|| TypeError::Text(format!("Unable to convert '{source}' to a duration")))?;
        Ok(if negative { builder.duration.negated() } else { builder.duration })
    }

    /// `millis` since 1970 plus this duration. Months are added first, then days, then nanoseconds.
    pub fn add_to(&self, millis: i64) -> i64 {
        let rest = self.nanoseconds / NANOS_PER_MILLI;
        if self.months == 0 {
            let days = i64::from(self.days).wrapping_mul(MILLIS_PER_DAY);
            return millis.wrapping_add(days.wrapping_add(rest));
        }
        let date = Date::of_days(millis.div_euclid(MILLIS_PER_DAY)).plus_months(i64::from(self.months));
        let days = date.days() + i64::from(self.days);
        let of_day = millis.rem_euclid(MILLIS_PER_DAY);
        // Cassandra adds the rest as a 32-bit int of milliseconds, also where it does not fit
        days.wrapping_mul(MILLIS_PER_DAY).wrapping_add(of_day).wrapping_add(i64::from(rest as i32))
    }

    /// Whole milliseconds, without the months.
    fn millis(&self) -> i64 {
        i64::from(self.days).wrapping_mul(MILLIS_PER_DAY).wrapping_add(self.nanoseconds / NANOS_PER_MILLI)
    }

    /// `millis` rounded down to a multiple of this duration counted from `start`.
    pub fn floor_timestamp(&self, millis: i64, start: i64) -> Result<i64, TypeError> {
        let refuse = |message: &'static str| Err(TypeError::Arithmetic(message.into()));
        if start > millis {
            return refuse("The floor function starting time is greater than the provided time");
        }
        if self.is_negative() {
            return refuse("Negative durations are not supported by the floor function");
        }
        if self.months == 0 {
            let length = self.millis();
            return Ok(if length == 0 { millis } else { millis.wrapping_sub(millis.wrapping_sub(start) % length) });
        }
        let month_of = |millis: i64| {
            let date = Date::of_days(millis.div_euclid(MILLIS_PER_DAY));
            date.year * 12 + i64::from(date.month)
        };
        let months = i64::from(self.months);
        let mut multiplier = (month_of(millis) - month_of(start)) / months;
        let mut date = Date::of_days(start.div_euclid(MILLIS_PER_DAY)).plus_months(multiplier * months);
        let of_day = start.rem_euclid(MILLIS_PER_DAY);
        let at = |date: Date| date.days().wrapping_mul(MILLIS_PER_DAY).wrapping_add(of_day);
        if self.days == 0 && self.nanoseconds == 0 {
            return Ok(at(date));
        }
        let mut floor = at(date).wrapping_add(multiplier.wrapping_mul(self.millis()));
        // a step back may shorten the day of the month for good, but none does once all months were
        // passed
        for _ in 0..CALENDAR_MONTHS {
            if floor <= millis || multiplier == 0 {
                break;
            }
            multiplier -= 1;
            date = date.plus_months(-months);
            floor = at(date).wrapping_add(multiplier.wrapping_mul(self.millis()));
        }
        if floor > millis {
            let at = |count: i64| {
                let days = date.plus_months((count - multiplier) * months).days();
                let of_days = i128::from(days) * i128::from(MILLIS_PER_DAY);
                of_days + i128::from(of_day) + i128::from(count) * i128::from(self.millis())
            };
            floor = i64::try_from(last_until(millis, multiplier, at)).unwrap_or(start);
        }
        Ok(floor.max(start))
    }

    /// A time of day rounded down to a multiple of this duration.
    pub fn floor_time(&self, nanos: i64) -> Result<i64, TypeError> {
        if self.is_negative() {
            let message = "Negative durations are not supported by the floor function";
            return Err(TypeError::Arithmetic(message.into()));
        }
        if self.months != 0 || self.days != 0 || self.nanoseconds > 24 * NANOS_PER_HOUR {
            let message = "For time values, the floor can only be computed for durations smaller that a day";
            return Err(TypeError::Arithmetic(message.into()));
        }
        Ok(if self.nanoseconds == 0 { nanos } else { nanos - nanos % self.nanoseconds })
    }
}

/// The greatest of ascending times that is not beyond a limit; the first if all are. The time with
/// the number `beyond` is. Halving finds the time, because there may be billions of them.
fn last_until(limit: i64, beyond: i64, at: impl Fn(i64) -> i128) -> i128 {
    let (mut low, mut high) = (0, beyond);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if at(middle) <= i128::from(limit) {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(low)
}

/// `1y2mo3d4h5m6s7ms8us9ns`, without the units that are zero.
impl std::fmt::Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_negative() {
            f.write_char('-')?;
        }
        let mut months = u64::from(self.months.unsigned_abs());
        let mut days = u64::from(self.days.unsigned_abs());
        let mut nanoseconds = self.nanoseconds.unsigned_abs();
        for (symbol, _, part, size) in UNITS {
            let left = match part {
                Part::Months => &mut months,
                // days are not printed as weeks
                Part::Days if symbol == "w" => continue,
                Part::Days => &mut days,
                Part::Nanoseconds => &mut nanoseconds,
            };
            let size = size.unsigned_abs();
            if *left >= size {
                write!(f, "{}{symbol}", *left / size)?;
                *left %= size;
            }
        }
        Ok(())
    }
}

/// Collects the parts of a text. Its functions return None if the text has another form.
#[derive(Default)]
struct Builder {
    duration: Duration,
    /// The last unit that was read, as its number in [`UNITS`] plus one; 0 before the first.
    seen: usize,
}

impl Builder {
    fn add(&mut self, unit: usize, number: &str) -> Result<(), TypeError> {
        let refuse = |message: String| Err(TypeError::Text(message));
        let (_, name, part, size) = UNITS[unit];
        if unit + 1 == self.seen {
            return refuse(format!("Invalid duration. The {name} are specified multiple times"));
        }
        if unit < self.seen {
            let seen = UNITS[self.seen - 1].1;
            return refuse(format!("Invalid duration. The {seen} should be after {name}"));
        }
        self.seen = unit + 1;
        let number: Option<i64> = number.parse().ok();
        let fits = number.and_then(|number| number.checked_mul(size)).and_then(|count| match part {
            Part::Months => i32::try_from(count)
                .ok()
                .and_then(|count| self.duration.months.checked_add(count))
                .map(|sum| self.duration.months = sum),
            Part::Days => i32::try_from(count)
                .ok()
                .and_then(|count| self.duration.days.checked_add(count))
                .map(|sum| self.duration.days = sum),
            Part::Nanoseconds => {
                self.duration.nanoseconds.checked_add(count).map(|sum| self.duration.nanoseconds = sum)
            }
        });
        let counted = match part {
            Part::Months => "months",
            Part::Days => "days",
            Part::Nanoseconds => "nanoseconds",
        };
        fits.ok_or_else(|| {
            let max = i32::MAX;
            TypeError::Text(format!("Invalid duration. The total number of {counted} must be less or equal to {max}"))
        })
    }

    fn standard(&mut self, text: &str) -> Result<Option<()>, TypeError> {
        let mut rest = text;
        while !rest.is_empty() {
            let Some((number, after)) = split_number(rest) else { return Ok(None) };
            let Some((unit, length)) = unit_at(after) else { return Ok(None) };
            self.add(unit, number)?;
            rest = &after[length..];
        }
        Ok((self.seen > 0).then_some(()))
    }

    fn iso_weeks(&mut self, text: &str) -> Result<Option<()>, TypeError> {
        const WEEKS: usize = 2;
        match split_number(text) {
            Some((number, "W")) => self.add(WEEKS, number).map(Some),
            _ => Ok(None),
        }
    }

    /// Reads `1Y2M3DT4H5M6S`; parts that are zero may be missing.
    fn iso(&mut self, text: &str) -> Result<Option<()>, TypeError> {
        let (date, time) = match text.split_once('T') {
            Some((date, time)) => (date, time),
            None => (text, ""),
        };
        for (part, symbols) in [(date, [('Y', 0), ('M', 1), ('D', 3)]), (time, [('H', 4), ('M', 5), ('S', 6)])] {
            let mut rest = part;
            for (symbol, unit) in symbols {
                let Some((number, after)) = split_number(rest) else { continue };
                if let Some(after) = after.strip_prefix(symbol) {
                    self.add(unit, number)?;
                    rest = after;
                }
            }
            if !rest.is_empty() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// Reads `0001-02-03T04:05:06`.
    fn iso_alternative(&mut self, text: &str) -> Result<Option<()>, TypeError> {
        const FORM: &[u8] = b"dddd-dd-ddTdd:dd:dd";
        let fits = |(byte, form): (u8, &u8)| if *form == b'd' { byte.is_ascii_digit() } else { byte == *form };
        if text.len() != FORM.len() || !text.bytes().zip(FORM).all(fits) {
            return Ok(None);
        }
        for (unit, range) in [(0, 0..4), (1, 5..7), (3, 8..10), (4, 11..13), (5, 14..16), (6, 17..19)] {
            self.add(unit, &text[range])?;
        }
        Ok(Some(()))
    }
}

/// The unit with which a text begins, as its number in [`UNITS`], and the length of its symbol.
fn unit_at(text: &str) -> Option<(usize, usize)> {
    const MICRO: &str = "µs";
    const MICROSECONDS: usize = 8;
    if text.to_lowercase().starts_with(MICRO) {
        return Some((MICROSECONDS, MICRO.len()));
    }
    let begins = |symbol: &str| text.get(..symbol.len()).is_some_and(|start| start.eq_ignore_ascii_case(symbol));
    // the longer symbols first: `ms` and `mo` before `m`
    let units = UNITS.iter().enumerate().filter(|(_, (symbol, ..))| begins(symbol));
    units.max_by_key(|(_, (symbol, ..))| symbol.len()).map(|(unit, (symbol, ..))| (unit, symbol.len()))
}

fn split_number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_read() {
        let cases = [
            ("1y2mo3d4h5m6s7ms8us9ns", "1y2mo3d4h5m6s7ms8us9ns"),
            ("1Y2MO3D4H5M6S7MS8US9NS", "1y2mo3d4h5m6s7ms8us9ns"),
            ("10µs", "10us"),
            ("-2w", "-14d"),
            ("14mo", "1y2mo"),
            ("P1Y2M3DT4H5M6S", "1y2mo3d4h5m6s"),
            ("PT5M", "5m"),
            ("-P1M", "-1mo"),
            ("P3W", "21d"),
            ("P0001-02-03T04:05:06", "1y2mo3d4h5m6s"),
            ("P", ""),
            ("0s", ""),
            ("90m", "1h30m"),
        ];
        for (text, printed) in cases {
            let duration = Duration::parse(text).expect(text);
            assert_eq!(duration.to_string(), printed, "{text}");
            assert_eq!(Duration::decode(&duration.encode()), Some(duration));
        }
    }

    #[test]
    fn what_is_refused_says_why() {
        let cases = [
            ("", "Unable to convert '' to a duration"),
            ("1x", "Unable to convert '1x' to a duration"),
            ("1h2", "Unable to convert '1h2' to a duration"),
            ("PT1D", "Unable to convert 'PT1D' to a duration"),
            ("1h1h", "Invalid duration. The hours are specified multiple times"),
            ("1m1h", "Invalid duration. The minutes should be after hours"),
            ("178956971y", "Invalid duration. The total number of months must be less or equal to 2147483647"),
            (
                "99999999999999999999h",
                "Invalid duration. The total number of nanoseconds must be less or equal to 2147483647",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(Duration::parse(text).expect_err(text).to_string(), message);
        }
    }

    #[test]
    fn timestamps_move_by_the_calendar() {
        let january: i64 = Date { year: 2024, month: 1, day: 31 }.days() * MILLIS_PER_DAY + 1;
        let month = Duration { months: 1, ..Duration::default() };
        assert_eq!(month.add_to(january), Date { year: 2024, month: 2, day: 29 }.days() * MILLIS_PER_DAY + 1);
        let two_hours = Duration::parse("2h").expect("valid");
        assert_eq!(two_hours.negated().add_to(january), january - 7_200_000);
        assert_eq!(two_hours.floor_timestamp(7_300_000, 0), Ok(7_200_000));
        assert_eq!(
            month.floor_timestamp(january, 0),
            Ok(Date { year: 2024, month: 1, day: 1 }.days() * MILLIS_PER_DAY)
        );
        assert!(two_hours.floor_timestamp(0, 1).is_err());
        assert_eq!(two_hours.floor_time(NANOS_PER_HOUR * 3), Ok(NANOS_PER_HOUR * 2));
    }

    /// Rounds down as Cassandra does, one duration after the other.
    fn naive_floor(duration: Duration, millis: i64, start: i64) -> i64 {
        let month_of = |millis: i64| {
            let date = Date::of_days(millis.div_euclid(MILLIS_PER_DAY));
            date.year * 12 + i64::from(date.month)
        };
        let months = i64::from(duration.months);
        let mut count = (month_of(millis) - month_of(start)) / months;
        let mut date = Date::of_days(start.div_euclid(MILLIS_PER_DAY)).plus_months(count * months);
        loop {
            let of_day = start.rem_euclid(MILLIS_PER_DAY);
            let floor = date.days() * MILLIS_PER_DAY + of_day + count * duration.millis();
            if floor <= millis || count == 0 {
                return floor.max(start);
            }
            (count, date) = (count - 1, date.plus_months(-months));
        }
    }

    #[test]
    fn floors_of_many_durations_take_no_time() {
        let day = |year, month, day| Date { year, month, day }.days() * MILLIS_PER_DAY;
        let starts = [0, day(1970, 1, 31) + 77, day(2024, 2, 29), day(1, 12, 30)];
        let ends = [day(2024, 3, 31), day(2400, 2, 29) + 5, day(9999, 1, 1), day(20_000, 7, 15) + 86_399_999];
        for text in ["1mo1d", "1mo31d", "2mo1h", "5mo400d", "1y1ns", "1y200d", "4y1d", "48y30d"] {
            let duration = Duration::parse(text).expect(text);
            for (start, end) in starts.iter().flat_map(|start| ends.map(|end| (*start, end))).filter(|(a, b)| a <= b) {
                let found = duration.floor_timestamp(end, start);
                assert_eq!(found, Ok(naive_floor(duration, end, start)), "{text} {start} {end}");
            }
        }
        // a billion durations too many at first
        let (end, duration) = (4_500_000_000_000_000_000, Duration::parse("1mo30d").expect("valid"));
        let found = duration.floor_timestamp(end, 0).expect("later than the start");
        assert!((end - 62 * MILLIS_PER_DAY..=end).contains(&found), "{found}");
    }
}
