//! The default superuser `cassandra`: made where there is no role at all.
//!
//! In a ring a thread asks ten seconds after the node has joined, at once if the node is the ring,
//! and again every ten seconds until the replicas have answered: first whether the role exists, at
//! ONE and then at QUORUM, then whether any other role does. The row is written with timestamp 0,
//! so that every other write to the role is later, its deletion too. Several nodes may write the
//! row, with the same password; a random one is written by one node alone ([`FirstPassword`]).
//! Agrees with `CassandraRoleManager.setupDefaultRole`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use cluster::Node;
use cluster::system_rows::SystemRow;
use cql::CqlError;
use cql::auth::DEFAULT_SUPERUSER;
use env::LocalFutureFactory;
use rows::Mutation;
use tokio::sync::oneshot;
use types::Consistency;

use super::first_password::FirstPassword;
use super::load::KEYSPACE;
use super::passwords::hashed_now;
use super::shared::rows;
use crate::errors;

/// Time before the first look and between two (`cassandra.superuser_setup_delay_ms`): a node should
/// know its peers before it says that nobody has roles.
const DELAY: Duration = Duration::from_secs(10);

/// The thread that makes the default superuser. It ends when this value is dropped.
pub(super) struct Setup {
    _stop: oneshot::Sender<()>,
}

/// Starts the thread. `is_alone`: the ring has no other node, so there is nobody to wait for.
pub(super) fn start(node: &Arc<Node>, password: FirstPassword, is_alone: bool) -> Setup {
    let (stop, stopped) = oneshot::channel::<()>();
    let (env, weak) = (node.env.clone(), Arc::downgrade(node));
    let first_delay = if is_alone { Duration::ZERO } else { DELAY };
    let make: LocalFutureFactory = Box::new(move || {
        Box::pin(async move {
            tokio::select! {
                _ = stopped => {}
                () = run(env, weak, password, first_delay) => {}
            }
        })
    });
    drop(node.env.tasks.spawn_local_worker("auth", make));
    Setup { _stop: stop }
}

/// Looks until the ring has roles, or the node is gone.
async fn run(env: env::Env, node: Weak<Node>, first: FirstPassword, first_delay: Duration) {
    let (mut password, mut delay) = (None, first_delay);
    loop {
        env.sleep(std::mem::replace(&mut delay, DELAY)).await;
        let Some(node) = node.upgrade() else { return };
        match create_if_missing(&node, &first, &mut password).await {
            Ok(()) => return,
            Err(error) => tracing::warn!(
                %error,
                "it is not known yet whether the ring has roles, so '{DEFAULT_SUPERUSER}' is not made; \
                 the next look is in {} s",
                DELAY.as_secs()
            ),
        }
    }
}

/// Makes the default superuser if there is no role at all. `password`: the password of earlier
/// looks, which may have reached some of the replicas; None before the first.
async fn create_if_missing(node: &Node, first: &FirstPassword, password: &mut Option<String>) -> Result<(), CqlError> {
    if has_roles(node).await? {
        if password.is_none() {
            log_kept(first);
        }
        return Ok(());
    }
    let password = password.get_or_insert_with(|| first.take(&node.env)).clone();
    let hash = node.env.blocking("password", {
        let env = node.env.clone();
        move || hashed_now(&env, &password)
    });
    let hash = hash.await.ok().flatten().ok_or_else(|| CqlError::Overloaded("too many jobs wait".to_owned()))?;
    let rows: Vec<_> = default_superuser_row(node, &hash).into_iter().collect();
    let written = node.write(rows, Consistency::Quorum).await.map_err(errors::of_request)?;
    if let Some(acknowledged) = written {
        acknowledged.await.map_err(errors::of_request)?;
    }
    log_created();
    Ok(())
}

async fn has_roles(node: &Node) -> Result<bool, CqlError> {
    let schema = node.schema();
    let Some(table) = schema.table(KEYSPACE, "roles") else { return Ok(true) };
    for level in [Consistency::One, Consistency::Quorum] {
        if !rows(node, table, Some(DEFAULT_SUPERUSER), level).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(!rows(node, table, None, Consistency::Quorum).await?.is_empty())
}

/// The row of the default superuser; None: there is no table for it.
pub(super) fn default_superuser_row(node: &Node, hash: &str) -> Option<Mutation> {
    let schema = node.schema();
    let table = schema.table(KEYSPACE, "roles")?;
    let row = SystemRow::new(table, &[DEFAULT_SUPERUSER.as_bytes()], &[], 0, None)
        .set("is_superuser", Bytes::from_static(&[1]))
        .set("can_login", Bytes::from_static(&[1]))
        .set("salted_hash", Bytes::copy_from_slice(hash.as_bytes()));
    Some(row.finish())
}

pub(super) fn log_created() {
    tracing::info!("Created default superuser role '{DEFAULT_SUPERUSER}'");
}

/// Tells an operator who expects another password that the roles which are there keep theirs.
pub(super) fn log_kept(first: &FirstPassword) {
    if first.is_own() {
        tracing::info!("there are roles already: no first password is set");
    }
}
