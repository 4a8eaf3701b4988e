//! `helenus completions SHELL` and `helenus man DIR`: made of the command line's own description,
//! for packages.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Program;

/// Prints what a shell needs to complete our words, nodetool's verbs among them.
pub fn completions(shell: Shell) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut whole(), "helenus", &mut text);
    // an error means that nobody reads stdout
    let _ = std::io::stdout().lock().write_all(&text);
    ExitCode::SUCCESS
}

/// Writes the pages into a directory, which is made.
pub fn pages(directory: &Path) -> ExitCode {
    let disk = env::real::env().disk;
    let written = disk.create_dir_all(directory).and_then(|()| {
        let mut pages = render(whole())?;
        pages.try_for_each(|(name, text)| disk.replace_file(&directory.join(name), &text))
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("helenus: {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}

/// The command line, with the verbs of nodetool, which has a parser of its own.
fn whole() -> Command {
    let nodetool = admin::nodetool::command().about("Ask a running node, with the verbs of Cassandra's nodetool");
    Program::command().mut_subcommand("nodetool", |_| nodetool)
}

/// A page for the program and one for each of its words, each with the name of its file.
fn render(mut command: Command) -> std::io::Result<impl Iterator<Item = (String, Vec<u8>)>> {
    command.build();
    let mut pages = vec![page(command.clone(), "helenus")?];
    let shown = command.get_subcommands().filter(|word| !word.is_hide_set() && word.get_name() != "help");
    for word in shown {
        pages.push(page(word.clone(), &format!("helenus-{}", word.get_name()))?);
    }
    Ok(pages.into_iter())
}

fn page(command: Command, name: &str) -> std::io::Result<(String, Vec<u8>)> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).title(name).render(&mut text)?;
    Ok((format!("{name}.1"), text))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn each_word_has_its_page() {
        let pages: Vec<(String, String)> = render(whole())
            .expect("rendered")
            .map(|(name, text)| (name, String::from_utf8(text).expect("text")))
            .collect();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for word in ["serve", "ring", "backup", "nodetool", "sstable", "stress", "doctor", "check", "health"] {
            assert!(names.contains(&format!("helenus-{word}.1").as_str()), "{word} in {names:?}");
        }
        assert!(!names.contains(&"helenus-man.1"));
        let of =
            |name: &str| pages.iter().find(|(page, _)| page == name).map(|(_, text)| text.as_str()).unwrap_or_default();
        assert!(of("helenus-serve.1").contains("\\-\\-data\\-dir"));
        assert!(of("helenus-nodetool.1").contains("compactionstats"));
    }

    #[test]
    fn each_shell_completes_verbs() {
        for shell in Shell::value_variants() {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut whole(), "helenus", &mut text);
            let text = String::from_utf8(text).expect("text");
            assert!(text.contains("compactionstats") && text.contains("data-dir"), "{shell}");
        }
    }
}
