//! `nodetool gettimeout` and `settimeout`: how long requests of a kind may take.

use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verbs::{GetTimeout, SetTimeout, TimeoutKind};

const TYPES: &str = "read, range, write, counterwrite, cascontention, truncate, internodeconnect, internodeuser, \
                     internodestreaminguser, misc (general rpc_timeout_in_ms)";
/// Timeout types of Cassandra for messages between nodes, which are refused by name.
const INTERNODE: &[&str] = &["internodeconnect", "internodeuser", "internodestreaminguser"];

#[derive(clap::Args)]
pub(crate) struct Get {
    /// The timeout type
    args: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct Set {
    /// The timeout type followed by value in ms
    args: Vec<String>,
}

impl Get {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let [name] = self.args.as_slice() else {
            return usage(format!("gettimeout requires a timeout type, one of ({TYPES})"));
        };
        let millis = context.api.ask(&GetTimeout { kind: kind(name)? })?;
        Ok(writeln!(context.out, "Current timeout for type {name}: {millis} ms")?)
    }
}

impl Set {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let [name, millis] = self.args.as_slice() else {
            return usage(format!(
                "Timeout type followed by value in ms (0 disables socket streaming timeout). Type should be one of ({TYPES})"
            ));
        };
        let Ok(millis) = millis.parse() else { return usage(format!("For input string: \"{millis}\"")) };
        Ok(context.api.ask(&SetTimeout { kind: kind(name)?, millis })?)
    }
}

fn kind(name: &str) -> Result<TimeoutKind, VerbError> {
    match TimeoutKind::from_name(name) {
        Some(kind) => Ok(kind),
        None if INTERNODE.contains(&name) => usage(format!("{name}: exists in Cassandra, but is not supported yet")),
        None => usage(format!("{name} requires [{TYPES}]")),
    }
}
