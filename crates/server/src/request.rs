//! Requests to statements: QUERY, PREPARE, EXECUTE and BATCH over the executor of CQL.
//!
//! One [`CqlHandler`] a worker; what it needs is shared ([`Services`]). Agrees with
//! `org.apache.cassandra.transport.messages`.

mod batch;
mod commitlog_wait;
mod old_columns;
mod options;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use cluster::sampling::Sampler;
use cql::guardrails::{Guardrails, is_violation};
use cql::{Answer, BoundValue, ClientState, CqlError, CqlResult};
use env::Instant;
use metrics::Histogram;
use protocol::request::{BatchStatement, Execute, Prepare, Query, QueryParameters, Request};
use protocol::response::{self, ResponseExtras};
use protocol::{ErrorMessage, ProtocolVersion, RequestEnvelope, Response, ResponseEnvelope};

use crate::auth::{Auth, UserAccess};
use crate::coordinator::RequestCoordinator;
use crate::errors;
use crate::events;
use crate::prepared::{PlannedStatement, result_metadata};
use crate::services::{RequestMetrics, Services};
use crate::trace::{TraceSession, TracedRequest};
use native::{ConnectionInfo, Handled, RequestHandler};
use old_columns::KnownColumns;

pub use commitlog_wait::CommitLogWait;

/// Executes requests of one worker's connections.
pub struct CqlHandler {
    services: Arc<Services>,
}

impl CqlHandler {
    /// A worker's handler.
    pub fn new(services: Arc<Services>) -> Self {
        Self { services }
    }
}

/// The state of a connection between its requests.
pub struct Client {
    info: ConnectionInfo,
    state: RefCell<Rc<ClientState>>,
    /// The user's access that the state has; None where nobody logs in.
    user_access: RefCell<Option<UserAccess>>,
    /// The client was told once that USE and prepared statements go badly together.
    warned_of_use: Cell<bool>,
    known_columns: KnownColumns,
}

impl Client {
    async fn state(&self, auth: Option<&Auth>, now: Instant) -> Rc<ClientState> {
        if let (Some(auth), Some(user)) = (auth, &self.info.user)
            && !self.user_access.borrow().as_ref().is_some_and(|known| auth.is_valid(known, now))
        {
            // boxed: by value it would make the future of every request larger
            let user_access = Box::pin(auth.user_access(user)).await;
            let keyspace = self.state.borrow().keyspace.clone();
            let access = Some(Arc::clone(&user_access.access));
            *self.state.borrow_mut() = Rc::new(ClientState { keyspace, access });
            *self.user_access.borrow_mut() = Some(user_access);
        }
        Rc::clone(&self.state.borrow())
    }

    /// The state at a time, with the keyspace that a request gives.
    async fn state_in(&self, keyspace: Option<&str>, auth: Option<&Auth>, now: Instant) -> Rc<ClientState> {
        let state = self.state(auth, now).await;
        match keyspace {
            None => state,
            Some(keyspace) => {
                Rc::new(ClientState { keyspace: Some(keyspace.to_owned()), ..ClientState::clone(&state) })
            }
        }
    }

    fn use_keyspace(&self, keyspace: &str) {
        self.info.stats.set_keyspace(keyspace);
        let mut state = self.state.borrow_mut();
        *state = Rc::new(ClientState { keyspace: Some(keyspace.to_owned()), ..ClientState::clone(&state) });
    }
}

/// Cassandra's warning for a statement whose meaning depends on the keyspace of USE. It is sent
/// once to each connection that prepares such a statement, or executes one that was prepared in
/// another keyspace. `used`: the keyspace of the connection.
fn warning_of_use(used: Option<&str>, prepared: &cql::PreparedStatement) -> String {
    let keyspace = used.unwrap_or("null");
    let of_statement = prepared.keyspace.as_deref().unwrap_or("null");
    let id = prepared.id();
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "`USE <keyspace>` with prepared statements is considered to be an anti-pattern due to ambiguity in non-qualified table \
         names. Please consider removing instances of `Session#setKeyspace(<keyspace>)`, `Session#execute(\"USE <keyspace>\")` \
         and `cluster.newSession(<keyspace>)` from your code, and always use fully qualified table names (e.g. \
         <keyspace>.<table>). Keyspace used: {keyspace}, statement keyspace: {of_statement}, statement id: {id}"
    )
}

