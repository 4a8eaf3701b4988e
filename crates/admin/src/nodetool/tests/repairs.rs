//! Verbs that begin repairs, follow them, and show their sessions and their schedule.

use super::*;

#[test]
fn repairs_are_followed_to_their_end() {
    let node = fake();
    let done = "[2026-11-21 09:44:29,282] Starting repair command #1\n\
                [2026-11-21 09:44:29,282] Repair session 7 for range [(1,2]] finished (progress: 57%)\n\
                [2026-11-21 09:44:29,282] finished\n";
    let options = "-full -pr -seq -j 2 -dc a,b -st -5 -et 7 -os -skip-paxos -force -iuk";
    let without_primary = options.replace("-pr ", "");
    assert_eq!(run_on(&node, &format!("repair {without_primary} shop orders")), (0, done.to_owned()));
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    for part in [
        "tables: [\"orders\"], parallelism: Sequential, primary_range: false, incremental: false, job_threads: 2",
        "data_centers: [\"a\", \"b\"], local_data_center: false, hosts: [], ranges: [(-5, 7)], preview: None",
        "pull: false, force: true, optimise_streams: true, ignore_unreplicated: true, repair_paxos: false",
    ] {
        assert!(calls[0].contains(part), "{part}: {}", calls[0]);
    }
    let (code, text) = run_on(&node, "repair --full shop items");
    assert!(code == 2 && text.contains("Repair job has failed with the error message: Repair command #2"), "{text}");
    let (code, text) = run_on(&node, "repair");
    assert!(code == 0 && text.contains("No repair is needed for keyspace 'system_auth'"), "{text}");
    assert!(!text.contains("'system_distributed'") && !text.contains("'system_schema'"), "{text}");
    assert_eq!(run_on(&node, &format!("repair {options} shop")).0, 2, "primary ranges of some data centers");
    for option in ["-tr", "--trace"] {
        run_on(&node, &format!("repair {option} shop"));
        let last = node.node().0.lock().expect("no panic inside").calls.last().cloned().unwrap_or_default();
        assert!(last.contains("trace: true"), "{option}: {last}");
    }
    assert!(calls[0].contains("trace: false"));
    for (option, preview) in [("--preview", "Unrepaired"), ("-prv -full", "All"), ("-vd", "Repaired")] {
        run_on(&node, &format!("repair {option} shop"));
        let last = node.node().0.lock().expect("no panic inside").calls.last().cloned().unwrap_or_default();
        assert!(last.contains(&format!("preview: {preview}")) && last.contains("repair_paxos: false"), "{last}");
    }
}

/// The lines are those of 5.0.8, but for the numbers of `summarize-pending -v`.
#[test]
fn sessions_of_incremental_repairs() {
    let node = fake();
    let shown = |line: &str| {
        let (code, text) = run_on(&node, line);
        assert_eq!(code, 0, "{line}: {text}");
        text
    };
    let head = "id                                   | state    | last activity | coordinator       | participants            \
                | participants_wp                  \n";
    let row = "94640ad0-e76a-11f1-bf3a-19622c1f19f7 | PREPARED | 105 (s)       | /127.30.0.31:7000 | 127.30.0.31,127.30.0.32 \
               | 127.30.0.31:7000,127.30.0.32:7000\n";
    assert_eq!(shown("repair_admin list"), format!("{head}{row}"));
    for (without, with) in [("", "list"), ("-a", "list -a"), ("-st -5 -et 7", "list -st -5 -et 7")] {
        assert_eq!(shown(&format!("repair_admin {without}")), shown(&format!("repair_admin {with}")));
    }
    let all = shown("repair_admin list -a");
    assert!(all.contains("| FINALIZED | 107 (s)       |") && all.lines().count() == 3, "{all}");
    assert_eq!(shown("repair_admin list -st -5 -et 7"), "no sessions\n");
    assert_eq!(
        shown("repair_admin summarize-pending shop items"),
        "keyspace | table | total                               \nshop     | items | 148.93 KiB (3 sstables / 2 sessions)\n"
    );
    let verbose = shown("repair_admin summarize-pending -v");
    assert!(
        verbose.contains("| total                                | pending                             | finalized"),
        "{verbose}"
    );
    assert!(
        verbose.contains("| 49.64 KiB (1 sstables / 1 sessions) | 0 bytes (0 sstables / 0 sessions) | 99.29 KiB"),
        "{verbose}"
    );
    assert_eq!(
        shown("repair_admin summarize-repaired -v"),
        "keyspace | table | min_repaired  | max_repaired  | detail                                                   \n\
         shop     | items | 1795457998177 | 1795457998177 | (-9223372036854775808,-9223372036854775808]=1795457998177\n"
    );
    let part = shown("repair_admin summarize-repaired -st -7 -et 9 -v shop");
    assert!(part.ends_with("| 0            | 1795457998177 | (-7,3]=1795457998177, (3,9]=0\n"), "{part}");
    let cleaned = "keyspace | table | successful sessions | unsuccessful sessions\n\
                   shop     | items | 2                   | 0                    \n";
    assert_eq!(shown("repair_admin cleanup -f"), format!("Cleaning up data from completed sessions...\n{cleaned}"));
    assert!(shown("repair_admin cleanup").contains("\nSome tables couldn't be cleaned up completely\n"));
    assert_eq!(shown("repair_admin cancel --session 7 -f"), "");
    let calls = node.node().0.lock().expect("no panic inside").calls.clone();
    assert_eq!(calls, ["CancelRepair { session: \"7\", force: true }"]);
    for line in ["repair_admin cancel", "repair_admin list -st 5", "repair_admin cleanup nowhere"] {
        assert_eq!(run_on(&node, line).0, 1, "{line}");
    }
}

#[test]
fn the_schedule_of_repairs_is_shown() {
    let node = fake();
    let active = "Active Repairs                      \n94640ad0-e76a-11f1-bf3a-19622c1f19f7\n";
    assert_eq!(run_on(&node, "autorepairstatus -t FULL"), (0, active.to_owned()));
    assert_eq!(run_on(&node, "autorepairstatus -t incremental"), (0, "Active Repairs\nNONE          \n".to_owned()));
    let (code, shown) = run_on(&node, "autorepairstatus -t full --tables");
    let tables = "This node: due\n99th percentile of clients: 1.2 ms without repairs, 2.5 ms now\n\
                  Keyspace Table  Repaired  gc_grace Due Blocked\n\
                  shop     items  2.0 h ago 240.0 h  1   0      \n\
                  shop     orders never     240.0 h  1   0      \n";
    assert_eq!((code, shown), (0, format!("{active}{tables}")));
    for line in ["autorepairstatus", "autorepairstatus -t some"] {
        assert_eq!(run_on(&node, line).0, 1, "{line}");
    }
}
