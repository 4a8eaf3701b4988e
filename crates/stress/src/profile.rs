//! `user`: a profile in YAML describes a table, the distribution of its values, and the queries
//! (org.apache.cassandra.stress.StressProfile).

mod insert;
mod query;
mod rows;
mod token_range;
mod validate;
mod yaml;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::frame::response::result::ColumnType;

use crate::Result;
use crate::distribution::{Distribution, Ratio};
use crate::settings::Settings;
use crate::value::Generator;
use crate::workload::{Operation, Workload};
use rows::{Level, Rows};
use yaml::{ColumnSpec, Profile};

/// Default of the bytes of a text, of the elements of a collection, and of the number of different
/// values of a column.
const SIZE: Distribution = Distribution::uniform(4, 8);
const POPULATION: Distribution = Distribution::uniform(1, 100_000_000_000);

/// Most rows of a partition that are generated at once; from larger partitions rows are drawn one
/// by one.
const ROWS_MAX: usize = 1_000_000;

/// A profile with its table as the cluster describes it.
struct LoadedProfile {
    profile: Profile,
    table: Table,
    rows: Arc<Rows>,
}

/// Creates the schemas and prepares the operations; also returns the tables.
pub async fn prepare(
    session: &Arc<Session>,
    settings: &Settings,
    files: &[PathBuf],
    parts: &[(String, f64)],
) -> Result<(Workload, Vec<String>)> {
    let mut loaded = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let profile = Profile::parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        create(session, &profile).await?;
        let table = Table::load(session, &profile).await?;
        let rows = Arc::new(table.rows(&profile, settings)?);
        loaded.push(LoadedProfile { profile, table, rows });
    }
    let mut operations: Vec<(Arc<dyn Operation>, f64)> = Vec::new();
    for (name, weight) in parts {
        let (profile, operation) = find(&loaded, name)?;
        // queries that name no keyspace use this one
        session.use_keyspace(&profile.profile.keyspace, true).await?;
        operations.push((profile.operation(session, settings, name, operation).await?, *weight));
    }
    let tables = loaded.into_iter().map(|loaded| loaded.table.name).collect();
    Ok((Workload::new(operations, settings.load.streak.clone()), tables))
}

/// The profile and the operation that `name` means; the first profile if it names none.
fn find<'a>(loaded: &'a [LoadedProfile], name: &'a str) -> Result<(&'a LoadedProfile, &'a str)> {
    let named = loaded.iter().find_map(|loaded| {
        let operation = name.strip_prefix(loaded.profile.name().as_str())?.strip_prefix('.')?;
        Some((loaded, operation))
    });
    named.or_else(|| Some((loaded.first()?, name))).ok_or_else(|| "user needs a profile".into())
}

impl LoadedProfile {
    async fn operation(
        &self,
        session: &Arc<Session>,
        settings: &Settings,
        called: &str,
        name: &str,
    ) -> Result<Arc<dyn Operation>> {
        let (profile, table, rows, called) = (&self.profile, &self.table, self.rows.clone(), called.to_owned());
        Ok(match (name, profile.query(name), profile.token_range_query(name)) {
            ("insert", ..) => {
                Arc::new(insert::Insert::new(called, session, profile, table, rows, &settings.insert).await?)
            }
            ("validate", ..) => {
                Arc::new(validate::Validate::new(called, session, profile, table, rows, &settings.insert).await?)
            }
            (_, Some(query), _) => Arc::new(query::Query::new(called, session, query, rows, settings).await?),
            (_, _, Some(query)) => {
                Arc::new(token_range::TokenRange::new(called, session, query, table, &settings.token_ranges).await?)
            }
            _ => return Err(format!("{}: no query '{name}'; it has {}", profile.name(), profile.query_names()).into()),
        })
    }
}

async fn create(session: &Session, profile: &Profile) -> Result<()> {
    let definitions = profile.keyspace_definition.iter().map(|text| (text, false));
    let inside = profile.table_definition.iter().chain(&profile.extra_definitions).map(|text| (text, true));
    let mut is_used = false;
    for (text, is_inside) in definitions.chain(inside) {
        if is_inside && !is_used {
            session.use_keyspace(&profile.keyspace, true).await?;
            is_used = true;
        }
        if let Err(error) = session.query_unpaged(text.as_str(), ()).await
            && !is_there(&error)
        {
            return Err(format!("{error}, in the profile's {text}").into());
        }
    }
    if !is_used {
        session.use_keyspace(&profile.keyspace, true).await?;
    }
    session.await_schema_agreement().await?;
    Ok(())
}

