//! Writes the seeds of all targets, and their regressions, as corpora of libFuzzer: `seeds
//! DIRECTORY`.

#![allow(clippy::disallowed_methods)]

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args_os().nth(1).expect("seeds DIRECTORY"));
    for target in fuzzing::TARGETS {
        let corpus = directory.join(target.name);
        std::fs::create_dir_all(&corpus)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(corpus.join(format!("seed-{number:03}")), seed)?;
        }
        for path in fuzzing::regressions(target.name) {
            std::fs::copy(&path, corpus.join(path.file_name().expect("a file")))?;
        }
        println!("{}", target.name);
    }
    Ok(())
}
