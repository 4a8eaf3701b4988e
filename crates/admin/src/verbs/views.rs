//! Materialized views: how far their builds are.

use serde::{Deserialize, Serialize};

/// Asks which nodes have built a view.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GetViewBuild {
    /// Keyspace.
    pub keyspace: String,
    /// The view.
    pub view: String,
    /// Whether addresses are followed by their storage ports.
    #[serde(default)]
    pub with_port: bool,
}

/// The state of a node's build of a view, as the node has told it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ViewBuildInfo {
    /// The node's address.
    pub host: String,
    /// `STARTED`, `SUCCESS`, or `UNKNOWN`, where it has told nothing.
    pub status: String,
}
