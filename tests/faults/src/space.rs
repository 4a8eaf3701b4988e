//! A device that is full: writes are refused, reads go on, nothing acknowledged is lost, and with
//! room again all is as before.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;

use crate::Outcome;
use crate::kill::{Observers, settings, upkeep};
use crate::node::Node;
use crate::report::Report;
use crate::writer::HarmSignals;

/// The device.
const DEVICE_MIB: u64 = 96;
/// It is filled but for so much.
const LEFT_MAX: u64 = 3 << 20;
/// How long it stays full.
const FULL: Duration = Duration::from_secs(2);
/// Writes go on so soon after there is room again.
const RECOVERY_TIME_MAX: Duration = Duration::from_secs(15);

/// A file system of its own, gone at the end.
struct Device(PathBuf);

impl Device {
    fn new(at: PathBuf) -> Outcome<Self> {
        std::fs::create_dir_all(&at)?;
        let size = format!("size={DEVICE_MIB}m");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at).output()?;
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        if done.status.success() { Ok(Self(at)) } else { Err(said.into()) }
    }

    /// Takes all room but `left` bytes.
    fn fill(&self, left: u64) -> Outcome {
        let done = Command::new("df").args(["--output=avail", "-B1"]).arg(&self.0).output()?;
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let free: u64 = text.lines().last().ok_or("df says nothing")?.trim().parse()?;
        let size = free.saturating_sub(left).to_string();
        Command::new("fallocate").args(["-l", &size]).arg(self.ballast()).status()?;
        Ok(())
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }

    fn free(&self) -> Outcome {
        Ok(std::fs::remove_file(self.ballast())?)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// So many times full.
pub async fn run(program: &Path, place: &Path, seed: u64, rounds: u32, report: &mut Report) -> Outcome {
    let device = match Device::new(place.join("device")) {
        Ok(device) => device,
        Err(error) => {
            println!("left out: no file system of its own: {error}");
            return Ok(());
        }
    };
    let mut random = StdRng::seed_from_u64(seed);
    let mut node = Node::new(program, &device.0.join("data"), &place.join("log"))?;
    node.start(&settings(&mut random)).await?;
    let mut observers = Observers::new(&node.session().await?, seed).await?;
    for round in 1..=rounds {
        let outcome = fill(&mut node, &device, &mut observers, &mut random).await;
        if device.ballast().exists() {
            device.free()?;
        }
        report.check(outcome, || format!("round {round}, full"));
        if random.random_range(0..2) == 0 {
            report.check(node.kill().await, || format!("round {round}, killed"));
            node.start(&settings(&mut random)).await?;
        }
        let session = node.session().await?;
        report.check(observers.verify(&session).await, || format!("round {round}, what is there after it"));
        report.check(writes_again(&session).await, || format!("round {round}, room again"));
    }
    report.check(node.no_panic(), || "the log".to_owned());
    report.check(node.stop().await, || "the last stop".to_owned());
    println!("{rounds} times full, {} statements acknowledged", observers.acknowledged());
    Ok(())
}

async fn fill(node: &mut Node, device: &Device, observers: &mut Observers, random: &mut StdRng) -> Outcome {
    let harm = Arc::new(HarmSignals::default());
    let session = node.session().await?;
    let reader = node.session().await?;
    let meanwhile = async {
        upkeep(node, random, Duration::from_millis(300)).await;
        harm.done.store(true, Ordering::Relaxed);
        device.fill(random.random_range(0..LEFT_MAX))?;
        upkeep(node, random, FULL).await;
        reader
            .query_unpaged("SELECT * FROM observed.decided", &[])
            .await
            .map_err(|error| format!("a read while it is full: {error}"))?;
        if node.ended()? {
            return Err("the server ended".into());
        }
        Ok(())
    };
    observers.work(session, meanwhile, harm.clone()).await
}

/// Writes go on soon.
pub async fn writes_again(session: &scylla::client::session::Session) -> Outcome {
    let begun = Instant::now();
    loop {
        let done = session.query_unpaged("INSERT INTO observed.emptied (id, value) VALUES (-1, 'again')", &[]).await;
        match done {
            Ok(_) => break,
            Err(error) if begun.elapsed() > RECOVERY_TIME_MAX => {
                return Err(format!("no write {RECOVERY_TIME_MAX:?} after it: {error}").into());
            }
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
    session.query_unpaged("DELETE FROM observed.emptied WHERE id = -1", &[]).await?;
    Ok(())
}
