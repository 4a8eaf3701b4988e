//! The command: the requests, and how many or for how long.

use std::path::PathBuf;
use std::time::Duration;

use scylla::statement::Consistency;

use super::words::Words;
use crate::Result;
use crate::distribution::{Distribution, parse_count};

/// Default of the bytes of a key.
const DEFAULT_KEY_SIZE: usize = 10;
/// Most bytes of a key in CQL.
const KEY_SIZE_MAX: i64 = 65_535;

/// Kinds of load, with the names of cassandra-stress.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Write,
    Read,
    CounterWrite,
    CounterRead,
    /// Several kinds with their weights.
    Mixed(Vec<(Command, f64)>),
    /// Profiles in YAML, and operations with their weights. An operation is `insert` or the name of
    /// a query, behind the profile's name and a dot if there are several profiles.
    User(Vec<PathBuf>, Vec<(String, f64)>),
}

/// The command and its words.
pub struct Load {
    pub command: Command,
    /// Number of operations; None: not limited.
    pub count: Option<u64>,
    /// Duration of the run; None: not limited.
    pub duration: Option<Duration>,
    /// If neither count nor duration is given, the run ends when the standard error of the rate is
    /// below this part of the rate.
    pub uncertainty: f64,
    /// Fewest measurements before the rate may be certain, and most measurements.
    pub measurements: (usize, usize),
    pub consistency: Consistency,
    pub serial: Consistency,
    pub warm_up: bool,
    pub truncate: Truncate,
    /// For a mix: how many operations of one kind a thread executes before it draws again.
    pub streak: Distribution,
    /// Bytes of a key of standard1 and counter1.
    pub key_size: usize,
    /// The number that is added to a counter.
    pub add: Distribution,
}

/// When tables are truncated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Truncate {
    Never,
    /// Before the first run.
    Once,
    /// Before each run.
    Always,
}

impl Load {
    /// Reads the words behind `name`.
    pub fn parse(name: &str, mut words: Words) -> Result<Self> {
        let command = command(name, &mut words)?;
        let count = words.value("n=").map(|text| operations(&text)).transpose()?;
        let duration = words.value("duration=").map(|text| parse_duration(&text)).transpose()?;
        let uncertainty = words.value("err<");
        if [count.is_some(), duration.is_some(), uncertainty.is_some()].iter().filter(|given| **given).count() > 1 {
            return Err("n=, duration= and err< end a run each in its own way: give one of them".into());
        }
        let fraction = |text: String| text.parse().map_err(|_| format!("err<{text} is no number"));
        let number = |text: Option<String>, default: usize| -> Result<usize> {
            text.map_or(Ok(default), |text| Ok(usize::try_from(parse_count(&text)?)?))
        };
        let load = Self {
            count,
            duration,
            uncertainty: uncertainty.map_or(Ok(0.02), fraction)?,
            measurements: (number(words.value("n>"), 30)?, number(words.value("n<"), 200)?),
            consistency: words.value("cl=").map_or(Ok(Consistency::LocalOne), |text| consistency(&text))?,
            serial: words.value("serial-cl=").map_or(Ok(Consistency::Serial), |text| consistency(&text))?,
            warm_up: !(words.flag("no-warmup") | words.flag("no_warmup")),
            truncate: truncate(words.value("truncate="))?,
            streak: match command {
                Command::Mixed(_) | Command::User(..) => {
                    words.distribution("clustering=")?.map_or_else(|| Distribution::gaussian(1, 10), Ok)?
                }
                _ => Distribution::fixed(1),
            },
            key_size: DEFAULT_KEY_SIZE,
            add: Distribution::fixed(1),
            command,
        };
        let load = if load.is_user() { load } else { load.of_standard_tables(&mut words)? };
        words.end()?;
        Ok(load)
    }

    fn of_standard_tables(self, words: &mut Words) -> Result<Self> {
        let key_size = words.number("keysize=")?.unwrap_or(DEFAULT_KEY_SIZE as i64);
        if !(1..=KEY_SIZE_MAX).contains(&key_size) {
            return Err(format!("keysize= is 1 to {KEY_SIZE_MAX}").into());
        }
        let add = words.distribution("add=")?.unwrap_or(self.add);
        Ok(Self { key_size: key_size as usize, add, ..self })
    }

