//! `WITH name = value AND …`.
//!
//! Must agree with: the rules `properties`, `property`, `propertyValue`, the parser's
//! `convertPropertyMap`, and `PropertyDefinitions.addProperty`.

use std::borrow::Cow;
use std::collections::HashSet;

use super::name::is_name;
use super::{Parser, Result, SyntaxError};
use crate::ast::{ClusteringOrder, Literal, Property, PropertyValue, Term};
use crate::lexer::{Keyword, Kind};

/// The names of the properties so far. A statement may have a million of them, and no permission is
/// asked for to parse one, so that a name is not compared with all before.
type Names<'a> = HashSet<Cow<'a, str>>;

/// The properties after `WITH` of tables and views.
#[derive(Default)]
pub(super) struct TableProperties<'a> {
    pub properties: Vec<Property<'a>>,
    pub clustering_order: Vec<ClusteringOrder<'a>>,
    pub compact_storage: bool,
}

impl<'a> Parser<'a> {
    /// `WITH properties`, if it is there.
    pub(super) fn optional_properties(&mut self) -> Result<Vec<Property<'a>>> {
        match self.accept_keyword(Keyword::With)? {
            true => self.properties(),
            false => Ok(Vec::new()),
        }
    }

    /// The properties after `WITH`.
    pub(super) fn properties(&mut self) -> Result<Vec<Property<'a>>> {
        let (mut properties, mut names) = (Vec::new(), Names::new());
        loop {
            properties.push(self.property(&mut names)?);
            if !self.accept_keyword(Keyword::And)? {
                return Ok(properties);
            }
        }
    }

    /// `WITH …` of a table or a view, if it is there.
    pub(super) fn table_properties(&mut self) -> Result<TableProperties<'a>> {
        let (mut found, mut names) = (TableProperties::default(), Names::new());
        if !self.accept_keyword(Keyword::With)? {
            return Ok(found);
        }
        loop {
            match (self.token.kind, self.peek()) {
                (Kind::Keyword(Keyword::Compact), Kind::Keyword(Keyword::Storage)) => {
                    self.advance()?;
                    self.advance()?;
                    found.compact_storage = true;
                }
                (Kind::Keyword(Keyword::Clustering), Kind::Keyword(Keyword::Order)) => {
                    self.advance()?;
                    self.advance()?;
                    self.expect_keyword(Keyword::By)?;
                    found.clustering_order.extend(self.parenthesised(Self::clustering_order)?);
                }
                _ => found.properties.push(self.property(&mut names)?),
            }
            if !self.accept_keyword(Keyword::And)? {
                return Ok(found);
            }
        }
    }

    fn clustering_order(&mut self) -> Result<ClusteringOrder<'a>> {
        let column = self.new_column()?;
        let descending = self.accept_keyword(Keyword::Desc)?;
        if !descending && !self.accept_keyword(Keyword::Asc)? {
            return Err(self.expected("ASC or DESC"));
        }
        Ok(ClusteringOrder { column, descending })
    }

    fn property(&mut self, names: &mut Names<'a>) -> Result<Property<'a>> {
        let name = self.name("a property name")?;
        self.expect(Kind::Eq, "'='")?;
        let value = match self.token.kind {
            Kind::OpenBrace => PropertyValue::Map(self.property_map()?),
            _ => PropertyValue::Simple(self.property_value()?),
        };
        if !names.insert(name.text.clone()) {
            return Err(SyntaxError::plain(format!("Multiple definitions for property '{name}'")));
        }
        Ok(Property { name, value })
    }

    /// A constant or a word that is not reserved.
    fn property_value(&mut self) -> Result<Cow<'a, str>> {
        if let Some(kind) = self.literal_kind() {
            return Ok(self.take_literal(kind)?.text);
        }
        match self.token.kind {
            Kind::Keyword(_) if is_name(self.token.kind) => Ok(self.take_name()?.text),
            _ => Err(self.expected("a property value")),
        }
    }

    /// `{'k': 'v'}` with constants only.
    pub(super) fn property_map(&mut self) -> Result<Vec<(Literal<'a>, Literal<'a>)>> {
        let mut map: Vec<(Literal<'a>, Literal<'a>)> = Vec::new();
        let mut names = Names::new();
        for (key, value) in self.map_literal()? {
            let key = match key {
                Term::Literal(literal) => literal,
                other => {
                    return Err(SyntaxError::plain(format!("Invalid property name: {other}{}", no_bind(&other))));
                }
            };
            let value = match value {
                Term::Literal(literal) => literal,
                other => {
                    return Err(SyntaxError::plain(format!(
                        "Invalid property value: {other} for property: {key}{}",
                        no_bind(&other)
                    )));
                }
            };
            if !names.insert(key.text.clone()) {
                return Err(SyntaxError::plain(format!("Multiple definition for property {}", key.text)));
            }
            map.push((key, value));
        }
        Ok(map)
    }
}

fn no_bind(term: &Term<'_>) -> &'static str {
    match term {
        Term::Bind(_) => " (bind variables are not supported in DDL queries)",
        _ => "",
    }
}
