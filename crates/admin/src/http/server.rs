//! The server side: one route a method of [`AdminApi`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Json, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use env::{Env, Listener, Stream};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::api::{AdminApi, AdminError, Result, TimeoutKind};
use crate::model::{
    CacheChange, CompactRequest, ImportRequest, SSTableRequest, SampleRequest, SnapshotRequest, StopRequest,
    TableSelection, TransportChange,
};
use crate::prometheus;

#[derive(Clone)]
struct Node {
    env: Env,
    api: Arc<dyn AdminApi>,
}

/// The partition that a question is about.
#[derive(Deserialize)]
struct Partition {
    keyspace: String,
    table: String,
    key: String,
    #[serde(default)]
    hex: bool,
}

/// What to clear.
#[derive(Serialize, Deserialize)]
pub(super) struct ClearSnapshots {
    pub name: Option<String>,
    pub keyspaces: Vec<String>,
}

/// A logger and its level.
#[derive(Serialize, Deserialize)]
pub(super) struct LoggingLevel {
    pub logger: String,
    pub level: String,
}

/// Serves until the future is dropped. Call it within the runtime of the ops thread.
pub async fn serve(env: Env, listener: Box<dyn Listener>, api: Arc<dyn AdminApi>) -> io::Result<()> {
    axum::serve(Accept(listener), router(env, api)).await
}

/// All routes.
pub fn router(env: Env, api: Arc<dyn AdminApi>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/api/node", get(|State(node): State<Node>| node.ask(|api| api.node())))
        .route("/api/keyspaces", get(|State(node): State<Node>| node.ask(|api| api.keyspaces())))
        .route("/api/tables", get(|State(node): State<Node>| node.ask(|api| api.tables())))
        .route("/api/latencies", get(|State(node): State<Node>| node.ask(|api| api.client_latencies())))
        .route("/api/compactions", get(|State(node): State<Node>| node.ask(|api| api.compactions())))
        .route("/api/compactions/history", get(|State(node): State<Node>| node.ask(|api| api.compaction_history())))
        .route("/api/pools", get(|State(node): State<Node>| node.ask(|api| api.pools())))
        .route("/api/metrics", get(|State(node): State<Node>| node.ask(|api| api.metrics())))
        .route("/api/endpoints", get(endpoints))
        .route("/api/sstables", get(sstables))
        .route("/api/tombstones", post(tombstones))
        .route("/api/sstables/import", post(import))
        .route("/api/sstables/refresh", post(refresh))
        .route("/api/indexes/rebuild", post(rebuild_indexes))
        .route("/api/sstables/work", post(work_on_sstables))
        .route("/api/compactions/stop", post(stop))
        .route("/api/flush", post(flush))
        .route("/api/compact", post(compact))
        .route("/api/compactions/concurrency", post(set_concurrent_compactors))
        .route("/api/auto_compaction/status", post(auto_compaction))
        .route("/api/auto_compaction", post(set_auto_compaction))
        .route("/api/compaction_thresholds", post(compaction_thresholds))
        .route("/api/compaction_thresholds/set", post(set_compaction_thresholds))
        .route("/api/caches", post(change_caches))
        .route("/api/drain", post(|State(node): State<Node>, Json(()): Json<()>| node.ask(|api| api.drain())))
        .route("/api/native_transport", post(change_transport))
        .route("/api/snapshots", get(|State(node): State<Node>| node.ask(|api| api.snapshots())).post(take_snapshot))
        .route("/api/snapshots/clear", post(clear_snapshots))
        .route("/api/trace_probability", get(trace_probability).post(set_trace_probability))
        .route("/api/timeout/{kind}", get(timeout).post(set_timeout))
        .route("/api/compaction_throughput", get(compaction_throughput).post(set_compaction_throughput))
        .route("/api/samples", post(sample))
        .route("/api/samples/jobs", get(sampling_jobs).post(schedule_sampling))
        .route("/api/samples/jobs/stop", post(stop_sampling))
        .route("/api/logging_levels", get(logging_levels).post(set_logging_level))
        .with_state(Node { env, api })
}

impl Node {
    /// Calls the node on the blocking pool and answers with what it says as JSON.
    async fn ask<T: Serialize + Send + 'static>(
        self,
        call: impl FnOnce(&dyn AdminApi) -> Result<T> + Send + 'static,
    ) -> Response {
        let api = self.api;
        match self.env.blocking("admin", move || call(api.as_ref())).await {
            Ok(Ok(answer)) => Json(answer).into_response(),
            Ok(Err(error)) => refuse(&error),
            Err(full) => refuse(&AdminError::Failed(full.to_string())),
        }
    }
}

fn refuse(error: &AdminError) -> Response {
    let status = match error {
        AdminError::Invalid(_) => StatusCode::BAD_REQUEST,
        AdminError::Failed(_) | AdminError::Unreachable(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, Json(error)).into_response()
}

async fn metrics(State(node): State<Node>) -> Response {
    let api = node.api;
    match node.env.blocking("metrics", move || prometheus::collect(api.as_ref())).await {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, prometheus::CONTENT_TYPE)], text).into_response(),
        Ok(Err(error)) => refuse(&error),
        Err(full) => refuse(&AdminError::Failed(full.to_string())),
    }
}

async fn endpoints(State(node): State<Node>, Query(of): Query<Partition>) -> Response {
    node.ask(move |api| api.endpoints(&of.keyspace, &of.table, &of.key)).await
}

async fn sstables(State(node): State<Node>, Query(of): Query<Partition>) -> Response {
    node.ask(move |api| api.sstables(&of.keyspace, &of.table, &of.key, of.hex)).await
}

async fn tombstones(State(node): State<Node>, Json((keyspace, table, top)): Json<(String, String, u32)>) -> Response {
    node.ask(move |api| api.tombstones(&keyspace, &table, top)).await
}

