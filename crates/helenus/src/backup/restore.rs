//! `helenus backup restore`: makes the data directory of a node again. The node does not run.

use std::path::PathBuf;

use backup::restore::{PointInTime, Request, Summary};
use clap::Args;
use env::Env;

use super::say;

/// Options of `helenus backup restore`.
#[derive(Args)]
pub struct Restore {
    /// The store.
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// The name of the backup.
    #[arg(short = 't', long)]
    tag: String,
    /// The host id of the node in the backup.
    #[arg(long, value_name = "ID")]
    host_id: String,
    /// The directory of the node, without data.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Replay archived segments of the commit log up to this time, as restore_point_in_time:
    /// YYYY:MM:DD HH:MM:SS.
    #[arg(long, value_name = "TIME")]
    point_in_time: Option<String>,
    /// Replay archived segments also where the archive began after the backup was taken, or lacks
    /// some in the middle: their writes are lacking then.
    #[arg(long, requires = "point_in_time")]
    accept_gap: bool,
}

impl Restore {
    pub(super) fn run(&self, env: &Env) -> Result<(), String> {
        let point_in_time = self.point_in_time.as_deref().map(point_in_time).transpose()?;
        let store = backup::open(env, &self.from)?;
        let request = Request {
            tag: self.tag.clone(),
            host_id: self.host_id.clone(),
            directory: self.data_dir.clone(),
            point_in_time,
            accepts_gap: self.accept_gap,
        };
        let Summary { tables, files, log, nothing_from, data } =
            backup::restore::restore(env, &*store, &request, &|_| ())?;
        say(&format!(
            "restored {tables} tables, {} files, {} bytes; the first of data_file_directories of the node must be {}, and \
             local_system_data_file_directory, if it is set",
            files.0,
            files.1,
            data.display()
        ))?;
        if let Some(segment) = nothing_from {
            say(&format!(
                "the archive of the commit log has nothing from behind the backup, neither segment {segment} nor a later \
                 one: what is restored is the time of the backup. Where the segments are still on the disk of the node, \
                 bring them (helenus backup log) and restore again"
            ))?;
        }
        match log {
            None => Ok(()),
            Some((segments, path)) => say(&format!(
                "{segments} segments wait for the first start: put {} beside cassandra.yaml for it. With this file the \
                 node archives nothing: start it again with your own soon, and take a new backup before you rely on \
                 the archive. Until the archive has a segment of the restored node, a restore to a later time than \
                 this one brings back what this one has undone",
                path.display()
            )),
        }
    }
}

fn point_in_time(text: &str) -> Result<PointInTime, String> {
    let read = config::Archiving::parse(&format!("restore_point_in_time={text}\n"))?;
    let micros = read.point_in_time.ok_or("--point-in-time has no time")?;
    Ok(PointInTime { text: text.to_owned(), micros })
}
