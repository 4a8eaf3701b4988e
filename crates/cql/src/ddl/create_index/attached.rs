//! CREATE INDEX … USING 'sai': the checks of storage-attached indexes on target, type and options.
//!
//! Agrees with `org.apache.cassandra.index.sai.StorageAttachedIndex.validateOptions`,
//! `…sai.analyzer.{AbstractAnalyzer,NonTokenizingOptions}` and
//! `…sai.disk.v1.IndexWriterConfig.fromOptions`.

use schema::index::attached::{SIMILARITY_FUNCTION, TextForm, is_attached, is_supported, similarity_of};
use schema::index::definition::parse_target;
use schema::{IndexMetadata, TableMetadata};
use types::similarity::float_dimension;
use types::{CqlType, CustomType, Similarity};

use crate::error::CqlError;

/// The options of text.
const OF_TEXT: [&str; 3] = TextForm::OPTIONS;
/// The options of vectors.
const OF_VECTORS: [&str; 4] =
    ["maximum_node_connections", "construction_beam_width", "similarity_function", "optimize_for"];

const NO_FLOATS: &str = "SAI ANN indexes are only allowed on vector columns with float elements";

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// Checks a new index of a table.
pub(super) fn check(table: &TableMetadata, index: &IndexMetadata) -> Result<(), CqlError> {
    let target = index.options.get("target").map_or("", String::as_str);
    let (word, name) = parse_target(target);
    // an index that is there looks for its like before the new one's options are looked at
    let is_same = |other: &&IndexMetadata| {
        let parts = other.options.get("target").map(|target| parse_target(target));
        is_attached(other) && parts.is_some_and(|(other, of)| other == word && of == name)
    };
    if table.indexes.values().any(|other| is_same(&other)) {
        return invalid(format!("Cannot create more than one storage-attached index on the same column: {name}"));
    }
    let own = |name: &str| matches!(name, "target" | "class_name");
    let given = || index.options.iter().filter(|(name, _)| !own(name));
    let is_known = |name: &str| OF_TEXT.contains(&name) || OF_VECTORS.contains(&name);
    let unknown: Vec<&str> = given().map(|(name, _)| name.as_str()).filter(|name| !is_known(name)).collect();
    if !unknown.is_empty() {
        let message =
            format!("Properties specified [{}] are not understood by StorageAttachedIndex", unknown.join(", "));
        return Err(CqlError::Config(message));
    }
    if target.is_empty() {
        return invalid("Missing target column");
    }
    if target.contains(',') {
        return invalid(format!("A storage-attached index cannot be created over multiple columns: {target}"));
    }
    let Some(column) = table.column_by_name(&name) else {
        return invalid(format!("Failed to retrieve target column for: {target}"));
    };
    let of_text: Vec<_> = given().filter(|(name, _)| OF_TEXT.contains(&name.as_str())).collect();
    if column.is_primary_key() && !of_text.is_empty() {
        let pairs: Vec<String> = of_text.iter().map(|(name, value)| format!("'{name}': '{value}'")).collect();
        let pairs = pairs.join(", ");
        return invalid(format!("Analysis options are not supported on primary key columns, but found {{{pairs}}}"));
    }
    let terms = term_types(&column.ty, word);
    check_text(&terms, &of_text)?;
    let is_vector = matches!(column.ty, CqlType::Vector { .. });
    if !is_vector && given().any(|(name, _)| OF_VECTORS.contains(&name.as_str())) {
        return invalid(format!("CQL type {} cannot have vector options", shown(&terms, &column.ty)));
    }
    if is_vector {
        return check_vector(index, &column.ty);
    }
    if let [ty @ CqlType::Vector { .. }] = terms.as_slice()
        && float_dimension(ty).is_none()
    {
        return invalid(NO_FLOATS);
    }
    // entries of maps may have vectors, which are compared whole
    let is_entry = |ty: &CqlType| terms.len() == 2 && matches!(ty, CqlType::Vector { .. });
    if let Some(ty) = terms.iter().find(|ty| !is_supported(ty) && !is_entry(ty)) {
        return invalid(format!("Unsupported type: {}", ty.cql_name()));
    }
    Ok(())
}

/// Checks the options and the type of an index on vectors. Where Cassandra checks them the index
/// has no name yet: its texts say `null`.
fn check_vector(index: &IndexMetadata, ty: &CqlType) -> Result<(), CqlError> {
    let parameters = [
        ("maximum_node_connections", "Maximum node connections"),
        ("construction_beam_width", "Construction beam width"),
    ];
    for (option, words) in parameters {
        if index.options.contains_key(option) {
            return invalid(format!("{words} cannot be set without enabling SAI_VECTOR_ALLOW_CUSTOM_PARAMETERS"));
        }
    }
    let given = index.options.get(SIMILARITY_FUNCTION).map(|given| given.to_uppercase());
    if let Some(given) = given.filter(|given| Similarity::of_name(given).is_none()) {
        let valid: Vec<&str> = Similarity::ALL.iter().map(|one| one.name()).collect();
        return invalid(format!(
            "Similarity function {given} was not recognized for index null. Valid values are: {}",
            valid.join(", ")
        ));
    }
    let given = index.options.get("optimize_for").map(|given| given.to_uppercase());
    if let Some(given) = given.filter(|given| !["LATENCY", "RECALL"].contains(&given.as_str())) {
        return invalid(format!(
            "optimize_for '{given}' was not recognized for index null. Valid values are: LATENCY, RECALL"
        ));
    }
    match float_dimension(ty) {
        None => invalid(NO_FLOATS),
        Some(1) if similarity_of(index) == Some(Similarity::Cosine) => {
            invalid("Cosine similarity is not supported for single-dimension vectors")
        }
        Some(_) => Ok(()),
    }
}

/// The types of what an index holds of a column: two for the entries of a map.
fn term_types(ty: &CqlType, word: Option<&str>) -> Vec<CqlType> {
    match (ty, word) {
        _ if !ty.is_multi_cell() => vec![ty.clone()],
        (CqlType::Map { key, value, .. }, Some("entries")) => vec![(**key).clone(), (**value).clone()],
        (CqlType::Map { key, .. }, Some("keys")) => vec![(**key).clone()],
        (CqlType::Map { value, .. }, _) => vec![(**value).clone()],
        (CqlType::List { element, .. } | CqlType::Set { element, .. }, _) => vec![(**element).clone()],
        _ => vec![ty.clone()],
    }
}

fn shown(terms: &[CqlType], column: &CqlType) -> String {
    match terms {
        [one] => one.cql_name(),
        _ => column.cql_name(),
    }
}

/// Checks the options of text against the type and each value.
fn check_text(terms: &[CqlType], given: &[(&String, &String)]) -> Result<(), CqlError> {
    let is_text = |ty: &CqlType| matches!(ty, CqlType::Text | CqlType::Ascii);
    let Some(first) = terms.first().filter(|_| !given.is_empty()) else { return Ok(()) };
    if terms.len() != 1 || !is_text(first) {
        let ty = match terms {
            [key, value] => CqlType::Custom(CustomType::Composite(vec![key.clone(), value.clone()]).into()),
            _ => first.clone(),
        };
        return invalid(format!("CQL type {} cannot be analyzed.", ty.cql_name()));
    }
    for (name, value) in given {
        if value.is_empty() {
            return invalid(format!("Empty value for boolean option '{name}'"));
        }
        if !value.eq_ignore_ascii_case("true") && !value.eq_ignore_ascii_case("false") {
            return invalid(format!("Illegal value for boolean option '{name}': {value}"));
        }
    }
    Ok(())
}
