//! The number of concurrent operations, and their rate.

use super::command::{Command, Load};
use super::words::Words;
use crate::Result;
use crate::distribution::parse_count;

/// Default of the threads of a write with a given number of operations.
const WRITE_THREADS: usize = 200;

/// The option `-rate`.
#[derive(Clone)]
pub struct Rate {
    /// Concurrent operations; None: several runs with more and more of them.
    pub threads: Option<usize>,
    /// First and last number of threads of these runs.
    pub at_least: usize,
    pub at_most: usize,
    /// Whether to end when more threads make it no faster.
    pub auto: bool,
    /// Operations a second of all threads together; None: not limited.
    pub per_second: Option<f64>,
    /// Whether latency counts from the moment at which an operation should have begun.
    pub fixed: bool,
}

impl Rate {
    /// Reads the words of `-rate`.
    pub fn parse(mut words: Words, load: &Load) -> Result<Self> {
        let number = |text: Option<String>| -> Result<Option<usize>> {
            text.map(|text| Ok(usize::try_from(parse_count(&text)?)?.max(1))).transpose()
        };
        let at_least = number(words.value("threads>="))?;
        let at_most = number(words.value("threads<="))?;
        let mut threads = number(words.value("threads="))?;
        let throttle = words.value("throttle=").or_else(|| words.value("limit="));
        let fixed = words.value("fixed=");
        let auto = words.flag("auto");
        words.end()?;
        if threads.is_some() && (at_least.is_some() || at_most.is_some() || auto) {
            return Err(
                "threads= is one number, threads>=, threads<= and auto a search for one: give the one or the others"
                    .into(),
            );
        }
        if throttle.is_some() && fixed.is_some() {
            return Err("throttle= and fixed= both say how fast: give one of them".into());
        }
        let searched = auto || at_least.is_some() || at_most.is_some();
        if threads.is_none()
            && !searched
            && load.count.is_some()
            && matches!(load.command, Command::Write | Command::CounterWrite)
        {
            threads = Some(WRITE_THREADS);
        }
        let per_second = fixed.as_ref().or(throttle.as_ref()).map(|text| per_second(text)).transpose()?;
        Ok(Self {
            threads,
            at_least: at_least.unwrap_or(4),
            at_most: at_most.unwrap_or(1000),
            auto: auto || !searched,
            per_second: per_second.filter(|rate| *rate > 0.0),
            fixed: fixed.is_some(),
        })
    }
}

fn per_second(text: &str) -> Result<f64> {
    let digits = text.strip_suffix("/s").ok_or_else(|| format!("'{text}' is no rate such as 1000/s"))?;
    match parse_count(digits)? {
        number if number < 0 => Err(format!("'{text}' is no rate: it is below 0").into()),
        number => Ok(number as f64),
    }
}