/// Why a request was not answered.
enum Failure {
    Cql(CqlError),
    Unprepared(Bytes),
}

impl From<CqlError> for Failure {
    fn from(error: CqlError) -> Self {
        Self::Cql(error)
    }
}

impl Failure {
    /// Whether replicas were asked, and failed the request or did not answer it in time.
    fn is_of_replicas(&self) -> bool {
        let Self::Cql(error) = self else { return false };
        matches!(
            error,
            CqlError::ReadTimeout { .. }
                | CqlError::ReadFailure { .. }
                | CqlError::WriteTimeout { .. }
                | CqlError::WriteFailure { .. }
                | CqlError::CasTimeout { .. }
                | CqlError::CasUnknown { .. }
        )
    }
}

/// An answer, and the warnings that go with it.
struct Reply {
    response: Response,
    warnings: Vec<String>,
}

impl Reply {
    fn into_envelope(self, stream: i16, tracing_id: Option<[u8; 16]>) -> ResponseEnvelope {
        let Self { response, warnings } = self;
        let extras = (tracing_id.is_some() || !warnings.is_empty())
            .then(|| Box::new(ResponseExtras { tracing_id, warnings, custom_payload: Vec::new() }));
        ResponseEnvelope { stream, extras, response }
    }
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Self { response, warnings: Vec::new() }
    }
}

impl RequestHandler for CqlHandler {
    type Client = Client;
    type Last = Box<CommitLogWait>;

    fn connect(&self, info: ConnectionInfo) -> Rc<Client> {
        Rc::new(Client {
            info,
            state: RefCell::default(),
            user_access: RefCell::default(),
            warned_of_use: Cell::default(),
            known_columns: KnownColumns::default(),
        })
    }

    fn disconnect(&self, _client: &Client) {}

    async fn handle(
        self: Rc<Self>,
        client: Rc<Client>,
        envelope: RequestEnvelope,
        received: Instant,
    ) -> Handled<Box<CommitLogWait>> {
        let services = &self.services;
        let trace = self.trace(&envelope, received);
        let statement = commitlog_wait::StatementRef::of(&envelope.request).filter(|_| trace.is_none());
        let coordinator = RequestCoordinator::new(Arc::clone(services), trace.clone(), statement.is_some());
        let version = envelope.version;
        let execution = RequestExecution { services, client: &client, coordinator: &coordinator, version, received };
        let result = execution.answer(&envelope.request).await;
        let unacknowledged = coordinator.unacknowledged.lock().expect("no panic inside").take();
        let result = match (result, unacknowledged, statement) {
            (Ok(reply), Some(wait), Some(statement)) => {
                let (services, answer) = (Arc::clone(services), reply.into_envelope(envelope.stream, None));
                return Handled::Last(Box::new(CommitLogWait { services, statement, received, wait, answer }));
            }
            (result, ..) => result,
        };
        execution.record(&envelope.request, &result, received);
        let reply = result.unwrap_or_else(|failure| execution.refusal(failure, &envelope.request));
        if let Some(trace) = &trace {
            let error = match &reply.response {
                Response::Error(error) => Some(format!("{:?}", error.kind)),
                _ => None,
            };
            trace.finish(&self.traced_request(&client, &envelope.request), error).await;
        }
        let tracing_id = trace.filter(|_| envelope.tracing).and_then(|trace| trace.id);
        Handled::Answered(reply.into_envelope(envelope.stream, tracing_id))
    }
}

impl CqlHandler {
    fn trace(&self, envelope: &RequestEnvelope, received: Instant) -> Option<Arc<TraceSession>> {
        let probability = self.services.trace_probability();
        let node = &self.services.node;
        let wanted = envelope.tracing
            || (probability > 0.0 && (node.env.random.next_u64() as f64) < probability * u64::MAX as f64);
        if !wanted && self.services.otlp.is_none() {
            return None;
        }
        let session = wanted.then(|| node.uuids.next());
        let span = self.services.otlp.as_ref().and_then(|otlp| otlp.sample(node, envelope, session));
        let is_traced = session.is_some() || span.is_some();
        is_traced.then(|| TraceSession::begin(node, received, session, span))
    }

