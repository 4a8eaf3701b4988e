//! Roles, their permissions, and the checks before a statement is executed.
//!
//! [`Roles`] is a snapshot of the tables of `system_auth`, made anew after each write to them; of
//! it [`Access`] is what one user may do, his inherited roles merged. A check is decided from an
//! `Access`: no table is read for it. Where nobody has to log in there is no `Access`, and all that
//! is left of a check is looking whether there is one.
//!
//! Where the snapshot comes from and how passwords are hashed is the server's matter
//! ([`crate::Coordinator`]).
//! Must agree with: `org.apache.cassandra.auth` and the checks of
//! `org.apache.cassandra.service.ClientState`.

mod access;
mod named_resource;
mod permission;
mod resource;
mod roles;

pub use access::Access;
pub(crate) use access::{check_changeable, exists};
pub(crate) use named_resource::{applicable, check_applicable, permission_set, resource};
pub use permission::PermissionSet;
pub use resource::Resource;
pub use roles::{AuthSettings, DEFAULT_SUPERUSER, Role, Roles, RolesOf};
