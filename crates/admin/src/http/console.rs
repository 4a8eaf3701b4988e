//! The console: one page at `/`, its style and script, and the requests that only the page makes.
//!
//! | path | |
//! |---|---|
//! | `GET /`, `/console.css`, `/console.js` | the page; its figures come from `/api` |
//! | `GET /console/session` | who is logged in or has to, and whether queries are allowed |
//! | `POST /console/login`, `/console/logout` | begins and ends a session ([`super::sessions`]) |
//! | `POST /console/query` | a statement that only reads, where `console_queries_enabled` is set |
//! | `POST /console/sample` | the busiest partitions over [`SAMPLE_MILLIS`] |
//! | `GET /healthz`, `/readyz` | the process answers; clients are served, no drain is on |
//!
//! The page has no inline script or style, loads nothing from elsewhere and may not be framed: its
//! Content-Security-Policy says so. A POST must come as `application/json`, which a page of another
//! origin cannot send without being allowed to, and nobody is.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Json, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};

use super::call_limits::CallLength;
use super::caller::{self, Caller};
use super::management;
use super::server::{HttpState, refuse};
use crate::verb::{AdminApi, AdminError, Result};
use crate::verbs::{GetNode, SAMPLERS, SampleRequest};

const PAGE: &str = include_str!("console/page.html");
const STYLE: &str = include_str!("console/style.css");
const SCRIPT: &str = include_str!("console/script.js");

/// Bytes of the page with its style and script.
const SIZE_MAX: usize = 300_000;
const _: () = assert!(PAGE.len() + STYLE.len() + SCRIPT.len() < SIZE_MAX, "the page stays small");

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// How long busy partitions are counted.
const SAMPLE_MILLIS: u64 = 2_000;
/// Partitions of each list.
const SAMPLE_COUNT: usize = 20;
/// Items that are counted for each list; more make the counts exacter.
const SAMPLE_CAPACITY: usize = 256;

/// The node's side of the console.
pub trait Console: Send + Sync {
    /// Whether clients log in.
    fn needs_login(&self) -> bool;
    /// Whether statements that read are allowed.
    fn queries_enabled(&self) -> bool;
    /// Whether programs of this machine change the node by the management API without the token
    /// (`management_api_without_token_enabled`).
    fn is_managed_without_token(&self) -> bool;
    /// Checks a password. Blocks.
    fn log_in(&self, user: &str, password: &str) -> Result<()>;
    /// Whether a user may still log in, and may see texts of other users. Blocks.
    fn may_see(&self, user: &str) -> Result<()>;
    /// Whether a user whose password came with a request may change the node. Blocks.
    fn may_change(&self, user: &str) -> Result<()>;
    /// Carries out a statement that reads. Without a user nobody logs in. Blocks.
    fn query(&self, user: Option<&str>, query: &str) -> Result<Table>;
}

/// The rows of a statement.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Names of the columns, each with its type.
    pub columns: Vec<(String, String)>,
    /// The values as text; None: null.
    pub rows: Vec<Vec<Option<String>>>,
    /// Whether there are more rows than are shown.
    pub has_more: bool,
    /// Warnings of the statement.
    pub warnings: Vec<String>,
    /// Microseconds that the statement took.
    pub micros: u64,
}

#[derive(Serialize)]
struct Session {
    needs_login: bool,
    user: Option<String>,
    queries_enabled: bool,
}

#[derive(Deserialize)]
struct Login {
    user: String,
    password: String,
}

#[derive(Deserialize)]
struct Query {
    query: String,
}

/// The routes of the console.
pub(super) fn routes() -> Router<HttpState> {
    page()
        .route("/console/session", get(session))
        .route("/console/login", post(log_in))
        .route("/console/logout", post(log_out))
        .route("/console/query", post(query))
        .route("/console/sample", post(sample))
        .route("/readyz", get(ready))
}