    fn traced_request(&self, client: &Client, request: &Request) -> TracedRequest {
        let mut parameters = Vec::new();
        let request = match request {
            Request::Query(query) => {
                parameters.push(("query".to_owned(), cql::obfuscate(&query.query).into_owned()));
                options::describe(&query.parameters, &mut parameters);
                "Execute CQL3 query"
            }
            Request::Execute(execute) => {
                if let Some(statement) = self.services.prepared.get(&execute.id, &self.services.node.schema()) {
                    parameters.push(("query".to_owned(), cql::obfuscate(&statement.prepared.query).into_owned()));
                    options::describe_values(&statement.markers, &execute.parameters.values, &mut parameters);
                }
                options::describe(&execute.parameters, &mut parameters);
                "Execute CQL3 prepared query"
            }
            Request::Prepare(prepare) => {
                parameters.push(("query".to_owned(), cql::obfuscate(&prepare.query).into_owned()));
                "Preparing CQL3 query"
            }
            Request::Batch(batch) => {
                options::describe(&batch.parameters, &mut parameters);
                "Execute batch of CQL3 queries"
            }
            _ => "",
        };
        TracedRequest { request, client: client.info.peer.ip(), parameters }
    }
}

/// One request on its way.
struct RequestExecution<'a> {
    services: &'a Arc<Services>,
    client: &'a Client,
    coordinator: &'a RequestCoordinator,
    version: ProtocolVersion,
    received: Instant,
}

