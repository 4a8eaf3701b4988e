//! Days and dates of the proleptic Gregorian calendar, for every year that 64 bits of milliseconds
//! reach.
//!
//! Agrees with `java.time.LocalDate`. Written here because libraries end at the year 9999.

/// Milliseconds of a day.
pub const MILLIS_PER_DAY: i64 = 86_400_000;

const DAYS_PER_ERA: i64 = 146_097;
const YEARS_PER_ERA: i64 = 400;
/// Days from 0000-03-01, where the calculation below begins, to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;

// in 400 years 97 are leap years
const _: () = assert!(DAYS_PER_ERA == YEARS_PER_ERA * 365 + 97);

/// A date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Date {
    /// Astronomical year: year 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

/// Whether a year is a leap year.
pub fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Number of days of a month.
pub fn month_length(year: i64, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Date {
    /// The date `days` days after 1970-01-01. Inside, years begin in March, so that the leap day is
    /// the last day of its year.
    pub fn of_days(days: i64) -> Self {
        let shifted = days + DAYS_TO_EPOCH;
        let era = shifted.div_euclid(DAYS_PER_ERA);
        let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = year_of_era + era * YEARS_PER_ERA + i64::from(month <= 2);
        let date = Self { year, month: month as u8, day: day as u8 };
        debug_assert_eq!(date.days(), days, "a day is that of its date");
        date
    }

    /// Days from 1970-01-01 to this date.
    pub fn days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let era = year.div_euclid(YEARS_PER_ERA);
        let year_of_era = year.rem_euclid(YEARS_PER_ERA);
        let march_month = i64::from((self.month + 9) % 12);
        let day_of_year = (153 * march_month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * DAYS_PER_ERA + day_of_era - DAYS_TO_EPOCH
    }

    /// The date `months` months later. A day that the month lacks becomes the last day of the
    /// month.
    pub fn plus_months(self, months: i64) -> Self {
        let count = self.year * 12 + i64::from(self.month) - 1 + months;
        let (year, month) = (count.div_euclid(12), count.rem_euclid(12) as u8 + 1);
        Self { year, month, day: self.day.min(month_length(year, month)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree() {
        let cases = [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (-719_528, (0, 1, 1)),
            (-2_147_483_648, (-5_877_641, 6, 23)),
            (2_147_483_647, (5_881_580, 7, 11)),
        ];
        for (days, (year, month, day)) in cases {
            let date = Date { year, month, day };
            assert_eq!(Date::of_days(days), date);
            assert_eq!(date.days(), days);
        }
        for days in (-800_000..800_000).step_by(17) {
            assert_eq!(Date::of_days(days).days(), days);
        }
    }

    #[test]
    fn months_end_where_they_end() {
        let january = Date { year: 2024, month: 1, day: 31 };
        assert_eq!(january.plus_months(1), Date { year: 2024, month: 2, day: 29 });
        assert_eq!(january.plus_months(-11), Date { year: 2023, month: 2, day: 28 });
    }
}
