//! Knowledge flows one way: which of our crates each crate may use, and which outside crates only
//! `env` may use. Dependencies of tests are free.

use crate::Tree;

/// Each crate with the crates that it may use. `cql`, `protocol`, `cluster` and `admin` do not know
/// each other; `server` introduces them.
const MAY_KNOW: &[(&str, &str)] = &[
    ("stdx", ""),
    ("metrics", ""),
    ("env", "stdx"),
    ("config", ""),
    ("types", "stdx"),
    ("functions", "stdx types"),
    ("schema", "stdx types functions"),
    ("rows", "stdx types schema"),
    ("captures", "types schema"),
    ("segments", "stdx"),
    ("internode", "stdx types schema rows segments"),
    ("gossip", "internode"),
    ("links", "env internode tls"),
    ("membership", "env types internode links gossip"),
    ("protocol", "stdx types segments"),
    ("cql", "stdx types functions schema rows"),
    ("sstable", "stdx env types schema rows"),
    ("stress", ""),
    ("shell", "stdx types segments"),
    ("tools", "stdx env types schema rows cql sstable bulk tls"),
    ("backup", "env schema sstable bulk"),
    ("bulk", "stdx env types schema rows cql sstable ring internode streaming sending links tls"),
    ("storage", "stdx env metrics types schema rows sstable"),
    ("streaming", "stdx types schema rows sstable internode"),
    ("sending", "env schema rows sstable streaming"),
    ("repair", "stdx types schema rows internode"),
    ("hints", "stdx env metrics sstable"),
    ("ring", "types"),
    (
        "cluster",
        "stdx env metrics config types schema rows sstable storage hints ring internode gossip links membership streaming sending repair",
    ),
    ("admin", "stdx env metrics schema tls"),
    ("tls", "env"),
    ("doctor", "env"),
    ("transport", "stdx env segments tls"),
    ("native", "stdx env protocol tls transport"),
    (
        "server",
        "stdx env metrics types schema rows sstable storage hints ring internode links cluster config protocol cql admin tls transport native",
    ),
    ("helenus", "env sstable storage cluster config admin server tools bulk backup doctor stress shell"),
    ("sim", "env config types rows internode ring cluster server"),
    ("tidy", ""),
];

/// Crates that compute over bytes and values only: no socket, clock, thread, random number, file.
const PURE: &[&str] = &[
    "stdx",
    "types",
    "functions",
    "ring",
    "schema",
    "rows",
    "segments",
    "internode",
    "streaming",
    "repair",
    "gossip",
    "protocol",
    "cql",
];
/// Outside crates that reach the machine; `sstable` and the crates above it reach it through `env`.
const OUTSIDE: [&str; 10] =
    ["tokio", "socket2", "rustix", "rand", "rand_chacha", "axum", "hyper", "hyper-util", "ureq", "tracing-subscriber"];
/// Client programs, which use none of our crates.
const OUTSIDE_OF_THE_HOUSE: [&str; 1] = ["stress"];
/// Outside crates that only `env` and client programs may use.
const ENV_ONLY: [&str; 4] = ["socket2", "rustix", "rand", "rand_chacha"];

/// Finds dependencies against the direction, permissions that nothing uses, and crates that the
/// list above lacks.
pub fn check(tree: &Tree) -> Vec<String> {
    let ours: Vec<&str> = MAY_KNOW.iter().map(|(name, _)| *name).collect();
    let mut wrong = Vec::new();
    for (name, manifest) in tree.manifests() {
        let Some((_, may_know)) = MAY_KNOW.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!(
                "{}: a new crate: give it its place in crates/tidy/src/crates.rs and in ARCHITECTURE.md",
                manifest.path
            ));
            continue;
        };
        let used = dependencies(&manifest.text);
        for unused in may_know.split_whitespace().filter(|known| !used.contains(known)) {
            wrong.push(format!("crates/tidy/src/crates.rs: {name} may know {unused}, and does not: take it out"));
        }
        for dependency in used {
            if ours.contains(&dependency) && !may_know.split(' ').any(|known| known == dependency) {
                wrong.push(format!(
                    "{}: {name} must not know {dependency}: pass values, or define a trait in {name}",
                    manifest.path
                ));
            }
            if PURE.contains(&name) && OUTSIDE.contains(&dependency) {
                wrong.push(format!(
                    "{}: {name} is computation only; {dependency} belongs behind `env` or at the edge",
                    manifest.path
                ));
            }
            if name != "env" && !OUTSIDE_OF_THE_HOUSE.contains(&name) && ENV_ONLY.contains(&dependency) {
                wrong.push(format!("{}: {dependency} is held by `env` alone: use its traits", manifest.path));
            }
        }
    }
    wrong
}

/// The names under `[dependencies]`.
pub fn dependencies(manifest: &str) -> Vec<&str> {
    let section = manifest.lines().skip_while(|line| line.trim() != "[dependencies]").skip(1);
    let lines = section.take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceFile;

    #[test]
    fn names_of_the_section_only() {
        let text = "[package]\nname = \"x\"\n[dependencies]\n# why\nstdx.workspace = true\nlz4 = \"1\"\n\n[dev-dependencies]\nrand = \"1\"\n";
        assert_eq!(dependencies(text), ["stdx", "lz4"]);
    }

    #[test]
    fn a_dependency_against_the_direction_is_found() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let files = vec![
            file("crates/types/Cargo.toml", "[dependencies]\nschema.workspace = true\ntokio.workspace = true\n"),
            file("crates/news/Cargo.toml", "[dependencies]\n"),
        ];
        let wrong = check(&Tree { root: ".".into(), files });
        // a new crate, two dependencies against the direction, and a permission that is not used
        assert_eq!(wrong.len(), 4, "{wrong:#?}");
    }
}