impl RequestExecution<'_> {
    /// The state of the client, with the keyspace that the request gives.
    async fn state(&self, keyspace: Option<&str>) -> Rc<ClientState> {
        self.client.state_in(keyspace, self.services.auth.as_deref(), self.received).await
    }

    /// Refuses a keyspace that a request gives for its texts, and that does not exist.
    fn check_keyspace(&self, keyspace: Option<&str>) -> Result<(), CqlError> {
        match keyspace {
            Some(keyspace) if self.services.node.schema().keyspace(keyspace).is_none() => {
                Err(CqlError::invalid(format!("Keyspace '{keyspace}' does not exist")))
            }
            _ => Ok(()),
        }
    }

    async fn answer(&self, request: &Request) -> Result<Reply, Failure> {
        match request {
            Request::Query(query) => self.query(query).await,
            Request::Prepare(prepare) => self.prepare(prepare).await,
            Request::Execute(execute) => self.execute(execute).await,
            Request::Batch(batch) => self.batch(batch).await,
            // the connection layer answers the others itself
            _ => Err(CqlError::Protocol("Unexpected message after the start of the connection".to_owned()).into()),
        }
    }

    fn trace(&self, line: impl FnOnce() -> String) {
        if let Some(trace) = &self.coordinator.trace {
            rows::command::TraceSink::event(&**trace, line());
        }
    }

    async fn query(&self, query: &Query) -> Result<Reply, Failure> {
        self.services.requests.regular_statements.add(1);
        options::check_page_size(&query.parameters)?;
        self.check_keyspace(query.parameters.keyspace.as_deref())?;
        let state = self.state(query.parameters.keyspace.as_deref()).await;
        self.trace(|| format!("Parsing {}", shortened(&cql::obfuscate(&query.query))));
        self.trace(|| "Preparing statement".to_owned());
        // boxed: a plan in the future of each request would make all of them larger
        let statement =
            Box::new(PlannedStatement::plan(&query.query, state.keyspace.as_deref(), &self.services.node.schema())?);
        let values = &query.parameters.values;
        // values by name may be more, or fewer where one stands for several markers
        if values.names().is_empty() && statement.markers.len() != values.len() {
            return Err(CqlError::Invalid("Invalid amount of bind variables".to_owned()).into());
        }
        let answer = self.run(&statement, &query.parameters, &state).await?;
        let mut reply = self.reply(answer, &statement, false, false);
        if let Response::Rows(rows) = &mut reply.response {
            // as in Cassandra, it is for the client to know from where it has the columns
            rows.skip_metadata = query.parameters.skip_metadata;
        }
        Ok(reply)
    }

    async fn prepare(&self, prepare: &Prepare) -> Result<Reply, Failure> {
        self.check_keyspace(prepare.keyspace.as_deref())?;
        let state = self.state(prepare.keyspace.as_deref()).await;
        self.trace(|| format!("Parsing {}", shortened(&cql::obfuscate(&prepare.query))));
        self.trace(|| "Preparing statement".to_owned());
        let schema = self.services.node.schema();
        let (statement, is_new) = self.services.prepared.prepare(&prepare.query, state.keyspace.as_deref(), schema)?;
        self.client.known_columns.note(&statement);
        let prepared = response::Prepared {
            id: Bytes::copy_from_slice(&statement.prepared.id()),
            markers: Arc::clone(&statement.markers),
            partition_key_markers: Arc::clone(&statement.prepared.partition_key_bind_indexes),
            result: Arc::clone(&statement.result),
        };
        let mut warnings = Vec::new();
        if is_new && !statement.prepared.qualified && !self.client.warned_of_use.replace(true) {
            warnings.push(warning_of_use(state.keyspace.as_deref(), &statement.prepared));
        }
        Ok(Reply { response: Response::Prepared(Box::new(prepared)), warnings })
    }

    async fn execute(&self, execute: &Execute) -> Result<Reply, Failure> {
        self.services.requests.prepared_statements.add(1);
        let statement = self.prepared(&execute.id)?;
        if self.client.known_columns.may_be_outdated(execute, &statement) {
            self.client.known_columns.note(&statement);
            return Err(Failure::Unprepared(execute.id.clone()));
        }
        options::check_page_size(&execute.parameters)?;
        self.trace(|| format!("Executing prepared {}", shortened(&cql::obfuscate(&statement.prepared.query))));
        let state = self.state(execute.parameters.keyspace.as_deref()).await;
        let of_use = self.warning_of_other_keyspace(&statement);
        let answer = self.run(&statement, &execute.parameters, &state).await.inspect_err(|_| {
            // the client of a statement that fails is warned, too: its keyspace may be the reason
            of_use.iter().for_each(|warning| self.coordinator.figures.warnings.add(warning.clone()));
        })?;
        let (skip, changed) = match &execute.result_metadata_id {
            Some(known) if known.as_ref() == statement.result.id() => (execute.parameters.skip_metadata, false),
            Some(_) => (false, true),
            None => (execute.parameters.skip_metadata && !statement.columns_changed, false),
        };
        let mut reply = self.reply(answer, &statement, skip, changed);
        if let Some(warning) = of_use {
            reply.warnings.insert(0, warning);
        }
        Ok(reply)
    }

    /// The warning for a statement that was prepared in another keyspace than the connection's.
    /// None: it was not, or the client was warned before.
    fn warning_of_other_keyspace(&self, statement: &PlannedStatement) -> Option<String> {
        let client = self.client.state.borrow();
        let used = client.keyspace.as_deref();
        let is_told = statement.prepared.is_of_other_keyspace(used) && !self.client.warned_of_use.replace(true);
        is_told.then(|| warning_of_use(used, &statement.prepared))
    }

    fn prepared(&self, id: &Bytes) -> Result<Arc<PlannedStatement>, Failure> {
        let schema = self.services.node.schema();
        self.services.prepared.get(id, &schema).ok_or_else(|| Failure::Unprepared(id.clone()))
    }

    async fn run(
        &self,
        statement: &PlannedStatement,
        parameters: &QueryParameters,
        state: &ClientState,
    ) -> Result<Answer, CqlError> {
        let values = self.values(statement, parameters)?;
        let options = options::of(parameters, self.version, self.services.limits, self.guardrails(state))?;
        cql::execute(&statement.prepared, &values, &options, state, self.coordinator).await
    }

    /// The guardrails that bind the client: none where nobody logs in, and not superusers.
    fn guardrails(&self, state: &ClientState) -> Option<Arc<Guardrails>> {
        let is_ordinary = state.access.as_ref().is_some_and(|access| !access.is_super);
        is_ordinary.then(|| self.services.guardrails.of_users())
    }

    fn values(&self, statement: &PlannedStatement, parameters: &QueryParameters) -> Result<Vec<BoundValue>, CqlError> {
        let given = &parameters.values;
        if !given.names().is_empty() {
            let named: Vec<(&str, BoundValue)> =
                given.names().iter().map(|name| &**name).zip(given.iter().map(options::bound)).collect();
            return cql::bind_by_name(&statement.prepared, &named);
        }
        options::by_position(given, &statement.prepared)
    }

    fn reply(
        &self,
        answer: Answer,
        statement: &PlannedStatement,
        skip_metadata: bool,
        metadata_changed: bool,
    ) -> Reply {
        // the operator who has set a guardrail may know nothing of the clients
        let violations = answer.warnings.iter().filter(|text| self.is_violation_to_be_logged(text));
        violations.for_each(|text| tracing::warn!("{text}"));
        let response = match answer.result {
            CqlResult::Void => Response::Void,
            CqlResult::SetKeyspace(keyspace) => {
                self.client.use_keyspace(&keyspace);
                Response::SetKeyspace(keyspace)
            }
            CqlResult::SchemaChange(event) => Response::SchemaChange(Box::new(events::schema_change(&event))),
            CqlResult::Rows(rows) => {
                let planned = Arc::ptr_eq(&rows.metadata, &statement.prepared.result_metadata);
                let metadata =
                    if planned { Arc::clone(&statement.result) } else { Arc::new(result_metadata(&rows.metadata)) };
                Response::Rows(Box::new(response::Rows {
                    metadata,
                    skip_metadata: skip_metadata && planned,
                    metadata_changed: metadata_changed && planned,
                    paging_state: rows.paging_state.map(Bytes::from),
                    row_count: rows.row_count,
                    body: rows.rows,
                }))
            }
        };
        Reply { response, warnings: answer.warnings }
    }

    /// The error of a failed request, with the warnings that came before it.
    fn refusal(&self, failure: Failure, request: &Request) -> Reply {
        let is_syntax_error = matches!(failure, Failure::Cql(CqlError::Syntax(_)));
        let error = match failure {
            Failure::Unprepared(id) => ErrorMessage::unprepared(id),
            Failure::Cql(error) => errors::message(&error),
        };
        self.trace(|| match request {
            // only syntax errors quote the statement
            Request::Query(Query { query, .. }) | Request::Prepare(Prepare { query, .. }) if is_syntax_error => {
                format!("Failed: {}", cql::obfuscate_syntax_error(query, &error.message))
            }
            Request::Batch(_) if is_syntax_error => "Failed: a statement of the batch is no CQL".to_owned(),
            _ => format!("Failed: {}", error.message),
        });
        if self.is_violation_to_be_logged(&error.message) {
            tracing::error!("{}", error.message);
        }
        Reply { response: Response::Error(error), warnings: self.coordinator.figures.warnings.take() }
    }

    /// Whether a warning, or the text of an error, is of a guardrail, and is to be in the log.
    fn is_violation_to_be_logged(&self, text: &str) -> bool {
        is_violation(text) && self.services.guardrails.is_to_be_logged(text, self.received)
    }

    /// The histogram of a request, by what it has asked replicas for. A request that they failed,
    /// or did not answer in time, stands beside those that they answered: otherwise latencies would
    /// look best while replicas answer nothing.
    fn histogram(&self, request: &Request, result: &Result<Reply, Failure>) -> &Histogram {
        let figures = &self.services.requests;
        let is_conditional = self.coordinator.conditional.load(Ordering::Relaxed);
        let of_read = || match self.coordinator.of_range.load(Ordering::Relaxed) {
            true => &figures.range,
            false => &figures.read,
        };
        match (request, result) {
            (Request::Prepare(_), _) => &figures.prepare,
            // rows that tell what became of a write are no read
            (_, Ok(_)) if is_conditional => &figures.cas_write,
            (_, Err(failure)) if is_conditional && failure.is_of_replicas() => &figures.cas_write,
            (Request::Batch(_), _) => &figures.batch,
            (_, Ok(Reply { response: Response::Rows(_), .. })) => of_read(),
            (_, Ok(Reply { response: Response::Void, .. })) => &figures.write,
            (_, Err(Failure::Cql(CqlError::WriteTimeout { .. } | CqlError::WriteFailure { .. }))) => &figures.write,
            // without conditions the rounds of Paxos are those of a read
            (_, Err(failure)) if failure.is_of_replicas() => of_read(),
            _ => &figures.other,
        }
    }

    /// Counts the request, and how long it took.
    fn record(&self, request: &Request, result: &Result<Reply, Failure>, received: Instant) {
        let figures = &self.services.requests;
        let micros = self.services.micros_since(received);
        self.histogram(request, result).record(micros);
        let is_answered = result.as_ref().map_or_else(Failure::is_of_replicas, |_| true);
        if is_answered && self.coordinator.serial.load(Ordering::Relaxed) {
            figures.cas_read.record(micros);
        }
        if self.services.slow.is_slow(micros) {
            let env = &self.services.node.env;
            self.services.slow.add(env, &self.text_of(request), micros, &self.coordinator.figures);
        }
        if let Some(table) = self.coordinator.sampled.get() {
            let sampling = &self.services.node.sampling;
            sampling.add(Sampler::LocalReadTime, table, &Bytes::from(self.text_of(request)), micros);
        }
        match result {
            Ok(_) => {}
            Err(Failure::Cql(error)) => count_failure(figures, error),
            Err(Failure::Unprepared(_)) => figures.other_errors.add(1),
        }
    }
}

