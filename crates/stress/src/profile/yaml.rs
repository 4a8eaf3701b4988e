//! The file of a profile, with the keys of cassandra-stress; a key that is not understood is
//! refused by name.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Result;

/// A profile.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name of the profile, which its operations carry if there are several profiles; None:
    /// keyspace and table.
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

/// The distribution of a column's values.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    pub name: String,
    /// Number of bytes, or of elements.
    pub size: Option<String>,
    /// Number of different values.
    pub population: Option<String>,
    /// For a clustering column: number of values within one value of the columns before.
    pub cluster: Option<String>,
}

/// The insert operation.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct InsertSpec {
    /// Number of partitions in one insert.
    pub partitions: Option<String>,
    pub batchtype: Option<String>,
    /// Share of a partition's rows in one insert.
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
    /// The source of the values for `?`: one row of the partition, or a row for each.
    #[serde(default)]
    pub fields: Fields,
}

/// A query that reads pages of a range of tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRangeSpec {
    /// `*`, or names with commas between them.
    pub columns: String,
    /// Rows of a page.
    #[serde(default = "page_size")]
    pub page_size: i32,
}

fn page_size() -> i32 {
    5000
}

/// The source of a query's values; see [`QuerySpec::fields`].
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

    /// The name under which its operations are selected.
    pub fn name(&self) -> String {
        self.specname.clone().unwrap_or_else(|| format!("{}.{}", self.keyspace, self.table)).to_ascii_lowercase()
    }

    /// The query over ranges of tokens with this name, in lower case.
    pub fn token_range_query(&self, name: &str) -> Option<&TokenRangeSpec> {
        self.token_range_queries.get(name)
    }

    /// The query with this name, in lower case.
    pub fn query(&self, name: &str) -> Option<&QuerySpec> {
        self.queries.get(name)
    }

    /// The names of all operations.
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
