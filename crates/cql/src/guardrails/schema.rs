//! Guardrails of changes of the schema.
//!
//! Must agree with: what the statements of `org.apache.cassandra.cql3.statements.schema`, the
//! replication strategies and `CQL3Type` ask of `Guardrails`.

use std::sync::Arc;

use schema::{KeyspaceMetadata, Schema, TableKind, TableMetadata, TableParams, system};

use super::threshold::{Guard, Threshold, level};
use super::{Values, ensure};
use crate::ast::{
    ColumnDefinition, CreateIndex, CreateTable, Property, PropertyValue, Statement, TableAlteration, TypeAlteration,
    TypeName,
};
use crate::error::CqlError;

const ZERO_TTL: Guard = Guard {
    name: "zero_ttl_on_twcs",
    reason: "It is suspicious to use default_time_to_live set to 0 with such compaction strategy. Please keep in mind that data \
             will not start to automatically expire after they are older than a respective compaction window unit of a \
             certain size. Please set TTL for your INSERT or UPDATE statements if you expect data to be expired as table \
             settings will not do it. ",
};
const ZERO_TTL_FEATURE: &str =
    "0 default_time_to_live on a table with TimeWindowCompactionStrategy compaction strategy";

/// The limits and switches for changes of the schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaGuards {
    /// keyspaces
    pub keyspaces: Threshold,
    /// tables
    pub tables: Threshold,
    /// columns_per_table
    pub columns_per_table: Threshold,
    /// fields_per_udt
    pub fields_per_udt: Threshold,
    /// secondary_indexes_per_table
    pub secondary_indexes_per_table: Threshold,
    /// materialized_views_per_table
    pub materialized_views_per_table: Threshold,
    /// vector_dimensions
    pub vector_dimensions: Threshold,
    /// minimum_replication_factor
    pub minimum_replication_factor: Threshold,
    /// maximum_replication_factor
    pub maximum_replication_factor: Threshold,
    /// table_properties
    pub table_properties: Values,
    /// alter_table_enabled
    pub alter_table: bool,
    /// drop_truncate_table_enabled
    pub drop_truncate_table: bool,
    /// drop_keyspace_enabled
    pub drop_keyspace: bool,
    /// secondary_indexes_enabled
    pub secondary_indexes: bool,
    /// uncompressed_tables_enabled
    pub uncompressed_tables: bool,
    /// compact_tables_enabled
    pub compact_tables: bool,
    /// simplestrategy_enabled
    pub simplestrategy: bool,
    /// vector_type_enabled
    pub vector_type: bool,
    /// zero_ttl_on_twcs_enabled
    pub zero_ttl_on_twcs: bool,
    /// zero_ttl_on_twcs_warned
    pub zero_ttl_on_twcs_warned: bool,
}

impl Default for SchemaGuards {
    fn default() -> Self {
        let off = Threshold::default();
        Self {
            keyspaces: off,
            tables: off,
            columns_per_table: off,
            fields_per_udt: off,
            secondary_indexes_per_table: off,
            materialized_views_per_table: off,
            vector_dimensions: off,
            minimum_replication_factor: off,
            maximum_replication_factor: off,
            table_properties: Values::default(),
            alter_table: true,
            drop_truncate_table: true,
            drop_keyspace: true,
            secondary_indexes: true,
            uncompressed_tables: true,
            compact_tables: true,
            simplestrategy: true,
            vector_type: true,
            zero_ttl_on_twcs: true,
            zero_ttl_on_twcs_warned: true,
        }
    }
}

