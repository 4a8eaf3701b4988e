//! The caller of a request: nobody, a login of the console, a role with its password, or the
//! owner of the node's token.
//!
//! A role shows its password with each request (`Authorization: Basic`), as nodetool and Prometheus
//! do; where nobody logs in at the node, such a password is without effect. A port that other
//! machines reach ([`CallerScope::Network`]) answers callers that it knows, and to everybody
//! no more than the page, its login and the probes.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Json, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::access::check_host;
use super::call_limits::CallLength;
use super::server::{HttpState, refuse};
use crate::verb::{AdminError, Result};

/// Where callers of the port may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallerScope {
    /// On this machine: the port listens on a loopback address. Everybody may read.
    Machine,
    /// On any machine: readers must be known, too.
    Network {
        /// Whether TLS has let in nobody without a trusted certificate, which makes callers known.
        by_certificate: bool,
    },
}

/// The sender of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Caller {
    /// The request names nobody.
    Nobody,
    /// A user who has logged in at the console. A browser sends the session by itself, so that such
    /// a caller changes nothing.
    Session(Arc<str>),
    /// A user whose password came with the request.
    Login(Arc<str>),
    /// Somebody who can read the node's token file.
    Token,
}

/// Paths that answer everybody: the page, which shows nothing by itself, its login, and the probes.
const PUBLIC_PATHS: [&str; 10] = [
    "/",
    "/console.css",
    "/console.js",
    "/console/session",
    "/console/login",
    "/console/logout",
    "/healthz",
    "/readyz",
    "/api/v0/probes/liveness",
    "/api/v0/probes/readiness",
];

/// Longest body of a request, in bytes.
const BODY_SIZE_MAX: usize = 2 << 20;
/// Longest body of a request of a caller whom a port of the network does not know, in bytes: that
/// of a login. Each connection may hold one for as long as a body may take.
pub(super) const UNKNOWN_BODY_SIZE_MAX: usize = 64 << 10;
/// Longest body of a refused request that is read and dropped, in bytes.
const REFUSED_BODY_SIZE_MAX: usize = 64 << 10;
/// The time in which such a body must arrive.
const REFUSED_BODY_TIME: Duration = Duration::from_secs(2);

/// Refuses a request once its body has arrived. The HTTP server closes a connection whose request
/// nobody has read to its end. The caller's system drops an answer that it holds already when it
/// hears that bytes of the body came to a closed connection, and the caller would see a lost
/// connection in place of the reason.
async fn refuse_after_body(state: &HttpState, body: Body, error: &AdminError) -> Response {
    // whatever becomes of the body, the answer is the same
    let read = axum::body::to_bytes(body, REFUSED_BODY_SIZE_MAX);
    drop(state.env.timeout(REFUSED_BODY_TIME, read).await);
    refuse(error)
}

/// The whole body of a request, of `size_max` bytes at most. Err: the reason why it is not taken,
/// and the status that says so.
async fn read_body(state: &HttpState, body: Body, size_max: usize) -> std::result::Result<Bytes, (StatusCode, String)> {
    let read = axum::body::to_bytes(body, size_max);
    match state.env.timeout(state.limits.body, read).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let why = format!("the body is longer than {} KiB", size_max >> 10);
            Err((StatusCode::PAYLOAD_TOO_LARGE, why))
        }
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body has not come in time".to_owned())),
    }
}

/// Reads a request, finds out who has sent it, puts the [`Caller`] beside the request, and refuses
/// callers who are not what they say, or whom the port does not answer.
pub(super) async fn identify(State(state): State<HttpState>, request: Request, next: Next) -> Response {
    let is_public = PUBLIC_PATHS.contains(&request.uri().path());
    let caller = match caller(&state, request.headers()).await {
        Ok(caller) => caller,
        Err(_) if is_public => Caller::Nobody,
        Err(error) => return refuse_after_body(&state, request.into_body(), &error).await,
    };
    let is_known = caller != Caller::Nobody || state.reach != CallerScope::Network { by_certificate: false };
    if !is_known && !is_public {
        let why = "log in first: nodetool -u USER -pw PASSWORD, or Authorization: Basic";
        return refuse_after_body(&state, request.into_body(), &AdminError::Unauthorized(why.to_owned())).await;
    }
    let (parts, body) = request.into_parts();
    let size_max = if is_known { BODY_SIZE_MAX } else { UNKNOWN_BODY_SIZE_MAX };
    let body = match read_body(&state, body, size_max).await {
        Ok(body) => body,
        Err((status, why)) => return (status, Json(AdminError::Invalid(why))).into_response(),
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    request.extensions_mut().insert(caller);
    // a browser that speaks TLS has compared the name with the certificate
    match state.is_encrypted {
        true => next.run(request).await,
        false => check_host(request, next).await,
    }
}

async fn caller(state: &HttpState, headers: &HeaderMap) -> Result<Caller> {
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match shown.and_then(|shown| shown.split_once(' ')) {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("bearer") => {
            state.access.check_token(headers).map(|()| Caller::Token)
        }
        // the token as the password of a URL
        Some(_) if state.access.check_token(headers).is_ok() => Ok(Caller::Token),
        Some((scheme, encoded)) if scheme.eq_ignore_ascii_case("basic") && state.console.needs_login() => {
            let unreadable = || AdminError::Unauthorized("Authorization: Basic is not readable".to_owned());
            let (user, password) = credentials(encoded).ok_or_else(unreadable)?;
            let (console, name) = (Arc::clone(&state.console), Arc::from(user.as_str()));
            state.call(CallLength::Login, move || console.log_in(&user, &password)).await?;
            Ok(Caller::Login(name))
        }
        _ => Ok(state.sessions.user(&state.env, headers).map_or(Caller::Nobody, Caller::Session)),
    }
}

/// User and password as RFC 7617 has them.
fn credentials(encoded: &str) -> Option<(String, String)> {
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded.trim()).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// Whether a caller may see texts of users.
pub(super) async fn may_see(state: &HttpState, caller: &Caller) -> Result<()> {
    match caller {
        Caller::Token => Ok(()),
        Caller::Session(user) | Caller::Login(user) => {
            let (console, user) = (Arc::clone(&state.console), Arc::clone(user));
            state.call(CallLength::Login, move || console.may_see(&user)).await
        }
        Caller::Nobody if state.console.needs_login() => {
            Err(AdminError::Unauthorized("log in first, or show the node's token".to_owned()))
        }
        Caller::Nobody => Ok(()),
    }
}

/// Whether a caller may change something.
pub(super) async fn may_change(state: &HttpState, caller: &Caller, headers: &HeaderMap) -> Result<()> {
    match caller {
        Caller::Token => Ok(()),
        Caller::Login(user) => {
            let (console, user) = (Arc::clone(&state.console), Arc::clone(user));
            state.call(CallLength::Login, move || console.may_change(&user)).await
        }
        Caller::Nobody | Caller::Session(_) => state.access.check_token(headers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read() {
        let of = |text| credentials(text).map(|(user, password)| format!("{user}/{password}"));
        // from RFC 7617
        assert_eq!(of("QWxhZGRpbjpvcGVuIHNlc2FtZQ==").as_deref(), Some("Aladdin/open sesame"));
        assert_eq!(of("dGVzdDoxMjPCow==").as_deref(), Some("test/123£"));
        assert_eq!(of("YTpiOmM=").as_deref(), Some("a/b:c"));
        for broken in ["", "YWI=", "%%%", "/w=="] {
            assert_eq!(of(broken), None, "{broken}");
        }
    }
}
