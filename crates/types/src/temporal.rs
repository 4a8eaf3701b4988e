//! Timestamps, dates and times as text. Agrees with `TimestampSerializer`, `SimpleDateSerializer`,
//! `TimeSerializer`.
//!
//! A text without a zone is UTC (in Cassandra: the zone of the server). Zones are offsets (`+01`,
//! `+0100`, `+01:00`, `Z`) and, after a blank, also `UTC`, `GMT`, `UT` with or without an offset.
//! Names of regions are refused, because there is no database of zones here. The caller handles
//! `now`, because there is no clock here.

use crate::TypeError;
use crate::calendar::{Date, MILLIS_PER_DAY, month_length};

/// Nanoseconds of a day.
pub const NANOS_PER_DAY: i64 = 86_400_000_000_000;
/// Day number of 1970-01-01 in the type date.
pub const DATE_EPOCH: i64 = 1 << 31;

const YEAR_MAX: i64 = 999_999_999;
const OFFSET_HOURS_MAX: i64 = 18;

fn whole_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Milliseconds since 1970 of a timestamp text. The caller has handled `now`.
pub fn parse_timestamp(text: &str) -> Result<i64, TypeError> {
    if whole_number(text) {
        return text.parse().map_err(|_| TypeError::Text(format!("Unable to make long (for date) from: '{text}'")));
    }
    let failed = || TypeError::Text(format!("Unable to parse a date/time from '{text}'"));
    date_and_time(text).or_else(|| date_alone(text)).ok_or_else(failed)
}

struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    fn eat(&mut self, c: char) -> Option<()> {
        self.0 = self.0.strip_prefix(c)?;
        Some(())
    }

    fn digits(&mut self, min: usize, max: usize) -> Option<&'a str> {
        let count = self.0.bytes().take(max).take_while(u8::is_ascii_digit).count();
        if count < min {
            return None;
        }
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        Some(digits)
    }

    fn number(&mut self, min: usize, max: usize) -> Option<i64> {
        self.digits(min, max)?.parse().ok()
    }

    /// Reads a year of four digits; more digits are allowed behind a sign only.
    fn signed_year(&mut self) -> Option<i64> {
        let negative = self.eat('-').is_some();
        let plus = !negative && self.eat('+').is_some();
        let digits = self.digits(4, 10)?;
        let fits = if plus { digits.len() > 4 } else { negative || digits.len() == 4 };
        let year: i64 = digits.parse().ok().filter(|year| fits && *year <= YEAR_MAX)?;
        Some(if negative { -year } else { year })
    }
}

/// Reads `y-M-d`, then `T` or a blank, `H:m[:s[.fraction]]`, then an optional zone.
fn date_and_time(text: &str) -> Option<i64> {
    let mut reader = Reader(text);
    let year = reader.number(1, 19).filter(|year| (1..=YEAR_MAX).contains(year))?;
    reader.eat('-')?;
    let month = reader.number(1, 19)?;
    reader.eat('-')?;
    let day = reader.number(1, 19)?;
    let days = lenient_days(year, month, day)?;
    reader.eat('T').or_else(|| reader.eat(' '))?;
    let millis = time_of_day(&mut reader)?;
    // an offset may have seconds behind a blank only
    let seconds = reader.0.starts_with(['+', '-']) && reader.0.len() > "+hh:mm".len();
    let offset = zone(reader.0).filter(|_| !seconds)?;
    (days.checked_mul(MILLIS_PER_DAY)?).checked_add(millis - offset)
}

/// Reads `yyyy-MM-dd`, then an optional zone.
fn date_alone(text: &str) -> Option<i64> {
    let mut reader = Reader(text);
    let (year, month, day) = iso_date(&mut reader)?;
    let days = lenient_days(year, month, day)?;
    let offset = match reader.0 {
        "z" => 0,
        with_colons if with_colons.contains(':') && !with_colons.starts_with(' ') => offset(with_colons)?,
        "" | "Z" => 0,
        // the remaining forms of zones are accepted only behind a positive year
        other => zone(other).filter(|_| year > 0)?,
    };
    days.checked_mul(MILLIS_PER_DAY)?.checked_sub(offset)
}

fn iso_date(reader: &mut Reader<'_>) -> Option<(i64, i64, i64)> {
    let year = reader.signed_year()?;
    reader.eat('-')?;
    let month = reader.number(2, 2)?;
    reader.eat('-')?;
    Some((year, month, reader.number(2, 2)?))
}

/// Days since 1970. A day beyond the end of its month is the last day of that month, if any month
/// has such a day.
fn lenient_days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let month = month as u8;
    Some(Date { year, month, day: (day as u8).min(month_length(year, month)) }.days())
}

