//! Verbs that show and change what a node does until its next start: throttles, guardrails,
//! timeouts, thresholds, caches, the schedule of repairs.

use super::*;

#[test]
fn throttles_of_streams_are_shown_and_set() {
    let node = fake();
    for (line, shown) in [
        ("getstreamthroughput -d", "Current stream throughput: 201.326592 Mb/s\n"),
        ("getstreamthroughput -m", "Current stream throughput: 24.0 MiB/s\n"),
        ("getstreamthroughput -e", "Current entire SSTable stream throughput: 24.0 MiB/s\n"),
        ("getinterdcstreamthroughput", "Current inter-datacenter stream throughput: 200 Mb/s\n"),
        ("getinterdcstreamthroughput -e", "Current entire SSTable inter-datacenter stream throughput: unlimited\n"),
        ("setstreamthroughput 200", ""),
        ("setinterdcstreamthroughput -m 3", ""),
    ] {
        assert_eq!(run_on(&node, line), (0, shown.to_owned()), "{line}");
    }
    assert_ne!(run_on(&node, "getstreamthroughput").0, 0, "the default is no whole number of megabits");
    assert_ne!(run_on(&node, "setstreamthroughput -e -m 1").0, 0);
    let calls = node.node().0.lock().expect("no panic inside").calls.join("; ");
    assert!(calls.contains("bytes_per_second: 25000000") && calls.contains("bytes_per_second: 3145728"), "{calls}");
}

#[test]
fn guardrails_are_shown_and_set() {
    let node = fake();
    for (line, shown) in [
        ("getguardrailsconfig sai_sstable_indexes_per_query_threshold", "[-1, 32]\n"),
        ("getguardrailsconfig sai_sstable_indexes_per_query_warn_threshold", "32\n"),
        ("getguardrailsconfig sai_string_term_size_threshold", "[8KiB, null]\n"),
        (
            "getguardrailsconfig --expand sai_sstable_indexes_per_query_threshold",
            "sai_sstable_indexes_per_query_fail_threshold -1\nsai_sstable_indexes_per_query_warn_threshold 32\n",
        ),
        ("getguardrailsconfig group_by_enabled", "true\n"),
        ("getguardrailsconfig -c others", "data_disk_usage_max_disk_size null\n"),
        ("setguardrailsconfig sai_sstable_indexes_per_query_threshold -1 12", ""),
        ("setguardrailsconfig table_properties_warned comment,cdc caching", ""),
        ("setguardrailsconfig sai_string_term_size_threshold null 1KiB", ""),
    ] {
        assert_eq!(run_on(&node, line), (0, shown.to_owned()), "{line}");
    }
    let (_, all) = run_on(&node, "getguardrailsconfig");
    let names: Vec<&str> = all.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names.len(), 49, "{all}");
    assert_eq!(
        (names[0], names[17], names[48]),
        ("allow_filtering_enabled", "collection_size_threshold", "data_disk_usage_max_disk_size")
    );
    for (line, why) in [
        ("getguardrailsconfig nothing", "Guardrail nothing not found."),
        (
            "getguardrailsconfig a b",
            "Specify only one guardrail name to get the configuration of or no name to get the configuration of all of \
             them.",
        ),
        ("getguardrailsconfig -c values x", "Do not specify additional arguments when --category/-c is set."),
        ("setguardrailsconfig", "No arguments."),
        (
            "setguardrailsconfig sai_sstable_indexes_per_query_threshold 3",
            "sai_sstable_indexes_per_query_threshold is expecting 2 argument values. Getting 1 instead.",
        ),
        ("setguardrailsconfig nothing 1", "Guardrail nothing not found."),
    ] {
        let (code, told) = run_on(&node, line);
        assert!(code != 0 && told.contains(why), "{line}: {told}");
    }
    let calls = node.node().0.lock().expect("no panic inside").calls.join("; ");
    assert!(calls.contains("(\"sai_sstable_indexes_per_query_warn_threshold\", Some([\"12\"]))"), "{calls}");
    assert!(calls.contains("Some([\"comment\", \"cdc\", \"caching\"])"), "{calls}");
    assert!(calls.contains("(\"sai_string_term_size_fail_threshold\", None)"), "{calls}");
}

#[test]
fn what_is_set_can_be_read() {
    let node = fake();
    assert_eq!(run_on(&node, "settraceprobability 0.25").0, 0);
    assert_eq!(run_on(&node, "gettraceprobability").1, recorded!("gettraceprobability_set"));
    assert_eq!(run_on(&node, "setlogginglevel org.apache.cassandra DEBUG").1, recorded!("setlogginglevel"));
    assert_eq!(run_on(&node, "getlogginglevels").1, recorded!("getlogginglevels_set"));
    assert_eq!(run_on(&node, "setcompactionthroughput 0").0, 0);
    assert_eq!(run_on(&node, "getcompactionthroughput -d").1, "Current compaction throughput: 0.0 MiB/s\n");
    let compactors = "Current concurrent compactors in the system is: \n2\n";
    assert_eq!(run_on(&node, "getconcurrentcompactors").1, compactors);
    assert_eq!(run_on(&node, "setconcurrentcompactors 0").0, EXIT_USAGE);
    assert_eq!(run_on(&node, "settimeout read 100").0, 0);
    assert_eq!(run_on(&node, "snapshot").0, 0);
    assert_eq!(run_on(&node, "drain").0, 0);
    assert_eq!(run_on(&node, "flush shop orders").0, 0);
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    assert_eq!(calls[0], "timeout read 100");
    assert!(calls[1].contains("1795254300000"));
    assert_eq!(calls[2..], ["drain", "flush [\"shop\"] [\"orders\"]"]);
}

