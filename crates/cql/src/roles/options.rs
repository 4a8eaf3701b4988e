//! The options of CREATE and ALTER ROLE, sorted and checked.
//!
//! Must agree with: `RoleOptions.validate`, `DCPermissions.validate`, `CIDRPermissions.validate`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::ast::RoleOption;
use crate::auth::Roles;
use crate::error::CqlError;

/// The most rounds of hashing (as a power of two) that a hash of the user's own may ask for: at
/// more, one login would keep a thread busy for minutes.
const HASH_ROUNDS_MAX: u32 = 16;

/// The options that a CREATE ROLE or ALTER ROLE gives.
#[derive(Default)]
pub(super) struct Options<'a> {
    pub password: Option<&'a str>,
    pub hashed: Option<&'a str>,
    pub superuser: Option<bool>,
    pub login: Option<bool>,
    custom: bool,
    /// Some and empty: all of them.
    pub datacenters: Option<BTreeSet<&'a str>>,
    /// Some and empty: all of them.
    pub cidrs: Option<BTreeSet<&'a str>>,
}

impl<'a> Options<'a> {
    pub fn of(options: &'a [RoleOption<'a>]) -> Self {
        let mut of = Self::default();
        for option in options {
            match option {
                RoleOption::Password(password) => of.password = Some(password),
                RoleOption::HashedPassword(hash) => of.hashed = Some(hash),
                RoleOption::Options(_) => of.custom = true,
                RoleOption::Superuser(superuser) => of.superuser = Some(*superuser),
                RoleOption::Login(login) => of.login = Some(*login),
                RoleOption::AllDatacenters => of.datacenters = Some(BTreeSet::new()),
                RoleOption::Datacenters(names) => {
                    of.datacenters.get_or_insert_default().extend(names.iter().map(Cow::as_ref))
                }
                RoleOption::AllCidrs => of.cidrs = Some(BTreeSet::new()),
                RoleOption::Cidrs(names) => of.cidrs.get_or_insert_default().extend(names.iter().map(Cow::as_ref)),
            }
        }
        of
    }

    /// Nothing of the role itself is said; where it may be used from may be.
    pub fn is_empty(&self) -> bool {
        self.password.is_none()
            && self.hashed.is_none()
            && self.superuser.is_none()
            && self.login.is_none()
            && !self.custom
    }

    /// Refuses options that the configured authenticator or authorizer does not have.
    pub fn validate(&self, roles: &Roles) -> Result<(), CqlError> {
        let supports = |option: &str, given: bool| match given {
            true => Err(CqlError::invalid(format!(
                "org.apache.cassandra.auth.CassandraRoleManager doesn't support {option}"
            ))),
            false => Ok(()),
        };
        supports("OPTIONS", self.custom)?;
        if !roles.settings.authenticates {
            supports("PASSWORD", self.password.is_some())?;
            supports("HASHED_PASSWORD", self.hashed.is_some())?;
        }
        if let Some(hash) = self.hashed {
            check_hash(hash)?;
        }
        Ok(())
    }

    /// Datacenters and CIDR groups that there are.
    pub fn validate_origins(&self, roles: &Roles, data_centers: &BTreeMap<String, usize>) -> Result<(), CqlError> {
        if let Some(names) = &self.datacenters
            && names.iter().any(|name| !data_centers.contains_key(*name))
        {
            return Err(CqlError::invalid(format!(
                "Invalid value(s) for DATACENTERS '[{}]',All values must be valid datacenters",
                listed(names.iter().copied())
            )));
        }
        if let Some(names) = &self.cidrs
            && names.iter().any(|name| !roles.cidr_groups.contains(*name))
        {
            return Err(CqlError::invalid(format!(
                "Invalid CIDR group(s): [{}]. Available CIDR Groups are: [{}]",
                listed(names.iter().copied()),
                listed(roles.cidr_groups.iter().map(String::as_str))
            )));
        }
        Ok(())
    }
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The rounds of a hash that logins are checked against: `$2a$10$` and 22 characters of salt at
/// least.
fn rounds(hash: &str) -> Option<u32> {
    let rest = hash.strip_prefix("$2a$")?;
    let (rounds, salt) = rest.split_once('$')?;
    let is_salt = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'/';
    let has_salt = salt.len() >= 22 && salt.bytes().take(22).all(is_salt);
    let rounds: u32 = rounds.parse().ok().filter(|_| rounds.len() == 2)?;
    (has_salt && (4..=31).contains(&rounds)).then_some(rounds)
}

fn check_hash(hash: &str) -> Result<(), CqlError> {
    match rounds(hash) {
        // jBCrypt reads them and writes none
        None if hash.starts_with("$2$") => {
            Err(CqlError::invalid("Hashed passwords of the form $2$ are not supported; those of the form $2a$ are"))
        }
        None => Err(CqlError::invalid("Invalid hashed password value. Please use jBcrypt.")),
        Some(rounds) if rounds > HASH_ROUNDS_MAX => Err(CqlError::invalid(format!(
            "A hashed password of 2^{rounds} rounds would take too long to check; at most 2^{HASH_ROUNDS_MAX} are accepted"
        ))),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_logins_are_checked_against() {
        let hash = "$2a$10$MwWulXFIn83A4cSgkx7TDu0YD1ohlAGL1KvmbLGZyQWNEGOTvppW6";
        assert_eq!(rounds(hash), Some(10));
        for broken in [
            "",
            "x",
            "$2b$10$MwWulXFIn83A4cSgkx7TDu",
            "$2a$3$MwWulXFIn83A4cSgkx7TDu",
            "$2a$03$MwWulXFIn83A4cSgkx7TDu",
            "$2a$10$short",
        ] {
            assert_eq!(rounds(broken), None, "{broken}");
        }
        // no login would fit it
        let refused = check_hash(&hash.replace("$2a$", "$2$")).expect_err("an old form").to_string();
        assert!(refused.contains("$2$ are not supported"), "{refused}");
        assert!(check_hash(&hash.replace("$10$", "$31$")).is_err_and(|error| error.to_string().contains("too long")));
    }
}
