//! `DESCRIBE`. Few of the words after it are reserved, so that most of them may also be the name of
//! a table: what follows the word decides.
//!
//! Must agree with: the rule `describeStatement`.

use super::{Parser, Result};
use crate::ast::{Describe, DescribeTarget};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    pub(super) fn describe(&mut self) -> Result<Describe<'a>> {
        self.advance()?;
        let target = self.described()?;
        let with_internals = self.accept_keywords(Keyword::With, &[Keyword::Internals])?;
        Ok(Describe { target, with_internals })
    }

    fn described(&mut self) -> Result<DescribeTarget<'a>> {
        let Kind::Keyword(keyword) = self.token.kind else {
            return self.described_by_name();
        };
        let next = self.peek();
        // These are no reserved words: alone, or before a point, they are names.
        let stands_alone = matches!(next, Kind::End | Kind::Semicolon | Kind::Dot | Kind::Keyword(Keyword::With));
        let target = match keyword {
            Keyword::Cluster => DescribeTarget::Cluster,
            Keyword::Keyspaces => DescribeTarget::Keyspaces,
            Keyword::Tables => DescribeTarget::Tables,
            Keyword::Types => DescribeTarget::Types,
            Keyword::Functions => DescribeTarget::Functions,
            Keyword::Aggregates => DescribeTarget::Aggregates,
            Keyword::Schema => DescribeTarget::Schema { full: false },
            Keyword::Full => return self.full_schema(),
            Keyword::Keyspace => return self.described_keyspace(false),
            Keyword::Only if next == Kind::Keyword(Keyword::Keyspace) => {
                self.advance()?;
                return self.described_keyspace(true);
            }
            Keyword::Table | Keyword::Index => return self.described_with_name(keyword),
            Keyword::Materialized => {
                self.advance()?;
                if !self.at_keyword(Keyword::View) {
                    return Err(self.expected("VIEW"));
                }
                return self.described_with_name(Keyword::View);
            }
            Keyword::TypeWord | Keyword::Function | Keyword::Aggregate if !stands_alone => {
                return self.described_with_name(keyword);
            }
            _ => return self.described_by_name(),
        };
        self.advance()?;
        Ok(target)
    }

    fn full_schema(&mut self) -> Result<DescribeTarget<'a>> {
        self.advance()?;
        self.expect_keyword(Keyword::Schema)?;
        Ok(DescribeTarget::Schema { full: true })
    }

    fn described_keyspace(&mut self, only: bool) -> Result<DescribeTarget<'a>> {
        self.advance()?;
        let ends = matches!(self.token.kind, Kind::End | Kind::Semicolon | Kind::Keyword(Keyword::With));
        let name = if ends { None } else { Some(self.keyspace_name()?) };
        Ok(DescribeTarget::Keyspace { name, only })
    }

    /// A keyword for a kind of thing, then the name of one.
    fn described_with_name(&mut self, keyword: Keyword) -> Result<DescribeTarget<'a>> {
        self.advance()?;
        Ok(match keyword {
            Keyword::Table => DescribeTarget::Table(self.table_name()?),
            Keyword::Index => DescribeTarget::Index(self.table_name()?),
            Keyword::View => DescribeTarget::View(self.table_name()?),
            Keyword::TypeWord => DescribeTarget::Type(self.user_type_name()?),
            Keyword::Function => DescribeTarget::Function(self.function_name()?),
            _ => DescribeTarget::Aggregate(self.function_name()?),
        })
    }

    fn described_by_name(&mut self) -> Result<DescribeTarget<'a>> {
        self.table_name().map(DescribeTarget::Any)
    }
}
