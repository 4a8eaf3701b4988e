//! The server side: one route for all verbs, one for `/metrics`, those of the console and of the
//! management API.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, Json, Path, Query, RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use env::{Env, Listener};
use serde::Deserialize;
use tls::Tls;

use super::access::Access;
use super::call_limits::{CallLength, CallLimits};
use super::caller::{self, Caller, CallerScope};
use super::connections::{self, Limits};
use super::console::{self, Console};
use super::management::{self, Jobs};
use super::secured::Accept;
use super::sessions::Sessions;
use crate::prometheus::{self, Form, Names};
use crate::verb::{AdminError, Effect, Result, ServedApi};

/// The parts that answers are made from.
#[derive(Clone)]
pub(super) struct HttpState {
    pub env: Env,
    pub api: Arc<dyn ServedApi>,
    pub console: Arc<dyn Console>,
    pub access: Arc<Access>,
    pub reach: CallerScope,
    /// Whether all connections are behind TLS.
    pub is_encrypted: bool,
    pub sessions: Arc<Sessions>,
    /// The jobs that the management API has begun.
    pub jobs: Arc<Jobs>,
    /// The threads that calls are made on.
    pub call_limits: Arc<CallLimits>,
    /// The bounds of connections.
    pub limits: Limits,
}

impl HttpState {
    /// Makes a call, which may block, on a thread for calls of operators.
    pub async fn call<T: Send + 'static>(
        &self,
        length: CallLength,
        call: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.call_limits.call(&self.env, length, call).await
    }
}

/// Serves until the future is dropped. Call it within the runtime of the ops thread.
pub async fn serve(
    env: Env,
    listener: Box<dyn Listener>,
    api: Arc<dyn ServedApi>,
    console: Arc<dyn Console>,
    access: Access,
    security: PortSecurity,
) -> io::Result<()> {
    serve_within(env, listener, api, console, access, security, Limits::default()).await
}

/// As [`serve`], with bounds of connections that a test chooses.
pub(super) async fn serve_within(
    env: Env,
    listener: Box<dyn Listener>,
    api: Arc<dyn ServedApi>,
    console: Arc<dyn Console>,
    access: Access,
    security: PortSecurity,
    limits: Limits,
) -> io::Result<()> {
    let PortSecurity { tls, reach } = security;
    let is_encrypted = tls.as_ref().is_some_and(|tls| !tls.is_optional());
    let sessions = Arc::new(Sessions::new(listener.local_address()?.port(), is_encrypted));
    let (access, jobs, call_limits) = (Arc::new(access), Arc::default(), Arc::default());
    let accept = Accept::new(env.clone(), listener, tls);
    let state = HttpState { env, api, console, access, reach, is_encrypted, sessions, jobs, call_limits, limits };
    connections::serve(accept, router(state), limits).await
}

/// How callers reach the port.
#[derive(Clone)]
pub struct PortSecurity {
    /// How connections are encrypted; None: they are not.
    pub tls: Option<Tls>,
    /// Where callers may be.
    pub reach: CallerScope,
}

impl PortSecurity {
    /// A loopback address without encryption.
    pub const OF_MACHINE: Self = Self { tls: None, reach: CallerScope::Machine };
}

/// All routes.
fn router(state: HttpState) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/api/{verb}", get(verb).post(verb))
        .merge(console::routes())
        .merge(management::routes())
        .with_state(state.clone())
        .layer(axum::middleware::from_fn_with_state(state, caller::identify))
}

/// Checks a call and makes it on a thread for such calls, as verbs may take as long as a
/// compaction.
async fn verb(
    State(state): State<HttpState>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    method: Method,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Response {
    let Some(effect) = state.api.effect(&name) else {
        return (StatusCode::NOT_FOUND, Json(AdminError::Invalid(format!("no verb {name}")))).into_response();
    };
    // a browser sends a GET for any page that asks for it, so nothing is changed by one
    if method != Method::POST && effect == Effect::Changes {
        let why = AdminError::Invalid(format!("{name} changes something: POST it"));
        return (StatusCode::METHOD_NOT_ALLOWED, Json(why)).into_response();
    }
    let allowed = match effect {
        Effect::Reads => Ok(()),
        Effect::Shows => caller::may_see(&state, &caller).await,
        Effect::Changes => caller::may_change(&state, &caller, &headers).await,
    };
    if let Err(error) = allowed {
        return refuse(&error);
    }
    let (api, length) = (Arc::clone(&state.api), CallLength::of_verb(&name));
    let call = move || {
        let request = match method {
            Method::POST => body.to_vec(),
            _ => api.query_json(&name, query.as_deref().unwrap_or_default())?,
        };
        api.call_json(&name, &request)
    };
    match state.call(length, call).await {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(error) => refuse(&error),
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
    /// The beginning of names of the management API, as Reaper asks; None: all.
    name: Option<String>,
}

async fn metrics(State(state): State<HttpState>, headers: HeaderMap, Query(query): Query<MetricsQuery>) -> Response {
    let names = match query.names.as_deref().map(|word| (word, Names::parse(word))) {
        None if query.name.is_some() => Names::ManagementApi,
        None => Names::default(),
        Some((_, Some(names))) => names,
        Some((word, None)) => {
            let why = format!("'{word}' are no names: helenus, jmx_exporter, cassandra_exporter, mcac, management_api");
            return refuse(&AdminError::Invalid(why));
        }
    };
    if query.name.is_some() && names != Names::ManagementApi {
        let why = "only the names management_api can be asked for by their beginning (name)".to_owned();
        return refuse(&AdminError::Invalid(why));
    }
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let form = if names == Names::Helenus { Form::of_accept(accept) } else { Form::Text };
    let (api, prefixes) = (Arc::clone(&state.api), Vec::from_iter(query.name));
    let collect = move || match names {
        Names::Helenus => prometheus::collect(api.as_ref(), form),
        other => prometheus::collect_as(api.as_ref(), other, &prefixes),
    };
    match state.call(CallLength::Short, collect).await {
        Ok(body) => ([(header::CONTENT_TYPE, form.content_type())], body).into_response(),
        Err(error) => refuse(&error),
    }
}
