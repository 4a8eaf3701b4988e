//! The keyspace of the tables that `write`, `read` and the counters use.

use super::words::Words;
use crate::Result;

/// The option `-schema`.
pub struct Schema {
    pub keyspace: String,
    /// The replication as a map of CQL.
    pub replication: String,
    /// The compaction as a map of CQL; None: the default.
    pub compaction: Option<String>,
    /// The compression as a map of CQL.
    pub compression: String,
}

impl Schema {
    /// Reads the words of `-schema`. The default is keyspace1, one replica, no compression.
    pub fn parse(mut words: Words) -> Result<Self> {
        let keyspace = words.value("keyspace=").unwrap_or_else(|| "keyspace1".to_owned());
        let mut replication = words.list("replication(")?.unwrap_or_default();
        for (name, _) in &mut replication {
            match name.as_str() {
                "factor" => *name = "replication_factor".to_owned(),
                "strategy" => *name = "class".to_owned(),
                _ => {}
            }
        }
        if !replication.iter().any(|(name, _)| name == "class") {
            replication.insert(0, ("class".to_owned(), "SimpleStrategy".to_owned()));
        }
        if replication.len() == 1 {
            replication.push(("replication_factor".to_owned(), "1".to_owned()));
        }
        let mut compaction = words.list("compaction(")?;
        for (name, value) in compaction.iter_mut().flatten() {
            match (name.as_str(), value.as_str()) {
                ("strategy", _) => *name = "class".to_owned(),
                // the class alone, without the word `class`
                (class, "") => (*name, *value) = ("class".to_owned(), class.to_owned()),
                _ => {}
            }
        }
        let compression = match words.value("compression=") {
            Some(class) => map(&[("class".to_owned(), class)]),
            None => map(&[("enabled".to_owned(), "false".to_owned())]),
        };
        words.end()?;
        Ok(Self {
            keyspace,
            replication: map(&replication),
            compaction: compaction.map(|map_of| map(&map_of)),
            compression,
        })
    }
}

fn map(entries: &[(String, String)]) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let entry = |(name, value): &(String, String)| format!("{}: {}", quoted(name), quoted(value));
    format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
}