/// Counts an error under one kind. No kind is a difference of others, which are read at other
/// moments: such a figure would go down now and then, and look like a restart.
fn count_failure(figures: &RequestMetrics, error: &CqlError) {
    let counter = match error {
        CqlError::Unavailable { .. } => &figures.unavailable,
        CqlError::WriteTimeout { .. } | CqlError::CasTimeout { .. } | CqlError::ReadTimeout { .. } => &figures.timeouts,
        CqlError::WriteFailure { .. } | CqlError::ReadFailure { .. } => &figures.failures,
        CqlError::Overloaded(_) => &figures.overloaded,
        CqlError::Server(_) | CqlError::Read(_) => &figures.server_errors,
        _ => &figures.other_errors,
    };
    counter.add(1);
}

/// The text of a prepared statement without passwords; empty if it is not known any more.
fn text_of_id(services: &Services, id: &[u8]) -> String {
    services.prepared.text(id).map(|text| cql::obfuscate(&text).into_owned()).unwrap_or_default()
}

impl RequestExecution<'_> {
    /// The text of the statement that a request executes, without passwords, as logs may keep it:
    /// looked up again, as it is seldom asked for.
    fn text_of(&self, request: &Request) -> String {
        let of_id = |id: &Bytes| text_of_id(self.services, id);
        match request {
            Request::Query(query) => cql::obfuscate(&query.query).into_owned(),
            Request::Prepare(prepare) => format!("PREPARE {}", cql::obfuscate(&prepare.query)),
            Request::Execute(execute) => of_id(&execute.id),
            Request::Batch(batch) => {
                let first = batch.statements.first().map(|statement| match statement {
                    BatchStatement::Query { query, .. } => cql::obfuscate(query).into_owned(),
                    BatchStatement::Prepared { id, .. } => of_id(id),
                });
                format!("BATCH of {}, the first: {}", batch.statements.len(), first.unwrap_or_default())
            }
            _ => String::new(),
        }
    }
}

/// A statement in a trace: its beginning.
fn shortened(query: &str) -> String {
    const SHOWN: usize = 200;
    match query.char_indices().nth(SHOWN) {
        None => query.to_owned(),
        Some((end, _)) => format!("{}…", &query[..end]),
    }
}
