//! The admin port of a node whose start takes long: `/metrics` says how far the replay of the
//! commit log is, `/` and `/healthz` answer as ever, everything else answers 503.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Json, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use env::{Env, Listener};

use super::access::check_host;
use super::caller::CallerScope;
use super::connections::{self, Limits};
use super::secured::Accept;
use super::server::PortSecurity;
use crate::prometheus;
use crate::verb::AdminError;
use crate::verbs::ReplayMetrics;

/// Gives how far the replay is.
pub type AskReplay = Arc<dyn Fn() -> ReplayMetrics + Send + Sync>;

/// Serves until the future is dropped. Call it within the runtime of the ops thread.
pub async fn serve_starting(
    env: Env,
    listener: Box<dyn Listener>,
    ask: AskReplay,
    security: PortSecurity,
) -> io::Result<()> {
    let accept = Accept::new(env, listener, security.tls);
    connections::serve(accept, router(ask, security.reach), Limits::default()).await
}

/// Nobody can log in yet, so that other machines get no figures.
pub(super) fn router(ask: AskReplay, reach: CallerScope) -> Router {
    let router = Router::new().merge(super::console::page()).fallback(starting);
    match reach {
        CallerScope::Machine => router.route("/metrics", get(metrics)).layer(axum::middleware::from_fn(check_host)),
        CallerScope::Network { .. } => router,
    }
    .with_state(ask)
}

async fn metrics(State(ask): State<AskReplay>) -> Response {
    ([(header::CONTENT_TYPE, prometheus::Form::Text.content_type())], prometheus::replay(&ask())).into_response()
}

async fn starting() -> Response {
    let error = AdminError::Failed("the node is starting: it replays its commit log (/metrics)".to_owned());
    (StatusCode::SERVICE_UNAVAILABLE, Json(error)).into_response()
}
