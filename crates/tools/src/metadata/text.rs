//! Dates, durations and sizes in the words of sstablemetadata, and the order of Java's hash maps.

use types::calendar::Date;

const MILLIS_PER_DAY: i64 = 86_400_000;

/// A time as `MM/dd/yyyy HH:mm:ss` in UTC; None for 0, which stands for no time.
pub fn date(millis: i64) -> Option<String> {
    if millis == 0 {
        return None;
    }
    let Date { year, month, day } = julian_or_gregorian(millis.div_euclid(MILLIS_PER_DAY));
    // the calendar counts years before year 1 backwards and without a sign
    let year = if year > 0 { year } else { 1 - year };
    let second = millis.rem_euclid(MILLIS_PER_DAY) / 1000;
    Some(format!("{month:02}/{day:02}/{year:04} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60))
}

/// Year, month and day as Java's calendar has them: Julian before 15 October 1582.
fn julian_or_gregorian(days: i64) -> Date {
    const GREGORIAN_FROM: i64 = -141_427;
    if days >= GREGORIAN_FROM {
        return Date::of_days(days);
    }
    // days are counted from 1 March of year 0 in the Julian calendar, where every fourth year is a
    // leap year
    let shifted = days + 719_470;
    let (era, day_of_era) = (shifted.div_euclid(1461), shifted.rem_euclid(1461));
    let year_of_era = (day_of_era - day_of_era / 1460) / 365;
    let day_of_year = day_of_era - 365 * year_of_era;
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    Date { year: year_of_era + era * 4 + i64::from(month <= 2), month: month as u8, day: day as u8 }
}

/// A TTL in words; None for 0.
pub fn duration_words(seconds: u32) -> Option<String> {
    match seconds {
        0 => None,
        0x7fff_ffff => Some("never".to_owned()),
        _ => {
            let parts = [
                (seconds / 86_400, "day"),
                (seconds / 3600 % 24, "hour"),
                (seconds / 60 % 60, "minute"),
                (seconds % 60, "second"),
            ];
            let first = parts.iter().position(|part| part.0 > 0).unwrap_or_default();
            let last = parts.iter().rposition(|part| part.0 > 0).unwrap_or_default();
            let word = |(count, unit): &(u32, &str)| format!("{count} {unit}{}", if *count == 1 { "" } else { "s" });
            Some(parts[first..=last].iter().map(word).collect::<Vec<_>>().join(" "))
        }
    }
}

/// A number of bytes in words; None for 0.
pub fn byte_words(bytes: i64) -> Option<String> {
    match bytes {
        0 => None,
        ..1024 => Some(format!("{bytes} B")),
        _ => {
            let power = ((bytes as f64).ln() / 1024f64.ln()) as i32;
            let prefix = ["k", "M", "G", "T", "P", "E"][(power.clamp(1, 6) - 1) as usize];
            Some(format!("{:.1} {prefix}B", bytes as f64 / 1024f64.powi(power)))
        }
    }
}

/// The order in which `java.util.HashMap` gives entries that were put in the order given here: by
/// bucket, then as they came.
pub fn java_map_order<'a, T>(entries: impl Iterator<Item = (&'a str, T)>) -> Vec<T> {
    let mut entries: Vec<(u32, T)> = entries.map(|(name, value)| (java_hash(name), value)).collect();
    let mut buckets = 16;
    while entries.len() * 4 > buckets * 3 {
        buckets *= 2;
    }
    entries.sort_by_key(|(hash, _)| (hash ^ (hash >> 16)) as usize & (buckets - 1));
    entries.into_iter().map(|(_, value)| value).collect()
}

fn java_hash(text: &str) -> u32 {
    text.encode_utf16().fold(0, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_original() {
        assert_eq!(date(1_700_000_000_000).as_deref(), Some("11/14/2023 22:13:20"));
        assert_eq!(date(-12_219_292_800_000).as_deref(), Some("10/15/1582 00:00:00"));
        assert_eq!(date(-12_219_292_800_001).as_deref(), Some("10/04/1582 23:59:59"));
        assert_eq!(duration_words(630_720_000).as_deref(), Some("7300 days"));
        assert_eq!(duration_words(86_401).as_deref(), Some("1 day 0 hours 0 minutes 1 second"));
        assert_eq!(byte_words(263_210).as_deref(), Some("257.0 kB"));
        assert_eq!(byte_words(1023).as_deref(), Some("1023 B"));
    }
}
