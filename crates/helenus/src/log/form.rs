//! The forms of a line of the log: Cassandra's layout, and JSON.
//!
//! Cassandra's layout is that of its `logback.xml`, so that programs which read its log read ours:
//! `INFO  [thread] 2026-11-24 02:55:14,123 logger:12 - message`. A line of JSON is one object with
//! `timestamp` (RFC 3339, UTC), `level`, `logger`, `thread`, `message` and `fields`.

use std::fmt::{Debug, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use tracing::Event;
use tracing::field::{Field, Visit};

/// Bytes of a line; a longer message is cut.
const MESSAGE_SIZE_MAX: usize = 64 << 10;

/// The form of lines on stderr.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// An event with its message and fields as texts.
pub(super) struct Line {
    pub micros: i64,
    pub level: &'static str,
    pub logger: &'static str,
    source_line: u32,
    thread: String,
    pub message: String,
    fields: Vec<(&'static str, String)>,
}

impl Line {
    /// Takes an event apart.
    pub fn of(event: &Event<'_>, micros: i64) -> Self {
        let metadata = event.metadata();
        let mut line = Self {
            micros,
            level: metadata.level().as_str(),
            logger: metadata.target(),
            source_line: metadata.line().unwrap_or(0),
            thread: std::thread::current().name().unwrap_or("-").to_owned(),
            message: String::new(),
            fields: Vec::new(),
        };
        event.record(&mut line);
        line
    }

    /// The message with its fields behind it.
    pub fn text(&self) -> String {
        let mut text = self.message.clone();
        for (name, value) in &self.fields {
            // writing to a string does not fail
            let _ = write!(text, " {name}={value}");
        }
        if text.len() > MESSAGE_SIZE_MAX {
            let end = (0..=MESSAGE_SIZE_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        text
    }

    /// In Cassandra's layout, with the end of the line.
    pub fn cassandras(&self) -> String {
        let at = self.timestamp().to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S").to_string();
        let millis = self.micros.div_euclid(1_000).rem_euclid(1_000);
        let Self { level, thread, logger, source_line, .. } = self;
        format!("{level:<5} [{thread}] {at},{millis:03} {logger}:{source_line} - {}\n", self.text())
    }

    /// As a JSON object, with the end of the line.
    pub fn json(&self) -> String {
        let fields: Map<String, Value> =
            self.fields.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str()))).collect();
        let mut object = Map::new();
        object.insert("timestamp".to_owned(), Value::from(format!("{:.3}", self.timestamp())));
        object.insert("level".to_owned(), Value::from(self.level));
        object.insert("logger".to_owned(), Value::from(self.logger));
        object.insert("thread".to_owned(), Value::from(self.thread.as_str()));
        object.insert("message".to_owned(), Value::from(self.message.as_str()));
        if !fields.is_empty() {
            object.insert("fields".to_owned(), Value::Object(fields));
        }
        format!("{}\n", Value::Object(object))
    }

    /// The day in UTC, for the names of files: `2026-11-24`.
    pub fn day(&self) -> String {
        self.timestamp().to_zoned(TimeZone::UTC).strftime("%Y-%m-%d").to_string()
    }

    fn timestamp(&self) -> Timestamp {
        Timestamp::from_microsecond(self.micros).unwrap_or_default()
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => {
                // writing to a string does not fail
                let _ = write!(self.message, "{value:?}");
            }
            name => self.fields.push((name, format!("{value:?}"))),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message.push_str(value),
            name => self.fields.push((name, value.to_owned())),
        }
    }
}

#[cfg(test)]
pub(super) fn line(level: &'static str, message: &str, micros: i64) -> Line {
    Line {
        micros,
        level,
        logger: "storage",
        source_line: 12,
        thread: "main".to_owned(),
        message: message.to_owned(),
        fields: vec![("table", "a \"b\"".to_owned())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let line = line("INFO", "flushed", 1_795_488_914_123_456);
        assert_eq!(line.cassandras(), "INFO  [main] 2026-11-24 02:55:14,123 storage:12 - flushed table=a \"b\"\n");
        assert_eq!(line.day(), "2026-11-24");
        let json: Value = serde_json::from_str(&line.json()).expect("JSON");
        assert_eq!(json["timestamp"], "2026-11-24T02:55:14.123Z");
        assert_eq!((&json["level"], &json["message"]), (&Value::from("INFO"), &Value::from("flushed")));
        assert_eq!(json["fields"]["table"], "a \"b\"");
        assert!(line.json().ends_with("}\n") && line.json().matches('\n').count() == 1);
    }
}
