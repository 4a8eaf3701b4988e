//! `commitlog_archiving.properties`: where full segments of the commit log are copied, and what a
//! start restores.
//!
//! The file stands beside cassandra.yaml; the caller reads it. Agrees with `CommitLogArchiver`,
//! with two exceptions: a command is split into words before names are inserted, so that a path may
//! have spaces; and `restore_undone`, which Cassandra does not know, is written by `helenus backup
//! restore`.

use crate::properties::properties;

/// The name of the file, beside cassandra.yaml.
pub const ARCHIVING_FILE: &str = "commitlog_archiving.properties";

/// The content of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Archiving {
    /// archive_command, split into words; empty: nothing is archived
    pub archive_command: Vec<String>,
    /// restore_command, split into words
    pub restore_command: Vec<String>,
    /// restore_directories; empty: nothing is restored
    pub restore_directories: Vec<String>,
    /// restore_point_in_time in microseconds since 1970: later writes are not replayed
    pub point_in_time: Option<i64>,
    /// precision: the microseconds in one unit of the writes' timestamps
    pub precision_micros: i64,
    /// snapshot_commitlog_position, segment and offset: nothing is replayed up to there
    pub snapshot_position: Option<(u64, u32)>,
    /// restore_undone, for each earlier restore of the node to a point in time: the point,
    /// microseconds since 1970, and the first segment that was written after the restore. Later
    /// writes in earlier segments were undone, and are not replayed.
    pub undone: Vec<(i64, u64)>,
}

/// Most restores that restore_undone names.
const UNDONE_MAX: usize = 1000;

const MICROS_A_SECOND: i64 = 1_000_000;

impl Archiving {
    /// Reads the text of the file. Err: a sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let properties = properties(text);
        let value = |name: &str| properties.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let words =
            |name: &str| value(name).map_or(Vec::new(), |text| text.split_whitespace().map(str::to_owned).collect());
        let directories = value("restore_directories").into_iter().flat_map(|list| list.split(','));
        let read = Archiving {
            archive_command: words("archive_command"),
            restore_command: words("restore_command"),
            restore_directories: directories.filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            point_in_time: value("restore_point_in_time").map(point_in_time).transpose()?,
            precision_micros: precision(value("precision").unwrap_or("MICROSECONDS"))?,
            snapshot_position: value("snapshot_commitlog_position").map(position).transpose()?,
            undone: value("restore_undone").map(undone).transpose()?.unwrap_or_default(),
        };
        if !read.restore_directories.is_empty() && read.restore_command.is_empty() {
            return Err("restore_directories: there is no restore_command".to_owned());
        }
        Ok(read)
    }
}

fn precision(name: &str) -> Result<i64, String> {
    match name {
        "MICROSECONDS" => Ok(1),
        "MILLISECONDS" => Ok(1000),
        "SECONDS" => Ok(MICROS_A_SECOND),
        "MINUTES" => Ok(60 * MICROS_A_SECOND),
        "HOURS" => Ok(3600 * MICROS_A_SECOND),
        "DAYS" => Ok(86_400 * MICROS_A_SECOND),
        "NANOSECONDS" => Err("precision: NANOSECONDS is not supported".to_owned()),
        other => Err(format!("precision: {other} is no unit of time; MICROSECONDS is the usual one")),
    }
}

fn position(text: &str) -> Result<(u64, u32), String> {
    let parts = text.split_once(',').and_then(|(segment, offset)| {
        let offset: i32 = offset.trim().parse().ok()?;
        Some((segment.trim().parse().ok()?, u32::try_from(offset).ok()?))
    });
    parts.ok_or_else(|| format!("snapshot_commitlog_position: '{text}' is not <segment>,<position>"))
}

/// Reads `micros,segment` with semicolons between them.
fn undone(text: &str) -> Result<Vec<(i64, u64)>, String> {
    let pairs = text.split(';').map(|pair| {
        let (micros, segment) = pair.split_once(',')?;
        Some((micros.trim().parse().ok()?, segment.trim().parse().ok()?))
    });
    let pairs: Option<Vec<(i64, u64)>> = pairs.collect();
    let pairs = pairs.filter(|pairs| pairs.len() <= UNDONE_MAX);
    pairs.ok_or_else(|| format!("restore_undone: '{text}' is not <microseconds>,<segment>[;…], {UNDONE_MAX} at most"))
}

