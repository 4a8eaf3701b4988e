//! One test per rule of the tree.

use tidy::{Tree, banned, crates, documents, heads, layers, manifest, prose, size};

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
