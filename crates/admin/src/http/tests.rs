//! The API over a real socket: every verb arrives, failures arrive as such, and who may call what.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use env::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::call_limits::LASTING_MAX;
use super::caller::UNKNOWN_BODY_SIZE_MAX;
use super::connections::Limits;
use super::server::serve_within;
use super::*;
use crate::fake::{FakeNode, fake, functions};
use crate::prometheus::Form;
use crate::verb::{AdminApi, AdminError, LocalAdminApi};
use crate::verbs::*;

/// A fake node that is served on a free port for the rest of the test process.
pub(super) struct Served {
    pub(super) node: Arc<LocalAdminApi<FakeNode>>,
    port: u16,
    /// A client that reads the token where the node says it is.
    pub(super) client: Client,
    pub(super) token: TokenFile,
    directory: tempfile::TempDir,
}

/// Roles whose names are their passwords: ann, and the superuser root.
struct FakeConsole {
    needs_login: bool,
    is_open: bool,
}

impl Console for FakeConsole {
    fn needs_login(&self) -> bool {
        self.needs_login
    }

    fn queries_enabled(&self) -> bool {
        self.needs_login
    }

    fn is_managed_without_token(&self) -> bool {
        self.is_open
    }

    fn log_in(&self, user: &str, password: &str) -> crate::Result<()> {
        match ["ann", "root"].contains(&user) && password == user {
            true => Ok(()),
            false => Err(AdminError::Unauthorized("wrong".to_owned())),
        }
    }

    fn may_change(&self, user: &str) -> crate::Result<()> {
        match user == "root" {
            true => Ok(()),
            false => Err(AdminError::Unauthorized("no superuser".to_owned())),
        }
    }

    fn may_see(&self, _: &str) -> crate::Result<()> {
        Ok(())
    }

    fn query(&self, user: Option<&str>, query: &str) -> crate::Result<Table> {
        let warnings = vec![format!("{query} by {user:?}")];
        Ok(Table { warnings, ..Table::default() })
    }
}

impl Served {
    pub(super) fn start() -> Self {
        Self::start_with(false)
    }

    /// A node that programs of its machine manage without the token.
    pub(super) fn start_open() -> Self {
        Self::start_as(FakeConsole { needs_login: false, is_open: true }, PortSecurity::OF_MACHINE)
    }

    fn start_with(needs_login: bool) -> Self {
        Self::start_behind(needs_login, PortSecurity::OF_MACHINE)
    }

    fn start_behind(needs_login: bool, security: PortSecurity) -> Self {
        Self::start_as(FakeConsole { needs_login, is_open: false }, security)
    }

    fn start_as(console: FakeConsole, security: PortSecurity) -> Self {
        Self::start_within(console, security, Limits::default())
    }

    /// A node with other bounds of connections, where nobody logs in.
    fn start_limited(limits: Limits) -> Self {
        Self::start_within(FakeConsole { needs_login: false, is_open: false }, PortSecurity::OF_MACHINE, limits)
    }

    fn start_within(console: FakeConsole, security: PortSecurity, limits: Limits) -> Self {
        let (env, node) = (env::real::env(), fake());
        let directory = tempfile::tempdir().expect("a directory");
        let token = TokenFile::new(&env, directory.path());
        let access = Access::Token(token.token.clone());
        let (sender, receiver) = mpsc::channel();
        let (ops, api) = (env.clone(), Arc::clone(&node));
        let worker = env.tasks.spawn_worker(
            "ops",
            Box::new(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(async move {
                    let address = "127.0.0.1:0".parse().expect("an address");
                    let listener = ops.network.bind(address, false).expect("a listener");
                    sender.send(listener.local_address().expect("bound").port()).expect("the test waits");
                    let console = Arc::new(console);
                    serve_within(ops, listener, api, console, access, security, limits).await.expect("serves");
                });
            }),
        );
        drop(worker);
        let port = receiver.recv().expect("it listens");
        token.write(&env, port).expect("written");
        node.node().0.lock().expect("no panic inside").token_file = Some(token.path.display().to_string());
        let client = client(port, None);
        Self { node, port, client, token, directory }
    }

    pub(super) fn calls(&self) -> Vec<String> {
        self.node.node().0.lock().expect("no panic inside").calls.clone()
    }

    /// Asks the node itself and over HTTP, which must be the same.
    fn both<V: crate::verb::Verb>(&self, request: &V)
    where
        V::Answer: PartialEq + std::fmt::Debug,
    {
        let (there, here) = (&self.client as &dyn AdminApi, &*self.node as &dyn AdminApi);
        assert_eq!(there.ask(request), here.ask(request), "{}", V::NAME);
    }
}

