//! `nodetool profile`: CPU by thread, memory by what holds it, and waits, over some seconds. A verb
//! of our own, for what `jstack`, `sjk ttop` and heap histograms are asked of a JVM.

use crate::nodetool::text::{Table, file_size};
use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::{GetProfile, Profile};

/// Seconds that a profile takes at most.
const SECONDS_MAX: u64 = 60;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many seconds the node is watched
    #[arg(short = 'd', long, default_value_t = 5)]
    duration: u64,
    /// How many threads are shown
    #[arg(short = 'n', long, default_value_t = 20)]
    top: usize,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        if !(1..=SECONDS_MAX).contains(&self.duration) {
            return usage("profile takes 1 to 60 seconds");
        }
        let profile = context.api.ask(&GetProfile { duration_millis: self.duration * 1_000 })?;
        let micros = profile.micros.max(1) as f64;
        let busy: u64 = profile.threads.iter().map(|thread| thread.cpu_micros).sum();
        writeln!(context.out, "{:.1} s, {:.2} cores busy", micros / 1e6, busy as f64 / micros)?;
        threads(&profile, self.top).print(context.out)?;
        writeln!(context.out)?;
        let mut memory = Table::wide();
        memory.add(["Memory", "Size"]);
        profile.memory.iter().for_each(|(name, bytes)| memory.add([name.clone(), file_size(*bytes)]));
        memory.print(context.out)?;
        writeln!(context.out)?;
        let waits = &profile.waiting_on_commit;
        let (read, written) = (file_size(profile.disk_read), file_size(profile.disk_written));
        writeln!(context.out, "Disks: {read} read, {written} written")?;
        writeln!(
            context.out,
            "Waits for a sync of the commit log: {}, median {} us, 99th percentile {} us",
            waits.count(),
            waits.percentile(0.5),
            waits.percentile(0.99)
        )?;
        Ok(())
    }
}

fn threads(profile: &Profile, top: usize) -> Table {
    let share = |part: u64| format!("{:.1} %", part as f64 * 100.0 / profile.micros.max(1) as f64);
    let mut table = Table::wide();
    table.add(["Thread", "Id", "CPU", "Waited for a core", "Turns"]);
    for thread in profile.threads.iter().take(top) {
        table.add([
            thread.name.clone(),
            thread.id.to_string(),
            share(thread.cpu_micros),
            share(thread.queued_micros),
            thread.turns.to_string(),
        ]);
    }
    table
}