/// Whether the error says that the element exists already.
fn is_there(error: &ExecutionError) -> bool {
    use scylla::errors::{DbError, RequestAttemptError};
    matches!(error, ExecutionError::LastAttemptError(RequestAttemptError::DbError(DbError::AlreadyExists { .. }, _)))
}

/// The table as the cluster describes it.
pub struct Table {
    /// Keyspace and table, quoted.
    pub name: String,
    partition_key: Vec<String>,
    clustering: Vec<String>,
    statics: Vec<String>,
    regular: Vec<String>,
    types: HashMap<String, ColumnType<'static>>,
    counters: bool,
}

impl Table {
    async fn load(session: &Session, profile: &Profile) -> Result<Self> {
        let name = format!("\"{}\".\"{}\"", profile.keyspace, profile.table);
        let query = "SELECT column_name, kind, position, type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?";
        let answer = session.query_unpaged(query, (&profile.keyspace, &profile.table)).await?.into_rows_result()?;
        let mut columns =
            answer.rows::<(String, String, i32, String)>()?.collect::<std::result::Result<Vec<_>, _>>()?;
        if columns.is_empty() {
            return Err(
                format!("there is no table {name}, and the profile has no table_definition that makes it").into()
            );
        }
        columns.sort_by_key(|(name, _, position, _)| (*position, name.clone()));
        let of_kind = |wanted: &str| -> Vec<String> {
            columns.iter().filter(|(_, kind, ..)| kind == wanted).map(|(name, ..)| name.clone()).collect()
        };
        let types = types(session, &name).await?;
        Ok(Self {
            partition_key: of_kind("partition_key"),
            clustering: of_kind("clustering"),
            statics: of_kind("static"),
            regular: of_kind("regular"),
            counters: columns.iter().any(|(.., cql_type)| cql_type == "counter"),
            types,
            name,
        })
    }

    /// Names of all columns.
    fn columns(&self) -> impl Iterator<Item = &String> {
        [&self.partition_key, &self.clustering, &self.statics, &self.regular].into_iter().flatten()
    }

    fn rows(&self, profile: &Profile, settings: &Settings) -> Result<Rows> {
        for spec in &profile.columnspec {
            if !self.types.contains_key(&spec.name) {
                return Err(format!("columnspec: {} has no column {}", self.name, spec.name).into());
            }
        }
        let spec = |name: &str| profile.columnspec.iter().find(|spec| spec.name == name);
        let generator = |name: &String| -> Result<Generator> {
            let of = |text: Option<&String>, default: Distribution| {
                text.map_or(Ok(default), |text| Distribution::parse(text))
            };
            let size = of(spec(name).and_then(|spec| spec.size.as_ref()), SIZE)?;
            let population = of(spec(name).and_then(|spec| spec.population.as_ref()), POPULATION)?;
            Generator::new(name, self.types[name].clone(), size, population)
        };
        let level = |name: &String| -> Result<Level> {
            let count = match spec(name).and_then(|spec: &ColumnSpec| spec.cluster.as_ref()) {
                Some(text) => Distribution::parse(text)?,
                None => Distribution::fixed(1),
            };
            Ok(Level { name: name.clone(), generator: generator(name)?, count })
        };
        let named = |names: &[String], may_skip: bool| -> Result<Vec<(String, Generator)>> {
            let of = |name: &String| Ok((name.clone(), generator(name)?));
            names.iter().map(of).filter(|made| made.is_ok() || !may_skip).collect()
        };
        let population = match (&settings.insert.row_population, &profile.insert.row_population) {
            (Some(ratio), _) => ratio.clone(),
            (None, Some(text)) => Ratio::parse(text)?,
            (None, None) => Ratio::ALL,
        };
        Ok(Rows {
            partition_key: named(&self.partition_key, false)?,
            levels: self.clustering.iter().map(level).collect::<Result<_>>()?,
            statics: named(&self.statics, settings.errors.skip_columns)?,
            regular: named(&self.regular, settings.errors.skip_columns)?,
            population,
        })
    }
}

/// The types of columns, taken from the metadata of a statement that reads all of them.
async fn types(session: &Session, table: &str) -> Result<HashMap<String, ColumnType<'static>>> {
    let statement = session.prepare(format!("SELECT * FROM {table}")).await?;
    let columns = statement.get_current_result_set_col_specs();
    Ok(columns.get().iter().map(|column| (column.name().to_owned(), column.typ().clone().into_owned())).collect())
}
