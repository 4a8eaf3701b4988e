//! Each file of `testdata/parse` is a list of cases: a statement, then a line `=> ` with its tree
//! in short or its error. `UPDATE_EXPECT=1 cargo test -p cql` writes the answers anew.

// Tests may read files and start threads.
#![allow(clippy::disallowed_methods)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::parse;

/// The tree without what is absent: `false`, `None`, empty lists.
fn short(debug: &str) -> String {
    let mut text = debug.to_string();
    for absent in [": false", ": None", ": []", ": Using {}", ": WhereClause {}"] {
        while let Some(at) = find_value(&text, absent) {
            let name = text[..at].rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |p| p + 1);
            let end = at + absent.len();
            let (from, to) = match (text[end..].starts_with(", "), text[..name].ends_with(", ")) {
                (true, _) => (name, end + 2),
                (false, true) => (name - 2, end),
                (false, false) => (name, end),
            };
            text.replace_range(from..to, "");
        }
        text = text.replace("{  }", "{}").replace("{ }", "{}");
    }
    // `Select(Select { … })` says it twice.
    let (outer, rest) = text.split_once('(').unwrap_or((&text, ""));
    let inner = rest.strip_suffix(')').unwrap_or(rest);
    match inner.strip_prefix(outer) {
        Some(fields) if fields.starts_with(" {") => format!("{outer}{fields}"),
        _ => text,
    }
}

/// Where the pattern stands as a whole value.
fn find_value(text: &str, pattern: &str) -> Option<usize> {
    text.match_indices(pattern).map(|(at, _)| at).find(|at| {
        let rest = &text[at + pattern.len()..];
        rest.starts_with(',') || rest.starts_with(" }")
    })
}

fn answer(statement: &str) -> String {
    match parse(statement) {
        Ok(parsed) => short(&format!("{:?}", parsed.statement)),
        Err(error) => format!("error: {error}"),
    }
}

/// The file with the right answers in it.
fn answered(file: &str) -> String {
    let mut out = String::new();
    let mut statement = String::new();
    for line in file.lines() {
        if line.starts_with("=> ") {
            writeln!(out, "=> {}", answer(statement.trim_end())).expect("a string takes all");
            statement.clear();
            continue;
        }
        writeln!(out, "{line}").expect("a string takes all");
        if !line.is_empty() && !line.starts_with('#') {
            statement.push_str(line);
            statement.push('\n');
        }
    }
    out
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(testdata(folder)).expect("the folder of cases");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn statements_have_their_trees() {
    for path in files("parse") {
        let file = fs::read_to_string(&path).expect("a file of cases");
        let right = answered(&file);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, right).expect("the answers");
            continue;
        }
        for (is, should) in file.lines().zip(right.lines()) {
            assert_eq!(is, should, "in {}", path.display());
        }
    }
}

/// Every statement of the cases, for the tests that maltreat them.
fn statements() -> Vec<String> {
    let mut statements = Vec::new();
    for path in files("parse") {
        let file = fs::read_to_string(&path).expect("a file of cases");
        let mut statement = String::new();
        for line in file.lines().filter(|line| !line.starts_with('#')) {
            if line.starts_with("=> ") {
                statements.push(std::mem::take(&mut statement));
            } else {
                statement.push_str(line);
                statement.push('\n');
            }
        }
    }
    statements
}

/// A small generator: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

/// Cut, doubled, mixed and peppered statements give an answer, whatever it is.
#[test]
fn mutated_statements_do_not_panic() {
    let statements = statements();
    assert!(statements.len() > 300, "{}", statements.len());
    let pepper: Vec<char> = "()[]{}<>=!+-*/%.,;:?'\"$\0 \nxPe19µ😀".chars().collect();
    let mut numbers = Numbers(42);
    for round in 0..40_000 {
        let mut chars: Vec<char> = statements[numbers.below(statements.len())].chars().collect();
        for _ in 0..1 + round % 3 {
            let at = numbers.below(chars.len());
            match numbers.below(5) {
                0 => chars.truncate(at),
                1 => chars.insert(at.min(chars.len()), pepper[numbers.below(pepper.len())]),
                2 if at < chars.len() => {
                    chars.remove(at);
                }
                3 if at < chars.len() => chars[at] = pepper[numbers.below(pepper.len())],
                _ => {
                    let other: Vec<char> = statements[numbers.below(statements.len())].chars().collect();
                    chars.truncate(at);
                    chars.extend(&other[numbers.below(other.len())..]);
                }
            }
        }
        let text: String = chars.into_iter().collect();
        if let Err(error) = parse(&text) {
            assert!(!error.message().is_empty());
        }
    }
}

