//! `nodetool invalidatekeycache`, `invalidaterowcache`, `invalidatecountercache`, `setcachecapacity` and `setcachekeystosave`.
//!
//! There is no counter cache: to invalidate it is done at once, and what it is given is told to have no effect.

use crate::nodetool::{Context, Outcome, usage};
use crate::verbs::{CacheChange, CacheKind, GetNode};

const NO_COUNTER_CACHE: &str = "there is no counter cache: its value is ignored";

#[derive(clap::Args)]
pub struct InvalidateKeys {}

#[derive(clap::Args)]
pub struct InvalidateRows {}

#[derive(clap::Args)]
pub struct InvalidateCounters {}

#[derive(clap::Args)]
pub struct Capacity {
    /// Key cache, row cache, and counter cache (in MB)
    #[arg(allow_hyphen_values = true)]
    args: Vec<i32>,
}

#[derive(clap::Args)]
pub struct KeysToSave {
    /// The number of keys saved by each cache. 0 to disable
    #[arg(allow_hyphen_values = true)]
    args: Vec<i32>,
}

impl InvalidateKeys {
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&CacheChange::Invalidate(CacheKind::Keys))?)
    }
}

impl InvalidateRows {
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&CacheChange::Invalidate(CacheKind::Rows))?)
    }
}

impl InvalidateCounters {
    /// Nothing is cached that could be wrong. A node that is not there is told of all the same.
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
        Ok(context.api.ask(&GetNode {}).map(drop)?)
    }
}

/// Values of the three caches, if none is negative.
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
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
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
    pub fn run(self, context: &mut Context<'_>) -> Outcome {
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