fn client(port: u16, token_file: Option<std::path::PathBuf>) -> Client {
    client_as(port, token_file, None, None).expect("no files")
}

/// A client with a login, whose user is the password, and with files of TLS.
fn client_as(
    port: u16,
    token_file: Option<std::path::PathBuf>,
    user: Option<&str>,
    tls: Option<ClientTls>,
) -> crate::Result<Client> {
    let login = user.map(|user| Login { user: user.to_owned(), password: Password::Text(user.to_owned()) });
    let address = NodeAddress { host: "127.0.0.1".to_owned(), port, token_file, login, tls };
    Client::open(env::real::env(), address)
}

#[test]
fn every_verb_has_a_function_here() {
    let mut names = NAMES.to_vec();
    names.sort_unstable();
    assert_eq!(functions().names(), names);
}

#[test]
fn requests_and_answers_arrive() {
    let served = Served::start();
    let (keyspace, table) = ("shop".to_owned(), "a table".to_owned());
    served.both(&GetNode {});
    served.both(&GetTables {});
    served.both(&GetMetrics {});
    served.both(&GetCompactionHistory {});
    served.both(&GetTimeout { kind: TimeoutKind::CasContention });
    served.both(&GetEndpoints { keyspace: keyspace.clone(), table, key: "1:ä&b=%".to_owned(), with_port: false });
    let tables = TableSelection { keyspaces: vec![keyspace], tables: Vec::new() };
    served.both(&GetAutoCompaction { tables: tables.clone() });
    served.both(&SetAutoCompaction { tables: tables.clone(), on: false });
    let what = Compact::Tokens { first: "-5".to_owned(), last: "7".to_owned() };
    served.both(&CompactRequest { tables, what });
    served.both(&CacheChange::Capacities { keys: 1, rows: 2 });
    served.both(&SetTraceProbability { probability: 0.1 });
    served.both(&GetTraceProbability {});
    served.both(&ImportRequest { directories: vec!["/bad".to_owned()], ..ImportRequest::default() });
    served.both(&StopRequest::Kind("SCRUB".to_owned()));
    let calls = served.calls();
    assert_eq!(calls[0], "endpoints shop a table 1:ä&b=%");
    assert!(calls.chunks(2).all(|pair| pair[0] == pair[1]) && calls.len() == 12, "{calls:?}");
}

#[test]
fn failures_arrive_as_such() {
    let served = Served::start();
    let taken = SnapshotRequest { name: "taken".to_owned(), ..SnapshotRequest::default() };
    let there = &served.client as &dyn AdminApi;
    assert_eq!(there.ask(&taken), Err(AdminError::Failed("Snapshot taken already exists.".to_owned())));
    let nobody = client(1, None);
    assert!(matches!((&nobody as &dyn AdminApi).ask(&GetNode {}), Err(AdminError::Unreachable(_))));
    let (status, body) = served.client.raw_get("/api/nosuch", &[]).expect("an answer");
    assert_eq!((status, body.as_str()), (404, "{\"Invalid\":\"no verb nosuch\"}"));
}

#[test]
fn what_reads_is_a_get_too_and_metrics_are_text() {
    let served = Served::start();
    let get = |path: &str| served.client.raw_get(path, &[]).expect("an answer");
    assert_eq!(get("/api/timeout?kind=write"), (200, "2000".to_owned()));
    assert_eq!(get("/api/endpoints?keyspace=shop&table=t&key=1%3A2"), (200, "[\"127.0.0.1\"]".to_owned()));
    assert_eq!(get("/api/timeout?kind=nosuch").0, 400);
    let collect = |form| crate::prometheus::collect(&*served.node, form).expect("figures");
    assert_eq!(get("/metrics").1.into_bytes(), collect(Form::Text));
    let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    let (kind, body) = served.client.raw_bytes("/metrics", &[("Accept", protobuf)]).expect("an answer");
    assert_eq!((kind.as_str(), body), (Form::Protobuf.content_type(), collect(Form::Protobuf)));
    assert_eq!(get("/api/drain").0, 405, "a page that a browser shows may GET anything");
}

