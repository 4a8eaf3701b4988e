//! The file: the keys of cassandra-stress's profiles; a key that is not understood is refused by name.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Result;

/// A profile.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What operations are called by where there are several profiles; the keyspace and the table when nothing is said.
    specname: Option<String>,
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
    #[serde(default)]
    token_range_queries: BTreeMap<String, TokenRangeSpec>,
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
    /// Share of a row's columns that have a value.
    #[serde(rename = "row-population")]
    pub row_population: Option<String>,
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

/// Pages of all that lies in a range of tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRangeSpec {
    /// `*`, or some with commas between.
    pub columns: String,
    /// Rows.
    #[serde(default = "page_size")]
    pub page_size: i32,
}

fn page_size() -> i32 {
    5000
}

/// See [`QuerySpec::fields`].
#[derive(Deserialize, Default, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    #[serde(rename = "samerow", alias = "SAMEROW")]
    SameRow,
    #[default]
    #[serde(rename = "multirow", alias = "MULTIROW")]
    MultiRow,
}

impl Profile {
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self> {
        let mut profile: Self = serde_saphyr::from_str(text)?;
        profile.queries = in_small_letters(profile.queries);
        profile.token_range_queries = in_small_letters(profile.token_range_queries);
        let both = profile.queries.keys().find(|name| profile.token_range_queries.contains_key(*name));
        if let Some(name) = both {
            return Err(format!("{name} stands in queries and in token_range_queries").into());
        }
        Ok(profile)
    }

    /// What its operations are called by.
    pub fn name(&self) -> String {
        self.specname.clone().unwrap_or_else(|| format!("{}.{}", self.keyspace, self.table)).to_ascii_lowercase()
    }

    /// The query over ranges of tokens of this name, in small letters.
    pub fn token_range_query(&self, name: &str) -> Option<&TokenRangeSpec> {
        self.token_range_queries.get(name)
    }

    /// The query of this name, in small letters.
    pub fn query(&self, name: &str) -> Option<&QuerySpec> {
        self.queries.get(name)
    }

    /// Names of all operations.
    pub fn query_names(&self) -> String {
        let queries = self.queries.keys().chain(self.token_range_queries.keys()).map(String::as_str);
        ["insert", "validate"].into_iter().chain(queries).collect::<Vec<_>>().join(", ")
    }
}

fn in_small_letters<T>(map: BTreeMap<String, T>) -> BTreeMap<String, T> {
    map.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_and_a_foreign_key_refused() {
        let text = "specname: x\nkeyspace: k\ntable: t\ntable_definition: |\n  CREATE TABLE t (a int PRIMARY KEY)\ncolumnspec:\n  - name: a\n    population: uniform(1..10)\ninsert:\n  partitions: fixed(1)\n  batchtype: UNLOGGED\n  select: fixed(1)/1\nqueries:\n  One:\n    cql: SELECT * FROM t WHERE a = ?\n    fields: multirow\n";
        let profile = Profile::parse(text).expect("a profile");
        assert!(profile.query("one").is_some_and(|query| query.fields == Fields::MultiRow));
        assert_eq!((profile.query_names().as_str(), profile.name().as_str()), ("insert, validate, one", "x"));
        let ranges = format!("{text}token_range_queries:\n  All:\n    columns: '*'\n");
        let profile = Profile::parse(&ranges).expect("a profile");
        assert_eq!(profile.token_range_query("all").map(|query| query.page_size), Some(5000));
        for (more, word) in [("seed: 1\n", "seed"), ("token_range_queries:\n  one:\n    columns: a\n", "stands in")] {
            let error = Profile::parse(&format!("{text}{more}")).err().expect("refused").to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
