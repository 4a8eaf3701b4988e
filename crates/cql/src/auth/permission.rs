//! Sets of permissions, and their names.
//!
//! Must agree with: `org.apache.cassandra.auth.Permission`; the order is that of its constants.

use std::fmt;

use crate::ast::Permission;

/// All permissions in their order.
const ALL: [Permission; 10] = [
    Permission::Create,
    Permission::Alter,
    Permission::Drop,
    Permission::Select,
    Permission::Modify,
    Permission::Authorize,
    Permission::Describe,
    Permission::Execute,
    Permission::Unmask,
    Permission::SelectMasked,
];

impl Permission {
    /// Its name in statements and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Alter => "ALTER",
            Self::Drop => "DROP",
            Self::Select => "SELECT",
            Self::Modify => "MODIFY",
            Self::Authorize => "AUTHORIZE",
            Self::Describe => "DESCRIBE",
            Self::Execute => "EXECUTE",
            Self::Unmask => "UNMASK",
            Self::SelectMasked => "SELECT_MASKED",
        }
    }

    /// By its name.
    pub fn from_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|permission| permission.name() == name)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of permissions.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct PermissionSet(u16);

impl PermissionSet {
    /// No permission.
    pub const NONE: Self = Self(0);
    /// Every permission.
    pub const ALL: Self = Self((1 << ALL.len()) - 1);

    /// The set of some permissions.
    pub const fn of(permissions: &[Permission]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < permissions.len() {
            bits |= 1 << permissions[at] as u16;
            at += 1;
        }
        Self(bits)
    }

    /// Whether it has one.
    pub fn contains(self, permission: Permission) -> bool {
        self.0 & 1 << permission as u16 != 0
    }

    /// Whether it has none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The permissions that are in either set.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The permissions that are in both sets.
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The permissions that are in this set and not in `other`.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// In the order of the enumeration.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        ALL.into_iter().filter(move |permission| self.contains(*permission))
    }

    /// Their names, in order, between commas.
    pub fn names(self) -> String {
        self.iter().map(Permission::name).collect::<Vec<_>>().join(", ")
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().fold(0, |bits, permission| bits | 1 << permission as u16))
    }
}

impl fmt::Debug for PermissionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.names())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again_and_bits_are_distinct() {
        for permission in ALL {
            assert_eq!(Permission::from_name(permission.name()), Some(permission));
            assert_eq!(PermissionSet::of(&[permission]).iter().collect::<Vec<_>>(), [permission]);
        }
        assert_eq!(PermissionSet::from_iter(ALL), PermissionSet::ALL);
        let set = PermissionSet::of(&[Permission::Modify, Permission::Create]);
        assert_eq!(set.names(), "CREATE, MODIFY");
        assert_eq!(PermissionSet::ALL.without(set).intersection(set), PermissionSet::NONE);
    }
}