fn time_of_day(reader: &mut Reader<'_>) -> Option<i64> {
    let hours = reader.number(1, 19)?;
    reader.eat(':')?;
    let minutes = reader.number(1, 19)?;
    let mut millis = 0;
    if reader.eat(':').is_some() {
        millis = reader.number(1, 19).filter(|seconds| *seconds < 60)? * 1000;
        if reader.eat('.').is_some() {
            millis += fraction(reader.digits(0, 9)?, 3);
        }
    }
    let total = (hours.checked_mul(60)?.checked_add(minutes)?).checked_mul(60_000)?.checked_add(millis)?;
    // 24:00 is the end of the day; nothing lies beyond it
    (minutes < 60 && (hours < 24 || total == MILLIS_PER_DAY)).then_some(total)
}

/// The first `places` digits of a fraction as a number.
fn fraction(digits: &str, places: usize) -> i64 {
    let padded = digits.bytes().chain(std::iter::repeat(b'0')).take(places);
    padded.fold(0, |value, digit| value * 10 + i64::from(digit - b'0'))
}

/// Milliseconds that a zone is ahead of UTC.
fn zone(text: &str) -> Option<i64> {
    if text.is_empty() || text == "Z" {
        return Some(0);
    }
    let after_blank = text.strip_prefix(' ');
    if let Some(name) = after_blank {
        let rest = ["UTC", "GMT", "UT"].iter().find_map(|zone| name.strip_prefix(zone));
        match rest {
            Some("") => return Some(0),
            Some(offset) => return self::offset(offset),
            None if name == "Z" => return Some(0),
            None => {}
        }
    }
    offset(after_blank.unwrap_or(text))
}

/// Reads `+hh`, `+hhmm`, `+hh:mm` or `+hh:mm:ss`.
fn offset(text: &str) -> Option<i64> {
    let mut reader = Reader(text);
    let negative = reader.eat('-').is_some();
    if !negative {
        reader.eat('+')?;
    }
    let hours = reader.number(2, 2)?;
    let colon = reader.eat(':').is_some();
    let minutes = if colon || !reader.0.is_empty() { reader.number(2, 2)? } else { 0 };
    let seconds = if colon && reader.eat(':').is_some() { reader.number(2, 2)? } else { 0 };
    let total = (hours * 60 + minutes) * 60 + seconds;
    let fits = reader.0.is_empty() && minutes < 60 && seconds < 60 && total <= OFFSET_HOURS_MAX * 3600;
    fits.then_some(if negative { -total * 1000 } else { total * 1000 })
}

