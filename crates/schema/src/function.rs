//! User-defined functions and aggregates of a keyspace, read from their rows in
//! `system_schema.functions` and `system_schema.aggregates`, and those rows made again.
//!
//! The rows stand in [`KeyspaceMetadata::function_rows`]; what is read from them is compiled here.
//! A function whose body is refused stays in the schema: a call of it is an error that gives the
//! reason.
//!
//! Agrees with `SchemaKeyspace.createUDFFromRow` and `createUDAFromRow`,
//! `UDFunction.createBrokenFunction`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use types::{CqlType, UserType, ident, literal};

use crate::schema_row::{SchemaRow, SchemaTable};
use crate::system_schema::values::{boolean, read_boolean, read_text, read_text_list, text, text_list};
use crate::{KeyspaceMetadata, type_text};

/// The language of Cassandra's functions.
pub const JAVA: &str = "java";
/// WebAssembly, which Cassandra does not have.
pub const WASM: &str = "wasm";

/// The name of a function or aggregate, and the types of its arguments as texts.
pub type FunctionKey = (String, Vec<String>);

/// A user-defined function.
#[derive(Clone, Debug)]
pub struct FunctionMetadata {
    /// The keyspace.
    pub keyspace: String,
    /// The name.
    pub name: String,
    /// Names and types of the arguments.
    pub arguments: Vec<(String, CqlType)>,
    /// The type of the result.
    pub returns: CqlType,
    /// CALLED ON NULL INPUT; false: a call with a null argument is null.
    pub called_on_null: bool,
    /// The language, as written.
    pub language: String,
    /// The body, as written.
    pub body: String,
    /// The compiled body, or why there is none.
    pub compiled: Arc<Result<functions::Function, String>>,
}

impl PartialEq for FunctionMetadata {
    /// Compares what is stored; the compiled form follows from it.
    fn eq(&self, other: &Self) -> bool {
        self.keyspace == other.keyspace
            && self.name == other.name
            && self.arguments == other.arguments
            && self.returns == other.returns
            && self.called_on_null == other.called_on_null
            && self.language == other.language
            && self.body == other.body
    }
}

/// A user-defined aggregate.
#[derive(Clone, PartialEq, Debug)]
pub struct AggregateMetadata {
    /// The keyspace.
    pub keyspace: String,
    /// The name.
    pub name: String,
    /// The types of the arguments.
    pub arguments: Vec<CqlType>,
    /// The type of the result.
    pub returns: CqlType,
    /// SFUNC: from the state and the arguments to the next state.
    pub state_function: Arc<FunctionMetadata>,
    /// STYPE
    pub state_type: CqlType,
    /// FINALFUNC: from the last state to the result; None: that state is the result.
    pub final_function: Option<Arc<FunctionMetadata>>,
    /// INITCOND: the first state; None: null.
    pub initial: Option<Bytes>,
}

/// The texts of types, as the rows hold them.
pub fn type_texts<'a>(types: impl IntoIterator<Item = &'a CqlType>) -> Vec<String> {
    types.into_iter().map(type_text::print).collect()
}

/// A type as CREATE statements of functions show it: a tuple without `frozen`, which it always is.
pub fn shown_type(ty: &CqlType) -> String {
    let text = type_text::print(ty);
    match (ty, text.strip_prefix("frozen<").and_then(|text| text.strip_suffix('>'))) {
        (CqlType::Tuple(_), Some(bare)) => bare.to_owned(),
        _ => text,
    }
}

/// The name of a function with the types of its arguments, as DESCRIBE shows it.
pub fn shown_name<'a>(name: &str, types: impl IntoIterator<Item = &'a CqlType>) -> String {
    let types: Vec<String> = types.into_iter().map(shown_type).collect();
    format!("{}({})", ident::maybe_quote(name), types.join(", "))
}

impl FunctionMetadata {
    /// Compiles the body.
    pub fn compile(&self, user_types: &BTreeMap<String, Arc<UserType>>) -> Result<functions::Function, String> {
        let signature = functions::Signature {
            arguments: self.arguments.clone(),
            returns: self.returns.clone(),
            called_on_null: self.called_on_null,
        };
        if self.language.eq_ignore_ascii_case(WASM) {
            return functions::compile_wasm(&signature, &self.body)
                .map_err(|reason| format!("The WebAssembly module is refused: {reason}"));
        }
        if !self.language.eq_ignore_ascii_case(JAVA) {
            return Err(format!("The language {} is not supported", self.language));
        }
        let user_types: Vec<_> = user_types.values().cloned().collect();
        functions::compile(&signature, &self.body, &user_types)
            .map_err(|refusal| format!("Java source compilation failed:\n{refusal}\n"))
    }

