//! Words that may not stay in the tree, each with its replacement. Banned calls are in
//! `clippy.toml`.

use crate::{SourceFile, Tree};

struct Ban {
    word: &'static str,
    instead: &'static str,
    /// Files whose paths begin with one of these may contain the word.
    except: &'static [&'static str],
}

/// Programs beside the server: they may use files, clocks and sockets as any program does.
const PROGRAMS: [&str; 5] = ["tests/", "bench/", "crates/shell/", "crates/stress/", "crates/tidy/"];

const BANS: [Ban; 8] = [
    Ban { word: "todo!(", instead: "return an error that names the feature", except: &["crates/tidy/"] },
    Ban { word: "unimplemented!(", instead: "return an error that names the feature", except: &["crates/tidy/"] },
    Ban { word: "FIXME", instead: "mend it, or write `TODO: what, and why not now`", except: &["crates/tidy/"] },
    Ban {
        word: "#[ignore",
        instead: "a test runs, or asserts the wrong answer and says so",
        except: &["crates/tidy/"],
    },
    Ban { word: "extern crate", instead: "`use`", except: &["crates/tidy/"] },
    Ban { word: "lazy_static", instead: "std::sync::LazyLock, or pass the value", except: &["crates/tidy/"] },
    Ban {
        word: "allow(clippy::disallowed_",
        instead: "go through `env`; only it, tests and programs beside the server may",
        except: &["crates/env/", "tests/", "bench/", "crates/shell/", "crates/stress/", "crates/tidy/"],
    },
    Ban {
        word: "allow(unsafe_code)",
        instead: "put the block into `env` with its soundness note",
        except: &["crates/env/", "crates/tidy/"],
    },
];

/// Crates whose threads are tested under a scheduler, with what they take from `env::sync` and not
/// from `std::sync`: a lock of the standard library would stop that scheduler for ever.
const INTERLEAVED: [(&str, &[&str]); 2] = [
    ("crates/storage/src/", &["Mutex", "Condvar", "RwLock", "Atomic"]),
    ("crates/sstable/src/", &["Mutex", "Condvar", "RwLock"]),
];

/// Fewest words of a TODO, which says what is missing and why.
const TODO_WORDS_MIN: usize = 4;

/// Finds files with banned words.
pub fn check(tree: &Tree) -> Vec<String> {
    tree.rust().flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<String> {
    let mut wrong = Vec::new();
    let in_tests =
        |line: usize| PROGRAMS.iter().any(|place| file.path.starts_with(place)) || line >= first_test_line(file);
    for (number, line) in file.text.lines().enumerate() {
        for ban in &BANS {
            let excepted = ban.except.iter().any(|place| file.path.starts_with(place));
            let in_test = ban.word.starts_with("allow(clippy") && in_tests(number);
            if line.contains(ban.word) && !excepted && !in_test {
                wrong.push(format!("{}:{}: `{}`: {}", file.path, number + 1, ban.word, ban.instead));
            }
        }
        let of_threads =
            INTERLEAVED.iter().filter(|(place, _)| file.path.starts_with(place)).flat_map(|(_, words)| *words);
        for word in of_threads.filter(|word| line.contains("std::sync") && line.contains(**word) && !in_tests(number)) {
            wrong.push(format!("{}:{}: `std::sync` with {word}: use env::sync", file.path, number + 1));
        }
        if let Some((_, why)) = line.split_once("TODO").filter(|_| !file.path.starts_with("crates/tidy/"))
            && why.split_whitespace().count() < TODO_WORDS_MIN
        {
            wrong.push(format!("{}:{}: a TODO says what and why not now", file.path, number + 1));
        }
    }
    wrong
}

/// The first line of the tests of a file: `#[cfg(test)]`, or 0 in a test file.
fn first_test_line(file: &SourceFile) -> usize {
    if file.path.contains("/tests/")
        || file.path.ends_with("/tests.rs")
        || file.path.contains("/benches/")
        || file.path.contains("/examples/")
    {
        return 0;
    }
    file.text.lines().position(|line| line.trim_start().starts_with("#[cfg(test)]")).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_their_exceptions() {
        let check = |path: &str, text: &str| check_file(&SourceFile { path: path.into(), text: text.into() }).len();
        assert_eq!(
            check(
                "crates/rows/src/a.rs",
                "fn a() { todo!() }\n// TODO\n// TODO: merge pages, the reader cannot seek yet\n"
            ),
            2
        );
        assert_eq!(check("crates/rows/src/a.rs", "#![allow(clippy::disallowed_methods)]\n"), 1);
        assert_eq!(
            check("crates/rows/src/a.rs", "#[cfg(test)]\nmod tests {\n#![allow(clippy::disallowed_methods)]\n"),
            0
        );
        assert_eq!(check("crates/rows/src/a/tests.rs", "#![allow(clippy::disallowed_methods)]\n"), 0);
        assert_eq!(check("crates/storage/src/a.rs", "use std::sync::{Arc, Mutex};\nuse std::sync::Arc;\n"), 1);
        assert_eq!(check("crates/storage/src/a.rs", "#[cfg(test)]\nmod tests {\nuse std::sync::Mutex;\n"), 0);
        assert_eq!(check("crates/sstable/src/a.rs", "use std::sync::atomic::AtomicU64;\n"), 0);
    }
}
