//! The client side: [`AdminApi`] of a node that listens somewhere else. Used by nodetool only.

use std::any::Any;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use env::Env;
use ureq::Agent;

use super::token_file;
use crate::verb::{AdminApi, AdminError, Call, Effect, Result};
use crate::verbs::GetTokenFile;

/// How long to wait for a connection. Answers may take as long as a compaction.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer that is read.
const ANSWER_SIZE_MAX: u64 = 256 << 20;

/// The node that a client speaks to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeAddress {
    /// Name or address of the node.
    pub host: String,
    /// Its admin port.
    pub port: u16,
    /// The file with the node's token; None: the node says where it is, which helps on the node's
    /// machine.
    pub token_file: Option<PathBuf>,
}

/// A node at an address.
pub struct Client {
    env: Env,
    agent: Agent,
    base: String,
    address: NodeAddress,
    /// The node's token, read when the first verb that changes something is called.
    token: OnceLock<String>,
}

impl Client {
    /// For the admin port of a node. Nothing is sent yet.
    pub fn new(env: Env, address: NodeAddress) -> Self {
        let host = if address.host.contains(':') { format!("[{}]", address.host) } else { address.host.clone() };
        let config = Agent::config_builder().timeout_connect(Some(CONNECT_TIMEOUT)).http_status_as_error(false).build();
        let base = format!("http://{host}:{}", address.port);
        Self { env, agent: config.into(), base, address, token: OnceLock::new() }
    }

    /// The text of a path with these headers: status and body.
    #[cfg(test)]
    pub fn raw_get(&self, path: &str, headers: &[(&str, &str)]) -> Option<(u16, String)> {
        let request = headers.iter().fold(self.agent.get(format!("{}{path}", self.base)), |request, (name, value)| {
            request.header(*name, *value)
        });
        let mut response = request.call().ok()?;
        Some((response.status().as_u16(), response.body_mut().read_to_string().ok()?))
    }

    /// Makes a call of any method: status and body.
    #[cfg(test)]
    pub fn raw_call(&self, method: &str, path: &str, body: &str, headers: &[(&str, &str)]) -> Option<(u16, String)> {
        let request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let sent = match method {
            "POST" | "PUT" => self.agent.run(request.body(body.to_owned()).ok()?),
            _ => self.agent.run(request.body(()).ok()?),
        };
        let mut response = sent.ok()?;
        Some((response.status().as_u16(), response.body_mut().read_to_string().ok()?))
    }

    /// The content type and the bytes of a path.
    #[cfg(test)]
    pub fn raw_bytes(&self, path: &str, headers: &[(&str, &str)]) -> Option<(String, Vec<u8>)> {
        let request = self.agent.get(format!("{}{path}", self.base));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let mut response = request.call().ok()?;
        let kind = response.headers().get("Content-Type").and_then(|value| value.to_str().ok()).map(str::to_owned);
        Some((kind?, response.body_mut().read_to_vec().ok()?))
    }

    /// Posts a text: status and body.
    #[cfg(test)]
    pub fn raw_post(&self, path: &str, body: &str, headers: &[(&str, &str)]) -> Option<(u16, String)> {
        let (status, body, _) = self.raw_post_headers(path, body, headers)?;
        Some((status, body))
    }

    /// Posts a text, as JSON if the headers do not say otherwise: status, body and cookie.
    #[cfg(test)]
    pub fn raw_post_headers(
        &self,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Option<(u16, String, Option<String>)> {
        let mut request = self.agent.post(format!("{}{path}", self.base));
        if headers.iter().all(|(name, _)| *name != "Content-Type") {
            request = request.header("Content-Type", "application/json");
        }
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let mut response = request.send(body).ok()?;
        let cookie = response.headers().get("Set-Cookie").and_then(|value| value.to_str().ok()).map(str::to_owned);
        Some((response.status().as_u16(), response.body_mut().read_to_string().ok()?, cookie))
    }

    fn token(&self) -> Result<&str> {
        if let Some(token) = self.token.get() {
            return Ok(token);
        }
        let read = match &self.address.token_file {
            Some(path) => token_file::read(&self.env, path, None),
            None => match (self as &dyn AdminApi).ask(&GetTokenFile {})? {
                Some(path) => token_file::read(&self.env, path.as_ref(), Some(self.address.port)),
                None => {
                    return Err(AdminError::Failed("the node has no token file: nothing can be changed".to_owned()));
                }
            },
        };
        let unreadable = |why| {
            AdminError::Failed(format!(
                "this verb changes something and needs the node's token, which cannot be read here: {why} \
                 (run nodetool as the node's user, or give --token-file)"
            ))
        };
        let token = read.map_err(unreadable)?;
        Ok(self.token.get_or_init(|| token))
    }

    fn answer(&self, sent: std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<String> {
        let unreachable =
            |error: ureq::Error| AdminError::Unreachable(format!("Failed to connect to '{}' - {error}", self.base));
        let mut response = sent.map_err(unreachable)?;
        let is_ok = response.status().is_success();
        let text = response.body_mut().with_config().limit(ANSWER_SIZE_MAX).read_to_string().map_err(unreachable)?;
        if is_ok {
            return Ok(text);
        }
        Err(serde_json::from_str(&text)
            .unwrap_or_else(|_| AdminError::Failed(format!("{}: {text}", response.status()))))
    }
}

impl AdminApi for Client {
    fn call(&self, call: &Call<'_>) -> Result<Box<dyn Any>> {
        let path = format!("{}/api/{}", self.base, call.name);
        let mut request = self.agent.post(path).header("Content-Type", "application/json");
        if call.effect != Effect::Reads {
            request = request.header("Authorization", format!("Bearer {}", self.token()?));
        }
        call.answer_of_json(&self.answer(request.send(call.request_json()?))?)
    }
}