#[test]
fn the_page_is_whole_and_strict() {
    let served = Served::start();
    let get = |path: &str| served.client.raw_get(path, &[]).expect("an answer");
    for (path, text) in [("/", "<!doctype html>"), ("/console.css", "prefers-color-scheme"), ("/console.js", "fetch(")]
    {
        let (status, body) = get(path);
        assert!(status == 200 && body.contains(text), "{path}");
    }
    assert_eq!(get("/healthz"), (200, "ok\n".to_owned()));
    let ready = get("/readyz");
    assert_eq!(ready, (200, "ready\n".to_owned()));
    assert_eq!(
        get("/console/session"),
        (200, r#"{"needs_login":false,"user":null,"queries_enabled":false}"#.to_owned())
    );
    let (status, _) = served.client.raw_post("/console/query", r#"{"query":"SELECT 1"}"#, &[]).expect("an answer");
    assert_eq!(status, 403, "queries are off");
    assert_eq!(get("/api/log?count=1").0, 200, "nobody logs in here");
}

/// Where roles are on, texts of users are shown to who has logged in, or has the token.
#[test]
fn texts_of_users_need_a_login_or_the_token() {
    let served = Served::start_with(true);
    let get = |path: &str, headers: &[(&str, &str)]| served.client.raw_get(path, headers).expect("an answer");
    assert_eq!(get("/api/node", &[]).0, 200);
    let tombstones = "/api/tombstones?keyspace=shop&table=orders&top=1";
    assert_eq!([get("/api/log?count=1", &[]).0, get(tombstones, &[]).0], [401, 401]);
    let bearer = format!("Bearer {}", served.token.token);
    assert_eq!(get("/api/log?count=1", &[("Authorization", &bearer)]).0, 200);
    assert_eq!(get("/api/log?count=1", &[("Authorization", "Bearer 00")]).0, 401);
    let post = |path: &str, body: &str, headers: &[(&str, &str)]| {
        served.client.raw_post_headers(path, body, headers).expect("an answer")
    };
    assert_eq!(post("/console/login", r#"{"user":"ann","password":"bob"}"#, &[]).0, 401);
    let (status, _, cookie) = post("/console/login", r#"{"user":"ann","password":"ann"}"#, &[]);
    let cookie = cookie.expect("a cookie");
    assert!(status == 200 && cookie.contains("HttpOnly; SameSite=Strict"), "{status} {cookie}");
    let sent = cookie.split(';').next().expect("a cookie").to_owned();
    let cookie = [("Cookie", sent.as_str())];
    assert_eq!([get("/api/log?count=1", &cookie).0, get(tombstones, &cookie).0], [200, 200]);
    assert_eq!(get("/console/session", &cookie).1, r#"{"needs_login":true,"user":"ann","queries_enabled":true}"#);
    let select = r#"{"query":"SELECT 1"}"#;
    assert_eq!(post("/console/query", select, &[]).0, 401);
    let (status, body, _) = post("/console/query", select, &cookie);
    assert!(status == 200 && body.contains(r#"SELECT 1 by Some(\"ann\")"#), "{body}");
    // a page of another origin can send text, not JSON
    assert_eq!(post("/console/query", select, &[cookie[0], ("Content-Type", "text/plain")]).0, 415);
    assert_eq!(get("/api/drain", &cookie).0, 405, "a login changes nothing");
    assert_eq!(post("/api/drain", "{}", &cookie).0, 401, "a login changes nothing");
    assert_eq!(post("/console/logout", "null", &cookie).0, 200);
    assert_eq!(get("/api/log?count=1", &cookie).0, 401);
}

/// A page whose name was made to point to this machine sends its name as `Host`.
#[test]
fn a_name_that_is_not_this_machine_is_refused() {
    let served = Served::start();
    for path in ["/metrics", "/api/node"] {
        for host in ["evil.example", "evil.example:9180", "127.0.0.1.evil.example"] {
            assert_eq!(served.client.raw_get(path, &[("Host", host)]).expect("an answer").0, 403, "{path} {host}");
        }
        for host in ["localhost:9180", "127.0.0.1", "[::1]:9180"] {
            assert_eq!(served.client.raw_get(path, &[("Host", host)]).expect("an answer").0, 200, "{path} {host}");
        }
    }
}

#[test]
fn what_changes_something_needs_the_token() {
    let served = Served::start();
    let drain = |client: &Client| (client as &dyn AdminApi).ask(&Drain {});
    assert_eq!(drain(&served.client), Ok(()));
    assert_eq!(drain(&client(served.port, Some(served.token.path.clone()))), Ok(()));
    let other = TokenFile::new(&env::real::env(), &served.directory.path().join("nowhere"));
    let without = client(served.port, Some(other.path));
    assert!(matches!(drain(&without), Err(AdminError::Failed(_))));
    // texts of users are shown without the token where nobody logs in
    let tombstones = GetTombstones { keyspace: "shop".to_owned(), table: "orders".to_owned(), top: 1 };
    assert!((&without as &dyn AdminApi).ask(&tombstones).is_ok());
    // the token of another start
    let other = tempfile::tempdir().expect("a directory");
    let other = TokenFile::new(&env::real::env(), other.path());
    assert_ne!(other.token, served.token.token);
    let wrong = served.directory.path().join("wrong");
    TokenFile { path: wrong.clone(), token: other.token }.write(&env::real::env(), served.port).expect("written");
    assert!(matches!(drain(&client(served.port, Some(wrong))), Err(AdminError::Unauthorized(_))));
    assert_eq!(served.calls(), ["drain", "drain", "tombstones shop orders 1"]);
}

/// A stranger who has taken the port of a node that is down may name any file: nothing but a token
/// of this very port is shown to it.
#[test]
fn a_stranger_on_the_port_learns_nothing() {
    let served = Served::start();
    let say = |path: &std::path::Path| {
        served.node.node().0.lock().expect("no panic inside").token_file = Some(path.display().to_string());
        (&client(served.port, None) as &dyn AdminApi).ask(&Drain {})
    };
    let refused = |answer, why: &str| matches!(answer, Err(AdminError::Failed(text)) if text.contains(why));
    let secret = served.directory.path().join("secret");
    let env = env::real::env();
    env.disk.replace_file(&secret, b"not a token").expect("written");
    assert!(refused(say(&secret), "is no token file"));
    let of_other = TokenFile { path: served.directory.path().join("other"), token: served.token.token.clone() };
    of_other.write(&env, 1).expect("written");
    assert!(refused(say(&of_other.path), "is the token file of port 1, not of port"));
    assert_eq!(served.calls(), [""; 0]);
}

/// Without a token file nothing is changed.
#[test]
fn a_node_that_is_only_read_refuses_changes() {
    let access = Access::ReadOnly("--read-only".to_owned());
    let headers = axum::http::HeaderMap::new();
    assert!(matches!(access.check_token(&headers), Err(AdminError::Unauthorized(_))));
}

/// A superuser's password does instead of the token, and other passwords change nothing.
#[test]
fn a_login_of_nodetool_is_checked() {
    let served = Served::start_with(true);
    let nowhere = Some(served.directory.path().join("nowhere"));
    let ask = |user| {
        let client = client_as(served.port, nowhere.clone(), Some(user), None).expect("no files");
        let api = &client as &dyn AdminApi;
        (api.ask(&GetNode {}).is_ok(), api.ask(&GetLog { count: 1, ..GetLog::default() }).is_ok(), api.ask(&Drain {}))
    };
    assert_eq!(ask("root"), (true, true, Ok(())));
    assert_eq!(ask("ann"), (true, true, Err(AdminError::Unauthorized("no superuser".to_owned()))));
    assert_eq!(ask("bob"), (false, false, Err(AdminError::Unauthorized("wrong".to_owned()))));
    assert_eq!(served.calls(), ["drain"]);
    // scripts of Cassandra go on where nobody logs in
    let open = Served::start();
    let bob = client_as(open.port, None, Some("bob"), None).expect("no files");
    assert_eq!((&bob as &dyn AdminApi).ask(&Drain {}), Ok(()));
}

/// A caller who is refused reads why, also when its body comes later than the answer could.
#[test]
fn a_refused_caller_may_send_its_body_late() {
    let served = Served::start_with(true);
    let env = env::real::env();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let head = "POST /api/drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\
                Authorization: Basic Ym9iOmJvYg==\r\nConnection: close\r\n\r\n";
    let answer = runtime.block_on(async {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], served.port));
        let mut stream = env.network.connect(address).await.expect("connected");
        for (part, pause) in [(head, 300), ("{", 50), ("}", 0)] {
            stream.write_all(part.as_bytes()).await.expect("sent");
            env.sleep(Duration::from_millis(pause)).await;
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer and an end");
        answer
    });
    assert!(answer.starts_with("HTTP/1.1 401 ") && answer.ends_with(r#"{"Unauthorized":"wrong"}"#), "{answer}");
    assert_eq!(served.calls(), [""; 0]);
}

/// While more operations last than there are threads, the node answers probes, lets users in, and
/// ends operations.
#[test]
fn calls_that_last_leave_threads_to_others() {
    let served = Served::start_with(true);
    let gate = Arc::new(Mutex::new(()));
    served.node.node().0.lock().expect("no panic inside").gate = Some(Arc::clone(&gate));
    let closed = gate.lock().expect("no panic inside");
    let env = env::real::env();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], served.port));
    let send = |line: &str, authorization: &str, body: &str| {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        runtime.block_on(async {
            let mut stream = env.network.connect(address).await.expect("connected");
            stream.write_all(request.as_bytes()).await.expect("sent");
            stream
        })
    };
    let answer = |line: &str, authorization: &str, body: &str| {
        let mut stream = send(line, authorization, body);
        let mut answer = String::new();
        let read = runtime.block_on(env.timeout(Duration::from_secs(60), stream.read_to_string(&mut answer)));
        read.expect("an answer in time").expect("an answer and an end");
        answer
    };
    let bearer = format!("Bearer {}", served.token.token);
    let compact = CompactRequest { tables: TableSelection::default(), what: Compact::All { split: false } };
    let compact = serde_json::to_string(&compact).expect("JSON");
    let _waiting: Vec<_> = (0..=env::ADMIN_THREADS_MAX).map(|_| send("POST /api/compact", &bearer, &compact)).collect();
    while served.calls().len() < LASTING_MAX {
        let ready = answer("GET /readyz", &bearer, "");
        assert!(ready.starts_with("HTTP/1.1 200 "), "{ready}");
    }
    // the superuser root, whose password is his name
    let stop = serde_json::to_string(&StopRequest::Kind("COMPACTION".to_owned())).expect("JSON");
    let stopped = answer("POST /api/stop", "Basic cm9vdDpyb290", &stop);
    assert!(stopped.starts_with("HTTP/1.1 200 "), "{stopped}");
    assert_eq!(served.calls().len(), LASTING_MAX + 1, "{:?}", served.calls());
    drop(closed);
}

/// Calls that wait for a disk may have all threads, short ones too. Whether the process answers is
/// told all the same: otherwise Kubernetes would end a node for its disk.
#[test]
fn a_probe_of_liveness_needs_no_thread() {
    let served = Served::start();
    let stalled = served.node.node().0.lock().expect("no panic inside");
    let token = &served.token.token;
    let request = |line: &str| {
        format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 2\r\n\
             Connection: close\r\n\r\n{{}}"
        )
    };
    let drain = request("POST /api/drain");
    let _waiting: Vec<_> = (0..=env::ADMIN_THREADS_MAX).map(|_| Caller::send(&served, &drain)).collect();
    let answer = Caller::send(&served, &request("GET /api/v0/probes/liveness")).rest(ANSWER_MAX);
    let answer = answer.expect("an answer while no call is");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("OK"), "{answer}");
    drop(stalled);
}

/// A caller that speaks HTTP by hand.
struct Caller {
    stream: Box<dyn Stream>,
    runtime: tokio::runtime::Runtime,
}

impl Caller {
    /// Connects, and sends a text.
    fn send(served: &Served, text: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], served.port));
        let stream = runtime.block_on(async {
            let mut stream = env::real::env().network.connect(address).await.expect("connected");
            stream.write_all(text.as_bytes()).await.expect("sent");
            stream
        });
        Self { stream, runtime }
    }

    /// Everything that comes until the node closes the connection; None: it is still open.
    fn rest(&mut self, limit: Duration) -> Option<String> {
        let mut answer = String::new();
        let read = self.runtime.block_on(env::real::env().timeout(limit, self.stream.read_to_string(&mut answer)));
        read.ok().map(|read| {
            read.expect("an end without an error");
            answer
        })
    }
}