async fn import(State(node): State<Node>, Json(request): Json<ImportRequest>) -> Response {
    node.ask(move |api| api.import(&request)).await
}

async fn refresh(State(node): State<Node>, Json((keyspace, table)): Json<(String, String)>) -> Response {
    node.ask(move |api| api.refresh(&keyspace, &table)).await
}

async fn rebuild_indexes(
    State(node): State<Node>,
    Json((keyspace, table, indexes)): Json<(String, String, Vec<String>)>,
) -> Response {
    node.ask(move |api| api.rebuild_indexes(&keyspace, &table, &indexes)).await
}

async fn work_on_sstables(State(node): State<Node>, Json(request): Json<SSTableRequest>) -> Response {
    node.ask(move |api| api.work_on_sstables(&request)).await
}

async fn stop(State(node): State<Node>, Json(request): Json<StopRequest>) -> Response {
    node.ask(move |api| api.stop(&request)).await
}

async fn flush(State(node): State<Node>, Json(tables): Json<TableSelection>) -> Response {
    node.ask(move |api| api.flush(&tables)).await
}

async fn compact(State(node): State<Node>, Json(request): Json<CompactRequest>) -> Response {
    node.ask(move |api| api.compact(&request)).await
}

async fn set_concurrent_compactors(State(node): State<Node>, Json(count): Json<u32>) -> Response {
    node.ask(move |api| api.set_concurrent_compactors(count)).await
}

async fn change_caches(State(node): State<Node>, Json(change): Json<CacheChange>) -> Response {
    node.ask(move |api| api.change_caches(&change)).await
}

async fn change_transport(State(node): State<Node>, Json(change): Json<TransportChange>) -> Response {
    node.ask(move |api| api.change_transport(change)).await
}

async fn auto_compaction(State(node): State<Node>, Json(tables): Json<TableSelection>) -> Response {
    node.ask(move |api| api.auto_compaction(&tables)).await
}

async fn compaction_thresholds(State(node): State<Node>, Json((keyspace, table)): Json<(String, String)>) -> Response {
    node.ask(move |api| api.compaction_thresholds(&keyspace, &table)).await
}

async fn set_compaction_thresholds(
    State(node): State<Node>,
    Json((keyspace, table, thresholds)): Json<(String, String, (u32, u32))>,
) -> Response {
    node.ask(move |api| api.set_compaction_thresholds(&keyspace, &table, thresholds)).await
}

async fn set_auto_compaction(State(node): State<Node>, Json((tables, on)): Json<(TableSelection, bool)>) -> Response {
    node.ask(move |api| api.set_auto_compaction(&tables, on)).await
}

async fn take_snapshot(State(node): State<Node>, Json(request): Json<SnapshotRequest>) -> Response {
    node.ask(move |api| api.take_snapshot(&request)).await
}

async fn clear_snapshots(State(node): State<Node>, Json(what): Json<ClearSnapshots>) -> Response {
    node.ask(move |api| api.clear_snapshots(what.name.as_deref(), &what.keyspaces)).await
}

async fn trace_probability(State(node): State<Node>) -> Response {
    node.ask(|api| api.trace_probability()).await
}

async fn set_trace_probability(State(node): State<Node>, Json(probability): Json<f64>) -> Response {
    node.ask(move |api| api.set_trace_probability(probability)).await
}

async fn timeout(State(node): State<Node>, Path(kind): Path<TimeoutKind>) -> Response {
    node.ask(move |api| api.timeout(kind)).await
}

async fn set_timeout(State(node): State<Node>, Path(kind): Path<TimeoutKind>, Json(millis): Json<u64>) -> Response {
    node.ask(move |api| api.set_timeout(kind, millis)).await
}

async fn compaction_throughput(State(node): State<Node>) -> Response {
    node.ask(|api| api.compaction_throughput()).await
}

async fn set_compaction_throughput(State(node): State<Node>, Json(rate): Json<u64>) -> Response {
    node.ask(move |api| api.set_compaction_throughput(rate)).await
}

async fn sample(State(node): State<Node>, Json(request): Json<SampleRequest>) -> Response {
    node.ask(move |api| api.sample(&request)).await
}

async fn sampling_jobs(State(node): State<Node>) -> Response {
    node.ask(|api| api.sampling_jobs()).await
}

async fn schedule_sampling(
    State(node): State<Node>,
    Json((request, interval)): Json<(SampleRequest, u64)>,
) -> Response {
    node.ask(move |api| api.schedule_sampling(&request, interval)).await
}

async fn stop_sampling(
    State(node): State<Node>,
    Json((keyspace, table)): Json<(Option<String>, Option<String>)>,
) -> Response {
    node.ask(move |api| api.stop_sampling(keyspace.as_deref(), table.as_deref())).await
}

async fn logging_levels(State(node): State<Node>) -> Response {
    node.ask(|api| api.logging_levels()).await
}

async fn set_logging_level(State(node): State<Node>, Json(level): Json<LoggingLevel>) -> Response {
    node.ask(move |api| api.set_logging_level(&level.logger, &level.level)).await
}

/// Lets axum accept from a listener of `env`.
pub(super) struct Accept(pub(super) Box<dyn Listener>);

/// A connection of `env` with a type of its own.
pub(super) struct Connection(Box<dyn Stream>);

impl axum::serve::Listener for Accept {
    type Io = Connection;
    type Addr = SocketAddr;

    /// Errors of single connections are theirs: the next one may come.
    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match env::accept(self.0.as_mut()).await {
                Ok((stream, peer)) => return (Connection(stream), peer),
                Err(error) => tracing::warn!(%error, "admin port: cannot accept a connection"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_address()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        std::pin::Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_shutdown(context)
    }
}
