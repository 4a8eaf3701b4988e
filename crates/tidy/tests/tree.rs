//! One test per rule of the tree.

use std::process::Command;

use tidy::{Tree, banned, crates, documents, heads, layers, licences, manifest, prose, size};

fn clean(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_file_has_a_head() {
    clean(heads::check(&Tree::read()));
}

#[test]
fn files_are_read_in_one_sitting() {
    clean(size::check(&Tree::read()));
}

#[test]
fn knowledge_flows_one_way() {
    clean(crates::check(&Tree::read()));
}

#[test]
fn modules_of_a_crate_form_layers() {
    clean(layers::check(&Tree::read()));
}

#[test]
fn dependencies_say_why() {
    clean(manifest::check(&Tree::read()));
}

#[test]
fn banned_words_stay_out() {
    clean(banned::check(&Tree::read()));
}

#[test]
fn documents_are_there_and_true() {
    clean(documents::check(&Tree::read()));
}

#[test]
fn comments_are_plain_english() {
    clean(prose::check(&Tree::read()));
}

/// The licences are those that cargo tells of the crates in Cargo.lock.
#[test]
#[allow(clippy::disallowed_methods)] // cargo is asked, and files of the tree are read
fn crates_may_be_used() {
    let root = Tree::read().root;
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect(name);
    clean(licences::sources(&read("Cargo.lock")));
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let told = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(&root)
        .output()
        .expect("cargo is there");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).expect("JSON");
    let packages = told["packages"].as_array().expect("packages");
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let crates: Vec<_> = packages
        .iter()
        .map(|package| (text(&package["name"]).unwrap_or_default(), text(&package["license"])))
        .collect();
    assert!(crates.len() > 200, "{}", crates.len());
    let deny = read("deny.toml");
    clean(licences::licences(&crates, &licences::allowed(&deny)));
}
