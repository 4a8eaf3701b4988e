//! `helenus doctor`: looks at the machine on which a node is to run, and says what is in the way,
//! each finding with what to do.
//!
//! A file for each part of the machine; in each, the texts of the kernel are read by plain
//! functions and judged by plain functions, so that tests show each warning with the text of a bad
//! machine. [`Machine`] reads the files, beneath `/` or beneath another directory. Nothing is
//! changed: the one file that is written, to measure the disk, is removed. For a node that only
//! reads none is written.
//!
//! Not here: what the configuration says. The program reads it and gives it as [`PlannedNode`].

mod clock;
mod directory;
mod disk;
mod finding;
mod limits;
mod machine;
mod memory;
mod network;
mod processor;

use std::net::SocketAddr;
use std::path::PathBuf;

use env::Env;

pub use finding::{Finding, Level, as_json, as_text, worst};
use machine::Machine;

/// The node that is to run here.
#[derive(Clone, Debug)]
pub struct PlannedNode {
    /// The directory above `/proc`, `/sys` and `/run`: `/`, or that of a machine's copy.
    pub root: PathBuf,
    /// The data directories, which need not be there yet.
    pub data: Vec<PathBuf>,
    /// The directory of the commit log, which need not be there yet.
    pub commitlog: PathBuf,
    /// `--read-only`: the node writes nothing beneath its directories.
    pub read_only: bool,
    /// Bytes of `--memory`; None: the node takes what the machine has.
    pub memory: Option<u64>,
    /// `--shards`; None: four a core.
    pub shards: Option<usize>,
    /// The ports that the node listens on, each with the name that an operator knows it by.
    pub ports: Vec<(&'static str, SocketAddr)>,
}

/// Looks at everything. Call it within a runtime, because ports are tried.
pub fn examine(env: &Env, node: &PlannedNode) -> Vec<Finding> {
    let machine = Machine { env, root: &node.root };
    let mut found = limits::examine(&machine);
    found.extend(memory::examine(&machine, node.memory));
    found.extend(processor::examine(&machine, node.shards));
    found.extend(clock::examine(&machine));
    found.extend(network::examine(&machine, &node.ports));
    let commitlog = (!node.data.contains(&node.commitlog)).then_some(&node.commitlog);
    for directory in node.data.iter().chain(commitlog) {
        found.extend(directory::examine(&machine, directory));
        found.extend(disk::examine(&machine, directory, node.read_only));
    }
    found
}

#[cfg(test)]
mod tests;