impl SchemaGuards {
    /// Asks the guardrails that look at the statement alone, whatever it will change. `params`: the
    /// parameters that the statement sets, over the defaults. `table`: the table that it alters, as
    /// it was.
    pub(crate) fn check_before(
        &self,
        statement: &Statement<'_>,
        params: Option<&TableParams>,
        table: Option<&TableMetadata>,
        before: &Schema,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        match statement {
            Statement::CreateKeyspace(create) => {
                self.check_keyspaces(create.name.as_str(), before, warnings)?;
                self.check_strategy(&create.properties)
            }
            Statement::CreateTable(create) => self.check_creation(create, params, before, warnings),
            Statement::AlterTable(alter) => match (&alter.alteration, table) {
                (TableAlteration::With(properties), _) => {
                    self.check_properties(properties, warnings)?;
                    self.check_time_to_live(params, warnings)
                }
                (
                    TableAlteration::Add { .. } | TableAlteration::Drop { .. } | TableAlteration::Rename { .. },
                    Some(_),
                ) => ensure(self.alter_table, Guard::new("alter_table"), "ALTER TABLE changing columns"),
                _ => Ok(()),
            },
            Statement::CreateType(create) => {
                self.check_fields(create.name.name.as_str(), create.fields.len(), warnings)?;
                let mut fields = create.fields.iter();
                fields.try_for_each(|(field, ty)| self.check_vectors(ty, &format!("Field {field}"), warnings))
            }
            Statement::DropKeyspace(_) => {
                ensure(self.drop_keyspace, Guard::new("drop_keyspace_enabled"), "DROP KEYSPACE functionality")
            }
            Statement::DropTable(_) => self.check_truncate(),
            Statement::CreateIndex(_) => {
                ensure(self.secondary_indexes, Guard::new("secondary_indexes"), "Creating secondary indexes")
            }
            _ => Ok(()),
        }
    }

    /// DROP TABLE and TRUNCATE.
    pub(crate) fn check_truncate(&self) -> Result<(), CqlError> {
        let guard = Guard::new("drop_truncate_table_enabled");
        ensure(self.drop_truncate_table, guard, "DROP and TRUNCATE TABLE functionality")
    }

    /// Properties of a table that are passed over.
    pub(crate) fn ignores(&self, property: &str) -> bool {
        self.table_properties.ignored.iter().any(|ignored| ignored == property)
    }

    fn check_creation(
        &self,
        create: &CreateTable<'_>,
        params: Option<&TableParams>,
        before: &Schema,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        let name = create.name.name.as_str();
        self.check_properties(&create.properties, warnings)?;
        self.check_columns(name, create.columns.len(), warnings)?;
        self.check_tables(name, before, warnings)?;
        let guard = Guard::new("compact_tables");
        ensure(!create.compact_storage || self.compact_tables, guard, "Creation of new COMPACT STORAGE tables")?;
        self.check_time_to_live(params, warnings)?;
        self.check_vectors_of(&create.columns, warnings)
    }

