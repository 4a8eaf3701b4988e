//! The text of a request that logs keep: no password is in it. Values by name. Changes of roles and
//! of the schema whose client goes away.

use std::fmt::Debug;
use std::path::Path;
use std::pin::pin;
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;

use admin::http::Console;
use cluster::{Timeouts, operations};
use cql::auth::RolesOf;
use env::sim::{DATA, Sim};

use native::ConnectionStats;
use protocol::Opcode;
use protocol::frame::Header;
use protocol::request::{Batch, QueryParameters, Values};
use storage::EngineOptions;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use types::{BatchKind, Consistency, WriteKind};

use super::*;
use crate::auth::FirstPassword;
use crate::console::NodeConsole;
use crate::slow_log::SlowLog;
use crate::{machine, pools};

const SECRET: &str = "s3cr3t";

/// A node on a simulated machine with one client; every request counts as slow.
struct Machine {
    sim: Sim,
    services: Arc<Services>,
    handler: Rc<CqlHandler>,
    client: Rc<Client>,
}

impl Machine {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// Clients that log in are checked; the one here has not, and may do everything. There may be
    /// views.
    fn with_roles() -> Self {
        Self::with(|services| {
            services.limits.switches.views = true;
            let node = Arc::clone(&services.node);
            let config = config::Auth { authenticates: true, authorizes: true, ..services.config.auth.clone() };
            services.auth = Some(Auth::open(node, &config, FirstPassword::default()).expect("a sound disk"));
        })
    }

    fn with(change: impl FnOnce(&mut Services)) -> Self {
        let sim = Sim::new(1);
        let env = sim.env();
        let mut services =
            machine::start(&env, EngineOptions::with_small_budgets(Path::new(DATA)), 1, Timeouts::default());
        let slow = SlowLog::new(Some(Duration::ZERO));
        let owned = Arc::get_mut(&mut services).expect("no task of a node alone keeps its services");
        owned.slow = slow;
        change(owned);
        let handler = Rc::new(CqlHandler::new(Arc::clone(&services)));
        let stats = Arc::new(ConnectionStats::new(machine::address()));
        let info = ConnectionInfo { peer: machine::address(), version: ProtocolVersion::CURRENT, user: None, stats };
        let client = handler.connect(info);
        Self { sim, services, handler, client }
    }

    /// This machine, whose client has logged in.
    fn logged_in(mut self, user: &str) -> Self {
        let (peer, version) = (machine::address(), ProtocolVersion::CURRENT);
        let stats = Arc::new(ConnectionStats::new(peer));
        self.client = self.handler.connect(ConnectionInfo { peer, version, user: Some(Arc::from(user)), stats });
        self
    }

    fn envelope(request: Request, tracing: bool) -> RequestEnvelope {
        let version = ProtocolVersion::CURRENT;
        RequestEnvelope { version, stream: 1, tracing, custom_payload: Vec::new(), request }
    }

    fn answer(&self, request: Request, tracing: bool) -> Response {
        self.handle(request, tracing).response
    }

    fn handle(&self, request: Request, tracing: bool) -> ResponseEnvelope {
        let envelope = Self::envelope(request, tracing);
        let received = self.sim.env().now();
        self.sim.block_on(self.sim.env().sleep(Duration::from_millis(1)));
        match self.sim.block_on(Rc::clone(&self.handler).handle(Rc::clone(&self.client), envelope, received)) {
            Handled::Answered(answer) => answer,
            Handled::Last(wait) => self.sim.block_on(wait),
        }
    }

    fn query(&self, text: &str, tracing: bool) -> Response {
        self.answer(query(text), tracing)
    }

    /// Makes a keyspace of one copy.
    fn create_keyspace(&self, name: &str) {
        let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        let made = self.query(&format!("CREATE KEYSPACE {name} WITH replication = {replication}"), false);
        assert!(matches!(made, Response::SchemaChange(_)), "{made:?}");
    }

