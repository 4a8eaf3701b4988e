//! Each dependency has its reason in the workspace manifest; crates take dependencies and lints
//! from there.

use crate::Tree;

/// Finds dependencies without a reason or with a version of their own, and crates without the
/// workspace's lints.
pub fn check(tree: &Tree) -> Vec<String> {
    let mut wrong = reasons(tree.text("Cargo.toml").unwrap_or_default());
    // fuzz/ is a workspace of its own, as cargo-fuzz needs it, so it has no lints and versions to
    // inherit
    let ours = |path: &str| path.ends_with("/Cargo.toml") && !path.starts_with("fuzz/");
    for file in tree.files.iter().filter(|file| ours(&file.path)) {
        if !file.text.contains("[lints]\nworkspace = true") && file.path != "crates/env/Cargo.toml" {
            wrong.push(format!("{}: add `[lints] workspace = true`; only `env` has lints of its own", file.path));
        }
        let sections = file.text.split("\n[").filter(|section| section.contains("dependencies]"));
        for line in sections.flat_map(|section| section.lines().skip(1)) {
            if line.contains('=') && !line.trim_start().starts_with('#') && !line.contains("workspace = true") {
                wrong.push(format!(
                    "{}: `{line}`: declare it in the root manifest with its reason, and use `.workspace = true`",
                    file.path
                ));
            }
        }
    }
    wrong
}

/// Lines under `[workspace.dependencies]` that name an outside crate without a reason.
fn reasons(manifest: &str) -> Vec<String> {
    let section = manifest.lines().skip_while(|line| line.trim() != "[workspace.dependencies]").skip(1);
    let lines = section.take_while(|line| !line.starts_with('['));
    let outside = lines.filter(|line| line.contains('=') && !line.starts_with('#') && !line.contains("path = "));
    let silent = outside.filter(|line| line.split_once('#').is_none_or(|(_, why)| why.trim().is_empty()));
    silent.map(|line| format!("Cargo.toml: `{line}`: add `# why` to its line")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_dependency_is_found() {
        let manifest = "[workspace.dependencies]\nstdx = { path = \"x\" }\nbytes = \"1\" # shared slices\nrand = \"1\"\nx = \"1\" #\n[profile.dev]\na = 1\n";
        assert_eq!(reasons(manifest).len(), 2);
    }
}
