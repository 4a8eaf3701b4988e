//! `nodetool clearsnapshot`: removes snapshots.
//! Agrees with `org.apache.cassandra.tools.nodetool.ClearSnapshot`.

use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verbs::{ClearOldSnapshots, ClearSnapshots, SnapshotAge};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Remove the snapshot with a given name
    #[arg(short = 't')]
    name: Option<String>,
    /// Removes all snapshots
    #[arg(long)]
    all: bool,
    /// Clear snapshots older than specified time period: a number with a unit of d, h, m or s
    #[arg(long, value_name = "DURATION")]
    older_than: Option<String>,
    /// Clear snapshots older than specified timestamp, in ISO format: '2022-12-03T10:15:30Z'
    #[arg(long, value_name = "TIMESTAMP")]
    older_than_timestamp: Option<String>,
    /// Remove snapshots from the given keyspaces
    keyspaces: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let with = match (&self.name, self.all) {
            (None, false) => return usage("Specify snapshot name or --all"),
            (Some(_), true) => return usage("Specify only one of snapshot name or --all"),
            (None, true) => "[all snapshots]".to_owned(),
            (Some(name), false) => format!("snapshot name [{name}]"),
        };
        let age = self.age()?;
        let of = if self.keyspaces.is_empty() { "all keyspaces".to_owned() } else { self.keyspaces.join(", ") };
        let older = match (age, &self.older_than_timestamp) {
            (Some(SnapshotAge::Seconds(seconds)), _) => format!(" older than {seconds} seconds."),
            (_, Some(timestamp)) => format!(" older than timestamp {timestamp}"),
            (_, None) => String::new(),
        };
        writeln!(context.out, "Requested clearing snapshot(s) for [{of}] with {with}{older}")?;
        match age {
            Some(older_than) => context.api.ask(&ClearOldSnapshots { older_than, keyspaces: self.keyspaces })?,
            None => context.api.ask(&ClearSnapshots { name: self.name, keyspaces: self.keyspaces })?,
        }
        Ok(())
    }

    /// The age that snapshots must have to be removed; None: any.
    fn age(&self) -> Result<Option<SnapshotAge>, VerbError> {
        let together =
            |option: &str| usage(format!("Specifying snapshot name together with --{option} flag is not allowed"));
        match (&self.older_than, &self.older_than_timestamp) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => usage("Specify only one of --older-than or --older-than-timestamp"),
            (Some(_), None) if self.name.is_some() => together("older-than"),
            (None, Some(_)) if self.name.is_some() => together("older-than-timestamp"),
            (Some(duration), None) => match seconds(duration) {
                Some(seconds) => Ok(Some(SnapshotAge::Seconds(seconds))),
                None => usage(format!(
                    "Invalid duration: {duration} Accepted units:[SECONDS, MINUTES, HOURS, DAYS] where case matters and \
                     only non-negative values."
                )),
            },
            (None, Some(timestamp)) => match timestamp.parse::<jiff::Timestamp>() {
                Ok(time) => Ok(Some(SnapshotAge::TakenAt(time.as_millisecond()))),
                Err(_) => usage("Parameter --older-than-timestamp has to be a valid instant in ISO format."),
            },
        }
    }
}

/// The seconds of a duration: a number with a unit, as Cassandra's `DurationSpec.LongSecondsBound`
/// reads it.
fn seconds(duration: &str) -> Option<u64> {
    let digits = duration.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = duration.split_at(digits);
    let unit = match unit {
        "d" => 24 * 60 * 60,
        "h" => 60 * 60,
        "m" => 60,
        "s" => 1,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}
