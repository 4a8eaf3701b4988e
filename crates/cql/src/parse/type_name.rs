//! Types. `list`, `frozen` and their like are no reserved words: without `<` after them they are
//! names of user types.
//!
//! Must agree with: the rules `comparatorType`, `native_type`, `collection_type`, `tuple_type`,
//! `vector_type`, `userTypeName`, `non_type_ident`.

use super::name::is_name;
use super::{Parser, Result, SyntaxError};
use crate::ast::{Ident, NativeType, QualifiedName, TypeName};
use crate::lexer::{Keyword, Kind, Use};

/// Words kept for types that may come: no user-defined type may have them as a name.
const RESERVED_TYPE_NAMES: [&str; 7] = ["bitstring", "byte", "complex", "date", "enum", "interval", "macaddr"];

impl<'a> Parser<'a> {
    /// A type.
    pub(super) fn type_name(&mut self) -> Result<TypeName<'a>> {
        self.nested(Self::type_name_inside)
    }

    fn type_name_inside(&mut self) -> Result<TypeName<'a>> {
        match self.token.kind {
            Kind::String | Kind::DollarString => Ok(TypeName::Custom(self.string("a type")?)),
            Kind::Keyword(keyword) => match keyword.usage() {
                Use::Type(native) if self.peek() != Kind::Dot => {
                    self.advance()?;
                    Ok(TypeName::Native(native))
                }
                _ if self.peek() == Kind::Lt => self.parametrised(keyword),
                _ => self.user_type_name().map(|name| TypeName::User(Box::new(name))),
            },
            _ => self.user_type_name().map(|name| TypeName::User(Box::new(name))),
        }
    }

    /// `list<…>` and its like; the token after the keyword is `<`.
    fn parametrised(&mut self, keyword: Keyword) -> Result<TypeName<'a>> {
        let parse: fn(&mut Self) -> Result<TypeName<'a>> = match keyword {
            Keyword::List => |parser| Ok(TypeName::List(Box::new(parser.type_name()?))),
            Keyword::Set => |parser| Ok(TypeName::Set(Box::new(parser.type_name()?))),
            Keyword::Map => Self::map_type,
            Keyword::Tuple => |parser| Ok(TypeName::Tuple(parser.comma_separated(Self::type_name)?)),
            Keyword::Vector => Self::vector_type,
            Keyword::Frozen => Self::frozen_type,
            _ => return Err(self.expected("a type")),
        };
        self.advance()?;
        self.advance()?;
        let found = parse(self)?;
        self.expect(Kind::Gt, "'>'")?;
        Ok(found)
    }

    fn map_type(&mut self) -> Result<TypeName<'a>> {
        let key = self.type_name()?;
        self.expect(Kind::Comma, "','")?;
        Ok(TypeName::Map(Box::new(key), Box::new(self.type_name()?)))
    }

    fn vector_type(&mut self) -> Result<TypeName<'a>> {
        let element = self.type_name()?;
        self.expect(Kind::Comma, "','")?;
        if !self.at(Kind::Integer) {
            return Err(self.expected("the number of dimensions"));
        }
        let Ok(dimension) = self.lexer.text(self.token).parse() else {
            return Err(self.expected("a number of dimensions that fits in 32 bits"));
        };
        self.advance()?;
        Ok(TypeName::Vector(Box::new(element), dimension))
    }

    fn frozen_type(&mut self) -> Result<TypeName<'a>> {
        let inner = self.type_name()?;
        if matches!(inner, TypeName::Native(_) | TypeName::Custom(_)) {
            return Err(SyntaxError::plain(format!(
                "frozen<> is only allowed on collections, tuples, and user-defined types (got {inner})"
            )));
        }
        Ok(TypeName::Frozen(Box::new(inner)))
    }

    /// A native type, and nothing else.
    pub(super) fn native_type(&mut self) -> Result<NativeType> {
        if let Kind::Keyword(keyword) = self.token.kind
            && let Use::Type(native) = keyword.usage()
        {
            self.advance()?;
            return Ok(native);
        }
        Err(self.expected("a native type"))
    }

    /// `[keyspace.]type`.
    pub(super) fn user_type_name(&mut self) -> Result<QualifiedName<'a>> {
        let mut keyspace = None;
        if is_name(self.token.kind) && self.peek() == Kind::Dot {
            keyspace = Some(self.name("a keyspace name")?);
            self.advance()?;
        }
        Ok(QualifiedName { keyspace, name: self.unqualified_type_name()? })
    }

    fn unqualified_type_name(&mut self) -> Result<Ident<'a>> {
        let fits = match self.token.kind {
            Kind::Keyword(Keyword::Key) => true,
            Kind::Keyword(keyword) => keyword.usage() == Use::Any,
            kind => is_name(kind),
        };
        if !fits {
            return Err(self.expected("a type"));
        }
        let name = self.name("a type")?;
        if !name.quoted && RESERVED_TYPE_NAMES.contains(&name.as_str()) {
            return Err(SyntaxError::plain(format!("Invalid (reserved) user type name {name}")));
        }
        Ok(name)
    }
}