/// The longest time that an answer or an end is waited for.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// The time after which something counts as not happening.
const NOTHING: Duration = Duration::from_millis(200);
const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";

/// A caller that begins a request and does not finish it is let go, and so is an idle one; a call
/// that lasts longer than all those times is answered.
#[test]
fn callers_that_say_nothing_are_let_go() {
    // long enough for whatever is to come in time; all callers wait for their ends together
    let short = Duration::from_secs(5);
    let served = Served::start_limited(Limits { head: short, body: short, ..Limits::default() });
    let gate = Arc::new(Mutex::new(()));
    served.node.node().0.lock().expect("no panic inside").gate = Some(Arc::clone(&gate));
    let closed = gate.lock().expect("no panic inside");
    let compact = CompactRequest { tables: TableSelection::default(), what: Compact::All { split: false } };
    let compact = serde_json::to_string(&compact).expect("JSON");
    let post = |length: usize, body: &str| {
        let (token, close) = (&served.token.token, "Connection: close");
        format!(
            "POST /api/compact HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{close}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
    };
    let mut lasting = Caller::send(&served, &post(compact.len(), &compact));
    let callers = [
        (String::new(), ""),
        (HEALTH.to_owned(), ""),
        (format!("{HEALTH}\r\n"), "HTTP/1.1 200 "),
        (post(compact.len(), &compact[1..]), "HTTP/1.1 408 "),
    ]
    .map(|(text, answer)| (Caller::send(&served, &text), text, answer));
    for (mut caller, text, answer) in callers {
        let all = caller.rest(ANSWER_MAX).expect("the node closes the connection");
        assert!(all.starts_with(answer) && all.is_empty() == answer.is_empty(), "{text}: {all}");
    }
    drop(closed);
    let answer = lasting.rest(ANSWER_MAX).expect("an answer and an end");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(served.calls().len(), 1, "{:?}", served.calls());
}

/// One connection more than there may be waits until another one ends.
#[test]
fn connections_beyond_the_bound_wait() {
    let served = Served::start_limited(Limits { connections: 1, ..Limits::default() });
    let first = Caller::send(&served, "");
    let mut second = Caller::send(&served, &format!("{HEALTH}Connection: close\r\n\r\n"));
    assert_eq!(second.rest(NOTHING), None);
    drop(first);
    let answer = second.rest(ANSWER_MAX).expect("an answer and an end");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

fn pem(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/tls").join(name)
}

fn of_node(require_client_auth: bool) -> tls::Tls {
    let options = tls::TlsOptions {
        identity: include_str!("../../testdata/tls/node.pem").to_owned(),
        trusted: Some(include_str!("../../testdata/tls/authority.pem").to_owned()),
        require_client_auth,
        ..tls::TlsOptions::default()
    };
    tls::Tls::open(&env::real::env(), &options).expect("good files")
}

/// A port that other machines reach answers over TLS, and callers that it knows.
#[test]
fn a_port_of_the_network_answers_callers_that_it_knows() {
    let reach = CallerScope::Network { by_certificate: false };
    let served = Served::start_behind(true, PortSecurity { tls: Some(of_node(false)), reach });
    let tls = |identity: Option<&str>| Some(ClientTls { trusted: pem("authority.pem"), identity: identity.map(pem) });
    let open = |user, tls| client_as(served.port, None, user, tls).expect("good files");
    let node = |client: &Client| (client as &dyn AdminApi).ask(&GetNode {}).map(drop);
    // without TLS, with the certificate of another authority
    assert!(matches!(node(&open(None, None)), Err(AdminError::Unreachable(_))));
    let other = Some(ClientTls { trusted: pem("stranger.pem"), identity: None });
    assert!(matches!(node(&open(Some("root"), other)), Err(AdminError::Unreachable(_))));
    let nobody = open(None, tls(None));
    assert!(matches!(node(&nobody), Err(AdminError::Unauthorized(_))));
    for path in ["/metrics", "/api/node", "/console/sample", "/api/nosuch"] {
        assert_eq!(nobody.raw_get(path, &[]).expect("an answer").0, 401, "{path}");
    }
    // any name of the node will do, which TLS has compared
    for path in ["/", "/healthz", "/readyz", "/console/session"] {
        assert_eq!(nobody.raw_get(path, &[("Host", "node1.example")]).expect("an answer").0, 200, "{path}");
    }
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], served.port));
    assert_eq!(probe(&env::real::env(), address, None), Ok((true, "ready".to_owned())));
    let (root, ann) = (open(Some("root"), tls(None)), open(Some("ann"), tls(None)));
    assert_eq!((node(&root), node(&ann)), (Ok(()), Ok(())));
    assert_eq!((&root as &dyn AdminApi).ask(&Drain {}), Ok(()));
    assert!(matches!((&ann as &dyn AdminApi).ask(&Drain {}), Err(AdminError::Unauthorized(_))));
    // who can read the token file needs no role
    let token = client_as(served.port, Some(served.token.path.clone()), None, tls(None)).expect("good files");
    assert_eq!((node(&token), (&token as &dyn AdminApi).ask(&Drain {})), (Ok(()), Ok(())));
    let (status, _, cookie) =
        nobody.raw_post_headers("/console/login", r#"{"user":"ann","password":"ann"}"#, &[]).expect("an answer");
    let cookie = cookie.expect("a cookie");
    assert!(status == 200 && cookie.contains("; Secure"), "{cookie}");
    let sent = cookie.split(';').next().expect("a cookie");
    assert_eq!(nobody.raw_get("/metrics", &[("Cookie", sent)]).expect("an answer").0, 200);
    assert_eq!(served.calls(), ["drain", "drain"]);
}