/// Terms within terms, and long chains, are refused before the stack ends.
#[test]
fn deep_statements_are_refused() {
    let many = 100_000;
    let cases = [
        format!("SELECT {} FROM t", "(".repeat(many)),
        format!("SELECT {}a FROM t", "-".repeat(many).replace('-', "- ")),
        format!("SELECT a{} FROM t", " + a".repeat(many)),
        format!("SELECT a{} FROM t", ".a".repeat(many)),
        format!("SELECT a{} FROM t", "[1]".repeat(many)),
        format!("SELECT {} FROM t", "f(".repeat(many)),
        format!("SELECT {} FROM t", "[".repeat(many)),
        format!("SELECT {} FROM t", "{".repeat(many)),
        format!("SELECT {} FROM t", "(int)".repeat(many)),
        format!("SELECT {} FROM t", "CAST(".repeat(many)),
        format!("SELECT a FROM t WHERE {}", "(".repeat(many)),
        format!("SELECT a FROM t WHERE a = {}", "(".repeat(many)),
        format!("SELECT a FROM t WHERE a = {}", "[".repeat(many)),
        format!("SELECT a FROM t WHERE a = {}", "{".repeat(many)),
        format!("SELECT a FROM t WHERE a = {}", "{1:".repeat(many)),
        format!("SELECT a FROM t WHERE a = {}", "{a:".repeat(many)),
        format!("SELECT a FROM t WHERE a = {}", "(int)".repeat(many)),
        format!("SELECT a FROM t WHERE a = {}", "f(".repeat(many)),
        format!("SELECT a FROM t WHERE a = {}", "CAST(".repeat(many)),
        format!("SELECT a FROM t WHERE a = 1{}", " + 1".repeat(many)),
        format!("SELECT a FROM t WHERE (a) IN ({}", "(".repeat(many)),
        format!("CREATE TABLE t (a {}", "frozen<".repeat(many)),
        format!("CREATE TABLE t (a {}", "map<int, ".repeat(many)),
    ];
    for case in cases {
        let error = parse(&case).expect_err("too deep").to_string();
        assert!(error.contains("more than"), "{error}");
    }
    let binds = format!("SELECT a FROM t WHERE a IN ({}?)", "?, ".repeat(65535));
    assert!(parse(&binds).expect_err("too many").to_string().contains("more than 65535 bind markers"));
    let binds = format!("SELECT a FROM t WHERE a IN ({}?)", "?, ".repeat(65534));
    assert_eq!(parse(&binds).expect("just enough").bind_markers.len(), 65535);
}

/// The deepest tree that is allowed can be built, printed and dropped on a small stack.
#[test]
fn the_deepest_tree_fits_a_small_stack() {
    let sum = " + 1".repeat(super::LINKS_MAX as usize);
    let open = "(".repeat(super::NESTING_MAX as usize - 1);
    let close = ")".repeat(super::NESTING_MAX as usize - 1);
    let text = format!("SELECT a FROM t WHERE a = {open}1{close}{sum}");
    let work = move || format!("{}", parse(&text).is_ok());
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(work).expect("a thread");
    assert_eq!(thread.join().expect("no overflow"), "true");
}

/// Scripts as Cassandra's own tools print them parse, statement by statement.
#[test]
fn scripts_parse() {
    for path in files("scripts") {
        let script = fs::read_to_string(&path).expect("a script");
        for statement in script.split(";\n").map(str::trim).filter(|text| !text.is_empty()) {
            if statement.lines().all(|line| line.starts_with("--")) {
                continue;
            }
            if let Err(error) = parse(statement) {
                panic!("{}: {error}\n{statement}", path.display());
            }
        }
    }
}

/// The names of result columns, as Cassandra gives them.
#[test]
fn names_of_selected_things() {
    let cases = [
        ("count(*)", "count"),
        ("COUNT(1)", "count"),
        ("count(v)", "system.count(v)"),
        ("writetime(V)", "writetime(v)"),
        ("maxwritetime(c['a'])", "maxwritetime(c['a'])"),
        ("ttl(\"V\")", "ttl(V)"),
        ("cast(a as VARCHAR)", "cast(a as text)"),
        ("min(x)", "system.min(x)"),
        ("ks.f(x, 1)", "ks.f(x, 1)"),
        ("a + b * 2", "a + b * 2"),
        ("(a)", "a"),
        ("(a, b)", "(a, b)"),
        ("[a, b]", "[a, b]"),
        ("{'k': a}", "{'k': a}"),
        ("a.b", "a.b"),
        ("m[?]", "m[?]"),
        ("m['a'..]", "m['a'..]"),
        ("(int)a", "(int)a"),
        ("-a", "-a"),
        ("token(k)", "system.token(k)"),
    ];
    for (text, name) in cases {
        let statement = format!("SELECT {text} FROM t");
        let parsed = parse(&statement).expect(text);
        let crate::ast::Statement::Select(select) = parsed.statement else {
            panic!("{text} is a select");
        };
        assert_eq!(select.selectors[0].selectable.to_string(), name);
    }
}

/// Comparing each name with all before it would take minutes here.
#[test]
fn many_properties_are_parsed_at_once() {
    const COUNT: usize = 60_000;
    let list = |of: &dyn Fn(usize) -> String, between: &str| (0..COUNT).map(of).collect::<Vec<_>>().join(between);
    let map = list(&|at| format!("'k{at}': 1"), ", ");
    let create = "CREATE TABLE t (k int PRIMARY KEY) WITH";
    for statement in [
        format!("{create} {}", list(&|at| format!("p{at} = 1"), " AND ")),
        format!("{create} compaction = {{{map}}}"),
        format!("ALTER KEYSPACE k WITH {}", list(&|at| format!("p{at} = 1"), " AND ")),
        format!("CREATE ROLE r WITH OPTIONS = {{{map}}}"),
        format!("CREATE ROLE r WITH {}", list(&|_| "ACCESS TO ALL DATACENTERS".to_owned(), " AND ")),
    ] {
        parse(&statement).unwrap_or_else(|error| panic!("{statement:.80}: {error}"));
    }
    let twice = format!("{create} compaction = {{{map}, 'k7': 2}}");
    assert!(parse(&twice).expect_err("twice").to_string().contains("Multiple definition for property k7"));
}
