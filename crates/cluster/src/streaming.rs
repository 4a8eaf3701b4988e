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

pub use crate::transfers::{FileProgress, SessionProgress, StreamFigures, Totals};
pub use ::streaming::{Operation, PlanId, Preview, Summary, TokenRange};
pub use plan::{
    PeerStreams, RangeRequest, RangeTransfer, SessionEnd, SessionSummary, StreamFailure, StreamOutcome, StreamPlan,
    run, run_telling,
};

impl crate::node::Node {
    /// How far the streaming sessions are that run.
    pub fn stream_progress(&self) -> Vec<SessionProgress> {
        self.transfers.progress(self.env.now())
    }

    /// The sessions that have ended, oldest first; the last thousand of them.
    pub fn ended_streams(&self) -> Vec<SessionProgress> {
        self.transfers.ended()
    }

    /// Counts of streams since the start.
    pub fn stream_figures(&self) -> &StreamFigures {
        &self.transfers.figures
    }

    /// The settings of streams, which operators change while the node runs.
    pub fn stream_settings(&self) -> config::Streams {
        (**self.transfers.settings.load()).clone()
    }

    /// Changes these settings.
    pub fn change_stream_settings(&self, change: impl FnOnce(&mut config::Streams)) {
        let mut settings = self.stream_settings();
        change(&mut settings);
        self.transfers.settings.store(std::sync::Arc::new(settings));
    }
}

#[cfg(test)]
mod tests;
