//! The text of a request that logs keep: no password is in it. Values by name.

use std::path::Path;
use std::time::Duration;

use cluster::Timeouts;
use env::sim::{DATA, Sim};

use native::ConnectionStats;
use protocol::Opcode;
use protocol::frame::Header;
use protocol::request::QueryParameters;
use storage::EngineOptions;
use types::Consistency;

use super::*;
use crate::machine;
use crate::slow_log::SlowLog;

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
        let sim = Sim::new(1);
        let env = sim.env();
        let mut services = machine::start(&env, EngineOptions::beneath(Path::new(DATA)), 1, Timeouts::default());
        let slow = SlowLog::new(Some(Duration::ZERO));
        Arc::get_mut(&mut services).expect("no task of a node alone keeps its services").slow = slow;
        let handler = Rc::new(CqlHandler::new(Arc::clone(&services)));
        let stats = Arc::new(ConnectionStats::new(machine::address()));
        let info = ConnectionInfo { peer: machine::address(), version: ProtocolVersion::CURRENT, user: None, stats };
        let client = handler.connect(info);
        Self { sim, services, handler, client }
    }

    fn answer(&self, request: Request, tracing: bool) -> Response {
        let version = ProtocolVersion::CURRENT;
        let envelope = RequestEnvelope { version, stream: 1, tracing, custom_payload: Vec::new(), request };
        let received = self.sim.env().now();
        self.sim.block_on(self.sim.env().sleep(Duration::from_millis(1)));
        match self.sim.block_on(Rc::clone(&self.handler).handle(Rc::clone(&self.client), envelope, received)) {
            Handled::Answered(answer) => answer.response,
            Handled::Last(wait) => self.sim.block_on(wait).response,
        }
    }

    fn query(&self, text: &str, tracing: bool) -> Response {
        let parameters = QueryParameters::new(Consistency::One);
        self.answer(Request::Query(Query { query: text.to_owned().into(), parameters }), tracing)
    }

    /// The bytes of all values of a table.
    fn bytes_of(&self, table: &str) -> Vec<u8> {
        match self.query(&format!("SELECT * FROM {table}"), false) {
            Response::Rows(rows) => rows.body.to_vec(),
            other => panic!("{other:?}"),
        }
    }
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
