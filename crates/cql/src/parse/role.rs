//! Roles, users and identities.
//!
//! Must agree with: the rules `createRoleStatement`, `createUserStatement`, `alterRoleStatement`,
//! `alterUserStatement`, `roleOption`, `userPassword`, `addIdentityStatement`.

use std::borrow::Cow;

use super::{Parser, Result, SyntaxError};
use crate::ast::{AddIdentity, AlterRole, CreateRole, RoleOption};
use crate::lexer::{Keyword, Kind};

const PASSWORD: &str = "PASSWORD";
const HASHED_PASSWORD: &str = "HASHED_PASSWORD";

impl<'a> Parser<'a> {
    pub(super) fn create_role(&mut self) -> Result<CreateRole<'a>> {
        self.advance()?;
        let if_not_exists = self.if_not_exists()?;
        Ok(CreateRole { name: self.role_name()?, if_not_exists, options: self.role_options()? })
    }

    pub(super) fn alter_role(&mut self) -> Result<AlterRole<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        Ok(AlterRole { name: self.role_name()?, if_exists, options: self.role_options()? })
    }

    pub(super) fn create_user(&mut self) -> Result<CreateRole<'a>> {
        self.advance()?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.user_name()?;
        let mut options = self.user_password()?;
        let superuser = self.user_privilege()?.unwrap_or(false);
        options.extend([RoleOption::Login(true), RoleOption::Superuser(superuser)]);
        Ok(CreateRole { name, if_not_exists, options })
    }

    pub(super) fn alter_user(&mut self) -> Result<AlterRole<'a>> {
        self.advance()?;
        let if_exists = self.if_exists()?;
        let name = self.user_name()?;
        let mut options = self.user_password()?;
        options.extend(self.user_privilege()?.map(RoleOption::Superuser));
        Ok(AlterRole { name, if_exists, options })
    }

    /// `WITH [HASHED] PASSWORD '…'`, if it is there.
    fn user_password(&mut self) -> Result<Vec<RoleOption<'a>>> {
        if !self.accept_keyword(Keyword::With)? {
            return Ok(Vec::new());
        }
        let hashed = self.accept_keyword(Keyword::Hashed)?;
        self.expect_keyword(Keyword::Password)?;
        let password = self.string("a password as a string")?;
        Ok(vec![if hashed { RoleOption::HashedPassword(password) } else { RoleOption::Password(password) }])
    }

    fn user_privilege(&mut self) -> Result<Option<bool>> {
        if self.accept_keyword(Keyword::Superuser)? {
            return Ok(Some(true));
        }
        Ok(self.accept_keyword(Keyword::Nosuperuser)?.then_some(false))
    }

    /// `WITH option AND …`, if it is there.
    fn role_options(&mut self) -> Result<Vec<RoleOption<'a>>> {
        let mut options: Vec<RoleOption<'a>> = Vec::new();
        // each once: five at most, whereas options without a name may be repeated without end
        let mut names: Vec<&'static str> = Vec::new();
        if !self.accept_keyword(Keyword::With)? {
            return Ok(options);
        }
        loop {
            let option = self.role_option()?;
            if let Some(name) = option_name(&option) {
                if names.contains(&name) {
                    return Err(SyntaxError::plain(format!("Multiple definition for property '{name}'")));
                }
                names.push(name);
            }
            options.push(option);
            if names.contains(&PASSWORD) && names.contains(&HASHED_PASSWORD) {
                let message = "Options 'password' and 'hashed password' are mutually exclusive";
                return Err(SyntaxError::plain(message.to_owned()));
            }
            if !self.accept_keyword(Keyword::And)? {
                return Ok(options);
            }
        }
    }

    fn role_option(&mut self) -> Result<RoleOption<'a>> {
        let what = "PASSWORD, HASHED PASSWORD, OPTIONS, SUPERUSER, LOGIN or ACCESS";
        let Kind::Keyword(keyword) = self.token.kind else {
            return Err(self.expected(what));
        };
        if !matches!(
            keyword,
            Keyword::Password
                | Keyword::Hashed
                | Keyword::Options
                | Keyword::Superuser
                | Keyword::Login
                | Keyword::Access
        ) {
            return Err(self.expected(what));
        }
        self.advance()?;
        if keyword == Keyword::Access {
            return self.access_option();
        }
        if keyword == Keyword::Hashed {
            self.expect_keyword(Keyword::Password)?;
        }
        self.expect(Kind::Eq, "'='")?;
        match keyword {
            Keyword::Password => Ok(RoleOption::Password(self.string("a password as a string")?)),
            Keyword::Hashed => Ok(RoleOption::HashedPassword(self.string("a hash as a string")?)),
            Keyword::Options => Ok(RoleOption::Options(self.property_map()?)),
            Keyword::Superuser => Ok(RoleOption::Superuser(self.boolean()?)),
            _ => Ok(RoleOption::Login(self.boolean()?)),
        }
    }

    fn boolean(&mut self) -> Result<bool> {
        if !self.at(Kind::Boolean) {
            return Err(self.expected("true or false"));
        }
        let value = self.lexer.text(self.token).eq_ignore_ascii_case("true");
        self.advance()?;
        Ok(value)
    }

    /// The options after `ACCESS`.
    fn access_option(&mut self) -> Result<RoleOption<'a>> {
        let datacenters = self.accept_keyword(Keyword::To)?;
        if !datacenters {
            self.expect_keyword(Keyword::From)?;
        }
        let all = self.accept_keyword(Keyword::All)?;
        self.expect_keyword(if datacenters { Keyword::Datacenters } else { Keyword::Cidrs })?;
        Ok(match (datacenters, all) {
            (true, true) => RoleOption::AllDatacenters,
            (true, false) => RoleOption::Datacenters(self.string_set()?),
            (false, true) => RoleOption::AllCidrs,
            (false, false) => RoleOption::Cidrs(self.string_set()?),
        })
    }

    fn string_set(&mut self) -> Result<Vec<Cow<'a, str>>> {
        self.expect(Kind::OpenBrace, "'{'")?;
        let strings = self.comma_separated(|parser| parser.string("a string"))?;
        self.expect(Kind::CloseBrace, "',' or '}'")?;
        Ok(strings)
    }

    pub(super) fn add_identity(&mut self) -> Result<AddIdentity<'a>> {
        self.expect_keyword(Keyword::Add)?;
        self.expect_keyword(Keyword::Identity)?;
        let if_not_exists = self.if_not_exists()?;
        let identity = self.identity()?;
        self.expect_keyword(Keyword::To)?;
        self.expect_keyword(Keyword::Role)?;
        Ok(AddIdentity { identity, role: self.identity()?, if_not_exists })
    }
}

/// The option's name in the message when it is given twice; those of access may be repeated.
fn option_name(option: &RoleOption<'_>) -> Option<&'static str> {
    Some(match option {
        RoleOption::Password(_) => PASSWORD,
        RoleOption::HashedPassword(_) => HASHED_PASSWORD,
        RoleOption::Options(_) => "OPTIONS",
        RoleOption::Superuser(_) => "SUPERUSER",
        RoleOption::Login(_) => "LOGIN",
        _ => return None,
    })
}
