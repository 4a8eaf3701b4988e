//! Sizes and times as texts, for nodetool and the management API. Agrees with
//! `FileUtils.stringifyFileSize` and `java.time`.

/// A size as `147.72 KiB`, `51 MiB`, `0 bytes`: with at most two decimals.
pub(crate) fn file_size(bytes: u64) -> String {
    const UNITS: &[(u64, &str)] = &[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => {
            let number = format!("{:.2}", bytes as f64 / *size as f64);
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        None => format!("{bytes} bytes"),
    }
}

/// A time as `2026-11-21T09:44:29.282` in UTC, without a fraction if it is zero, as Java's
/// `LocalDateTime` and `Instant` print it.
pub(crate) fn date_time(millis: i64) -> String {
    let (days, millis_of_day) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let seconds = millis_of_day / 1000;
    let fraction = match millis_of_day % 1000 {
        0 => String::new(),
        millis => format!(".{millis:03}"),
    };
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}")
}

/// Year, month, day of a number of days since 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times() {
        let sizes =
            [(0, "0 bytes"), (1023, "1023 bytes"), (8 << 20, "8 MiB"), (151_265, "147.72 KiB"), (1536, "1.5 KiB")];
        for (bytes, text) in sizes {
            assert_eq!(file_size(bytes), text);
        }
        let times = [
            (1_795_254_269_282, "2026-11-21T09:44:29.282"),
            (0, "1970-01-01T00:00:00"),
            (951_782_400_000, "2000-02-29T00:00:00"),
        ];
        for (millis, text) in times {
            assert_eq!(date_time(millis), text);
        }
    }
}
