//! Streams of SSTables between this node and others: what bootstrap, decommission, rebuild, move,
//! repair and bulk loads are made of.
//!
//! - [`plan`]: what an operation asks of peers and sends to them; [`run`] carries it out
//! - [`worker`]: the thread on which streams live, and the links that peers open
//! - [`control`]: the task that drives a session
//! - [`collect`]: which files are sent; [`sender`]: sends them
//! - [`checks`]: refusals before bytes flow; [`receiver`]: writes what comes; [`write_path`]: adds
//!   it to its table, as files or as writes
//!
//! Bytes and the order of messages are those of the crate `streaming`; what comes is written by
//! `storage::received`. `org.apache.cassandra.streaming.{StreamPlan,StreamSession,StreamManager}`.

mod checks;
mod collect;
mod control;
pub mod plan;
mod receiver;
mod sender;
mod worker;
mod write_path;

pub use crate::streaming_state::{FileProgress, SessionProgress, StreamFigures, Totals};
pub use ::streaming::{Operation, PlanId, Preview, Summary, TokenRange};
pub(crate) use checks::refuse_left_out;
pub use plan::{
    PeerStreams, RangeRequest, RangeTransfer, SessionEnd, SessionSummary, StreamFailure, StreamOutcome, StreamPlan,
    run, run_with_hook,
};

use ::streaming::Event;
use schema::TableId;

use crate::streaming_state::{Command, LiveSession};

impl crate::node::Node {
    /// Ends the sessions of repairs in which files of one of these tables are sent or come.
    pub(crate) fn end_streams_of_repairs(&self, tables: &[TableId], why: &str) {
        let is_meant = |live: &LiveSession| {
            live.init.operation == Operation::Repair && tables.iter().any(|table| live.is_about(*table))
        };
        for live in self.streaming_state.all().into_iter().filter(|live| is_meant(live)) {
            let (peer, why) = (live.key.peer, why.to_owned());
            let end = Command::Run(Box::new(move || {
                Box::pin(async move {
                    drop(live.events.send(Event::Broken(why)).await);
                })
            }));
            if !self.streaming_state.command(end) {
                tracing::warn!(%peer, "too much waits for the thread of streams: a stream of a repair goes on");
            }
        }
    }

    /// How far the streaming sessions are that run.
    pub fn stream_progress(&self) -> Vec<SessionProgress> {
        self.streaming_state.progress(self.env.now())
    }

    /// The sessions that have ended, oldest first; the last thousand of them.
    pub fn ended_streams(&self) -> Vec<SessionProgress> {
        self.streaming_state.ended()
    }

    /// Counts of streams since the start.
    pub fn stream_figures(&self) -> &StreamFigures {
        &self.streaming_state.figures
    }

    /// The settings of streams, which operators change while the node runs.
    pub fn stream_settings(&self) -> config::Streams {
        (**self.streaming_state.settings.load()).clone()
    }

    /// Changes these settings.
    pub fn change_stream_settings(&self, change: impl FnOnce(&mut config::Streams)) {
        let mut settings = self.stream_settings();
        change(&mut settings);
        self.streaming_state.settings.store(std::sync::Arc::new(settings));
    }
}

#[cfg(test)]
mod tests;
