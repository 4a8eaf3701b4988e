//! The file: the keys of cassandra-stress's profiles; a key that is not understood is refused by name.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Result;
use crate::distribution::{Distribution, parse_count};

/// A profile.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// A name for people.
    #[serde(rename = "specname", default)]
    _specname: Option<String>,
    pub keyspace: String,
    #[serde(default)]
    pub keyspace_definition: Option<String>,
    pub table: String,
    #[serde(default)]
    pub table_definition: Option<String>,
    #[serde(default)]
    pub extra_definitions: Vec<String>,
    #[serde(default)]
    pub columnspec: Vec<ColumnSpec>,
    #[serde(default)]
    pub insert: InsertSpec,
    #[serde(default)]
    queries: BTreeMap<String, QuerySpec>,
}

/// How a column's values are spread.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    pub name: String,
    /// Bytes, or elements.
    pub size: Option<String>,
    /// How many different values there are.
    pub population: Option<String>,
    /// Of a clustering column: how many within what stands before it.
    pub cluster: Option<String>,
}

/// What an insert is.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct InsertSpec {
    /// Partitions in one.
    pub partitions: Option<String>,
    pub batchtype: Option<String>,
    /// Share of a partition's rows in one.
    pub select: Option<String>,
}

/// A query.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuerySpec {
    pub cql: String,
    /// Where the values for `?` come from: one row of the partition, or a row for each.
    #[serde(default)]
    pub fields: Fields,
}

/// See [`QuerySpec::fields`].
#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Fields {
    #[default]
    SameRow,
    MultiRow,
}

impl Profile {
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self> {
        let mut profile: Self = serde_saphyr::from_str(text)?;
        profile.queries = profile.queries.into_iter().map(|(name, query)| (name.to_ascii_lowercase(), query)).collect();
        Ok(profile)
    }

    /// The query of this name, in small letters.
    pub fn query(&self, name: &str) -> Option<&QuerySpec> {
        self.queries.get(name)
    }

    /// Names of all operations.
    pub fn query_names(&self) -> String {
        std::iter::once("insert").chain(self.queries.keys().map(String::as_str)).collect::<Vec<_>>().join(", ")
    }
}

/// `FIXED(1)/5`: a distribution over a number.
pub struct Ratio {
    of: Distribution,
    over: f64,
}

impl Ratio {
    /// Reads the text; all when there is none.
    pub fn parse(text: Option<&str>) -> Result<Self> {
        let Some(text) = text else { return Ok(Self { of: Distribution::fixed(1), over: 1.0 }) };
        let (of, over) = text.rsplit_once('/').ok_or_else(|| format!("'{text}' is no share such as FIXED(1)/5"))?;
        let over = parse_count(over)?;
        if over < 1 {
            return Err(format!("'{text}' divides by less than 1").into());
        }
        Ok(Self { of: Distribution::parse(of.trim())?, over: over as f64 })
    }

    /// A share between 0 and 1.
    pub fn draw(&self, seed: u64) -> f64 {
        (self.of.draw_of(seed) as f64 / self.over).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_and_a_foreign_key_refused() {
        let text = "specname: x\nkeyspace: k\ntable: t\ntable_definition: |\n  CREATE TABLE t (a int PRIMARY KEY)\ncolumnspec:\n  - name: a\n    population: uniform(1..10)\ninsert:\n  partitions: fixed(1)\n  batchtype: UNLOGGED\n  select: fixed(1)/1\nqueries:\n  One:\n    cql: SELECT * FROM t WHERE a = ?\n    fields: multirow\n";
        let profile = Profile::parse(text).expect("a profile");
        assert!(profile.query("one").is_some_and(|query| query.fields == Fields::MultiRow));
        assert_eq!(profile.query_names(), "insert, one");
        let error = Profile::parse(&format!("{text}token_range_queries: {{}}\n")).err().expect("refused").to_string();
        assert!(error.contains("token_range_queries"), "{error}");
    }

    #[test]
    fn shares() {
        assert_eq!(Ratio::parse(Some("FIXED(1)/4")).expect("a share").draw(1), 0.25);
        assert_eq!(Ratio::parse(None).expect("all").draw(1), 1.0);
        assert!(Ratio::parse(Some("FIXED(1)")).is_err());
    }
}