    /// Begins a query and drops it after so many polls, if it is not answered by then.
    fn give_up(&self, text: &str, polls: usize) {
        let envelope = Self::envelope(query(text), false);
        let env = self.sim.env();
        let future = Rc::clone(&self.handler).handle(Rc::clone(&self.client), envelope, env.now());
        self.sim.block_on(async {
            let mut future = pin!(future);
            for _ in 0..polls {
                let poll = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready()));
                if poll.await {
                    return;
                }
                env.sleep(Duration::from_millis(1)).await;
            }
        });
    }

    /// Whether the checks know a role.
    fn knows(&self, role: &str) -> bool {
        let auth = self.services.auth.as_ref().expect("clients log in");
        self.sim.block_on(auth.roles(RolesOf::Everybody)).expect("a sound disk").exists(role)
    }

    /// The bytes of all values of a table.
    fn bytes_of(&self, table: &str) -> Vec<u8> {
        match self.query(&format!("SELECT * FROM {table}"), false) {
            Response::Rows(rows) => rows.body.to_vec(),
            other => panic!("{other:?}"),
        }
    }
}

fn query(text: &str) -> Request {
    Request::Query(Query { query: text.to_owned().into(), parameters: QueryParameters::new(Consistency::One) })
}

fn shows(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Statements with passwords: one that is executed, one that is prepared, one that is no CQL and is
/// quoted by its error.
#[test]
fn passwords_are_not_kept() {
    let machine = Machine::new();
    let created = format!("CREATE ROLE first WITH PASSWORD = '{SECRET}'");
    machine.query(&created, true);
    machine.answer(Request::Prepare(Prepare { query: created.clone().into(), keyspace: None }), true);
    let refused = machine.query(&format!("CREATE ROLE second WITH PASSWORD '{SECRET}'"), true);
    assert!(format!("{refused:?}").contains(SECRET), "the client is told what is wrong: {refused:?}");
    machine.query(&format!("EXPLAIN CREATE ROLE third WITH PASSWORD = '{SECRET}'"), true);
    for table in ["system_traces.sessions", "system_traces.events"] {
        let kept = machine.bytes_of(table);
        assert!(shows(&kept, "CREATE ROLE"), "{table} has the statements");
        assert!(!shows(&kept, SECRET), "{table}: {}", String::from_utf8_lossy(&kept));
    }
    let slow = machine.services.slow.statements();
    assert!(slow.iter().any(|text| text.starts_with("PREPARE CREATE ROLE first WITH PASSWORD = '*")), "{slow:?}");
    assert!(!slow.iter().any(|text| text.contains(SECRET)), "{slow:?}");
}

/// A request that replicas do not answer takes the longest of all, and is counted with its kind.
#[test]
fn requests_without_an_answer_of_replicas_have_their_latency() {
    let machine = Machine::new();
    let (services, coordinator) =
        (&machine.services, RequestCoordinator::without_request(Arc::clone(&machine.services)));
    let (version, received) = (ProtocolVersion::CURRENT, machine.sim.env().now());
    let running = RequestExecution { services, client: &machine.client, coordinator: &coordinator, version, received };
    let asked = query("SELECT key FROM system.local");
    let record = |error: CqlError| running.record(&asked, &Err(Failure::Cql(error)), received);
    let consistency = Consistency::One;
    let of_read = || CqlError::ReadTimeout { consistency, received: 0, block_for: 1, data_present: false };
    record(of_read());
    record(CqlError::WriteTimeout { consistency, received: 0, block_for: 1, kind: WriteKind::Simple });
    record(CqlError::invalid("no statement"));
    coordinator.of_range.store(true, Ordering::Relaxed);
    record(of_read());
    coordinator.conditional.store(true, Ordering::Relaxed);
    record(of_read());
    let figures = &services.requests;
    let kinds = [&figures.read, &figures.write, &figures.other, &figures.range, &figures.cas_write];
    assert_eq!(kinds.map(|kind| kind.snapshot().count()), [1; 5]);
}

/// Errors that an operator must look into are not among those of clients who ask wrongly.
#[test]
fn errors_are_counted_by_their_kind() {
    let figures = RequestMetrics::default();
    let errors = [
        CqlError::Overloaded("too many reads wait for the disk".to_owned()),
        CqlError::Server("the disk fails".to_owned()),
        CqlError::Server("the disk still fails".to_owned()),
        CqlError::invalid("no such column"),
    ];
    errors.iter().for_each(|error| count_failure(&figures, error));
    let kinds = [&figures.overloaded, &figures.server_errors, &figures.other_errors];
    assert_eq!((kinds.map(metrics::Counter::get), figures.errors()), ([1, 2, 1], 4));
}

/// A batch with a condition is a BATCH message, and a write.
#[test]
fn a_batch_with_a_condition_is_counted() {
    let machine = Machine::new();
    machine.create_keyspace("ks");
    machine.query("CREATE TABLE ks.t (k int PRIMARY KEY)", false);
    let insert = "INSERT INTO ks.t (k) VALUES (1) IF NOT EXISTS";
    let statements = vec![BatchStatement::Query { query: insert.into(), values: Values::default() }];
    let parameters = QueryParameters::new(Consistency::One);
    let answer = machine.answer(Request::Batch(Batch { kind: BatchKind::Unlogged, statements, parameters }), false);
    assert!(matches!(answer, Response::Rows(_)), "{answer:?}");
    assert_eq!(machine.services.requests.batch_messages.get(), 1);
    let completed = "SELECT completed_tasks FROM system_views.thread_pools WHERE name = 'MutationStage'";
    match machine.query(completed, false) {
        Response::Rows(rows) => assert_eq!(rows.body.to_vec(), [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1]),
        other => panic!("{other:?}"),
    }
}

/// The flushes of a dropped table have been done all the same: a number that goes down looks like
/// a restart. `nodetool tpstats` and `system_views.thread_pools` show the same figures.
#[test]
fn a_drop_takes_no_flush_back() {
    let machine = Machine::new();
    let flushes = || {
        let pools = pools::of_storage(&machine.services).into_iter();
        let written = pools.filter(|pool| pool.name == "MemtableFlushWriter").map(|pool| pool.completed);
        written.sum::<u64>()
    };
    machine.create_keyspace("ks");
    machine.query("CREATE TABLE ks.t (k int PRIMARY KEY)", false);
    machine.query("INSERT INTO ks.t (k) VALUES (1)", false);
    let before = flushes();
    let stores = operations::tables::Selection { keyspaces: &["ks".to_owned()], tables: &[] };
    machine.sim.block_on(operations::tables::flush(&machine.services.node, stores)).expect("a sound disk");
    let after = flushes();
    assert!(after > before);
    machine.query("DROP TABLE ks.t", false);
    assert!(flushes() >= after);
    let shown = "SELECT completed_tasks FROM system_views.thread_pools WHERE name = 'MemtableFlushWriter'";
    match machine.query(shown, false) {
        Response::Rows(rows) => assert!(rows.body.ends_with(&flushes().to_be_bytes())),
        other => panic!("{other:?}"),
    }
}

/// The directories of snapshots are read in the background: the worker serves others meanwhile.
#[test]
fn the_snapshots_are_not_looked_for_on_a_worker() {
    let machine = Machine::new();
    let node = &machine.services.node;
    let stores = [operations::tables::named(node, "system_auth", "roles").expect("a built-in table")];
    machine.sim.block_on(operations::snapshots::take(node, "monday", &stores, true)).expect("taken");
    let envelope = Machine::envelope(query("SELECT * FROM system_views.snapshots"), false);
    let received = machine.sim.env().now();
    let mut answer = pin!(Rc::clone(&machine.handler).handle(Rc::clone(&machine.client), envelope, received));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(answer.as_mut().poll(&mut context).is_pending(), "the worker does not wait for the disk");
    match machine.sim.block_on(answer) {
        Handled::Answered(ResponseEnvelope { response: Response::Rows(rows), .. }) => {
            assert!(shows(&rows.body, "monday") && shows(&rows.body, "roles"));
        }
        _ => panic!("rows are the answer"),
    }
}

/// A view is read and changed with the permissions on its base: its creator gets none on it.
#[test]
fn a_view_brings_no_permissions() {
    let machine = Machine::with_roles().logged_in("cassandra");
    machine.create_keyspace("ks");
    machine.query("CREATE TABLE ks.base (k int, c int, PRIMARY KEY (k, c))", false);
    let select = "SELECT * FROM ks.base WHERE k IS NOT NULL AND c IS NOT NULL";
    let made = machine.query(&format!("CREATE MATERIALIZED VIEW ks.by_c AS {select} PRIMARY KEY (c, k)"), false);
    assert!(matches!(made, Response::SchemaChange(_)), "{made:?}");
    let granted = machine.bytes_of("system_auth.role_permissions");
    assert!(shows(&granted, "data/ks/base") && !shows(&granted, "data/ks/by_c"));
}

/// A permission on all keyspaces is none on those of the system: at the console as for a SELECT.
#[test]
fn the_console_shows_texts_to_who_may_select_the_log() {
    let machine = Machine::with_roles().logged_in("cassandra");
    let console = NodeConsole(Arc::clone(&machine.services));
    machine.query("CREATE ROLE ann WITH LOGIN = true", false);
    for (resource, may_see) in [("ALL KEYSPACES", false), ("system_views.system_logs", true)] {
        let granted = machine.query(&format!("GRANT SELECT ON {resource} TO ann"), false);
        assert!(matches!(granted, Response::Void), "{granted:?}");
        assert_eq!(console.may_see("ann").is_ok(), may_see, "{resource}");
    }
}

/// A QUERY whose values come by name.
fn named(text: &str, values: &[(&str, &str)]) -> Request {
    const VALUES_BY_NAME: u32 = 0x41;
    let mut body = Vec::new();
    body.extend(u32::try_from(text.len()).expect("short").to_be_bytes());
    body.extend(text.as_bytes());
    // the level ONE
    body.extend(1u16.to_be_bytes());
    body.extend(VALUES_BY_NAME.to_be_bytes());
    body.extend(u16::try_from(values.len()).expect("few").to_be_bytes());
    for (name, value) in values {
        body.extend(u16::try_from(name.len()).expect("short").to_be_bytes());
        body.extend(name.as_bytes());
        body.extend(u32::try_from(value.len()).expect("short").to_be_bytes());
        body.extend(value.as_bytes());
    }
    let opcode = Opcode::Query as u8;
    let header = Header { version: ProtocolVersion::V5, flags: 0, stream: 1, opcode, body_size: body.len() as u32 };
    RequestEnvelope::decode(&header, &body.into()).expect("a QUERY").request
}

/// One value may stand for several markers of its name, and values that no marker has the name of
/// are left alone.
#[test]
fn values_by_name_need_not_be_as_many_as_the_markers() {
    let machine = Machine::new();
    let select = "SELECT key FROM system.local WHERE key IN (:key, :key)";
    let (key, other) = (("key", "local"), ("other", "x"));
    for values in [&[key][..], &[other, key], &[key, other, other]] {
        match machine.answer(named(select, values), false) {
            Response::Rows(rows) => assert_eq!(rows.row_count, 1, "{values:?}"),
            answer => panic!("{values:?}: {answer:?}"),
        }
    }
    match machine.answer(named(select, &[other]), false) {
        Response::Error(error) => assert_eq!(error.message, "Invalid amount of bind variables"),
        answer => panic!("{answer:?}"),
    }
}

/// Whatever a client waits for when it goes away, the checks follow what the tables have.
#[test]
fn a_change_of_roles_is_in_force_when_its_client_goes_away() {
    const POLLS_MAX: usize = 6;
    let machine = Machine::with_roles();
    let mut made = 0;
    for polls in 1..=POLLS_MAX {
        let role = format!("role_{polls}");
        machine.give_up(&format!("INSERT INTO system_auth.roles (role, can_login) VALUES ('{role}', true)"), polls);
        machine.sim.block_on(machine.sim.env().sleep(Duration::from_millis(100)));
        let is_made = shows(&machine.bytes_of("system_auth.roles"), &role);
        made += usize::from(is_made);
        assert_eq!(machine.knows(&role), is_made, "{role}");
    }
    assert!(made > 0, "no statement came to its end");
}

/// Whatever a client waits for when it goes away: who makes a table has all permissions on it, and
/// nobody has any on a table that was dropped.
#[test]
fn permissions_follow_a_change_of_the_schema_whose_client_goes_away() {
    const POLLS_MAX: usize = 9;
    let machine = Machine::with_roles().logged_in("cassandra");
    machine.create_keyspace("ks");
    machine.query("CREATE ROLE mallory", false);
    let give_up = |text: String, polls: usize| {
        machine.give_up(&text, polls);
        machine.sim.block_on(machine.sim.env().sleep(Duration::from_secs(1)));
    };
    let exists = |table: &str| machine.services.node.schema().table("ks", table).is_some();
    let mut followed = 0;
    for polls in 1..=POLLS_MAX {
        let (table, resource) = (format!("t{polls}"), format!("data/ks/t{polls}"));
        let has_permissions = || shows(&machine.bytes_of("system_auth.role_permissions"), &resource);
        give_up(format!("CREATE TABLE ks.{table} (k int PRIMARY KEY)"), polls);
        assert_eq!(has_permissions(), exists(&table), "{table} is made after {polls} polls");
        machine.query(&format!("GRANT SELECT ON ks.{table} TO mallory"), false);
        give_up(format!("DROP TABLE ks.{table}"), polls);
        assert_eq!(has_permissions(), exists(&table), "{table} is dropped after {polls} polls");
        followed += usize::from(!exists(&table));
    }
    assert!(followed > 0, "no table was dropped");
}

/// No request tells of a row that ends by its TTL.
#[test]
fn a_role_with_a_ttl_ends() {
    let machine = Machine::with_roles();
    machine.query("INSERT INTO system_auth.roles (role, can_login) VALUES ('guest', true) USING TTL 10", false);
    assert!(machine.knows("guest"));
    machine.sim.block_on(machine.sim.env().sleep(Duration::from_secs(20)));
    assert!(!machine.knows("guest"));
}

/// A client that executes a statement in another keyspace than that in which it was prepared is
/// told once for each connection.
#[test]
fn a_statement_of_another_keyspace_is_warned_of() {
    let machine = Machine::new();
    ["one", "two"].into_iter().for_each(|keyspace| machine.create_keyspace(keyspace));
    machine.query("CREATE TABLE one.t (k int PRIMARY KEY)", false);
    let prepare = |query: &'static str, keyspace: Option<&'static str>| {
        let keyspace = keyspace.map(Into::into);
        match machine.answer(Request::Prepare(Prepare { query: query.into(), keyspace }), false) {
            Response::Prepared(prepared) => prepared.id,
            answer => panic!("{answer:?}"),
        }
    };
    let unqualified = prepare("SELECT k FROM t", Some("one"));
    let qualified = prepare("SELECT k FROM one.t", None);
    let insert = prepare("INSERT INTO t (k) VALUES (?)", Some("one"));
    let machine = machine.logged_in("ada");
    let warnings = |id: &Bytes| {
        let parameters = QueryParameters::new(Consistency::One);
        let execute = Execute { id: id.clone(), result_metadata_id: None, parameters };
        machine.handle(Request::Execute(execute), false).extras.map(|extras| extras.warnings).unwrap_or_default()
    };
    machine.query("USE one", false);
    assert_eq!(warnings(&unqualified), [""; 0]);
    machine.query("USE two", false);
    assert_eq!(warnings(&qualified), [""; 0]);
    let told = warnings(&unqualified);
    assert!(told[0].contains("Keyspace used: two, statement keyspace: one, statement id: "), "{told:?}");
    assert_eq!(warnings(&unqualified), [""; 0], "once");
    // also beside an error: here the value is missing
    let machine = machine.logged_in("bob");
    machine.query("USE two", false);
    let parameters = QueryParameters::new(Consistency::One);
    let execute = Execute { id: insert, result_metadata_id: None, parameters };
    let failed = machine.handle(Request::Execute(execute), false);
    assert!(matches!(failed.response, Response::Error(_)), "{failed:?}");
    assert_eq!(failed.extras.map(|extras| extras.warnings.len()), Some(1));
}

/// A client that asks for a setting by its name of Cassandra 4.0 is told the present one.
#[test]
fn old_names_of_settings_are_warned_of() {
    let machine = Machine::new();
    let warnings = |name: &str| {
        let select = format!("SELECT value FROM system_views.settings WHERE name = '{name}'");
        machine.handle(query(&select), false).extras.map(|extras| extras.warnings).unwrap_or_default()
    };
    let warning = |old: &str, name: &str| format!("key '{old}' is deprecated; should switch to '{name}'");
    assert_eq!(warnings("authenticator"), [warning("authenticator", "authenticator.class_name")]);
    let old = "server_encryption_options_client_auth";
    assert_eq!(warnings(old), [warning(old, "server_encryption_options.require_client_auth")]);
    // a renamed key of cassandra.yaml
    assert_eq!(warnings("read_request_timeout_in_ms"), [""; 0]);
}

/// `default_secondary_index` and `default_secondary_index_enabled`.
#[test]
fn an_index_without_using_is_of_the_kind_of_the_configuration() {
    let found = |default_index: Option<&str>| {
        let machine = Machine::with(|services| services.config.default_index = default_index.map(str::to_owned));
        machine.create_keyspace("k");
        machine.query("CREATE TABLE k.t (k int PRIMARY KEY, v int)", false);
        if let Response::Error(error) = machine.query("CREATE INDEX ON k.t (v)", false) {
            return error.message;
        }
        let schema = machine.services.node.schema();
        let table = schema.table("k", "t").expect("created");
        table.indexes["t_v_idx"].options.get("class_name").cloned().unwrap_or_default()
    };
    assert_eq!(found(Some("legacy_local_table")), "");
    assert_eq!(found(Some("sai")), "sai");
    assert_eq!(found(None), "Must specify index implementation via USING");
}

/// Aggregates of many partitions are warned of, whoever the table belongs to.
#[test]
fn an_aggregate_of_many_partitions_is_warned_of() {
    let machine = Machine::new();
    machine.create_keyspace("systematics");
    machine.query("CREATE TABLE systematics.t (k int PRIMARY KEY)", false);
    for table in ["systematics.t", "system.peers_v2"] {
        let answer = machine.handle(query(&format!("SELECT count(*) FROM {table}")), false);
        let warnings = answer.extras.map(|extras| extras.warnings).unwrap_or_default();
        assert_eq!(warnings, ["Aggregation query used without partition key"], "{table}");
    }
}

/// Settings that an operator has changed while the node runs are shown as they are.
#[test]
fn changed_settings_are_shown() {
    let machine = Machine::new();
    let node = &machine.services.node;
    let value = |name: &str| match machine
        .query(&format!("SELECT value FROM system_views.settings WHERE name = '{name}'"), false)
    {
        Response::Rows(rows) => String::from_utf8_lossy(&rows.body[4..]).into_owned(),
        answer => panic!("{answer:?}"),
    };
    cluster::operations::compaction::set_rate(node, 16 << 20);
    assert_eq!([value("compaction_throughput"), value("compaction_throughput_mb_per_sec")], ["16MiB/s", "16"]);
    cluster::operations::compaction::set_rate(node, 1_500_000);
    assert_eq!(value("compaction_throughput"), "1500000B/s");
    node.change_handoff_settings(|settings| settings.window = Duration::from_secs(60));
    assert_eq!([value("max_hint_window"), value("max_hint_window_in_ms")], ["60000ms", "60000"]);
}

/// The lines of the log, with their levels.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().expect("no panic inside").push(format!("{} {}", event.metadata().level(), message.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// The operator finds in the log what clients are told of guardrails, but not with each request.
#[test]
fn guardrails_are_in_the_log() {
    let machine = Machine::with(|services| {
        let node = Arc::clone(&services.node);
        let auth = config::Auth { authenticates: true, authorizes: true, ..services.config.auth.clone() };
        services.auth = Some(Auth::open(node, &auth, FirstPassword::default()).expect("a sound disk"));
        let sets = ["page_size_warn_threshold=10", "page_size_fail_threshold=100"].map(str::to_owned);
        let config = config::Config::load(None, &sets, false).expect("known keys");
        services.guardrails = crate::guardrails::ActiveGuardrails::new(&config);
    });
    let machine = machine.logged_in("cassandra");
    machine.create_keyspace("ks");
    machine.query("CREATE TABLE ks.t (k int PRIMARY KEY)", false);
    machine.query("CREATE ROLE bob WITH LOGIN = true", false);
    machine.query("GRANT SELECT ON ks.t TO bob", false);
    let machine = machine.logged_in("bob");
    let answer = |page_size: i32| {
        let parameters = QueryParameters { page_size: Some(page_size), ..QueryParameters::new(Consistency::One) };
        machine.handle(Request::Query(Query { query: "SELECT k FROM ks.t".into(), parameters }), false)
    };
    let log = Log::default();
    let (warned, refused, ..) =
        tracing::subscriber::with_default(log.clone(), || (answer(20), answer(200), answer(20), answer(200)));
    let warnings = warned.extras.map(|extras| extras.warnings).unwrap_or_default();
    assert!(warnings[0].starts_with("Guardrail page_size violated: Query for table "), "{warnings:?}");
    let Response::Error(error) = &refused.response else { panic!("{refused:?}") };
    let lines = log.0.lock().expect("no panic inside").clone();
    let of_guardrails: Vec<&String> = lines.iter().filter(|line| line.contains(" Guardrail ")).collect();
    assert_eq!(of_guardrails, [&format!("WARN {}", warnings[0]), &format!("ERROR {}", error.message)]);
}

/// Other requests of the worker go on while a long batch of texts is planned.
#[test]
fn a_batch_of_texts_gives_others_their_turn() {
    const COUNT: usize = 1_000;
    let machine = Machine::new();
    machine.create_keyspace("ks");
    machine.query("CREATE TABLE ks.t (k int PRIMARY KEY)", false);
    let statement = |number| BatchStatement::Query {
        query: format!("DELETE FROM ks.t WHERE k = 1 /* {number} */").into(),
        values: Values::default(),
    };
    let statements = (0..COUNT).map(statement).collect();
    let parameters = QueryParameters::new(Consistency::One);
    let batch = Request::Batch(Batch { kind: BatchKind::Unlogged, statements, parameters });
    let received = machine.sim.env().now();
    let future =
        Rc::clone(&machine.handler).handle(Rc::clone(&machine.client), Machine::envelope(batch, false), received);
    let mut turns = 0;
    let handled = machine.sim.block_on(async {
        let mut future = pin!(future);
        std::future::poll_fn(|context| {
            turns += 1;
            future.as_mut().poll(context)
        })
        .await
    });
    let Handled::Answered(answer) = handled else { panic!("a batch of texts leaves no wait") };
    assert!(matches!(answer.response, Response::Void), "{:?}", answer.response);
    assert!(turns >= COUNT / 100, "{turns} turns");
}

/// Each text makes some tens of megabytes, and all are held until the batch is executed.
#[test]
fn texts_of_a_batch_have_a_bound_together() {
    let machine = Machine::new();
    machine.create_keyspace("ks");
    let fields = (0..3_000).map(|at| format!("f{at} timeuuid")).collect::<Vec<_>>().join(", ");
    machine.query(&format!("CREATE TYPE ks.wide ({fields})"), false);
    machine.query("CREATE TABLE ks.t (k int PRIMARY KEY, l list<frozen<wide>>)", false);
    let elements = vec!["{f0: now()}"; 250].join(", ");
    let statement = |key| BatchStatement::Query {
        query: format!("INSERT INTO ks.t (k, l) VALUES ({key}, [{elements}])").into(),
        values: Values::default(),
    };
    let parameters = QueryParameters::new(Consistency::One);
    let statements = (0..3).map(statement).collect();
    let batch = Request::Batch(Batch { kind: BatchKind::Unlogged, statements, parameters });
    let Response::Error(error) = machine.answer(batch, false) else { panic!("they take 72 MB or more") };
    assert!(error.message.contains("would be larger than 64 MiB together"), "{}", error.message);
}

/// The sentence is not the one that EXECUTE gives: in Cassandra it has a capital.
#[test]
fn a_batch_counts_the_values_of_its_statements() {
    let machine = Machine::new();
    machine.create_keyspace("ks");
    machine.query("CREATE TABLE ks.t (k int PRIMARY KEY)", false);
    let query = "INSERT INTO ks.t (k) VALUES (?)".into();
    let statements = vec![BatchStatement::Query { query, values: Values::default() }];
    let parameters = QueryParameters::new(Consistency::One);
    let batch = Request::Batch(Batch { kind: BatchKind::Unlogged, statements, parameters });
    let Response::Error(error) = machine.answer(batch, false) else { panic!("a value is missing") };
    assert_eq!(error.message, "There were 1 markers(?) in CQL but 0 bound variables");
}

/// A request of version 5 may name the keyspace of its statements. A wrong one is told by its name,
/// also where the statement has another one.
#[test]
fn the_keyspace_of_a_request_is_one_that_exists() {
    let machine = Machine::new();
    let select = "SELECT key FROM system.local";
    let requests = |keyspace: &'static str| {
        let parameters =
            || QueryParameters { keyspace: Some(keyspace.into()), ..QueryParameters::new(Consistency::One) };
        let batch = Batch { kind: BatchKind::Unlogged, statements: Vec::new(), parameters: parameters() };
        [
            Request::Query(Query { query: select.into(), parameters: parameters() }),
            Request::Prepare(Prepare { query: select.into(), keyspace: Some(keyspace.into()) }),
            Request::Batch(batch),
        ]
    };
    for request in requests("nosuch") {
        match machine.answer(request, false) {
            Response::Error(error) => {
                assert_eq!((error.kind.code(), &*error.message), (0x2200, "Keyspace 'nosuch' does not exist"));
            }
            answer => panic!("{answer:?}"),
        }
    }
    for request in requests("system").into_iter().take(2) {
        let answer = machine.answer(request, false);
        assert!(!matches!(answer, Response::Error(_)), "{answer:?}");
    }
}

