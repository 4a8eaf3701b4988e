//! The client side: [`AdminApi`] of a node that listens somewhere else. Used by nodetool and by
//! those tools that ask nodes as nodetool does.

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use env::Env;
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PemItem, RootCerts, TlsConfig, parse_pem};

use super::token_file;
use crate::verb::{AdminApi, AdminError, Call, Effect, Result};
use crate::verbs::GetTokenFile;

/// How long to wait for a connection. Answers may take as long as a compaction.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a probe may take: less than a health check of the container image waits.
const PROBE_TIMEOUT: Duration = Duration::from_secs(4);
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
    /// The login of the caller; None: nobody in particular. Without effect where nobody logs in at
    /// the node.
    pub login: Option<Login>,
    /// The encryption of the connection; None: there is none.
    pub tls: Option<ClientTls>,
}

/// A role with its password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Login {
    /// The name of the role.
    pub user: String,
    /// The password.
    pub password: Password,
}

/// A password, or where it stands.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// The password itself.
    Text(String),
    /// A file with lines of a user and a password, as JMX has them.
    File(PathBuf),
}

/// A password is a secret, so it is not printed.
impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::File(path) => write!(f, "File({path:?})"),
        }
    }
}

/// Files of an encrypted connection, all of them PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientTls {
    /// The authorities that sign the node's certificate. The certificate must name the host, too.
    pub trusted: PathBuf,
    /// Key and certificate to show, for a node that asks for them; None: there are none.
    pub identity: Option<PathBuf>,
}

/// Longest file of keys, certificates or passwords.
const FILE_SIZE_MAX: u64 = 1 << 20;

/// A node at an address.
pub struct Client {
    env: Env,
    agent: Agent,
    base: String,
    address: NodeAddress,
    /// `Authorization: Basic` of the login; None: there is no login.
    basic: Option<String>,
    /// Whether users log in at the node, asked before a login is used for the first time.
    needs_login: OnceLock<bool>,
    /// The node's token, read when the first verb that changes something or shows texts of users is
    /// called.
    token: OnceLock<String>,
}

impl Client {
    /// For the admin port of a node. Nothing is sent yet. Err: a file of the address cannot be
    /// used, or a password would travel without encryption.
    pub fn open(env: Env, address: NodeAddress) -> Result<Self> {
        let host = if address.host.contains(':') { format!("[{}]", address.host) } else { address.host.clone() };
        let mut config = Agent::config_builder().timeout_connect(Some(CONNECT_TIMEOUT)).http_status_as_error(false);
        if let Some(tls) = &address.tls {
            config = config.tls_config(encryption(&env, tls).map_err(AdminError::Invalid)?);
        }
        let scheme = if address.tls.is_some() { "https" } else { "http" };
        let base = format!("{scheme}://{host}:{}", address.port);
        if address.login.is_some() && address.tls.is_none() && !is_loopback(&address.host) {
            let why = format!("a password does not go to {host} without encryption: --ssl --truststore FILE");
            return Err(AdminError::Invalid(why));
        }
        let basic = address.login.as_ref().map(|login| basic(&env, login)).transpose().map_err(AdminError::Invalid)?;
        let agent = config.build().into();
        Ok(Self { env, agent, base, address, basic, needs_login: OnceLock::new(), token: OnceLock::new() })
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

    /// The proof that a request shows: the login, or the token for a verb that changes something or
    /// shows texts of users.
    /// The token of a file that was named goes with every request over TLS, since a port that other
    /// machines reach answers nobody else.
    fn authorization(&self, effect: Effect) -> Result<Option<String>> {
        if let Some(basic) = &self.basic
            && self.needs_login()?
        {
            return Ok(Some(basic.clone()));
        }
        let names_token = self.address.tls.is_some() && self.address.token_file.is_some();
        let bearer = |token: &str| format!("Bearer {token}");
        if effect == Effect::Changes || names_token {
            return self.token().map(|token| Some(bearer(token)));
        }
        // without the token the node decides: where nobody logs in everybody is shown the texts
        let shown = (effect == Effect::Shows).then(|| self.token().ok()).flatten();
        Ok(shown.map(bearer))
    }

    /// Whether users log in at the node.
    fn needs_login(&self) -> Result<bool> {
        if let Some(known) = self.needs_login.get() {
            return Ok(*known);
        }
        let text = self.answer(self.agent.get(format!("{}/console/session", self.base)).call())?;
        let session: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let needs = session.get("needs_login").and_then(serde_json::Value::as_bool);
        let needs = needs.ok_or_else(|| AdminError::Failed("the node does not say whether users log in".to_owned()))?;
        Ok(*self.needs_login.get_or_init(|| needs))
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
        if let Some(shown) = self.authorization(call.effect)? {
            request = request.header("Authorization", shown);
        }
        call.answer_of_json(&self.answer(request.send(call.request_json()?))?)
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn text(env: &Env, path: &Path) -> std::result::Result<String, String> {
    let bytes = env.disk.read_all(path, FILE_SIZE_MAX).map_err(|error| format!("{}: {error}", path.display()))?;
    String::from_utf8(bytes).map_err(|_| format!("{}: not text", path.display()))
}

/// `Authorization` of a login.
fn basic(env: &Env, login: &Login) -> std::result::Result<String, String> {
    let user = &login.user;
    let password = match &login.password {
        Password::Text(password) => password.clone(),
        Password::File(path) => {
            password_of(&text(env, path)?, user).ok_or_else(|| format!("{} has no line of {user}", path.display()))?
        }
    };
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("{user}:{password}"));
    Ok(format!("Basic {encoded}"))
}

/// The password of a user in a file of JMX: a line has a user, blanks, and a password.
fn password_of(text: &str, user: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.trim().split_once([' ', '\t']));
    lines.into_iter().find(|(name, _)| *name == user).map(|(_, password)| password.trim().to_owned())
}

fn encryption(env: &Env, tls: &ClientTls) -> std::result::Result<TlsConfig, String> {
    let trusted = certificates(&pem_items(env, &tls.trusted)?);
    if trusted.is_empty() {
        return Err(format!("{} has no certificate", tls.trusted.display()));
    }
    let shown = tls.identity.as_deref().map(|path| client_certificate(env, path)).transpose()?;
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&trusted))
        .client_cert(shown)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

