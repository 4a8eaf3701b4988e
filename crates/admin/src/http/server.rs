//! The server side: one route for all verbs, one for `/metrics`, those of the console and of the
//! management API.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Json, Path, Query, RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use env::{Env, Listener, Stream};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};

use super::access::{Access, check_host};
use super::console::{self, Console};
use super::management::{self, Jobs};
use super::sessions::Sessions;
use crate::prometheus::{self, Form, Names};
use crate::verb::{AdminError, Effect, ServedApi};

/// The parts that answers are made from.
#[derive(Clone)]
pub(super) struct Served {
    pub env: Env,
    pub api: Arc<dyn ServedApi>,
    pub console: Arc<dyn Console>,
    pub access: Arc<Access>,
    pub sessions: Arc<Sessions>,
    /// The jobs that the management API has begun.
    pub jobs: Arc<Jobs>,
}

/// Serves until the future is dropped. Call it within the runtime of the ops thread.
pub async fn serve(
    env: Env,
    listener: Box<dyn Listener>,
    api: Arc<dyn ServedApi>,
    console: Arc<dyn Console>,
    access: Access,
) -> io::Result<()> {
    let sessions = Arc::new(Sessions::new(listener.local_address()?.port()));
    let served = Served { env, api, console, access: Arc::new(access), sessions, jobs: Arc::default() };
    axum::serve(Accept(listener), router(served)).await
}

/// All routes.
fn router(served: Served) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/api/{verb}", get(verb).post(verb))
        .merge(console::routes())
        .merge(management::routes())
        .with_state(served)
        .layer(axum::middleware::from_fn(check_host))
}

/// Checks a call and makes it on the blocking pool, as verbs may take as long as a compaction.
async fn verb(
    State(served): State<Served>,
    Path(name): Path<String>,
    method: Method,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Response {
    let Some(effect) = served.api.effect(&name) else {
        return (StatusCode::NOT_FOUND, Json(AdminError::Invalid(format!("no verb {name}")))).into_response();
    };
    // a browser sends a GET for any page that asks for it, so nothing is changed by one
    if method != Method::POST && effect == Effect::Changes {
        let why = AdminError::Invalid(format!("{name} changes something: POST it"));
        return (StatusCode::METHOD_NOT_ALLOWED, Json(why)).into_response();
    }
    let allowed = match effect {
        Effect::Shows => console::may_see(&served, &headers).await,
        Effect::Reads | Effect::Changes => served.access.check(effect, &headers),
    };
    if let Err(error) = allowed {
        return refuse(&error);
    }
    let api = served.api;
    let call = move || {
        let request = match method {
            Method::POST => body.to_vec(),
            _ => api.query_json(&name, query.as_deref().unwrap_or_default())?,
        };
        api.call_json(&name, &request)
    };
    match served.env.blocking("admin", call).await {
        Ok(Ok(json)) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Ok(Err(error)) => refuse(&error),
        Err(full) => refuse(&AdminError::Failed(full.to_string())),
    }
}

/// An error as an answer.
pub(super) fn refuse(error: &AdminError) -> Response {
    let status = match error {
        AdminError::Invalid(_) => StatusCode::BAD_REQUEST,
        AdminError::Unauthorized(_) => StatusCode::UNAUTHORIZED,
        AdminError::Failed(_) | AdminError::Unreachable(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, Json(error)).into_response()
}

/// The names that a scrape asks for.
#[derive(Deserialize)]
struct MetricsQuery {
    names: Option<String>,
}

async fn metrics(State(served): State<Served>, headers: HeaderMap, Query(query): Query<MetricsQuery>) -> Response {
    let names = match query.names.as_deref().map(|word| (word, Names::parse(word))) {
        None => Names::default(),
        Some((_, Some(names))) => names,
        Some((word, None)) => {
            let why = format!("'{word}' are no names: helenus, jmx_exporter, cassandra_exporter, mcac");
            return refuse(&AdminError::Invalid(why));
        }
    };
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let form = if names == Names::Helenus { Form::of_accept(accept) } else { Form::Text };
    let api = served.api;
    let collect = move || match names {
        Names::Helenus => prometheus::collect(api.as_ref(), form),
        other => prometheus::collect_as(api.as_ref(), other),
    };
    match served.env.blocking("metrics", collect).await {
        Ok(Ok(body)) => ([(header::CONTENT_TYPE, form.content_type())], body).into_response(),
        Ok(Err(error)) => refuse(&error),
        Err(full) => refuse(&AdminError::Failed(full.to_string())),
    }
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
