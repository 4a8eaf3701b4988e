//! The management API of K8ssandra, for Medusa, Reaper and operators: the paths below `/api/v0`,
//! `/api/v1` and `/api/v2` of the admin port.
//!
//! [`ENDPOINTS`] is the table of all paths of that API. Each is answered by verbs of this node
//! ([`reads`], [`changes`], [`repairs`], [`cluster_probe`]), or refused with what to use instead
//! (501). Work that is answered with the id of a job goes on in [`jobs`]. Paths, fields and codes
//! agree with `management-api-for-apache-cassandra`; an error is a line of text, as there.
//!
//! A call that changes the node needs the token, as everywhere on this port ([`super::access`]):
//! as a bearer token, or as the password of a URL (`http://any:TOKEN@…`), which is all that Medusa
//! can be given. Reaper can send neither: `management_api_without_token_enabled` lets programs of
//! this machine in without a token. A browser is told by its headers and never is let in so.
//!
//! docs/management-api.md has the table for users; a test holds both together.

mod changes;
mod cluster_probe;
mod jobs;
mod reads;
mod repairs;
mod request;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;

pub(super) use self::jobs::Jobs;
pub(super) use self::reads::is_ready;
use self::request::{Answer, ManagementRequest};
use super::call_limits::CallLength;
use super::caller::{self, Caller, CallerScope};
use super::server::HttpState;
use crate::verb::{AdminError, Result};