/// A stranger on the network posts no more than a login has; a user may post more.
#[test]
fn strangers_post_short_bodies() {
    let reach = CallerScope::Network { by_certificate: false };
    let served = Served::start_behind(true, PortSecurity { tls: None, reach });
    let mut login = r#"{"user":"ann","password":"ann"}"#.to_owned();
    login.push_str(&" ".repeat(UNKNOWN_BODY_SIZE_MAX + 1 - login.len()));
    let post = |header: &str| {
        let length = login.len();
        let head = format!(
            "POST /console/login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        Caller::send(&served, &(head + &login))
    };
    let (stranger, user) = (post(""), post("Authorization: Basic YW5uOmFubg==\r\n"));
    for (mut caller, status) in [(stranger, "413"), (user, "200")] {
        let answer = caller.rest(ANSWER_MAX).expect("an answer and an end");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
}

/// Where the node asks for certificates, one that it trusts lets a caller read.
#[test]
fn a_certificate_lets_a_caller_read() {
    let reach = CallerScope::Network { by_certificate: true };
    let served = Served::start_behind(false, PortSecurity { tls: Some(of_node(true)), reach });
    let ask = |identity: Option<&str>| {
        let tls = Some(ClientTls { trusted: pem("authority.pem"), identity: identity.map(pem) });
        let client = client_as(served.port, None, None, tls).expect("good files");
        (&client as &dyn AdminApi).ask(&GetNode {}).map(drop)
    };
    assert_eq!(ask(Some("operator.pem")), Ok(()));
    for none in [None, Some("stranger.pem")] {
        assert!(matches!(ask(none), Err(AdminError::Unreachable(_))), "{none:?}");
    }
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], served.port));
    let probed = |identity: Option<&str>| probe(&env::real::env(), address, identity.map(pem).as_deref());
    assert_eq!(probed(Some("operator.pem")), Ok((true, "ready".to_owned())));
    assert!(matches!(probed(None), Err(AdminError::Unreachable(_))));
}

/// A peer that says nothing keeps no other waiting.
#[test]
fn handshakes_do_not_wait_for_one_another() {
    let reach = CallerScope::Network { by_certificate: false };
    let served = Served::start_behind(false, PortSecurity { tls: Some(of_node(false)), reach });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], served.port));
    let connect = || runtime.block_on(async { env::real::env().network.connect(address).await.expect("connected") });
    let _silent: Vec<_> = (0..3).map(|_| connect()).collect();
    let tls = Some(ClientTls { trusted: pem("authority.pem"), identity: None });
    let client = client_as(served.port, None, None, tls).expect("good files");
    assert_eq!(client.raw_get("/healthz", &[]), Some((200, "ok\n".to_owned())));
}