    /// The key among the functions of the keyspace.
    pub fn key(&self) -> FunctionKey {
        (self.name.clone(), type_texts(self.arguments.iter().map(|(_, ty)| ty)))
    }

    /// The row in `system_schema.functions`.
    pub fn row(&self) -> SchemaRow {
        let (name, types) = self.key();
        let cells = [
            ("body", text(&self.body)),
            ("language", text(&self.language)),
            ("return_type", text(&type_text::print(&self.returns))),
            ("called_on_null_input", boolean(self.called_on_null)),
            ("argument_names", text_list(self.arguments.iter().map(|(name, _)| name.clone()))),
        ];
        row(SchemaTable::Functions, &self.keyspace, &name, types, cells)
    }

    /// The CREATE statement.
    pub fn describe(&self) -> String {
        let arguments: Vec<_> = self
            .arguments
            .iter()
            .map(|(name, ty)| format!("{} {}", ident::maybe_quote(name), shown_type(ty)))
            .collect();
        format!(
            "CREATE FUNCTION {}({})\n    {} ON NULL INPUT\n    RETURNS {}\n    LANGUAGE {}\n    AS {};",
            ident::qualified(&self.keyspace, &self.name),
            arguments.join(", "),
            if self.called_on_null { "CALLED" } else { "RETURNS NULL" },
            shown_type(&self.returns),
            self.language,
            self.quoted_body()
        )
    }

    /// The body between dollars, as Cassandra shows each, or in quotes where dollars of its own
    /// would end it.
    fn quoted_body(&self) -> String {
        match self.body.contains("$$") || self.body.ends_with('$') {
            true => ident::quote_text(&self.body),
            false => format!("$${}$$", self.body),
        }
    }
}

impl AggregateMetadata {
    /// The key among the aggregates of the keyspace.
    pub fn key(&self) -> FunctionKey {
        (self.name.clone(), type_texts(&self.arguments))
    }

    /// The row in `system_schema.aggregates`.
    pub fn row(&self) -> SchemaRow {
        let (name, types) = self.key();
        let mut cells = vec![
            ("return_type", text(&type_text::print(&self.returns))),
            ("state_func", text(&self.state_function.name)),
            ("state_type", text(&type_text::print(&self.state_type))),
        ];
        cells.extend(self.final_function.as_ref().map(|function| ("final_func", text(&function.name))));
        cells.extend(self.initial_text().map(|initial| ("initcond", text(&initial))));
        row(SchemaTable::Aggregates, &self.keyspace, &name, types, cells)
    }

    /// INITCOND as a literal.
    fn initial_text(&self) -> Option<String> {
        self.initial.as_ref().map(|initial| literal::to_text(&self.state_type, initial))
    }

    /// The CREATE statement.
    pub fn describe(&self) -> String {
        let mut statement = format!(
            "CREATE AGGREGATE {}.{}\n    SFUNC {}\n    STYPE {}",
            ident::maybe_quote(&self.keyspace),
            shown_name(&self.name, &self.arguments),
            ident::maybe_quote(&self.state_function.name),
            shown_type(&self.state_type)
        );
        if let Some(last) = &self.final_function {
            statement += &format!("\n    FINALFUNC {}", ident::maybe_quote(&last.name));
        }
        if let Some(initial) = self.initial_text() {
            statement += &format!("\n    INITCOND {initial}");
        }
        statement + ";"
    }
}

