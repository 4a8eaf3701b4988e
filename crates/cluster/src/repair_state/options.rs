//! The options that an operator gives to a repair. Agrees with
//! `org.apache.cassandra.repair.messages.RepairOption`, its checks and its text.

use std::collections::BTreeMap;
use std::fmt;

use internode::payload::repair::Preview;
use internode::payload::token_ranges::Tokens;

/// Most tables of a repair that are repaired at a time (`--job-threads`).
pub const JOBS_MAX: usize = 4;

/// Which replicas are validated at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parallelism {
    /// All replicas at once.
    #[default]
    Parallel,
    /// One replica after the other.
    Sequential,
    /// One replica of each data center at a time.
    DataCenterAware,
}

impl Parallelism {
    /// The name as Cassandra prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parallel => "parallel",
            Self::Sequential => "sequential",
            Self::DataCenterAware => "dc_parallel",
        }
    }
}

/// The options of a repair.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RepairOptions {
    /// Which replicas are validated at a time.
    pub parallelism: Parallelism,
    /// Only the ranges of which this node is the first replica are repaired.
    pub is_primary_range: bool,
    /// Only data that was not repaired yet takes part.
    pub is_incremental: bool,
    /// Jobs at a time; 0 counts as 1.
    pub job_threads: usize,
    /// Names of the tables that are repaired; empty: all tables of the keyspace.
    pub tables: Vec<String>,
    /// Only replicas in these data centers take part; empty: those of all.
    pub data_centers: Vec<String>,
    /// Only these replicas, named by address, take part; empty: all.
    pub hosts: Vec<String>,
    /// Whether nothing is streamed, and which data is looked at.
    pub preview: Preview,
    /// The ranges that are repaired; empty: those of this node.
    pub ranges: Vec<Tokens>,
    /// This node only receives.
    pub is_pull: bool,
    /// Replicas that are down are left out.
    pub is_forced: bool,
    /// Data that several replicas have alike is fetched from one of them.
    pub optimises_streams: bool,
    /// A keyspace without other replicas is no error.
    pub ignores_unreplicated: bool,
    /// Statements of Paxos under way are completed first.
    pub repairs_paxos: bool,
    /// Only Paxos is repaired, and no data.
    pub is_paxos_only: bool,
    /// The repair is a tracing session.
    pub is_traced: bool,
}

impl RepairOptions {
    /// Whether the options go together. Err: why not, in Cassandra's words.
    pub fn check(&self, local_data_center: &str) -> Result<(), String> {
        let refuse = |why: &str| Err(why.to_owned());
        let is_local_only = self.data_centers == [local_data_center];
        if self.job_threads > JOBS_MAX {
            return Err(format!("Too many job threads. Max is {JOBS_MAX}"));
        }
        if !self.data_centers.is_empty() && !self.hosts.is_empty() {
            return refuse("Cannot combine -dc and -hosts options.");
        }
        if self.is_primary_range && (!(self.data_centers.is_empty() || is_local_only) || !self.hosts.is_empty()) {
            return refuse("You need to run primary range repair on all nodes in the cluster.");
        }
        if self.is_pull && self.hosts.len() != 2 {
            return refuse(
                "Pull repair can only be performed between two hosts. Please specify two hosts, one of which must be this host.",
            );
        }
        if self.is_pull && self.ranges.is_empty() {
            return refuse(
                "Token ranges must be specified when performing pull repair. Please specify at least one token range which both hosts have in common.",
            );
        }
        if self.ranges.iter().any(|range| range.start == range.end) {
            return refuse("Start and end tokens must be different.");
        }
        Ok(())
    }

    /// Whether the ring has the data centers that are named, and the local one is among them. Err:
    /// why not, in Cassandra's words.
    pub fn check_data_centers(&self, local: &str, known: &BTreeMap<&str, usize>) -> Result<(), String> {
        let named = &self.data_centers;
        if !named.is_empty() && !named.iter().any(|name| name == local) {
            let named = named.join(", ");
            return Err(format!(
                "the local data center must be part of the repair; requested [{named}] but DC is {local}"
            ));
        }
        let unknown: Vec<&str> =
            named.iter().map(String::as_str).filter(|name| known.get(name).is_none_or(|nodes| *nodes == 0)).collect();
        match unknown.is_empty() {
            true => Ok(()),
            false => Err(format!("data center(s) [{}] not found", unknown.join(", "))),
        }
    }

    /// Whether all replicas of the ranges take part.
    pub fn is_global(&self) -> bool {
        self.data_centers.is_empty() && self.hosts.is_empty()
    }

