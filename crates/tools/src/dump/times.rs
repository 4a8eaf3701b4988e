//! Times as sstabledump prints them: numbers, or ISO 8601 in UTC.
//!
//! The date form repeats two mistakes of sstabledump: it cuts seconds towards zero but counts the
//! fraction upwards, so that times before 1970 with a fraction come out a second late; and it
//! clamps nanoseconds to 64 bits, so that times beyond 2262 have the fraction .854775807. Agrees
//! with `JsonTransformer.dateString` and `java.time.Instant.toString`.

use std::fmt::Write;

use types::calendar::Date;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Appends a time in microseconds.
pub fn put_micros(out: &mut String, micros: i64, raw: bool) {
    if raw {
        out.push_str(itoa::Buffer::new().format(micros));
    } else {
        put_date(out, micros / 1_000_000, micros.saturating_mul(1000).rem_euclid(NANOS_PER_SECOND));
    }
}

/// Appends a time in seconds.
pub fn put_seconds(out: &mut String, seconds: i64, raw: bool) {
    if raw {
        out.push_str(itoa::Buffer::new().format(seconds));
    } else {
        put_date(out, seconds, seconds.saturating_mul(NANOS_PER_SECOND).rem_euclid(NANOS_PER_SECOND));
    }
}

fn put_date(out: &mut String, seconds: i64, nanos: i64) {
    let Date { year, month, day } = Date::of_days(seconds.div_euclid(SECONDS_PER_DAY));
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let year = match year {
        0..=9999 => format!("{year:04}"),
        10_000.. => format!("+{year}"),
        _ => format!("-{:04}", year.unsigned_abs()),
    };
    write!(out, "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}").expect("a String takes all");
    let fraction = match nanos {
        0 => Ok(()),
        _ if nanos % 1_000_000 == 0 => write!(out, ".{:03}", nanos / 1_000_000),
        _ if nanos % 1000 == 0 => write!(out, ".{:06}", nanos / 1000),
        _ => write!(out, ".{nanos:09}"),
    };
    fraction.expect("a String takes all");
    out.push('Z');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_java() {
        let micros = |micros: i64| {
            let mut out = String::new();
            put_micros(&mut out, micros, false);
            out
        };
        assert_eq!(micros(0), "1970-01-01T00:00:00Z");
        assert_eq!(micros(1_700_000_000_001_000), "2023-11-14T22:13:20.001Z");
        assert_eq!(micros(1_700_000_000_000_001), "2023-11-14T22:13:20.000001Z");
        assert_eq!(micros(-1), "1970-01-01T00:00:00.999999Z");
        assert_eq!(micros(i64::MAX), "+294247-01-10T04:00:54.854775807Z");
        let mut out = String::new();
        put_seconds(&mut out, 4_294_967_294, false);
        assert_eq!(out, "2106-02-07T06:28:14Z");
    }
}
