//! The admin API on the running node: the functions of the verbs in
//! [`admin::verbs`].
//!
//! One file a family, each with a function a verb and an `add_to` that names them. Functions
//! translate: requests to [`cluster::operations`] and answers back; figures of connections,
//! requests and memory are the server's own. They are called on threads for calls of operators and
//! may block. Names and figures agree with Cassandra's MBeans (`StorageServiceMBean`,
//! `CompactionManagerMBean`, `org.apache.cassandra.metrics`).

mod auth_caches;
mod caches;
mod compaction;
mod console;
mod gossip;
mod hints;
mod monitoring;
mod movements;
mod node;
mod process;
mod profile;
mod repair;
mod repair_admin;
mod ring;
mod sampling;
mod settings;
mod snapshot_sizes;
mod snapshots;
mod sstables;
mod streams;
mod table_stats;
mod tables;
mod views;

use std::future::Future;
use std::sync::Arc;

use admin::verbs::TableSelection;
use admin::{AdminError, Functions, LocalAdminApi, Result};
use cluster::Node;
use cluster::operations::OperationError;
use cluster::operations::tables::Selection;
use native::ServerHandle;

use crate::memory::MemoryBudget;
use crate::services::Services;

/// Sets a logger's level; without a level, back to that of the start. Belongs to the program, which
/// owns the log.
pub type SetLevel = dyn Fn(&str, &str) -> std::result::Result<(), String> + Send + Sync;

/// The parts of a running node that its operator asks.
pub struct NodeAdmin {
    services: Arc<Services>,
    transport: ServerHandle,
    memory: MemoryBudget,
    set_level: Option<Arc<SetLevel>>,
    /// The path of the file with the token of the admin port; None: there is no such file.
    token_file: Option<String>,
    sampling: sampling::SamplingJobs,
    snapshot_sizes: snapshot_sizes::SnapshotSizes,
}

impl NodeAdmin {
    /// The admin API over the parts of a running node.
    pub fn new(
        services: Arc<Services>,
        transport: ServerHandle,
        memory: MemoryBudget,
        set_level: Option<Arc<SetLevel>>,
        token_file: Option<String>,
    ) -> Self {
        Self {
            services,
            transport,
            memory,
            set_level,
            token_file,
            sampling: sampling::SamplingJobs::default(),
            snapshot_sizes: snapshot_sizes::SnapshotSizes::default(),
        }
    }

    /// Completes the API with the functions of all verbs.
    pub fn into_admin_api(self) -> LocalAdminApi<Self> {
        LocalAdminApi::new(self, functions())
    }

    fn cluster(&self) -> &Node {
        &self.services.node
    }
}

/// The functions of all verbs.
fn functions() -> Functions<NodeAdmin> {
    let mut functions = Functions::default();
    for add_to in [
        auth_caches::add_to,
        caches::add_to,
        compaction::add_to,
        console::add_to,
        gossip::add_to,
        hints::add_to,
        streams::add_to,
        monitoring::add_to,
        movements::add_to,
        node::add_to,
        profile::add_to,
        repair::add_to,
        repair_admin::add_to,
        ring::add_to,
        sampling::add_to,
        settings::add_to,
        snapshots::add_to,
        sstables::add_to,
        tables::add_to,
        views::add_to,
    ] {
        add_to(&mut functions);
    }
    functions
}

/// Waits for an operation on this thread, which may block.
fn wait<T>(operation: impl Future<Output = cluster::operations::Result<T>>) -> Result<T> {
    runtime()?.block_on(operation).map_err(of_operation)
}

/// A runtime to wait in, on this thread.
fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)
}

/// An operation's error as the operator's.
fn of_operation(error: OperationError) -> AdminError {
    match error {
        OperationError::Invalid(message) => AdminError::Invalid(message),
        OperationError::Failed(message) => AdminError::Failed(message),
    }
}

fn failed(error: impl std::fmt::Display) -> AdminError {
    AdminError::Failed(error.to_string())
}

fn invalid<T>(message: impl Into<String>) -> Result<T> {
    Err(AdminError::Invalid(message.into()))
}

fn selection(tables: &TableSelection) -> Selection<'_> {
    Selection { keyspaces: &tables.keyspaces, tables: &tables.tables }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_a_function() {
        let mut names = admin::verbs::NAMES.to_vec();
        names.sort_unstable();
        assert_eq!(functions().names(), names);
    }
}
