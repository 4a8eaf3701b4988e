//! Output that equals what Cassandra's own tools printed of the same files.

use crate::fixtures::{self, run};

const VERSIONS: [&str; 1] = ["da"];

/// "expired" depends on when the tool ran.
fn without_expired(line: &str) -> String {
    line.replace("\"expired\":true", "\"expired\":?").replace("\"expired\":false", "\"expired\":?")
}

#[test]
fn dumps_are_equal_line_by_line() {
    let mut lines = 0;
    let mut failures = Vec::new();
    for version in VERSIONS {
        for fixture in fixtures::all(version) {
            let Some(golden) = fixture.text_beside("sstabledump.jsonl.gz") else { continue };
            let ran = run(&["dump", "-l", "-t", fixture.data().to_str().unwrap()]);
            if ran.code != 0 {
                failures.push(format!("{}: {}", fixture.data().display(), ran.err));
                continue;
            }
            let mut found = ran.out.lines();
            for (number, golden) in golden.lines().enumerate() {
                let found = found.next().unwrap_or_default();
                if without_expired(found) != without_expired(golden) {
                    let at = found.bytes().zip(golden.bytes()).take_while(|(a, b)| a == b).count();
                    let around = |text: &str| {
                        let text = &text.as_bytes()[at.saturating_sub(120).min(text.len())..(at + 80).min(text.len())];
                        String::from_utf8_lossy(text).into_owned()
                    };
                    failures.push(format!(
                        "{} line {}:\n  found  {}\n  golden {}",
                        fixture.data().display(),
                        number + 1,
                        around(found),
                        around(golden)
                    ));
                    break;
                }
                lines += 1;
            }
            if found.next().is_some() {
                failures.push(format!("{}: more lines", fixture.data().display()));
            }
        }
    }
    println!("{lines} lines equal");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_fixture_is_dumped() {
    for version in VERSIONS {
        for fixture in fixtures::all(version) {
            for form in ["-l", "-d", "-e", "-t"] {
                let ran = run(&["dump", form, fixture.data().to_str().unwrap()]);
                assert_eq!(ran.code, 0, "{}: {}", fixture.data().display(), ran.err);
            }
        }
    }
}
