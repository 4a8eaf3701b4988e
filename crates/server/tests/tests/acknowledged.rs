//! Writes that only wait for the commit log: their answers when the log is slow, fails, or is
//! synced in time.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cluster::Timeouts;
use env::sim::{DATA, Fault, Op, Sim};
use native::{ConnectionInfo, ConnectionStats, Handled, RequestHandler};
use protocol::request::{Execute, Prepare, Query, QueryParameters};
use protocol::{ProtocolVersion, Request, RequestEnvelope, Response};
use server::{CqlHandler, Services};
use storage::EngineOptions;
use storage::commitlog::{self, SyncMode};
use types::Consistency;

use crate::machine;

/// The log waits so long for company.
const WINDOW: Duration = Duration::from_millis(30);
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

struct Machine {
    sim: Sim,
    services: Arc<Services>,
    handler: Rc<CqlHandler>,
    client: Rc<<CqlHandler as RequestHandler>::Client>,
}

impl Machine {
    /// Writes have so long.
    fn new(write_timeout: Duration) -> Self {
        let sim = Sim::new(1);
        let env = sim.env();
        let commitlog = commitlog::Options { sync: SyncMode::Group(WINDOW), ..commitlog::Options::default() };
        let options = EngineOptions { commitlog, ..EngineOptions::with_small_budgets(Path::new(DATA)) };
        let timeouts = Timeouts { write: write_timeout, ..Timeouts::default() };
        let services = machine::start(&env, options, 1, timeouts);
        let handler = Rc::new(CqlHandler::new(Arc::clone(&services)));
        let stats = Arc::new(ConnectionStats::new(machine::address()));
        let info = ConnectionInfo { peer: machine::address(), version: ProtocolVersion::CURRENT, user: None, stats };
        let client = handler.connect(info);
        let machine = Self { sim, services, handler, client };
        for text in [
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE k.t (id int PRIMARY KEY, v int)",
        ] {
            let query = Query { query: text.into(), parameters: QueryParameters::new(Consistency::One) };
            assert!(matches!(machine.answer(Request::Query(query)), Response::SchemaChange(_)));
        }
        machine
    }

    fn handle(&self, request: Request) -> Handled<<CqlHandler as RequestHandler>::Last> {
        let envelope = RequestEnvelope {
            version: ProtocolVersion::CURRENT,
            stream: 7,
            tracing: false,
            custom_payload: Vec::new(),
            request,
        };
        let handled = self.handler.clone().handle(self.client.clone(), envelope, self.sim.env().now());
        self.sim.block_on(handled)
    }

    fn answer(&self, request: Request) -> Response {
        match self.handle(request) {
            Handled::Answered(answer) => answer.response,
            Handled::Last(wait) => self.sim.block_on(wait).response,
        }
    }

    fn prepare(&self, text: &'static str) -> Bytes {
        match self.answer(Request::Prepare(Prepare { query: text.into(), keyspace: None })) {
            Response::Prepared(prepared) => prepared.id.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn execute(&self, id: &Bytes) -> Handled<<CqlHandler as RequestHandler>::Last> {
        let parameters = QueryParameters::new(Consistency::One);
        self.handle(Request::Execute(Execute { id: id.clone(), result_metadata_id: None, parameters }))
    }

    /// Executes, and gives what is answered in the end, and after how long.
    fn write(&self, id: &Bytes) -> (Response, Duration) {
        let begun = self.sim.env().now();
        let Handled::Last(wait) = self.execute(id) else { panic!("it does not wait for the log") };
        let answer = self.sim.block_on(wait);
        assert_eq!(answer.stream, 7);
        (answer.response, self.sim.env().elapsed(begun))
    }
}

fn code(response: &Response) -> i32 {
    match response {
        Response::Error(error) => error.kind.code(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_prepared_write_leaves_only_its_wait() {
    let machine = Machine::new(WRITE_TIMEOUT);
    let id = machine.prepare("INSERT INTO k.t (id, v) VALUES (1, 2)");
    let figures = &machine.services.requests;
    let before = figures.write.snapshot().count();
    let (answer, took) = machine.write(&id);
    assert!(matches!(answer, Response::Void) && took >= WINDOW, "{took:?}");
    assert_eq!((figures.write.snapshot().count() - before, figures.errors()), (1, 0));
    assert!(figures.write.snapshot().max >= 30_000, "the wait counts");
    // a condition is decided where it is asked for
    let id = machine.prepare("INSERT INTO k.t (id, v) VALUES (1, 3) IF NOT EXISTS");
    assert!(matches!(machine.execute(&id), Handled::Answered(_)));
}

#[test]
fn a_log_that_is_too_slow_is_a_timeout() {
    let timeout = WINDOW / 3;
    let machine = Machine::new(timeout);
    let id = machine.prepare("INSERT INTO k.t (id, v) VALUES (1, 2)");
    let (answer, took) = machine.write(&id);
    assert_eq!(code(&answer), 0x1100);
    assert!(took >= timeout && took < WINDOW, "{took:?}");
    assert_eq!((machine.services.requests.errors(), machine.services.requests.timeouts.get()), (1, 1));
}

#[test]
fn a_log_that_fails_is_a_failure() {
    let machine = Machine::new(WRITE_TIMEOUT);
    let id = machine.prepare("INSERT INTO k.t (id, v) VALUES (1, 2)");
    machine.sim.disk().inject(Fault::next(Op::Sync, "CommitLog"));
    assert_eq!(code(&machine.write(&id).0), 0x1500);
    assert_eq!((machine.services.requests.errors(), machine.services.requests.failures.get()), (1, 1));
    // and from then on at once
    let Handled::Answered(refused) = machine.execute(&id) else { panic!("it waits for a log that has stopped") };
    assert_eq!(code(&refused.response), 0x1500);
}

/// A conditional statement that finds a row, and a read at SERIAL that does, answer when the row is
/// durable: a power cut must not take back what their clients were told.
#[test]
fn what_conditions_and_serial_reads_saw_is_durable() {
    let machine = Machine::new(WRITE_TIMEOUT);
    let prepared =
        ["UPDATE k.t SET v = 5 WHERE id = 1 IF v = 4", "INSERT INTO k.t (id, v) VALUES (1, 3) IF NOT EXISTS"];
    for text in prepared {
        let id = machine.prepare(text);
        let seen = machine.prepare("INSERT INTO k.t (id, v) VALUES (1, 2)");
        let Handled::Last(_unacknowledged) = machine.execute(&seen) else { panic!("it does not wait for the log") };
        let begun = machine.sim.env().now();
        assert!(matches!(machine.execute(&id), Handled::Answered(_)));
        let took = machine.sim.env().elapsed(begun);
        assert!(took >= WINDOW, "{text}: {took:?}");
    }
    let seen = machine.prepare("INSERT INTO k.t (id, v) VALUES (1, 7)");
    for (consistency, waits) in [(Consistency::One, false), (Consistency::Serial, true)] {
        let Handled::Last(_unacknowledged) = machine.execute(&seen) else { panic!("it does not wait for the log") };
        let begun = machine.sim.env().now();
        let parameters = QueryParameters::new(consistency);
        let answer =
            machine.answer(Request::Query(Query { query: "SELECT v FROM k.t WHERE id = 1".into(), parameters }));
        assert!(matches!(answer, Response::Rows(_)), "{answer:?}");
        let took = machine.sim.env().elapsed(begun);
        assert_eq!(took >= WINDOW, waits, "{consistency}: {took:?}");
        machine.sim.advance(WINDOW * 2);
        machine.sim.run_until_idle();
    }
}