/// The page alone, and `/healthz`: of a node that starts, too.
pub(super) fn page<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(|| file("text/html; charset=utf-8", PAGE)))
        .route("/console.css", get(|| file("text/css; charset=utf-8", STYLE)))
        .route("/console.js", get(|| file("text/javascript; charset=utf-8", SCRIPT)))
        .route("/healthz", get(|| async { "ok\n" }))
}

async fn file(kind: &'static str, text: &'static str) -> Response {
    let headers: [(HeaderName, &str); 5] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

async fn session(State(state): State<HttpState>, headers: HeaderMap) -> Response {
    let user = state.sessions.user(&state.env, &headers).map(|user| user.to_string());
    let console = &state.console;
    let (needs_login, queries_enabled) = (console.needs_login(), console.queries_enabled());
    Json(Session { needs_login, user, queries_enabled }).into_response()
}

async fn log_in(State(state): State<HttpState>, Json(login): Json<Login>) -> Response {
    if !state.console.needs_login() {
        return refuse(&AdminError::Invalid("nobody logs in at this node".to_owned()));
    }
    let console = Arc::clone(&state.console);
    let user = login.user.clone();
    match state.call(CallLength::Login, move || console.log_in(&login.user, &login.password)).await {
        Ok(()) => ([(header::SET_COOKIE, state.sessions.begin(&state.env, &user))], Json(())).into_response(),
        Err(error) => refuse(&error),
    }
}

/// The body must be JSON here as well: a page of another origin ends no session.
async fn log_out(State(state): State<HttpState>, headers: HeaderMap, Json(()): Json<()>) -> Response {
    ([(header::SET_COOKIE, state.sessions.end(&headers))], Json(())).into_response()
}

async fn query(State(state): State<HttpState>, headers: HeaderMap, Json(query): Json<Query>) -> Response {
    let console = Arc::clone(&state.console);
    if !console.queries_enabled() {
        let why = "queries are off here: start the node with console_queries_enabled: true";
        return (StatusCode::FORBIDDEN, Json(AdminError::Unauthorized(why.to_owned()))).into_response();
    }
    let user = state.sessions.user(&state.env, &headers);
    if console.needs_login() && user.is_none() {
        return refuse(&AdminError::Unauthorized("log in first".to_owned()));
    }
    answer(state.call(CallLength::Short, move || console.query(user.as_deref(), &query.query)).await)
}

async fn sample(State(state): State<HttpState>, Extension(caller): Extension<Caller>, Json(()): Json<()>) -> Response {
    if let Err(error) = caller::may_see(&state, &caller).await {
        return refuse(&error);
    }
    let request = SampleRequest {
        keyspace: None,
        table: None,
        duration_millis: SAMPLE_MILLIS,
        capacity: SAMPLE_CAPACITY,
        count: SAMPLE_COUNT,
        samplers: SAMPLERS.iter().map(|sampler| sampler.name.to_owned()).collect(),
    };
    let api = Arc::clone(&state.api);
    answer(state.call(CallLength::Lasting, move || (&*api as &dyn AdminApi).ask(&request)).await)
}

/// Clients are served, and the node is not about to stop.
async fn ready(State(state): State<HttpState>) -> Response {
    let api = Arc::clone(&state.api);
    let node = match state.call(CallLength::Short, move || (&*api as &dyn AdminApi).ask(&GetNode {})).await {
        Ok(node) => node,
        Err(error) => return refuse(&error),
    };
    match management::is_ready(&node) {
        true => "ready\n".into_response(),
        false => {
            let clients = if node.native_transport_active { "served" } else { "not served" };
            let why = format!("not ready: the node is {}, clients are {clients}\n", node.mode);
            (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
        }
    }
}

fn answer<T: Serialize>(result: Result<T>) -> Response {
    match result {
        Ok(value) => Json(value).into_response(),
        Err(error) => refuse(&error),
    }
}
