//! CREATE CUSTOM INDEX … USING 'org.apache.cassandra.index.sasi.SASIIndex': the checks on target,
//! type and options.
//!
//! Agrees with `org.apache.cassandra.index.sasi.SASIIndex.validateOptions` and
//! `…sasi.conf.IndexMode`. Analyzers that cut texts into words are refused by name. So is the
//! option `is_literal` where it is not what the type says.

use schema::index::attached::is_supported;
use schema::index::definition::parse_target;
use schema::index::sasi::{ANALYZERS, Mode, Sasi};
use schema::{ColumnKind, IndexMetadata, TableMetadata};
use types::CqlType;

use crate::error::CqlError;

/// The analyzers that Cassandra has.
const KNOWN: [&str; 4] = ["NonTokenizingAnalyzer", "NoOpAnalyzer", "StandardAnalyzer", "DelimiterAnalyzer"];

fn refused<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::Config(message.into()))
}

/// Checks a new index of a table.
pub(super) fn check(table: &TableMetadata, index: &IndexMetadata) -> Result<(), CqlError> {
    let option = |name: &str| index.options.get(name).map(String::as_str);
    let target = option("target").unwrap_or_default();
    let column = match table.column_by_name(&parse_target(target).1) {
        Some(column) if !target.contains(',') => column,
        _ => return refused(format!("failed to retrieve target column for: {target}")),
    };
    if column.is_complex() {
        return refused("complex columns are not yet supported by SASI");
    }
    if column.kind == ColumnKind::PartitionKey {
        return refused("partition key columns are not yet supported by SASI");
    }
    let is_text = matches!(column.ty, CqlType::Text | CqlType::Ascii);
    if let Some(class) = option("analyzer_class") {
        check_analyzer(class, index, &column.ty, is_text)?;
    }
    let Some(mode) = option("mode").map_or(Some(Mode::Prefix), Mode::of_name) else {
        return refused(format!("Incorrect index mode: {}", option("mode").unwrap_or_default()));
    };
    let is_on = |name: &str| option(name).map(|value| value.eq_ignore_ascii_case("true"));
    if mode == Mode::Sparse && is_on("is_literal").unwrap_or(is_text) {
        return refused("SPARSE mode is only supported on non-literal columns.");
    }
    if mode == Mode::Sparse && is_on("analyzed").unwrap_or(option("analyzer_class").is_some()) {
        return refused("SPARSE mode doesn't support analyzers.");
    }
    if Sasi::of(index, &column.ty).is_none() {
        return Err(CqlError::unsupported("SASI indexes that cut texts into words, or with is_literal, are"));
    }
    if !is_supported(&column.ty) {
        return Err(CqlError::unsupported(&format!("SASI indexes on columns of type {} are", column.ty.cql_name())));
    }
    Ok(())
}

fn check_analyzer(class: &str, index: &IndexMetadata, ty: &CqlType, is_text: bool) -> Result<(), CqlError> {
    let Some(name) = class.strip_prefix(ANALYZERS).filter(|name| KNOWN.contains(name)) else {
        return refused(format!("Invalid analyzer class option specified [{class}]"));
    };
    if name != "NoOpAnalyzer" && !is_text {
        return refused(format!("{name} does not support type {}", ty.cql_name()));
    }
    let has = |option: &str| index.options.contains_key(option);
    if name == "NonTokenizingAnalyzer"
        && has("case_sensitive")
        && (has("normalize_lowercase") || has("normalize_uppercase"))
    {
        return refused(
            "case_sensitive option cannot be specified together with either normalize_lowercase or normalize_uppercase",
        );
    }
    Ok(())
}