/// The treatment of an endpoint.
#[derive(Clone, Copy)]
enum EndpointAction {
    /// The endpoint asks nothing of the node. It is answered without a thread for calls of
    /// operators, of which a disk that stalls may leave none.
    Answers(fn() -> Answer),
    /// The endpoint reads, and needs no token.
    Reads(fn(&ManagementRequest<'_>) -> Result<Answer>),
    /// The endpoint changes the node, and answers when that is done.
    Changes(fn(&ManagementRequest<'_>) -> Result<Answer>),
    /// As `Changes`, and that may take hours.
    Lasts(fn(&ManagementRequest<'_>) -> Result<Answer>),
    /// The endpoint changes the node, and answers at once with the id of a job, which has this
    /// type.
    Begins(&'static str, fn(&ManagementRequest<'_>) -> Result<()>),
    /// The endpoint is refused, and the sentence says what to use.
    Refused(&'static str),
}

/// A path of the management API.
struct Endpoint {
    method: &'static str,
    path: &'static str,
    action: EndpointAction,
    /// How the answer differs from the management API's; empty: not at all.
    #[cfg_attr(not(test), expect(dead_code, reason = "the document says it, and its test reads it"))]
    differs: &'static str,
}

const CQL: &str = "say it in CQL, with helenus shell or a driver";
const START: &str = "systemd or Kubernetes starts and stops the process";

macro_rules! endpoints {
    ($($method:ident $path:literal $action:expr, $differs:literal;)*) => {
        /// All paths of the management API.
        const ENDPOINTS: &[Endpoint] =
            &[$(Endpoint { method: stringify!($method), path: $path, action: $action, differs: $differs }),*];
    };
}

use EndpointAction::{Answers, Begins, Changes, Lasts, Reads, Refused};

endpoints! {
    // method, path, what it does, how it differs
    GET "/api/v0/probes/liveness" Answers(reads::liveness), "";
    GET "/api/v0/probes/readiness" Reads(reads::readiness), "not while the node drains or leaves";
    GET "/api/v0/probes/cluster" Reads(cluster_probe::check), "";
    GET "/api/v0/lifecycle/pid" Reads(reads::pid), "";
    POST "/api/v0/lifecycle/start" Refused(START), "";
    POST "/api/v0/lifecycle/stop" Refused(START), "";
    POST "/api/v0/lifecycle/configure" Refused("a file cassandra.yaml or options configure the node"), "";
    GET "/api/v0/metadata/versions/release" Reads(reads::release), "";
    GET "/api/v0/metadata/versions/features" Reads(reads::features), "`mgmt_version` is that of Helenus";
    GET "/api/v0/metadata/endpoints" Reads(reads::endpoints), "";
    GET "/api/v0/metadata/localdc" Reads(reads::local_data_center), "";
    POST "/api/v0/ops/seeds/reload" Changes(changes::reload_seeds), "";
    GET "/api/v0/ops/executor/job" Reads(jobs::job), "the last 100 jobs, and the repairs that the node knows";
    GET "/api/v0/ops/auth/role" Refused(CQL), "";
    POST "/api/v0/ops/auth/role" Refused(CQL), "";
    DELETE "/api/v0/ops/auth/role" Refused(CQL), "";
    POST "/api/v1/ops/auth/identity_to_role" Refused("there is no mutual TLS authenticator"), "";
    DELETE "/api/v1/ops/auth/identity_to_role" Refused("there is no mutual TLS authenticator"), "";

    GET "/api/v0/ops/keyspace" Reads(reads::keyspaces), "";
    GET "/api/v0/ops/keyspace/replication" Reads(reads::replication), "";
    POST "/api/v0/ops/keyspace/create" Refused(CQL), "";
    POST "/api/v0/ops/keyspace/alter" Refused(CQL), "";
    POST "/api/v0/ops/keyspace/refresh" Lasts(changes::refresh), "";
    POST "/api/v0/ops/keyspace/cleanup" Lasts(changes::cleanup_now), "";
    POST "/api/v1/ops/keyspace/cleanup" Begins("CLEANUP", changes::cleanup), "";

    GET "/api/v0/ops/tables" Reads(reads::table_names), "";
    GET "/api/v1/ops/tables" Reads(reads::tables), "";
    POST "/api/v0/ops/tables/create" Refused(CQL), "";
    POST "/api/v0/ops/tables/flush" Lasts(changes::flush_now), "";
    POST "/api/v1/ops/tables/flush" Begins("FLUSH", changes::flush), "";
    POST "/api/v0/ops/tables/compact" Lasts(changes::compact_now), "";
    POST "/api/v1/ops/tables/compact" Begins("COMPACTION", changes::compact), "";
    GET "/api/v1/ops/tables/compactions" Reads(reads::compactions), "no paths: `sstables` and `targetDirectory` are empty";
    POST "/api/v0/ops/tables/scrub" Lasts(changes::scrub_now), "`reinsert_overflowed_ttl` is refused";
    POST "/api/v1/ops/tables/scrub" Begins("SCRUB", changes::scrub), "`reinsert_overflowed_ttl` is refused";
    POST "/api/v0/ops/tables/garbagecollect" Lasts(changes::collect_now), "";
    POST "/api/v1/ops/tables/garbagecollect" Begins("GARBAGE_COLLECT", changes::collect), "";
    POST "/api/v0/ops/tables/sstables/upgrade" Lasts(changes::upgrade_now), "";
    POST "/api/v1/ops/tables/sstables/upgrade" Begins("UPGRADE_SSTABLES", changes::upgrade), "";

    GET "/api/v0/ops/node/snapshots" Reads(reads::snapshots), "";
    POST "/api/v0/ops/node/snapshots" Lasts(changes::take_snapshot), "";
    DELETE "/api/v0/ops/node/snapshots" Changes(changes::clear_snapshots), "";
    GET "/api/v0/ops/node/streaminfo" Reads(reads::streams), "the sessions that run";
    POST "/api/v0/ops/node/drain" Changes(changes::drain), "";
    POST "/api/v0/ops/node/decommission" Lasts(changes::decommission_now), "";
    POST "/api/v1/ops/node/decommission" Begins("decommission", changes::decommission), "";
    POST "/api/v1/ops/node/rebuild" Begins("rebuild", changes::rebuild), "";
    POST "/api/v0/ops/node/move" Begins("move", changes::move_to), "";
    POST "/api/v0/ops/node/assassinate" Changes(changes::assassinate), "";
    POST "/api/v0/ops/node/compaction" Changes(changes::set_compaction_throughput), "";
    POST "/api/v0/ops/node/logging" Changes(changes::set_logging_level), "loggers are those of `nodetool getlogginglevels`";
    POST "/api/v0/ops/node/hints/truncate" Changes(changes::truncate_hints), "";
    POST "/api/v0/ops/node/schema/reload" Changes(changes::nothing), "nothing is to be done: the schema in memory follows its tables";
    POST "/api/v0/ops/node/schema/reset" Refused("a node fetches the schema of the others by itself as soon as its version differs"), "";
    GET "/api/v1/ops/node/schema/versions" Reads(reads::schema_versions), "";
    GET "/api/v0/ops/node/fullquerylogging" Reads(reads::full_query_log), "always false";
    POST "/api/v0/ops/node/fullquerylogging" Refused("there is no full query log: nodetool profileload samples queries"), "";
    POST "/api/v0/ops/node/search/rebuildIndex" Changes(changes::of_dse), "";
    POST "/api/v0/ops/node/encryption/internode/truststore/reload" Changes(changes::of_dse), "";

    POST "/api/v0/ops/node/repair" Changes(repairs::begin_v0), "";
    POST "/api/v1/ops/node/repair" Changes(repairs::begin_v1), "";
    PUT "/api/v2/repairs" Changes(repairs::begin_v2), "";
    DELETE "/api/v2/repairs" Changes(repairs::stop), "";
    GET "/api/v2/tokens/rangetoendpoint" Reads(reads::ranges), "";
}

/// The routes of the management API.
pub(super) fn routes() -> Router<HttpState> {
    Router::new()
        .route("/api/v0/{*path}", any(answer))
        .route("/api/v1/{*path}", any(answer))
        .route("/api/v2/{*path}", any(answer))
}

async fn answer(
    State(state): State<HttpState>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path().trim_end_matches('/');
    let of_path = ENDPOINTS.iter().filter(|endpoint| endpoint.path == path);
    let Some(endpoint) = of_path.clone().find(|endpoint| endpoint.method == method.as_str()) else {
        return match of_path.count() {
            0 => text(StatusCode::NOT_FOUND, format!("the management API has no path {path}")),
            _ => text(StatusCode::METHOD_NOT_ALLOWED, format!("{path} does not take {method}")),
        };
    };
    let changes =
        matches!(endpoint.action, EndpointAction::Changes(_) | EndpointAction::Lasts(_) | EndpointAction::Begins(..));
    if changes && let Err(error) = may_change(&state, &caller, &headers).await {
        return text(StatusCode::UNAUTHORIZED, error.message().to_owned());
    }
    let (api, env, jobs) = (Arc::clone(&state.api), state.env.clone(), Arc::clone(&state.jobs));
    let action = endpoint.action;
    let length = if matches!(action, EndpointAction::Lasts(_)) { CallLength::Lasting } else { CallLength::Short };
    let call = move || match action {
        EndpointAction::Answers(answer) => Ok(answer()),
        EndpointAction::Refused(why) => Ok(Answer::text(501, format!("not here: {why}"))),
        EndpointAction::Reads(ask) | EndpointAction::Changes(ask) | EndpointAction::Lasts(ask) => {
            ask(&ManagementRequest::new(&*api, &jobs, &uri, &body)?)
        }
        EndpointAction::Begins(kind, work) => jobs::begin(&env, &api, &jobs, (kind, work), (&uri, &body)),
    };
    let answered = match action {
        EndpointAction::Answers(_) => call(),
        _ => state.call(length, call).await,
    };
    match answered {
        Ok(answer) => answer.into_response(),
        Err(AdminError::Invalid(why)) => text(StatusCode::BAD_REQUEST, why),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.message().to_owned()),
    }
}

/// Whether a call may change the node.
async fn may_change(state: &HttpState, caller: &Caller, headers: &HeaderMap) -> Result<()> {
    let is_of_browser = headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site");
    let is_open = state.console.is_managed_without_token() && state.reach == CallerScope::Machine;
    if is_open && !is_of_browser && !headers.contains_key(header::AUTHORIZATION) {
        return state.access.check_changeable();
    }
    caller::may_change(state, caller, headers).await
}

fn text(status: StatusCode, text: String) -> Response {
    (status, text).into_response()
}

#[cfg(test)]
mod tests;
