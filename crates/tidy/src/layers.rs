//! The modules of a crate form layers: the modules that a file or folder in `src/` names by
//! `crate::…` must not lead back to it.
//!
//! Only top-level modules count; within one, a family of files may know each other. Tests are left
//! out: they may use any module. Names are found in the text, not by a compiler: `crate::name` and
//! `crate::{name, …}`. `super::` out of a top-level file is not seen.

use std::collections::{BTreeMap, BTreeSet};

use crate::{SourceFile, Tree};

/// For each module those that it names.
type Edges<'t> = BTreeMap<&'t str, BTreeSet<&'t str>>;

/// Modules in circles.
pub fn check(tree: &Tree) -> Vec<String> {
    let mut crates: BTreeMap<&str, Vec<(&str, &SourceFile)>> = BTreeMap::new();
    for file in tree.rust() {
        let Some((name, path)) = file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/")) else {
            continue;
        };
        crates.entry(name).or_default().push((path, file));
    }
    let mut wrong = Vec::new();
    for (name, files) in &crates {
        let circles = circles(&edges(files));
        wrong.extend(circles.iter().map(|circle| {
            format!(
                "crates/{name}/src: {} lead back to themselves: move what both sides need below them, or pass it in",
                circle.join(", ")
            )
        }));
    }
    wrong
}

fn edges<'t>(files: &[(&'t str, &'t SourceFile)]) -> Edges<'t> {
    let modules: BTreeSet<&str> = files.iter().map(|(path, _)| module_of(path)).collect();
    let mut edges: Edges<'t> = BTreeMap::new();
    for (path, file) in files {
        let module = module_of(path);
        let is_root = !path.contains('/') && matches!(module, "lib" | "main");
        if is_root || is_test(path) {
            continue;
        }
        let named = named_modules(&source(&file.text));
        let others = modules.iter().filter(|name| named.contains(**name) && **name != module);
        edges.entry(module).or_default().extend(others);
    }
    edges
}

/// `a` of `a.rs` and of `a/b.rs`.
fn module_of(path: &str) -> &str {
    path.split(['/', '.']).next().unwrap_or(path)
}

fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.ends_with("test.rs") || path.contains("tests/") || path.contains("testing")
}

/// The source of a file before its tests, without comments.
fn source(text: &str) -> String {
    let mut tests = text.match_indices("#[cfg(test)]").map(|(at, _)| at);
    let end = tests.find(|at| opens_module(&text[*at..])).unwrap_or(text.len());
    text[..end].lines().flat_map(|line| [line.split("//").next().unwrap_or_default(), "\n"]).collect()
}

/// `#[cfg(test)]`, perhaps more attributes, `mod name {`.
fn opens_module(text: &str) -> bool {
    let item = text.lines().skip(1).find(|line| !line.trim_start().starts_with("#["));
    item.is_some_and(|item| item.contains("mod ") && item.trim_end().ends_with('{'))
}

/// The names right behind `crate::`, alone or at the first level of braces.
fn named_modules(source: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (at, found) in source.match_indices("crate::") {
        if source[..at].ends_with(|before: char| before == '_' || before.is_alphanumeric()) {
            continue;
        }
        let rest = &source[at + found.len()..];
        match rest.strip_prefix('{') {
            None => named.extend(first_name(rest)),
            Some(group) => named.extend(names_of_group(group)),
        }
    }
    named
}

/// The names that begin the parts of a group, up to its closing brace.
fn names_of_group(group: &str) -> Vec<String> {
    let (mut depth, mut begins, mut names) = (0_u32, true, Vec::new());
    for (at, character) in group.char_indices() {
        match character {
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            '{' => depth += 1,
            ',' if depth == 0 => begins = true,
            other if begins && !other.is_whitespace() => {
                begins = false;
                names.extend(first_name(&group[at..]));
            }
            _ => {}
        }
    }
    names
}

fn first_name(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|c| *c == '_' || c.is_alphanumeric()).collect();
    (!name.is_empty()).then_some(name)
}

/// The sets of modules that lead to each other.
fn circles(edges: &Edges<'_>) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|module| (*module, reached(module, edges))).collect();
    let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
    for (module, reached) in reach.iter().filter(|(module, reached)| reached.contains(*module)) {
        let circle = reached.iter().filter(|other| reach.get(*other).is_some_and(|back| back.contains(module)));
        circles.insert(circle.map(|name| (*name).to_owned()).collect());
    }
    circles.into_iter().collect()
}

/// All modules that a module leads to.
fn reached<'t>(module: &str, edges: &Edges<'t>) -> BTreeSet<&'t str> {
    let of = |module: &str| edges.get(module).into_iter().flatten().copied();
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = of(module).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(of(next));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    fn wrong(files: Vec<SourceFile>) -> Vec<String> {
        check(&Tree { root: ".".into(), files })
    }

    #[test]
    fn circles_are_found_and_tests_left_out() {
        let a = file("crates/x/src/a.rs", "//! crate::c\nuse crate::{\n    b::{self, c},\n    d,\n};\n");
        let below = file("crates/x/src/b/inner.rs", "fn f() { let _ = crate::e::g; } // crate::a\n");
        let up = file("crates/x/src/e.rs", "use crate::a::Type;\n");
        let d = file("crates/x/src/d.rs", "#[cfg(test)]\nfn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n");
        let root = file("crates/x/src/lib.rs", "use crate::a;\n");
        assert_eq!(wrong(vec![a, below, up, d, root]).len(), 1);
        let a = file("crates/x/src/a.rs", "use crate::b;\n");
        let b = file("crates/x/src/b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n");
        let tests = file("crates/x/src/b/tests.rs", "use crate::a;\n");
        assert!(wrong(vec![a, b, tests]).is_empty());
    }

    #[test]
    fn two_circles_are_two_lines() {
        let pair = |one: &str, other: &str| {
            [(one, other), (other, one)]
                .map(|(from, to)| file(&format!("crates/x/src/{from}.rs"), &format!("use crate::{to};\n")))
        };
        let wrong = wrong(pair("a", "b").into_iter().chain(pair("c", "d")).collect());
        assert_eq!(wrong.len(), 2, "{wrong:#?}");
        assert!(wrong[0].contains("a, b") && wrong[1].contains("c, d"));
    }
}
