//! The cost of executing a prepared statement: no parsing, no look-up in the schema, and the same
//! allocations however long its text is and however many tables there are. The coordinator here
//! answers nothing and has no schema to give.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use allocation_counter::{AllocationInfo, measure};
use bytes::Bytes;
use cql::ddl::restore::{RestoreOptions, restore};
use cql::{
    BoundValue, CasPartition, CasRequest, ClientState, Coordinator, CqlError, PreparedStatement, QueryOptions,
    ReadOptions, SchemaChange, SchemaEvent, WriteOptions,
};
use rows::{Mutation, PartitionHead, PartitionStream, PartitionUpdate, ReadCommand, ReadError, Unfiltered};
use schema::{Schema, TableId, TableMetadata};

struct Nothing;

impl PartitionStream for Nothing {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        Ok(None)
    }
    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(None)
    }
}

/// Takes writes, has no rows, and fails the test when it is asked for the schema.
struct NoSchema;

impl Coordinator for NoSchema {
    fn schema(&self) -> Arc<Schema> {
        panic!("a prepared statement looks at the schema");
    }
    fn now_micros(&self) -> i64 {
        1_700_000_000_000_000
    }
    fn next_timeuuid(&self) -> [u8; 16] {
        [1; 16]
    }
    fn random_uuid(&self) -> [u8; 16] {
        [2; 16]
    }
    async fn mutate(&self, mutations: Vec<Mutation>, _: &WriteOptions) -> Result<(), CqlError> {
        assert_eq!(mutations.len(), 1);
        Ok(())
    }
    async fn compare_and_set<F>(&self, _: CasRequest, _: F) -> Result<(), CqlError>
    where
        F: FnMut(CasPartition, i64) -> Result<Option<PartitionUpdate>, CqlError>,
    {
        Ok(())
    }
    async fn read<T, F>(&self, commands: Vec<ReadCommand>, _: &ReadOptions, build: F) -> Result<T, CqlError>
    where
        T: Send + 'static,
        F: Fn(&mut dyn PartitionStream) -> Result<T, CqlError> + Send + Sync + 'static,
    {
        assert_eq!(commands.len(), 1);
        build(&mut Nothing)
    }
    async fn change_schema(&self, _: SchemaChange) -> Result<Option<SchemaEvent>, CqlError> {
        Ok(None)
    }
    async fn truncate(&self, _: &Arc<TableMetadata>) -> Result<(), CqlError> {
        Ok(())
    }
}

impl cql::ExplainCoordinator for NoSchema {}

/// A schema with this many tables besides `k.t`.
fn schema(others: usize) -> Arc<Schema> {
    let mut text = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
        CREATE TABLE k.t (a int, b text, c int, v int, w text, s set<int>, PRIMARY KEY ((a, b), c));"
        .to_owned();
    (0..others).for_each(|number| text += &format!("CREATE TABLE k.other{number} (k int PRIMARY KEY);"));
    let restoring = RestoreOptions { keyspace: None, now_micros: 1, id_of: &TableId::of_system_table };
    Arc::new(restore(&text, &restoring, Schema::default()).expect("statements").schema)
}

fn block_on<F: Future>(future: F) -> F::Output {
    match pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// The allocations of one execution.
fn cost(text: &str, schema: &Arc<Schema>, values: &[BoundValue]) -> AllocationInfo {
    let mut prepared: PreparedStatement = cql::prepare(text, None, schema).expect(text);
    // nothing to parse is left
    prepared.query = Arc::from("");
    let (options, client) = (QueryOptions::default(), ClientState::default());
    let run = || block_on(cql::execute(&prepared, values, &options, &client, &NoSchema)).map(drop).expect(text);
    run();
    measure(run)
}

fn int(number: i32) -> BoundValue {
    BoundValue::Bytes(Bytes::copy_from_slice(&number.to_be_bytes()))
}

#[test]
fn a_prepared_statement_costs_the_same_whatever_its_text_and_the_schema() {
    let (small, large) = (schema(0), schema(300));
    let text = BoundValue::Bytes(Bytes::from_static(b"text"));
    let key = [int(1), text.clone(), int(2)];
    let write = [int(5), text.clone(), int(1), text.clone(), int(2)];
    let insert = [int(1), text.clone(), int(2), int(5), text];
    let statements: [(&str, &[BoundValue]); 4] = [
        ("INSERT INTO k.t (a, b, c, v, w) VALUES (?, ?, ?, ?, ?)", &insert),
        ("UPDATE k.t SET v = ?, w = ? WHERE a = ? AND b = ? AND c = ?", &write),
        ("DELETE v FROM k.t WHERE a = ? AND b = ? AND c = ?", &key),
        ("SELECT v, w, s FROM k.t WHERE a = ? AND b = ? AND c = ?", &key),
    ];
    for (statement, values) in statements {
        let plain = cost(statement, &small, values);
        let spaces = " ".repeat(100_000);
        let long = format!("/* {} */ {}", "x".repeat(100_000), statement.replace(' ', &spaces));
        let padded = cost(&long, &small, values);
        let among_others = cost(statement, &large, values);
        let figures = |cost: AllocationInfo| (cost.count_total, cost.bytes_total);
        assert_eq!(figures(plain), figures(padded), "{statement}: the length of its text");
        assert_eq!(figures(plain), figures(among_others), "{statement}: the size of the schema");
        // a handful of small vectors: the plan, the row, the answer
        assert!(plain.count_total <= 20, "{statement}: {plain:?}");
    }
}

/// The object is parsed once, and not for each column again.
#[test]
fn a_row_of_json_is_parsed_once() {
    const COLUMNS: usize = 100;
    let columns: String = (0..COLUMNS).map(|at| format!("c{at} int, ")).collect();
    let table = format!("CREATE TABLE k.wide ({columns}PRIMARY KEY (c0))");
    let restoring = RestoreOptions { keyspace: None, now_micros: 1, id_of: &TableId::of_system_table };
    let wide = Arc::new(restore(&table, &restoring, schema(0).as_ref().clone()).expect("a statement").schema);
    let members: Vec<_> = (0..COLUMNS).map(|at| format!("\"c{at}\": {at}")).collect();
    let object = format!("{{{}}}", members.join(", "));
    let bound = [BoundValue::Bytes(Bytes::from(object.clone()))];
    let executed = cost("INSERT INTO k.wide JSON ?", &wide, &bound).count_total;
    let literal = format!("INSERT INTO k.wide JSON '{object}'");
    let prepared = measure(|| drop(cql::prepare(&literal, None, &wide).expect("valid"))).count_total;
    // once for each pair of columns would be more
    let most = (COLUMNS * COLUMNS) as u64;
    assert!(executed < most && prepared < most, "allocations: {executed} for a bound object, {prepared} for a literal");
}
