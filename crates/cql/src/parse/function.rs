//! `CREATE FUNCTION` and `CREATE AGGREGATE`.
//!
//! Must agree with: the rules `createFunctionStatement`, `createAggregateStatement`.

use super::{Parser, Result};
use crate::ast::{CreateAggregate, CreateFunction, Ident, Statement, TypeName};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    /// From `[OR REPLACE] FUNCTION` or `[OR REPLACE] AGGREGATE` on.
    pub(super) fn create_function_or_aggregate(&mut self) -> Result<Statement<'a>> {
        let or_replace = self.accept_keywords(Keyword::Or, &[Keyword::Replace])?;
        match self.token.kind {
            Kind::Keyword(Keyword::Function) => self.create_function(or_replace).map(Statement::CreateFunction),
            Kind::Keyword(Keyword::Aggregate) => self.create_aggregate(or_replace).map(Statement::CreateAggregate),
            _ => Err(self.expected("FUNCTION or AGGREGATE")),
        }
    }

    fn create_function(&mut self, or_replace: bool) -> Result<CreateFunction<'a>> {
        self.advance()?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.function_name()?;
        let arguments = self.parenthesised_or_empty(Self::function_argument)?;
        let called_on_null_input = self.called_on_null_input()?;
        self.expect_keyword(Keyword::Returns)?;
        let returns = self.type_name()?;
        self.expect_keyword(Keyword::Language)?;
        if !self.at(Kind::Ident) {
            return Err(self.expected("the name of a language"));
        }
        let language = self.take_name()?;
        self.expect_keyword(Keyword::As)?;
        let body = self.string("the body of the function as a string")?;
        Ok(CreateFunction { name, or_replace, if_not_exists, arguments, called_on_null_input, returns, language, body })
    }

    fn function_argument(&mut self) -> Result<(Ident<'a>, TypeName<'a>)> {
        Ok((self.name("the name of an argument")?, self.type_name()?))
    }

    /// `CALLED ON NULL INPUT` or `RETURNS NULL ON NULL INPUT`.
    fn called_on_null_input(&mut self) -> Result<bool> {
        let called = self.accept_keyword(Keyword::Called)?;
        if !called && !self.accept_keywords(Keyword::Returns, &[Keyword::Null])? {
            return Err(self.expected("CALLED ON NULL INPUT or RETURNS NULL ON NULL INPUT"));
        }
        for keyword in [Keyword::On, Keyword::Null, Keyword::Input] {
            self.expect_keyword(keyword)?;
        }
        Ok(called)
    }

    fn create_aggregate(&mut self, or_replace: bool) -> Result<CreateAggregate<'a>> {
        self.advance()?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.function_name()?;
        let arguments = self.parenthesised_or_empty(Self::type_name)?;
        self.expect_keyword(Keyword::Sfunc)?;
        let state_function = self.unqualified_function_name()?;
        self.expect_keyword(Keyword::Stype)?;
        let state_type = self.type_name()?;
        let final_function = match self.accept_keyword(Keyword::Finalfunc)? {
            true => Some(self.unqualified_function_name()?),
            false => None,
        };
        let initial_condition = match self.accept_keyword(Keyword::Initcond)? {
            true => Some(self.term()?),
            false => None,
        };
        Ok(CreateAggregate {
            name,
            or_replace,
            if_not_exists,
            arguments,
            state_function,
            state_type,
            final_function,
            initial_condition,
        })
    }
}
