//! Two checks of a call on the admin port: the name by which the port is called, and the node's
//! token.
//!
//! The port listens on a loopback address unless it is told otherwise, and every program and every
//! browser of the machine reaches it there. Two checks keep web pages and other users of the
//! machine from changing the node:
//!
//! 1. **Host.** A web page can have its own name point to 127.0.0.1 (DNS rebinding) and would then
//!    be of the same origin as the port. A browser sends the page's name as `Host`, so a request is
//!    refused (403) unless `Host` is an IP address or `localhost`: an address is not looked up and
//!    cannot be rebound. A request without `Host` does not come from a browser.
//! 2. **Token.** A verb that changes something ([`Effect::Changes`]) needs the header
//!    `Authorization: Bearer TOKEN` (401). The token stands in a file that only the node's user can
//!    read ([`super::TokenFile`]): who can read the file may write the node's data anyway.
//!
//! Where roles are on, a superuser's password does instead of the token, and a verb that shows
//! texts of users ([`Effect::Shows`]) needs a login: [`super::caller`].

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Json, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::verb::AdminError;
#[cfg(doc)]
use crate::verb::Effect;

/// The token that a caller must show to change something.
#[derive(Clone, PartialEq, Eq)]
pub enum Access {
    /// The token, in hexadecimal digits.
    Token(String),
    /// Nothing may be changed, for this reason.
    ReadOnly(String),
}

impl Access {
    /// Whether anything may be changed by who shows the token.
    pub(super) fn check_changeable(&self) -> Result<(), AdminError> {
        match self {
            Self::Token(_) => Ok(()),
            Self::ReadOnly(why) => Err(AdminError::Unauthorized(format!("nothing can be changed here: {why}"))),
        }
    }

    /// Whether a request with these headers shows the token.
    pub(super) fn check_token(&self, headers: &HeaderMap) -> Result<(), AdminError> {
        let wanted = match self {
            Self::Token(token) => token,
            Self::ReadOnly(why) => return Err(AdminError::Unauthorized(format!("nothing can be changed here: {why}"))),
        };
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        match shown.and_then(token_of) {
            Some(shown) if is_same(shown.trim().as_bytes(), wanted.as_bytes()) => Ok(()),
            Some(_) => Err(AdminError::Unauthorized("this is not the token of this start of the node".to_owned())),
            None => Err(AdminError::Unauthorized(
                "this verb changes something and needs the node's token: Authorization: Bearer TOKEN".to_owned(),
            )),
        }
    }
}

/// The token that a header shows: a bearer token, or the password of a user of any name, as clients
/// send it that are given a URL alone (`http://any:TOKEN@127.0.0.1:9180`).
fn token_of(shown: &str) -> Option<String> {
    if let Some(token) = shown.strip_prefix("Bearer ") {
        return Some(token.to_owned());
    }
    let credentials = BASE64_STANDARD.decode(shown.strip_prefix("Basic ")?.trim()).ok()?;
    let credentials = String::from_utf8(credentials).ok()?;
    credentials.split_once(':').map(|(_, password)| password.to_owned())
}

/// Compares in a time that does not tell how many bytes were right.
fn is_same(shown: &[u8], wanted: &[u8]) -> bool {
    let difference = shown.iter().zip(wanted).fold(0, |sum, (a, b)| sum | (a ^ b));
    shown.len() == wanted.len() && difference == 0
}

/// Refuses a request whose `Host` is a name that somebody else's name server may have given.
pub(super) async fn check_host(request: Request, next: Next) -> Response {
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    let host = request.headers().get(header::HOST).map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
    match authority.into_iter().chain(host).find(|host| !is_own_name(host)) {
        None => next.run(request).await,
        Some(other) => {
            let why = format!("the admin port is called by an IP address or as localhost, not as {other:?}");
            (StatusCode::FORBIDDEN, Json(AdminError::Unauthorized(why))).into_response()
        }
    }
}

/// Whether a host, with or without port, is an IP address or `localhost`.
fn is_own_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(address, _)| address),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.parse::<IpAddr>().is_ok() || name.trim_end_matches('.').eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_can_be_rebound_are_told_from_addresses() {
        for own in ["127.0.0.1", "127.0.0.1:9180", "localhost:9180", "LOCALHOST.", "[::1]:9180", "[::1]", "10.1.2.3:1"]
        {
            assert!(is_own_name(own), "{own}");
        }
        for other in
            ["evil.example:9180", "127.0.0.1.evil.example", "localhost.evil.example:9180", "", "[evil]", "[::1"]
        {
            assert!(!is_own_name(other), "{other}");
        }
    }
}