fn row<'a>(
    table: SchemaTable,
    keyspace: &str,
    name: &str,
    types: Vec<String>,
    cells: impl IntoIterator<Item = (&'a str, Bytes)>,
) -> SchemaRow {
    SchemaRow {
        table,
        keyspace: keyspace.to_owned(),
        clustering: vec![text(name), text_list(types)],
        cells: cells.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

impl KeyspaceMetadata {
    /// Reads functions and aggregates again from their rows, as after a change of them or of a user
    /// type. The result names the rows that cannot be read or compiled, each with the reason.
    pub fn read_functions(&mut self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut functions = BTreeMap::new();
        let rows = |table: SchemaTable| self.function_rows.iter().filter(move |row| row.table == table);
        for row in rows(SchemaTable::Functions) {
            match self.function_of(row) {
                Some(function) => {
                    if let Err(reason) = &*function.compiled {
                        problems.push(format!("function {}.{}: {}", self.name, function.name, reason.trim_end()));
                    }
                    functions.insert(function.key(), Arc::new(function));
                }
                None => problems.push(format!("a function of {} whose row is unreadable", self.name)),
            }
        }
        let mut aggregates = BTreeMap::new();
        for row in rows(SchemaTable::Aggregates) {
            match self.aggregate_of(row, &functions) {
                Some(aggregate) => {
                    aggregates.insert(aggregate.key(), Arc::new(aggregate));
                }
                None => problems.push(format!("an aggregate of {} whose row is unreadable", self.name)),
            }
        }
        (self.functions, self.aggregates) = (functions, aggregates);
        problems
    }

    fn function_of(&self, row: &SchemaRow) -> Option<FunctionMetadata> {
        let cell = |name: &str| row.content().get(name).copied();
        let types = self.types_of(row)?;
        let names = read_text_list(cell("argument_names")?)?;
        if names.len() != types.len() {
            return None;
        }
        let mut function = FunctionMetadata {
            keyspace: self.name.clone(),
            name: read_text(row.clustering.first()?)?,
            arguments: names.into_iter().zip(types).collect(),
            returns: self.type_of(&read_text(cell("return_type")?)?)?,
            called_on_null: read_boolean(cell("called_on_null_input")?)?,
            language: read_text(cell("language")?)?,
            body: read_text(cell("body")?)?,
            compiled: Arc::new(Err(String::new())),
        };
        // a function that was compiled for the same types before needs no second time
        let before = self.functions.get(&function.key()).filter(|before| ***before == function);
        function.compiled = match before {
            Some(before) => Arc::clone(&before.compiled),
            None => Arc::new(function.compile(&self.user_types)),
        };
        Some(function)
    }

    fn aggregate_of(
        &self,
        row: &SchemaRow,
        functions: &BTreeMap<FunctionKey, Arc<FunctionMetadata>>,
    ) -> Option<AggregateMetadata> {
        let cell = |name: &str| row.content().get(name).copied();
        let arguments = self.types_of(row)?;
        let state_type = self.type_of(&read_text(cell("state_type")?)?)?;
        let state_types = type_texts(std::iter::once(&state_type).chain(&arguments));
        let state_function = functions.get(&(read_text(cell("state_func")?)?, state_types))?;
        let final_function = match cell("final_func") {
            Some(name) => Some(functions.get(&(read_text(name)?, type_texts([&state_type])))?),
            None => None,
        };
        let initial = match cell("initcond") {
            Some(text) => Some(Bytes::from(parse_literal(&state_type, &read_text(text)?)?)),
            None => None,
        };
        Some(AggregateMetadata {
            keyspace: self.name.clone(),
            name: read_text(row.clustering.first()?)?,
            arguments,
            returns: self.type_of(&read_text(cell("return_type")?)?)?,
            state_function: Arc::clone(state_function),
            state_type,
            final_function: final_function.cloned(),
            initial,
        })
    }

    fn types_of(&self, row: &SchemaRow) -> Option<Vec<CqlType>> {
        read_text_list(row.clustering.get(1)?)?.iter().map(|text| self.type_of(text)).collect()
    }

    fn type_of(&self, text: &str) -> Option<CqlType> {
        type_text::parse(text, &|name| self.user_types.get(name).cloned())
    }
}

/// The value of a literal as a row holds it.
fn parse_literal(ty: &CqlType, text: &str) -> Option<Vec<u8>> {
    parse_value(ty, &mut text.trim())
}

/// Reads one value from the beginning of a text.
fn parse_value(ty: &CqlType, rest: &mut &str) -> Option<Vec<u8>> {
    use types::collection;
    *rest = rest.trim_start();
    match ty {
        CqlType::List { element, .. } => {
            let items = parse_parts(rest, '[', ']', |rest| parse_value(element, rest))?;
            Some(collection::build_list(&items))
        }
        CqlType::Set { element, .. } => {
            let items = parse_parts(rest, '{', '}', |rest| parse_value(element, rest))?;
            Some(collection::build_set(element, items))
        }
        CqlType::Map { key, value, .. } => {
            let entries = parse_parts(rest, '{', '}', |rest| {
                let key = parse_value(key, rest)?;
                *rest = rest.trim_start().strip_prefix(':')?;
                Some((key, parse_value(value, rest)?))
            })?;
            Some(collection::build_map(key, entries))
        }
        CqlType::Vector { element, dimension } => {
            let items = parse_parts(rest, '[', ']', |rest| parse_value(element, rest))?;
            (items.len() == *dimension as usize).then(|| collection::build_vector(element, &items))
        }
        CqlType::Tuple(types) => {
            let mut types = types.iter();
            let parts = parse_parts(rest, '(', ')', |rest| parse_part(types.next()?, rest))?;
            Some(collection::build_tuple(&parts))
        }
        CqlType::Udt(udt, _) => {
            let mut fields = udt.fields.iter();
            let parts = parse_parts(rest, '{', '}', |rest| {
                // a name in quotes may have colons of its own
                let mut is_quoted = false;
                let colon = rest.find(|sign: char| {
                    is_quoted ^= sign == '"';
                    sign == ':' && !is_quoted
                });
                *rest = rest.get(colon? + 1..)?;
                parse_part(&fields.next()?.1, rest)
            })?;
            Some(collection::build_tuple(&parts))
        }
        simple => {
            let text = if let Some(inner) = rest.strip_prefix('\'') {
                // a doubled quote is one quote of the text
                let mut end = 0;
                loop {
                    end += inner.get(end..)?.find('\'')?;
                    if inner.get(end + 1..).is_some_and(|after| after.starts_with('\'')) {
                        end += 2;
                    } else {
                        break;
                    }
                }
                let text = inner[..end].replace("''", "'");
                *rest = &inner[end + 1..];
                text
            } else {
                let end = rest.find([',', ']', '}', ')', ':']).filter(|_| !matches!(simple, CqlType::Inet));
                let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
                *rest = after;
                text.trim().to_owned()
            };
            literal::parse_text(simple, &text).ok()
        }
    }
}

fn parse_part(ty: &CqlType, rest: &mut &str) -> Option<Option<Vec<u8>>> {
    let start = rest.trim_start();
    if let Some(after) = start.strip_prefix("null").or_else(|| start.strip_prefix("NULL")) {
        *rest = after;
        return Some(None);
    }
    parse_value(ty, rest).map(Some)
}

/// Parts between brackets.
fn parse_parts<T>(
    rest: &mut &str,
    open: char,
    close: char,
    mut part: impl FnMut(&mut &str) -> Option<T>,
) -> Option<Vec<T>> {
    *rest = rest.strip_prefix(open)?.trim_start();
    let mut parts = Vec::new();
    while !rest.starts_with(close) {
        parts.push(part(rest)?);
        *rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(after) => *rest = after.trim_start(),
            // a text that ends here would have empty parts without end
            None if !rest.starts_with(close) => return None,
            None => {}
        }
    }
    *rest = rest.strip_prefix(close)?;
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The INITCOND of an aggregate: one that could not be read would lose the aggregate.
    #[test]
    fn literals_come_back_as_they_were() {
        let int = |number: i32| number.to_be_bytes().to_vec();
        let fields = vec![("a: \"b".to_owned(), CqlType::Int), ("c".to_owned(), CqlType::Text)];
        let udt = UserType { keyspace: "ks".to_owned(), name: "u".to_owned(), fields };
        let of_fields = types::collection::build_tuple(&[Some(int(1)), Some(b"x: 'y'}".to_vec())]);
        let vector = CqlType::Vector { element: Arc::new(CqlType::Int), dimension: 2 };
        let of_ints = [int(1), int(2)].concat();
        let list = CqlType::List { element: Arc::new(vector.clone()), frozen: true };
        let of_vectors = types::collection::build_list(&[of_ints.clone(), of_ints.clone()]);
        for (ty, value) in [(CqlType::Udt(Arc::new(udt), false), of_fields), (vector, of_ints), (list, of_vectors)] {
            let text = literal::to_text(&ty, &value);
            assert_eq!(parse_literal(&ty, &text), Some(value), "{text}");
        }
    }

    #[test]
    fn literals_that_are_cut_off_are_none() {
        let text = Arc::new(CqlType::Text);
        let list = CqlType::List { element: Arc::clone(&text), frozen: true };
        let map = CqlType::Map { key: Arc::clone(&text), value: text, frozen: true };
        for (ty, text) in [(&list, "['a'"), (&list, "['a',"), (&list, "["), (&map, "{'a': 'b'"), (&list, "['a' 'b']")] {
            assert_eq!(parse_literal(ty, text), None, "{text}");
        }
    }

    #[test]
    fn the_statement_of_a_function_has_all_of_its_body() {
        let cases = [
            ("return 'x';", "$$return 'x';$$;"),
            ("return \"$\";", "$$return \"$\";$$;"),
            ("return \"$$\" + 'x';", "'return \"$$\" + ''x'';';"),
            ("return 1; //$", "'return 1; //$';"),
        ];
        for (body, shown) in cases {
            let function = FunctionMetadata {
                keyspace: "ks".to_owned(),
                name: "f".to_owned(),
                arguments: Vec::new(),
                returns: CqlType::Text,
                called_on_null: true,
                language: JAVA.to_owned(),
                body: body.to_owned(),
                compiled: Arc::new(Err(String::new())),
            };
            let statement = function.describe();
            assert_eq!(statement.split_once("\n    AS ").map(|(_, body)| body), Some(shown));
        }
    }
}
