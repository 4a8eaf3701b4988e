//! cassandra-topology.properties while the node runs: read again when it changes.
//!
//! Agrees with `org.apache.cassandra.locator.PropertyFileSnitch`, which looks every five seconds. A
//! file that cannot be read, names no place for this node, or moves a node that is up is told of
//! once and changes nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use cluster::Node;
use config::{Location, Snitch};
use env::{Env, Next, Wake};

use crate::joining::places;

/// Time between two looks at the file.
const PERIOD: Duration = Duration::from_secs(5);

/// Longest file that is read.
const SIZE_MAX: u64 = 16 << 20;

/// Starts to follow the file. Ends with the node, or when the [`Wake`] is dropped.
pub(crate) fn follow(node: &Arc<Node>, path: PathBuf) -> Wake {
    let weak: Weak<Node> = Arc::downgrade(node);
    let mut file = TopologyFile::new(&node.env, path);
    let step = move || {
        let Some(node) = weak.upgrade() else { return Next::Done };
        match file.look(&node) {
            None => {}
            Some(Ok(())) => tracing::info!(file = %file.path.display(), "the places of nodes are read again"),
            Some(Err(error)) => {
                tracing::error!(file = %file.path.display(), error, "the places of nodes stay as they are");
            }
        }
        Next::After(PERIOD)
    };
    let wake = node.env.tasks.background("topology", Box::new(step));
    wake.wake();
    wake
}

/// The file, and its text at the last look.
struct TopologyFile {
    path: PathBuf,
    seen: Result<String, String>,
}

impl TopologyFile {
    fn new(env: &Env, path: PathBuf) -> Self {
        let seen = text(env, &path);
        Self { path, seen }
    }

    /// Reads the file. None: it has not changed. Some: whether the node has taken it over.
    fn look(&mut self, node: &Node) -> Option<Result<(), String>> {
        let now = text(&node.env, &self.path);
        if now == self.seen {
            return None;
        }
        let taken = now.as_deref().map_err(String::clone).and_then(|text| reload(node, text));
        self.seen = now;
        Some(taken)
    }
}

fn text(env: &Env, path: &Path) -> Result<String, String> {
    let bytes = env.disk.read_all(path, SIZE_MAX).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())
}

fn reload(node: &Node, text: &str) -> Result<(), String> {
    let location: Location = Snitch::PropertyFile.read(text)?;
    let address = node.identity.broadcast.ip();
    if location.of_local(address).is_none() {
        return Err(format!(
            "the file does not define a location for this node's broadcast address {address}, nor does it provide a default"
        ));
    }
    node.replace_places(places(&location))
}

#[cfg(test)]
mod tests;