    /// Checks a change that could be made, be it none: `after` is `before` then. `table`: the one
    /// that the statement is about, as it is afterwards.
    pub(crate) fn check(
        &self,
        statement: &Statement<'_>,
        table: Option<&TableMetadata>,
        before: &Schema,
        after: &Schema,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        match statement {
            Statement::CreateKeyspace(create) => {
                let name = create.name.as_str();
                match after.keyspace(name).filter(|_| before.keyspace(name).is_none()) {
                    Some(keyspace) => self.check_replication(keyspace, warnings),
                    None => Ok(()),
                }
            }
            Statement::AlterKeyspace(alter) => {
                let Some(keyspace) = after.keyspace(alter.name.as_str()) else { return Ok(()) };
                self.check_strategy(&alter.properties)?;
                self.check_replication(keyspace, warnings)
            }
            Statement::CreateTable(_) => {
                let is_new = |table: &&TableMetadata| before.table(&table.keyspace, &table.name).is_none();
                table.filter(is_new).map_or(Ok(()), |table| self.check_compression(table))
            }
            Statement::AlterTable(alter) => match table {
                Some(table) => self.check_alteration(&alter.alteration, table, warnings),
                None => Ok(()),
            },
            Statement::AlterType(alter) => match &alter.alteration {
                TypeAlteration::Add { type_name, field, .. } if before.keyspaces != after.keyspaces => {
                    let name = alter.name.name.as_str();
                    let keyspace = alter.name.keyspace();
                    let keyspaces =
                        after.keyspaces.values().filter(|found| keyspace.is_none_or(|name| name == found.name));
                    let fields =
                        keyspaces.filter_map(|found| found.user_types.get(name)).map(|udt| udt.fields.len()).max();
                    self.check_fields(name, fields.unwrap_or(0), warnings)?;
                    self.check_vectors(type_name, &format!("Field {field}"), warnings)
                }
                _ => Ok(()),
            },
            Statement::CreateView(_) => {
                let is_new = |table: &&TableMetadata| before.table(&table.keyspace, &table.name).is_none();
                table.filter(is_new).map_or(Ok(()), |view| self.check_views(view, before, warnings))
            }
            Statement::CreateIndex(create) => match table {
                Some(table) => self.check_indexes(create, table, before, warnings),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn check_alteration(
        &self,
        alteration: &TableAlteration<'_>,
        table: &TableMetadata,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        match alteration {
            TableAlteration::Add { columns, .. } => {
                let count = table.columns_in_select_order().len();
                self.check_columns(&table.name, count, warnings)?;
                self.check_vectors_of(columns, warnings)
            }
            TableAlteration::With(_) => self.check_compression(table),
            _ => Ok(()),
        }
    }

    fn check_vectors_of(&self, columns: &[ColumnDefinition<'_>], warnings: &mut Vec<String>) -> Result<(), CqlError> {
        columns
            .iter()
            .try_for_each(|column| self.check_vectors(&column.type_name, &format!("Column {}", column.name), warnings))
    }

    fn check_keyspaces(&self, name: &str, before: &Schema, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let count = 1 + before.keyspaces.keys().filter(|name| !system::is_system_keyspace(name)).count();
        let message = |is_warning: bool, threshold: i64| match is_warning {
            true => format!(
                "Creating keyspace {name}, current number of keyspaces {count} exceeds warning threshold of {threshold}."
            ),
            false => format!("Cannot have more than {threshold} keyspaces, aborting the creation of keyspace {name}"),
        };
        self.keyspaces.at_most(Guard::new("keyspaces"), as_number(count), &message, warnings)
    }

    fn check_tables(&self, name: &str, before: &Schema, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let keyspaces = before.keyspaces.iter().filter(|(name, _)| !system::is_system_keyspace(name));
        let of = |keyspace: &KeyspaceMetadata| {
            keyspace.tables.values().filter(|table| table.kind != TableKind::Virtual).count()
        };
        let count = 1 + keyspaces.map(|(_, keyspace)| of(keyspace)).sum::<usize>();
        let message = |is_warning: bool, threshold: i64| match is_warning {
            true => {
                format!(
                    "Creating table {name}, current number of tables {count} exceeds warning threshold of {threshold}."
                )
            }
            false => format!("Cannot have more than {threshold} tables, aborting the creation of table {name}"),
        };
        self.tables.at_most(Guard::new("tables"), as_number(count), &message, warnings)
    }

    fn check_columns(&self, name: &str, count: usize, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let message = |is_warning: bool, threshold: i64| match is_warning {
            true => format!("The table {name} has {count} columns, this exceeds the warning threshold of {threshold}."),
            false => {
                format!("Tables cannot have more than {threshold} columns, but {count} provided for table {name}")
            }
        };
        self.columns_per_table.at_most(Guard::new("columns_per_table"), as_number(count), &message, warnings)
    }

    fn check_fields(&self, name: &str, count: usize, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let message = |is_warning: bool, threshold: i64| match is_warning {
            true => {
                format!("The user type {name} has {count} columns, this exceeds the warning threshold of {threshold}.")
            }
            false => format!(
                "User types cannot have more than {threshold} columns, but {count} provided for user type {name}."
            ),
        };
        self.fields_per_udt.at_most(Guard::new("fields_per_udt"), as_number(count), &message, warnings)
    }

    fn check_indexes(
        &self,
        create: &CreateIndex<'_>,
        table: &TableMetadata,
        before: &Schema,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        let name = match &create.name {
            Some(name) => format!("{name} on table {}", table.name),
            None => format!("on table {}", table.name),
        };
        let count = 1 + before.table(&table.keyspace, &table.name).map_or(0, |old| old.indexes.len());
        let message = |is_warning: bool, threshold: i64| match is_warning {
            true => format!(
                "Creating secondary index {name}, current number of indexes {count} exceeds warning threshold of {threshold}."
            ),
            false => format!(
                "Tables cannot have more than {threshold} secondary indexes, aborting the creation of secondary index {name}"
            ),
        };
        let guard = Guard::new("secondary_indexes_per_table");
        self.secondary_indexes_per_table.at_most(guard, as_number(count), &message, warnings)
    }

    fn check_views(&self, view: &TableMetadata, before: &Schema, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let Some(definition) = &view.view else { return Ok(()) };
        let is_sibling =
            |other: &&Arc<TableMetadata>| other.view.as_ref().is_some_and(|view| view.base_id == definition.base_id);
        let tables = before.keyspace(&view.keyspace).into_iter().flat_map(|keyspace| keyspace.tables.values());
        let count = 1 + tables.filter(is_sibling).count();
        let name = format!("{} on table {}", view.name, definition.base_name);
        let message = |is_warning: bool, threshold: i64| match is_warning {
            true => format!(
                "Creating materialized view {name}, current number of views {count} exceeds warning threshold of {threshold}."
            ),
            false => format!(
                "Tables cannot have more than {threshold} materialized views, aborting the creation of materialized view {name}"
            ),
        };
        let guard = Guard::new("materialized_views_per_table");
        self.materialized_views_per_table.at_most(guard, as_number(count), &message, warnings)
    }

    fn check_vectors(&self, ty: &TypeName<'_>, name: &str, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        match ty {
            TypeName::Vector(_, dimension) => {
                ensure(self.vector_type, Guard::new("vector_type_enabled"), name)?;
                let message = |is_warning: bool, threshold: i64| {
                    let which = level(is_warning);
                    format!(
                        "{name} has a vector of {dimension} dimensions, this exceeds the {which} threshold of {threshold}."
                    )
                };
                let guard = Guard::new("vector_dimensions");
                self.vector_dimensions.at_most(guard, i64::from(*dimension), &message, warnings)
            }
            TypeName::List(inner) | TypeName::Set(inner) | TypeName::Frozen(inner) => {
                self.check_vectors(inner, name, warnings)
            }
            TypeName::Map(key, value) => {
                self.check_vectors(key, name, warnings)?;
                self.check_vectors(value, name, warnings)
            }
            TypeName::Tuple(elements) => {
                elements.iter().try_for_each(|element| self.check_vectors(element, name, warnings))
            }
            TypeName::Native(_) | TypeName::User(_) | TypeName::Custom(_) => Ok(()),
        }
    }

    fn check_properties(&self, properties: &[Property<'_>], warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let mut names: Vec<&str> = properties.iter().map(|property| property.name.as_str()).collect();
        names.sort_unstable();
        self.table_properties.check("table_properties", "Table Properties", &names, warnings)
    }

    fn check_time_to_live(&self, params: Option<&TableParams>, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let Some(params) = params else { return Ok(()) };
        let class = params.compaction.get("class");
        let is_doubtful = params.default_time_to_live == 0
            && class.is_some_and(|class| class.ends_with("TimeWindowCompactionStrategy"));
        if !is_doubtful {
            return Ok(());
        }
        ensure(self.zero_ttl_on_twcs, ZERO_TTL, ZERO_TTL_FEATURE)?;
        if self.zero_ttl_on_twcs_warned {
            let message = format!("{ZERO_TTL_FEATURE} is not recommended");
            warnings.push(super::violation_text(ZERO_TTL.name, &message, ZERO_TTL.reason));
        }
        Ok(())
    }

    fn check_compression(&self, table: &TableMetadata) -> Result<(), CqlError> {
        let is_off = table.params.compression.get("enabled").is_some_and(|enabled| enabled == "false");
        ensure(!is_off || self.uncompressed_tables, Guard::new("uncompressed_tables_enabled"), "Uncompressed table")
    }

    fn check_strategy(&self, properties: &[Property<'_>]) -> Result<(), CqlError> {
        let names_simple = properties.iter().any(|property| match &property.value {
            PropertyValue::Map(pairs) => {
                pairs.iter().any(|(key, value)| &*key.text == "class" && &*value.text == "SimpleStrategy")
            }
            PropertyValue::Simple(_) => false,
        });
        ensure(!names_simple || self.simplestrategy, Guard::new("simplestrategy"), "SimpleStrategy")
    }

    fn check_replication(&self, keyspace: &KeyspaceMetadata, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let name = &keyspace.name;
        for factor in keyspace.replication.options.values().filter_map(|factor| factor.parse::<i64>().ok()) {
            let message = |how: &'static str| {
                move |is_warning: bool, threshold: i64| {
                    let which = level(is_warning);
                    format!(
                        "The keyspace {name} has a replication factor of {factor}, {how} the {which} threshold of {threshold}."
                    )
                }
            };
            let (low, high) = (Guard::new("minimum_replication_factor"), Guard::new("maximum_replication_factor"));
            self.minimum_replication_factor.at_least(low, factor, &message("below"), warnings)?;
            self.maximum_replication_factor.at_most(high, factor, &message("above"), warnings)?;
        }
        Ok(())
    }
}

fn as_number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
