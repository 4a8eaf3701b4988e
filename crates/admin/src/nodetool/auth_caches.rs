//! `nodetool invalidatecredentialscache`, `invalidatenetworkpermissionscache`,
//! `invalidatepermissionscache`, `invalidaterolescache`, `getauthcacheconfig` and
//! `setauthcacheconfig`.
//!
//! The permissions of a role are kept together: with resources given, all permissions of the role
//! are forgotten. Entries are not read again before they are used, so active updates cannot be
//! switched on.

use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verbs::{AuthCacheChange, AuthCacheKind, GetAuthCache};

/// The caches by Cassandra's names.
const NAMES: [(&str, AuthCacheKind); 4] = [
    ("CredentialsCache", AuthCacheKind::Credentials),
    ("NetworkPermissionsCache", AuthCacheKind::NetworkPermissions),
    ("PermissionsCache", AuthCacheKind::Permissions),
    ("RolesCache", AuthCacheKind::Roles),
];

#[derive(clap::Args)]
pub(crate) struct InvalidateCredentials {
    /// List of roles to invalidate. By default, all roles
    roles: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct InvalidateNetworkPermissions {
    /// List of roles to invalidate. By default, all roles
    roles: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct InvalidateRoles {
    /// List of roles to invalidate. By default, all roles
    roles: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct InvalidatePermissions {
    /// A role for which permissions to specified resources need to be invalidated
    roles: Vec<String>,
    /// Invalidate permissions for 'ALL KEYSPACES'
    #[arg(long)]
    all_keyspaces: bool,
    /// Keyspace to invalidate permissions for
    #[arg(long)]
    keyspace: Option<String>,
    /// Invalidate permissions for 'ALL TABLES'
    #[arg(long, requires = "keyspace")]
    all_tables: bool,
    /// Table to invalidate permissions for (you must specify --keyspace for using this option)
    #[arg(long, requires = "keyspace")]
    table: Option<String>,
    /// Invalidate permissions for 'ALL ROLES'
    #[arg(long)]
    all_roles: bool,
    /// Role to invalidate permissions for
    #[arg(long)]
    role: Option<String>,
    /// Invalidate permissions for 'ALL FUNCTIONS'
    #[arg(long)]
    all_functions: bool,
    /// Keyspace to invalidate permissions for
    #[arg(long)]
    functions_in_keyspace: Option<String>,
    /// Function to invalidate permissions for (you must specify --functions-in-keyspace for using
    /// this option)
    #[arg(long, requires = "functions_in_keyspace")]
    function: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct GetConfig {
    /// Name of Auth cache (required)
    #[arg(long)]
    cache_name: String,
}

#[derive(clap::Args)]
pub(crate) struct SetConfig {
    /// Name of Auth cache (required)
    #[arg(long)]
    cache_name: String,
    /// Validity period in milliseconds
    #[arg(long)]
    validity_period: Option<u64>,
    /// Update interval in milliseconds
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1..))]
    update_interval: Option<i64>,
    /// Max entries
    #[arg(long)]
    max_entries: Option<usize>,
    /// Enable active update (not supported)
    #[arg(long)]
    enable_active_update: bool,
    /// Disable active update
    #[arg(long)]
    disable_active_update: bool,
}

impl InvalidateCredentials {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        invalidate(context, AuthCacheKind::Credentials, self.roles)
    }
}

impl InvalidateNetworkPermissions {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        invalidate(context, AuthCacheKind::NetworkPermissions, self.roles)
    }
}

impl InvalidateRoles {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        invalidate(context, AuthCacheKind::Roles, self.roles)
    }
}

impl InvalidatePermissions {
    /// Whether the arguments name a resource.
    fn names_resource(&self) -> bool {
        let names = [&self.keyspace, &self.role, &self.functions_in_keyspace];
        self.all_keyspaces || self.all_roles || self.all_functions || names.iter().any(|name| name.is_some())
    }

    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        match (self.roles.len(), self.names_resource()) {
            (0, true) => usage("No resource options allowed without a <role> being specified"),
            (1, false) => usage("No resource options specified"),
            (0 | 1, _) => invalidate(context, AuthCacheKind::Permissions, self.roles),
            _ => usage("A single <role> is only supported / you have a typo in the resource options spelling"),
        }
    }
}

/// Each of some roles is forgotten, or, without any, all.
fn invalidate(context: &mut Context<'_>, cache: AuthCacheKind, roles: Vec<String>) -> Outcome {
    if roles.is_empty() {
        return Ok(context.api.ask(&AuthCacheChange::Invalidate(cache, None))?);
    }
    for role in roles {
        context.api.ask(&AuthCacheChange::Invalidate(cache, Some(role)))?;
    }
    Ok(())
}

fn kind(name: &str) -> Result<AuthCacheKind, VerbError> {
    match NAMES.iter().find(|(known, _)| *known == name) {
        Some((_, kind)) => Ok(*kind),
        None => usage(format!("Unknown cache name: {name}")),
    }
}

impl GetConfig {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let info = context.api.ask(&GetAuthCache { cache: kind(&self.cache_name)? })?;
        writeln!(context.out, "Validity Period: {}", info.validity_millis)?;
        writeln!(context.out, "Update Interval: {}", info.update_interval_millis)?;
        writeln!(context.out, "Max Entries: {}", info.entries_max)?;
        Ok(writeln!(context.out, "Active Update: {}", info.updates_actively)?)
    }
}

impl SetConfig {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let (validity_millis, update_interval_millis) = (self.validity_period, self.update_interval);
        let changes = [
            ("Validity Period", validity_millis.map(|millis| millis.to_string())),
            ("Update Interval", update_interval_millis.map(|millis| millis.to_string())),
        ];
        if self.enable_active_update {
            return usage("--enable-active-update: entries are read again when they are used, not before");
        }
        let says_nothing = changes.iter().all(|(_, value)| value.is_none()) && self.max_entries.is_none();
        if says_nothing && !self.disable_active_update {
            return usage("At least one optional parameter need to be passed");
        }
        let (cache, entries_max) = (kind(&self.cache_name)?, self.max_entries);
        context.api.ask(&AuthCacheChange::Set { cache, validity_millis, update_interval_millis, entries_max })?;
        for (what, value) in changes {
            if let Some(value) = value {
                writeln!(context.out, "Changed {what} to {value}")?;
            }
        }
        if let Some(value) = entries_max {
            writeln!(context.out, "Changed Max Entries to {value}")?;
        }
        if self.disable_active_update {
            writeln!(context.out, "Changed Active Update to false")?;
        }
        Ok(())
    }
}