#[test]
fn thresholds_and_keys_are_as_in_cassandra() {
    let node = fake();
    let shown = "Current compaction thresholds for shop/orders: \n min = 4,  max = 32\n".to_owned();
    assert_eq!(run_on(&node, "getcompactionthreshold shop orders"), (0, shown));
    assert_eq!(run_on(&node, "setcompactionthreshold shop orders 3 7"), (0, String::new()));
    assert_eq!(run_on(&node, "forcecompact shop orders -1 2"), (0, String::new()));
    assert_eq!(run_on(&node, "cleanup -j 4 shop orders"), (0, String::new()));
    assert_eq!(run_on(&fake(), "getendpoints shop orders -5"), (0, "127.0.0.1\n".to_owned()));
    assert_eq!(run_on(&fake(), "getsstables -l shop orders -5").0, 0);
    for key in ["-5:7", "-2147483648:a", "-abc", "--key"] {
        let asked = fake();
        assert_eq!(run_on(&asked, &format!("getendpoints shop orders {key}")).0, 0, "{key}");
        assert_eq!(run_on(&asked, &format!("getsstables -l -hf shop orders {key}")).0, 0, "{key}");
        assert_eq!(run_on(&asked, "getsstables shop orders -5 -l").0, 0, "options may be the last words");
        let calls = asked.node().0.lock().expect("no panic inside").calls.clone();
        let of_key = [format!("endpoints shop orders {key}"), format!("sstables {key} true")];
        assert_eq!((&calls[..2], calls[2].as_str()), (&of_key[..], "sstables -5 false"));
    }
    let unknown = (1, "ColumnFamilyStore for shop/nope not found.\n".to_owned());
    assert_eq!(run_on(&node, "setcompactionthreshold shop nope 3 7"), unknown);
    for (line, why) in [
        ("getcompactionthreshold shop", "getcompactionthreshold requires ks and cf args"),
        (
            "setcompactionthreshold shop orders 1",
            "setcompactionthreshold requires ks, cf, min, and max threshold args.",
        ),
        ("setcompactionthreshold shop orders 1 4", "Min threshold must be at least 2"),
        ("setcompactionthreshold shop orders 0 5", "Min threshold must be at least 2"),
        ("setcompactionthreshold shop orders 5 4", "Min threshold cannot be greater than max."),
        ("setcompactionthreshold shop orders -5 -4", "Thresholds must be positive integers"),
        ("setcompactionthreshold shop orders a 7", "For input string: \"a\""),
        ("forcecompact shop orders", "forcecompact requires keyspace, table and keys args"),
    ] {
        let (code, text) = run_on(&node, line);
        assert_eq!((code, text.lines().next()), (EXIT_USAGE, Some(format!("nodetool: {why}").as_str())), "{line}");
    }
    assert_eq!(run_on(&node, "setcompactionthreshold shop orders 0 0").0, EXIT_FAILURE);
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    let expected = [
        "thresholds shop orders 3 7",
        "compact [\"shop\"] [\"orders\"] Keys([\"-1\", \"2\"])",
        "cleanup [\"shop\"] [\"orders\"] 4",
    ];
    assert_eq!(calls, expected);
}

#[test]
fn caches_are_changed() {
    let node = fake();
    for verb in ["invalidatekeycache", "invalidaterowcache", "invalidatecountercache", "setcachecapacity 10 2 0"] {
        assert_eq!(run_on(&node, verb), (0, String::new()), "{verb}");
    }
    let told = "there is no counter cache: its value is ignored\n".to_owned();
    assert_eq!(run_on(&node, "setcachekeystosave 100 7 5"), (0, told));
    for verb in ["setcachecapacity", "setcachecapacity 1 2", "setcachecapacity 1 -2 3", "setcachekeystosave 1 2 3 4"] {
        assert_eq!(run_on(&node, verb).0, EXIT_USAGE, "{verb}");
    }
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    let wanted = [
        "caches Invalidate(Keys)",
        "caches Invalidate(Rows)",
        "caches Capacities { keys: 10485760, rows: 2097152 }",
        "caches KeysToSave { keys: 100, rows: 7 }",
    ];
    assert_eq!(calls, wanted);
}

/// The layout of `org.apache.cassandra.service.AutoRepairService.getAutoRepairConfiguration`.
#[test]
fn settings_of_scheduled_repairs_are_shown_and_changed() {
    let node = fake();
    let shown = "repair scheduler configuration:\n\trepair_check_interval: 300s\n\
                 configuration for repair_type: full\n\tenabled: true\n\tparallel_repair_count: 3\n\
                 configuration for repair_type: incremental\n\tenabled: false\n\
                 configuration for repair_type: preview_repaired\n\tenabled: false\n";
    assert_eq!(run_on(&node, "getautorepairconfig"), (0, shown.to_owned()));
    assert_eq!(run_on(&node, "setautorepairconfig -t full parallel_repair_count 5"), (0, String::new()));
    for line in [
        "setautorepairconfig parallel_repair_count 5",
        "setautorepairconfig -t full parallel_repair_count",
        "setautorepairconfig -t incremental enabled true",
        "setautorepairconfig -t colour enabled true",
    ] {
        assert_eq!(run_on(&node, line).0, EXIT_USAGE, "{line}");
    }
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    assert_eq!(calls, ["repair parallel_repair_count 5"]);
}