    /// Whether the tables are those of a profile.
    pub fn is_user(&self) -> bool {
        matches!(self.command, Command::User(..))
    }

    /// Whether the command reads nothing.
    pub fn only_writes(&self) -> bool {
        match &self.command {
            Command::Write | Command::CounterWrite => true,
            Command::User(_, parts) => parts.iter().all(|(name, _)| name == "insert" || name.ends_with(".insert")),
            _ => false,
        }
    }
}

fn command(name: &str, words: &mut Words) -> Result<Command> {
    if let Some(simple) = simple(name) {
        return Ok(simple);
    }
    match name {
        "mixed" => {
            let half = || vec![("read".to_owned(), "1".to_owned()), ("write".to_owned(), "1".to_owned())];
            let parts = words.list("ratio(")?.unwrap_or_else(half);
            let part = |(name, weight): (String, String)| {
                let kind = simple(&name)
                    .ok_or_else(|| format!("'{name}' in ratio( is not write, read, counter_write or counter_read"))?;
                Ok((kind, parse_weight(&weight)?))
            };
            Ok(Command::Mixed(parts.into_iter().map(part).collect::<Result<_>>()?))
        }
        "user" => {
            let files = words.value("profile=").ok_or("user needs a profile: profile=FILE.yaml")?;
            let parts =
                words.list("ops(")?.ok_or("user needs operations of the profile, such as ops(insert=1,QUERY=2)")?;
            let part = |(name, weight): (String, String)| Ok((name.to_ascii_lowercase(), parse_weight(&weight)?));
            let files = files.split(',').map(PathBuf::from).collect();
            Ok(Command::User(files, parts.into_iter().map(part).collect::<Result<_>>()?))
        }
        _ => Err(format!(
            "'{name}' is no command; known are write, read, mixed, counter_write, counter_read, user, print, version, help"
        )
        .into()),
    }
}

fn simple(name: &str) -> Option<Command> {
    match name {
        "write" | "insert" => Some(Command::Write),
        "read" => Some(Command::Read),
        "counter_write" | "counterwrite" | "counter_add" | "counteradd" => Some(Command::CounterWrite),
        "counter_read" | "counterread" | "counter_get" | "counterget" => Some(Command::CounterRead),
        _ => None,
    }
}

fn parse_weight(text: &str) -> Result<f64> {
    match text.parse() {
        Ok(weight) if weight > 0.0 => Ok(weight),
        _ => Err(format!("'{text}' is no weight: a number above 0").into()),
    }
}

/// A number of operations.
fn operations(text: &str) -> Result<u64> {
    u64::try_from(parse_count(text)?).map_err(|_| format!("n={text} is no number of operations").into())
}

fn parse_duration(text: &str) -> Result<Duration> {
    let unit = text.chars().last().ok_or("duration= is empty")?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(format!("duration={text} has no unit: s, m, h or d").into()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| format!("duration={text} is no time such as 30s"))?;
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}

fn consistency(text: &str) -> Result<Consistency> {
    Ok(match text.to_ascii_uppercase().as_str() {
        "ANY" => Consistency::Any,
        "ONE" => Consistency::One,
        "TWO" => Consistency::Two,
        "THREE" => Consistency::Three,
        "QUORUM" => Consistency::Quorum,
        "ALL" => Consistency::All,
        "LOCAL_QUORUM" => Consistency::LocalQuorum,
        "EACH_QUORUM" => Consistency::EachQuorum,
        "LOCAL_ONE" => Consistency::LocalOne,
        "SERIAL" => Consistency::Serial,
        "LOCAL_SERIAL" => Consistency::LocalSerial,
        _ => return Err(format!("'{text}' is no consistency level").into()),
    })
}

fn truncate(text: Option<String>) -> Result<Truncate> {
    match text.as_deref() {
        None | Some("never") => Ok(Truncate::Never),
        Some("once") => Ok(Truncate::Once),
        Some("always") => Ok(Truncate::Always),
        Some(other) => Err(format!("truncate={other} is not never, once or always").into()),
    }
}
