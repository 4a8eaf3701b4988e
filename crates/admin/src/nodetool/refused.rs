//! Verbs of Cassandra 5.0.8 that are refused by name, each with the reason or with what to use, and
//! verbs that differ. docs/nodetool.md is made of both, and of Cassandra's own list of verbs.

/// The reason why a verb of Cassandra is refused; None: it is no verb of Cassandra that we lack.
pub(crate) fn reason(verb: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(name, _)| *name == verb).map(|(_, why)| *why)
}

const NO_CIDR: &str = "there is no CIDR authorizer: a firewall says who may connect from where";
const NO_AUDIT: &str = "there is no audit log: slow statements are in the log, all of them in traces";
const NO_QUERY_LOG: &str =
    "there is no full query log: nodetool profileload samples queries, settraceprobability traces them";
const NO_BACKUP: &str = "use helenus backup create, which copies only SSTables that are new";
const NO_STAGES: &str = "there are no thread pools to size: a worker a core carries out all stages";
const BY_CONFIGURATION: &str = "set it in cassandra.yaml or with --set; SELECT * FROM system_views.settings shows it";

/// Refused verbs in the order of their names, each with the end of the sentence.
const REFUSED: &[(&str, &str)] = &[
    (
        "checktokenmetadata",
        "gossip and the ring are one state, which cannot differ: nodetool gossipinfo and ring show it",
    ),
    ("cidrfilteringstats", NO_CIDR),
    ("clientstats", "SELECT * FROM system_views.clients has the connections"),
    ("datapaths", "data lies beneath the directories that the first line of the log names"),
    ("disableauditlog", NO_AUDIT),
    ("disablebackup", NO_BACKUP),
    ("disablefullquerylog", NO_QUERY_LOG),
    ("disableoldprotocolversions", BY_CONFIGURATION),
    ("dropcidrgroup", NO_CIDR),
    ("enableauditlog", NO_AUDIT),
    ("enablebackup", NO_BACKUP),
    ("enablefullquerylog", NO_QUERY_LOG),
    ("enableoldprotocolversions", BY_CONFIGURATION),
    ("gcstats", "there is no garbage collector"),
    ("getauditlog", NO_AUDIT),
    ("getbatchlogreplaythrottle", BY_CONFIGURATION),
    ("getcidrgroupsofip", NO_CIDR),
    ("getcolumnindexsize", BY_CONFIGURATION),
    ("getconcurrency", NO_STAGES),
    ("getconcurrentviewbuilders", "views are built one after the other"),
    ("getdefaultrf", BY_CONFIGURATION),
    ("getfullquerylog", NO_QUERY_LOG),
    ("getsnapshotthrottle", "a snapshot is not throttled: it links files"),
    ("invalidatecidrpermissionscache", NO_CIDR),
    ("invalidatejmxpermissionscache", "there is no JMX"),
    ("listcidrgroups", NO_CIDR),
    ("rangekeysample", "there is no sample of keys in memory: SSTables have tries"),
    ("refreshsizeestimates", "system.size_estimates is refreshed by itself, every five minutes"),
    ("reloadcidrgroupscache", NO_CIDR),
    ("reloadlocalschema", "the schema in memory follows its tables with each change"),
    ("reloadtriggers", "triggers are Java classes, which are not run"),
    ("replaybatchlog", "the batch log is replayed by itself, every ten seconds"),
    ("resetfullquerylog", NO_QUERY_LOG),
    ("resetlocalschema", "a node fetches the schema of the others by itself as soon as its version differs"),
    ("setbatchlogreplaythrottle", BY_CONFIGURATION),
    ("setcolumnindexsize", BY_CONFIGURATION),
    ("setconcurrency", NO_STAGES),
    ("setconcurrentviewbuilders", "views are built one after the other"),
    ("setdefaultrf", BY_CONFIGURATION),
    ("setsnapshotthrottle", "a snapshot is not throttled: it links files"),
    ("sjk", "there is no virtual machine: nodetool profile shows threads, perf their stacks, helenus.debug names them"),
    ("sstablerepairedset", "the state is set by repairs; it has no verb yet"),
    ("stopdaemon", "send SIGTERM (systemctl stop helenus), which drains too"),
    ("updatecidrgroup", NO_CIDR),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write;
    use std::path::Path;

    use super::*;

    /// Verbs that work and differ, each with the difference. docs/compatibility.md has the reasons.
    const DIFFERS: &[(&str, &str)] = &[
        ("bootstrap", "`resume` fetches all data again where others may have forgotten that the node joins"),
        (
            "cleanup",
            "for `ring_delay` after another node has taken ranges over it waits first: writes of them still come",
        ),
        ("compact", "`--user-defined` with a file that is no SSTable is refused by name"),
        ("compactionstats", "`-V` is refused: SELECT * FROM system_views.sstable_tasks has its columns"),
        (
            "decommission",
            "refused while another node joins, leaves or moves, or with hint files that cannot be read, unless \
             `--force` is given; and, also with `--force`, beside a node of Cassandra while a table is left out because \
             its schema cannot be read, unless the node has `disk_failure_policy: ignore`",
        ),
        ("disablebinary", "clients that registered are told that the node is down"),
        ("garbagecollect", "drops range tombstones only where the partition's deletion covers them"),
        ("getautorepairconfig", "the settings that `auto_repair` has here"),
        ("gettimeout", "`internodeconnect`, `internodeuser` and `internodestreaminguser` are refused"),
        ("gossipinfo", "`-r` looks names up where nodetool runs, not at the node"),
        (
            "import",
            "one transaction for each directory; 3.x files that are repaired or of a level need `-l -r`; `-ri` asks \
             for the index components that Helenus writes; `-c` and `-niv` are without effect: components that do not \
             fit are made again",
        ),
        ("info", "no heap; capacities of the caches that there are, without latencies of misses"),
        ("invalidatecountercache", "there is no counter cache"),
        ("invalidatepermissionscache", "without the options of JMX (`--all-mbeans`, `--mbean`)"),
        (
            "move",
            "refused while another node joins, leaves or moves; and beside a node of Cassandra while a table is left \
             out because its schema cannot be read, unless the node has `disk_failure_policy: ignore`",
        ),
        ("profileload", "up to eight side by side; queries as they were sent"),
        ("proxyhistograms", "of all requests since the start; writes of views are not measured"),
        ("rebuild", "refused on a node that has not joined yet"),
        ("reloadssl", "names the files that cannot be used, and fails"),
        ("relocatesstables", "refused with several data directories; with one there is nothing to do"),
        (
            "removenode",
            "waits for a source of copies that is down, until `force`; refused while another node joins, leaves or moves",
        ),
        ("repair_admin", "`summarize-pending -v` shows in each column what it names"),
        ("scrub", "prints what is lost; `-r` is refused"),
        ("setauthcacheconfig", "`--enable-active-update` is refused"),
        (
            "setautorepairconfig",
            "the settings that `auto_repair` has here, for full repairs; `enabled` works while there is none",
        ),
        ("setcachecapacity", "within what `--memory` leaves; no counter cache"),
        ("setcachekeystosave", "no counter cache"),
        ("setguardrailsconfig", "guardrails that are not honoured are refused; some texts of wrong values differ"),
        ("sethintedhandoffthrottlekb", "shared by all other nodes"),
        (
            "setlogginglevel",
            "components, packages and classes of Cassandra stand for modules; a name that stands for none is refused",
        ),
        ("settimeout", "`internodeconnect`, `internodeuser` and `internodestreaminguser` are refused"),
        ("snapshot", "`--ttl` is refused: snapshots do not expire, `clearsnapshot --older-than` removes old ones"),
        ("tablehistograms", "of all requests since the start"),
        (
            "tablestats",
            "latencies of all requests since the start; `-l` is refused; no figures of storage-attached indexes \
             (`sai_…`)",
        ),
        ("toppartitions", "as `profileload`"),
        (
            "tpstats",
            "MutationStage, ReadStage, CompactionExecutor, MemtableFlushWriter and Native-Transport-Requests alone, \
             of which reads and requests are never active or pending; waits of messages are 0.0",
        ),
        ("upgradesstables", "writes the version that new SSTables have, whatever their format"),
        (
            "verify",
            "names all corrupt SSTables instead of the first; `-d` is without effect, as in Cassandra with \
             `disk_failure_policy: stop`",
        ),
    ];
    /// Verbs of ours that Cassandra does not have.
    const OURS: &[&str] = &["profile", "tombstones"];

    /// The verbs of Cassandra, as its help lists them.
    fn of_cassandra() -> Vec<&'static str> {
        let help = include_str!("../../testdata/nodetool/help.txt");
        let lines = help.lines().filter_map(|line| line.strip_prefix("    ")?.split_whitespace().next());
        lines.filter(|word| word.starts_with(|first: char| first.is_ascii_lowercase())).collect()
    }

    /// The verbs that work, aliases among them.
    fn of_us() -> BTreeSet<String> {
        let mut found = BTreeSet::from(["help".to_owned()]);
        for verb in super::super::command().get_subcommands() {
            found.insert(verb.get_name().to_owned());
            found.extend(verb.get_all_aliases().map(str::to_owned));
        }
        found
    }

    #[test]
    fn each_verb_works_or_is_refused_by_name() {
        let (theirs, ours) = (of_cassandra(), of_us());
        assert_eq!(theirs.len(), 149, "the list of 5.0.8");
        for verb in &theirs {
            assert!(ours.contains(*verb) != reason(verb).is_some(), "{verb}: it works, or it has a reason");
        }
        for (verb, _) in REFUSED.iter().chain(DIFFERS) {
            assert!(theirs.contains(verb), "{verb} is no verb of Cassandra");
        }
        assert!(DIFFERS.iter().all(|(verb, _)| ours.contains(*verb)));
        assert!(OURS.iter().all(|verb| ours.contains(*verb) && !theirs.contains(verb)));
        assert!(REFUSED.is_sorted_by(|a, b| a.0 < b.0) && DIFFERS.is_sorted_by(|a, b| a.0 < b.0));
    }

    fn document() -> String {
        let (theirs, ours) = (of_cassandra(), of_us());
        let count = |wanted: fn(&str) -> bool| theirs.iter().filter(|verb| wanted(verb)).count();
        let refused = count(|verb| reason(verb).is_some());
        let mut text = format!(
            "# nodetool\n\nThe verbs of Cassandra 5.0.8's `nodetool help`: {} of {} work, {} of them with a difference; {refused} are refused by \
             name.\nMade by a test of crate `admin` from Cassandra's own list (`HELENUS_REWRITE=1 cargo test -p admin refused`).\n\
             docs/compatibility.md has the reasons of differences. Ours beside them: `profile`, `tombstones`.\n\n| verb | | |\n|---|---|---|\n",
            theirs.len() - refused,
            theirs.len(),
            DIFFERS.len()
        );
        for verb in theirs {
            let differs = DIFFERS.iter().find(|(name, _)| *name == verb).map(|(_, how)| *how);
            let (word, what) = match (reason(verb), differs) {
                (Some(why), _) => ("refused", why),
                (None, Some(how)) => ("differs", how),
                (None, None) => ("works", ""),
            };
            assert!(word == "refused" || ours.contains(verb));
            // writing to a string does not fail
            let _ = writeln!(text, "| `{verb}` | {word} | {what} |");
        }
        text
    }

    /// With `HELENUS_REWRITE=1` the document is written anew.
    #[test]
    fn the_document_is_true() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/nodetool.md");
        let disk = env::real::env().disk;
        let made = document();
        if std::env::var_os("HELENUS_REWRITE").is_some() {
            disk.replace_file(&path, made.as_bytes()).expect("written");
        }
        let written = disk.read_all(&path, 1 << 20).expect("docs/nodetool.md is there");
        assert_eq!(String::from_utf8(written).expect("text"), made, "write it anew with HELENUS_REWRITE=1");
    }
}