/// A timestamp as text. `separator` stands between date and time: `T` in literals, a blank in JSON.
pub fn print_timestamp(millis: i64, separator: char) -> String {
    let date = Date::of_days(millis.div_euclid(MILLIS_PER_DAY));
    let millis = millis.rem_euclid(MILLIS_PER_DAY);
    // before year 1 the year of the era is printed, without the era, because Java's pattern has no
    // era
    let year = if date.year > 0 { date.year } else { 1 - date.year };
    let plus = if year > 9999 { "+" } else { "" };
    let (hours, minutes, seconds) = (millis / 3_600_000, millis / 60_000 % 60, millis / 1000 % 60);
    let (month, day, millis) = (date.month, date.day, millis % 1000);
    format!("{plus}{year:04}-{month:02}-{day:02}{separator}{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// The day number of a date text: `yyyy-mm-dd`, or the number itself.
pub fn parse_date(text: &str) -> Result<u32, TypeError> {
    if whole_number(text) {
        return text
            .parse()
            .map_err(|_| TypeError::Text(format!("Unable to make unsigned int (for date) from: '{text}'")));
    }
    let mut reader = Reader(text);
    let date = iso_date(&mut reader).filter(|_| reader.0.is_empty());
    let days = date.and_then(|(year, month, day)| {
        let exists = (1..=12).contains(&month) && (1..=i64::from(month_length(year, month as u8))).contains(&day);
        exists.then(|| Date { year, month: month as u8, day: day as u8 }.days())
    });
    let days = days.ok_or_else(|| TypeError::Text(format!("Unable to coerce '{text}' to a formatted date (long)")))?;
    u32::try_from(days + DATE_EPOCH).map_err(|_| {
        TypeError::Text(match days {
            ..0 => format!("Input date {text} is less than min supported date -5877641-06-23T00:00Z"),
            _ => format!("Input date {text} is greater than max supported date +5881580-07-11T00:00Z"),
        })
    })
}

/// A date as text.
pub fn print_date(day_number: u32) -> String {
    let Date { year, month, day } = Date::of_days(i64::from(day_number) - DATE_EPOCH);
    match year {
        ..0 => format!("-{:04}-{month:02}-{day:02}", -year),
        10_000.. => format!("+{year}-{month:02}-{day:02}"),
        _ => format!("{year:04}-{month:02}-{day:02}"),
    }
}

/// Nanoseconds since midnight of a time text: `hh:mm:ss[.fffffffff]`, or the number itself.
pub fn parse_time(text: &str) -> Result<i64, TypeError> {
    if whole_number(text) {
        let nanos = text.parse().ok().filter(|nanos| (0..NANOS_PER_DAY).contains(nanos));
        return nanos.ok_or_else(|| TypeError::Text(format!("Unable to make long (for time) from: '{text}'")));
    }
    let failed = || TypeError::Text(format!("(TimeType) Unable to coerce '{text}' to a formatted time (long)"));
    clock_time(text.trim()).ok_or_else(failed)
}

fn clock_time(text: &str) -> Option<i64> {
    let (hours, rest) = text.split_once(':')?;
    let (minutes, rest) = rest.split_once(':')?;
    let (seconds, nanos) = match rest.split_once('.') {
        Some((seconds, digits)) => {
            let valid = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            (seconds, valid.then(|| fraction(digits, 9))?)
        }
        None => (rest, 0),
    };
    let part = |text: &str, limit: i64| text.parse::<i64>().ok().filter(|part| (0..limit).contains(part));
    let seconds = (part(hours, 24)? * 60 + part(minutes, 60)?) * 60 + part(seconds, 60)?;
    Some(seconds * 1_000_000_000 + nanos)
}

/// A time as text, always with nine digits behind the point.
pub fn print_time(nanos: i64) -> String {
    let seconds = nanos.div_euclid(1_000_000_000);
    let (hours, minutes, nanos) = (seconds / 3600, seconds / 60 % 60, nanos.rem_euclid(1_000_000_000));
    format!("{hours:02}:{minutes:02}:{:02}.{nanos:09}", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_in_all_their_forms() {
        let cases = [
            ("2011-02-03 04:05+0000", "2011-02-03T04:05:00.000Z"),
            ("2011-02-03 04:05:06+0000", "2011-02-03T04:05:06.000Z"),
            ("2011-02-03T04:05:06.789+01", "2011-02-03T03:05:06.789Z"),
            ("2011-02-03T04:05:06.789123456Z", "2011-02-03T04:05:06.789Z"),
            ("2011-02-03T04:05 UTC", "2011-02-03T04:05:00.000Z"),
            ("2011-02-03 04:05 +01:30", "2011-02-03T02:35:00.000Z"),
            ("2011-02-03 04:05 GMT-08:00", "2011-02-03T12:05:00.000Z"),
            ("2011-2-3 4:5", "2011-02-03T04:05:00.000Z"),
            ("2011-02-03", "2011-02-03T00:00:00.000Z"),
            ("2011-02-03+0100", "2011-02-02T23:00:00.000Z"),
            ("2011-02-03Z", "2011-02-03T00:00:00.000Z"),
            ("2011-02-30", "2011-02-28T00:00:00.000Z"),
            ("2011-02-03 24:00", "2011-02-04T00:00:00.000Z"),
            ("1296705900000", "2011-02-03T04:05:00.000Z"),
            ("-1", "1969-12-31T23:59:59.999Z"),
            ("+12011-02-03", "+12011-02-03T00:00:00.000Z"),
        ];
        for (text, printed) in cases {
            let millis = parse_timestamp(text).expect(text);
            assert_eq!(print_timestamp(millis, 'T'), printed, "{text}");
        }
        let refused = [
            "",
            "x",
            "2011-13-01",
            "2011-02-32",
            "2011-02-03 25:00",
            "2011-02-03 04:60",
            "2011-02-03 04:05:60",
            "2011-02-03 04:05.5",
            "2011-02-03T",
            "11-02-03",
            "12011-02-03",
            "2011-02-03 04:05+1",
            "2011-02-03 24:01",
            "2011-02-03 04:05+19:00",
            "99999999999999999999",
            "2011-02-03 04:05 Europe/Prague",
            "now",
        ];
        for text in refused {
            assert!(parse_timestamp(text).is_err(), "{text}");
        }
    }

    #[test]
    fn dates_and_their_limits() {
        for text in ["1970-01-01", "2024-02-29", "-5877641-06-23", "+5881580-07-11", "-0001-12-31", "0000-01-01"] {
            assert_eq!(print_date(parse_date(text).expect(text)), text);
        }
        assert_eq!(parse_date("2147483648"), Ok(1 << 31));
        assert_eq!(parse_date("4294967295"), Ok(u32::MAX));
        for text in
            ["", "-1", "4294967296", "2023-02-29", "2023-2-1", "-5877641-06-22", "+5881580-07-12", "20230-01-01"]
        {
            assert!(parse_date(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_and_their_limits() {
        let cases = [
            ("00:00:00", "00:00:00.000000000"),
            ("8:12:54.123", "08:12:54.123000000"),
            ("23:59:59.999999999", "23:59:59.999999999"),
            ("86399999999999", "23:59:59.999999999"),
        ];
        for (text, printed) in cases {
            assert_eq!(print_time(parse_time(text).expect(text)), printed);
        }
        for text in [
            "",
            "24:00:00",
            "10:60:00",
            "10:00:60",
            "10:00",
            "10:00:00.",
            "10:00:00.1234567890",
            "86400000000000",
            "-1",
        ] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
