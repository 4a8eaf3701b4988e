//! A directory at rest in which one file is damaged: the server says so and names it, or every
//! answer is right or an error. Half of the directories were left by a kill, so that their log has
//! something to say.
//!
//! Cassandra's formats have no checksum over the filter and the index of an SSTable: with damage
//! there rows may not be found, here as there. `nodetool verify` has to tell, and such rounds are
//! counted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::Outcome;
use crate::kill::{Observers, settings, upkeep};
use crate::node::Node;
use crate::report::Report;
use crate::writer::HarmSignals;

/// How long a directory is written to.
const WRITING: Duration = Duration::from_secs(3);
/// Rounds on one directory.
const ROUNDS: u32 = 50;

/// So many rounds.
pub async fn run(program: &Path, place: &Path, seed: u64, rounds: u32, report: &mut Report) -> Outcome {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut refused, mut starts_refused, mut verified) = (0, 0, 0);
    for first in (0..rounds).step_by(ROUNDS as usize) {
        let sound = place.join(format!("sound-{first}"));
        let sets = settings(&mut random);
        let observers = write(program, &sound, &sets, &mut random, (first / ROUNDS).is_multiple_of(2)).await?;
        for round in first..rounds.min(first + ROUNDS) {
            let data = place.join("data");
            copy(&sound, &data)?;
            let damage = damage(&data, &mut random)?;
            let outcome = look(program, &data, &sets, &damage, &observers).await;
            match &outcome {
                Ok(Found::AtStart) => starts_refused += 1,
                Ok(Found::ByReads(errors)) => refused += errors,
                Ok(Found::ByVerify) => verified += 1,
                Err(_) => {}
            }
            report.check(outcome.map(|_| ()), || format!("round {round}, {}", damage.text));
        }
        std::fs::remove_dir_all(&sound)?;
    }
    println!(
        "{rounds} files damaged: {starts_refused} starts and {refused} reads refused; {verified} times verify alone told"
    );
    Ok(())
}

async fn write(program: &Path, data: &Path, sets: &[String], random: &mut StdRng, cleanly: bool) -> Outcome<Observers> {
    let mut node = Node::new(program, data, &data.with_extension("log"))?;
    node.start(sets).await?;
    let mut observers = Observers::new(&node.session().await?, random.random()).await?;
    let upkeep = async {
        upkeep(&node, random, WRITING).await;
        Ok(())
    };
    observers.work(node.session().await?, upkeep, Arc::new(HarmSignals::default())).await?;
    if cleanly {
        node.stop().await?
    } else {
        node.kill().await?
    }
    Ok(observers)
}

fn copy(from: &Path, to: &Path) -> Outcome {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target)?;
            // the record of a compaction that a kill has interrupted names the time of each file
            std::fs::File::options().write(true).open(&target)?.set_modified(entry.metadata()?.modified()?)?;
        }
    }
    Ok(())
}

/// A damage: the file, and a text for the report.
struct Damage {
    file: PathBuf,
    text: String,
}

fn damage(data: &Path, random: &mut StdRng) -> Outcome<Damage> {
    let mut files = Vec::new();
    list(data, &mut files)?;
    let file = files.swap_remove(random.random_range(0..files.len()));
    let mut bytes = std::fs::read(&file)?;
    let at = random.random_range(0..bytes.len());
    let what = match random.random_range(0..10) {
        0 | 1 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        2 => {
            let end = (at + 512).min(bytes.len());
            bytes[at..end].fill(0);
            format!("nothing from {at} to {end}")
        }
        _ => {
            let bit = random.random_range(0..8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} flipped")
        }
    };
    std::fs::write(&file, &bytes)?;
    Ok(Damage { text: format!("{} {what}", file.strip_prefix(data)?.display()), file })
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    let mut entries = std::fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        if entry.file_type()?.is_dir() {
            list(&entry.path(), files)?;
        } else if entry.metadata()?.len() > 0 {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// The occasion on which the damage was noticed.
enum Found {
    /// The start was refused, and the log names the file.
    AtStart,
    /// So many reads were refused; none: nobody needs what is damaged.
    ByReads(u32),
    /// A file without a checksum: rows were not found, and `nodetool verify` says why.
    ByVerify,
}

/// Components that no checksum covers.
const UNCHECKED: [&str; 5] = ["Partitions.db", "Rows.db", "Filter.db", "Index.db", "Summary.db"];

async fn look(program: &Path, data: &Path, sets: &[String], damage: &Damage, observers: &Observers) -> Outcome<Found> {
    let log = data.with_extension("log");
    let _ = std::fs::remove_file(&log);
    let mut node = Node::new(program, data, &log)?;
    let started = node.start(sets).await;
    node.no_panic()?;
    if let Err(error) = started {
        let name = damage.file.file_name().and_then(|name| name.to_str()).ok_or("no name")?;
        // an SSTable is named by one of its files
        let stem = name.rsplit_once('-').map_or(name, |(stem, _)| stem);
        return if node.log().contains(stem) {
            Ok(Found::AtStart)
        } else {
            Err(format!("the file is not named: {error}").into())
        };
    }
    let is_checked = !UNCHECKED.iter().any(|component| damage.text.contains(component));
    let found = match observers.right_or_refused(&node.session().await?).await {
        Ok(refused) => Found::ByReads(refused),
        Err(error) if is_checked => return Err(error),
        Err(error) => match node.nodetool(&["verify", "-e", "observed"]).await {
            Err(_) => Found::ByVerify,
            Ok(said) => return Err(format!("{error}; verify sees nothing: {said}").into()),
        },
    };
    node.stop().await?;
    node.no_panic()?;
    Ok(found)
}
