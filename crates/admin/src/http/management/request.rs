//! A call of the management API, and its answer.

use axum::extract::Query;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::jobs::Jobs;
use crate::verb::{AdminApi, AdminError, Result, ServedApi, Verb};

/// A call.
pub(super) struct ManagementRequest<'a> {
    api: &'a dyn ServedApi,
    /// The jobs that have begun at this node.
    pub jobs: &'a Jobs,
    /// The parameters of the query string, in their order; a name may come several times.
    query: Vec<(String, String)>,
    /// The body; an empty object where there is none.
    body: Value,
}

impl<'a> ManagementRequest<'a> {
    /// Err: the query string or the body cannot be read.
    pub(super) fn new(api: &'a dyn ServedApi, jobs: &'a Jobs, uri: &Uri, body: &[u8]) -> Result<Self> {
        let query = Query::<Vec<(String, String)>>::try_from_uri(uri);
        let query = query.map_err(|error| AdminError::Invalid(format!("the query string cannot be read: {error}")))?;
        let body = match body.trim_ascii() {
            [] => json!({}),
            body => serde_json::from_slice(body)
                .map_err(|error| AdminError::Invalid(format!("the body is no JSON: {error}")))?,
        };
        Ok(Self { api, jobs, query: query.0, body })
    }

    /// Has the node do what a request says.
    pub(super) fn ask<V: Verb>(&self, request: &V) -> Result<V::Answer> {
        (self.api as &dyn AdminApi).ask(request)
    }

    /// A parameter of the query string; blank ones count as absent.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    /// All values of a parameter.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let of_name = self.query.iter().filter(move |(given, _)| given == name);
        of_name.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Whether a parameter says true.
    pub(super) fn switch(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The body as a request of the management API.
    pub(super) fn body<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_value(self.body.clone()).map_err(|error| AdminError::Invalid(error.to_string()))
    }
}

/// The answer of a call.
#[derive(PartialEq, Debug)]
pub(super) struct Answer {
    status: u16,
    body: Body,
}

#[derive(PartialEq, Debug)]
enum Body {
    Text(String),
    Json(Value),
}

impl Answer {
    pub(super) fn text(status: u16, text: impl Into<String>) -> Self {
        Self { status, body: Body::Text(text.into()) }
    }

    pub(super) fn json(status: u16, value: Value) -> Self {
        Self { status, body: Body::Json(value) }
    }

    /// The word with which the management API confirms a change.
    pub(super) fn ok() -> Self {
        Self::text(200, "OK")
    }

    /// A value in the envelope that the management API has around some of its answers.
    pub(super) fn entity(value: Value) -> Self {
        let media_type = json!({
            "type": "application", "subtype": "json", "parameters": {}, "wildcardType": false, "wildcardSubtype": false,
        });
        let variant = json!({
            "language": null, "mediaType": media_type, "encoding": null, "languageString": null,
        });
        Self::json(
            200,
            json!({
                "entity": value, "variant": variant, "annotations": [], "mediaType": media_type, "language": null,
                "encoding": null,
            }),
        )
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        match self.body {
            Body::Text(text) => (status, text).into_response(),
            Body::Json(value) => {
                (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
            }
        }
    }
}
