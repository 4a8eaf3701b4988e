//! Reads typed values by the names of their keys, and collects what is wrong with them, so that one
//! start tells everything. What fields are made of them is [`crate::fields`], [`crate::auth`] and
//! [`crate::commit_log`].

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde_json::{Map, Value as Json};

use crate::catalogue;
use crate::load::Values;
use crate::value::{ParsedValue, Value};

/// See the module.
pub(crate) struct Reader<'a> {
    values: &'a Values,
    /// A sentence each, in the order in which they were found.
    problems: Vec<String>,
}

impl<'a> Reader<'a> {
    pub fn new(values: &'a Values) -> Self {
        Self { values, problems: Vec::new() }
    }

    /// Everything that was wrong.
    pub fn into_problems(self) -> Vec<String> {
        self.problems
    }

    pub fn problem(&mut self, name: &str, problem: &str) {
        self.problems.push(format!("{name}: {problem}"));
    }

    /// Refuses each sub-key of `map` that is not among `known`: without that a slip in a name would
    /// start a node that does not do what its file says.
    pub fn refuse_other_sub_keys(&mut self, name: &str, map: &Map<String, Json>, known: &[&str]) {
        for unknown in map.keys().filter(|sub_key| !known.contains(&sub_key.as_str())) {
            self.problem(name, &format!("{unknown} is no sub-key here (these are: {})", known.join(", ")));
        }
    }

    pub fn value(&self, name: &str) -> Value {
        let (key, _) = catalogue::find(name).expect("fields are keys of the catalogue");
        match self.values.by_name.get(key.name) {
            Some(value) if value.what != ParsedValue::Null => value.clone(),
            _ => Value::of_default(key).expect("defaults are checked by a test"),
        }
    }

    pub fn text(&self, name: &str) -> Option<String> {
        match self.value(name).what {
            ParsedValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The texts of a list; anything else has none.
    pub fn names(&self, name: &str) -> Vec<String> {
        match self.value(name).what {
            ParsedValue::Json(Json::Array(names)) => names.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    pub fn boolean(&self, name: &str) -> bool {
        self.value(name).what == ParsedValue::Bool(true)
    }

    pub fn maybe_int(&self, name: &str) -> Option<i64> {
        match self.value(name).what {
            ParsedValue::Int(number) => Some(number),
            _ => None,
        }
    }

    pub fn maybe_double(&self, name: &str) -> Option<f64> {
        match self.value(name).what {
            ParsedValue::Double(number) => Some(number),
            _ => None,
        }
    }

    /// A count; negative: no limit.
    pub fn limit(&self, name: &str) -> Option<u64> {
        self.maybe_int(name).and_then(|limit| u64::try_from(limit).ok())
    }

    pub fn maybe_quantity(&self, name: &str) -> Option<u64> {
        match self.value(name).what {
            ParsedValue::Quantity(quantity) => Some(quantity),
            _ => None,
        }
    }

    pub fn quantity(&self, name: &str) -> u64 {
        self.maybe_quantity(name).unwrap_or(0)
    }

    pub fn duration(&self, name: &str) -> Duration {
        Duration::from_nanos(self.quantity(name))
    }

    pub fn port(&mut self, name: &str) -> u16 {
        match self.maybe_int(name).map(u16::try_from) {
            Some(Ok(port)) if port > 0 => port,
            _ => {
                self.problem(name, "must be between 1 and 65535");
                0
            }
        }
    }

    /// `localhost` or an address. Names of other hosts were looked up before
    /// ([`crate::Config::host_names`]).
    pub fn address(&mut self, name: &str) -> Option<IpAddr> {
        let text = self.text(name)?;
        if text == "localhost" {
            return Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        match text.parse() {
            Ok(address) => Some(address),
            Err(_) => {
                self.problem(name, &format!("'{text}' is not an IP address"));
                None
            }
        }
    }

    /// One of some words; the first stands in where there is a problem.
    pub fn one_of<T: Copy, const N: usize>(&mut self, name: &str, words: &[(&str, T); N]) -> T {
        let text = self.text(name).unwrap_or_default();
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return *value;
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        self.problem(name, &format!("'{text}' is none of {}", known.join(", ")));
        words[0].1
    }
}