fn pem_items(env: &Env, path: &Path) -> std::result::Result<Vec<PemItem<'static>>, String> {
    let text = text(env, path)?;
    let items: std::result::Result<Vec<_>, _> = parse_pem(text.as_bytes()).collect();
    items.map_err(|error| format!("{}: {error}", path.display()))
}

fn certificates(items: &[PemItem<'static>]) -> Vec<Certificate<'static>> {
    let of_item = |item: &PemItem<'static>| match item {
        PemItem::Certificate(certificate) => Some(certificate.clone()),
        _ => None,
    };
    items.iter().filter_map(of_item).collect()
}

/// The key and the certificates of a file, for a node that asks for them.
fn client_certificate(env: &Env, path: &Path) -> std::result::Result<ClientCert, String> {
    let items = pem_items(env, path)?;
    let chain = certificates(&items);
    let key = items.into_iter().find_map(|item| match item {
        PemItem::PrivateKey(key) => Some(key),
        _ => None,
    });
    let key = key.filter(|_| !chain.is_empty());
    let key = key.ok_or_else(|| format!("{} needs a private key and its certificate", path.display()))?;
    Ok(ClientCert::new_with_certs(&chain, key))
}

/// Asks a node on this machine over TLS whether it is ready (`/readyz`, which answers everybody):
/// the answer, and the node's words. Nothing secret is sent, so the node's certificate is not
/// verified: a health check is given no authorities. `identity`: PEM file of the key and the
/// certificate to show; None: none is shown.
pub fn probe(env: &Env, address: SocketAddr, identity: Option<&Path>) -> Result<(bool, String)> {
    let shown = identity.map(|path| client_certificate(env, path)).transpose().map_err(AdminError::Invalid)?;
    let tls = TlsConfig::builder()
        .disable_verification(true)
        .client_cert(shown)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    // no proxy: the node is on this machine
    let config = Agent::config_builder().timeout_global(Some(PROBE_TIMEOUT)).proxy(None).tls_config(tls);
    let agent: Agent = config.http_status_as_error(false).build().into();
    let unreachable =
        |error: ureq::Error| AdminError::Unreachable(format!("Failed to connect to 'https://{address}' - {error}"));
    let mut response = agent.get(format!("https://{address}/readyz")).call().map_err(unreachable)?;
    let is_ready = response.status().is_success();
    let text = response.body_mut().with_config().limit(FILE_SIZE_MAX).read_to_string().map_err(unreachable)?;
    Ok((is_ready, text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_stands_behind_its_user() {
        let text = "# users\nmonitor  secret\ncontrol\tother word\nlonely\n";
        let of = |user| password_of(text, user);
        assert_eq!(of("monitor").as_deref(), Some("secret"));
        assert_eq!(of("control").as_deref(), Some("other word"));
        assert_eq!((of("lonely"), of("nobody")), (None, None));
    }

    #[test]
    fn a_password_does_not_travel_in_plain() {
        let login = Login { user: "ann".to_owned(), password: Password::Text("x".to_owned()) };
        let open = |host: &str| {
            let login = Some(login.clone());
            let address = NodeAddress { host: host.to_owned(), port: 1, token_file: None, login, tls: None };
            Client::open(env::real::env(), address)
        };
        assert!(["localhost", "127.0.0.2", "::1"].into_iter().all(|host| open(host).is_ok()));
        assert!(matches!(open("10.0.0.1").err(), Some(AdminError::Invalid(why)) if why.contains("--ssl")));
    }
}
