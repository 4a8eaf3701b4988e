//! Streams of SSTables: the sessions that run, and their throttles.

use admin::verbs::{
    GetStreamThroughput, GetStreams, SetStreamThroughput, StreamSessionInfo, StreamThroughputInfo, StreamWayInfo,
};
use admin::{Functions, Result};
use cluster::clock::uuid_text;
use cluster::streaming::{FileProgress, SessionProgress, Totals};

use super::NodeAdmin;

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(streams).add(throughput).add(set_throughput);
}

fn streams(admin: &NodeAdmin, _: &GetStreams) -> Result<Vec<StreamSessionInfo>> {
    Ok(admin.cluster().stream_progress().into_iter().map(session).collect())
}

fn session(progress: SessionProgress) -> StreamSessionInfo {
    StreamSessionInfo {
        plan: uuid_text(&progress.plan),
        operation: progress.operation.text().to_owned(),
        peer: progress.peer.to_string(),
        index: progress.index,
        follows: progress.follows,
        millis: progress.millis,
        receiving: way(progress.to_receive, progress.received, progress.receiving),
        sending: way(progress.to_send, progress.sent, progress.sending),
        resent: progress.resent,
    }
}

fn way(all: Totals, done: Totals, files: impl IntoIterator<Item = (String, FileProgress)>) -> StreamWayInfo {
    StreamWayInfo {
        files: all.files,
        bytes: all.bytes,
        files_done: done.files,
        bytes_done: done.bytes,
        by_file: files.into_iter().map(|(name, file)| (name, (file.done, file.total))).collect(),
    }
}

fn throughput(admin: &NodeAdmin, _: &GetStreamThroughput) -> Result<StreamThroughputInfo> {
    let settings = admin.cluster().stream_settings();
    Ok(StreamThroughputInfo {
        all: settings.throughput,
        inter_dc: settings.inter_dc_throughput,
        entire: settings.entire_throughput,
        entire_inter_dc: settings.entire_inter_dc_throughput,
    })
}

fn set_throughput(admin: &NodeAdmin, request: &SetStreamThroughput) -> Result<()> {
    let rate = request.bytes_per_second;
    admin.cluster().change_stream_settings(|settings| match (request.entire, request.inter_dc) {
        (false, false) => settings.throughput = rate,
        (false, true) => settings.inter_dc_throughput = rate,
        (true, false) => settings.entire_throughput = rate,
        (true, true) => settings.entire_inter_dc_throughput = rate,
    });
    Ok(())
}