    /// Names and values as `system_distributed.parent_repair_history` keeps them.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        vec![
            ("parallelism", self.parallelism.name().to_owned()),
            ("primaryRange", self.is_primary_range.to_string()),
            ("incremental", self.is_incremental.to_string()),
            ("jobThreads", self.job_threads.max(1).to_string()),
            ("dataCenters", self.data_centers.join(",")),
            ("hosts", self.hosts.join(",")),
            ("sub_range_repair", (!self.ranges.is_empty()).to_string()),
            ("trace", self.is_traced.to_string()),
            ("pullRepair", self.is_pull.to_string()),
            ("forceRepair", self.is_forced.to_string()),
            ("previewKind", self.preview.name().to_owned()),
            ("optimiseStreams", self.optimises_streams.to_string()),
            ("repairPaxos", self.repairs_paxos.to_string()),
            ("paxosOnly", self.is_paxos_only.to_string()),
        ]
    }

    /// The text of the first line that an operator sees.
    pub fn text(&self, ranges: usize) -> impl fmt::Display {
        let list = |list: &[String]| format!("[{}]", list.join(", "));
        format!(
            "repair options (parallelism: {}, primary range: {}, incremental: {}, job threads: {}, ColumnFamilies: {}, \
             dataCenters: {}, hosts: {}, previewKind: {}, # of ranges: {ranges}, pull repair: {}, force repair: {}, \
             optimise streams: {}, ignore unreplicated keyspaces: {}, repairPaxos: {}, paxosOnly: {})",
            self.parallelism.name(),
            self.is_primary_range,
            self.is_incremental,
            self.job_threads.max(1),
            list(&self.tables),
            list(&self.data_centers),
            list(&self.hosts),
            self.preview.name(),
            self.is_pull,
            self.is_forced,
            self.optimises_streams,
            self.ignores_unreplicated,
            self.repairs_paxos,
            self.is_paxos_only,
        )
    }
}

#[cfg(test)]
mod tests {
    use types::Token;

    use super::*;

    #[test]
    fn options_that_do_not_go_together() {
        let range = |start, end| Tokens { start: Token(start), end: Token(end) };
        let some = |name: &str| vec![name.to_owned()];
        let base = RepairOptions::default;
        let cases = [
            (base(), ""),
            (RepairOptions { job_threads: 5, ..base() }, "Too many job threads"),
            (RepairOptions { data_centers: some("a"), hosts: some("b"), ..base() }, "Cannot combine"),
            (RepairOptions { data_centers: some("a"), is_primary_range: true, ..base() }, "You need to run"),
            (RepairOptions { data_centers: some("here"), is_primary_range: true, ..base() }, ""),
            (RepairOptions { is_pull: true, ..base() }, "Pull repair"),
            (RepairOptions { is_pull: true, hosts: vec![String::new(); 2], ..base() }, "Token ranges must"),
            (RepairOptions { ranges: vec![range(1, 1)], ..base() }, "Start and end tokens"),
            (RepairOptions { ranges: vec![range(1, 2)], ..base() }, ""),
        ];
        for (options, expected) in cases {
            let found = options.check("here").err().unwrap_or_default();
            assert_eq!(found.is_empty(), expected.is_empty(), "{options:?}: {found}");
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn data_centers_that_cannot_be_repaired() {
        // the nodes of the last one are joining
        let known = BTreeMap::from([("here", 3), ("there", 3), ("new", 0)]);
        let cases = [
            ("", ""),
            ("here", ""),
            ("there,here", ""),
            ("there", "the local data center must be part of the repair; requested [there] but DC is here"),
            ("Here", "the local data center must be part of the repair; requested [Here] but DC is here"),
            ("here,ther,new", "data center(s) [ther, new] not found"),
        ];
        for (named, expected) in cases {
            let data_centers = named.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            let options = RepairOptions { data_centers, ..RepairOptions::default() };
            let found = options.check_data_centers("here", &known).err().unwrap_or_default();
            assert_eq!(found, expected, "{named}");
        }
    }

    #[test]
    fn the_text_is_cassandras() {
        let options = RepairOptions { repairs_paxos: true, ..RepairOptions::default() };
        assert_eq!(
            options.text(3).to_string(),
            "repair options (parallelism: parallel, primary range: false, incremental: false, job threads: 1, \
             ColumnFamilies: [], dataCenters: [], hosts: [], previewKind: NONE, # of ranges: 3, pull repair: false, \
             force repair: false, optimise streams: false, ignore unreplicated keyspaces: false, repairPaxos: true, \
             paxosOnly: false)"
        );
    }
}