/// Microseconds since 1970 of `yyyy:MM:dd HH:mm:ss`, with milliseconds or microseconds behind a
/// point, in GMT.
fn point_in_time(text: &str) -> Result<i64, String> {
    let wrong =
        || format!("restore_point_in_time: '{text}' is no time of the form yyyy:MM:dd HH:mm:ss[.SSS[SSS]] (GMT)");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let (date, time) = whole.split_once(' ').ok_or_else(wrong)?;
    let [year, month, day] = numbers(date, [4, 2, 2]).ok_or_else(wrong)?;
    let [hour, minute, second] = numbers(time, [2, 2, 2]).ok_or_else(wrong)?;
    let micros = match fraction.len() {
        0 => 0,
        3 => 1000 * numbers(fraction, [3]).ok_or_else(wrong)?[0],
        6 => numbers(fraction, [6]).ok_or_else(wrong)?[0],
        _ => return Err(wrong()),
    };
    let is_time = hour < 24 && minute < 60 && second < 60;
    let days = days(year, month, day).filter(|_| is_time).ok_or_else(wrong)?;
    Ok((((days * 24 + hour) * 60 + minute) * 60 + second) * MICROS_A_SECOND + micros)
}

/// Reads numbers of the given lengths with colons between them.
fn numbers<const N: usize>(text: &str, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(':');
    let mut read = [0; N];
    for (number, digits) in read.iter_mut().zip(digits) {
        let part =
            parts.next().filter(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(read)
}

/// Days since 1970 of a date after the year 0.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, 28 + i64::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = usize::try_from(month - 1).ok()?;
    if !(1..=*lengths.get(before)?).contains(&day) || year < 1 {
        return None;
    }
    let years = year - 1;
    let of_years = years * 365 + years / 4 - years / 100 + years / 400;
    // 1 January 1970 is day 719162 after 1 January of the year 1
    Some(of_years - 719_162 + lengths.iter().take(before).sum::<i64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_new_cassandra_asks_for_nothing() {
        let text = "# Licensed\narchive_command=\n\nrestore_command=\nrestore_directories=\nrestore_point_in_time=\n\
                    snapshot_commitlog_position=\nprecision=MICROSECONDS\n";
        assert_eq!(Archiving::parse(text).unwrap(), Archiving { precision_micros: 1, ..Archiving::default() });
    }

    #[test]
    fn commands_directories_and_points_are_read() {
        let text = "archive_command = /bin/cp %path \\\n    /backup/%name\n! comment\nrestore_command:cp -f %from %to\n\
                    restore_directories=/a b,/c\\u0064\nrestore_point_in_time=2024:02:29 23:59:58.007\nprecision=SECONDS\n\
                    snapshot_commitlog_position=1795336068065, 4711\nrestore_undone=5,17;-1, 9";
        let read = Archiving::parse(text).unwrap();
        assert_eq!(read.archive_command, ["/bin/cp", "%path", "/backup/%name"]);
        assert_eq!(read.restore_command, ["cp", "-f", "%from", "%to"]);
        assert_eq!(read.restore_directories, ["/a b", "/cd"]);
        assert_eq!(read.point_in_time, Some(1_709_251_198_007_000));
        assert_eq!((read.precision_micros, read.snapshot_position), (1_000_000, Some((1_795_336_068_065, 4711))));
        assert_eq!(read.undone, [(5, 17), (-1, 9)]);
        let at = |text: &str| point_in_time(text).unwrap();
        assert_eq!((at("1970:01:01 00:00:00"), at("2000:12:31 00:00:01.000002")), (0, 978_220_801_000_002));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("restore_point_in_time=2024-02-29 10:00:00", "restore_point_in_time: '2024-02-29"),
            ("restore_point_in_time=2023:02:29 10:00:00", "restore_point_in_time"),
            ("restore_point_in_time=2023:02:28 24:00:00", "restore_point_in_time"),
            ("restore_point_in_time=2023:02:28 10:00:00.12", "restore_point_in_time"),
            ("precision=NANOSECONDS", "precision: NANOSECONDS"),
            ("precision=micros", "precision: micros"),
            ("snapshot_commitlog_position=12", "snapshot_commitlog_position: '12'"),
            ("snapshot_commitlog_position=12,-1", "snapshot_commitlog_position"),
            ("restore_undone=5,17;6", "restore_undone: '5,17;6'"),
            ("restore_directories=/a", "restore_directories"),
        ] {
            let why = Archiving::parse(text).unwrap_err();
            assert!(why.starts_with(named), "{text}: {why}");
        }
    }
}
