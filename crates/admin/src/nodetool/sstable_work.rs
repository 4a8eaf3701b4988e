//! The common part of the verbs that work on each SSTable of some tables: `upgradesstables`,
//! `recompress_sstables`, `verify`, `scrub`, `garbagecollect`, `relocatesstables`. Agrees with
//! `NodeProbe.perform` and `NodeProbe.checkJobs`.

use crate::nodetool::{Context, Outcome, VerbError, usage};
use crate::verb::AdminError;
use crate::verbs::{GetCompactions, GetKeyspaces, SSTableRequest, SSTableWork};

/// A verb's work on a keyspace and its tables, or on all keyspaces.
pub(super) struct Work<'a> {
    /// The keyspace and its tables.
    pub args: &'a [String],
    /// How many SSTables are worked on at a time; None: the verb has no such option.
    pub jobs: Option<u32>,
    /// The work on each SSTable.
    pub work: SSTableWork,
    /// The name of the work in the verb's message if it was stopped.
    pub name: &'static str,
}

impl Work<'_> {
    /// Asks the node for the work, keyspace by keyspace. Fails if the SSTables of a table were
    /// taken by another operation.
    pub(crate) fn run(self, context: &mut Context<'_>) -> Outcome {
        let (keyspaces, tables) = selection(self.args, context)?;
        let mut failed = false;
        for keyspace in keyspaces {
            if let Some(jobs) = self.jobs {
                check_jobs(jobs, context)?;
            }
            let request = SSTableRequest {
                keyspace: keyspace.clone(),
                tables: tables.to_vec(),
                jobs: self.jobs.unwrap_or(0),
                work: self.work.clone(),
            };
            let outcome = context.api.ask(&request)?;
            for line in outcome.lines {
                writeln!(context.out, "{line}")?;
            }
            failed |= self.report(outcome.status, &keyspace, context)?;
        }
        if failed {
            return Err(AdminError::Failed("nodetool failed, check server logs".to_owned()).into());
        }
        Ok(())
    }

    /// Prints how the work on a keyspace ended if it did not end well. True: that is a failure of
    /// the verb.
    fn report(&self, status: u8, keyspace: &str, context: &mut Context<'_>) -> Result<bool, VerbError> {
        let name = self.name;
        match (status, &self.work) {
            (0, _) => return Ok(false),
            (_, SSTableWork::GarbageCollect { .. }) => {
                writeln!(
                    context.out,
                    "Aborted {name} for at least one table in keyspace {keyspace}, check server logs for more information."
                )?;
                return Ok(true);
            }
            (1, _) => writeln!(
                context.out,
                "Aborted {name} for at least one table in keyspace {keyspace}, check server logs for more information."
            )?,
            _ => writeln!(
                context.out,
                "Failed marking some sstables compacting in keyspace {keyspace}, check server logs for more information."
            )?,
        }
        Ok(status == 2)
    }
}

fn check_jobs(jobs: u32, context: &mut Context<'_>) -> Outcome {
    let compactors = context.api.ask(&GetCompactions {})?.concurrent_compactors;
    if jobs > compactors {
        writeln!(
            context.out,
            "jobs ({jobs}) is bigger than configured concurrent_compactors ({compactors}) on the host, using at most {compactors} threads"
        )?;
    }
    Ok(())
}

/// The keyspace and the tables that the arguments name; without arguments all keyspaces.
fn selection<'a>(args: &'a [String], context: &Context<'_>) -> Result<(Vec<String>, &'a [String]), VerbError> {
    let known = context.api.ask(&GetKeyspaces {})?;
    match args.split_first() {
        None => Ok((known.into_iter().map(|keyspace| keyspace.name).collect(), &[])),
        Some((keyspace, tables)) if known.iter().any(|known| known.name == *keyspace) => {
            Ok((vec![keyspace.clone()], tables))
        }
        Some((keyspace, _)) => usage(format!("Keyspace [{keyspace}] does not exist.")),
    }
}
