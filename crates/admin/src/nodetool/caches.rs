//! `nodetool invalidatekeycache`, `invalidaterowcache`, `invalidatecountercache`,
//! `setcachecapacity` and `setcachekeystosave`.
//!
//! There is no counter cache: invalidating it does nothing, and a capacity for it is answered with
//! a line that it has no effect.

use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::{CacheChange, CacheKind, GetNode};

const NO_COUNTER_CACHE: &str = "there is no counter cache: its value is ignored";

#[derive(clap::Args)]
pub(crate) struct InvalidateKeys {}

#[derive(clap::Args)]
pub(crate) struct InvalidateRows {}

#[derive(clap::Args)]
pub(crate) struct InvalidateCounters {}

#[derive(clap::Args)]
pub(crate) struct Capacity {
    /// Key cache, row cache, and counter cache (in MB)
    #[arg(allow_hyphen_values = true)]
    args: Vec<i32>,
}

#[derive(clap::Args)]
pub(crate) struct KeysToSave {
    /// The number of keys saved by each cache. 0 to disable
    #[arg(allow_hyphen_values = true)]
    args: Vec<i32>,
}

impl InvalidateKeys {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&CacheChange::Invalidate(CacheKind::Keys))?)
    }
}

impl InvalidateRows {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&CacheChange::Invalidate(CacheKind::Rows))?)
    }
}

impl InvalidateCounters {
    /// There is no counter cache, so nothing is invalidated. The node is asked only so that a node
    /// that does not answer is reported.
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&GetNode {}).map(drop)?)
    }
}

/// The arguments for the three caches; None if there are not three or one is negative.
fn three(args: &[i32]) -> Option<[u64; 3]> {
    let [keys, rows, counters] = args else { return None };
    let value = |value: &i32| u64::try_from(*value).ok();
    Some([value(keys)?, value(rows)?, value(counters)?])
}

fn tell_of_counters(context: &mut Context<'_>, counters: u64) -> Outcome {
    if counters > 0 {
        writeln!(context.out, "{NO_COUNTER_CACHE}")?;
    }
    Ok(())
}

impl Capacity {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        if self.args.len() != 3 {
            return usage(
                "setcachecapacity requires key-cache-capacity, row-cache-capacity, and counter-cache-capacity args.",
            );
        }
        let Some([keys, rows, counters]) = three(&self.args) else { return usage("capacity should not be negative.") };
        context.api.ask(&CacheChange::Capacities { keys: keys << 20, rows: rows << 20 })?;
        tell_of_counters(context, counters)
    }
}

impl KeysToSave {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        if self.args.len() != 3 {
            return usage(
                "setcachekeystosave requires key-cache-keys-to-save, row-cache-keys-to-save, and counter-cache-keys-to-save args.",
            );
        }
        let Some([keys, rows, counters]) = three(&self.args) else {
            return usage("keys to save should not be negative.");
        };
        context.api.ask(&CacheChange::KeysToSave { keys, rows })?;
        tell_of_counters(context, counters)
    }
}