/// A value that is larger than any mutation may be is a mistake of the client, who must not try
/// again: no replica has failed.
#[test]
fn a_mutation_that_is_too_large_is_an_invalid_request() {
    let machine = Machine::new();
    machine.create_keyspace("ks");
    machine.query("CREATE TABLE ks.t (k int PRIMARY KEY, v blob)", false);
    let size = storage::commitlog::Options::default().largest_mutation() + 1;
    let values = Values::from_iter([protocol::request::Value::Bytes(vec![7u8; size].into())]);
    let parameters = QueryParameters { values, ..QueryParameters::new(Consistency::One) };
    let query = "INSERT INTO ks.t (k, v) VALUES (1, ?)".into();
    let Response::Error(error) = machine.answer(Request::Query(Query { query, parameters }), false) else {
        panic!("it is too large")
    };
    assert_eq!(error.kind.code(), 0x2200, "{}", error.message);
    assert!(error.message.starts_with("Rejected an oversized mutation ("), "{}", error.message);
    assert!(error.message.ends_with(") for keyspace: ks. Top keys are: t.1"), "{}", error.message);
}

/// A client that wants no columns with the rows of a text gets none, whatever rows they are.
#[test]
fn the_columns_of_a_query_are_left_out_where_the_client_knows_them() {
    let machine = Machine::new();
    machine.create_keyspace("ks");
    machine.query("CREATE TABLE ks.t (k int PRIMARY KEY)", false);
    for text in ["SELECT k FROM ks.t", "INSERT INTO ks.t (k) VALUES (1) IF NOT EXISTS"] {
        for skip_metadata in [false, true] {
            let parameters = QueryParameters { skip_metadata, ..QueryParameters::new(Consistency::One) };
            match machine.answer(Request::Query(Query { query: text.into(), parameters }), false) {
                Response::Rows(rows) => assert_eq!(rows.skip_metadata, skip_metadata, "{text}"),
                answer => panic!("{text}: {answer:?}"),
            }
        }
    }
}

#[test]
fn a_page_without_rows_is_refused() {
    let machine = Machine::new();
    let answer = |page_size: i32| {
        let parameters = QueryParameters { page_size: Some(page_size), ..QueryParameters::new(Consistency::One) };
        let query = "SELECT key FROM system.local".to_owned().into();
        machine.answer(Request::Query(Query { query, parameters }), false)
    };
    match answer(0) {
        Response::Error(error) => {
            assert_eq!((error.kind.code(), error.message.as_str()), (0x000A, "The page size cannot be 0"));
        }
        answer => panic!("{answer:?}"),
    }
    assert!(matches!(answer(-1), Response::Rows(_)));
}
